"""Programs about data, and programs of unusual shapes: chains, fans, integers, bools."""

from cases import booleans, integers, normal, positive_definite, uniform
from graphs import Program, op, program
from lazy import F, jax, jnp, jsp, lax, nn, torch


def image_filters():
    """A Gaussian of five taps along both axes, then Sobel's edges."""
    g = Program()
    n, s = 4, 512
    x = g.input("x", (n, s, s))
    taps = [0.06, 0.24, 0.4, 0.24, 0.06]

    def shifted(a, axis, amounts):
        low, high = [0, 0, 0], [0, 0, 0]
        low[axis] = high[axis] = 2
        p = op.pad(a, 0.0, low=low, high=high)
        return [p.cut(axis, 2 + d, s) for d in amounts]

    h = x
    for axis in (1, 2):
        total = None
        for tap, a in zip(taps, shifted(h, axis, range(-2, 3))):
            total = a * tap if total is None else total + a * tap
        h = total
    up, down = shifted(h, 1, (-1, 1))
    left, right = shifted(h, 2, (-1, 1))
    g.returns(op.sqrt((down - up) * (down - up) + (right - left) * (right - left) + 1e-6))

    def run(x, pad, sqrt):
        def shifted(a, axis, amounts):
            p = pad(a, axis)
            return [p[:, 2 + d:2 + d + s] if axis == 1 else p[:, :, 2 + d:2 + d + s]
                    for d in amounts]

        for axis in (1, 2):
            x = sum(t * a for t, a in zip(taps, shifted(x, axis, range(-2, 3))))
        (u, d), (l, r) = shifted(x, 1, (-1, 1)), shifted(x, 2, (-1, 1))
        return sqrt((d - u) ** 2 + (r - l) ** 2 + 1e-6)

    program("image_filters", g,
            lambda x: run(x, lambda a, d: jnp.pad(a, [(2 * (i == d),) * 2 for i in range(3)]),
                          jnp.sqrt),
            lambda x: run(x, lambda a, d: F.pad(a, (2 * (d == 2),) * 2 + (2 * (d == 1),) * 2),
                          torch.sqrt),
            tolerance=1e-3)


def biquad():
    """A recursive filter of second order over 64 channels of sound."""
    g = Program()
    x = g.input("x", (8000, 64))
    zeros = g.constant(0.0, shape=(64,))

    def step(x1, x2, y1, y2, x):
        y = x * 0.2 + x1 * 0.4 + x2 * 0.2 + y1 * 0.5 - y2 * 0.3
        return [x + 0.0, x1, y, y1, y]

    *_, ys = g.scan(step, [zeros] * 4, [x], stacked=1)
    g.returns(ys)

    def in_jax(x):
        def step(c, x):
            x1, x2, y1, y2 = c
            y = 0.2 * x + 0.4 * x1 + 0.2 * x2 + 0.5 * y1 - 0.3 * y2
            return (x, x1, y, y1), y

        return lax.scan(step, (jnp.zeros(64),) * 4, x)[1]

    program("biquad", g, in_jax, tolerance=1e-3)


def standardise():
    g = Program()
    x = g.input("x", (100000, 32), rule=normal(3, 5))
    mean = x.mean(0, keep=True)
    variance = ((x - mean) * (x - mean)).mean(0, keep=True)
    low, high = op.reduce(x, op="min", axes=[0], keep_dim=True), x.max(0, keep=True)
    g.returns((x - mean) / op.sqrt(variance + 1e-6), (x - low) / (high - low))
    program("standardise", g,
            lambda x: ((x - x.mean(0)) / jnp.sqrt(x.var(0) + 1e-6),
                       (x - x.min(0)) / (x.max(0) - x.min(0))),
            lambda x: ((x - x.mean(0)) / torch.sqrt(x.var(0, correction=0) + 1e-6),
                       (x - torch.amin(x, 0)) / (torch.amax(x, 0) - torch.amin(x, 0))),
                       tolerance=1e-3)


def histogram():
    g = Program()
    n, bins = 1000000, 256
    x = g.input("x", (n,), rule=uniform(0, 1))
    place = op.min((x * float(bins)).to("i32"), bins - 1)
    place.dtype = "i32"
    g.returns(op.scatter_add(g.constant(1.0, shape=(n,)), place, out_dim=bins))
    program("histogram", g,
            lambda x: jnp.zeros(bins).at[jnp.minimum((x * bins).astype("int32"), bins - 1)].add(1),
            lambda x: torch.histc(x, bins, 0, 1), tolerance=1e-2)


