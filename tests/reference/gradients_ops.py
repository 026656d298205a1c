"""Derivatives of programs of one or two ops.

Left out, because JAX means something else: the derivative of round (ours is 1, straight through), and
those of sqrt, rsqrt and abs at 0 (ours are 0). Ties of max and min, binary and reduced, JAX shares as we do. Of
running maxima, sorts and pooling only points without ties are compared: JAX breaks those otherwise.
"""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from families_basic import DOMAIN, JNP
from gradients import Gradients

RNG = np.random.default_rng(11)


def normal(*shape):
    return RNG.standard_normal(shape)


def uniform(low, high, *shape):
    return RNG.uniform(low, high, shape)


def integers(high, *shape):
    return RNG.integers(0, high, shape).astype(np.int32)


def apart(*shape):
    """Numbers in random order with gaps, so that no two are a tie."""
    count = int(np.prod(shape))
    return ((RNG.permutation(count) - count / 2 + 0.25) / 4).reshape(shape)


def complex_normal(*shape):
    return normal(*shape) + 1j * normal(*shape)


def elementwise():
    f = Gradients("elementwise")
    for name, fn in JNP.items():
        f.program(name, f"%y = {name} %x", fn, {"x": uniform(*DOMAIN.get(name, (-3, 3)), 6)})
    for name, fn in {"sign": jnp.sign, "floor": jnp.floor, "ceil": jnp.ceil, "trunc": jnp.trunc}.items():
        f.program(name, f"%y = {name} %x", fn, {"x": uniform(-3, 3, 4)})
    f.program("relu_at_0", "%y = relu %x", jax.nn.relu, {"x": np.array([-1.0, 0.0, 2.0])})
    binaries = {"add": jnp.add, "sub": jnp.subtract, "mul": jnp.multiply, "div": jnp.divide,
                "max": jnp.maximum, "min": jnp.minimum, "rem": lax.rem, "atan2": jnp.arctan2,
                "hypot": lambda a, b: jnp.sqrt(a * a + b * b)}
    for name, fn in binaries.items():
        call = (lambda a, b: lax.rem(*jnp.broadcast_arrays(a, b))) if name == "rem" else fn
        f.program(name, f"%y = {name} %a, %b", call, {"a": uniform(-3, 3, 3, 1), "b": uniform(0.5, 2, 2)})
    for name in ("max", "min"):
        f.program(f"{name}_ties", f"%y = {name} %a, %b", binaries[name],
                  {"a": np.array([1.0, 2.0, -1.0]), "b": np.array([1.0, 0.0, -1.0])})
    f.program("pow", "%y = pow %a, %b", jnp.power, {"a": uniform(0.2, 3, 3, 1), "b": uniform(-2, 3, 2)})
    f.program("pow_integers", "%k = constant [0.0, 1.0, 2.0, 3.0, -1.0] : f64[5]\n%y = pow %a, %k",
              lambda a: jnp.stack([a[0] * 0 + 1, a[1], a[2] ** 2, a[3] ** 3, 1 / a[4]]),
              {"a": np.array([-1.5, -0.5, -2.0, 1.25, -0.75])})
    c = np.array([[True], [False], [True]])
    f.program("where", "%e = exp %a\n%y = where %c, %e, %b", lambda c, a, b: jnp.where(c, jnp.exp(a), b),
              {"c": c, "a": normal(2), "b": normal(3, 2)})
    f.program("where_guards_log", """%z = constant 0.0 : f64[]
      %one = constant 1.0 : f64[]
      %p = gt %x, %z
      %s = where %p, %x, %one
      %l = log %s
      %y = where %p, %l, %z""",
              lambda x: jnp.where(x > 0, jnp.log(jnp.where(x > 0, x, 1.0)), 0.0),
              {"x": np.array([-1.0, 0.0, 0.5, 3.0])})
    f.program("cast", "%s = cast %x {to = f32}\n%y = cast %s {to = f64}", lambda x: x, {"x": normal(4)})
    f.program("stop_gradient", "%s = stop_gradient %x\n%e = exp %x\n%y = mul %s, %e",
              lambda x: lax.stop_gradient(x) * jnp.exp(x), {"x": normal(4)})
    return f


