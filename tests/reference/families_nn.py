"""Norms, attention, convolution, losses, sequence models, fused blocks and control flow."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from families_basic import RNG, normal, uniform
from reference import Family


def layer_norm(x, g, b, axis=-1, eps=1e-5):
    shape = [1] * x.ndim
    shape[axis] = x.shape[axis]
    mu = x.mean(axis, keepdims=True)
    var = ((x - mu) ** 2).mean(axis, keepdims=True)
    return (x - mu) / jnp.sqrt(var + eps) * g.reshape(shape) + b.reshape(shape)


def rms_norm(x, g, b, axis=-1, eps=1e-5):
    shape = [1] * x.ndim
    shape[axis] = x.shape[axis]
    r = 1 / jnp.sqrt((x * x).mean(axis, keepdims=True) + eps)
    return x * r * g.reshape(shape) + b.reshape(shape)


def group_norm(x, g, b, groups, eps=1e-5):
    n, c = x.shape[:2]
    y = x.reshape(n, groups, -1)
    y = (y - y.mean(2, keepdims=True)) / jnp.sqrt(y.var(2, keepdims=True) + eps)
    shape = (1, c) + (1,) * (x.ndim - 2)
    return y.reshape(x.shape) * g.reshape(shape) + b.reshape(shape)


def batch_norm(x, g, b, m, v, eps=1e-5):
    return (x - m) / jnp.sqrt(v + eps) * g + b


def norms():
    f = Family("norms")
    for axis in (2, 1):
        x, d = normal(2, 4, 5), (2, 4, 5)[axis]
        g, b, dy = normal(d), normal(d), normal(2, 4, 5)
        for name, fn in {"layer_norm": layer_norm, "rms_norm": rms_norm}.items():
            attrs = f"{{axis = {axis}, eps = 0.001}}"
            call = lambda x, g, b: fn(x, g, b, axis, 1e-3)
            f.case(f"{name}_{axis}", f"%y = {name} %x, %g, %b {attrs}", {"x": x, "g": g, "b": b}, call(x, g, b))
            f.case(f"{name}_backward_{axis}", f"%dx, %dg, %db = {name}_backward %x, %g, %dy {attrs}",
                   {"x": x, "g": g, "dy": dy}, jax.vjp(call, x, g, b)[1](dy), "%dx, %dg, %db")
    x, g, b, dy = normal(2, 6, 3, 2), normal(6), normal(6), normal(2, 6, 3, 2)
    call = lambda x, g, b: group_norm(x, g, b, 3)
    f.case("group_norm", "%y = group_norm %x, %g, %b {num_groups = 3}", {"x": x, "g": g, "b": b}, call(x, g, b))
    f.case("group_norm_backward", "%dx, %dg, %db = group_norm_backward %x, %g, %dy {num_groups = 3}",
           {"x": x, "g": g, "dy": dy}, jax.vjp(call, x, g, b)[1](dy), "%dx, %dg, %db")
    x, dy = normal(3, 2, 4), normal(3, 2, 4)
    g, b, m, v = normal(4), normal(4), normal(4), uniform(0.5, 2, 4)
    f.case("batch_norm", "%y = batch_norm_inference %x, %g, %b, %m, %v",
           {"x": x, "g": g, "b": b, "m": m, "v": v}, batch_norm(x, g, b, m, v))
    dx, dg, db, dm, dv = jax.vjp(batch_norm, x, g, b, m, v)[1](dy)
    f.case("batch_norm_backward",
           "%dx, %dg, %db, %dm, %dv = batch_norm_inference_backward %x, %g, %m, %v, %dy",
           {"x": x, "g": g, "m": m, "v": v, "dy": dy}, [dx, dg, db, dm, dv], "%dx, %dg, %db, %dm, %dv")
    return f


# With its own scale and softcap. [AT-02]
def attend(q, k, v, mask=None, bias=None, scale=None, cap=None):
    """q [B, H, S, D], k and v [B, KV, T, D]."""
    group = q.shape[1] // k.shape[1]
    k, v = jnp.repeat(k, group, 1), jnp.repeat(v, group, 1)
    z = jnp.einsum("bhsd,bhtd->bhst", q, k) * (scale or q.shape[-1] ** -0.5)
    if cap:
        z = cap * jnp.tanh(z / cap)
    if bias is not None:
        z = z + bias
    if mask is not None:
        z = jnp.where(mask, z, -jnp.inf)
    return jnp.einsum("bhst,bhtd->bhsd", jax.nn.softmax(z, -1), v), jax.nn.logsumexp(z, -1)


def rope(x, cos, sin, d, n_rot, style):
    b, s, w = x.shape
    y = x.reshape(b, s, w // d, d)
    h = n_rot // 2
    c, n = cos[:s, None, :h], sin[:s, None, :h]
    if style == "neox":
        x1, x2 = y[..., :h], y[..., h:n_rot]
        y = jnp.concatenate([x1 * c - x2 * n, x2 * c + x1 * n, y[..., n_rot:]], -1)
    else:
        x1, x2 = y[..., 0:n_rot:2], y[..., 1:n_rot:2]
        pair = jnp.stack([x1 * c - x2 * n, x2 * c + x1 * n], -1).reshape(*y.shape[:-1], n_rot)
        y = jnp.concatenate([pair, y[..., n_rot:]], -1)
    return y.reshape(x.shape)


def attention():
    f = Family("attention")
    q, k, v = normal(2, 4, 3, 5), normal(2, 2, 6, 5), normal(2, 2, 6, 5)
    dy = normal(2, 4, 3, 5)
    base = "num_heads = 4, head_dim = 5, num_kv_heads = 2, layout = bhsd"
    i, j = np.arange(3)[:, None], np.arange(6)[None, :]
    bias = normal(2, 1, 3, 6)
    keep = RNG.integers(0, 2, (2, 6)).astype(bool) | (np.arange(6) == 0)
    variants = {
        "plain": ("", {}, {}),
        "causal": (", mask_kind = causal", {"mask": j <= i + 3}, {}),
        "window": (", mask_kind = sliding_window(2)", {"mask": (j <= i + 3) & (j >= i + 1)}, {}),
        "scaled": (", score_scale = 0.7, attn_logit_softcap = 1.5", {"scale": 0.7, "cap": 1.5}, {}),
        "bias": (", mask_kind = bias", {"bias": bias}, {"m": bias}),
        "custom": (", mask_kind = custom", {"mask": keep[:, None, None, :]}, {"m": keep}),
    }
    for name, (attrs, options, extra) in variants.items():
        mask = ", %m" if extra else ""
        out, lse = attend(q, k, v, **options)
        f.case(f"attention_{name}", f"%y, %l = attention %q, %k, %v{mask} {{{base}{attrs}}}",
               {"q": q, "k": k, "v": v, **extra}, [out, lse], "%y, %l")
        grads = jax.vjp(lambda q, k, v: attend(q, k, v, **options)[0], q, k, v)[1](dy)
        names = "%dq, %dk, %dv"
        if name == "bias":
            grads = (*grads, jax.vjp(lambda b: attend(q, k, v, bias=b)[0], bias)[1](dy)[0])
            names += ", %db"
        f.case(f"attention_backward_{name}",
               f"{names} = attention_backward %q, %k, %v, %dy{mask} {{{base}{attrs}}}",
               {"q": q, "k": k, "v": v, "dy": dy, **extra}, grads, names)
    x, cos, sin, dy = normal(2, 3, 12), normal(5, 3), normal(5, 3), normal(2, 3, 12)
    for style in ("neox", "gptj"):
        for n_rot in (6, 4):
            attrs = f"{{head_dim = 6, n_rot = {n_rot}, style = {style}}}"
            call = lambda x, c, s: rope(x, c, s, 6, n_rot, style)
            f.case(f"rope_{style}_{n_rot}", f"%y = rope %x, %c, %s {attrs}", {"x": x, "c": cos, "s": sin},
                   call(x, cos, sin))
            f.case(f"rope_backward_{style}_{n_rot}", f"%dx, %dc, %ds = rope_backward %dy, %c, %s, %x {attrs}",
                   {"dy": dy, "c": cos, "s": sin, "x": x}, jax.vjp(call, x, cos, sin)[1](dy), "%dx, %dc, %ds")
    return f


def conv(x, w, stride, padding, dilation, groups):
    return lax.conv_general_dilated(x, w, stride, [(p, p) for p in padding], rhs_dilation=dilation,
                                    feature_group_count=groups)


def window(x, init, op, kernel, stride, padding):
    return lax.reduce_window(x, init, op, (1, 1, *kernel), (1, 1, *stride),
                             ((0, 0), (0, 0), *[(p, p) for p in padding]))


def convolution():
    f = Family("convolution")
    for tag, (sx, sw, stride, padding, dilation, groups) in {
            "plain": ((2, 3, 5, 6), (4, 3, 3, 2), (1, 1), (0, 0), (1, 1), 1),
            "strided": ((1, 2, 7, 8), (3, 2, 3, 3), (2, 3), (1, 0), (1, 1), 1),
            "dilated": ((1, 2, 8, 7), (2, 2, 2, 3), (1, 2), (1, 2), (2, 2), 1),
            "grouped": ((2, 4, 5, 5), (6, 2, 3, 3), (2, 2), (1, 1), (1, 1), 2)}.items():
        x, w = normal(*sx), normal(*sw)
        geometry = (f"stride = {list(stride)}, padding = {list(padding)}, dilation = {list(dilation)}, "
                    f"groups = {groups}")
        call = lambda x, w: conv(x, w, stride, padding, dilation, groups)
        y, pull = jax.vjp(call, x, w)
        dy = normal(*y.shape)
        dx, dw = pull(dy)
        f.case(f"conv_{tag}", f"%y = conv %x, %w {{{geometry}}}", {"x": x, "w": w}, y)
        f.case(f"conv_backward_input_{tag}",
               f"%y = conv2d_backward_input %dy, %w {{input_size = {list(sx[2:])}, {geometry}}}",
               {"dy": dy, "w": w}, dx)
        f.case(f"conv_backward_weight_{tag}",
               f"%y = conv2d_backward_weight %x, %dy {{kernel_size = {list(sw[2:])}, {geometry}}}",
               {"x": x, "dy": dy}, dw)
    x = normal(2, 3, 6, 7)
    for tag, (kernel, stride, padding) in {"plain": ((2, 2), (2, 2), (0, 0)),
                                           "overlap": ((3, 2), (1, 2), (1, 1))}.items():
        g = f"kernel_size = {list(kernel)}, stride = {list(stride)}, padding = {list(padding)}"
        args = (kernel, stride, padding)
        total = window(x, 0.0, lax.add, *args)
        f.case(f"pool_sum_{tag}", f"%y = pool %x {{kind = sum, {g}}}", {"x": x}, total)
        f.case(f"pool_mean_{tag}", f"%y = pool %x {{kind = mean, {g}}}", {"x": x}, total / np.prod(kernel))
        count = window(np.ones_like(x), 0.0, lax.add, *args)
        f.case(f"pool_mean_inside_{tag}", f"%y = pool %x {{kind = mean, {g}, count_include_pad = false}}",
               {"x": x}, total / count)
        largest = lambda x: window(x, -jnp.inf, lax.max, *args)
        f.case(f"pool_max_{tag}", f"%y = pool %x {{kind = max, {g}}}", {"x": x}, largest(x))
        f.case(f"pool_min_{tag}", f"%y = pool %x {{kind = min, {g}}}", {"x": x},
               window(x, jnp.inf, lax.min, *args))
        y, pull = jax.vjp(largest, x)
        dy = normal(*y.shape)
        f.case(f"max_pool_backward_{tag}", f"%y = max_pool2d_backward %x, %dy {{{g}}}", {"x": x, "dy": dy},
               pull(dy)[0])
    return f


def cross_entropy(z, labels):
    return jax.nn.logsumexp(z, -1) - jnp.take_along_axis(z, labels[..., None], -1)[..., 0]


def losses():
    f = Family("losses")
    for tag, shape in {"matrix": (5, 7), "rank_three": (2, 3, 4)}.items():
        z = normal(*shape) * 3
        labels = RNG.integers(0, shape[-1], shape[:-1]).astype(np.int32)
        y, pull = jax.vjp(lambda z: cross_entropy(z, labels), z)
        dy = normal(*y.shape)
        f.case(f"cross_entropy_{tag}", "%y = softmax_cross_entropy_with_logits %z, %l", {"z": z, "l": labels}, y)
        f.case(f"cross_entropy_backward_{tag}", "%y = softmax_cross_entropy_backward %z, %l, %dy",
               {"z": z, "l": labels, "dy": dy}, pull(dy)[0])
    return f


def selective(x, delta, a, b, c, h0):
    def step(h, t):
        x, d, b, c = t
        h = jnp.exp(d[:, :, None] * a) * h + d[:, :, None] * b[:, None, :] * x[:, :, None]
        return h, jnp.einsum("bn,bhn->bh", c, h)

    moved = [jnp.moveaxis(t, 1, 0) for t in (x, delta, b, c)]
    h, y = lax.scan(step, h0, moved)
    return jnp.moveaxis(y, 0, 1), h


def delta_net(q, k, v, g, beta, s0):
    kappa = q.shape[-1] ** -0.5

    def step(s, t):
        q, k, v, g, beta = t
        s = jnp.exp(g)[..., None, None] * s
        d = beta[..., None] * (v - jnp.einsum("bhij,bhi->bhj", s, k))
        s = s + k[..., :, None] * d[..., None, :]
        return s, kappa * jnp.einsum("bhij,bhi->bhj", s, q)

    s, o = lax.scan(step, s0, [jnp.moveaxis(t, 1, 0) for t in (q, k, v, g, beta)])
    return jnp.moveaxis(o, 0, 1), s


def sequence():
    f = Family("sequence")
    x, delta, a = normal(2, 4, 3), uniform(0.1, 1, 2, 4, 3), -uniform(0.1, 1, 3, 5)
    b, c, h0 = normal(2, 4, 5), normal(2, 4, 5), normal(2, 3, 5)
    names = {"x": x, "d": delta, "a": a, "b": b, "c": c}
    f.case("selective_scan", "%y = selective_scan %x, %d, %a, %b, %c {state_size = 5}", names,
           selective(x, delta, a, b, c, np.zeros((2, 3, 5)))[0])
    q, k, v = normal(2, 4, 2, 3), normal(2, 4, 2, 3), normal(2, 4, 2, 3)
    g, beta = -uniform(0.1, 1, 2, 4, 2), uniform(0, 1, 2, 4, 2)
    f.case("gated_delta_net", "%y = gated_delta_net %q, %k, %v, %g, %b {state_size = 3}",
           {"q": q, "k": k, "v": v, "g": g, "b": beta},
           delta_net(q, k, v, g, beta, np.zeros((2, 2, 3, 3)))[0])
    dy = normal(2, 4, 3)
    grads = jax.vjp(lambda *t: selective(*t, np.zeros((2, 3, 5)))[0], x, delta, a, b, c)[1](dy)
    f.case("selective_scan_backward",
           "%dx, %dd, %da, %db, %dc = selective_scan_backward %x, %d, %a, %b, %c, %dy {state_size = 5}",
           {**names, "dy": dy}, grads, "%dx, %dd, %da, %db, %dc")
    do = normal(2, 4, 2, 3)
    grads = jax.vjp(lambda *t: delta_net(*t, np.zeros((2, 2, 3, 3)))[0], q, k, v, g, beta)[1](do)
    f.case("gated_delta_net_backward",
           "%dq, %dk, %dv, %dg, %db = gated_delta_net_backward %q, %k, %v, %g, %b, %do {state_size = 3}",
           {"q": q, "k": k, "v": v, "g": g, "b": beta, "do": do}, grads, "%dq, %dk, %dv, %dg, %db")
    return f


def fused():
    f = Family("fused")
    x, w, b = normal(2, 3, 4), normal(4, 5), normal(5)
    f.case("matmul_bias_gelu", "%y = fused_matmul_bias_act %x, %w, %b {activation = gelu}",
           {"x": x, "w": w, "b": b}, jax.nn.gelu(x @ w + b, approximate=False))
    r, g, beta = normal(2, 3, 4), normal(4), normal(4)
    f.case("residual_ln", "%y = fused_residual_ln %x, %r, %g, %b", {"x": x, "r": r, "g": g, "b": beta},
           layer_norm(x + r, g, beta))
    f.case("residual_rms", "%y = fused_residual_rms_norm %x, %r, %g, %b", {"x": x, "r": r, "g": g, "b": beta},
           rms_norm(x + r, g, beta))
    up, gate = x[..., :2], x[..., 2:]
    f.case("swiglu", "%y = fused_swiglu %x", {"x": x}, up * jax.nn.silu(gate))
    f.case("swiglu_gate_first", "%y = fused_swiglu %x {gate_first = true}", {"x": x}, jax.nn.silu(up) * gate)
    return f


def control():
    f = Family("control")
    c, xs, a = normal(3), normal(6, 3), normal(3, 3) * 0.3
    step = lambda c, x: (jnp.tanh(c @ a + x), jnp.sum(c * x))
    last, ys = lax.scan(step, c, xs)
    body = """%h, %y = scan %c, %a, %xs {length = 6, num_bcast = 1, num_xs = 1} body {
      %p = input "p" : f64[3]
      %m = input "m" : f64[3, 3]
      %x = input "x" : f64[3]
      %r = reshape %p {new_shape = [1, 3]}
      %v = matmul %r, %m
      %s = reshape %v {new_shape = [3]}
      %t = add %s, %x
      %n = tanh %t
      %q = mul %p, %x
      %z = reduce %q {op = sum, axes = [0]}
      return %n, %z
    }"""
    f.case("scan", body, {"c": c, "a": a, "xs": xs}, [last, ys], "%h, %y")
    x = np.float64(100.0)
    f.case("while", """%y = while %x cond {
      %c = input "c" : f64[]
      %one = constant 1.0 : f64[]
      %p = gt %c, %one
      return %p
    } body {
      %c = input "c" : f64[]
      %half = constant 0.5 : f64[]
      %n = mul %c, %half
      return %n
    }""", {"x": x}, lax.while_loop(lambda c: c > 1, lambda c: c * 0.5, x))
    for flag in (True, False):
        f.case(f"if_{int(flag)}", """%y = if %p, %x then {
          %a = input "a" : f64[3]
          %b = exp %a
          return %b
        } else {
          %a = input "a" : f64[3]
          %b = neg %a
          return %b
        }""", {"p": np.bool_(flag), "x": c}, np.exp(c) if flag else -c)
    return f


def families():
    return [norms(), attention(), convolution(), losses(), sequence(), fused(), control()]
