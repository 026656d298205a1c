"""Element-wise, shape, indexing, reduction, selection and linear-algebra cases."""
import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
import scipy.special
from jax import lax

from reference import Family

RNG = np.random.default_rng(7)


def normal(*shape, dtype=np.float64):
    return RNG.standard_normal(shape).astype(dtype)


def uniform(low, high, *shape, dtype=np.float64):
    return RNG.uniform(low, high, shape).astype(dtype)


SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 30.0, -30.0, 700.0, -700.0, 1e-300])

UNARY = {
    "gelu": lambda x: jax.nn.gelu(x, approximate=False),
    "gelu_approx": lambda x: jax.nn.gelu(x, approximate=True),
    "silu": jax.nn.silu, "relu": jax.nn.relu, "sigmoid": jax.nn.sigmoid, "tanh": np.tanh,
    "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x),
    "neg": np.negative, "abs": np.abs, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "atan": np.arctan, "round": np.round, "erf": scipy.special.erf, "erfc": scipy.special.erfc,
    "expm1": np.expm1, "log1p": np.log1p, "exp2": np.exp2, "log2": np.log2, "sinh": np.sinh,
    "cosh": np.cosh, "asin": np.arcsin, "acos": np.arccos, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "softplus": jax.nn.softplus,
    "log_sigmoid": jax.nn.log_sigmoid, "square": np.square, "reciprocal": np.reciprocal,
    "sign": np.sign, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "is_nan": np.isnan,
    "is_finite": np.isfinite,
}
DERIVED = ["gelu", "gelu_approx", "silu", "sigmoid", "softplus", "log_sigmoid"]
JNP = {"tanh": jnp.tanh, "exp": jnp.exp, "log": jnp.log, "sqrt": jnp.sqrt, "rsqrt": lax.rsqrt,
       "neg": jnp.negative, "abs": jnp.abs, "sin": jnp.sin, "cos": jnp.cos, "tan": jnp.tan,
       "atan": jnp.arctan, "erf": jax.scipy.special.erf, "erfc": jax.scipy.special.erfc,
       "expm1": jnp.expm1, "log1p": jnp.log1p, "exp2": jnp.exp2, "log2": jnp.log2,
       "sinh": jnp.sinh, "cosh": jnp.cosh, "asin": jnp.arcsin, "acos": jnp.arccos,
       "asinh": jnp.arcsinh, "acosh": jnp.arccosh, "atanh": jnp.arctanh, "square": jnp.square,
       "reciprocal": jnp.reciprocal, "relu": jax.nn.relu,
       **{k: UNARY[k] for k in DERIVED}}
DOMAIN = {"acosh": (1.1, 4), "atanh": (-0.9, 0.9), "asin": (-0.9, 0.9), "acos": (-0.9, 0.9),
          "log": (0.1, 4), "log2": (0.1, 4), "sqrt": (0.1, 4), "rsqrt": (0.1, 4), "log1p": (-0.5, 4)}


