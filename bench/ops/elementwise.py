"""Functions of elements: every member of the families, and some of them in every shape class."""

from cases import booleans, case, complexes, integers, skip, uniform
from lazy import F, jax, jnp, lax, nn, torch

CACHE, MEMORY, ODD = (512, 512), (2048, 2048), (1021, 509)
POSITIVE, UNIT, ABOVE_ONE = uniform(0.1, 4), uniform(-0.95, 0.95), uniform(1.1, 4)

# name: JAX, PyTorch, and where the function is defined when it is not everywhere
SMOOTH = {
    "gelu": (lambda x: nn.gelu(x, approximate=False), lambda x: F.gelu(x)),
    "gelu_approx": (lambda x: nn.gelu(x), lambda x: F.gelu(x, approximate="tanh")),
    "silu": (lambda x: nn.silu(x), lambda x: F.silu(x)),
    "relu": (lambda x: nn.relu(x), lambda x: torch.relu(x)),
    "sigmoid": (lambda x: nn.sigmoid(x), lambda x: torch.sigmoid(x)),
    "tanh": (lambda x: jnp.tanh(x), lambda x: torch.tanh(x)),
    "exp": (lambda x: jnp.exp(x), lambda x: torch.exp(x)),
    "log": (lambda x: jnp.log(x), lambda x: torch.log(x), POSITIVE),
    "sqrt": (lambda x: jnp.sqrt(x), lambda x: torch.sqrt(x), POSITIVE),
    "rsqrt": (lambda x: lax.rsqrt(x), lambda x: torch.rsqrt(x), POSITIVE),
    "neg": (lambda x: -x, lambda x: -x),
    "abs": (lambda x: jnp.abs(x), lambda x: torch.abs(x)),
    "sin": (lambda x: jnp.sin(x), lambda x: torch.sin(x)),
    "cos": (lambda x: jnp.cos(x), lambda x: torch.cos(x)),
    "tan": (lambda x: jnp.tan(x), lambda x: torch.tan(x), UNIT),
    "atan": (lambda x: jnp.arctan(x), lambda x: torch.atan(x)),
    "erf": (lambda x: lax.erf(x), lambda x: torch.erf(x)),
    "erfc": (lambda x: lax.erfc(x), lambda x: torch.erfc(x)),
    "expm1": (lambda x: jnp.expm1(x), lambda x: torch.expm1(x)),
    "log1p": (lambda x: jnp.log1p(x), lambda x: torch.log1p(x), POSITIVE),
    "exp2": (lambda x: jnp.exp2(x), lambda x: torch.exp2(x)),
    "log2": (lambda x: jnp.log2(x), lambda x: torch.log2(x), POSITIVE),
    "sinh": (lambda x: jnp.sinh(x), lambda x: torch.sinh(x)),
    "cosh": (lambda x: jnp.cosh(x), lambda x: torch.cosh(x)),
    "asin": (lambda x: jnp.arcsin(x), lambda x: torch.asin(x), UNIT),
    "acos": (lambda x: jnp.arccos(x), lambda x: torch.acos(x), UNIT),
    "asinh": (lambda x: jnp.arcsinh(x), lambda x: torch.asinh(x)),
    "acosh": (lambda x: jnp.arccosh(x), lambda x: torch.acosh(x), ABOVE_ONE),
    "atanh": (lambda x: jnp.arctanh(x), lambda x: torch.atanh(x), UNIT),
    "softplus": (lambda x: nn.softplus(x), lambda x: F.softplus(x)),
    "log_sigmoid": (lambda x: nn.log_sigmoid(x), lambda x: F.logsigmoid(x)),
    "elu": (lambda x: nn.elu(x), lambda x: F.elu(x)),
    "selu": (lambda x: nn.selu(x), lambda x: F.selu(x)),
    "hard_sigmoid": (lambda x: nn.hard_sigmoid(x), lambda x: F.hardsigmoid(x)),
    "hard_swish": (lambda x: nn.hard_swish(x), lambda x: F.hardswish(x)),
    "mish": (lambda x: nn.mish(x), lambda x: F.mish(x)),
    "softsign": (lambda x: nn.soft_sign(x), lambda x: F.softsign(x)),
    "square": (lambda x: jnp.square(x), lambda x: torch.square(x)),
    "reciprocal": (lambda x: 1 / x, lambda x: torch.reciprocal(x), POSITIVE),
}
STEPS = {  # no derivative, or none but zero
    "round": (lambda x: jnp.round(x), lambda x: torch.round(x)),
    "sign": (lambda x: jnp.sign(x), lambda x: torch.sign(x)),
    "floor": (lambda x: jnp.floor(x), lambda x: torch.floor(x)),
    "ceil": (lambda x: jnp.ceil(x), lambda x: torch.ceil(x)),
    "trunc": (lambda x: jnp.trunc(x), lambda x: torch.trunc(x)),
    "is_nan": (lambda x: jnp.isnan(x), lambda x: torch.isnan(x)),
    "is_finite": (lambda x: jnp.isfinite(x), lambda x: torch.isfinite(x)),
}
EVERYWHERE = ["tanh", "exp", "gelu", "relu"]  # in all shape classes


