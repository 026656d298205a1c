"""Complex numbers: values from NumPy and JAX, derivatives from JAX.

JAX's gradients are the conjugates of 2∂L/∂z̄; `gradients.ours` makes ∂L/∂z̄ of them.
"""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from gradients import Gradients
from reference import Family

RNG = np.random.default_rng(23)

FUNCTIONS = {
    "exp": jnp.exp, "log": jnp.log, "sqrt": jnp.sqrt, "rsqrt": lambda z: 1 / jnp.sqrt(z), "sin": jnp.sin,
    "cos": jnp.cos, "tan": jnp.tan, "sinh": jnp.sinh, "cosh": jnp.cosh, "tanh": jnp.tanh,
    "asin": jnp.arcsin, "acos": jnp.arccos, "atan": jnp.arctan, "asinh": jnp.arcsinh,
    "acosh": jnp.arccosh, "atanh": jnp.arctanh, "expm1": lambda z: jnp.exp(z) - 1,
    "log1p": lambda z: jnp.log(1 + z), "exp2": lambda z: jnp.exp(z * np.log(2)),
    "log2": lambda z: jnp.log(z) / np.log(2), "sigmoid": lambda z: 1 / (1 + jnp.exp(-z)),
    "square": lambda z: z * z, "reciprocal": lambda z: 1 / z, "abs": jnp.abs, "imag": jnp.imag,
    "real": jnp.real, "angle": jnp.angle, "conjugate": jnp.conj, "neg": jnp.negative,
}


def numbers(*shape, dtype=np.complex128):
    return (RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)).astype(dtype)


def conv(x, w, stride, padding, groups=1):
    """Of the parts: JAX has convolutions of real numbers on every device."""
    axes = x.ndim - 2
    real = lambda a, b: lax.conv_general_dilated(a, b, [stride] * axes, [(padding, padding)] * axes,
                                                 feature_group_count=groups)
    a, b, c, d = jnp.real(x), jnp.imag(x), jnp.real(w), jnp.imag(w)
    return lax.complex(real(a, c) - real(b, d), real(a, d) + real(b, c))


def values():
    f = Family("complex_values")
    for dtype in (np.complex128, np.complex64):
        n = {np.complex128: "c128", np.complex64: "c64"}[dtype]
        for name, fn in FUNCTIONS.items():
            z = numbers(3, 7, dtype=dtype)
            wide = np.asarray(fn(z.astype(np.complex128)))
            expected = wide.astype(dtype if np.iscomplexobj(wide) else np.zeros(0, dtype).real.dtype)
            f.case(f"{name}_{n}", f"%y = {name} %z", {"z": z}, expected)
        a, b = numbers(4, 1, 3, dtype=dtype), numbers(5, 1, dtype=dtype)
        f.case(f"pow_{n}", "%y = pow %a, %b", {"a": a, "b": b},
               np.power(a.astype(np.complex128), b.astype(np.complex128)).astype(dtype))
        x, y = numbers(6, dtype=dtype).real, numbers(6, dtype=dtype).imag
        f.case(f"make_complex_{n}", "%y = make_complex %a, %b", {"a": x, "b": y}, (x + 1j * y).astype(dtype))
        f.case(f"polar_{n}", "%y = polar %a, %b", {"a": x, "b": y},
               (x.astype(float) * np.exp(1j * y.astype(float))).astype(dtype))
        z = numbers(5, 4, dtype=dtype)
        f.case(f"sum_{n}", "%y = reduce %z {op = sum, axes = [0]}", {"z": z}, z.sum(0))
        f.case(f"mean_{n}", "%y = reduce %z {op = mean, axes = [1]}", {"z": z}, z.mean(1))
        f.case(f"cumsum_{n}", "%y = cumsum %z {axis = 1}", {"z": z}, np.cumsum(z, 1))
        f.case(f"cumprod_{n}", "%y = cumprod %z {axis = 0}", {"z": z}, np.cumprod(z, 0))
        a, b = numbers(2, 5, 3, dtype=dtype), numbers(3, 4, dtype=dtype)
        f.case(f"matmul_{n}", "%y = matmul %a, %b", {"a": a, "b": b}, np.matmul(a, b))
        for shape, kernel in (((2, 4, 9), (6, 2, 3)), ((2, 4, 6, 5), (6, 2, 3, 2)),
                              ((1, 4, 4, 3, 5), (2, 2, 2, 2, 3))):
            x, w = numbers(*shape, dtype=dtype), numbers(*kernel, dtype=dtype)
            axes = len(shape) - 2
            text = f"stride = {[2] * axes}, padding = {[1] * axes}, dilation = {[1] * axes}, groups = 2"
            f.case(f"conv{axes}_{n}", f"%y = conv %x, %w {{{text}}}", {"x": x, "w": w},
                   np.asarray(conv(x.astype(np.complex128), w.astype(np.complex128), 2, 1, 2)).astype(dtype))
    return f


def acosh(z):
    """JAX's own derivative is that of -acosh left of the imaginary axis."""
    return jnp.log(z + jnp.sqrt(z - 1) * jnp.sqrt(z + 1))


def derivatives():
    f = Gradients("complex_functions")
    functions = {**FUNCTIONS, "acosh": acosh}
    holomorphic = [n for n in FUNCTIONS if n not in ("abs", "imag", "real", "angle", "conjugate")]
    for name, fn in functions.items():
        whole = name in holomorphic or name in ("abs", "angle")
        f.program(name, f"%y = {name} %z", fn, {"z": numbers(3)}, jacobian=whole)
    f.program("pow", "%y = pow %a, %b", lambda a, b: jnp.exp(b * jnp.log(a)),
              {"a": numbers(3, 1), "b": numbers(2)}, jacobian=True)
    f.program("polar", "%y = polar %a, %b", lambda a, b: a * jnp.exp(1j * b),
              {"a": numbers(3).real, "b": numbers(3).real}, jacobian=True)
    for axes in (1, 2, 3):
        x, w = numbers(2, 4, *[5, 4, 3][:axes]), numbers(2, 2, *[3, 2, 2][:axes])
        text = f"stride = {[2] * axes}, padding = {[1] * axes}, dilation = {[1] * axes}, groups = 2"
        f.program(f"conv{axes}", f"%y = conv %x, %w {{{text}}}", lambda x, w: conv(x, w, 2, 1, 2),
                  {"x": x, "w": w})
    f.program("cumprod", "%y = cumprod %z {axis = 0}", lambda z: jnp.cumprod(z, 0), {"z": numbers(4, 2)})
    f.program("cubic", "%p = mul %z, %z\n%q = mul %p, %z\n%y = reduce %q {op = sum, axes = [0]}",
              lambda z: jnp.sum(z * z * z), {"z": numbers(3)}, jacobian=True, hessian=True)
    f.program("quartic", """%c = conjugate %z
      %p = mul %z, %c
      %n = real %p
      %m = imag %z
      %s = reduce %n {op = sum, axes = [0]}
      %t = reduce %m {op = sum, axes = [0]}
      %u = mul %s, %t
      %y = mul %u, %s""",
              lambda z: jnp.sum(jnp.abs(z) ** 2) ** 2 * jnp.sum(z.imag), {"z": numbers(3)},
              jacobian=True, hessian=True)
    return f


def families():
    return [values()]


def gradient_families():
    return [derivatives()]
