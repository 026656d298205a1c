"""Derivatives of further activations, convolutions over any axes, scatters, resizing and the like."""
import jax
import jax.numpy as jnp
import numpy as np

import families_nn as nn
from gradients import Gradients

RNG = np.random.default_rng(23)


def normal(*shape):
    return RNG.standard_normal(shape)


def activations():
    f = Gradients("activations")
    away = np.array([-700.0, -4.0, -2.5, -0.7, -0.01, 0.02, 0.8, 2.4, 4.0, 700.0])  # from kinks
    for name, fn in {"elu": jax.nn.elu, "selu": jax.nn.selu, "hard_sigmoid": jax.nn.hard_sigmoid,
                     "hard_swish": jax.nn.hard_swish, "softsign": jax.nn.soft_sign}.items():
        f.program(name, f"%y = {name} %x", fn, {"x": away})
    f.program("mish", "%y = mish %x", lambda x: x * jnp.tanh(jax.nn.softplus(x)),
              {"x": away[1:-1]})
    return f


def transposed(x, w, sizes, stride, padding, dilation, groups):
    """The transpose of the convolution that takes an image of `sizes` to x's."""
    image = jnp.zeros((x.shape[0], w.shape[1] * groups, *sizes))
    pull = jax.vjp(lambda i: nn.conv(i, w, stride, padding, dilation, groups), image)[1]
    return pull(x)[0]


def convolution():
    f = Gradients("convolution_any")
    for tag, (sx, sw, stride, padding, dilation, groups) in {
            "line": ((2, 4, 7), (4, 2, 3), (2,), (1,), (1,), 2),
            "line_dilated": ((1, 2, 8), (3, 2, 2), (1,), (2,), (3,), 1),
            "volume": ((1, 2, 3, 4, 3), (2, 2, 2, 2, 2), (1, 1, 1), (0, 0, 0), (1, 1, 1), 1),
            "volume_strided": ((1, 2, 4, 3, 5), (2, 1, 2, 2, 2), (2, 1, 2), (1, 0, 1), (2, 1, 1), 2)}.items():
        x, w = normal(*sx), normal(*sw)
        geometry = (f"stride = {list(stride)}, padding = {list(padding)}, dilation = {list(dilation)}, "
                    f"groups = {groups}")
        call = lambda x, w: nn.conv(x, w, stride, padding, dilation, groups)
        f.program(f"conv_{tag}", f"%y = conv %x, %w {{{geometry}}}", call, {"x": x, "w": w})
        dy = normal(*call(x, w).shape)
        f.program(f"conv_backward_input_{tag}",
                  f"%y = conv2d_backward_input %d, %w {{input_size = {list(sx[2:])}, {geometry}}}",
                  lambda d, w: transposed(d, w, sx[2:], stride, padding, dilation, groups),
                  {"d": dy, "w": w})
        f.program(f"conv_backward_weight_{tag}",
                  f"%y = conv2d_backward_weight %x, %d {{kernel_size = {list(sw[2:])}, {geometry}}}",
                  lambda x, d: jax.vjp(lambda w: call(x, w), jnp.zeros(sw))[1](d)[0], {"x": x, "d": dy})
    f.program("conv_transpose2d",
              "%y = conv_transpose2d %x, %w {stride = [2, 3], padding = [1, 0], output_padding = [1, 2], groups = 2}",
              lambda x, w: transposed(x, w, (6, 10), (2, 3), (1, 0), (1, 1), 2),
              {"x": normal(1, 4, 3, 3), "w": normal(4, 1, 3, 2)})
    return f


def scatters():
    f = Gradients("scatters")
    x, u = normal(3, 2), normal(5, 2)
    u[2] = 0  # a factor of zero
    i = np.array([2, 0, 2, 2, 0])
    named = (i[:, None] == np.arange(3))[:, :, None]  # update, row, column
    last = np.array([-1 if not (i == r).any() else np.flatnonzero(i == r)[-1] for r in range(3)])

    def folded(x, u, fill, fold):
        return fold(jnp.concatenate([x[None], jnp.where(named, u[:, None, :], fill)]), 0)

    kinds = {
        "add": lambda x, u, i: folded(x, u, 0, jnp.sum),
        "mul": lambda x, u, i: folded(x, u, 1, jnp.prod),
        "max": lambda x, u, i: folded(x, u, -jnp.inf, jnp.max),
        "min": lambda x, u, i: folded(x, u, jnp.inf, jnp.min),
        "set": lambda x, u, i: jnp.where((last >= 0)[:, None], u[last], x),
    }
    for kind, fn in kinds.items():
        f.program(f"scatter_{kind}", f"%y = scatter %x, %u, %i {{kind = {kind}}}", fn,
                  {"x": x, "u": u, "i": i})
    f.program("take_every", "%y = take_every %x {axis = 1, stride = 3}", lambda x: x[:, ::3],
              {"x": normal(2, 8)})
    return f


