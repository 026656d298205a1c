"""Matrix products of all shapes, convolutions, pooling and linear algebra."""

from cases import (case, in_dtype, integers, normal, positive_definite, spread, through,
                   well_conditioned)
from lazy import F, jax, jnp, jsp, lax, nn, torch

MATMUL = [  # member, class, shapes of the operands, dtype
    ("matmul", "tiny", (4, 4), (4, 4), "f32"), ("matmul", "cache", (256, 256), (256, 256), "f32"),
    ("matmul", "memory", (1024, 1024), (1024, 1024), "f32"),
    ("matmul", "odd", (509, 257), (257, 331), "f32"),
    ("matmul", "f64", (512, 512), (512, 512), "f64"),
    ("matmul", "bf16", (512, 512), (512, 512), "bf16"),
    ("tall", "memory", (32768, 64), (64, 64), "f32"), ("wide", "memory", (64, 64), (64, 32768),
                                                       "f32"),
    ("deep", "memory", (64, 32768), (32768, 64), "f32"),
    ("row", "memory", (1, 2048), (2048, 2048), "f32"),
    ("column", "memory", (2048, 2048), (2048, 1), "f32"),
    ("outer", "memory", (2048, 1), (1, 2048), "f32"),
    ("batched_3", "short rows", (50000, 3, 3), (50000, 3, 3), "f32"),
    ("batched_4", "short rows", (20000, 4, 4), (20000, 4, 4), "f32"),
    ("batched_16", "short rows", (2000, 16, 16), (2000, 16, 16), "f32"),
    ("batched_64", "cache", (64, 64, 64), (64, 64, 64), "f32"),
    ("batched_rows", "short rows", (4096, 1, 32), (4096, 32, 32), "f32"),
    ("shared", "cache", (64, 32, 128), (128, 128), "f32"), ("tall", "f64", (32768, 64), (64, 64),
                                                            "f64"),
    ("i32", "cache", (128, 128), (128, 128), "i32")]
for member, klass, a, b, dtype in MATMUL:
    rule = integers(10) if dtype == "i32" else None
    case("matmul", klass, {"a": (dtype, a, rule), "b": (dtype, b, rule)}, "%y = matmul %a, %b",
         lambda a, b: a @ b, lambda a, b: a @ b, wrt="" if dtype == "i32" else "a b", member=member,
         tolerance=3e-4 if dtype == "f32" else None)
for member, body, twin in (
        ("a_transposed", "%t = transpose %a {perm = [1, 0]}\n%y = matmul %t, %b", lambda a,
         b: a.T @ b),
        ("b_transposed", "%t = transpose %b {perm = [1, 0]}\n%y = matmul %a, %t", lambda a,
         b: a @ b.T),
        ("plus_bias_relu", "%p = matmul %a, %b\n%s = add %p, %a\n%y = relu %s", None)):
    case("matmul", "permuted", {"a": (512, 512), "b": (512, 512)}, body,
         twin or (lambda a, b: nn.relu(a @ b + a)), twin or (lambda a, b: torch.relu(a @ b + a)),
         wrt="a b", member=member, tolerance=3e-4)

DOT = [  # member, class, shapes, attributes, and the same as a sum over letters
    ("heads", "cache", (8, 128, 8, 32), (8, 128, 8, 32),
     "lhs_contracting = [3], rhs_contracting = [3], "
     "lhs_batch = [0, 2], rhs_batch = [0, 2]", "bqhd,bkhd->bhqk"),
    ("two_axes", "memory", (64, 32, 256), (32, 256, 128), "lhs_contracting = [1, 2], "
     "rhs_contracting = [0, 1]", "iab,abj->ij"),
    ("inner", "permuted", (64, 512, 32), (512, 64), "lhs_contracting = [1], rhs_contracting = [0]",
     "ikj,kl->ijl"),
    ("batch_last", "permuted", (64, 48, 100), (48, 40, 100), "lhs_contracting = [1], "
     "rhs_contracting = [0], lhs_batch = [2], rhs_batch = [2]", "ikb,kjb->bij"),
    ("elements", "memory", (4096, 512), (4096, 512),
     "lhs_contracting = [1], rhs_contracting = [1], "
     "lhs_batch = [0], rhs_batch = [0]", "bi,bi->b")]
