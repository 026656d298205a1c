# The twin of main.cpp in JAX.
import threading

import jax
import jax.numpy as jnp

w = 0.1 * jax.random.normal(jax.random.key(1), (64, 64))
serve = jax.jit(lambda x: jnp.sum(jnp.tanh(x @ w), 1))
served = [0] * 4
wrong = [0] * 4


def work(t):
    x = jax.random.normal(jax.random.key(10 + t), (8, 64))
    expected = jnp.sum(jnp.tanh(x @ w), 1)
    for _ in range(250):
        if jnp.max(jnp.abs(serve(x) - expected)) > 1e-5:
            wrong[t] += 1
        served[t] += 1


threads = [threading.Thread(target=work, args=(t,)) for t in range(4)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(sum(served), "requests,", sum(wrong), "wrong answers")
assert sum(wrong) == 0
