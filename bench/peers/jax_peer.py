"""The workloads in JAX: each one jitted function, training steps with donated state. On a GPU where
RICCI_PEER_DEVICE says `cuda`."""

import functools
import os

os.environ["JAX_PLATFORMS"] = os.environ.get("RICCI_PEER_DEVICE", "cpu")
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # others are measured on the same card
os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "false"

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jax_splats import splat_loss
from worker import is_state, param_names, serve

LEARNING_RATE, BETA1, BETA2, EPSILON, DECAY = 1e-3, 0.9, 0.999, 1e-8, 0.01


def cross_entropy(logits, labels):
    picked = jnp.take_along_axis(logits, labels[..., None], axis=-1)[..., 0]
    return jnp.mean(jax.nn.logsumexp(logits, axis=-1) - picked)


def cross_entropy_by_log_softmax(logits, labels):
    log_p = jax.nn.log_softmax(logits, axis=-1)
    return -jnp.mean(jnp.take_along_axis(log_p, labels[..., None], axis=-1))


def cross_entropy_by_one_hot(logits, labels):
    one_hot = jax.nn.one_hot(labels, logits.shape[-1], dtype=logits.dtype)
    return jnp.mean(jax.nn.logsumexp(logits, axis=-1) - jnp.sum(one_hot * logits, axis=-1))


def layer_norm(x, gamma, beta):
    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean(jnp.square(centred), axis=-1, keepdims=True)
    return centred * lax.rsqrt(variance + 1e-5) * gamma + beta


def linear(p, name, x):
    return x @ p[name + ".w"] + p[name + ".b"]


def attention_einsum(q, k, v):
    """Causal attention on [batch, length, heads, head]."""
    length = q.shape[1]
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * (q.shape[-1] ** -0.5)
    allowed = jnp.tril(jnp.ones((length, length), bool))
    weights = jax.nn.softmax(jnp.where(allowed, scores, -jnp.inf), axis=-1)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v)


def attention_library(q, k, v):
    return jax.nn.dot_product_attention(q, k, v, is_causal=True)


ATTENTION = {"einsum": attention_einsum, "dot_product_attention": attention_library}


def mlp_loss(p, batch):
    h = jax.nn.relu(linear(p, "layer1", batch["x"]))
    h = jax.nn.relu(linear(p, "layer2", h))
    return cross_entropy(linear(p, "layer3", h), batch["labels"])


