"""Ops that move elements: views, joins, and picking and adding by index."""

from cases import case, integers, through
from lazy import F, jax, jnp, lax, torch

# What follows a view decides whether it costs anything: alone it is a copy, inside a kernel a way
# of reading.


def views(op, member, shape_class, shape, body, twin, torch_twin=None, dtype="f32"):
    case(op, shape_class, {"x": (dtype, shape)}, body, twin, torch_twin or twin, wrt="x",
         member=member)


def contiguous(f):
    return lambda x: f(x).contiguous()


def transposes():
    for shape_class, shape, dtype in (
            ("tiny", (4, 4), "f32"), ("cache", (512, 512), "f32"), ("memory", (4096, 2048), "f32"),
            ("short rows", (500000, 3), "f32"), ("long rows", (3, 500000), "f32"),
            ("odd", (1021, 1533), "f32"), ("f64", (1024, 1024), "f64"),
            ("bf16", (2048, 2048), "bf16")):
        f = lambda x: x.T
        views("transpose", "transpose", shape_class, shape, "%y = transpose %x {perm = [1, 0]}", f,
              contiguous(f), dtype)
    for member, perm in (("021", (0, 2, 1)), ("102", (1, 0, 2)), ("210", (2, 1, 0)),
                         ("120", (1, 2, 0))):
        for shape_class, shape in (("cache", (32, 64, 96)), ("memory", (128, 160, 200))):
            views("transpose", member, shape_class, shape,
                  f"%y = transpose %x {{perm = {list(perm)}}}",
                  lambda x, p=perm: jnp.transpose(x, p),
                  lambda x, p=perm: x.permute(p).contiguous())
    views("transpose", "heads", "memory", (8, 512, 16, 64),
          "%y = transpose %x {perm = [0, 2, 1, 3]}", lambda x: jnp.transpose(x, (0, 2, 1, 3)),
          lambda x: x.permute(0, 2, 1, 3).contiguous())
    views("transpose", "nchw_to_nhwc", "memory", (16, 64, 56, 56),
          "%y = transpose %x {perm = [0, 2, 3, 1]}", lambda x: jnp.transpose(x, (0, 2, 3, 1)),
          lambda x: x.permute(0, 2, 3, 1).contiguous())


transposes()

for klass, shape in (("cache", (512, 512)), ("memory", (2048, 2048)), ("odd", (1021, 509))):
    rows, columns = shape
    views("reshape", "reshape", klass, shape,
          "%t = transpose %x {perm = [1, 0]}\n"
          f"%y = reshape %t {{new_shape = [{rows * columns}]}}",
          lambda x: x.T.reshape(-1))
    views("expand", "expand", klass, (columns,), f"%y = expand %x {{target_shape = {list(shape)}}}",
          lambda x, s=shape: jnp.broadcast_to(x, s), lambda x, s=shape: x.expand(s).contiguous())
    views("expand", "columns", klass, (rows, 1), f"%y = expand %x {{target_shape = {list(shape)}}}",
          lambda x, s=shape: jnp.broadcast_to(x, s), lambda x, s=shape: x.expand(s).contiguous())
    half = columns // 2
    views("narrow", "columns", klass, shape,
          f"%y = narrow %x {{axis = 1, start = 3, len = {half}}}",
          lambda x, n=half: x[:, 3:3 + n], lambda x, n=half: x[:, 3:3 + n].contiguous())
    views("narrow", "rows", klass, shape, f"%y = narrow %x {{axis = 0, start = 3, len = {half}}}",
          lambda x, n=half: x[3:3 + n], lambda x, n=half: x[3:3 + n].clone())
    views("take_every", "columns", klass, shape, "%y = take_every %x {axis = 1, stride = 2}",
          lambda x: x[:, ::2], lambda x: x[:, ::2].contiguous())
    views("take_every", "rows", klass, shape, "%y = take_every %x {axis = 0, stride = 2}",
          lambda x: x[::2], lambda x: x[::2].contiguous())
    views("reverse", "columns", klass, shape, "%y = reverse %x {axes = [1]}",
          lambda x: x[:, ::-1], lambda x: x.flip(1))
    views("reverse", "rows", klass, shape, "%y = reverse %x {axes = [0]}",
          lambda x: x[::-1], lambda x: x.flip(0))
    zero = "%z = constant splat 0.0 : f32[]\n"
    views("pad", "pad", klass, shape, zero + "%y = pad %x, %z {low = [1, 1], high = [1, 1]}",
          lambda x: jnp.pad(x, 1), lambda x: F.pad(x, (1, 1, 1, 1)))
    for axis in (0, 1):
        case("concat", klass, {"a": shape, "b": shape, "c": shape},
             f"%y = concat %a, %b, %c {{axis = {axis}}}",
             lambda *v, d=axis: jnp.concatenate(v, d), lambda *v, d=axis: torch.cat(v, d),
             wrt="a b c", member=("rows", "columns")[axis])
    # Neighbours along both axes: what stencils are made of.
    views("pad", "five_points", klass, shape, zero + f"""
          %p = pad %x, %z {{low = [1, 1], high = [1, 1]}}
          %u = narrow %p {{axis = 0, start = 0, len = {rows}}}
          %n = narrow %u {{axis = 1, start = 1, len = {columns}}}
          %d = narrow %p {{axis = 0, start = 2, len = {rows}}}
          %s = narrow %d {{axis = 1, start = 1, len = {columns}}}
          %m = narrow %p {{axis = 0, start = 1, len = {rows}}}
          %w = narrow %m {{axis = 1, start = 0, len = {columns}}}
          %e = narrow %m {{axis = 1, start = 2, len = {columns}}}
          %a = add %n, %s
          %b = add %w, %e
          %y = add %a, %b""",
          lambda x: (lambda p: (p[:-2, 1:-1] + p[2:, 1:-1]) + (p[1:-1, :-2] + p[1:-1, 2:]))(
              jnp.pad(x, 1)),
          lambda x: (lambda p: (p[:-2, 1:-1] + p[2:, 1:-1]) + (p[1:-1, :-2] + p[1:-1, 2:]))(
              F.pad(x, (1, 1, 1, 1))))
