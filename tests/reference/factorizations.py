"""Factorisations: values from NumPy, SciPy and JAX, derivatives from JAX. Signs and phases that they
leave open are turned to ours first."""
import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jax import lax

from gradients import Gradients
from reference import Family

RNG = np.random.default_rng(1507)


def draw(shape, dtype=np.float64):
    out = RNG.standard_normal(shape)
    if np.issubdtype(dtype, np.complexfloating):
        out = out + 1j * RNG.standard_normal(shape)
    return out.astype(dtype)


def adjoint(a):
    return jnp.conj(jnp.swapaxes(a, -1, -2))


def positive(shape, dtype=np.float64):
    a = draw(shape, dtype)
    return (a @ np.conj(np.swapaxes(a, -1, -2)) + np.eye(shape[-1])).astype(dtype)


def phases(v):
    """Of every column the phase of the first component of more than 3/4 of the largest size."""
    size = np.abs(v)
    at = np.argmax(size > 0.75 * size.max(axis=-2, keepdims=True), axis=-2)
    picked = np.take_along_axis(v, at[..., None, :], axis=-2)
    return picked / np.abs(picked)


def fixed_eigh(a):
    w, v = np.linalg.eigh((a + np.conj(np.swapaxes(a, -1, -2))) / 2)
    return w, v * np.conj(phases(v))


def fixed_svd(a):
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    turn = phases(u)
    return u * np.conj(turn), s, np.swapaxes(turn, -1, -2) * vh


def fixed_qr(a):
    q, r = np.linalg.qr(a)
    d = np.diagonal(r, axis1=-2, axis2=-1)
    turn = d / np.abs(d)
    return q * turn[..., None, :], np.conj(turn)[..., :, None] * r


def values():
    f = Family("factorizations")
    shapes = {"square": (4, 4), "tall": (5, 3), "wide": (2, 3, 5)}
    for dtype in (np.float64, np.complex128, np.float32, np.complex64):
        n = np.dtype(dtype).name
        p = positive((2, 4, 4), dtype)
        f.case(f"cholesky_{n}", "%y = cholesky %a", {"a": p}, np.linalg.cholesky(p))
        h = draw((5, 5), dtype)
        f.case(f"eigh_{n}", "%w, %v = eigh %a", {"a": h}, fixed_eigh(h), "%w, %v")
        x = draw((2, 4, 4), dtype)
        f.case(f"matrix_exp_{n}", "%y = matrix_exp %a", {"a": x},
               np.stack([scipy.linalg.expm(m.astype(np.complex128)).astype(dtype) for m in x])
               if np.iscomplexobj(x) else np.stack([scipy.linalg.expm(m) for m in x]).astype(dtype))
        f.case(f"det_{n}", "%y = det %a", {"a": x}, np.linalg.det(x))
        d = np.linalg.det(x)
        f.case(f"adjugate_{n}", "%y = adjugate %a", {"a": x}, d[:, None, None] * np.linalg.inv(x))
        for tag, shape in shapes.items():
            a = draw(shape, dtype)
            f.case(f"qr_{tag}_{n}", "%q, %r = qr %a", {"a": a}, fixed_qr(a), "%q, %r")
            f.case(f"svd_{tag}_{n}", "%u, %s, %vh = svd %a", {"a": a}, fixed_svd(a), "%u, %s, %vh")
            f.case(f"lu_{tag}_{n}", "%f, %p, %o = lu %a", {"a": a},
                   [np.asarray(v) for v in lax.linalg.lu(a)], "%f, %p, %o")
            f.case(f"pinv_{tag}_{n}", "%y = pinv %a", {"a": a}, np.linalg.pinv(a))
    return f


def eigen_signs(a):
    return phases(np.linalg.eigh((np.asarray(a) + np.asarray(a).T) / 2)[1])


