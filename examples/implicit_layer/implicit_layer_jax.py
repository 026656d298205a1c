# The twin of main.cpp in JAX.
import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)


def f(w, x, z):
    return jnp.tanh(z @ w + x)


def solve_forward(g, start):
    return jax.lax.while_loop(
        lambda s: jnp.linalg.norm(s[1] - s[0]) > 1e-7,
        lambda s: (s[1], g(s[1])),
        (start, g(start)))[1]


@jax.custom_vjp
def fixed_point(w, x):
    return solve_forward(lambda z: f(w, x, z), jnp.zeros_like(x))


def forward(w, x):
    z = fixed_point(w, x)
    return z, (w, x, z)


def backward(kept, dy):
    w, x, z = kept
    _, in_z = jax.vjp(lambda v: f(w, x, v), z)
    u = solve_forward(lambda v: dy + in_z(v)[0], jnp.zeros_like(dy))
    _, in_args = jax.vjp(lambda a, b: f(a, b, z), w, x)
    return in_args(u)


fixed_point.defvjp(forward, backward)
k1, k2 = jax.random.split(jax.random.key(1))
w = 0.2 * jax.random.normal(k1, (5, 5))
x = jax.random.normal(k2, (3, 5))


def loss(v):
    return jnp.sum(fixed_point(v, x) ** 2)


def unrolled(v):
    z, _ = jax.lax.scan(lambda z, _: (f(v, x, z), None), jnp.zeros_like(x), length=100)
    return jnp.sum(z**2)


implicit, through = jax.jit(jax.grad(loss))(w), jax.jit(jax.grad(unrolled))(w)
print("gradient\n", implicit, "\nthrough 100 steps\n", through)
assert jnp.max(jnp.abs(implicit - through)) < 1e-6
