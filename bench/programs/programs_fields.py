"""Programs about grids, graphs of points, bodies in motion and series, beside those of science."""

from cases import integers, normal, uniform
from graphs import Program, op, program
from lazy import F, jax, jnp, lax, torch


def flow_warp():
    """An image looked up where a flow points to, between pixels, and the gradient of both."""
    g = Program()
    n, c, h, w = 4, 3, 96, 128
    image, flow = g.input("image", (n, c, h, w)), g.input("flow", (n, 2, h, w), rule=normal(3))
    place = lambda axis: g.add("iota", [], {"shape": [h, w], "axis": axis, "dtype": "f32"})

    def corners(axis, size):
        at = op.min(op.max(flow.cut(1, axis, 1).reshape(n, h, w) + place(axis), 0.0), size - 1.0)
        low = op.floor(at)
        first = low.to("i32")
        return first, op.min(first + 1, size - 1), at - low

    (y0, y1, fy), (x0, x1, fx) = corners(0, h), corners(1, w)
    pixels = image.reshape(n, c, h * w)

    def at(y, x, weight):
        index = op.expand((y * w + x).reshape(n, 1, h * w), target_shape=[n, c, h * w])
        return op.take_along_axis(pixels, index, axis=2) * weight.reshape(n, 1, h * w)

    gy, gx = 1.0 - fy, 1.0 - fx
    out = at(y0, x0, gy * gx) + at(y0, x1, gy * fx) + at(y1, x0, fy * gx) + at(y1, x1, fy * fx)
    g.returns((out * out).mean(0, 1, 2))

    def in_jax(image, flow):
        def one(image, flow):
            y = jnp.clip(flow[0] + jnp.arange(h)[:, None], 0, h - 1)
            x = jnp.clip(flow[1] + jnp.arange(w), 0, w - 1)
            low_y, low_x = jnp.floor(y), jnp.floor(x)
            y0, x0, fy, fx = low_y.astype(int), low_x.astype(int), y - low_y, x - low_x
            y1, x1 = jnp.minimum(y0 + 1, h - 1), jnp.minimum(x0 + 1, w - 1)
            return (image[:, y0, x0] * (1 - fy) * (1 - fx) + image[:, y0, x1] * (1 - fy) * fx +
                    image[:, y1, x0] * fy * (1 - fx) + image[:, y1, x1] * fy * fx)
        return jnp.mean(jnp.square(jax.vmap(one)(image, flow)))

    def in_torch(image, flow):
        y = 2 * (flow[:, 0] + torch.arange(h)[:, None]) / (h - 1) - 1
        x = 2 * (flow[:, 1] + torch.arange(w)) / (w - 1) - 1
        out = F.grid_sample(image, torch.stack([x, y], -1), padding_mode="border",
                            align_corners=True)
        return torch.mean(torch.square(out))

    program("flow_warp", g, in_jax, in_torch, grad="image flow", tolerance=2e-3)


def heat_in_space():
    """Heat in a block between two hot walls; through the other sides nothing flows."""
    g = Program()
    n = 64
    u = g.input("u", (n, n, n), rule=uniform(0, 1))

    def step(u):
        p = op.pad(u, 1.0, low=[1, 0, 0], high=[1, 0, 0])
        total = p.cut(0, 0, n) + p.cut(0, 2, n) - u * 6.0
        for axis in (1, 2):
            p = op.concat(u.cut(axis, 0, 1), u, u.cut(axis, n - 1, 1), axis=axis)
            total = total + p.cut(axis, 0, n) + p.cut(axis, 2, n)
        return [u + total * 0.1]

    g.returns(g.scan(step, [u], length=20))

    def advance(u, hot, edges):
        p, q, r = hot(u), edges(u, 1), edges(u, 2)
        total = p[:-2] + p[2:] + q[:, :-2] + q[:, 2:] + r[:, :, :-2] + r[:, :, 2:]
        return u + 0.1 * (total - 6 * u)

    def in_jax(u):
        hot = lambda u: jnp.pad(u, ((1, 1), (0, 0), (0, 0)), constant_values=1.0)
        edges = lambda u, axis: jnp.pad(u, [(int(i == axis),) * 2 for i in range(3)], mode="edge")
        return lax.fori_loop(0, 20, lambda i, u: advance(u, hot, edges), u)

    def in_torch(u):
        hot = lambda u: F.pad(u, (0, 0, 0, 0, 1, 1), value=1.0)
        ends = lambda u, axis: [u.narrow(axis, 0, 1), u, u.narrow(axis, n - 1, 1)]
        for _ in range(20):
            u = advance(u, hot, lambda u, axis: torch.cat(ends(u, axis), axis))
        return u

    program("heat_in_space", g, in_jax, in_torch, tolerance=1e-3)


