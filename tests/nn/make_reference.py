"""Writes tests/nn/values/*.npz: what PyTorch makes of layers and of their gradients.

    python3 -m venv venv && venv/bin/pip install numpy torch
    venv/bin/python tests/nn/make_reference.py

A file has the input `x`, params by their names here (`param.w`), the result `y`, a cotangent `ct`,
and the gradients of sum(y * ct): `dx`, `grad.w`. All is computed in f64 from f32 numbers. The files
are committed; the C++ tests only read them.
"""
import math
import pathlib

import numpy as np
import torch
import torch.nn.functional as F

FOLDER = pathlib.Path(__file__).parent / "values"
generator = torch.Generator().manual_seed(20240607)


def draw(*shape, scale=1.0):
    x = torch.randn(shape, generator=generator, dtype=torch.float32) * scale
    return x.double().requires_grad_()


def write(name, x, params, forward, extra=None):
    """Runs forward(params, x) and keeps everything a test needs."""
    y = forward(params, x)
    ct = draw(*y.shape).detach()
    for p in params.values():
        if p.grad is not None:
            p.grad = None
    (y * ct).sum().backward()
    out = {"y": y, "ct": ct}
    out["x"] = x
    if x.is_floating_point():
        out["dx"] = x.grad
    for key, p in params.items():
        out["param." + key] = p
        if p.grad is not None:
            out["grad." + key] = p.grad
    for key, value in (extra() if extra else {}).items():
        out[key] = value
    arrays = {}
    for key, value in out.items():
        value = value.detach().numpy()
        arrays[key] = value.astype(np.int32 if value.dtype.kind == "i" else np.float32)
    np.savez(FOLDER / (name + ".npz"), **arrays)


def linear_params(name, i, o, bias=True):
    out = {name + ".w": draw(i, o, scale=i**-0.5)}
    if bias:
        out[name + ".b"] = draw(o, scale=0.3)
    return out


def linear(p, name, x):
    y = x @ p[name + ".w"]
    return y + p[name + ".b"] if name + ".b" in p else y


def norm_params(name, n):
    return {name + ".w": (1 + draw(n, scale=0.2)).detach().requires_grad_(),
            name + ".b": draw(n, scale=0.2)}


def layer_norm(p, name, x):
    return F.layer_norm(x, x.shape[-1:], p[name + ".w"], p[name + ".b"])


def simple_layers():
    write("linear", draw(2, 3, 4), {"w": draw(4, 5), "b": draw(5)},
          lambda p, x: F.linear(x, p["w"].T, p["b"]))
    write("embedding", torch.tensor([[1, 4, 1], [0, 2, 4]]), {"w": draw(5, 3)},
          lambda p, x: F.embedding(x, p["w"]))
    write("conv1d", draw(2, 4, 7), {"w": draw(6, 2, 3), "b": draw(6)},
          lambda p, x: F.conv1d(x, p["w"], p["b"], stride=2, padding=1, groups=2))
    write("conv2d", draw(2, 4, 6, 5), {"w": draw(6, 2, 3, 2), "b": draw(6)},
          lambda p, x: F.conv2d(x, p["w"], p["b"], stride=(2, 1), padding=(2, 1), dilation=2,
                                groups=2))
    write("conv3d", draw(1, 2, 4, 5, 3), {"w": draw(3, 2, 2, 3, 2), "b": draw(3)},
          lambda p, x: F.conv3d(x, p["w"], p["b"], stride=(1, 2, 1), padding=(0, 1, 1)))
    write("conv_transpose2d", draw(2, 4, 3, 4), {"w": draw(4, 3, 3, 2), "b": draw(6)},
          lambda p, x: F.conv_transpose2d(x, p["w"], p["b"], stride=2, padding=(1, 0),
                                          output_padding=(1, 0), groups=2))
    write("layer_norm", draw(2, 3, 6), {"w": draw(6), "b": draw(6)},
          lambda p, x: F.layer_norm(x, (6,), p["w"], p["b"], 1e-4))
    write("rms_norm", draw(2, 3, 6), {"w": draw(6)},
          lambda p, x: F.rms_norm(x, (6,), p["w"], 1e-4))
    write("group_norm", draw(2, 6, 3, 2), {"w": draw(6), "b": draw(6)},
          lambda p, x: F.group_norm(x, 3, p["w"], p["b"], 1e-4))
    for training in (True, False):
        start = torch.tensor([0.5, -1.0, 0.25]).double(), torch.tensor([1.5, 0.5, 2.0]).double()
        mean, var = start[0].clone(), start[1].clone()
        params = {"w": draw(3), "b": draw(3), "mean": start[0], "var": start[1]}
        write("batch_norm_training" if training else "batch_norm_inference", draw(4, 3, 2, 5),
              params,
              lambda p, x: F.batch_norm(x, mean, var, p["w"], p["b"], training, 0.3, 1e-4),
              extra=lambda: {"after.mean": mean, "after.var": var})