def one_hot_counts():
    """How often each word follows each: one-hot rows multiplied."""
    g = Program()
    a, b = (g.input(n, (8192,), "i32", integers(256)) for n in ("a", "b"))
    classes = g.add("iota", [], {"shape": [256], "dtype": "i32"})
    hot = lambda i: op.eq(i.reshape(8192, 1), classes).to("f32")
    g.returns(hot(a).transpose(1, 0) @ hot(b))
    program("one_hot_counts", g, lambda a, b: nn.one_hot(a, 256).T @ nn.one_hot(b, 256),
            lambda a, b: F.one_hot(a.long(), 256).float().T @ F.one_hot(b.long(), 256).float())


def wasserstein():
    """The distance between two samples in many projections, and its gradient."""
    g = Program()
    x, y, d = g.input("x", (2000, 16)), g.input("y", (2000, 16)), g.input("d", (16, 64))
    order = lambda p: op.sort((p @ d).transpose(1, 0), axis=1, results=2)[0]
    gap = order(x) - order(y)
    g.returns((gap * gap).mean(0, 1))
    program("wasserstein", g,
            lambda x, y, d: jnp.mean(jnp.square(jnp.sort((x @ d).T, 1) - jnp.sort((y @ d).T, 1))),
            lambda x, y, d: torch.mean(torch.square(torch.sort((x @ d).T,
                                                               1)[0] - torch.sort((y @ d).T,
                                                                                  1)[0])),
            grad="x y", tolerance=1e-2)


def small_matrices():
    """Five thousand Gaussians of six dimensions: factor, solve and log-density."""
    g = Program()
    n, d = 5000, 6
    a, x = g.input("a", (n, d, d), rule=positive_definite), g.input("x", (n, d, 1))
    l = op.cholesky(a)
    z = op.triangular_solve(l, x)
    eye = op.eq(g.add("iota", [], {"shape": [d, d], "axis": 0}), g.add("iota", [], {"shape": [d, d],
                                                                                    "axis": 1}))
    diagonal = op.where(eye, l, 0.0).sum(2)
    g.returns(-((z * z).sum(1, 2) * 0.5 + op.log(diagonal).sum(1)))

    def in_jax(a, x):
        l = jnp.linalg.cholesky(a)
        z = jsp.linalg.solve_triangular(l, x, lower=True)
        return -(jnp.sum(z * z, (1, 2)) / 2 + jnp.sum(jnp.log(jnp.diagonal(l, axis1=1, axis2=2)),
                                                      1))

    def in_torch(a, x):
        l = torch.linalg.cholesky(a)
        z = torch.linalg.solve_triangular(l, x, upper=False)
        return -((z * z).sum((1, 2)) / 2 + torch.log(torch.diagonal(l, dim1=1, dim2=2)).sum(1))

    program("small_matrices", g, in_jax, in_torch, tolerance=1e-3)


def tiny_string():
    """Sixty operations on arrays of eight elements, of kinds that do not fuse into one loop."""
    g = Program()
    x, w = g.input("x", (8, 8)), g.input("w", (8, 8), rule=normal(.3))
    h = x
    for _ in range(12):
        p = h @ w
        h = op.tanh(p - p.mean(1, keep=True)).transpose(1, 0) + x
    g.returns(h)

    def run(x, w, tanh):
        h = x
        for _ in range(12):
            p = h @ w
            h = tanh(p - p.mean(1)[:, None]).T + x
        return h

    program("tiny_string", g, lambda x, w: run(x, w, jnp.tanh), lambda x, w: run(x, w, torch.tanh),
            tolerance=1e-3)


def long_chain():
    g = Program()
    x = g.input("x", (1000000,))
    h = x
    for i in range(30):
        h = op.sin(h) * 1.01 + x if i % 3 else op.abs(h) - x * 0.5
    g.returns(h)

    def run(x, sin, absolute):
        h = x
        for i in range(30):
            h = sin(h) * 1.01 + x if i % 3 else absolute(h) - x * 0.5
        return h

    program("long_chain", g, lambda x: run(x, jnp.sin, jnp.abs), lambda x: run(x, torch.sin,
                                                                               torch.abs),
            tolerance=1e-3)


