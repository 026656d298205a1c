"""What a case of the survey is: a program as text, its numbers, and the same in JAX and PyTorch.

    case("softmax", "cache", {"x": (512, 512)}, "%y = softmax %x",
         jax=lambda x: nn.softmax(x), torch=lambda x: torch.softmax(x, -1), wrt="x")

The text is the statements between the inputs, which are declared from the feeds, and the return of
`%y` (of `%y`, `%z` where `returns="y z"`). The twins take the feeds in their order, as arrays of
their own system, and give one result or a tuple of as many as the text returns. With `wrt` the
gradient of the first result in those feeds is a case of its own.
"""

import zlib
from dataclasses import dataclass, replace

from lazy import np

CLASSES = ["tiny", "cache", "memory", "short rows", "long rows", "permuted", "odd", "f64", "bf16",
           "program"]
TOLERANCES = {"f64": 1e-9, "f32": 1e-4, "bf16": 4e-2, "f16": 6e-3}  # of the largest element
REAL = {"f64": "float64", "f32": "float32", "bf16": "float32", "f16": "float16"}
NUMPY = {**REAL, "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8", "u8": "uint8",
         "u32": "uint32", "bool": "bool", "c64": "complex64", "c128": "complex128"}


@dataclass(frozen=True)
class Feed:
    """An input: its type, and a rule for its numbers, a function of a generator and a shape."""

    shape: tuple
    dtype: str = "f32"
    rule: object = None

    def array(self, generator):
        values = (self.rule or normal())(generator, self.shape)
        return np.ascontiguousarray(values).astype(NUMPY[self.dtype]).reshape(self.shape)

    @property
    def type(self):
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


def normal(deviation=1.0, mean=0.0):
    def rule(generator, shape):
        values = generator.standard_normal(shape, dtype=np.float32)
        return mean + deviation * values.astype(np.float64)
    return rule


def uniform(low, high):
    return lambda generator, shape: low + (high - low) * generator.random(shape)


def integers(below, least=0):
    return lambda generator, shape: generator.integers(least, below, shape)


def booleans(generator, shape):
    return generator.random(shape) < 0.5


def complexes(generator, shape):
    return generator.standard_normal(shape) + 1j * generator.standard_normal(shape)


def positive_definite(generator, shape):
    a = generator.standard_normal(shape)
    return a @ a.swapaxes(-1, -2) / shape[-1] + np.eye(shape[-1])


def well_conditioned(generator, shape):
    size = min(shape[-2:])
    return generator.standard_normal(shape) / size**0.5 + 2 * np.eye(*shape[-2:])


def spread(generator, shape):
    """Matrices with singular values that lie apart, so that vectors are well determined."""
    rows, columns = shape[-2:]
    size = min(rows, columns)
    u = np.linalg.qr(generator.standard_normal(shape[:-2] + (rows, size)))[0]
    v = np.linalg.qr(generator.standard_normal(shape[:-2] + (columns, size)))[0]
    return (u * np.linspace(3, 1, size)) @ v.swapaxes(-1, -2)


@dataclass(frozen=True)
class Case:
    op: str  # its name in the op table
    member: str  # of the op's family; the op itself where it is none
    shape_class: str
    feeds: dict
    text: str
    jax: object
    torch: object
    wrt: tuple = ()
    gradient: bool = False  # is this the gradient of the first result?
    with_value: bool = False  # the loss and its gradients, as one step of training has them
    tolerance: float = None
    transforms: tuple = ()  # of the text, before its gradient
    compare: bool = True  # are values compared with the peers'?
    compare_gradient: bool = True

    @property
    def id(self):
        return "/".join([self.op if self.op == self.member else f"{self.op}.{self.member}",
                         self.shape_class] + (["grad"] if self.gradient else []))

    @property
    def seeded(self):
        return self.gradient and not self.with_value

    @property
    def all_transforms(self):
        last = [["value_and_grad" if self.with_value else "grad", list(self.wrt)]]
        return [list(t) for t in self.transforms] + (last if self.gradient else [])

    @property
    def dtype(self):
        """The narrowest real dtype among the feeds."""
        order = ["bf16", "f16", "f32", "c64"]
        found = {f.dtype for f in self.feeds.values()}
        first = next((d for d in order if d in found), "f64" if found & {"f64", "c128"} else "f32")
        return "f32" if first == "c64" else first

    @property
    def allowed_gap(self):
        return self.tolerance or TOLERANCES[self.dtype]

    def arrays(self):
        """The numbers of the feeds, the same in every process."""
        out = {}
        for name, feed in self.feeds.items():
            seed = zlib.crc32(f"{self.op}.{self.member}/{self.shape_class}/{name}".encode())
            out[name] = feed.array(np.random.default_rng(seed))
        return out


ALL = {}


def add(one):
    assert one.id not in ALL, f"there are two cases {one.id}"
    ALL[one.id] = one


def as_feed(given):
    """A feed from (4, 5), from ("bf16", (4, 5)) or from ("f32", (4, 5), rule)."""
    if isinstance(given, Feed):
        return given
    if given and isinstance(given[0], str):
        return Feed(given[1], given[0], *given[2:])
    return Feed(tuple(given))


def program_text(feeds, body, returns):
    inputs = "".join(f'  %{name} = input "{name}" : {feed.type}\n' for name, feed in feeds.items())
    lines = "".join(f"  {line.strip()}\n" for line in body.strip().splitlines())
    values = ", ".join("%" + name for name in returns.split())
    return f"graph @survey {{\n{inputs}{lines}  return {values}\n}}\n"


def case(op, shape_class, feeds, body, jax, torch=None, wrt="", member=None, returns="y", **more):
    """Adds a case, and its gradient's when there are feeds to differentiate by."""
    assert shape_class in CLASSES, shape_class
    feeds = {name: as_feed(feed) for name, feed in feeds.items()}
    text = body if body.lstrip().startswith("graph") else program_text(feeds, body, returns)
    wrt = tuple(wrt.split())
    with_value = more.get("with_value", False)
    one = Case(op, member or op, shape_class, feeds, text, jax, torch,
               wrt=wrt if with_value else (), **more)
    add(one)
    if wrt and not with_value:
        add(replace(one, wrt=wrt, gradient=True,
                    compare=one.compare and one.compare_gradient))


def in_dtype(dtype, feeds):
    """The same feeds with f32 replaced."""
    feeds = {name: as_feed(feed) for name, feed in feeds.items()}
    return {name: replace(feed, dtype=dtype) if feed.dtype == "f32" else feed
            for name, feed in feeds.items()}


# Ops that are not surveyed, and why. Everything else of the op table must have a case.
SKIPPED = {}


def skip(reason, *ops):
    SKIPPED.update(dict.fromkeys(ops, reason))


# Ops that gradients consist of, by the op whose gradient measures them.
THROUGH = {}


def through(op, *backward_ops):
    THROUGH.update(dict.fromkeys(backward_ops, op))


# Ops whose gradients are not measured though they have one, and why.
NO_GRADIENT = {}


def without_gradient(reason, *ops):
    NO_GRADIENT.update(dict.fromkeys(ops, reason))