def gradients():
    f = Gradients("factorizations")
    for n, dtype in {"f64": np.float64, "c128": np.complex128}.items():
        spectral(f, n, dtype)
        p = positive((3, 3), dtype)
        f.program(f"cholesky_{n}", "%y = cholesky %a", jnp.linalg.cholesky, {"a": p})
        for tag, shape in {"square": (3, 3), "tall": (4, 2), "wide": (2, 4)}.items():
            a = draw(shape, dtype)
            f.program(f"lu_{tag}_{n}", "%y, %p, %o = lu %a", lambda a: lax.linalg.lu(a)[0], {"a": a})
            f.program(f"pinv_{tag}_{n}", "%y = pinv %a", jnp.linalg.pinv, {"a": a})
        for tag, shape in {"square": (3, 3), "tall": (4, 2)}.items():
            a = draw(shape, dtype)
            d = np.diagonal(np.linalg.qr(a.astype(np.complex64).astype(np.complex128)
                                         if np.iscomplexobj(a) else
                                         a.astype(np.float32).astype(np.float64))[1])
            turn = np.sign(d.real)
            f.program(f"qr_q_{tag}_{n}", "%y, %r = qr %a",
                      lambda a, t=turn: jnp.linalg.qr(a)[0] * t, {"a": a})
            f.program(f"qr_r_{tag}_{n}", "%q, %y = qr %a",
                      lambda a, t=turn: t[:, None] * jnp.linalg.qr(a)[1], {"a": a})
        x = draw((3, 3), dtype)
        f.program(f"matrix_exp_{n}", "%y = matrix_exp %a", jax.scipy.linalg.expm, {"a": x})
        f.program(f"det_{n}", "%y = det %a", jnp.linalg.det, {"a": x})
    p = positive((3, 3))
    f.program("log_det", "%d = det %a\n%y = log %d", lambda a: jnp.linalg.slogdet(a)[1], {"a": p},
              hessian=True)
    f.program("cholesky_scalar", """%l = cholesky %a
      %e = exp %l
      %g = mul %e, %l
      %y = reduce %g {op = sum, axes = [0, 1]}""",
              lambda a: jnp.sum(jnp.exp(jnp.linalg.cholesky(a)) * jnp.linalg.cholesky(a)), {"a": p},
              hessian=True)
    return f


def spectral(f, n, dtype):
    """Vectors in terms that do not depend on their phases; the real ones as they are, too."""
    h = draw((4, 4), dtype)
    f.program(f"eigh_values_{n}", "%y, %v = eigh %a", lambda a: jnp.linalg.eigh(a)[0], {"a": h})

    def projector(a):
        v = jnp.linalg.eigh(a)[1][:, :2]
        return v @ adjoint(v)

    adjoint_text = "%t = transpose %k {perm = [1, 0]}\n%d = conjugate %t"
    if n == "f64":
        adjoint_text = "%d = transpose %k {perm = [1, 0]}"
    f.program(f"eigh_projector_{n}", f"""%w, %v = eigh %a
      %k = narrow %v {{axis = 1, start = 0, len = 2}}
      {adjoint_text}
      %y = matmul %k, %d""", projector, {"a": h})
    for tag, shape in {"square": (3, 3), "tall": (4, 2), "wide": (2, 4)}.items():
        a = draw(shape, dtype)
        svd = lambda a: jnp.linalg.svd(a, full_matrices=False)
        f.program(f"svd_values_{tag}_{n}", "%u, %y, %vh = svd %a", lambda a: svd(a)[1], {"a": a})
        f.program(f"svd_polar_{tag}_{n}", "%u, %s, %vh = svd %a\n%y = matmul %u, %vh",
                  lambda a: svd(a)[0] @ svd(a)[2], {"a": a})
        if n == "c128":
            continue
        exact = a.astype(np.float32).astype(np.float64)
        turn = phases(np.linalg.svd(exact, full_matrices=False)[0])
        f.program(f"svd_left_{tag}_{n}", "%y, %s, %vh = svd %a",
                  lambda a, t=turn: svd(a)[0] * t, {"a": a})
        f.program(f"svd_right_{tag}_{n}", "%u, %s, %y = svd %a",
                  lambda a, t=turn: t.T * svd(a)[2], {"a": a})
    if n == "f64":
        turn = eigen_signs(h.astype(np.float32).astype(np.float64))
        f.program(f"eigh_vectors_{n}", "%w, %y = eigh %a",
                  lambda a, t=turn: jnp.linalg.eigh(a)[1] * t, {"a": h})


def families():
    return [values()]


def gradient_families():
    return [gradients()]