def complexes():
    f = Gradients("complexes")
    for name, fn in {"exp": jnp.exp, "log": jnp.log, "sqrt": jnp.sqrt, "neg": jnp.negative,
                     "conjugate": jnp.conj}.items():
        f.program(name, f"%y = {name} %z", fn, {"z": complex_normal(4)})
    for name, fn in {"add": jnp.add, "sub": jnp.subtract, "mul": jnp.multiply, "div": jnp.divide}.items():
        f.program(name, f"%y = {name} %z, %w", fn, {"z": complex_normal(3, 1), "w": complex_normal(2)})
    f.program("prod", "%y = reduce %z {op = prod, axes = [1]}", lambda z: jnp.prod(z, 1),
              {"z": complex_normal(2, 4)})
    f.program("prod_with_zeros", "%y = reduce %z {op = prod, axes = [1]}",
              lambda z: z[:, 0] * z[:, 1] * z[:, 2],
              {"z": complex_normal(3, 3) * np.array([[1, 1, 1], [1, 0, 1], [0, 1, 0]])})
    f.program("matmul", "%y = matmul %a, %b", jnp.matmul, {"a": complex_normal(2, 3), "b": complex_normal(3, 2)})
    f.program("dense_solve", "%y = dense_solve %a, %b", jnp.linalg.solve,
              {"a": complex_normal(3, 3) + 2 * np.eye(3), "b": complex_normal(3)})
    f.program("real_in_and_out", """%x2 = cast %x {to = c128}
      %p = mul %z, %x2
      %e = exp %p
      %c = conjugate %e
      %n = mul %c, %e
      %y = cast %n {to = f64}""", lambda x, z: jnp.real(jnp.conj(jnp.exp(z * x)) * jnp.exp(z * x)),
              {"x": normal(3) / 2, "z": complex_normal(3) / 2})
    return f


def shapes():
    f = Gradients("shapes")

    def moving(name, body, fn, inputs, **options):
        """x goes through tanh first, so that there is a second derivative."""
        call = lambda x, *rest: fn(jnp.tanh(x), *rest)
        f.program(name, "%h = tanh %x\n" + body, call, inputs, **options)

    x = normal(2, 3, 4)
    moving("transpose", "%y = transpose %h {perm = [2, 0, 1]}", lambda x: x.transpose(2, 0, 1), {"x": x})
    moving("reshape", "%y = reshape %h {new_shape = [4, 6]}", lambda x: x.reshape(4, 6), {"x": x})
    moving("narrow", "%y = narrow %h {axis = 2, start = 1, len = 2}", lambda x: x[:, :, 1:3], {"x": x})
    moving("expand", "%y = expand %h {target_shape = [2, 3, 4]}", lambda x: jnp.broadcast_to(x, (2, 3, 4)),
           {"x": normal(3, 1)})
    moving("reverse", "%y = reverse %h {axes = [0, 2]}", lambda x: jnp.flip(x, (0, 2)), {"x": x})
    moving("concat", "%y = concat %h, %b {axis = 1}", lambda x, b: jnp.concatenate([x, b], 1),
           {"x": normal(2, 3), "b": normal(2, 2)})
    moving("pad", "%y = pad %h, %v {low = [1, -1], high = [0, 2]}",
           lambda x, v: lax.pad(x, v, [(1, 0, 0), (-1, 2, 0)]), {"x": normal(2, 3), "v": np.float64(0.5)})
    ids = integers(5, 2, 3)
    moving("gather_rows", "%y = gather %h, %i {axis = 0}", lambda t, i: t[i], {"x": normal(5, 3), "i": ids})
    moving("gather_inner", "%y = gather %h, %i {axis = 1}", lambda t, i: jnp.take(t, i, 1),
           {"x": x, "i": np.array([2, 0, 0, 1], np.int64)})
    moving("gather_backward", "%y = gather_backward %h, %i {axis = 1, axis_size = 3}",
           lambda dy, i: jnp.zeros((2, 3)).at[:, i].add(dy), {"x": normal(2, 4), "i": integers(3, 4)})
    moving("scatter_add", "%y = scatter_add %h, %i {out_dim = 4}",
           lambda u, i: jnp.zeros((4, 3)).at[i].add(u), {"x": normal(2, 3, 3), "i": integers(4, 2, 3)})
    along = integers(4, 2, 3, 5)
    moving("take_along_axis", "%y = take_along_axis %h, %i {axis = 2}",
           lambda x, i: jnp.take_along_axis(x, i, 2), {"x": x, "i": along})
    i, j = np.indices((2, 3))
    moving("scatter_add_along_axis", "%y = scatter_add_along_axis %h, %i {axis = 1, axis_size = 4}",
           lambda u, k: jnp.zeros((2, 4)).at[i, k].add(u), {"x": normal(2, 3), "i": integers(4, 2, 3)})
    # Far enough below 0 that JAX, which counts a negative start from the end first, clamps it as we do.
    for tag, start in {"below": -9, "inside": 1, "above": 9}.items():
        s = np.int32(start)
        moving(f"dynamic_narrow_{tag}", "%y = dynamic_narrow %h, %s {axis = 1, len = 2}",
               lambda x, s: lax.dynamic_slice_in_dim(x, s, 2, 1), {"x": x, "s": s})
        moving(f"dynamic_update_{tag}", "%y = dynamic_update %h, %u, %s {axis = 1}",
               lambda x, u, s: lax.dynamic_update_slice_in_dim(x, u, s, 1),
               {"x": normal(2, 4), "u": normal(2, 2), "s": s})
    return f