def elementwise():
    f = Family("elementwise")
    with np.errstate(all="ignore"):
        for name, fn in UNARY.items():
            for dtype in (np.float64, np.float32):
                x = uniform(*DOMAIN.get(name, (-3, 3)), 3, 7).astype(dtype)
                expected = np.asarray(fn(x.astype(np.float64)))
                expected = expected if expected.dtype == bool else expected.astype(dtype)
                f.case(f"{name}_{np.dtype(dtype).name}", f"%y = {name} %x", {"x": x}, expected)
            if name not in DERIVED:  # JAX's own compositions differ from ours at infinities
                f.case(f"{name}_special", f"%y = {name} %x", {"x": SPECIAL}, np.asarray(fn(SPECIAL)))
    for name, fn in JNP.items():
        x = uniform(*DOMAIN.get(name, (-3, 3)), 11)
        dy = normal(11)
        dx = jax.vjp(fn, x)[1](dy)[0]
        op = "relu_backward %x, %dy" if name == "relu" else f"activation_backward %x, %dy {{kind = {name}}}"
        f.case(f"{name}_backward", f"%y = {op}", {"x": x, "dy": dy}, dx)
    binaries = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
                "max": np.maximum, "min": np.minimum, "rem": np.fmod, "atan2": np.arctan2,
                "hypot": np.hypot}
    for name, fn in binaries.items():
        a, b = normal(4, 1, 3), normal(5, 1)
        f.case(f"{name}_f64", f"%y = {name} %a, %b", {"a": a, "b": b}, fn(a, b))
        a, b = a.astype(np.float32), b.astype(np.float32)
        f.case(f"{name}_f32", f"%y = {name} %a, %b", {"a": a, "b": b}, fn(a, b))
    a, b = uniform(0.1, 3, 6), uniform(-3, 3, 6)
    f.case("pow_f64", "%y = pow %a, %b", {"a": a, "b": b}, np.power(a, b))
    for dtype in (np.int8, np.int32, np.int64, np.uint8, np.uint32):
        a = RNG.integers(1, 100, 9).astype(dtype)
        b = RNG.integers(1, 7, 9).astype(dtype)
        n = np.dtype(dtype).name
        for name, fn in {"add": np.add, "mul": np.multiply, "sub": np.subtract, "max": np.maximum,
                         "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or,
                         "bitwise_xor": np.bitwise_xor, "shift_left": np.left_shift,
                         "shift_right": np.right_shift, "rem": np.fmod}.items():
            f.case(f"{name}_{n}", f"%y = {name} %a, %b", {"a": a, "b": b}, fn(a, b))
        f.case(f"div_{n}", "%y = div %a, %b", {"a": a, "b": b}, (a // b).astype(dtype))
        f.case(f"pow_{n}", "%y = pow %a, %b", {"a": a, "b": b}, np.power(a, b))
    p, q = RNG.integers(0, 2, 8).astype(bool), RNG.integers(0, 2, 8).astype(bool)
    for name, fn in {"logical_and": np.logical_and, "logical_or": np.logical_or,
                     "logical_xor": np.logical_xor}.items():
        f.case(name, f"%y = {name} %p, %q", {"p": p, "q": q}, fn(p, q))
    f.case("logical_not", "%y = logical_not %p", {"p": p}, ~p)
    a, b = np.round(normal(5, 4)), np.round(normal(4))
    for name, fn in {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
                     "gt": np.greater, "ge": np.greater_equal}.items():
        f.case(name, f"%y = {name} %a, %b", {"a": a, "b": b}, fn(a, b))
    c = RNG.integers(0, 2, (3, 1)).astype(bool)
    a, b = normal(4), normal(3, 4)
    f.case("where", "%y = where %c, %a, %b", {"c": c, "a": a, "b": b}, np.where(c, a, b))
    x = uniform(-300, 300, 12)
    for to, dt in {"f32": np.float32, "f16": np.float16, "i32": np.int32, "i64": np.int64}.items():
        f.case(f"cast_{to}", f"%y = cast %x {{to = {to}}}", {"x": x}, x.astype(dt))
    z = normal(5) + 1j * normal(5)
    for name, fn in {"exp": np.exp, "log": np.log, "sqrt": np.sqrt, "neg": np.negative}.items():
        f.case(f"{name}_c128", f"%y = {name} %z", {"z": z}, fn(z))
    w = normal(5) + 1j * normal(5)
    for name, fn in {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}.items():
        f.case(f"{name}_c128", f"%y = {name} %z, %w", {"z": z, "w": w}, fn(z, w))
    return f


def shapes():
    f = Family("shapes")
    x = normal(2, 3, 4)
    f.case("transpose", "%y = transpose %x {perm = [2, 0, 1]}", {"x": x}, x.transpose(2, 0, 1))
    f.case("reshape", "%y = reshape %x {new_shape = [4, -1]}", {"x": x}, x.reshape(4, -1))
    f.case("narrow", "%y = narrow %x {axis = 2, start = 1, len = 2}", {"x": x}, x[:, :, 1:3])
    f.case("expand", "%y = expand %x {target_shape = [5, 2, 3, 4]}", {"x": x},
           np.broadcast_to(x, (5, 2, 3, 4)))
    f.case("reverse", "%y = reverse %x {axes = [0, 2]}", {"x": x}, np.flip(x, (0, 2)))
    a, b = normal(2, 3), normal(2, 5)
    f.case("concat", "%y = concat %a, %b {axis = 1}", {"a": a, "b": b}, np.concatenate([a, b], 1))
    v = np.float64(9.5)
    f.case("pad", "%y = pad %x, %v {low = [1, 0, -1], high = [0, 2, 1]}", {"x": x, "v": v},
           lax.pad(x, v, [(1, 0, 0), (0, 2, 0), (-1, 1, 0)]))
    f.case("iota", "%y = iota {shape = [3, 4], axis = 1, dtype = f64}", {},
           np.broadcast_to(np.arange(4.0), (3, 4)))
    table, ids = normal(6, 4), RNG.integers(0, 6, (2, 3)).astype(np.int32)
    f.case("gather_rows", "%y = gather %t, %i {axis = 0}", {"t": table, "i": ids}, table[ids])
    ids = RNG.integers(0, 3, (5,)).astype(np.int64)
    f.case("gather_inner", "%y = gather %t, %i {axis = 1}", {"t": x, "i": ids}, np.take(x, ids, 1))
    dy = normal(2, 5, 4)
    grad = jax.vjp(lambda t: jnp.take(t, ids, 1), x)[1](dy)[0]
    f.case("gather_backward", "%y = gather_backward %dy, %i {axis = 1, axis_size = 3}",
           {"dy": dy, "i": ids}, grad)
    up, rows = normal(2, 3, 4), RNG.integers(0, 5, (2, 3)).astype(np.int32)
    out = np.zeros((5, 4))
    np.add.at(out, rows, up)
    f.case("scatter_add", "%y = scatter_add %u, %i {out_dim = 5}", {"u": up, "i": rows}, out)
    along = RNG.integers(0, 4, (2, 3, 6)).astype(np.int32)
    f.case("take_along_axis", "%y = take_along_axis %x, %i {axis = 2}", {"x": x, "i": along},
           np.take_along_axis(x, along, 2))
    u = normal(2, 3, 6)
    grad = jax.vjp(lambda t: jnp.take_along_axis(t, along, 2), x)[1](u)[0]
    f.case("scatter_add_along_axis", "%y = scatter_add_along_axis %u, %i {axis = 2, axis_size = 4}",
           {"u": u, "i": along}, grad)
    for start in (-3, 1, 9):
        s = np.int32(start)
        f.case(f"dynamic_narrow_{start + 3}", "%y = dynamic_narrow %x, %s {axis = 1, len = 2}",
               {"x": x, "s": s}, lax.dynamic_slice_in_dim(x, start, 2, 1))
        new = normal(2, 2, 4)
        f.case(f"dynamic_update_{start + 3}", "%y = dynamic_update %x, %u, %s {axis = 1}",
               {"x": x, "u": new, "s": s}, lax.dynamic_update_slice_in_dim(jnp.asarray(x), new, start, 1))
    return f


def reductions():
    f = Family("reductions")
    fns = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min, "prod": np.prod,
           "log_sum_exp": scipy.special.logsumexp}
    for dtype in (np.float64, np.float32):
        x = normal(3, 4, 5).astype(dtype)
        n = np.dtype(dtype).name
        for name, fn in fns.items():
            for axes in ((0,), (2,), (0, 2), (0, 1, 2)):
                tag = "".join(map(str, axes))
                f.case(f"{name}_{tag}_{n}", f"%y = reduce %x {{op = {name}, axes = {list(axes)}}}",
                       {"x": x}, np.asarray(fn(x.astype(np.float64), axis=axes)).astype(dtype))
        f.case(f"softmax_{n}", "%y = softmax %x {axis = 1}", {"x": x},
               scipy.special.softmax(x.astype(np.float64), 1).astype(dtype))
    b = RNG.integers(0, 2, (3, 4)).astype(bool)
    f.case("any", "%y = reduce %x {op = any, axes = [1]}", {"x": b}, b.any(1))
    f.case("all", "%y = reduce %x {op = all, axes = [1]}", {"x": b}, b.all(1))
    i = RNG.integers(-9, 9, (3, 4)).astype(np.int32)
    f.case("sum_i32", "%y = reduce %x {op = sum, axes = [0]}", {"x": i}, i.sum(0).astype(np.int32))
    x = normal(3, 5)
    for name, fn in {"cumsum": np.cumsum, "cumprod": np.cumprod, "cummax": np.maximum.accumulate,
                     "cummin": np.minimum.accumulate}.items():
        for axis in (0, 1):
            f.case(f"{name}_{axis}", f"%y = {name} %x {{axis = {axis}}}", {"x": x}, fn(x, axis=axis))
    dy = normal(3, 5)
    f.case("cumsum_backward", "%y = cumsum_backward %dy {axis = 1}", {"dy": dy},
           jax.vjp(lambda t: jnp.cumsum(t, 1), x)[1](dy)[0])
    x = np.round(normal(4, 7) * 2) / 2
    order = np.argsort(x, 1, kind="stable")
    f.case("sort", "%v, %i = sort %x {axis = 1}", {"x": x},
           [np.take_along_axis(x, order, 1), order.astype(np.int32)], "%v, %i")
    f.case("arg_max", "%y = arg_max %x {axis = 1}", {"x": x}, np.argmax(x, 1).astype(np.int32))
    f.case("arg_min", "%y = arg_min %x {axis = 0}", {"x": x}, np.argmin(x, 0).astype(np.int32))
    values, ids = lax.top_k(x, 3)
    f.case("top_k", "%v, %i = top_k %x {k = 3}", {"x": x}, [values, np.asarray(ids, np.int32)], "%v, %i")
    return f


def linalg():
    f = Family("linalg")
    for dtype in (np.float64, np.float32):
        n = np.dtype(dtype).name
        for tag, (sa, sb) in {"plain": ((3, 4), (4, 5)), "batched": ((2, 3, 4), (2, 4, 5)),
                              "left": ((3, 4), (2, 4, 5)), "broadcast": ((2, 1, 3, 4), (5, 4, 2))}.items():
            a, b = normal(*sa).astype(dtype), normal(*sb).astype(dtype)
            f.case(f"matmul_{tag}_{n}", "%y = matmul %a, %b", {"a": a, "b": b}, a @ b)
    a, b = normal(2, 3) + 1j * normal(2, 3), normal(3, 2) + 1j * normal(3, 2)
    f.case("matmul_c128", "%y = matmul %a, %b", {"a": a, "b": b}, a @ b)
    a, b = normal(2, 5, 3, 4), normal(3, 2, 6, 4)
    dims = (((3, 2), (3, 0)), ((0,), (1,)))
    f.case("dot_general",
           "%y = dot_general %a, %b {lhs_contracting = [3, 2], rhs_contracting = [3, 0], "
           "lhs_batch = [0], rhs_batch = [1]}", {"a": a, "b": b}, lax.dot_general(a, b, dims))
    m, v, r = normal(4, 4), normal(4), normal(4, 2)
    f.case("dense_solve_vector", "%y = dense_solve %a, %b", {"a": m, "b": v}, np.linalg.solve(m, v))
    f.case("dense_solve_matrix", "%y = dense_solve %a, %b", {"a": m, "b": r}, np.linalg.solve(m, r))
    ms, rs = normal(3, 4, 4), normal(3, 4, 2)
    f.case("batched_dense_solve", "%y = batched_dense_solve %a, %b", {"a": ms, "b": rs},
           np.linalg.solve(ms, rs))
    mc, vc = normal(3, 3) + 1j * normal(3, 3), normal(3) + 1j * normal(3)
    f.case("dense_solve_c128", "%y = dense_solve %a, %b", {"a": mc, "b": vc}, np.linalg.solve(mc, vc))
    t = normal(4, 4) + 4 * np.eye(4)
    for lower in (True, False):
        for trans in (False, True):
            for unit in (False, True):
                expected = scipy.linalg.solve_triangular(t, r, trans=int(trans), lower=lower,
                                                         unit_diagonal=unit)
                word = lambda b: "true" if b else "false"
                f.case(f"triangular_{int(lower)}{int(trans)}{int(unit)}",
                       f"%y = triangular_solve %a, %b {{lower = {word(lower)}, "
                       f"transpose = {word(trans)}, unit = {word(unit)}}}", {"a": t, "b": r}, expected)
    x, w, a, b = normal(3, 4), normal(4, 5), normal(4, 2), normal(2, 5)
    f.case("lora", "%y = lora_matmul %x, %w, %a, %b {scale = 0.5}", {"x": x, "w": w, "a": a, "b": b},
           x @ w + 0.5 * (x @ a) @ b)
    grouped(f)
    return f


def grouped(f):
    for dtype in (np.float64, np.float32, np.complex128):
        n = np.dtype(dtype).name
        part = lambda *shape: (normal(*shape) + 1j * normal(*shape) if dtype is np.complex128
                               else normal(*shape).astype(dtype))
        x, w, dy = part(7, 4), part(5, 4, 3), part(7, 3)
        ids = np.array([3, 0, 3, 1, 1, 0, 3], np.int32)
        f.case(f"grouped_matmul_{n}", "%y = grouped_matmul %x, %w, %i", {"x": x, "w": w, "i": ids},
               np.einsum("mk,mkn->mn", x, w[ids]))
        y, pull = jax.vjp(lambda x, w: jnp.einsum("mk,mkn->mn", x, w[ids]), x, w)
        f.case(f"grouped_matmul_backward_{n}", "%dx, %dw = grouped_matmul_backward %x, %w, %i, %dy",
               {"x": x, "w": w, "i": ids, "dy": dy}, pull(jnp.asarray(dy)), "%dx, %dw")
    x, w, dy = normal(5, 4), normal(6, 4, 3), normal(5, 2, 3)
    ids = np.array([[4, 0], [0, 4], [1, 5], [5, 5], [4, 1]], np.int64)
    f.case("grouped_matmul_top_k", "%y = grouped_matmul %x, %w, %i", {"x": x, "w": w, "i": ids},
           np.einsum("mk,mjkn->mjn", x, w[ids]))
    y, pull = jax.vjp(lambda x, w: jnp.einsum("mk,mjkn->mjn", x, w[ids]), x, w)
    f.case("grouped_matmul_backward_top_k", "%dx, %dw = grouped_matmul_backward %x, %w, %i, %dy",
           {"x": x, "w": w, "i": ids, "dy": dy}, pull(jnp.asarray(dy)), "%dx, %dw")


def families():
    return [elementwise(), shapes(), reductions(), linalg()]
