"""Sums and their relatives, running totals, norms, ordering and random numbers."""

from cases import booleans, case, integers, through, uniform
from lazy import F, jax, jnp, lax, nn, torch

SHAPES = [  # class, shape, axes, dtype
    ("tiny", (4, 8), [1], "f32"), ("cache", (512, 512), [1], "f32"),
    ("memory", (4096, 2048), [1], "f32"), ("short rows", (400000, 5), [1], "f32"),
    ("long rows", (4, 1000000), [1], "f32"), ("odd", (1021, 509), [1], "f32"),
    ("f64", (512, 512), [1], "f64"), ("bf16", (512, 512), [1], "bf16"),
    ("permuted", (2048, 1024), [0], "f32")]

REDUCE = {
    "sum": (lambda x, d: jnp.sum(x, d), lambda x, d: torch.sum(x, d)),
    "mean": (lambda x, d: jnp.mean(x, d), lambda x, d: torch.mean(x, d)),
    "max": (lambda x, d: jnp.max(x, d), lambda x, d: torch.amax(x, d)),
    "min": (lambda x, d: jnp.min(x, d), lambda x, d: torch.amin(x, d)),
    "log_sum_exp": (lambda x, d: nn.logsumexp(x, d), lambda x, d: torch.logsumexp(x, d)),
    "prod": (lambda x, d: jnp.prod(x, d), lambda x, d: torch.prod(x, d[0])),
    "any": (lambda x, d: jnp.any(x, d), lambda x, d: torch.any(x, d[0])),
    "all": (lambda x, d: jnp.all(x, d), lambda x, d: torch.all(x, d[0])),
}


def reduce(member, klass, shape, axes, dtype="f32", label=None, rule=None, wrt="x"):
    in_jax, in_torch = REDUCE[member]
    case("reduce", klass, {"x": (dtype, shape, rule)},
         f"%y = reduce %x {{op = {member}, axes = {axes}}}",
         lambda x, d=tuple(axes): in_jax(x, d), lambda x, d=tuple(axes): in_torch(x, d),
         wrt=wrt, member=label or member)


for member in ("sum", "max", "log_sum_exp"):
    for klass, shape, axes, dtype in SHAPES:
        reduce(member, klass, shape, axes, dtype)
for member in ("mean", "min"):
    for klass, shape, axes, dtype in SHAPES[1:3]:
        reduce(member, klass, shape, axes, dtype)
reduce("prod", "cache", (512, 512), [1], rule=uniform(0.9, 1.1))
for member in ("any", "all"):
    reduce(member, "cache", (512, 512), [1], "bool", rule=booleans, wrt="")
    reduce(member, "memory", (4096, 2048), [1], "bool", rule=booleans, wrt="")
    reduce(member, "permuted", (4096, 2048), [0], "bool", rule=booleans, wrt="")
for label, shape, axes in (("everything", (4096, 2048), [0, 1]), ("middle", (64, 512, 256), [1]),
                           ("outer_two", (64, 512, 256), [0, 1]), ("ends", (64, 512, 256), [0, 2]),
                           ("few_columns", (1000000, 4), [0]), ("channels", (32, 64, 28, 28),
                                                                [0, 2, 3])):
    reduce("sum", "memory", shape, axes, label=label)
reduce("sum", "cache", (512, 512), [1], "i32", label="sum_i32", rule=integers(100), wrt="")
for label, perm in (("of_120", (1, 2, 0)), ("of_210", (2, 1, 0)), ("of_021", (0, 2, 1))):
    case("reduce", "permuted", {"x": (128, 160, 200)},
         f"%t = transpose %x {{perm = {list(perm)}}}\n%s = mul %t, %t\n"
         "%y = reduce %s {op = sum, axes = [2]}",
         lambda x, p=perm: jnp.sum(jnp.square(jnp.transpose(x, p)), 2),
         lambda x, p=perm: torch.sum(torch.square(x.permute(p)), 2), wrt="x", member=label)

