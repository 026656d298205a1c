"""Writes programs of the text language from Python expressions, for bench/programs.

    g = Program()
    x, w = g.input("x", (64, 32)), g.input("w", (32, 10))
    g.returns(op.softmax(op.tanh(x @ w)))
    g.text()

An expression is one statement; `op.NAME(operands…, attribute=value)` is the op of that name, and
`op.NAME(…, results=2)` one with two results. Types are left to inference. Values remember their
dtype, for the numbers beside them, and their shape where it is given, which bodies of loops need.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "ops"))

from cases import Feed, case

BOOL = {"eq", "ne", "lt", "le", "gt", "ge", "is_nan", "is_finite"}


def attribute(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(attribute, value))}]"
    return str(value)


class Value:
    def __init__(self, graph, name, dtype, shape=None):
        self.graph, self.name, self.dtype, self.shape = graph, name, dtype, shape

    def __str__(self):
        return "%" + self.name

    def number(self, other):
        return other if isinstance(other, Value) else self.graph.constant(other, self.dtype)

    def sum(self, *axes, keep=False):
        return op.reduce(self, op="sum", axes=axes, keep_dim=keep)

    def mean(self, *axes, keep=False):
        return op.reduce(self, op="mean", axes=axes, keep_dim=keep)

    def max(self, *axes, keep=False):
        return op.reduce(self, op="max", axes=axes, keep_dim=keep)

    def cut(self, axis, start, length):
        return op.narrow(self, axis=axis, start=start, len=length)

    def reshape(self, *shape):
        return op.reshape(self, new_shape=shape)

    def transpose(self, *perm):
        return op.transpose(self, perm=perm)

    def to(self, dtype):
        return op.cast(self, to=dtype)

    def like(self, *shape):
        """Says the shape, for the body of a loop."""
        return Value(self.graph, self.name, self.dtype, shape)


def operator(name, swapped=False):
    def method(self, other):
        a, b = (self.number(other), self) if swapped else (self, self.number(other))
        return self.graph.add(name, [a, b], {})
    return method


for symbol, name in {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "matmul": "matmul",
                     "pow": "pow", "lt": "lt", "gt": "gt", "le": "le", "ge": "ge",
                     "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
                     "lshift": "shift_left", "rshift": "shift_right", "mod": "rem"}.items():
    setattr(Value, f"__{symbol}__", operator(name))
    setattr(Value, f"__r{symbol}__", operator(name, swapped=True))
Value.__neg__ = lambda self: op.neg(self)


class Ops:
    def __getattr__(self, name):
        def call(*operands, results=1, **attributes):
            graph = next(v.graph for v in operands if isinstance(v, Value))
            return graph.add(name, operands, attributes, results)
        return call


op = Ops()


class Program:
    def __init__(self, parent=None):
        self.lines, self.feeds, self.outputs, self.constants = [], {}, (), {}
        self.numbers = parent.numbers if parent else iter(range(10**9))

    def fresh(self):
        return f"_{next(self.numbers)}"

    def input(self, name, shape, dtype="f32", rule=None):
        self.feeds[name] = Feed(tuple(shape), dtype, rule)
        self.lines.append(f'%{name} = input "{name}" : {self.feeds[name].type}')
        return Value(self, name, dtype, tuple(shape))

    def constant(self, value, dtype="f32", shape=()):
        key = (value, dtype, tuple(shape))
        if key not in self.constants:
            name, sizes = self.fresh(), ", ".join(map(str, shape))
            written = attribute(value) if dtype[0] in "iub" else repr(float(value))
            self.lines.append(f"%{name} = constant splat {written} : {dtype}[{sizes}]")
            self.constants[key] = Value(self, name, dtype, tuple(shape))
        return self.constants[key]

    def add(self, name, operands, attributes, results=1, bodies=""):
        chosen = operands[1:] if name == "where" else operands  # not the condition
        first = next((v for v in chosen if isinstance(v, Value)), None)
        values = [v if isinstance(v, Value) else first.number(v) for v in operands]
        dtype = "bool" if name in BOOL else attributes.get("to") or attributes.get("dtype") or (
            values[1].dtype if name == "where" else values[0].dtype if values else "f32")
        made = [Value(self, self.fresh(), dtype) for _ in range(results)]
        inside = ", ".join(f"{k} = {attribute(v)}" for k, v in attributes.items())
        self.lines.append(f"{', '.join(map(str, made))} = {name} {', '.join(map(str, values))}"
                          + (f" {{{inside}}}" if inside else "") + bodies)
        return made[0] if results == 1 else made

    def body(self, operands, function, rows=()):
        inner = Program(self)
        values = [inner.input(self.fresh(), v.shape[1:] if v in rows else v.shape, v.dtype)
                  for v in operands]
        inner.returns(*function(*values))
        return inner.block()

    def scan(self, function, carries, xs=(), bcasts=(), length=None, stacked=0, **attributes):
        """`function(*carries, *bcasts, *rows)` gives the carries and then stacked outputs."""
        operands = [*carries, *bcasts, *xs]
        block = self.body(operands, function, xs)
        return self.add("scan", operands, {
            "length": length or xs[0].shape[0], "num_carry": len(carries),
            "num_bcast": len(bcasts), "num_xs": len(xs), **attributes},
            len(carries) + stacked, f" body {block}")

    def loop(self, condition, function, carries, most):
        blocks = f" cond {self.body(carries, condition)} body {self.body(carries, function)}"
        return self.add("while", carries, {"max_iterations": most}, len(carries), blocks)

    def returns(self, *values):
        self.outputs = values

    def block(self):
        lines = "\n".join(self.lines)
        return f"{{\n{lines}\nreturn {', '.join(map(str, self.outputs))}\n}}"

    def text(self):
        return f"graph @program {self.block()}\n"


def program(name, graph, jax, torch=None, grad="", **more):
    """Adds a program to the survey; with `grad` it is the loss and its gradients in those feeds."""
    case("program", "program", graph.feeds, graph.text(), jax, torch, member=name,
         gradient=bool(grad), with_value=bool(grad), wrt=grad, **more)