def keys_matrix(n, m, a, corners):
    """Weights of a cubic through four samples, edges repeated."""
    w = np.zeros((m, n))
    for i in range(m):
        p = i * (n - 1) / (m - 1) if corners else (i + 0.5) * n / m - 0.5
        for j in range(int(np.floor(p)) - 1, int(np.floor(p)) + 3):
            d = abs(p - j)
            k = (a + 2) * d**3 - (a + 3) * d**2 + 1 if d <= 1 else a * (d**3 - 5 * d**2 + 8 * d - 4)
            w[i, min(max(j, 0), n - 1)] += k
    return w


def resizing():
    f = Gradients("resizing")
    linear = lambda x, *size: jax.image.resize(x, (*x.shape[:2], *size), "linear", antialias=False)
    f.program("linear_line", "%y = resize %x {sizes = [7], mode = linear}", lambda x: linear(x, 7),
              {"x": normal(1, 2, 4)})
    f.program("bilinear", "%y = resize %x {sizes = [2, 7], mode = linear}", lambda x: linear(x, 2, 7),
              {"x": normal(2, 1, 3, 4)})
    f.program("trilinear", "%y = resize %x {sizes = [3, 2, 5], mode = linear}",
              lambda x: linear(x, 3, 2, 5), {"x": normal(1, 1, 2, 3, 3)})
    f.program("nearest", "%y = resize %x {sizes = [2, 7]}",
              lambda x: jax.image.resize(x, (*x.shape[:2], 2, 7), "nearest"), {"x": normal(1, 2, 3, 4)})
    f.program("nearest2x", "%y = resize_nearest2x %x",
              lambda x: jnp.repeat(jnp.repeat(x, 2, 2), 2, 3), {"x": normal(1, 2, 2, 3)})
    for corners in (False, True):
        a, b = keys_matrix(4, 6, -0.75, corners), keys_matrix(3, 2, -0.75, corners)
        kind = "align_corners" if corners else "half_pixel"
        f.program(f"bicubic_{kind}", f"%y = resize %x {{sizes = [6, 2], mode = cubic, coordinates = {kind}}}",
                  lambda x: jnp.einsum("ih,jw,nchw->ncij", a, b, x), {"x": normal(1, 2, 4, 3)})
    f.program("preprocessing",
              "%y = transform_region %x, %m {steps = [reverse(input(0), axes([3])), "
              "resize(step(0), sizes([5, 2]), mode(linear)), sub(step(1), input(1)), "
              "transpose(step(2), perm([0, 2, 3, 1]))]}",
              lambda x, m: jnp.transpose(linear(x[..., ::-1], 5, 2) - m, (0, 2, 3, 1)),
              {"x": normal(1, 2, 3, 4), "m": normal(2, 1, 1)})
    return f


def axial_rope(x, end_x, heads, width, theta, repeat):
    b, s, _ = x.shape
    cell = np.arange(s) // repeat
    frequency = theta ** (-4.0 * np.arange(width // 4) / width)
    turn = np.concatenate([np.outer(cell % end_x, frequency), np.outer(cell // end_x, frequency)], 1)
    y = x.reshape(b, s, heads, width // 2, 2)
    cos, sin = np.cos(turn)[:, None, :], np.sin(turn)[:, None, :]
    pair = [y[..., 0] * cos - y[..., 1] * sin, y[..., 0] * sin + y[..., 1] * cos]
    return jnp.stack(pair, -1).reshape(x.shape)


def others():
    f = Gradients("everyday")
    f.program("axial_rope2d",
              "%y = axial_rope2d %x {end_x = 3, end_y = 2, head_dim = 8, num_heads = 2, theta = 50, repeat_factor = 2}",
              lambda x: axial_rope(x, 3, 2, 8, 50.0, 2), {"x": normal(1, 12, 16)})
    f.program("layer_norm2d", "%y = layer_norm2d %x, %g, %b {eps = 0.01}",
              lambda x, g, b: nn.layer_norm(x, g, b, 1, 1e-2),
              {"x": normal(2, 3, 2, 2), "g": normal(3), "b": normal(3)})
    z = normal(3) + 1j * normal(3)
    f.program("complex_norm_sq", "%y = complex_norm_sq %z",
              lambda z: jnp.real(z) ** 2 + jnp.imag(z) ** 2, {"z": z})
    f.program("complex_norm_sq_backward", "%y = complex_norm_sq_backward %z, %g",
              lambda z, g: g * z, {"z": z, "g": normal(3)})
    return f


def families():
    return [activations(), convolution(), scatters(), resizing(), others()]