def reductions():
    f = Gradients("reductions")
    fns = {"sum": lambda x, a: jnp.sum(x * x, a), "mean": lambda x, a: jnp.mean(x * x, a), "max": jnp.max,
           "min": jnp.min, "prod": jnp.prod, "log_sum_exp": jax.nn.logsumexp}
    for name, fn in fns.items():
        for axes in ((1,), (0, 2)):
            tag = "".join(map(str, axes))
            body = f"%y = reduce %x {{op = {name}, axes = {list(axes)}}}"
            if name in ("sum", "mean"):
                body = "%q = mul %x, %x\n" + body.replace("reduce %x", "reduce %q")
            f.program(f"{name}_{tag}", body, lambda x: fn(x, axes), {"x": apart(2, 3, 2)})
    rows = np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0], [1.0, 2.0, 3.0], [-1.0, -1.0, 0.0]])
    for name in ("max", "min"):
        f.program(f"{name}_ties", f"%y = reduce %x {{op = {name}, axes = [1]}}", lambda x: fns[name](x, 1),
                  {"x": rows})
    zeros = np.array([[1.5, 2.0, -3.0], [0.0, 2.0, 0.5], [0.0, 0.0, 0.5], [0.0, 0.0, 0.0]])
    f.program("prod_with_zeros", "%y = reduce %x {op = prod, axes = [1]}",
              lambda x: x[:, 0] * x[:, 1] * x[:, 2], {"x": zeros}, jacobian=True)
    f.program("norm", "%q = mul %x, %x\n%s = reduce %q {op = sum, axes = [1]}\n%y = sqrt %s",
              lambda x: jnp.sqrt(jnp.sum(x * x, 1)), {"x": normal(3, 4)}, jacobian=True)
    f.program("softmax", "%y = softmax %x {axis = 1}", lambda x: jax.nn.softmax(x, 1), {"x": normal(2, 4, 2)},
              jacobian=True)
    f.program("softmax_large", "%y = softmax %x {axis = 1}", lambda x: jax.nn.softmax(x, 1),
              {"x": np.array([[1e4, 1e4 - 1, -1e4], [-1e4, -1e4, -1e4]])})
    for name, fn in {"cumsum": jnp.cumsum, "cummax": lax.cummax, "cummin": lax.cummin,
                     "cumprod": jnp.cumprod}.items():
        call = (lambda x: jnp.cumsum(x * x, 1)) if name == "cumsum" else (lambda x: fn(x, axis=1))
        body = "%q = mul %x, %x\n%y = cumsum %q {axis = 1}" if name == "cumsum" else f"%y = {name} %x {{axis = 1}}"
        f.program(name, body, call, {"x": apart(2, 5)})
    f.program("cumsum_exclusive", "%e = exp %x\n%y = cumsum %e {axis = 0, exclusive = true}",
              lambda x: jnp.cumsum(jnp.exp(x), 0) - jnp.exp(x), {"x": normal(4, 2)})

    def running_product(x):
        out = [x[:, 0]]
        for k in range(1, x.shape[1]):
            out.append(out[-1] * x[:, k])
        return jnp.stack(out, 1)

    f.program("cumprod_with_zeros", "%y = cumprod %x {axis = 1}", running_product,
              {"x": np.array([[1.5, 2.0, -3.0, 0.5], [2.0, 0.0, 3.0, 0.5], [0.0, 2.0, 0.0, 0.5]])},
              jacobian=True)
    f.program("sort", "%e = exp %x\n%v, %i = sort %e {axis = 1}", lambda x: jnp.sort(jnp.exp(x), 1),
              {"x": apart(2, 5)}, "%v, %i")
    f.program("sort_descending", "%v, %i = sort %x {axis = 0, descending = true}",
              lambda x: -jnp.sort(-x, 0), {"x": apart(4, 2)}, "%v, %i")
    f.program("top_k", "%e = exp %x\n%v, %i = top_k %e {k = 3}", lambda x: lax.top_k(jnp.exp(x), 3)[0],
              {"x": apart(2, 5)}, "%v, %i")
    return f


