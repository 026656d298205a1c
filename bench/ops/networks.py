"""Attention, embeddings of positions, losses, whole blocks, spectra, and codes of few bits."""

from cases import case, complexes, in_dtype, integers, normal, skip, through, uniform, without_gradient
from lazy import F, jax, jnp, lax, nn, torch
from reductions import layer_norm

# class, member, batch, heads, heads of keys, queries, keys, width, mask
ATTENTION = [
    ("tiny", "attention", 1, 1, 1, 4, 4, 8, "none"), ("cache", "attention", 4, 8, 8, 128, 128, 64,
                                                      "none"),
    ("memory", "attention", 2, 8, 8, 1024, 1024, 64, "none"),
    ("cache", "causal", 4, 8, 8, 128, 128, 64, "causal"),
    ("memory", "causal", 2, 8, 8, 1024, 1024, 64, "causal"),
    ("memory", "window", 1, 8, 8, 2048, 2048, 64, "sliding_window(256)"),
    ("cache", "grouped", 4, 16, 4, 128, 128, 64, "causal"), ("cache", "bias", 4, 8, 8, 128, 128, 64,
                                                             "bias"),
    ("short rows", "one_query", 8, 16, 16, 1, 2048, 64, "none"),
    ("odd", "attention", 3, 5, 5, 61, 83, 40, "none"), ("short rows", "small_heads", 64, 4, 4, 32,
                                                        32, 8, "none"),
    ("f64", "attention", 2, 4, 4, 128, 128, 64, "none"), ("bf16", "attention", 4, 8, 8, 128, 128,
                                                          64, "none")]


def allowed(kind, queries, keys, xp):
    behind = xp.arange(keys)[None] - xp.arange(queries)[:, None] - (keys - queries)
    inside = behind <= 0
    return inside & (behind >= -256) if kind.startswith("sliding") else inside


def attention_in_jax(q, k, v, *bias, kind):
    repeats = q.shape[1] // k.shape[1]
    if repeats > 1:
        k, v = (jnp.repeat(a, repeats, 1) for a in (k, v))
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) * q.shape[-1] ** -0.5
    if bias:
        scores = scores + bias[0]
    if kind not in ("none", "bias"):
        scores = jnp.where(allowed(kind, q.shape[2], k.shape[2], jnp), scores, -jnp.inf)
    return jnp.einsum("bhqk,bhkd->bhqd", nn.softmax(scores), v)


def attention_in_torch(q, k, v, *bias, kind):
    mask = bias[0] if bias else None
    if kind.startswith("sliding"):
        mask = allowed(kind, q.shape[2], k.shape[2], torch)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=kind == "causal",
                                          enable_gqa=q.shape[1] != k.shape[1])


for klass, member, batch, heads, kv, queries, keys, width, kind in ATTENTION:
    dtype = klass if klass in ("f64", "bf16") else "f32"
    feeds = {"q": (batch, heads, queries, width), "k": (batch, kv, keys, width),
             "v": (batch, kv, keys, width)}
    if kind == "bias":
        feeds["b"] = (1, heads, queries, keys)
    operands = ", ".join("%" + n for n in feeds)
    case("attention", klass, in_dtype(dtype, feeds),
         f"%y = attention {operands} {{num_heads = {heads}, head_dim = {width}, "
         f"mask_kind = {kind}, "
         f"num_kv_heads = {kv}, layout = bhsd}}",
         lambda *a, m=kind: attention_in_jax(*a, kind=m),
         lambda *a, m=kind: attention_in_torch(*a, kind=m), wrt="q k v", member=member)
through("attention", "attention_backward")


def turned(x, cos, sin, cat):
    half = cos.shape[-1]
    a, b = x[..., :half], x[..., half:]
    cos, sin = cos[:, None], sin[:, None]
    return cat([a * cos - b * sin, b * cos + a * sin], -1)


for klass, batch, length, heads in (("cache", 4, 128, 8), ("memory", 8, 512, 16), ("odd", 3, 61,
                                                                                   5)):
    shape, table = (batch, length, heads, 64), (length, 32)
    case("rope", klass, {"x": shape, "c": table, "s": table},
         "%y = rope %x, %c, %s {head_dim = 64}",
         lambda x, c, s: turned(x, c, s, jnp.concatenate), lambda x, c, s: turned(x, c, s,
                                                                                  torch.cat),
         wrt="x")
through("rope", "rope_backward")