views("expand", "expand", "short rows", (300000, 1), "%y = expand %x {target_shape = [300000, 5]}",
      lambda x: jnp.broadcast_to(x, (300000, 5)), lambda x: x.expand(300000, 5).contiguous())
case("concat", "short rows", {"a": (300000, 2), "b": (300000, 3)}, "%y = concat %a, %b {axis = 1}",
     lambda a, b: jnp.concatenate((a, b), 1), lambda a, b: torch.cat((a, b), 1), wrt="a b",
     member="columns")
views("frame", "frame", "cache", (8, 16000), "%y = frame %x {frame_len = 400, hop = 160}",
      lambda x: x[:, 160 * jnp.arange(98)[:, None] + jnp.arange(400)],
      lambda x: x.unfold(1, 400, 160).contiguous())
views("frame", "frame", "memory", (16, 320000), "%y = frame %x {frame_len = 400, hop = 160}",
      lambda x: x[:, 160 * jnp.arange(1998)[:, None] + jnp.arange(400)],
      lambda x: x.unfold(1, 400, 160).contiguous())


def overlap_in_jax(x, hop=128):
    frames, length = x.shape[-2:]
    place = hop * jnp.arange(frames)[:, None] + jnp.arange(length)
    out = jnp.zeros(x.shape[:-2] + ((frames - 1) * hop + length,), x.dtype)
    return out.at[..., place].add(x)


def overlap_in_torch(x, hop=128):
    length = (x.shape[-2] - 1) * hop + x.shape[-1]
    return F.fold(x.transpose(1, 2), (1, length), (1, x.shape[-1]), stride=(1, hop))[:, 0, 0]


views("overlap_add", "overlap_add", "cache", (4, 100, 512), "%y = overlap_add %x {hop = 128}",
      overlap_in_jax, overlap_in_torch)
views("overlap_add", "overlap_add", "memory", (8, 1000, 512), "%y = overlap_add %x {hop = 128}",
      overlap_in_jax, overlap_in_torch)


# Picking and adding by index. The class says how the picked slices lie.
INDEXED = [  # class, table, indices
    ("tiny", (10, 4), (6,)), ("cache", (1000, 64), (4096,)), ("memory", (50000, 256), (16384,)),
    ("short rows", (20000, 4), (200000,)), ("long rows", (64, 65536), (48,)),
    ("odd", (997, 33), (4099,))]
for klass, table, many in INDEXED:
    ids = ("i32", many, integers(table[0]))
    case("gather", klass, {"t": table, "i": ids}, "%y = gather %t, %i {axis = 0}",
         lambda t, i: jnp.take(t, i, axis=0, mode="clip"), lambda t, i: F.embedding(i, t), wrt="t")
    slices = many + table[1:]
    case("scatter_add", klass, {"u": slices, "i": ids},
         f"%y = scatter_add %u, %i {{out_dim = {table[0]}}}",
         lambda u, i, t=table: jnp.zeros(t, u.dtype).at[i].add(u, mode="promise_in_bounds"),
         lambda u, i, t=table: torch.zeros(t).index_add(0, i, u), wrt="u")
    for kind in ("set", "add", "max", "mul", "min"):
        if kind in ("mul", "min") and klass != "cache":
            continue
        reduced = {"max": "amax", "min": "amin", "mul": "prod"}.get(kind)
        with_index = {"set": lambda x, u, i: x.index_copy(0, i, u),
                      "add": lambda x, u, i: x.index_add(0, i, u)}.get(
                          kind, lambda x, u, i, r=reduced: x.index_reduce(0, i, u, r))
        method = {"mul": "multiply"}.get(kind, kind)
        # Which of several updates of one place stays is said by us alone.
        case("scatter", klass, {"x": table, "u": slices, "i": ids},
             f"%y = scatter %x, %u, %i {{kind = {kind}}}",
             lambda x, u, i, m=method: getattr(x.at[i], m)(u, mode="promise_in_bounds"),
             with_index, wrt="x u" if kind == "add" else "", member=kind, compare=kind != "set")