def unary(member, shape_class, feed, twins, wrt="x", body=None):
    # PyTorch's sixths are f32 in f64, too.
    tolerance = 1e-6 if member.startswith("hard") else None
    case("unary", shape_class, {"x": feed}, body or f"%y = {member} %x", twins[0], twins[1],
         wrt=wrt, member=member, tolerance=tolerance)


def of_transposed(in_jax, in_torch):
    """PyTorch would leave the result in the order of the operand's memory."""
    return lambda x: in_jax(x.T), lambda x: in_torch(x.T).contiguous()


for name, (in_jax, in_torch, *domain) in SMOOTH.items():
    twins, rule = (in_jax, in_torch), (domain or [None])[0]
    unary(name, "cache", ("f32", CACHE, rule), twins)
    unary(name, "f64", ("f64", CACHE, rule), twins)
    if name not in EVERYWHERE:
        continue
    unary(name, "tiny", (16,), twins)
    unary(name, "memory", MEMORY, twins)
    unary(name, "odd", ODD, twins)
    unary(name, "bf16", ("bf16", CACHE), twins)
    unary(name, "permuted", (1024, 2048), of_transposed(*twins),
          body=f"%t = transpose %x {{perm = [1, 0]}}\n%y = {name} %t")
for name, twins in STEPS.items():
    unary(name, "cache", CACHE, twins, wrt="")
    unary(name, "f64", ("f64", CACHE), twins, wrt="")
unary("conjugate", "cache", ("c64", CACHE, complexes),
      (lambda x: jnp.conj(x), lambda x: torch.conj_physical(x)), wrt="")
unary("imag", "cache", ("c64", CACHE, complexes), (lambda x: jnp.imag(x), lambda x: x.imag.clone()), wrt="")
unary("logical_not", "cache", ("bool", CACHE, booleans), (lambda x: ~x, lambda x: ~x), wrt="")
unary("bitwise_not", "cache", ("i32", CACHE, integers(1000)), (lambda x: ~x, lambda x: ~x), wrt="")

WHOLE = ("i32", CACHE, integers(1000, 1))
SHIFT = ("i32", CACHE, integers(31))
LOGICAL = ("bool", CACHE, booleans)
REAL = ("f32", CACHE, POSITIVE)