def axial(x, xp, stack):
    """A grid of 16 by 16 tokens, four heads of width 32."""
    batch = x.shape[0]
    f = 10000.0 ** (-4 * xp.arange(8) / 32)
    place = xp.arange(256)
    angles = xp.concatenate if hasattr(xp, "concatenate") else xp.cat
    phi = angles([(place % 16)[:, None] * f, (place // 16)[:, None] * f], 1)
    cos, sin = xp.cos(phi)[:, None], xp.sin(phi)[:, None]
    pairs = x.reshape(batch, 256, 4, 16, 2)
    a, b = pairs[..., 0], pairs[..., 1]
    return stack([a * cos - b * sin, a * sin + b * cos], -1).reshape(x.shape)


case("axial_rope2d", "cache", {"x": (8, 256, 128)},
     "%y = axial_rope2d %x {end_x = 16, end_y = 16, head_dim = 32, num_heads = 4}",
     lambda x: axial(x, jnp, jnp.stack), lambda x: axial(x, torch, torch.stack), wrt="x")


def loss_in_jax(x, labels):
    return nn.logsumexp(x, axis=-1) - jnp.take_along_axis(x, labels[:, None], 1)[:, 0]


for klass, rows, classes, dtype in (
        ("tiny", 4, 10, "f32"), ("cache", 512, 512, "f32"), ("memory", 512, 16384, "f32"),
        ("short rows", 100000, 10, "f32"), ("long rows", 16, 128000, "f32"), ("odd", 509, 1021,
                                                                              "f32"),
        ("f64", 512, 512, "f64"), ("bf16", 512, 512, "bf16")):
    case("softmax_cross_entropy_with_logits", klass,
         {"x": (dtype, (rows, classes)), "labels": ("i32", (rows,), integers(classes))},
         "%y = softmax_cross_entropy_with_logits %x, %labels", loss_in_jax,
         lambda x, labels: F.cross_entropy(x, labels, reduction="none"), wrt="x")
through("softmax_cross_entropy_with_logits", "softmax_cross_entropy_backward")

WIDTH, HEADS = 256, 8
BLOCK = {"x": (4, 64, WIDTH), "qkv": ("f32", (WIDTH, 3 * WIDTH), normal(0.05)),
         "o": ("f32", (WIDTH, WIDTH), normal(0.05))}
LAYER = {**BLOCK, "g1": ("f32", (WIDTH,), uniform(0.5, 1.5)), "u": ("f32", (WIDTH, 1024),
                                                                    normal(0.05)),
         "d": ("f32", (1024, WIDTH), normal(0.05)), "g2": ("f32", (WIDTH,), uniform(0.5, 1.5))}


def block_in_jax(x, qkv, o):
    heads = lambda a: a.reshape(a.shape[:2] + (HEADS, -1)).swapaxes(1, 2)
    q, k, v = map(heads, jnp.split(x @ qkv, 3, -1))
    return attention_in_jax(q, k, v, kind="causal").swapaxes(1, 2).reshape(x.shape) @ o


def block_in_torch(x, qkv, o):
    heads = lambda a: a.unflatten(-1, (HEADS, -1)).transpose(1, 2)
    q, k, v = map(heads, (x @ qkv).chunk(3, -1))
    return attention_in_torch(q, k, v, kind="causal").transpose(1, 2).flatten(2) @ o


def layer_in_jax(x, qkv, o, g1, u, d, g2):
    h = layer_norm(block_in_jax(x, qkv, o) + x, g1, 0)
    return layer_norm(nn.gelu(h @ u, approximate=False) @ d + h, g2, 0)


def layer_in_torch(x, qkv, o, g1, u, d, g2):
    h = F.layer_norm(block_in_torch(x, qkv, o) + x, (WIDTH,), g1)
    return F.layer_norm(F.gelu(h @ u) @ d + h, (WIDTH,), g2)


case("fused_attention_block", "cache", BLOCK, "%y = fused_attention_block %x, %qkv, %o "
     f"{{num_heads = {HEADS}, head_dim = {WIDTH // HEADS}, mask_kind = causal}}",
     block_in_jax, block_in_torch, wrt="x qkv o", tolerance=3e-4)
case("fused_transformer_layer", "cache", LAYER,
     "%y = fused_transformer_layer %x, %qkv, %o, %g1, %u, %d, %g2 "
     f"{{num_heads = {HEADS}, head_dim = {WIDTH // HEADS}, intermediate_size = 1024, "
     "activation = gelu, mask_kind = causal}", layer_in_jax, layer_in_torch,
     wrt="x qkv o g1 u d g2", tolerance=3e-4)

# Blocks are written in ops before anything is compiled: what they cost is measured by those.
skip("written in ops that are surveyed before it is compiled", "shared_linear_pair", "swiglu",
     "residual_rms_norm", "depthwise_conv1d_causal", "llama_decoder_block", "qwen35_mtp_head")

# Spectra. What a cotangent of a complex number means differs between systems, so gradients are
# timed and not compared.
TRANSFORMS = [("tiny", (16,), "c64"), ("cache", (64, 1024), "c64"), ("memory", (64, 65536), "c64"),
              ("odd", (64, 1000), "c64"), ("long rows", (1048576,), "c64"), ("f64", (64, 1024),
                                                                             "c128"),
              ("short rows", (20000, 16), "c64")]
for klass, shape, dtype in TRANSFORMS:
    real = {"c64": "f32", "c128": "f64"}[dtype]
    case("fft", klass, {"x": (dtype, shape, complexes)}, "%y = fft %x", lambda x: jnp.fft.fft(x),
         lambda x: torch.fft.fft(x), wrt="x", compare_gradient=False)
    case("rfft", klass, {"x": (real, shape)}, "%y = rfft %x", lambda x: jnp.fft.rfft(x),
         lambda x: torch.fft.rfft(x), wrt="x", compare_gradient=False)
    bins = shape[:-1] + (shape[-1] // 2 + 1,)
    case("irfft", klass, {"x": (dtype, bins, complexes)},
         f"%y = irfft %x {{n = {shape[-1]}, norm = forward}}",
         lambda x, n=shape[-1]: jnp.fft.irfft(x, n), lambda x, n=shape[-1]: torch.fft.irfft(x, n),
         wrt="x", compare_gradient=False)
case("fft", "permuted", {"x": ("c64", (1024, 64), complexes)}, "%y = fft %x {axis = 0}",
     lambda x: jnp.fft.fft(x, axis=0), lambda x: torch.fft.fft(x, dim=0), wrt="x",
     compare_gradient=False)


def mel(power, filters, xp):
    logs = xp.log10(xp.clip(power @ filters.T, 1e-10, None))
    top = logs.max(-1, keepdims=True) if xp is not torch else torch.amax(logs, -1, keepdim=True)
    return (xp.maximum(logs, top - 8) + 4) / 4


for klass, frames in (("cache", 200), ("memory", 6000)):
    case("log_mel", klass, {"x": ("c64", (frames, 201), complexes), "f": ("f32", (80, 201),
                                                                          uniform(0, 1))},
         "%y = log_mel %x, %f", lambda x, f: mel(jnp.square(x.real) + jnp.square(x.imag), f, jnp),
         lambda x, f: mel(torch.square(x.real) + torch.square(x.imag), f, torch), wrt="x f",
         compare_gradient=False)
through("log_mel", "log_mel_backward")

# Codes of few bits.
for klass, shape in (("cache", (512, 512)), ("memory", (2048, 2048)), ("odd", (1021, 509))):
    case("quantize", klass, {"x": shape}, "%y = quantize %x {scales = [0.02]}",
         lambda x: jnp.clip(jnp.round(x / 0.02), -128, 127).astype("int8"),
         lambda x: torch.clamp(torch.round(x / 0.02), -128, 127).to(torch.int8))
    case("dequantize", klass, {"x": ("i8", shape, integers(127, -127))},
         "%y = dequantize %x {scales = [0.02]}", lambda x: x.astype("float32") * 0.02,
         lambda x: x.float() * 0.02)

    def fake_in_jax(x, lsq_scale=None):
        s = jnp.max(jnp.abs(x)) / 127 if lsq_scale is None else lsq_scale
        s = lax.stop_gradient(s)
        return x + lax.stop_gradient(jnp.clip(jnp.round(x / s), -127, 127) * s - x)

    def fake_in_torch(x):
        with torch.no_grad():
            s = x.abs().max() / 127
            rounded = torch.clamp(torch.round(x / s), -127, 127) * s
        return x + (rounded - x).detach()

    case("fake_quantize", klass, {"x": shape}, "%y = fake_quantize %x", fake_in_jax, fake_in_torch,
         wrt="x", tolerance=1e-2)
    case("fake_quantize_lsq", klass, {"x": shape, "s": ("f32", (1,), uniform(0.01, 0.02))},
         "%y = fake_quantize_lsq %x, %s",
         lambda x, s: (lambda z: s * (lax.stop_gradient(jnp.round(z) - z) + z))(
             jnp.clip(x / s, -127, 127)),
         lambda x, s: (lambda z: s * ((torch.round(z) - z).detach() + z))(
             torch.clamp(x / s, -127, 127)), wrt="x s", tolerance=1e-2)
through("fake_quantize", "fake_quantize_backward")
through("fake_quantize_lsq", "fake_quantize_lsq_backward")

CODES = integers(127, -127)
for klass, rows, depth, columns in (("cache", 256, 256, 256), ("memory", 1024, 1024, 1024),
                                    ("short rows", 1, 2048, 2048)):
    case("q_matmul", klass, {"x": ("i8", (rows, depth), CODES), "w": ("i8", (depth, columns),
                                                                      CODES)},
         "%y = q_matmul %x, %w {mult = [0.000244140625]}",
         lambda x, w: jnp.clip(jnp.round(lax.dot(x, w,
                                                 preferred_element_type="int32") * 0.000244140625),
                               -128, 127).astype("int8"),
         lambda x, w: torch.clamp(torch.round(torch._int_mm(x, w) * 0.000244140625), -128,
                                  127).to(torch.int8),
         tolerance=1e-2)
    weights = {"x": (rows, depth), "w": ("i8", (depth, columns), CODES),
               "s": ("f32", (depth // 32, columns), uniform(0.001, 0.002))}
    case("dequant_matmul", klass, weights,
         "%y = dequant_matmul %x, %w, %s {scheme = \"int8_block_32\"}",
         lambda x, w, s: x @ (w.astype("float32") * jnp.repeat(s, 32, 0)),
         lambda x, w, s: x @ (w.float() * s.repeat_interleave(32, 0)), wrt="x", tolerance=1e-3)
case("q_conv2d", "cache", {"x": ("i8", (4, 32, 28, 28), CODES), "w": ("i8", (32, 32, 3, 3), CODES)},
     "%y = q_conv2d %x, %w {padding = [1, 1], mult = [0.00048828125]}",
     lambda x, w: jnp.clip(jnp.round(lax.conv_general_dilated(
         x, w, (1, 1), [(1, 1)] * 2, preferred_element_type="int32") * 0.00048828125), -128,
         127).astype("int8"),
     lambda x, w: torch.clamp(torch.round(F.conv2d(x.float(), w.float(), None, 1,
                                                   1) * 0.00048828125),
                              -128, 127).to(torch.int8), tolerance=1e-2)

BLOCK_BYTES = integers(60)  # an f16 of such bytes is a small positive number


def q8_0(w, rows, columns):
    """Blocks of 34 bytes: an f16 scale and 32 codes. What is packed is the transpose."""
    blocks = w.reshape(-1, 34)
    scale = lax.bitcast_convert_type(blocks[:, :2], "float16").astype("float32")
    codes = lax.bitcast_convert_type(blocks[:, 2:], "int8").astype("float32")
    return (codes * scale[:, None]).reshape(-1, columns, rows).swapaxes(1, 2)


def q8_0_in_torch(w, rows, columns):
    blocks = w.reshape(-1, 34)
    scale = blocks[:, :2].contiguous().view(torch.float16).float()
    codes = blocks[:, 2:].contiguous().view(torch.int8).float()
    return (codes * scale).reshape(-1, columns, rows).transpose(1, 2)


EXPERTS, ROWS, K, N = 4, 64, 256, 256
PACKED = ("u8", (EXPERTS * K * N // 32 * 34,), BLOCK_BYTES)
case("dequant_grouped_matmul", "cache", {"x": (ROWS, K), "w": PACKED, "ids": ("i32", (ROWS,),
                                                                              integers(EXPERTS))},
     f"%y = dequant_grouped_matmul %x, %w, %ids {{scheme = \"q8_0\", n = {N}}}",
     lambda x, w, ids: jnp.einsum("mk,mkn->mn", x, q8_0(w, K, N)[ids]),
     lambda x, w, ids: torch.einsum("mk,mkn->mn", x, q8_0_in_torch(w, K, N)[ids]), wrt="x",
     tolerance=1e-3)
case("dequant_moe_weights", "cache", {"w": PACKED},
     f"%y = dequant_moe_weights %w {{scheme = \"q8_0\", k = {K}, n = {N}}}",
     lambda w: q8_0(w, K, N), lambda w: q8_0_in_torch(w, K, N))

without_gradient("codes go straight through, which the peers do not have", "quantize", "dequantize",
                 "q_matmul", "q_conv2d")
