"""Images of Gaussian splats, ray by ray in JAX, and their derivatives."""
import jax.numpy as jnp
import numpy as np
import scipy.special
from jax import lax

from gradients import Gradients

RNG = np.random.default_rng(509)
C3 = (-0.5900435899266435, 2.890611442640554, -0.4570457994644658, 0.3731763325901154,
      -0.4570457994644658, 1.445305721320277, -0.5900435899266435)


def harmonics(v, degree):
    """The basis up to a degree, [..., (degree + 1)²], of unit directions."""
    x, y, z = v[..., 0], v[..., 1], v[..., 2]
    c1, c2 = 0.4886025119029199, 1.0925484305920792
    basis = [0.28209479177387814 * jnp.ones_like(x), -c1 * y, c1 * z, -c1 * x,
             c2 * x * y, -c2 * y * z, 0.31539156525252005 * (2 * z * z - x * x - y * y),
             -c2 * x * z, 0.5462742152960396 * (x * x - y * y),
             C3[0] * y * (3 * x * x - y * y), C3[1] * x * y * z,
             C3[2] * y * (4 * z * z - x * x - y * y),
             C3[3] * z * (2 * z * z - 3 * x * x - 3 * y * y),
             C3[4] * x * (4 * z * z - x * x - y * y), C3[5] * z * (x * x - y * y),
             C3[6] * x * (x * x - 3 * y * y)]
    return jnp.stack(basis[: (degree + 1) ** 2], -1)


def check_harmonics():
    """The same from SciPy's spherical harmonics: order -m is √2 Im Y_m, order m is √2 Re Y_m."""
    v = RNG.standard_normal((20, 3))
    v /= np.linalg.norm(v, axis=-1, keepdims=True)
    polar, azimuth = np.arccos(v[:, 2]), np.arctan2(v[:, 1], v[:, 0])
    expected = []
    for n in range(4):
        for m in range(-n, n + 1):
            y = scipy.special.sph_harm_y(n, abs(m), polar, azimuth)
            expected.append(y.real if m == 0 else np.sqrt(2) * (y.imag if m < 0 else y.real))
    np.testing.assert_allclose(harmonics(v, 3), np.stack(expected, -1), atol=1e-14)


def distorted(p, k):
    x, y = p
    k1, k2, p1, p2, k3, k4, k5, k6 = k
    rr = x * x + y * y
    rho = (1 + k1 * rr + k2 * rr ** 2 + k3 * rr ** 3) / (1 + k4 * rr + k5 * rr ** 2 + k6 * rr ** 3)
    return jnp.array([x * rho + 2 * p1 * x * y + p2 * (rr + 2 * x * x),
                      y * rho + p1 * (rr + 2 * y * y) + 2 * p2 * x * y])


def undistorted(seen, k):
    """A fixed point: slow, but nothing of Newton's method."""
    p = seen
    for _ in range(60):
        p = p + seen - distorted(p, k)
    return p


def unit(v):
    return v / jnp.linalg.norm(v, axis=-1, keepdims=True)


def rays(meta, width, height):
    position, target, up = meta[0:3], meta[3:6], meta[6:9]
    forward = unit(target - position)
    right = unit(jnp.cross(up, forward))
    above = unit(jnp.cross(forward, right))
    x, y = jnp.meshgrid(jnp.arange(width) + 0.5, jnp.arange(height) + 0.5)
    if meta.size == 35:
        seen = jnp.stack([(x - meta[25]) / meta[23], (y - meta[26]) / meta[24]])
        at = undistorted(seen, meta[27:35])
    else:
        focal = 0.5 * height / jnp.tan(jnp.radians(meta[9]) / 2)
        at = jnp.stack([(x - width / 2) / focal, (y - height / 2) / focal])
    return unit(at[0][..., None] * right + at[1][..., None] * above + forward).reshape(-1, 3)


