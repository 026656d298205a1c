# The twin of main.cpp in JAX.
import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)


def rosenbrock(x):
    a, b = x[:-1], x[1:]
    return jnp.sum(100 * (b - a * a) ** 2 + (1 - a) ** 2)


@jax.jit
def step(x):
    g = jax.grad(rosenbrock)(x)
    return x - jnp.linalg.solve(jax.hessian(rosenbrock)(x), g), jnp.linalg.norm(g)


x = jnp.array([1.3, 0.7, 0.8, 1.9])
size, i = 1.0, 0
while size > 1e-9:
    x, size = step(x)
    print(i, " |gradient|", size)
    i += 1
print("minimum at", x, "value", rosenbrock(x))
assert jnp.all(jnp.abs(x - 1) < 1e-6)
