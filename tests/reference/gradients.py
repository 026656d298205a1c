"""Collects derivatives: a Ricci program, and what JAX says its derivatives are.

Numbers that go in are exact in f32, so that one set of values serves the program in f64 and in f32.
Under `<program>.` the arrays are
    in.x    the inputs
    out     the first output, the function differentiated
    u       a cotangent of it
    d.x     its vector-Jacobian product with u, for every float input
    v.x     a direction for every float input
    t       the first output's tangent along v
    dd.x    the derivative along v of d.x
    j.x     the whole Jacobian, for some
    h.x.y   the whole Hessian, for some
Complex numbers follow our convention: a cotangent is the derivative by the conjugate, which is half
the conjugate of what JAX calls the gradient.
"""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from reference import Family


def exact(value):
    value = np.asarray(value)
    if value.dtype == np.float64:
        return value.astype(np.float32).astype(np.float64)
    if value.dtype == np.complex128:
        return value.astype(np.complex64).astype(np.complex128)
    return value


def ours(cotangent):
    """JAX's cotangent in our convention; `theirs` is the way back."""
    return jnp.conj(cotangent) / 2 if jnp.iscomplexobj(cotangent) else cotangent


def theirs(cotangent):
    return jnp.conj(cotangent) * 2 if jnp.iscomplexobj(cotangent) else cotangent


def differentiable(value):
    return jnp.issubdtype(value.dtype, jnp.inexact)


def jacobian_of(f, k, point, out):
    """By argument k: of complex numbers f', of a real function the gradient by the conjugate."""
    if not jnp.iscomplexobj(point[k]):
        return jax.jacfwd(f, k)(*point)
    if jnp.iscomplexobj(out):
        return jax.jacrev(f, k, holomorphic=True)(*point)
    return ours(jax.jacrev(f, k)(*point))


def complex_hessian(f, z, out):
    """f'' of a holomorphic function; of a real one its derivative by the conjugate and the number, from
    those by real and imaginary parts."""
    if jnp.iscomplexobj(out):
        return jax.hessian(f, holomorphic=True)(z).reshape(z.size, z.size)
    parts = jax.hessian(lambda x, y: f(lax.complex(x, y)), (0, 1))(z.real, z.imag)
    xx, xy, yx, yy = (h.reshape(z.size, z.size) for row in parts for h in row)
    return (xx + yy + 1j * (yx - xy)) / 4


class Gradients(Family):
    def __init__(self, name):
        super().__init__(name)
        self.rng = np.random.default_rng(sum(map(ord, name)))

    def like(self, value):
        value = np.asarray(value)
        out = self.rng.standard_normal(value.shape)
        if np.iscomplexobj(value):
            out = out + 1j * self.rng.standard_normal(value.shape)
        return exact(np.asarray(out))

    def program(self, name, body, fn, inputs, returns="%y", second=True, jacobian=False, hessian=False):
        """`fn` takes the inputs in their order and gives the first of the values returned."""
        inputs = {k: exact(v) for k, v in inputs.items()}
        self.graph(name, body, inputs, returns)
        wrt = [k for k, v in inputs.items() if differentiable(v)]

        def of_wrt(*values):
            out = fn(*{**inputs, **dict(zip(wrt, values))}.values())
            return out[0] if isinstance(out, (tuple, list)) else out

        point = tuple(jnp.asarray(inputs[k]) for k in wrt)
        v = tuple(self.like(p) for p in point)
        out, t = jax.jvp(of_wrt, point, v)
        u = self.like(out)

        def gradients(*values):
            return tuple(ours(d) for d in jax.vjp(of_wrt, *values)[1](theirs(jnp.asarray(u))))

        put = lambda key, value: self.put(name, key, value)
        put("out", out)
        put("u", u)
        put("t", t)
        if second:
            firsts, seconds = jax.jvp(gradients, point, v)
        else:
            firsts, seconds = gradients(*point), None
        for i, key in enumerate(wrt):
            put(f"d.{key}", firsts[i])
            put(f"v.{key}", v[i])
            if second:
                put(f"dd.{key}", seconds[i])
        arguments = tuple(range(len(wrt)))
        if jacobian:
            for k, key in enumerate(wrt):
                put(f"j.{key}", jacobian_of(of_wrt, k, point, out).reshape(out.size, -1))
        if hessian and any(jnp.iscomplexobj(p) for p in point):
            [key] = wrt
            put(f"h.{key}.{key}", complex_hessian(of_wrt, point[0], out))
        elif hessian:
            rows = jax.hessian(of_wrt, arguments)(*point)
            for a, row in zip(wrt, rows):
                for b, h in zip(wrt, row):
                    put(f"h.{a}.{b}", h.reshape(inputs[a].size, inputs[b].size))

    def put(self, name, key, value):
        value = np.asarray(value)
        if value.dtype not in (bool,) and differentiable(value):
            assert np.isfinite(value).all(), f"{name}.{key} is not finite"
        self.arrays[f"{name}.{key}"] = value