def rotation(q):
    w, x, y, z = unit(q)
    return jnp.array([[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                      [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                      [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]])


def render(positions, scales, rotations, opacities, colors, sh, meta, width, height, radius_scale=1.6,
           cutoff=1 / 255, steps=32, threshold=0.01, logit=False, rgb=False, band=3, gamma=2.2):
    count = opacities.size
    mu = positions.reshape(-1, 3)
    order = jnp.argsort(jnp.linalg.norm(lax.stop_gradient(mu - meta[:3]), axis=-1))
    o = 1 / (1 + jnp.exp(-opacities)) if logit else jnp.clip(opacities, 0, 1)
    sh = sh.reshape(count, -1, 3)
    d = rays(meta, width, height)
    left, color, hits = jnp.ones(len(d)), jnp.zeros((len(d), 3)), jnp.zeros(len(d))
    for i in order:
        shrink = jnp.diag(jnp.exp(-scales.reshape(-1, 3)[i]) / radius_scale)
        a = shrink @ rotation(rotations.reshape(-1, 4)[i]).T
        p, r = a @ (meta[:3] - mu[i]), d @ a.T
        t = -(r @ p) / jnp.sum(r * r, -1)
        e = p + t[:, None] * r
        alpha = o[i] * jnp.exp(-0.5 * jnp.sum(e * e, -1))
        hit = (t > 0) & (alpha >= cutoff) & (left >= threshold) & (hits < (steps or np.inf))
        alpha = jnp.where(hit, alpha, 0)
        degree = min(band, int(np.sqrt(sh.shape[1])) - 1)
        basis = harmonics(unit(mu[i] - meta[:3]), degree)
        c = colors.reshape(-1, 3)[i] if rgb else 0.5 + basis @ sh[i, : len(basis)]
        color = color + (left * alpha)[:, None] * c
        left = left * (1 - alpha)
        hits = hits + hit
    u = color + left[:, None] * meta[12:15]
    lit = u > 0
    shown = jnp.where(lit, jnp.where(lit, u, 1) ** gamma, 0)
    return jnp.concatenate([shown, 1 - left[:, None]], -1).reshape(-1)


def scene(count, coefficients, lens=None, logit=False):
    meta = np.zeros(23 if lens is None else 35)
    meta[:15] = [0.4, 0.3, -4, 0.1, -0.05, 0.02, 0.05, 1, 0.1, 40, 0.01, 100, 0.2, 0.3, 0.4]
    if lens is not None:
        meta[23:] = lens
    draw = lambda low, high, n: RNG.uniform(low, high, n * count)
    return {"positions": draw(-0.7, 0.7, 3), "scales": draw(-1.8, -0.9, 3),
            "rotations": draw(-1, 1, 4), "opacities": draw(-1, 2, 1) if logit else draw(0.3, 0.9, 1),
            "colors": draw(0.2, 0.9, 3), "sh": draw(-0.4, 0.4, 3 * coefficients), "meta": meta}


def gradients():
    f = Gradients("splats")
    names = "%positions, %scales, %rotations, %opacities, %colors, %sh, %meta"

    def program(name, inputs, attributes, **options):
        def fn(*arguments):
            return render(*arguments, width=6, height=5, **options)

        f.program(name, f"%y = gaussian_splat_render {names} {{width = 6, height = 5, tile_size = 4"
                        f"{attributes}}}", fn, inputs)

    for coefficients in (1, 4, 9, 16):
        program(f"bands_{coefficients}", scene(3, coefficients), "")
    program("lower_band", scene(3, 16), ", sh_band = 1", band=1)
    program("rgb_logits", scene(4, 1, logit=True),
            ", opacity_space = logit, color_source = rgb, gamma = 1.0", logit=True, rgb=True, gamma=1)
    program("few_steps", scene(5, 1), ", max_splat_steps = 2, radius_scale = 2.5", steps=2,
            radius_scale=2.5)
    program("early_stop", scene(5, 1), ", transmittance_threshold = 0.4, radius_scale = 3.0",
            threshold=0.4, radius_scale=3.0)
    lens = [6.5, 6.0, 3.2, 2.4, 0.11, -0.06, 0.02, -0.03, 0.04, 0.05, -0.02, 0.01]
    program("lens", scene(3, 4, lens), "")
    return f


def families():
    check_harmonics()
    return [gradients()]