def solve_triangular(a, b, lower, trans, unit):
    return lax.linalg.triangular_solve(a, b, left_side=True, lower=lower, transpose_a=trans,
                                       unit_diagonal=unit)


def linalg():
    f = Gradients("linalg")
    for tag, (sa, sb) in {"plain": ((2, 3), (3, 4)), "batched": ((2, 2, 3), (2, 3, 2)),
                          "left": ((2, 3), (2, 3, 2)), "broadcast": ((2, 1, 2, 3), (2, 3, 2))}.items():
        f.program(f"matmul_{tag}", "%y = matmul %a, %b", jnp.matmul, {"a": normal(*sa), "b": normal(*sb)})
    f.program("dot_general",
              "%y = dot_general %a, %b {lhs_contracting = [3, 2], rhs_contracting = [3, 0], "
              "lhs_batch = [0], rhs_batch = [1]}",
              lambda a, b: lax.dot_general(a, b, (((3, 2), (3, 0)), ((0,), (1,)))),
              {"a": normal(2, 3, 2, 2), "b": normal(2, 2, 3, 2)})
    m = normal(3, 3) + 3 * np.eye(3)
    f.program("dense_solve_vector", "%y = dense_solve %a, %b", jnp.linalg.solve, {"a": m, "b": normal(3)})
    f.program("dense_solve_matrix", "%y = dense_solve %a, %b", jnp.linalg.solve, {"a": m, "b": normal(3, 2)})
    f.program("batched_dense_solve", "%y = batched_dense_solve %a, %b", jnp.linalg.solve,
              {"a": normal(2, 3, 3) + 3 * np.eye(3), "b": normal(2, 3, 2)})
    t = normal(3, 3) + 3 * np.eye(3)
    word = {True: "true", False: "false"}
    for lower in (True, False):
        for trans in (False, True):
            for unit in (False, True):
                f.program(f"triangular_{int(lower)}{int(trans)}{int(unit)}",
                          f"%y = triangular_solve %a, %b {{lower = {word[lower]}, "
                          f"transpose = {word[trans]}, unit = {word[unit]}}}",
                          lambda a, b: solve_triangular(a, b, lower, trans, unit),
                          {"a": t, "b": normal(3, 2)})
    f.program("triangular_batched", "%y = triangular_solve %a, %b {lower = true}",
              lambda a, b: solve_triangular(a, b, True, False, False),
              {"a": normal(2, 3, 3) + 3 * np.eye(3), "b": normal(2, 3, 2)})
    f.program("lora", "%y = lora_matmul %x, %w, %a, %b {scale = 0.5}",
              lambda x, w, a, b: x @ w + 0.5 * (x @ a) @ b,
              {"x": normal(2, 3), "w": normal(3, 4), "a": normal(3, 2), "b": normal(2, 4)})
    ids = np.array([2, 0, 2, 0, 1], np.int32)
    f.program("grouped_matmul", "%y = grouped_matmul %x, %w, %i",
              lambda x, w, i: jnp.einsum("mk,mkn->mn", x, w[i]),
              {"x": normal(5, 3), "w": normal(4, 3, 2), "i": ids})
    mixture(f)
    return f


def mixture(f):
    """Two experts a row: up, an activation, down, and a weighted sum, the rows never repeated."""
    def mix(x, up, down, gate, i):
        hidden = jnp.tanh(jnp.einsum("mk,mjkh->mjh", x, up[i]))
        return jnp.einsum("mj,mjn->mn", gate, jnp.einsum("mjh,mjhn->mjn", hidden, down[i]))

    f.program("mixture_of_experts",
              "%h = grouped_matmul %x, %up, %i\n%a = tanh %h\n"
              "%r = reshape %a {new_shape = [10, 4]}\n%f = reshape %i {new_shape = [10]}\n"
              "%o = grouped_matmul %r, %down, %f\n%p = reshape %o {new_shape = [5, 2, 2]}\n"
              "%g = reshape %gate {new_shape = [5, 2, 1]}\n%q = mul %p, %g\n"
              "%y = reduce %q {op = sum, axes = [1]}", mix,
              {"x": normal(5, 3), "up": normal(4, 3, 4), "down": normal(4, 4, 2),
               "gate": normal(5, 2),
               "i": np.array([[0, 3], [3, 0], [1, 3], [0, 1], [1, 1]], np.int32)})


def families():
    return [elementwise(), complexes(), shapes(), reductions(), linalg()]