BINARY = {
    "add": (lambda a, b: a + b,) * 2, "sub": (lambda a, b: a - b,) * 2,
    "mul": (lambda a, b: a * b,) * 2, "div": (lambda a, b: a / b,) * 2,
    "max": (lambda a, b: jnp.maximum(a, b), lambda a, b: torch.maximum(a, b)),
    "min": (lambda a, b: jnp.minimum(a, b), lambda a, b: torch.minimum(a, b)),
    "pow": (lambda a, b: a**b,) * 2,
    "rem": (lambda a, b: lax.rem(a, b), lambda a, b: torch.fmod(a, b)),
    "atan2": (lambda a, b: jnp.arctan2(a, b), lambda a, b: torch.atan2(a, b)),
    "hypot": (lambda a, b: jnp.hypot(a, b), lambda a, b: torch.hypot(a, b)),
}
OF_INTEGERS = {
    "add": (lambda a, b: a + b,) * 2, "mul": (lambda a, b: a * b,) * 2,
    "div": (lambda a, b: lax.div(a, b), lambda a, b: torch.div(a, b, rounding_mode="trunc")),
    "rem": (lambda a, b: lax.rem(a, b), lambda a, b: torch.fmod(a, b)),
    "max": (lambda a, b: jnp.maximum(a, b), lambda a, b: torch.maximum(a, b)),
    "bitwise_and": (lambda a, b: a & b,) * 2, "bitwise_or": (lambda a, b: a | b,) * 2,
    "bitwise_xor": (lambda a, b: a ^ b,) * 2,
    "shift_left": (lambda a, b: lax.shift_left(a, b), lambda a, b: a << b),
    "shift_right": (lambda a, b: lax.shift_right_arithmetic(a, b), lambda a, b: a >> b),
}
OF_BOOLS = {
    "logical_and": (lambda a, b: a & b,) * 2, "logical_or": (lambda a, b: a | b,) * 2,
    "logical_xor": (lambda a, b: a ^ b,) * 2,
}
COMPARE = {
    "eq": (lambda a, b: a == b,) * 2, "ne": (lambda a, b: a != b,) * 2,
    "lt": (lambda a, b: a < b,) * 2, "le": (lambda a, b: a <= b,) * 2,
    "gt": (lambda a, b: a > b,) * 2, "ge": (lambda a, b: a >= b,) * 2,
}


def two(op, member, shape_class, a, b, twins, wrt="", body=None, label=None):
    case(op, shape_class, {"a": a, "b": b}, body or f"%y = {member} %a, %b", twins[0], twins[1],
         wrt=wrt, member=label or member)


two("binary", "make_complex", "cache", ("f32", CACHE), ("f32", CACHE),
    (lambda a, b: lax.complex(a, b), lambda a, b: torch.complex(a, b)))
for name, twins in BINARY.items():
    wrt = "" if name == "rem" else "a b"
    two("binary", name, "cache", REAL, REAL, twins, wrt)
    two("binary", name, "f64", ("f64", CACHE, POSITIVE), ("f64", CACHE, POSITIVE), twins, wrt)
for name, twins in OF_INTEGERS.items():
    two("binary", name, "cache", WHOLE, SHIFT if "shift" in name else WHOLE, twins,
        label=name if name not in BINARY else name + "_i32")
for name, twins in OF_BOOLS.items():
    two("binary", name, "cache", LOGICAL, LOGICAL, twins)
for name, twins in COMPARE.items():
    two("compare", name, "cache", CACHE, CACHE, twins)
    two("compare", name, "memory", MEMORY, MEMORY, twins)

for name in ("add", "mul"):
    twins = BINARY[name]
    swapped = (lambda a, b, f=twins[0]: f(a, b.T),) * 2
    two("binary", name, "tiny", (16,), (16,), twins, "a b")
    two("binary", name, "memory", MEMORY, MEMORY, twins, "a b")
    two("binary", name, "odd", ODD, ODD, twins, "a b")
    two("binary", name, "bf16", ("bf16", CACHE), ("bf16", CACHE), twins, "a b")
    two("binary", name, "short rows", (300000, 5), (5,), twins, "a b")
    two("binary", name, "long rows", (4, 400000), (4, 1), twins, "a b")
    two("binary", name, "permuted", (1024, 2048), (2048, 1024), swapped, "a b",
        body=f"%t = transpose %b {{perm = [1, 0]}}\n%y = {name} %a, %t")

# Broadcasting of the other kinds.
two("binary", "add", "cache", (64, 1, 256), (1, 128, 256), BINARY["add"], "a b", label="outer")
two("binary", "mul", "memory", (4096, 1024), (1024,), BINARY["mul"], "a b", label="by_row")
two("binary", "mul", "memory", (4096, 1024), (4096, 1), BINARY["mul"], "a b", label="by_column")

