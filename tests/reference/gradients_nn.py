"""Derivatives of norms, attention, convolution, losses, sequence ops, fused ops and control flow."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import families_nn as nn
from gradients import Gradients
from gradients_ops import apart, integers, normal, uniform


def norms():
    f = Gradients("norms")
    for axis in (2, 1):
        d = (2, 3, 4)[axis]
        for name, fn in {"layer_norm": nn.layer_norm, "rms_norm": nn.rms_norm}.items():
            f.program(f"{name}_{axis}", f"%y = {name} %x, %g, %b {{axis = {axis}, eps = 0.001}}",
                      lambda x, g, b: fn(x, g, b, axis, 1e-3),
                      {"x": normal(2, 3, 4), "g": normal(d), "b": normal(d)})
    f.program("group_norm", "%y = group_norm %x, %g, %b {num_groups = 2}",
              lambda x, g, b: nn.group_norm(x, g, b, 2), {"x": normal(2, 4, 2, 2), "g": normal(4), "b": normal(4)})
    f.program("batch_norm", "%y = batch_norm_inference %x, %g, %b, %m, %v", nn.batch_norm,
              {"x": normal(3, 4), "g": normal(4), "b": normal(4), "m": normal(4), "v": uniform(0.5, 2, 4)})
    return f


def attention():
    f = Gradients("attention")
    base = "num_heads = 2, head_dim = 3, num_kv_heads = 1, layout = bhsd"
    q, k, v = normal(2, 2, 2, 3), normal(2, 1, 4, 3), normal(2, 1, 4, 3)
    i, j = np.arange(2)[:, None], np.arange(4)[None, :]
    bias = normal(2, 1, 2, 4)
    keep = np.array([[True, False, True, True], [True, True, False, False]])
    variants = {
        "plain": ("", {}),
        "causal": (", mask_kind = causal", {"mask": j <= i + 2}),
        "window": (", mask_kind = sliding_window(2)", {"mask": (j <= i + 2) & (j >= i)}),
        "scaled": (", score_scale = 0.7, attn_logit_softcap = 1.5", {"scale": 0.7, "cap": 1.5}),
    }
    for name, (attrs, options) in variants.items():
        f.program(f"attention_{name}", f"%y = attention %q, %k, %v {{{base}{attrs}}}",
                  lambda q, k, v: nn.attend(q, k, v, **options)[0], {"q": q, "k": k, "v": v})
    f.program("attention_bias", f"%y = attention %q, %k, %v, %m {{{base}, mask_kind = bias}}",
              lambda q, k, v, m: nn.attend(q, k, v, bias=m)[0], {"q": q, "k": k, "v": v, "m": bias})
    f.program("attention_custom", f"%y = attention %q, %k, %v, %m {{{base}, mask_kind = custom}}",
              lambda q, k, v, m: nn.attend(q, k, v, mask=m[:, None, None, :])[0],
              {"q": q, "k": k, "v": v, "m": keep})
    f.program("attention_lse", f"%o, %y = attention %q, %k, %v {{{base}}}",
              lambda q, k, v: nn.attend(q, k, v)[1], {"q": q, "k": k, "v": v})
    for style in ("neox", "gptj"):
        for n_rot in (4, 2):
            f.program(f"rope_{style}_{n_rot}",
                      f"%y = rope %x, %c, %s {{head_dim = 4, n_rot = {n_rot}, style = {style}}}",
                      lambda x, c, s: nn.rope(x, c, s, 4, n_rot, style),
                      {"x": normal(1, 2, 8), "c": normal(3, 2), "s": normal(3, 2)})
    return f


def patches(x, kernel, stride, padding, fill):
    """The windows of an image: [N, C, windows down, windows across, elements]."""
    x = jnp.pad(x, ((0, 0), (0, 0), *[(p, p) for p in padding]), constant_values=fill)
    down = (x.shape[2] - kernel[0]) // stride[0] + 1
    across = (x.shape[3] - kernel[1]) // stride[1] + 1
    parts = [x[:, :, a:a + down * stride[0]:stride[0], b:b + across * stride[1]:stride[1]][:, :, :down, :across]
             for a in range(kernel[0]) for b in range(kernel[1])]
    return jnp.stack(parts, -1)


def convolution():
    f = Gradients("convolution")
    for tag, (sx, sw, stride, padding, dilation, groups) in {
            "plain": ((2, 2, 4, 4), (3, 2, 3, 2), (1, 1), (0, 0), (1, 1), 1),
            "strided": ((1, 2, 6, 5), (2, 2, 3, 3), (2, 3), (1, 0), (1, 1), 1),
            "dilated": ((1, 1, 6, 5), (2, 1, 2, 3), (1, 2), (1, 2), (2, 2), 1),
            "grouped": ((1, 4, 4, 4), (2, 2, 3, 3), (2, 2), (1, 1), (1, 1), 2)}.items():
        geometry = (f"stride = {list(stride)}, padding = {list(padding)}, dilation = {list(dilation)}, "
                    f"groups = {groups}")
        f.program(f"conv_{tag}", f"%y = conv %x, %w {{{geometry}}}",
                  lambda x, w: nn.conv(x, w, stride, padding, dilation, groups), {"x": normal(*sx), "w": normal(*sw)})
    for tag, (kernel, stride, padding) in {"plain": ((2, 2), (2, 2), (0, 0)),
                                           "overlap": ((3, 2), (1, 2), (1, 1))}.items():
        g = f"kernel_size = {list(kernel)}, stride = {list(stride)}, padding = {list(padding)}"
        fns = {"max": lambda x: patches(x, kernel, stride, padding, -np.inf).max(-1),
               "min": lambda x: patches(x, kernel, stride, padding, np.inf).min(-1),
               "sum": lambda x: patches(x, kernel, stride, padding, 0).sum(-1),
               "mean": lambda x: patches(x, kernel, stride, padding, 0).mean(-1)}
        for kind, fn in fns.items():
            f.program(f"pool_{kind}_{tag}", f"%e = exp %x\n%y = pool %e {{kind = {kind}, {g}}}",
                      lambda x: fn(jnp.exp(x)), {"x": apart(1, 2, 4, 4) / 4})
    return f


def losses():
    f = Gradients("losses")
    for tag, shape in {"matrix": (3, 4), "rank_three": (2, 2, 3)}.items():
        f.program(f"cross_entropy_{tag}", "%y = softmax_cross_entropy_with_logits %z, %l", nn.cross_entropy,
                  {"z": normal(*shape) * 3, "l": integers(shape[-1], *shape[:-1])})
    f.program("cross_entropy_large", "%y = softmax_cross_entropy_with_logits %z, %l", nn.cross_entropy,
              {"z": np.array([[1e4, 0.0, -1e4], [0.0, 1e4, 1e4 - 1]]), "l": np.array([1, 2], np.int32)})
    return f


def sequence():
    f = Gradients("sequence")
    names = {"x": normal(2, 3, 2), "d": uniform(0.1, 1, 2, 3, 2), "a": -uniform(0.1, 1, 2, 3),
             "b": normal(2, 3, 3), "c": normal(2, 3, 3)}
    f.program("selective_scan", "%y = selective_scan %x, %d, %a, %b, %c {state_size = 3}",
              lambda *t: nn.selective(*t, jnp.zeros((2, 2, 3)))[0], names)
    names = {"q": normal(1, 3, 2, 3), "k": normal(1, 3, 2, 3), "v": normal(1, 3, 2, 3),
             "g": -uniform(0.1, 1, 1, 3, 2), "b": uniform(0, 1, 1, 3, 2)}
    f.program("gated_delta_net", "%y = gated_delta_net %q, %k, %v, %g, %b {state_size = 3}",
              lambda *t: nn.delta_net(*t, jnp.zeros((1, 2, 3, 3)))[0], names)
    return f


def transformer_layer(x, qkv, qkv_b, out, out_b, g1, b1, w1, fb1, w2, fb2, g2, b2):
    heads = lambda t: t.reshape(1, 3, 2, 2).transpose(0, 2, 1, 3)
    q, k, v = map(heads, jnp.split(x @ qkv + qkv_b, 3, -1))
    o = nn.attend(q, k, v, mask=np.tril(np.ones((3, 3), bool)))[0].transpose(0, 2, 1, 3).reshape(1, 3, 4)
    h = nn.layer_norm(o @ out + out_b + x, g1, b1)
    inner = jax.nn.gelu(h @ w1 + fb1, approximate=False)
    return nn.layer_norm(inner @ w2 + fb2 + h, g2, b2)


def fused():
    f = Gradients("fused")
    for name in ("gelu", "silu"):
        fn = {"gelu": lambda z: jax.nn.gelu(z, approximate=False), "silu": jax.nn.silu}[name]
        f.program(f"matmul_bias_{name}", f"%y = fused_matmul_bias_act %x, %w, %b {{activation = {name}}}",
                  lambda x, w, b: fn(x @ w + b), {"x": normal(2, 3), "w": normal(3, 4), "b": normal(4)})
    names = {"x": normal(2, 2, 4), "r": normal(2, 2, 4), "g": normal(4), "b": normal(4)}
    f.program("residual_ln", "%y = fused_residual_ln %x, %r, %g, %b",
              lambda x, r, g, b: nn.layer_norm(x + r, g, b), names)
    f.program("residual_rms", "%y = fused_residual_rms_norm %x, %r, %g, %b",
              lambda x, r, g, b: nn.rms_norm(x + r, g, b), names)
    f.program("region", "%y = elementwise_region %a, %b {chain = [tanh(input(0)), mul(step(0), input(1)), "
              "exp(step(1))]}", lambda a, b: jnp.exp(jnp.tanh(a) * b), {"a": normal(2, 3), "b": normal(3)})
    names = {"x": normal(1, 3, 4), "qkv": normal(4, 12) / 2, "qkv_b": normal(12), "out": normal(4, 4) / 2,
             "out_b": normal(4), "g1": normal(4), "b1": normal(4), "w1": normal(4, 6) / 2, "fb1": normal(6),
             "w2": normal(6, 4) / 2, "fb2": normal(4), "g2": normal(4), "b2": normal(4)}
    f.program("transformer_layer", "%y = fused_transformer_layer " + ", ".join("%" + k for k in names) +
              " {num_heads = 2, head_dim = 2, intermediate_size = 6, mask_kind = causal, activation = gelu, has_bias = true}",
              transformer_layer, names)
    f.program("swiglu", "%y = fused_swiglu %x", lambda x: x[..., :3] * jax.nn.silu(x[..., 3:]), {"x": normal(2, 6)})
    f.program("swiglu_gate_first", "%y = fused_swiglu %x {gate_first = true}",
              lambda x: jax.nn.silu(x[..., :3]) * x[..., 3:], {"x": normal(2, 6)})
    return f


SCAN = """%h, %ys = scan %c, %a, %xs {length = 4, num_bcast = 1, num_xs = 1} body {
      %p = input "p" : f64[1, 3]
      %m = input "m" : f64[3, 3]
      %x = input "x" : f64[1, 3]
      %v = matmul %p, %m
      %t = add %v, %x
      %n = tanh %t
      %q = mul %p, %x
      %z = reduce %q {op = sum, axes = [1]}
      return %n, %z
    }
    """


def control():
    f = Gradients("control")
    names = {"c": normal(1, 3), "a": normal(3, 3) * 0.5, "xs": normal(4, 1, 3)}

    def run(c, a, xs):
        return lax.scan(lambda c, x: (jnp.tanh(c @ a + x), jnp.sum(c * x, 1)), c, xs)

    f.program("scan_carry", SCAN, lambda *t: run(*t)[0], names, "%h")
    f.program("scan_outputs", SCAN, lambda *t: run(*t)[1], names, "%ys")
    f.program("scan_both", SCAN + """%s = reduce %h {op = sum, axes = [1]}
      %y = add %ys, %s""", lambda *t: run(*t)[1] + run(*t)[0].sum(1), names)
    f.program("scan_reverse", SCAN.replace("num_xs = 1}", "num_xs = 1, reverse = true}"),
              lambda c, a, xs: lax.scan(lambda c, x: (jnp.tanh(c @ a + x), 0.0), c, xs, reverse=True)[0],
              names, "%h")

    def seven_steps(x, w):
        for _ in range(7):
            x = jnp.sin(x * w) + x * 0.5
        return x

    f.program("while_fixed_trips", """%k0 = constant 0 : i32[]
      %k, %y, %w1 = while %k0, %x, %w {max_iterations = 10} cond {
      %k = input "k" : i32[]
      %x = input "x" : f64[2]
      %w = input "w" : f64[2]
      %n = constant 7 : i32[]
      %p = lt %k, %n
      return %p
    } body {
      %k = input "k" : i32[]
      %x = input "x" : f64[2]
      %w = input "w" : f64[2]
      %one = constant 1 : i32[]
      %next = add %k, %one
      %m = mul %x, %w
      %s = sin %m
      %half = constant 0.5 : f64[]
      %r = mul %x, %half
      %y = add %s, %r
      return %next, %y, %w
    }""", seven_steps, {"x": normal(2), "w": normal(2)})
    for flag in (True, False):
        f.program(f"if_{int(flag)}", """%y = if %p, %x, %z then {
          %a = input "a" : f64[3]
          %b = input "b" : f64[3]
          %e = exp %a
          %m = mul %e, %b
          return %m
        } else {
          %a = input "a" : f64[3]
          %b = input "b" : f64[3]
          %m = mul %a, %a
          return %m
        }""", (lambda p, x, z: jnp.exp(x) * z) if flag else (lambda p, x, z: x * x),
                  {"p": np.bool_(flag), "x": normal(3), "z": normal(3)})
    return f


def families():
    return [norms(), attention(), convolution(), losses(), sequence(), fused(), control()]
