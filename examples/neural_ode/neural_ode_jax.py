# The twin of main.cpp in JAX.
import jax
import jax.numpy as jnp

DT = 0.025


def rk4(f, y):
    k1 = f(y)
    k2 = f(y + DT / 2 * k1)
    k3 = f(y + DT / 2 * k2)
    k4 = f(y + DT * k3)
    return y + DT / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def odeint(f, y0, steps):
    def body(y, _):
        y = rk4(f, y)
        return y, y

    return jax.lax.scan(body, y0, length=steps)[1]


def init():
    k1, k2 = jax.random.split(jax.random.key(1))
    return {
        "in": {"w": 0.7 * jax.random.normal(k1, (2, 32)), "b": jnp.zeros(32)},
        "out": {"w": 0.1 * jax.random.normal(k2, (32, 2)), "b": jnp.zeros(2)},
    }


def field(p):
    def f(y):
        h = jnp.tanh(y**3 @ p["in"]["w"] + p["in"]["b"])
        return h @ p["out"]["w"] + p["out"]["b"]

    return f


def error(p, y0, target):
    return jnp.mean(jnp.abs(odeint(field(p), y0, target.shape[0]) - target))


@jax.jit
def step(p, mean, square, y0, target, t):
    loss, g = jax.value_and_grad(error)(p, y0, target)
    mean = jax.tree.map(lambda m, d: 0.9 * m + 0.1 * d, mean, g)
    square = jax.tree.map(lambda v, d: 0.999 * v + 0.001 * d * d, square, g)
    p = jax.tree.map(
        lambda x, m, v: x - 3e-3 * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8),
        p, mean, square)
    return loss, p, mean, square


a = jnp.array([[-0.1, 2.0], [-2.0, -0.1]])
spiral = odeint(lambda y: y**3 @ a, jnp.array([[2.0, 0.0]]), 200)
p = init()
mean = jax.tree.map(jnp.zeros_like, p)
square = jax.tree.map(jnp.zeros_like, p)
key = jax.random.key(0)
for i in range(1, 301):
    key, sub = jax.random.split(key)
    start = jax.random.randint(sub, (16,), 0, 200 - 11)
    path = spiral[start[None] + jnp.arange(11)[:, None]][:, :, 0]
    loss, p, mean, square = step(p, mean, square, path[0], path[1:], i)
    if i == 1:
        first = loss
    if i % 100 == 0:
        print(i, " loss", loss)
curved = jax.jvp(lambda q: jax.grad(error)(q, spiral[0], spiral[1:11]), (p,), (p,))[1]
print("curvature along the parameters, by a bias:", curved["out"]["b"])
assert loss < first / 3