CUMULATIVE = {
    "cumsum": (lambda x, d: jnp.cumsum(x, d), lambda x, d: torch.cumsum(x, d)),
    "cumprod": (lambda x, d: jnp.cumprod(x, d), lambda x, d: torch.cumprod(x, d)),
    "cummax": (lambda x, d: lax.cummax(x, d), lambda x, d: torch.cummax(x, d)[0]),
    "cummin": (lambda x, d: lax.cummin(x, d), lambda x, d: torch.cummin(x, d)[0]),
}
for member, (in_jax, in_torch) in CUMULATIVE.items():
    for klass, shape, axes, dtype in SHAPES:
        if member != "cumsum" and klass not in ("cache", "permuted"):
            continue
        if klass == "bf16":
            continue  # the others add up in bf16
        rule = uniform(0.99, 1.01) if member == "cumprod" else None
        case("cumulative", klass, {"x": (dtype, shape, rule)},
             f"%y = {member} %x {{axis = {axes[0]}}}",
             lambda x, f=in_jax, d=axes[0]: f(x, d), lambda x, f=in_torch, d=axes[0]: f(x, d),
             wrt="x", member=member, tolerance=1e-3 if dtype == "f32" else None)
through("cumulative", "cumsum_backward")

for klass, shape, axes, dtype in SHAPES:
    axis = axes[0]
    case("softmax", klass, {"x": (dtype, shape)}, f"%y = softmax %x {{axis = {axis}}}",
         lambda x, d=axis: nn.softmax(x, d), lambda x, d=axis: torch.softmax(x, d), wrt="x")
    for member, in_jax, in_torch in (
            ("arg_max", lambda x, d: lax.argmax(x, d, "int32"), lambda x, d: torch.argmax(x, d)),
            ("arg_min", lambda x, d: lax.argmin(x, d, "int32"), lambda x, d: torch.argmin(x, d))):
        if member == "arg_min" and klass != "cache":
            continue
        case("arg_reduce", klass, {"x": (dtype, shape)}, f"%y = {member} %x {{axis = {axis}}}",
             lambda x, f=in_jax, d=axis: f(x, d), lambda x, f=in_torch, d=axis: f(x, d),
             member=member, compare=dtype != "bf16")


def sorted_in_jax(x, axis):
    return tuple(lax.sort((x, lax.broadcasted_iota("int32", x.shape, axis)), dimension=axis,
                          num_keys=1))


for klass, shape, axis, dtype in (
        ("tiny", (4, 8), 1, "f32"), ("cache", (512, 512), 1, "f32"),
        ("memory", (2048, 2048), 1, "f32"), ("short rows", (100000, 8), 1, "f32"),
        ("long rows", (2, 500000), 1, "f32"), ("odd", (1021, 509), 1, "f32"),
        ("f64", (512, 512), 1, "f64"), ("permuted", (1024, 512), 0, "f32")):
    case("sort", klass, {"x": (dtype, shape)}, f"%y, %z = sort %x {{axis = {axis}}}",
         lambda x, d=axis: sorted_in_jax(x, d),
         lambda x, d=axis: tuple(torch.sort(x, dim=d, stable=True)), wrt="x", returns="y z")
    if axis == 1:
        count = min(shape[1], 10 if shape[1] < 10000 else 50)
        case("top_k", klass, {"x": (dtype, shape)}, f"%y, %z = top_k %x {{k = {count}}}",
             lambda x, k=count: tuple(lax.top_k(x, k)),
             lambda x, k=count: tuple(torch.topk(x, k)), wrt="x", returns="y z")
case("sort", "cache", {"x": ("i32", (512, 512), integers(100000))}, "%y, %z = sort %x {axis = 1}",
     lambda x: sorted_in_jax(x, 1), lambda x: tuple(torch.sort(x, dim=1, stable=True)),
     returns="y z",
     member="i32")
case("sort", "long rows", {"x": (1000000,)}, "%y, _ = sort %x {axis = 0}",
     lambda x: jnp.sort(x), lambda x: torch.sort(x, stable=True)[0], member="values_alone", wrt="x")