def gpt_loss(p, batch, layers, heads, attention):
    norm = lambda name, x: layer_norm(x, p[name + ".gamma"], p[name + ".beta"])
    x = p["tokens"][batch["ids"]] + p["positions"]
    by_head = x.shape[:2] + (heads, x.shape[2] // heads)
    for i in range(layers):
        block = f"block{i}"
        q, k, v = jnp.split(linear(p, block + ".qkv", norm(block + ".norm1", x)), 3, axis=-1)
        mixed = attention(q.reshape(by_head), k.reshape(by_head), v.reshape(by_head))
        x = x + linear(p, block + ".proj", mixed.reshape(x.shape))
        up = linear(p, block + ".up", norm(block + ".norm2", x))
        x = x + linear(p, block + ".down", jax.nn.gelu(up, approximate=True))
    return cross_entropy(linear(p, "head", norm("norm", x)), batch["labels"])


def cnn_loss(p, batch, layout):
    numbers = ("NCHW", "OIHW", "NCHW") if layout == "nchw" else ("NHWC", "HWIO", "NHWC")
    window = (1, 1, 2, 2) if layout == "nchw" else (1, 2, 2, 1)
    h = batch["x"]
    for i in (1, 2, 3):
        w, b = p[f"conv{i}.w"], p[f"conv{i}.b"]
        h = lax.conv_general_dilated(h, w, (1, 1), "SAME", dimension_numbers=numbers)
        h = jax.nn.relu(h + (b[:, None, None] if layout == "nchw" else b))
        h = lax.reduce_window(h, -jnp.inf, lax.max, window, window, "VALID")
    return cross_entropy(linear(p, "dense", h.reshape(h.shape[0], -1)), batch["labels"])


class Nhwc:
    """Turns the feeds of the network from NCHW to the layout JAX likes, and back."""

    def __init__(self, feeds):
        channels = feeds["conv3.w"].shape[0]
        side = int((feeds["dense.w"].shape[0] // channels) ** 0.5)
        self.nchw, self.nhwc = (channels, side, side, -1), (side, side, channels, -1)

    def to(self, name, a):
        if a.ndim == 4:
            return a.transpose(0, 2, 3, 1) if name == "x" else a.transpose(2, 3, 1, 0)
        if name.endswith("dense.w"):
            return a.reshape(self.nchw).transpose(1, 2, 0, 3).reshape(a.shape)
        return a

    def back(self, name, a):
        if a.ndim == 4:
            return a.transpose(3, 2, 0, 1)
        if name.endswith("dense.w"):
            return a.reshape(self.nhwc).transpose(2, 0, 1, 3).reshape(a.shape)
        return a


def train_step(loss_of, names):
    @functools.partial(jax.jit, donate_argnums=0)
    def step(state, batch):
        p = {name: state[name] for name in names}
        loss, gradients = jax.value_and_grad(loss_of)(p, batch)
        count = state["step"] + 1
        step_size = LEARNING_RATE / -jnp.expm1(count * np.log(BETA1))
        second_root = jnp.sqrt(-jnp.expm1(count * np.log(BETA2)))
        new = {"step": count}
        for name, g in gradients.items():
            m = BETA1 * state["m." + name] + (1 - BETA1) * g
            v = BETA2 * state["v." + name] + (1 - BETA2) * jnp.square(g)
            decayed = p[name] * (1 - LEARNING_RATE * DECAY)
            new[name] = decayed - step_size * m / (jnp.sqrt(v) / second_root + EPSILON)
            new["m." + name], new["v." + name] = m, v
        return loss, new

    return step


def in_bf16(loss_of):
    """The loss with its f32 arrays in bf16; params and what the optimiser keeps stay in f32."""
    cast = lambda a: a.astype(jnp.bfloat16) if a.dtype == jnp.float32 else a
    return lambda p, batch: loss_of(jax.tree.map(cast, p),
                                    jax.tree.map(cast, batch)).astype(jnp.float32)


class TrainCase:
    def __init__(self, step, feeds, layout=None):
        self.step, self.layout = step, layout
        change = layout.to if layout else (lambda name, a: a)
        feeds = {name: np.array(change(name, a), order="C") for name, a in feeds.items()}
        self.first = {name: a for name, a in feeds.items() if is_state(name)}
        self.batch = jax.device_put({n: a for n, a in feeds.items() if not is_state(n)})

    def reset(self):
        # Copies of our own: a donated buffer must not be one that NumPy holds as well.
        self.state = {name: jnp.array(a, copy=True) for name, a in self.first.items()}
        jax.block_until_ready((self.state, self.batch))

    def call(self):
        self.loss, self.state = self.step(self.state, self.batch)

    def wait(self):
        jax.block_until_ready((self.loss, self.state))

    def outputs(self):
        back = self.layout.back if self.layout else (lambda name, a: a)
        out = {name: back(name, np.asarray(a)) for name, a in self.state.items()}
        out["loss"] = np.asarray(self.loss)
        return out


class PureCase:
    """A function of arrays; `finish` turns its results into outputs by name."""

    def __init__(self, function, arguments, finish):
        self.function, self.finish = jax.jit(function), finish
        self.arguments = jax.device_put(tuple(np.array(a, order="C") for a in arguments))

    def reset(self):
        jax.block_until_ready(self.arguments)

    def call(self):
        self.result = self.function(*self.arguments)

    def wait(self):
        jax.block_until_ready(self.result)

    def outputs(self):
        return self.finish(jax.tree.map(np.asarray, self.result))


def rows(x, g, b, gamma, beta):
    return jax.nn.softmax(layer_norm(jax.nn.gelu(x * g + b, approximate=False) + x, gamma, beta))


def rows_grad(x, g, b, gamma, beta, dy):
    return jax.vjp(rows, x, g, b, gamma, beta)[1](dy)


def recurrence(a, xs, c0, unroll):
    step = lambda c, x: (c + 0.01 * jnp.tanh(c @ a + x), None)
    return lax.scan(step, c0, xs, unroll=unroll)[0]


def logistic_loss(w, x, y):
    z = x @ w
    return jnp.mean(jax.nn.softplus(z) - y * z)


def named(*names):
    return lambda results: dict(zip(names, results))


def make_attention(workload, variant, f):
    swap = lambda a: a.transpose(0, 2, 1, 3)  # to [batch, length, heads, head] and back
    attention = ATTENTION[variant]
    if workload == "attention_2048":
        return PureCase(attention, [swap(f[n]) for n in ("q", "k", "v")],
                        lambda y: {"y": swap(y)})
    gradients = lambda q, k, v, dy: jax.vjp(attention, q, k, v)[1](dy)
    finish = lambda results: dict(zip(("d_q", "d_k", "d_v"), map(swap, results)))
    return PureCase(gradients, [swap(f[n]) for n in ("q", "k", "v", "d_output")], finish)


def make_scan(workload, variant, f):
    # A plain vector is the natural carry here; ours is a matrix of one row.
    unroll = int(variant.removeprefix("unroll"))
    arguments = (f["a"], f["xs"][:, 0], f["c0"][0])
    if workload == "scan_fwd":
        run = functools.partial(recurrence, unroll=unroll)
        return PureCase(run, arguments, lambda c: {"c": c[None]})
    loss = lambda a, xs, c0: jnp.sum(recurrence(a, xs, c0, unroll))
    finish = lambda r: {"loss": r[0], "d_a": r[1][0], "d_xs": r[1][1][:, None],
                        "d_c0": r[1][2][None]}
    return PureCase(jax.value_and_grad(loss, (0, 1, 2)), arguments, finish)


def lstm(x, w_x, w_h, b, h0, c0, unroll):
    def step(carry, z):
        h, c = carry
        i, f, g, o = jnp.split(z + h @ w_h, 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    return lax.scan(step, (h0, c0), x @ w_x + b, unroll=unroll)[1]


def make_lstm(variant, f):
    unroll = int(variant.removeprefix("unroll"))

    def gradients(x, w_x, w_h, b, h0, c0, dy):
        return jax.vjp(lambda *p: lstm(*p, h0, c0, unroll), x, w_x, w_h, b)[1](dy)

    arguments = [f[n] for n in ("x", "w_x", "w_h", "b", "h0", "c0", "d_output")]
    return PureCase(gradients, arguments, named("d_x", "d_w_x", "d_w_h", "d_b"))


def by_time(*arrays):
    return tuple(a.swapaxes(0, 1) for a in arrays)


def state_space_by_steps(x, delta, a, b, c, unroll):
    def step(h, at):
        x_t, delta_t, b_t, c_t = at
        h = jnp.exp(delta_t[..., None] * a) * h + (delta_t * x_t)[..., None] * b_t[:, None]
        return h, jnp.einsum("bjm,bm->bj", h, c_t)

    first = jnp.zeros((x.shape[0],) + a.shape, x.dtype)
    return lax.scan(step, first, by_time(x, delta, b, c), unroll=unroll)[1].swapaxes(0, 1)


def state_space_by_pairs(x, delta, a, b, c):
    def both(left, right):
        return left[0] * right[0], right[0] * left[1] + right[1]

    decay = jnp.exp(delta[..., None] * a)
    added = (delta * x)[..., None] * b[:, :, None]
    h = lax.associative_scan(both, (decay, added), axis=1)[1]
    return jnp.einsum("btjm,btm->btj", h, c)


def gated_delta(q, k, v, g, beta, unroll):
    def step(s, at):
        q_t, k_t, v_t, g_t, beta_t = at
        s = jnp.exp(g_t)[..., None, None] * s
        d = beta_t[..., None] * (v_t - jnp.einsum("bhij,bhi->bhj", s, k_t))
        s = s + k_t[..., None] * d[..., None, :]
        return s, jnp.einsum("bhij,bhi->bhj", s, q_t) * (q.shape[-1] ** -0.5)

    first = jnp.zeros((q.shape[0], v.shape[2], q.shape[3], v.shape[3]), q.dtype)
    return lax.scan(step, first, by_time(q, k, v, g, beta), unroll=unroll)[1].swapaxes(0, 1)


def make_recurrent(workload, variant, f):
    if workload == "gated_delta_grad":
        names, run = ("q", "k", "v", "g", "beta"), gated_delta
    else:
        names, run = ("x", "delta", "a", "b", "c"), state_space_by_steps
    if variant == "associative":
        run = state_space_by_pairs
    else:
        run = functools.partial(run, unroll=int(variant.removeprefix("unroll")))
    gradients = lambda dy, *arguments: jax.vjp(run, *arguments)[1](dy)
    return PureCase(gradients, [f["d_output"]] + [f[n] for n in names],
                    named(*("d_" + n for n in names)))


def make_random(variant, settings):
    count = settings["count"]
    make = lambda key: jax.random.normal(jax.random.wrap_key_data(key, impl=variant), (count,))
    key = jax.random.key_data(jax.random.key(7, impl=variant))
    return PureCase(make, (key,), lambda y: {"random": y})


def make_ordered(workload, f, settings):
    if workload == "top_k":
        return PureCase(lambda x: lax.top_k(x, settings["k"]), (f["x"],),
                        named("values", "indices"))
    order = lambda x: lax.sort((x, lax.iota(jnp.int32, x.shape[0])), num_keys=1)
    return PureCase(order, (f["x"],), named("values", "indices"))


def make_hvp(f):
    names = [n.removeprefix("tangent_") for n in f if n.startswith("tangent_")]
    batch = {n: f[n] for n in ("x", "labels")}
    p, t = {n: f[n] for n in names}, {n: f["tangent_" + n] for n in names}
    product = lambda p, t, batch: jax.jvp(lambda q: jax.grad(mlp_loss)(q, batch), (p,), (t,))[1]
    case = PureCase(product, (), lambda r: {"hv_" + n: a for n, a in r.items()})
    case.arguments = jax.device_put((p, t, batch))
    return case


def make_cross_entropy(variant, f):
    loss = {"logsumexp": cross_entropy, "log_softmax": cross_entropy_by_log_softmax,
            "one_hot": cross_entropy_by_one_hot}[variant]
    return PureCase(jax.value_and_grad(loss), (f["logits"], f["labels"]),
                    named("loss", "d_logits"))


def stft(x, length=512, hop=128):
    window = 0.5 - 0.5 * jnp.cos(2 * jnp.pi * jnp.arange(length, dtype=x.dtype) / length)
    first = hop * jnp.arange((x.shape[-1] - length) // hop + 1)
    return jnp.fft.rfft(x[..., first[:, None] + jnp.arange(length)] * window)


TRANSFORMS = {"fft_65536": jnp.fft.fft, "fft_100000": jnp.fft.fft, "fft_512x512": jnp.fft.fft2,
              "stft": stft}


def experts(x, w, i):
    """Rows in the order of their experts, one ragged product, and back."""
    order = jnp.argsort(i)
    y = lax.ragged_dot(x[order], w, jnp.bincount(i, length=w.shape[0]))
    return jnp.zeros_like(y).at[order].set(y)


def make_pure(workload, f):
    if workload == "fused_rows_fwd":
        arguments = [f[n] for n in ("x", "g", "b", "gamma", "beta")]
        return PureCase(rows, arguments, lambda y: {"y": y})
    if workload == "fused_rows_grad":
        arguments = [f[n] for n in ("x", "g", "b", "gamma", "beta", "d_output")]
        return PureCase(rows_grad, arguments, named("d_x", "d_g", "d_b", "d_gamma", "d_beta"))
    if workload == "hessian":
        return PureCase(jax.hessian(logistic_loss), (f["w"], f["x"], f["y"]),
                        lambda h: {"hessian": h})
    if workload == "embedding_grad":
        look_up = lambda ids: (lambda table: jnp.take(table, ids, axis=0, mode="clip"))
        gradient = lambda table, ids, dy: jax.vjp(look_up(ids), table)[1](dy)[0]
        return PureCase(gradient, (f["table"], f["ids"], f["d_output"]),
                        lambda d: {"d_table": d})
    if workload in TRANSFORMS:
        return PureCase(TRANSFORMS[workload], (f["x"],), lambda y: {"y": y})
    if workload == "eigh_256":
        values_and_vectors = lambda a: jnp.linalg.eigh(a, symmetrize_input=True)
        squares = lambda a: (lambda w, v: (w, v * v))(*values_and_vectors(a))
        return PureCase(squares, (f["a"],), named("w", "v2"))
    if workload == "svd_256":
        squares = lambda a: (lambda u, s, vh: (s, u * u, vh * vh))(
            *jnp.linalg.svd(a, full_matrices=False))
        return PureCase(squares, (f["a"],), named("s", "u2", "vh2"))
    if workload in ("cumsum_rows", "cumsum_columns"):
        axis = 1 if workload == "cumsum_rows" else 0
        return PureCase(lambda x: jnp.cumsum(x, axis=axis), (f["x"],), lambda y: {"y": y})
    if workload in ("f32_row", "f32_rows"):
        return PureCase(jnp.matmul, (f["x"], f["w"]), lambda y: {"y": y})
    if workload == "f32_experts":
        return PureCase(experts, (f["x"], f["w"], f["i"]), lambda y: {"y": y})
    if workload == "tiny_call":
        return PureCase(lambda x, a, b: jnp.tanh(x * a + b), (f["x"], f["a"], f["b"]),
                        lambda y: {"y": y})
    raise KeyError(workload)


VARIANTS = {
    "gpt_train": ["einsum", "dot_product_attention"],
    "cnn_train": ["nhwc", "nchw"],
    "splat_step": ["tile_by_tile", "all_tiles", "entry_by_entry"],
    "attention_grad": ["einsum", "dot_product_attention"],
    "attention_2048": ["einsum", "dot_product_attention"],
    "attention_2048_grad": ["einsum", "dot_product_attention"],
    "selective_scan_grad": ["associative", "unroll1", "unroll4", "unroll16"],
    "gated_delta_grad": ["unroll1", "unroll4", "unroll16"],
    "rng_normal": ["threefry2x32", "rbg"],
    "softmax_ce_grad": ["logsumexp", "log_softmax", "one_hot"],
    "scan_fwd": ["unroll1", "unroll4", "unroll16"],
    "scan_grad": ["unroll1", "unroll4", "unroll16"],
    "lstm_grad": ["unroll1", "unroll4"],
}


class JaxPeer:
    def version(self):
        return "JAX " + jax.__version__

    def variants(self, workload):
        return VARIANTS.get(workload, ["jit"])

    def make(self, workload, variant, feeds, settings):
        precision = settings.get("precision", "f32")
        jax.config.update("jax_default_matmul_precision",
                          "tensorfloat32" if precision == "tf32" else "highest")
        policy = in_bf16 if precision == "bf16" else lambda loss: loss
        if workload == "mlp_train":
            return TrainCase(train_step(policy(mlp_loss), param_names(feeds)), feeds)
        if workload == "gpt_train":
            loss = functools.partial(gpt_loss, layers=settings["layers"], heads=settings["heads"],
                                     attention=ATTENTION[variant])
            return TrainCase(train_step(policy(loss), param_names(feeds)), feeds)
        if workload == "cnn_train":
            loss = functools.partial(cnn_loss, layout=variant)
            layout = Nhwc(feeds) if variant == "nhwc" else None
            return TrainCase(train_step(policy(loss), param_names(feeds)), feeds, layout)
        if workload == "splat_step":
            return TrainCase(train_step(splat_loss(variant, feeds, settings), param_names(feeds)),
                             feeds)
        if workload in ("attention_grad", "attention_2048", "attention_2048_grad"):
            return make_attention(workload, variant, feeds)
        if workload in ("selective_scan_grad", "gated_delta_grad"):
            return make_recurrent(workload, variant, feeds)
        if workload in ("sort", "top_k"):
            return make_ordered(workload, feeds, settings)
        if workload == "rng_normal":
            return make_random(variant, settings)
        if workload in ("scan_fwd", "scan_grad"):
            return make_scan(workload, variant, feeds)
        if workload == "lstm_grad":
            return make_lstm(variant, feeds)
        if workload == "softmax_ce_grad":
            return make_cross_entropy(variant, feeds)
        if workload == "mlp_hvp":
            return make_hvp(feeds)
        return make_pure(workload, feeds)


if __name__ == "__main__":
    serve(JaxPeer())
