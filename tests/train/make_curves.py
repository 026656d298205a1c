"""Writes tests/train/values/curves.npz: the losses of fifty steps of a GPT, a Mamba and a CNN in JAX and optax.

    python3 -m venv venv && venv/bin/pip install numpy jax optax
    venv/bin/python tests/train/make_curves.py

First values and data are formulas that the test has too, so that only losses are kept. All is computed in f32, as the
test does it.
"""
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import optax

STEPS = 50
BATCHES = 5  # they come again and again
VOCABULARY, PLACES, WIDTH, HEADS = 16, 8, 16, 2


def values(name, shape, first_row=0):
    """Numbers that look random; those of scales are around 1."""
    phase = sum(name.encode()) % 97
    i = np.arange(1, np.prod(shape, dtype=np.int64) + 1, dtype=np.float64)
    around = 1.0 if name.endswith("norm.w") or name.endswith(".d") else 0.0
    return jnp.asarray((around + 0.3 * np.sin(0.37 * i * i + phase)).reshape(shape), jnp.float32)


def tokens(step):
    b, i = np.meshgrid(np.arange(4), np.arange(PLACES + 1), indexing="ij")
    return jnp.asarray((step % BATCHES * 31 + b * 17 + i * i * 5 + i * 3) % VOCABULARY, jnp.int32)


def images(step):
    i = np.arange(8 * 2 * 8 * 8, dtype=np.float64)
    x = np.sin(0.11 * i * i + step % BATCHES)
    return (jnp.asarray(x.reshape(8, 2, 8, 8), jnp.float32),
            jnp.asarray((np.arange(8) * 3 + step % BATCHES) % 4, jnp.int32))


def linear(p, name, x):
    y = x @ p[name + ".w"]
    return y + p[name + ".b"] if name + ".b" in p else y


def layer_norm(p, name, x):
    mean = x.mean(-1, keepdims=True)
    var = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) / jnp.sqrt(var + 1e-5) * p[name + ".w"] + p[name + ".b"]


def rms_norm(p, name, x):
    return x / jnp.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * p[name + ".w"]


def cross_entropy(logits, classes):
    return optax.softmax_cross_entropy_with_integer_labels(logits, classes).mean()


def attention(p, name, x):
    def heads(part):
        return linear(p, f"{name}.{part}", x).reshape(*x.shape[:2], HEADS, -1).transpose(0, 2, 1, 3)
    q, k, v = heads("q"), heads("k"), heads("v")
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1])
    seen = np.tril(np.ones((x.shape[1], x.shape[1]), bool))
    y = jax.nn.softmax(jnp.where(seen, scores, -jnp.inf)) @ v
    return linear(p, name + ".out", y.transpose(0, 2, 1, 3).reshape(x.shape))


def gpt(p, ids):
    x = p["tokens.w"][ids] + p["places.w"][:ids.shape[1]]
    for block in ("blocks.0", "blocks.1"):
        x = x + attention(p, block + ".attention", layer_norm(p, block + ".attention_norm", x))
        hidden = linear(p, block + ".feed.in", layer_norm(p, block + ".feed_norm", x))
        x = x + linear(p, block + ".feed.out", jax.nn.gelu(hidden, approximate=False))
    return layer_norm(p, "norm", x) @ p["tokens.w"].T


def gpt_shapes():
    out = {"tokens.w": (VOCABULARY, WIDTH), "places.w": (PLACES, WIDTH)}
    for block in ("blocks.0", "blocks.1"):
        for norm in ("attention_norm", "feed_norm"):
            out |= {f"{block}.{norm}.w": (WIDTH,), f"{block}.{norm}.b": (WIDTH,)}
        for part in ("q", "k", "v", "out"):
            out |= {f"{block}.attention.{part}.w": (WIDTH, WIDTH), f"{block}.attention.{part}.b": (WIDTH,)}
        out |= {f"{block}.feed.in.w": (WIDTH, 4 * WIDTH), f"{block}.feed.in.b": (4 * WIDTH,),
                f"{block}.feed.out.w": (4 * WIDTH, WIDTH), f"{block}.feed.out.b": (WIDTH,)}
    return out | {"norm.w": (WIDTH,), "norm.b": (WIDTH,)}


INNER, STATE, RANK, WINDOW = 2 * WIDTH, 4, 1, 4