def rigid_bodies():
    """Spinning bodies turn by quaternions; how their last attitude depends on the first spin."""
    g = Program()
    many, dt = 256, 0.01
    q, w = g.input("q", (many, 4)), g.input("w", (many, 3))
    inertia = g.input("inertia", (3,), rule=uniform(1, 3))
    goal = g.input("goal", (many, 4))
    parts = lambda a, k: [a.cut(1, i, 1) for i in range(k)]

    def step(q, w, inertia):
        lx, ly, lz = parts(w * inertia, 3)
        x, y, z = parts(w, 3)
        turn = op.concat(ly * z - lz * y, lz * x - lx * z, lx * y - ly * x, axis=1)
        w = w + turn / inertia * dt
        x, y, z = parts(w, 3)
        a, b, c, d = parts(q, 4)
        rate = op.concat(-(b * x) - c * y - d * z, a * x + c * z - d * y, a * y - b * z + d * x,
                         a * z + b * y - c * x, axis=1)
        q = q + rate * (0.5 * dt)
        return [q * op.rsqrt((q * q).sum(1, keep=True)), w]

    last, _ = g.scan(step, [q, w], bcasts=[inertia], length=100)
    g.returns((last * goal).sum(0, 1))

    def advance(q, w, inertia, cross, stack, unit):
        w = w + cross(w * inertia, w) / inertia * dt
        x, y, z = w[:, 0], w[:, 1], w[:, 2]
        a, b, c, d = q[:, 0], q[:, 1], q[:, 2], q[:, 3]
        rate = stack([-b * x - c * y - d * z, a * x + c * z - d * y, a * y - b * z + d * x,
                      a * z + b * y - c * x])
        return unit(q + 0.5 * dt * rate), w

    def in_jax(q, w, inertia, goal):
        unit = lambda q: q * lax.rsqrt(jnp.sum(q * q, 1, keepdims=True))
        step = lambda s, _: (advance(*s, inertia, jnp.cross, lambda a: jnp.stack(a, 1), unit), None)
        return jnp.sum(lax.scan(step, (q, w), None, length=100)[0][0] * goal)

    def in_torch(q, w, inertia, goal):
        unit = lambda q: q * torch.rsqrt(torch.sum(q * q, 1, keepdim=True))
        for _ in range(100):
            q, w = advance(q, w, inertia, torch.linalg.cross, lambda a: torch.stack(a, 1), unit)
        return torch.sum(q * goal)

    program("rigid_bodies", g, in_jax, in_torch, grad="q w inertia", tolerance=2e-3)


def page_rank():
    """Twenty rounds in which every page shares its rank among those it links to."""
    g = Program()
    pages, links = 20000, 100000
    i, t = (g.input(k, (links,), "i32", integers(pages)) for k in ("i", "t"))
    degree = op.max(op.scatter_add(g.constant(1.0, shape=(links,)), i, out_dim=pages), 1.0)
    start = g.constant(1 / pages, shape=(pages,))

    def step(rank, degree, s, t):
        shared = op.scatter_add(op.gather(rank / degree, s, axis=0), t, out_dim=pages)
        return [shared * 0.85 + 0.15 / pages]

    g.returns(g.scan(step, [start], bcasts=[degree.like(pages), i, t], length=20))

    def in_jax(s, t):
        degree = jnp.maximum(jnp.zeros(pages).at[s].add(1.0), 1)
        step = lambda _, r: 0.85 * jnp.zeros(pages).at[t].add((r / degree)[s]) + 0.15 / pages
        return lax.fori_loop(0, 20, step, jnp.full(pages, 1 / pages))

    def in_torch(s, t):
        degree = torch.bincount(s, minlength=pages).clamp(min=1)
        rank = torch.full((pages,), 1 / pages)
        for _ in range(20):
            rank = 0.85 * torch.zeros(pages).index_add_(0, t, (rank / degree)[s]) + 0.15 / pages
        return rank

    program("page_rank", g, in_jax, in_torch, tolerance=1e-3)


def morton_codes():
    """Bits of two coordinates interleaved, mixed up, and counted."""
    g = Program()
    x, y = (g.input(k, (500000,), "u32", integers(65536)) for k in "xy")
    masks = ((8, 0x00FF00FF), (4, 0x0F0F0F0F), (2, 0x33333333), (1, 0x55555555))

    def spread(v):
        for shift, mask in masks:
            v = (v | (v << shift)) & mask
        return v

    code = spread(x) | (spread(y) << 1)
    h = (code ^ (code >> 16)) * 0x85EBCA6B
    h = (h ^ (h >> 13)) * 0xC2B2AE35
    h = h ^ (h >> 16)
    b = h - ((h >> 1) & 0x55555555)
    b = (b & 0x33333333) + ((b >> 2) & 0x33333333)
    bits = (((b + (b >> 4)) & 0x0F0F0F0F) * 0x01010101) >> 24
    g.returns(code, bits)

    def in_jax(x, y):
        u = jnp.uint32

        def spread(v):
            for shift, mask in masks:
                v = (v | (v << u(shift))) & u(mask)
            return v

        code = spread(x) | (spread(y) << u(1))
        h = (code ^ (code >> u(16))) * u(0x85EBCA6B)
        h = (h ^ (h >> u(13))) * u(0xC2B2AE35)
        return code, lax.population_count(h ^ (h >> u(16)))

    program("morton_codes", g, in_jax)