for member, klass, a, b, attributes, letters in DOT:
    case("dot_general", klass, {"a": a, "b": b}, f"%y = dot_general %a, %b {{{attributes}}}",
         lambda a, b, l=letters: jnp.einsum(l, a, b), lambda a, b, l=letters: torch.einsum(l, a, b),
         wrt="a b", member=member, tolerance=3e-4)

WEIGHTS = {"x": (256, 512), "w": (512, 512), "b": (512,)}
for op, activation in (("fused_matmul_bias_act", "gelu"), ("linear", "relu"), ("linear_fused",
                                                                               "silu")):
    act = {"gelu": (lambda x: nn.gelu(x, approximate=False), lambda x: F.gelu(x)),
           "relu": (lambda x: nn.relu(x), lambda x: torch.relu(x)),
           "silu": (lambda x: nn.silu(x), lambda x: F.silu(x))}[activation]
    for klass, feeds in (("cache", WEIGHTS), ("bf16", in_dtype("bf16", WEIGHTS))):
        case(op, klass, feeds, f"%y = {op} %x, %w, %b {{activation = {activation}}}",
             lambda x, w, b, f=act[0]: f(x @ w + b), lambda x, w, b, f=act[1]: f(torch.addmm(b, x,
                                                                                             w)),
             wrt="x w b", tolerance=6e-2 if klass == "bf16"
             else 3e-4)
case("lora_matmul", "cache", {"x": (256, 512), "w": (512, 512), "a": (512, 8), "b": (8, 512)},
     "%y = lora_matmul %x, %w, %a, %b {scale = 2.0}",
     lambda x, w, a, b: x @ w + 2 * ((x @ a) @ b), lambda x, w, a, b: x @ w + 2 * ((x @ a) @ b),
     wrt="x a b", tolerance=3e-4)


def grouped_in_torch(x, w, ids):
    out = torch.empty(x.shape[0], w.shape[2])
    for expert in range(w.shape[0]):
        rows = (ids == expert).nonzero()[:, 0]
        out = out.index_copy(0, rows, x[rows] @ w[expert])
    return out


def grouped_in_jax(x, w, ids):
    order = jnp.argsort(ids)
    sizes = jnp.zeros(w.shape[0], "int32").at[ids].add(1)
    found = lax.ragged_dot(x[order], w, sizes)
    return jnp.zeros_like(found).at[order].set(found, unique_indices=True)


for klass, rows, experts, width in (("cache", 256, 8, 128), ("memory", 2048, 16, 256)):
    case("grouped_matmul", klass, {"x": (rows, width), "w": (experts, width, width),
                                   "ids": ("i32", (rows,), integers(experts))},
         "%y = grouped_matmul %x, %w, %ids", grouped_in_jax, grouped_in_torch, wrt="x w",
         tolerance=3e-4)
through("grouped_matmul", "grouped_matmul_backward")

CONV = [  # member, class, image, kernel, stride, padding, groups
    ("3x3", "cache", (4, 32, 32, 32), (32, 32, 3, 3), 1, 1, 1),
    ("3x3", "memory", (16, 64, 56, 56), (64, 64, 3, 3), 1, 1, 1),
    ("3x3", "tiny", (1, 3, 8, 8), (4, 3, 3, 3), 1, 1, 1),
    ("3x3", "odd", (3, 17, 37, 41), (23, 17, 3, 3), 1, 1, 1),
    ("1x1", "cache", (8, 128, 28, 28), (128, 128, 1, 1), 1, 0, 1),
    ("7x7_stride_2", "memory", (8, 3, 224, 224), (64, 3, 7, 7), 2, 3, 1),
    ("depthwise", "memory", (8, 128, 56, 56), (128, 1, 3, 3), 1, 1, 128),
    ("groups", "cache", (8, 64, 28, 28), (64, 16, 3, 3), 1, 1, 4),
    ("stride_2", "cache", (8, 64, 56, 56), (128, 64, 3, 3), 2, 1, 1),
    ("first_layer", "cache", (64, 1, 28, 28), (32, 1, 5, 5), 1, 2, 1)]