NORMED = [("tiny", (2, 16), "f32"), ("cache", (512, 512), "f32"), ("memory", (4096, 1024), "f32"),
          ("short rows", (100000, 16), "f32"), ("long rows", (16, 100000), "f32"),
          ("odd", (1021, 509), "f32"), ("f64", (512, 512), "f64"), ("bf16", (512, 512), "bf16")]


def layer_norm(x, g, b, axis=-1):
    centred = x - jnp.mean(x, axis, keepdims=True)
    return centred * lax.rsqrt(jnp.mean(jnp.square(centred), axis, keepdims=True) + 1e-5) * g + b


def rms_norm(x, g, b):
    return x * lax.rsqrt(jnp.mean(jnp.square(x), -1, keepdims=True) + 1e-5) * g + b


for klass, shape, dtype in NORMED:
    width = shape[-1:]
    feeds = {"x": (dtype, shape), "g": (dtype, width), "b": (dtype, width)}
    case("layer_norm", klass, feeds, "%y = layer_norm %x, %g, %b", layer_norm,
         lambda x, g, b: F.layer_norm(x, x.shape[-1:], g, b), wrt="x g b")
    case("rms_norm", klass, feeds, "%y = rms_norm %x, %g, %b", rms_norm,
         lambda x, g, b: F.rms_norm(x, x.shape[-1:], g, 1e-5) + b, wrt="x g b")
    both = {"x": (dtype, shape), "r": (dtype, shape), "g": (dtype, width), "b": (dtype, width)}
    if klass in ("cache", "memory", "bf16"):
        case("fused_residual_ln", klass, both, "%y, %z = fused_residual_ln %x, %r, %g, %b",
             lambda x, r, g, b: (layer_norm(x + r, g, b), x + r),
             lambda x, r, g, b: (F.layer_norm(x + r, x.shape[-1:], g, b), x + r),
             wrt="x r g b", returns="y z")
        case("fused_residual_rms_norm", klass, both,
             "%y, %z = fused_residual_rms_norm %x, %r, %g, %b",
             lambda x, r, g, b: (rms_norm(x + r, g, b), x + r),
             lambda x, r, g, b: (F.rms_norm(x + r, x.shape[-1:], g, 1e-5) + b, x + r),
             wrt="x r g b", returns="y z")
        case("fused_swiglu", klass, {"x": (dtype, shape)}, "%y = fused_swiglu %x",
             lambda x: (lambda u, g: nn.silu(g) * u)(*jnp.split(x, 2, -1)),
             lambda x: (lambda u, g: F.silu(g) * u)(*x.chunk(2, -1)), wrt="x")


def group_norm(x, g, b, groups=8):
    parts = x.reshape(x.shape[0], groups, -1)
    centred = parts - jnp.mean(parts, -1, keepdims=True)
    flat = centred * lax.rsqrt(jnp.mean(jnp.square(centred), -1, keepdims=True) + 1e-5)
    return flat.reshape(x.shape) * g[:, None, None] + b[:, None, None]


def batch_norm(x, g, b, m, v, shape):
    wide = lambda a: a.reshape(shape)
    return wide(g) * (x - wide(m)) * lax.rsqrt(wide(v) + 1e-5) + wide(b)


for klass, shape in (("cache", (4, 32, 16, 16)), ("memory", (16, 64, 56, 56)),
                     ("odd", (3, 24, 27, 31))):
    channels = (shape[1],)
    case("group_norm", klass, {"x": shape, "g": channels, "b": channels},
         "%y = group_norm %x, %g, %b {num_groups = 8}", group_norm,
         lambda x, g, b: F.group_norm(x, 8, g, b), wrt="x g b")
    case("batch_norm_inference", klass,
         {"x": shape, "g": channels, "b": channels, "m": channels,
          "v": ("f32", channels, uniform(0.5, 2))},
         "%y = batch_norm_inference %x, %g, %b, %m, %v {axis = 1}",
         lambda x, g, b, m, v: batch_norm(x, g, b, m, v, (-1, 1, 1)),
         lambda x, g, b, m, v: F.batch_norm(x, m, v, g, b), wrt="x g b")