def clipped_columns():
    """Columns clipped to their 1st and 99th percentile, then made comparable."""
    g = Program()
    rows, columns = 2001, 128
    x = g.input("x", (rows, columns), rule=normal(2, 1))
    ordered = op.sort(x, axis=0, results=2)[0]
    low, high = ordered.cut(0, 20, 1), ordered.cut(0, 1980, 1)
    clipped = op.max(op.min(x, high), low)
    centred = clipped - clipped.mean(0, keep=True)
    g.returns(centred * op.rsqrt((centred * centred).mean(0, keep=True) + 1e-6))

    def in_jax(x):
        low, high = jnp.quantile(x, jnp.array([0.01, 0.99]), axis=0, method="nearest")
        c = jnp.clip(x, low, high)
        return (c - c.mean(0)) * lax.rsqrt(c.var(0) + 1e-6)

    def in_torch(x):
        low, high = torch.quantile(x, torch.tensor([0.01, 0.99]), 0, interpolation="nearest")
        c = torch.clamp(x, low, high)
        return (c - c.mean(0)) * torch.rsqrt(c.var(0, correction=0) + 1e-6)

    program("clipped_columns", g, in_jax, in_torch, tolerance=1e-3)


def splines():
    """A curve between knots, read off at many places, and the gradient of knots and places."""
    g = Program()
    n, knots = 200000, 65
    x, v = g.input("x", (n,), rule=uniform(0, knots - 1.01)), g.input("v", (knots,))
    low = op.floor(x)
    i, f = low.to("i32"), x - low
    y = op.gather(v, i, axis=0) * (1.0 - f) + op.gather(v, i + 1, axis=0) * f
    g.returns(op.where(y > 0.0, y * y, op.exp(y) - 1.0).mean(0))

    def in_jax(x, v):
        i = jnp.floor(x).astype(int)
        f = x - jnp.floor(x)
        y = v[i] * (1 - f) + v[i + 1] * f
        return jnp.mean(jnp.where(y > 0, y * y, jnp.exp(y) - 1))

    def in_torch(x, v):
        i = torch.floor(x).long()
        f = x - torch.floor(x)
        y = v[i] * (1 - f) + v[i + 1] * f
        return torch.mean(torch.where(y > 0, y * y, torch.exp(y) - 1))

    program("splines", g, in_jax, in_torch, grad="x v", tolerance=1e-3)


def viterbi():
    """The likeliest path through hidden states: maxima forward, then back along where they were."""
    g = Program()
    length, batch, states = 100, 16, 48
    emit, move = g.input("emit", (length, batch, states)), g.input("move", (states, states))

    def step(score, move, emit):
        candidates = score.reshape(batch, states, 1) + move
        best = op.arg_max(candidates, axis=1)
        return [candidates.max(1) + emit, best.to("i32")]

    score, back = g.scan(step, [g.constant(0.0, shape=(batch, states))], [emit], [move], stacked=1)
    last = op.arg_max(score, axis=1).to("i32")

    def follow(at, back):
        before = op.take_along_axis(back, at.reshape(batch, 1), axis=1).reshape(batch)
        return [before, at + 0]

    last.dtype = back.dtype = "i32"
    _, path = g.scan(follow, [last.like(batch)], [back.like(length, batch, states)], stacked=1,
                     reverse=True)
    g.returns(score.max(1), path)

    def in_jax(emit, move):
        def step(score, emit):
            candidates = score[:, :, None] + move
            return candidates.max(1) + emit, candidates.argmax(1)

        score, back = lax.scan(step, jnp.zeros((batch, states)), emit)
        follow = lambda at, back: (jnp.take_along_axis(back, at[:, None], 1)[:, 0], at)
        return score.max(1), lax.scan(follow, score.argmax(1), back, reverse=True)[1]

    def in_torch(emit, move):
        score, back, path = torch.zeros(batch, states), [], []
        for e in emit:
            best, at = torch.max(score[:, :, None] + move, 1)
            score = best + e
            back.append(at)
        final, at = torch.max(score, 1)
        for b in reversed(back):
            path.insert(0, at)
            at = b.gather(1, at[:, None])[:, 0]
        return final, torch.stack(path)

    program("viterbi", g, in_jax, in_torch, tolerance=1e-3)


for build in (flow_warp, heat_in_space, rigid_bodies, page_rank, morton_codes, clipped_columns,
              splines, viterbi):
    build()