def rotated(x, heads, base):
    batch, places, width = x.shape
    half = width // heads // 2
    speed = base ** (-torch.arange(half).double() / half)
    angle = torch.arange(places).double()[:, None] * speed
    cos, sin = angle.cos()[:, None], angle.sin()[:, None]
    a, b = x.view(batch, places, heads, 2, half).unbind(3)
    return torch.stack([a * cos - b * sin, b * cos + a * sin], 3).reshape(x.shape)


def attention_params(prefix, width, kv_width, memory):
    return {**linear_params(prefix + "q", width, width),
            **linear_params(prefix + "k", memory, kv_width),
            **linear_params(prefix + "v", memory, kv_width),
            **linear_params(prefix + "out", width, width)}


def attention(p, prefix, x, memory, heads, kv_heads, causal, base=None):
    q, k, v = (linear(p, prefix + n, s) for n, s in (("q", x), ("k", memory), ("v", memory)))
    if base:
        q, k = rotated(q, heads, base), rotated(k, kv_heads, base)
    batch, width = q.shape[0], q.shape[2] // heads
    q = q.view(batch, -1, heads, width).transpose(1, 2)
    k, v = (t.view(batch, -1, kv_heads, width).transpose(1, 2)
            .repeat_interleave(heads // kv_heads, 1) for t in (k, v))
    y = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return linear(p, prefix + "out", y.transpose(1, 2).reshape(batch, -1, heads * width))


def torch_attention(p, x):
    """The same by torch.nn.MultiheadAttention."""
    layer = torch.nn.MultiheadAttention(8, 2, batch_first=True).double()
    names = ("q", "k", "v")
    state = {"in_proj_weight": torch.cat([p[n + ".w"].T for n in names]),
             "in_proj_bias": torch.cat([p[n + ".b"] for n in names]),
             "out_proj.weight": p["out.w"].T, "out_proj.bias": p["out.b"]}
    return torch.func.functional_call(layer, state, (x, x, x))[0]


def transformer_layers():
    write("attention", draw(2, 3, 8), attention_params("", 8, 8, 8), torch_attention)
    write("attention_grouped", draw(2, 5, 8), attention_params("", 8, 4, 8),
          lambda p, x: attention(p, "", x, x, 4, 2, True, 10000.0))
    memory = draw(2, 5, 6).detach()
    write("attention_cross", draw(2, 3, 8), attention_params("", 8, 8, 6),
          lambda p, x: attention(p, "", x, memory, 2, 2, False),
          extra=lambda: {"memory": memory})
    write("feed_forward", draw(2, 3, 4),
          {**linear_params("in", 4, 6), **linear_params("out", 6, 4)},
          lambda p, x: linear(p, "out", F.gelu(linear(p, "in", x))))
    write("swiglu", draw(2, 3, 4),
          {**linear_params("gate", 4, 6, False), **linear_params("up", 4, 6, False),
           **linear_params("down", 6, 4, False)},
          lambda p, x: linear(p, "down", F.silu(linear(p, "gate", x)) * linear(p, "up", x)))


def block_params(prefix, width, hidden, memory=None):
    out = {**norm_params(prefix + "attention_norm", width),
           **attention_params(prefix + "attention.", width, width, width)}
    if memory:
        out |= {**norm_params(prefix + "cross.norm", width),
                **attention_params(prefix + "cross.attention.", width, width, memory)}
    return out | {**norm_params(prefix + "feed_norm", width),
                  **linear_params(prefix + "feed.in", width, hidden),
                  **linear_params(prefix + "feed.out", hidden, width)}


def torch_layer(p, own, norms):
    """The state of a layer of torch.nn for a block."""
    names = ("q", "k", "v")
    state = {"linear1.weight": p["feed.in.w"].T, "linear1.bias": p["feed.in.b"],
             "linear2.weight": p["feed.out.w"].T, "linear2.bias": p["feed.out.b"]}
    for theirs, ours in own.items():
        state |= {theirs + ".in_proj_weight": torch.cat([p[f"{ours}.{n}.w"].T for n in names]),
                  theirs + ".in_proj_bias": torch.cat([p[f"{ours}.{n}.b"] for n in names]),
                  theirs + ".out_proj.weight": p[ours + ".out.w"].T,
                  theirs + ".out_proj.bias": p[ours + ".out.b"]}
    for theirs, ours in norms.items():
        state |= {theirs + ".weight": p[ours + ".w"], theirs + ".bias": p[ours + ".b"]}
    return state


def encoder(p, x):
    layer = torch.nn.TransformerEncoderLayer(8, 2, 12, 0.0, "gelu", batch_first=True,
                                             norm_first=True).double()
    state = torch_layer(p, {"self_attn": "attention"},
                        {"norm1": "attention_norm", "norm2": "feed_norm"})
    return torch.func.functional_call(layer, state, (x,))


def decoder(p, x, memory):
    layer = torch.nn.TransformerDecoderLayer(8, 2, 12, 0.0, "gelu", batch_first=True,
                                             norm_first=True).double()
    state = torch_layer(p, {"self_attn": "attention", "multihead_attn": "cross.attention"},
                        {"norm1": "attention_norm", "norm2": "cross.norm", "norm3": "feed_norm"})
    mask = torch.nn.Transformer.generate_square_subsequent_mask(x.shape[1], dtype=torch.float64)
    return torch.func.functional_call(layer, state, (x, memory),
                                      {"tgt_mask": mask, "tgt_is_causal": True})


def gpt(p, ids):
    x = p["tokens.w"][ids] + p["places.w"][: ids.shape[1]]
    for i in range(2):
        b = f"blocks.{i}."
        h = layer_norm(p, b + "attention_norm", x)
        x = x + attention(p, b + "attention.", h, h, 2, 2, True)
        h = layer_norm(p, b + "feed_norm", x)
        x = x + linear(p, b + "feed.out", F.gelu(linear(p, b + "feed.in", h)))
    return layer_norm(p, "norm", x) @ p["tokens.w"].T


def blocks():
    write("encoder_block", draw(2, 3, 8), block_params("", 8, 12), encoder)
    memory = draw(2, 4, 8).detach()
    write("decoder_block", draw(2, 3, 8), block_params("", 8, 12, 8),
          lambda p, x: decoder(p, x, memory), extra=lambda: {"memory": memory})
    params = {"tokens.w": draw(7, 8), "places.w": draw(6, 8)}
    for i in range(2):
        params |= block_params(f"blocks.{i}.", 8, 32)
    write("gpt", torch.tensor([[1, 5, 2, 6], [0, 3, 3, 4]]),
          params | norm_params("norm", 8), gpt)


def recurrent():
    def run(kind, p, x):
        layer = kind(3, 4, batch_first=True).double()
        state = {"weight_ih_l0": p["w_in"].T, "weight_hh_l0": p["w_hidden"].T,
                 "bias_ih_l0": p["b"], "bias_hh_l0": p.get("b_hidden", torch.zeros(16).double())}
        return torch.func.functional_call(layer, state, (x,))[0]

    write("lstm", draw(2, 5, 3),
          {"w_in": draw(3, 16), "w_hidden": draw(4, 16), "b": draw(16)},
          lambda p, x: run(torch.nn.LSTM, p, x))
    write("gru", draw(2, 5, 3),
          {"w_in": draw(3, 12), "w_hidden": draw(4, 12), "b": draw(12), "b_hidden": draw(12)},
          lambda p, x: run(torch.nn.GRU, p, x))


def with_past(p, name, x):
    w = p[name + ".w"]
    y = F.conv1d(x.transpose(1, 2), w, p.get(name + ".b"), padding=w.shape[2] - 1,
                 groups=w.shape[0])
    return F.silu(y[:, :, : x.shape[1]].transpose(1, 2))


def mamba(p, x):
    u, z = linear(p, "in", x).chunk(2, -1)
    u = with_past(p, "conv", u)
    delta, b, c = linear(p, "select", u).split([2, 3, 3], -1)
    delta = F.softplus(linear(p, "step", delta))
    a = -p["a_log"].exp()
    h = torch.zeros(x.shape[0], 8, 3).double()
    ys = []
    for t in range(x.shape[1]):
        d = delta[:, t, :, None]
        h = (d * a).exp() * h + d * b[:, t, None, :] * u[:, t, :, None]
        ys.append((h * c[:, t, None, :]).sum(-1))
    return linear(p, "out", (torch.stack(ys, 1) + p["d"] * u) * F.silu(z))


def delta_net(p, x):
    heads, key, value = 2, 3, 4
    q, k = (F.normalize(with_past(p, n + "_conv", linear(p, n, x))
                        .view(*x.shape[:2], heads, key), dim=-1, eps=1e-6) for n in ("q", "k"))
    v = with_past(p, "v_conv", linear(p, "v", x)).view(*x.shape[:2], heads, value)
    g = -p["a_log"].exp() * F.softplus(linear(p, "decay", x))
    beta = linear(p, "beta", x).sigmoid()
    s = torch.zeros(x.shape[0], heads, key, value).double()
    out = []
    for t in range(x.shape[1]):
        s = s * g[:, t].exp()[..., None, None]
        d = beta[:, t, :, None] * (v[:, t] - torch.einsum("bhkv,bhk->bhv", s, k[:, t]))
        s = s + torch.einsum("bhk,bhv->bhkv", k[:, t], d)
        out.append(torch.einsum("bhkv,bhk->bhv", s, q[:, t]) / math.sqrt(key))
    o = F.rms_norm(torch.stack(out, 1), (value,), p["norm.w"], 1e-5)
    o = o * F.silu(linear(p, "gate", x)).view(*x.shape[:2], heads, value)
    return linear(p, "out", o.flatten(2))


def mixture(p, x):
    rows = x.view(-1, 4)
    best, index = linear(p, "router", rows).topk(2)
    y = 0
    for pick in range(2):
        w_in, w_out = p["w_in"][index[:, pick]], p["w_out"][index[:, pick]]
        h = F.gelu(torch.einsum("mk,mkn->mn", rows, w_in))
        y = y + best.softmax(-1)[:, pick, None] * torch.einsum("mk,mkn->mn", h, w_out)
    return y.view(x.shape)


def sequences():
    write("mamba", draw(2, 5, 4),
          {**linear_params("in", 4, 16, False), "conv.w": draw(8, 1, 3), "conv.b": draw(8),
           **linear_params("select", 8, 8, False), **linear_params("step", 2, 8),
           "a_log": draw(8, 3, scale=0.3), "d": draw(8), **linear_params("out", 8, 4, False)},
          mamba)
    write("gated_delta_net", draw(2, 5, 4),
          {**linear_params("q", 4, 6, False), **linear_params("k", 4, 6, False),
           **linear_params("v", 4, 8, False), "q_conv.w": draw(6, 1, 3),
           "k_conv.w": draw(6, 1, 3), "v_conv.w": draw(8, 1, 3),
           **linear_params("beta", 4, 2, False), **linear_params("decay", 4, 2),
           "a_log": draw(2, scale=0.3), "norm.w": draw(4), **linear_params("gate", 4, 8, False),
           **linear_params("out", 8, 4, False)}, delta_net)
    x = draw(2, 3, 4)
    params = {**linear_params("router", 4, 5, False), "w_in": draw(5, 4, 6), "w_out": draw(5, 6, 4)}
    scores = (x.detach().view(-1, 4) @ params["router.w"]).detach()
    share = F.one_hot(scores.topk(2)[1], 5).double().mean((0, 1))
    write("mixture_of_experts", x, params, mixture,
          extra=lambda: {"balance": 5 * (share * scores.softmax(-1).mean(0)).sum()})


def adapters():
    base = {"w": draw(4, 5), "b": draw(5)}
    low = {"adapter.a": draw(4, 2), "adapter.b": draw(2, 5)}
    write("lora", draw(3, 4), base | low,
          lambda p, x: x @ (p["w"] + 1.5 * p["adapter.a"] @ p["adapter.b"]) + p["b"])

    def dora(p, x):
        w = p["w"] + 1.5 * p["adapter.a"] @ p["adapter.b"]
        return x @ (w / w.norm(dim=0, keepdim=True).detach() * p["adapter.magnitude"]) + p["b"]

    write("dora", draw(3, 4), base | low | {"adapter.magnitude": draw(5)}, dora)
    write("ia3", draw(3, 4), base | {"adapter.factor": draw(5)},
          lambda p, x: (x @ p["w"] + p["b"]) * p["adapter.factor"])


def losses():
    classes = torch.tensor([1, 4, -1, 0])
    write("loss_cross_entropy", draw(4, 5), {},
          lambda p, x: F.cross_entropy(x, classes, ignore_index=-1, label_smoothing=0.1),
          extra=lambda: {"target": classes})
    zero_one = torch.tensor([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]]).double()

    def focal(p, x):
        entropy = F.binary_cross_entropy_with_logits(x, zero_one, reduction="none")
        weight = torch.where(zero_one == 1, 0.25, 0.75)
        return (weight * (1 - (-entropy).exp()) ** 2 * entropy).mean()

    write("loss_focal", draw(2, 3), {}, focal, extra=lambda: {"target": zero_one})
    other = {"positive": draw(3, 4), "negative": draw(3, 4)}
    write("loss_triplet", draw(3, 4), {},
          lambda p, x: F.triplet_margin_loss(x, other["positive"], other["negative"], 2.0, eps=0),
          extra=lambda: other)
    sign = zero_one * 2 - 1
    write("loss_hinge", draw(2, 3), {}, lambda p, x: (1 - x * sign).clamp(min=0).mean(),
          extra=lambda: {"target": sign})
    target, var = draw(2, 3), draw(2, 3).detach().abs()
    write("loss_gaussian", draw(2, 3), {}, lambda p, x: F.gaussian_nll_loss(x, target, var),
          extra=lambda: {"target": target, "var": var})
    counts = torch.tensor([[0.0, 3.0, 1.0], [2.0, 0.0, 5.0]]).double()
    write("loss_poisson", draw(2, 3), {}, lambda p, x: F.poisson_nll_loss(x, counts),
          extra=lambda: {"target": counts})
    pair = draw(3, 4)

    def contrastive(p, x):
        scores = F.normalize(x) @ F.normalize(pair).T / 0.5
        own = torch.arange(3)
        return (F.cross_entropy(scores, own) + F.cross_entropy(scores.T, own)) / 2

    write("loss_contrastive", draw(3, 4), {}, contrastive, extra=lambda: {"pair": pair})


def transposed():
    write("conv_transpose1d", draw(2, 4, 5), {"w": draw(4, 3, 4), "b": draw(6)},
          lambda p, x: F.conv_transpose1d(x, p["w"], p["b"], stride=3, padding=1, output_padding=2,
                                          groups=2))
    write("conv_transpose3d", draw(1, 2, 2, 3, 2), {"w": draw(2, 3, 2, 1, 3), "b": draw(3)},
          lambda p, x: F.conv_transpose3d(x, p["w"], p["b"], stride=(1, 2, 2), padding=(0, 0, 1),
                                          output_padding=(0, 1, 0), dilation=(2, 1, 1)))


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for family in (simple_layers, transformer_layers, blocks, recurrent, sequences, adapters,
                   losses, transposed):
        family()