case("batch_norm_inference", "short rows",
     {"x": (100000, 16), "g": (16,), "b": (16,), "m": (16,), "v": ("f32", (16,), uniform(0.5, 2))},
     "%y = batch_norm_inference %x, %g, %b, %m, %v {axis = 1}",
     lambda x, g, b, m, v: batch_norm(x, g, b, m, v, (16,)),
     lambda x, g, b, m, v: F.batch_norm(x, m, v, g, b), wrt="x g b")
through("layer_norm", "layer_norm_backward")
through("rms_norm", "rms_norm_backward")
through("group_norm", "group_norm_backward")
through("batch_norm_inference", "batch_norm_inference_backward")

# Random numbers differ between systems, so only their making is compared. JAX counts its bits by
# a generator of the same cost class (Threefry) or by the machine's own (rbg); PyTorch has Philox.
for klass, shape in (("tiny", (16,)), ("cache", (65536,)), ("memory", (4194304,))):
    for member, body, in_jax, in_torch in (
            ("rng_normal", "%r = rng_normal {{shape = {0}, key = 7}}",
             lambda k, s: jax.random.normal(k, s), lambda s: torch.randn(s)),
            ("rng_uniform", "%r = rng_uniform {{shape = {0}, key = 7}}",
             lambda k, s: jax.random.uniform(k, s), lambda s: torch.rand(s)),
            ("rng_bits", "%r = rng_bits {{shape = {0}, key = 7}}",
             lambda k, s: jax.random.bits(k, s), lambda s: torch.randint(0, 2**31, s,
                                                                          dtype=torch.int32))):
        case(member, klass, {"k": ("u32", (4,), integers(1000))},
             body.format(list(shape)) + "\n%y = reshape %r {new_shape = [-1]}",
             lambda k, f=in_jax, s=shape: f(jax.random.wrap_key_data(k, impl="rbg"), s),
             lambda k, f=in_torch, s=shape: f(s), compare=False)
case("sample", "cache", {"x": (64, 32000), "k": ("u32", (4,), integers(1000))},
     "%y = sample %x {top_k = 50, temperature = 0.8, key = 3}",
     lambda x, k: (lambda v, i: jnp.take_along_axis(i, jax.random.categorical(
         jax.random.wrap_key_data(k, impl="rbg"), v / 0.8)[:, None], 1)[:, 0])(*lax.top_k(x, 50)),
     lambda x, k: (lambda v, i: i.gather(1, torch.multinomial(torch.softmax(v / 0.8, -1), 1))[:,
                                                                                              0])(
         *torch.topk(x, 50)), compare=False, member="top_50")
case("sample", "cache", {"x": (64, 32000), "k": ("u32", (4,), integers(1000))},
     "%y = sample %x {key = 3}",
     lambda x, k: jax.random.categorical(jax.random.wrap_key_data(k, impl="rbg"), x),
     lambda x, k: torch.multinomial(torch.softmax(x, -1), 1)[:, 0], compare=False)
case("sample", "long rows", {"x": (4, 128000), "k": ("u32", (4,), integers(1000))},
     "%y = sample %x {top_p = 0.9, key = 3}", None,
     lambda x, k: (lambda v, i: i.gather(1, torch.multinomial(torch.where(
         torch.cumsum(v, 1) - v < 0.9, v, 0.0), 1))[:, 0])(
             *torch.sort(torch.softmax(x, -1), 1, descending=True)), compare=False, member="top_p")
for klass, shape in (("cache", (512, 512)), ("memory", (2048, 2048))):
    case("iota", klass, {"x": ("i32", shape, integers(512))},
         f"%i = iota {{shape = {list(shape)}, axis = 1}}\n%y = lt %i, %x",
         lambda x: lax.broadcasted_iota("int32", x.shape, 1) < x,
         lambda x: torch.arange(x.shape[1], dtype=torch.int32) < x)