def wide_fan():
    """One array into 32 branches, each reduced on its own."""
    g = Program()
    x = g.input("x", (512, 512))
    parts = [(op.tanh(x * (0.1 * i + 0.1)) * x).sum(1) for i in range(32)]
    g.returns(op.concat(*[p.reshape(1, 512) for p in parts], axis=0))
    program("wide_fan", g,
            lambda x: jnp.stack([jnp.sum(jnp.tanh(x * (0.1 * i + 0.1)) * x, 1) for i in range(32)]),
            lambda x: torch.stack([torch.sum(torch.tanh(x * (0.1 * i + 0.1)) * x, 1)
                                   for i in range(32)]),
            tolerance=1e-3)


def big_reductions():
    g = Program()
    x = g.input("x", (8000000,))
    mean = x.mean(0)
    centred = x - mean
    g.returns(mean, (centred * centred).mean(0), x.max(0), op.reduce(x, op="min", axes=[0]),
              op.sqrt((x * x).sum(0)), op.abs(x).max(0))
    program("big_reductions", g,
            lambda x: (x.mean(), x.var(), x.max(), x.min(), jnp.linalg.norm(x),
                       jnp.max(jnp.abs(x))),
            lambda x: (x.mean(), x.var(correction=0), x.max(), x.min(), torch.linalg.norm(x),
                       x.abs().max()),
            tolerance=1e-3)


def pairwise():
    """Distances of all pairs, written by broadcasting, then a kernel's mean."""
    g = Program()
    x, y = g.input("x", (1000, 16)), g.input("y", (1000, 16))
    d = x.reshape(1000, 1, 16) - y.reshape(1, 1000, 16)
    g.returns(op.exp(-(op.abs(d).sum(2) * 0.3)).mean(1))
    program("pairwise", g, lambda x,
            y: jnp.mean(jnp.exp(-0.3 * jnp.sum(jnp.abs(x[:, None] - y[None]), 2)), 1),
            lambda x, y: torch.mean(torch.exp(-0.3 * torch.cdist(x, y, p=1)), 1), tolerance=1e-3)


def integer_hash():
    g = Program()
    x = g.input("x", (1000000,), "u32", integers(2**31))
    h = x
    for _ in range(6):
        h = h ^ (h << 13)
        h = h ^ (h >> 17)
        h = (h ^ (h << 5)) * 69069 + 1
    g.returns(h & 65535)

    def in_jax(h):
        u = lambda n: jnp.uint32(n)
        for _ in range(6):
            h = h ^ (h << u(13))
            h = h ^ (h >> u(17))
            h = (h ^ (h << u(5))) * u(69069) + u(1)
        return h & u(65535)

    program("integer_hash", g, in_jax)


def boolean_masks():
    g = Program()
    a, b, c = (g.input(n, (1024, 2048), "bool", booleans) for n in "abc")
    both = op.logical_and(a, op.logical_not(b))
    mixed = op.logical_xor(both, op.logical_or(b, c))
    count = mixed.to("f32").sum(1)
    g.returns(mixed, count, op.reduce(mixed, op="any", axes=[0]), op.reduce(mixed, op="all",
                                                                            axes=[1]))

    def run(a, b, c, f32, any_of, all_of):
        mixed = (a & ~b) ^ (b | c)
        return mixed, f32(mixed).sum(1), any_of(mixed), all_of(mixed)

    program("boolean_masks", g,
            lambda *m: run(*m, lambda x: x.astype("float32"), lambda x: x.any(0),
                           lambda x: x.all(1)),
            lambda *m: run(*m, lambda x: x.float(), lambda x: x.any(0), lambda x: x.all(1)))


def spectrogram():
    g = Program()
    x, window = g.input("x", (8, 48000)), g.input("window", (512,), rule=uniform(0, 1))
    bins = op.rfft(op.frame(x, frame_len=512, hop=128) * window)
    g.returns(op.log(op.complex_norm_sq(bins) + 1e-6))
    program("spectrogram", g,
            lambda x, w: jnp.log(jnp.square(jnp.abs(jnp.fft.rfft(
                x[:, 128 * jnp.arange(372)[:, None] + jnp.arange(512)] * w))) + 1e-6),
            lambda x, w: torch.log(torch.square(torch.abs(torch.fft.rfft(
                x.unfold(1, 512, 128) * w))) + 1e-6),
            tolerance=1e-2)


for build in (image_filters, biquad, standardise, histogram, one_hot_counts, wasserstein,
              small_matrices,
              tiny_string, long_chain, wide_fan, big_reductions, pairwise, integer_hash,
              boolean_masks,
              spectrogram):
    build()