for member, klass, image, kernel, stride, padding, groups in CONV:
    s, p = [stride] * 2, [padding] * 2
    case("conv", klass, {"x": image, "w": ("f32", kernel, normal(0.1))},
         f"%y = conv %x, %w {{stride = {s}, padding = {p}, groups = {groups}}}",
         lambda x, w, s=s, p=padding, g=groups: lax.conv_general_dilated(
             x, w, s, [(p, p)] * 2, feature_group_count=g),
         lambda x, w, s=stride, p=padding, g=groups: F.conv2d(x, w, None, s, p, groups=g),
         wrt="x w", member=member, tolerance=3e-4)
case("conv", "long rows", {"x": (8, 64, 4096), "w": ("f32", (64, 64, 5), normal(0.1))},
     "%y = conv %x, %w {stride = [1], padding = [2], dilation = [1]}",
     lambda x, w: lax.conv_general_dilated(x, w, (1,), [(2, 2)]),
     lambda x, w: F.conv1d(x, w, None, 1, 2), wrt="x w", member="one_axis", tolerance=3e-4)
case("conv", "cache", {"x": (2, 8, 16, 24, 24), "w": ("f32", (16, 8, 3, 3, 3), normal(0.1))},
     "%y = conv %x, %w {stride = [1, 1, 1], padding = [1, 1, 1], dilation = [1, 1, 1]}",
     lambda x, w: lax.conv_general_dilated(x, w, (1, 1, 1), [(1, 1)] * 3),
     lambda x, w: F.conv3d(x, w, None, 1, 1), wrt="x w", member="three_axes", tolerance=3e-4)
through("conv", "conv2d_backward_input", "conv2d_backward_weight")

POOL = {"max": (lambda x, k, s: lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, k, k), (1, 1, s, s),
                                                  "VALID"),
                lambda x, k, s: F.max_pool2d(x, k, s)),
        "mean": (lambda x, k, s: lax.reduce_window(x, 0.0, lax.add, (1, 1, k, k), (1, 1, s, s),
                                                   "VALID")
                 / (k * k), lambda x, k, s: F.avg_pool2d(x, k, s)),
        "sum": (lambda x, k, s: lax.reduce_window(x, 0.0, lax.add, (1, 1, k, k), (1, 1, s, s),
                                                  "VALID"),
                lambda x, k, s: F.avg_pool2d(x, k, s, divisor_override=1))}
for kind, (in_jax, in_torch) in POOL.items():
    for klass, shape, k, s in (("cache", (8, 16, 32, 32), 2, 2), ("memory", (16, 64, 56, 56), 2, 2),
                               ("odd", (3, 17, 55, 61), 3, 2), ("permuted", (8, 32, 56, 56), 3, 1)):
        if kind == "sum" and klass != "cache":
            continue
        case("pool", klass, {"x": shape},
             f"%y = pool %x {{kind = {kind}, kernel_size = [{k}, {k}], stride = [{s}, {s}]}}",
             lambda x, f=in_jax, k=k, s=s: f(x, k, s), lambda x, f=in_torch, k=k, s=s: f(x, k, s),
             wrt="x", member=kind)
case("max_pool2d_select", "cache", {"x": (8, 16, 32, 32), "v": (8, 16, 32, 32)},
     "%y = max_pool2d_select %x, %v {kernel_size = [2, 2], stride = [2, 2]}",
     lambda x, v: jax.jvp(lambda a: POOL["max"][0](a, 2, 2), (x,), (v,))[1],
     lambda x, v: (lambda i: v.flatten(2).gather(2, i.flatten(2)).reshape(i.shape))(
         F.max_pool2d(x, 2, 2, return_indices=True)[1]), wrt="v")
through("pool", "max_pool2d_backward")

# Linear algebra. Gradients of factors are those of the first one.
SQUARE = [("tiny", (4, 4), "f32"), ("cache", (128, 128), "f32"), ("memory", (512, 512), "f32"),
          ("odd", (213, 213), "f32"), ("f64", (256, 256), "f64"), ("short rows", (4096, 4, 4),
                                                                   "f32")]




