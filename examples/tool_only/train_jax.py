# The twin of train.sh in JAX.
import sys

import jax
import jax.numpy as jnp


def data(key):
    x = jax.random.uniform(key, (64,), minval=-1.0, maxval=1.0)
    y = jnp.sin(x)
    return x, y


def start():
    return jnp.zeros(4)


def loss(c, x, y):
    k = jnp.arange(4, dtype=jnp.float32)
    column = x[:, None]
    powers = column**k
    curve = powers @ c
    error = curve - y
    squared = error * error
    return jnp.mean(squared)


def update(c, g):
    rate = 0.5
    step = rate * g
    return c - step


def main():
    x, y = data(jax.random.key(1))
    c = start()
    gradient = jax.jit(jax.grad(loss))
    for step in range(40):
        g = gradient(c, x, y)
        c = update(c, g)
    print("c =", c)
    print("loss =", loss(c, x, y))
    return 0 if loss(c, x, y) < 0.01 else 1


if __name__ == "__main__":
    sys.exit(main())