WHERE = (lambda c, a, b: jnp.where(c, a, b), lambda c, a, b: torch.where(c, a, b))
for shape_class, shape, dtype in (("tiny", (16,), "f32"), ("cache", CACHE, "f32"),
                                  ("memory", MEMORY, "f32"), ("odd", ODD, "f32"),
                                  ("f64", CACHE, "f64"), ("bf16", CACHE, "bf16")):
    case("where", shape_class, {"c": ("bool", shape, booleans), "a": (dtype, shape),
                                "b": (dtype, shape)}, "%y = where %c, %a, %b", *WHERE, wrt="a b")

CASTS = [("f32", "bf16"), ("bf16", "f32"), ("f32", "f16"), ("f16", "f32"), ("f32", "f64"),
         ("f64", "f32"), ("f32", "i32"), ("i32", "f32"), ("i8", "f32"), ("f32", "i8"),
         ("u8", "f32"), ("bool", "f32"), ("i64", "i32"), ("i32", "i64")]
NAMES = {"bf16": "bfloat16", "f16": "float16", "f32": "float32", "f64": "float64",
         "i32": "int32", "i8": "int8", "i64": "int64"}
for source, target in CASTS:
    rule = None if source[0] in "bf" and source != "bool" else integers(2 if source == "bool"
                                                                         else 100)
    for shape_class, shape in (("cache", CACHE), ("memory", MEMORY)):
        both = source in ("f32", "bf16", "f64") and target in ("f32", "bf16", "f64")
        case("cast", shape_class, {"x": (source, shape, rule)}, f"%y = cast %x {{to = {target}}}",
             lambda x, t=NAMES[target]: x.astype(t),
             lambda x, t=NAMES[target]: x.to(getattr(torch, t)),
             wrt="x" if both else "", member=f"{source}_to_{target}", tolerance=1e-2)

case("activation_backward", "cache", {"x": CACHE, "dy": CACHE},
     "%y = activation_backward %x, %dy {kind = gelu}",
     lambda x, dy: jax.vjp(lambda v: nn.gelu(v, approximate=False), x)[1](dy)[0],
     lambda x, dy: torch.ops.aten.gelu_backward(dy, x), wrt="x dy")
case("relu_backward", "cache", {"x": CACHE, "dy": CACHE}, "%y = relu_backward %x, %dy",
     lambda x, dy: jnp.where(x > 0, dy, 0), lambda x, dy: torch.where(x > 0, dy, 0.0), wrt="dy")

# Chains that are one pass over memory.
CHAIN = "%a = mul %x, %x\n%b = tanh %a\n%c = add %b, %x\n%d = sigmoid %c\n%y = mul %d, %a"
CHAINED = "chain = [mul(input(0), input(0)), tanh(step(0)), add(step(1), input(0)), " \
          "sigmoid(step(2)), mul(step(3), step(0))]"


def chain_in_jax(x):
    return nn.sigmoid(jnp.tanh(x * x) + x) * (x * x)


def chain_in_torch(x):
    return torch.sigmoid(torch.tanh(x * x) + x) * (x * x)


for shape_class, shape in (("tiny", (16,)), ("cache", CACHE), ("memory", MEMORY), ("odd", ODD)):
    case("unary", shape_class, {"x": shape}, CHAIN, chain_in_jax, chain_in_torch, wrt="x",
         member="chain")
    case("elementwise_region", shape_class, {"x": shape},
         f"%y = elementwise_region %x {{{CHAINED}}}", chain_in_jax, chain_in_torch, wrt="x")
case("batch_elementwise_region", "cache", {"p": (64, 256), "q": (100, 256), "r": (3, 256)},
     f"%y = batch_elementwise_region %p, %q, %r {{{CHAINED}}}",
     lambda *p: jnp.concatenate([chain_in_jax(a) for a in p]),
     lambda *p: torch.cat([chain_in_torch(a) for a in p]), wrt="p q r")
case("stop_gradient", "cache", {"x": CACHE}, "%s = stop_gradient %x\n%y = mul %s, %x",
     lambda x: lax.stop_gradient(x) * x, lambda x: x.detach() * x, wrt="x")

skip("written into the program; it costs what its users cost", "input", "param", "constant",
     "dim_size")