for klass, shape, dtype in SQUARE:
    loose = None if dtype == "f64" else 2e-3
    batch, size = shape[:-2], shape[-1]
    if batch:
        feeds = {"a": (dtype, shape, well_conditioned), "b": (dtype, batch + (size, 1))}
        case("batched_dense_solve", klass, feeds, "%y = batched_dense_solve %a, %b",
             lambda a, b: jnp.linalg.solve(a, b), lambda a, b: torch.linalg.solve(a, b),
             wrt="a b", tolerance=loose)
    else:
        feeds = {"a": (dtype, shape, well_conditioned), "b": (dtype, (size, 16))}
        case("dense_solve", klass, feeds, "%y = dense_solve %a, %b",
             lambda a, b: jnp.linalg.solve(a, b), lambda a, b: torch.linalg.solve(a, b),
             wrt="a b", tolerance=loose)
    feeds = {"a": (dtype, shape, positive_definite), "b": (dtype, batch + (size, 16))}
    case("triangular_solve", klass, feeds, "%y = triangular_solve %a, %b",
         lambda a, b: jsp.linalg.solve_triangular(a, b, lower=True),
         lambda a, b: torch.linalg.solve_triangular(torch.tril(a), b, upper=False), wrt="a b",
         tolerance=loose)
    case("cholesky", klass, {"a": (dtype, shape, positive_definite)}, "%y = cholesky %a",
         lambda a: jnp.linalg.cholesky(a), lambda a: torch.linalg.cholesky(a),
         wrt="a", tolerance=loose)
    case("lu", klass, {"a": (dtype, shape, well_conditioned)}, "%y, _, _ = lu %a",
         lambda a: lax.linalg.lu(a)[0], lambda a: torch.linalg.lu_factor(a)[0], wrt="a",
         tolerance=loose)
    case("det", klass, {"a": (dtype, shape, lambda g, s: well_conditioned(g, s) / 2)},
         "%y = det %a", lambda a: jnp.linalg.det(a), lambda a: torch.linalg.det(a), wrt="a",
         tolerance=loose)
    case("qr", klass, {"a": (dtype, shape, spread)}, "%q, %r = qr %a\n%y = mul %q, %q",
         lambda a: jnp.square(jnp.linalg.qr(a)[0]), lambda a: torch.square(torch.linalg.qr(a)[0]),
         wrt="a", tolerance=loose)
    case("eigh", klass, {"a": (dtype, shape, positive_definite)},
         "%y, %v = eigh %a\n%z = mul %v, %v",
         lambda a: (lambda w, v: (w, v * v))(*jnp.linalg.eigh(a)),
         lambda a: (lambda w, v: (w, v * v))(*torch.linalg.eigh(a)), wrt="a", returns="y z",
         tolerance=loose and 3e-2, compare=size <= 256)
    case("svd", klass, {"a": (dtype, shape, spread)}, "_, %y, _ = svd %a",
         lambda a: jnp.linalg.svd(a, full_matrices=False)[1],
         lambda a: torch.linalg.svd(a, full_matrices=False)[1], wrt="a", tolerance=loose)
    if size > 256:
        continue
    case("matrix_exp", klass, {"a": (dtype, shape, normal(0.3 / size**0.5))}, "%y = matrix_exp %a",
         lambda a: jsp.linalg.expm(a), lambda a: torch.linalg.matrix_exp(a), wrt="a",
         tolerance=loose)
    case("pinv", klass, {"a": (dtype, shape, spread)}, "%y = pinv %a",
         lambda a: jnp.linalg.pinv(a), lambda a: torch.linalg.pinv(a), wrt="a", tolerance=loose)
for klass, shape in (("tiny", (4, 4)), ("cache", (64, 64)), ("short rows", (4096, 3, 3))):
    case("adjugate", klass, {"a": ("f32", shape, lambda g, s: well_conditioned(g, s) / 2)},
         "%y = adjugate %a",
         lambda a: jnp.linalg.det(a)[..., None, None] * jnp.linalg.inv(a),
         lambda a: torch.linalg.det(a)[..., None, None] * torch.linalg.inv(a), wrt="a",
         tolerance=5e-3)