case("gather", "permuted", {"t": (256, 5000), "i": ("i32", (4000,), integers(5000))},
     "%y = gather %t, %i {axis = 1}", lambda t, i: jnp.take(t, i, axis=1, mode="clip"),
     lambda t, i: t.index_select(1, i), wrt="t")
case("gather", "f64", {"t": ("f64", (1000, 64)), "i": ("i32", (4096,), integers(1000))},
     "%y = gather %t, %i {axis = 0}", lambda t, i: jnp.take(t, i, axis=0, mode="clip"),
     lambda t, i: F.embedding(i, t), wrt="t")
case("gather", "bf16", {"t": ("bf16", (1000, 64)), "i": ("i32", (4096,), integers(1000))},
     "%y = gather %t, %i {axis = 0}", lambda t, i: jnp.take(t, i, axis=0, mode="clip"),
     lambda t, i: F.embedding(i, t), wrt="t")

ALONG = [("tiny", (4, 8), (4, 3), 1), ("cache", (512, 512), (512, 256), 1),
         ("memory", (2048, 2048), (2048, 2048), 1), ("short rows", (200000, 5), (200000, 2), 1),
         ("permuted", (512, 512), (256, 512), 0)]
for klass, shape, picked, axis in ALONG:
    ids = ("i32", picked, integers(shape[axis]))
    case("take_along_axis", klass, {"x": shape, "i": ids},
         f"%y = take_along_axis %x, %i {{axis = {axis}}}",
         lambda x, i, d=axis: jnp.take_along_axis(x, i, d, mode="clip"),
         lambda x, i, d=axis: x.gather(d, i), wrt="x")

    def added(u, i, s=shape, d=axis):
        places = [jnp.arange(u.shape[0], dtype=i.dtype)[:, None], i] if d else [
            i, jnp.arange(u.shape[1], dtype=i.dtype)]
        return jnp.zeros(s, u.dtype).at[tuple(places)].add(u, mode="promise_in_bounds")

    case("scatter_add_along_axis", klass, {"u": picked, "i": ids},
         f"%y = scatter_add_along_axis %u, %i {{axis = {axis}, axis_size = {shape[axis]}}}",
         added, lambda u, i, s=shape, d=axis: torch.zeros(s).scatter_add(d, i, u), wrt="u")

for klass, shape, axis in (("tiny", (8, 8), 0), ("cache", (512, 512), 0), ("memory", (4096, 1024),
                                                                           0),
                           ("permuted", (1024, 2048), 1)):
    length = shape[axis] // 2
    start = ("i32", (), integers(length))
    update = tuple(length if a == axis else n for a, n in enumerate(shape))
    case("dynamic_narrow", klass, {"x": shape, "i": start},
         f"%y = dynamic_narrow %x, %i {{axis = {axis}, len = {length}}}",
         lambda x, i, n=length, d=axis: lax.dynamic_slice_in_dim(x, i, n, d),
         lambda x, i, n=length, d=axis: x.narrow(d, i, n).clone(), wrt="x")
    case("dynamic_update", klass, {"x": shape, "u": update, "i": start},
         f"%y = dynamic_update %x, %u, %i {{axis = {axis}}}",
         lambda x, u, i, d=axis: lax.dynamic_update_slice_in_dim(x, u, i, d),
         lambda x, u, i, d=axis: torch.slice_scatter(x, u, d, int(i), int(i) + u.shape[d]),
         wrt="x u")
through("gather", "gather_backward")

RESIZED = [("cache", (4, 8, 32, 32), (64, 64)), ("memory", (8, 32, 64, 64), (128, 128)),
           ("odd", (3, 5, 37, 41), (55, 61))]
for klass, shape, sizes in RESIZED:
    for mode, in_jax, in_torch in (("nearest", "nearest", "nearest"),
                                   ("linear", "linear", "bilinear"), ("cubic", None, "bicubic")):
        corners = {} if mode == "nearest" else {"align_corners": False}
        twin = None if in_jax is None or (mode == "nearest" and klass == "odd") else (
            lambda x, m=in_jax, s=sizes: jax.image.resize(x, x.shape[:2] + s, m, antialias=False))
        name = "nearest-exact" if mode == "nearest" else in_torch
        case("resize", klass, {"x": shape},
             f"%y = resize %x {{sizes = {list(sizes)}, mode = {mode}}}",
             twin, lambda x, m=name, s=sizes, c=corners: F.interpolate(x, s, mode=m, **c), wrt="x",
             member=mode)

STEPS = ("steps = [reverse(input(0), axes([3])), resize(step(0), sizes([128, 128]), mode(linear)), "
         "mul(step(1), step(1))]")
case("transform_region", "cache", {"x": (4, 3, 64, 64)}, f"%y = transform_region %x {{{STEPS}}}",
     lambda x: jnp.square(jax.image.resize(x[..., ::-1], (4, 3, 128, 128), "linear",
                                           antialias=False)),
     lambda x: torch.square(F.interpolate(x.flip(3), (128, 128), mode="bilinear",
                                          align_corners=False)), wrt="x")