def mamba_block(p, name, x):
    u, z = jnp.split(linear(p, name + ".in", x), 2, -1)
    padded = jnp.pad(u, ((0, 0), (WINDOW - 1, 0), (0, 0)))
    w = p[name + ".conv.w"][:, 0, :]  # [inner, window]
    u = sum(padded[:, j:j + x.shape[1]] * w[:, j] for j in range(WINDOW)) + p[name + ".conv.b"]
    u = jax.nn.silu(u)
    delta, b, c = jnp.split(linear(p, name + ".select", u), (RANK, RANK + STATE), -1)
    delta = jax.nn.softplus(linear(p, name + ".step", delta))
    a = -jnp.exp(p[name + ".a_log"])
    h = jnp.zeros((x.shape[0], INNER, STATE), jnp.float32)
    ys = []
    for t in range(x.shape[1]):
        d = delta[:, t, :, None]
        h = jnp.exp(d * a) * h + d * b[:, t, None, :] * u[:, t, :, None]
        ys.append((h * c[:, t, None, :]).sum(-1))
    y = jnp.stack(ys, 1) + p[name + ".d"] * u
    return linear(p, name + ".out", y * jax.nn.silu(z))


def mamba(p, ids):
    x = p["tokens.w"][ids]
    for layer in ("layers.0", "layers.1"):
        x = x + mamba_block(p, layer + ".mixer", rms_norm(p, layer + ".norm", x))
    return rms_norm(p, "norm", x) @ p["tokens.w"].T


def mamba_shapes():
    out = {"tokens.w": (VOCABULARY, WIDTH)}
    for layer in ("layers.0", "layers.1"):
        m = layer + ".mixer"
        out |= {layer + ".norm.w": (WIDTH,), m + ".in.w": (WIDTH, 2 * INNER),
                m + ".conv.w": (INNER, 1, WINDOW), m + ".conv.b": (INNER,),
                m + ".select.w": (INNER, RANK + 2 * STATE), m + ".step.w": (RANK, INNER),
                m + ".step.b": (INNER,), m + ".a_log": (INNER, STATE), m + ".d": (INNER,),
                m + ".out.w": (INNER, WIDTH)}
    return out | {"norm.w": (WIDTH,)}


def cnn(p, x):
    for stage in ("stages.0", "stages.1"):
        x = jax.lax.conv_general_dilated(x, p[stage + ".conv.w"], (1, 1), ((1, 1), (1, 1)),
                                         dimension_numbers=("NCHW", "OIHW", "NCHW"))
        x = x + p[stage + ".conv.b"][:, None, None]
        mean = x.mean((0, 2, 3), keepdims=True)
        var = ((x - mean) ** 2).mean((0, 2, 3), keepdims=True)
        x = (x - mean) / jnp.sqrt(var + 1e-5) * p[stage + ".norm.w"][:, None, None]
        x = jax.nn.relu(x + p[stage + ".norm.b"][:, None, None])
        x = x.reshape(*x.shape[:2], x.shape[2] // 2, 2, x.shape[3] // 2, 2).max((3, 5))
    return linear(p, "out", x.mean((2, 3)))


def cnn_shapes():
    return {"stages.0.conv.w": (4, 2, 3, 3), "stages.0.conv.b": (4,), "stages.0.norm.w": (4,),
            "stages.0.norm.b": (4,), "stages.1.conv.w": (8, 4, 3, 3), "stages.1.conv.b": (8,),
            "stages.1.norm.w": (8,), "stages.1.norm.b": (8,), "out.w": (8, 4), "out.b": (4,)}


def curve(shapes, loss, data):
    params = {name: values(name, shape) for name, shape in shapes.items()}
    optimizer = optax.adamw(1e-2, b1=0.9, b2=0.999, eps=1e-8, weight_decay=0.01)
    state = optimizer.init(params)

    @jax.jit
    def step(params, state, batch):
        value, g = jax.value_and_grad(loss)(params, batch)
        updates, state = optimizer.update(g, state, params)
        return value, optax.apply_updates(params, updates), state

    out = []
    for i in range(STEPS):
        value, params, state = step(params, state, data(i))
        out.append(float(value))
    return np.array(out)


def main():
    def of_tokens(model):
        return lambda p, ids: cross_entropy(model(p, ids[:, :-1]), ids[:, 1:])

    curves = {"gpt": curve(gpt_shapes(), of_tokens(gpt), tokens),
              "mamba": curve(mamba_shapes(), of_tokens(mamba), tokens),
              "cnn": curve(cnn_shapes(), lambda p, b: cross_entropy(cnn(p, b[0]), b[1]), images)}
    for name, values_of in curves.items():
        print(name, values_of[[0, 1, 10, 49]])
    np.savez(pathlib.Path(__file__).parent / "values" / "curves.npz", **curves)


if __name__ == "__main__":
    main()
