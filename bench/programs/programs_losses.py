"""Programs of learning whose work lies in the loss or around it: distances, orders, alignments."""

from cases import booleans, integers, normal, uniform
from graphs import Program, op, program
from lazy import F, jnp, lax, nn, torch


def diffusion_block():
    """Down and up again between group norms, with the way around joined in."""
    g = Program()
    n, c, s = 2, 32, 32
    x = g.input("x", (n, c, s, s))
    w = [g.input(f"w{i}", shape, rule=normal(.06)) for i, shape in enumerate(
        [(64, c, 3, 3), (64, 64, 3, 3), (c, 96, 3, 3)])]
    scale, shift = g.input("scale", (64,), rule=uniform(.5, 1.5)), g.input("shift", (64,))
    first, low = g.input("first", (c,), rule=uniform(.5, 1.5)), g.input("low", (c,))
    skip = op.silu(op.group_norm(x, first, low, num_groups=8))
    down = op.conv(skip, w[0], stride=[2, 2], padding=[1, 1])
    h = op.conv(op.silu(op.group_norm(down, scale, shift, num_groups=8)), w[1], padding=[1, 1])
    joined = op.concat(skip, op.resize(h + down, sizes=[s, s]), axis=1)
    y = op.conv(joined, w[2], padding=[1, 1]) + x
    g.returns((y * y).mean(0, 1, 2, 3))

    def in_jax(x, w0, w1, w2, scale, shift, first, low):
        def norm(x, scale, shift):
            parts = x.reshape(n, 8, -1)
            parts = ((parts - parts.mean(-1, keepdims=True)) *
                     lax.rsqrt(parts.var(-1, keepdims=True) + 1e-5))
            return parts.reshape(x.shape) * scale[:, None, None] + shift[:, None, None]

        conv = lambda h, w, s=1: lax.conv_general_dilated(h, w, (s, s), ((1, 1), (1, 1)))
        skip = nn.silu(norm(x, first, low))
        down = conv(skip, w0, 2)
        h = conv(nn.silu(norm(down, scale, shift)), w1) + down
        up = jnp.repeat(jnp.repeat(h, 2, 2), 2, 3)
        return jnp.mean(jnp.square(conv(jnp.concatenate([skip, up], 1), w2) + x))

    def in_torch(x, w0, w1, w2, scale, shift, first, low):
        skip = F.silu(F.group_norm(x, 8, first, low))
        down = F.conv2d(skip, w0, stride=2, padding=1)
        h = F.conv2d(F.silu(F.group_norm(down, 8, scale, shift)), w1, padding=1) + down
        up = F.interpolate(h, scale_factor=2.0)
        return torch.mean(torch.square(F.conv2d(torch.cat([skip, up], 1), w2, padding=1) + x))

    program("diffusion_block", g, in_jax, in_torch, grad="w0 w1 w2 scale shift first low",
            tolerance=3e-3)


def radiance_field():
    """Points along rays, encoded by sines, through a small network, made into colours."""
    g = Program()
    rays, samples, octaves = 128, 32, 6
    x = g.input("x", (rays * samples, 3), rule=uniform(-1, 1))
    wanted = g.input("wanted", (rays, 3), rule=uniform(0, 1))
    w = [g.input(f"w{i}", s, rule=normal(s[0]**-0.5)) for i, s in enumerate(
        [(3 + 6 * octaves, 64), (64, 64), (64, 4)])]
    b = [g.input(f"b{i}", (s,), rule=normal(.1)) for i, s in enumerate((64, 64, 4))]
    encoded = [x]
    for k in range(octaves):
        encoded += [op.sin(x * float(2**k)), op.cos(x * float(2**k))]
    h = op.relu(op.concat(*encoded, axis=1) @ w[0] + b[0])
    h = op.relu(h @ w[1] + b[1]) @ w[2] + b[2]
    colour = op.sigmoid(h.cut(1, 0, 3)).reshape(rays, samples, 3)
    depth = op.softplus(h.cut(1, 3, 1)).reshape(rays, samples) * 0.1
    through = op.exp(-op.cumsum(depth, axis=1, exclusive=True))
    weight = (1.0 - op.exp(-depth)) * through
    e = (colour * weight.reshape(rays, samples, 1)).sum(1) - wanted
    g.returns((e * e).mean(0, 1))

    def run(x, wanted, w, b, xp, relu, sigmoid, softplus, total):
        encoded = [x]
        for k in range(octaves):
            encoded += [xp.sin(x * 2**k), xp.cos(x * 2**k)]
        h = relu(xp.concatenate(encoded, 1) @ w[0] + b[0])
        h = relu(h @ w[1] + b[1]) @ w[2] + b[2]
        colour = sigmoid(h[:, :3]).reshape(rays, samples, 3)
        depth = softplus(h[:, 3]).reshape(rays, samples) * 0.1
        through = xp.exp(depth - total(depth))
        weight = (1 - xp.exp(-depth)) * through
        return xp.mean(xp.square((colour * weight[:, :, None]).sum(1) - wanted))

    program("radiance_field", g,
            lambda x, t, *p: run(x, t, p[:3], p[3:], jnp, nn.relu, nn.sigmoid, nn.softplus,
                                 lambda d: jnp.cumsum(d, 1)),
            lambda x, t, *p: run(x, t, p[:3], p[3:], torch, torch.relu, torch.sigmoid, F.softplus,
                                 lambda d: torch.cumsum(d, 1)),
            grad="w0 w1 w2 b0 b1 b2", tolerance=2e-3)


def spectral_norm():
    """A weight divided by its largest singular value, found by a few products back and forth."""
    g = Program()
    x, w, u = g.input("x", (128, 256)), g.input("w", (256, 512), rule=normal(.06)), g.input(
        "u", (512, 1))
    fixed, wt = op.detach(w), op.detach(w).transpose(1, 0)
    unit = lambda v: v * op.rsqrt((v * v).sum(0, 1) + 1e-12)
    for _ in range(3):
        v = unit(fixed @ u)
        u = unit(wt @ v)
    sigma = (v * (w @ u)).sum(0, 1)
    y = op.relu(x @ (w / sigma))
    g.returns((y * y).mean(0, 1))

    def run(x, w, u, fixed, rsqrt, relu):
        unit = lambda v: v * rsqrt((v * v).sum() + 1e-12)
        for _ in range(3):
            v = unit(fixed @ u)
            u = unit(fixed.T @ v)
        y = relu(x @ (w / (v * (w @ u)).sum()))
        return (y * y).mean()

    program("spectral_norm", g,
            lambda x, w, u: run(x, w, u, lax.stop_gradient(w), lax.rsqrt, nn.relu),
            lambda x, w, u: run(x, w, u, w.detach(), torch.rsqrt, torch.relu), grad="w",
            tolerance=3e-3)


def sinkhorn():
    """What it costs to move one cloud of points onto another, and how the cloud should move."""
    g = Program()
    n, eps = 256, 0.1
    x, y = g.input("x", (n, 2)), g.input("y", (n, 2))
    d = x.reshape(n, 1, 2) - y.reshape(1, n, 2)
    cost = (d * d).sum(2).like(n, n)
    zeros = g.constant(0.0, shape=(n,))
    soft = lambda a, axis: op.reduce(a, op="log_sum_exp", axes=[axis])

    def step(f, h, cost):
        f = (soft((h - cost) * (1 / eps), 1) + 5.545177) * -eps
        h = (soft((f.reshape(n, 1) - cost) * (1 / eps), 0) + 5.545177) * -eps
        return [f, h]

    f, h = g.scan(step, [zeros, zeros], bcasts=[cost], length=20)
    plan = op.exp((f.reshape(n, 1) + h - cost) * (1 / eps))
    g.returns((plan * cost).sum(0, 1))

    def in_jax(x, y):
        cost = jnp.sum(jnp.square(x[:, None] - y), 2)

        def step(s, _):
            f = -eps * (nn.logsumexp((s[1] - cost) / eps, 1) + 5.545177)
            return (f, -eps * (nn.logsumexp((f[:, None] - cost) / eps, 0) + 5.545177)), None

        (f, h), _ = lax.scan(step, (jnp.zeros(n), jnp.zeros(n)), None, length=20)
        return jnp.sum(jnp.exp((f[:, None] + h - cost) / eps) * cost)

    def in_torch(x, y):
        cost, h = torch.sum(torch.square(x[:, None] - y), 2), torch.zeros(n)
        for _ in range(20):
            f = -eps * (torch.logsumexp((h - cost) / eps, 1) + 5.545177)
            h = -eps * (torch.logsumexp((f[:, None] - cost) / eps, 0) + 5.545177)
        return torch.sum(torch.exp((f[:, None] + h - cost) / eps) * cost)

    program("sinkhorn", g, in_jax, in_torch, grad="x", tolerance=3e-3)


def alignment_loss():
    """The likelihood of words under all their alignments with sound (CTC), and its gradient."""
    g = Program()
    length, batch, words, spoken = 100, 16, 40, 20
    places = 2 * spoken + 1
    logits = g.input("logits", (length, batch, words))
    labels = g.input("labels", (batch, spoken), "i32", integers(words, 1))
    log_p = logits - op.reduce(logits, op="log_sum_exp", axes=[2], keep_dim=True)
    blank = g.constant(0, "i32", (batch, spoken, 1))
    between = op.concat(blank, labels.reshape(batch, spoken, 1), axis=2)
    last_blank = g.constant(0, "i32", (batch, 1))
    extended = op.concat(between.reshape(batch, 2 * spoken), last_blank, axis=1)
    emit = op.take_along_axis(log_p, op.expand(extended.reshape(1, batch, places),
                                               target_shape=[length, batch, places]), axis=2)
    two_before = op.pad(extended, g.constant(0, "i32"), low=[0, 2], high=[0, -2])
    new = op.where(op.eq(extended, two_before), g.constant(-1e30), g.constant(0.0))
    hops = op.where(op.eq(extended, g.constant(0, "i32")), g.constant(-1e30), new)
    number = g.add("iota", [], {"shape": [batch, places], "axis": 1, "dtype": "i32"})
    start = op.where(number < 1, g.constant(0.0), g.constant(-1e30)).like(batch, places)
    shifted = lambda a, by: op.pad(a, a.number(-1e30), low=[0, by], high=[0, -by])

    def either(a, b):
        most = op.max(a, b)
        return most + op.log1p(op.exp(-op.abs(a - b)))

    def step(a, hops, emit):
        return [either(either(a, shifted(a, 1)), shifted(a, 2) + hops) + emit]

    hops.dtype = emit.dtype = "f32"
    last = g.scan(step, [start], [emit.like(length, batch, places)], [hops.like(batch, places)])
    g.returns(-either(last.cut(1, places - 1, 1), last.cut(1, places - 2, 1)).sum(0, 1))

    def in_jax(logits, labels):
        log_p = nn.log_softmax(logits)
        extended = jnp.zeros((batch, places), int).at[:, 1::2].set(labels)
        emit = jnp.take_along_axis(log_p, jnp.broadcast_to(extended, (length, batch, places)), 2)
        before = jnp.pad(extended, ((0, 0), (2, 0)))[:, :-2]
        hops = jnp.where((extended == 0) | (extended == before), -1e30, 0.0)
        shifted = lambda a, by: jnp.pad(a, ((0, 0), (by, 0)), constant_values=-1e30)[:, :-by]

        def step(a, e):
            moved = jnp.logaddexp(a, shifted(a, 1))
            return jnp.logaddexp(moved, shifted(a, 2) + hops) + e, None

        start = jnp.full((batch, places), -1e30).at[:, 0].set(0.0)
        last = lax.scan(step, start, emit)[0]
        return -jnp.sum(jnp.logaddexp(last[:, -1], last[:, -2]))

    def in_torch(logits, labels):
        return F.ctc_loss(F.log_softmax(logits, 2), labels, torch.full((batch,), length),
                          torch.full((batch,), spoken), reduction="sum")

    program("alignment_loss", g, in_jax, in_torch, grad="logits", tolerance=3e-3)


def embedding_bag():
    """Weighted sums of rows of a large table, and the gradient of table and weights."""
    g = Program()
    rows, bag, words, width = 2048, 20, 20000, 32
    ids = g.input("ids", (rows, bag), "i32", integers(words))
    table, weight = g.input("table", (words, width)), g.input("weight", (rows, bag))
    y = (op.gather(table, ids, axis=0) * weight.reshape(rows, bag, 1)).sum(1)
    g.returns((y * y).mean(0, 1))
    program("embedding_bag", g,
            lambda ids, table, weight: jnp.mean(jnp.square(
                jnp.sum(table[ids] * weight[:, :, None], 1))),
            lambda ids, table, weight: torch.mean(torch.square(
                F.embedding_bag(ids, table, mode="sum", per_sample_weights=weight))),
            grad="table weight", tolerance=1e-3)


def neighbour_embedding():
    """t-SNE: distances of all pairs in the plane against given likelihoods, and the gradient."""
    g = Program()
    n = 800
    y, p = g.input("y", (n, 2)), g.input("p", (n, n), rule=uniform(0, 2 / n**2))
    d = y.reshape(n, 1, 2) - y.reshape(1, n, 2)
    index = lambda axis: g.add("iota", [], {"shape": [n, n], "axis": axis})
    near = op.where(op.eq(index(0), index(1)), 0.0, 1.0 / ((d * d).sum(2) + 1.0))
    q = op.max(near / near.sum(0, 1), 1e-12)
    g.returns((p * (op.log(p + 1e-12) - op.log(q))).sum(0, 1))

    def in_jax(y, p):
        d2 = jnp.sum(jnp.square(y[:, None] - y), 2)
        near = jnp.where(jnp.eye(n, dtype=bool), 0, 1 / (1 + d2))
        q = jnp.maximum(near / near.sum(), 1e-12)
        return jnp.sum(p * (jnp.log(p + 1e-12) - jnp.log(q)))

    def in_torch(y, p):
        d2 = torch.sum(torch.square(y[:, None] - y), 2)
        near = torch.where(torch.eye(n, dtype=torch.bool), 0, 1 / (1 + d2))
        q = torch.clamp(near / near.sum(), min=1e-12)
        return torch.sum(p * (torch.log(p + 1e-12) - torch.log(q)))

    program("neighbour_embedding", g, in_jax, in_torch, grad="y", tolerance=2e-3)


def cox_loss():
    """Who of those still at risk fell ill at each time: sums that run over patients in order."""
    g = Program()
    n, width = 8192, 24
    x, w = g.input("x", (n, width)), g.input("w", (width, 1), rule=normal(.2))
    time = g.input("time", (n,), rule=uniform(0, 1))
    event = g.input("event", (n,), "bool", booleans)
    order = op.arg_sort(time, descending=True)
    eta = op.gather((x @ w).reshape(n), order, axis=0)
    ill = op.gather(event, order, axis=0).to("f32")
    most = op.detach(eta.max(0))
    at_risk = op.log(op.cumsum(op.exp(eta - most), axis=0)) + most
    g.returns(((at_risk - eta) * ill).sum(0) / ill.sum(0))

    def in_jax(x, w, time, event):
        order = jnp.argsort(-time)
        eta, ill = (x @ w)[:, 0][order], event[order].astype("float32")
        most = lax.stop_gradient(jnp.max(eta))
        at_risk = jnp.log(jnp.cumsum(jnp.exp(eta - most))) + most
        return jnp.sum((at_risk - eta) * ill) / jnp.sum(ill)

    def in_torch(x, w, time, event):
        order = torch.argsort(time, descending=True)
        eta, ill = (x @ w)[:, 0][order], event[order].float()
        return torch.sum((torch.logcumsumexp(eta, 0) - eta) * ill) / torch.sum(ill)

    program("cox_loss", g, in_jax, in_torch, grad="w", tolerance=2e-3)


def cached_decoding():
    """One more word: its key and value go into the cache, and it looks at all so far."""
    g = Program()
    batch, heads, most, d = 4, 8, 512, 64
    x = g.input("x", (batch, heads * d))
    w = g.input("w", (heads * d, 3 * heads * d), rule=normal(.05))
    keys, values = (g.input(k, (batch, heads, most, d)) for k in ("keys", "values"))
    at = g.input("at", (), "i32", integers(500, 400))
    q, k, v = ((x @ w).cut(1, i * heads * d, heads * d).reshape(batch, heads, 1, d)
               for i in range(3))
    keys, values = op.dynamic_update(keys, k, at, axis=2), op.dynamic_update(values, v, at, axis=2)
    seen = op.le(g.add("iota", [], {"shape": [most], "dtype": "i32"}), at)
    scores = op.where(seen, q @ keys.transpose(0, 1, 3, 2) * 0.125, -1e9)
    g.returns((op.softmax(scores) @ values).reshape(batch, heads * d), keys, values)

    def in_jax(x, w, keys, values, at):
        q, k, v = ((a.reshape(batch, heads, 1, d)) for a in jnp.split(x @ w, 3, 1))
        keys = lax.dynamic_update_slice(keys, k, (0, 0, at, 0))
        values = lax.dynamic_update_slice(values, v, (0, 0, at, 0))
        scores = jnp.where(jnp.arange(most) <= at, q @ keys.swapaxes(2, 3) * 0.125, -1e9)
        return (nn.softmax(scores) @ values).reshape(batch, -1), keys, values

    def in_torch(x, w, keys, values, at):
        q, k, v = (a.reshape(batch, heads, 1, d) for a in (x @ w).chunk(3, 1))
        keys, values, i = keys.clone(), values.clone(), int(at)
        keys[:, :, i:i + 1], values[:, :, i:i + 1] = k, v
        scores = torch.where(torch.arange(most) <= i, q @ keys.transpose(2, 3) * 0.125, -1e9)
        return (torch.softmax(scores, 3) @ values).reshape(batch, -1), keys, values

    program("cached_decoding", g, in_jax, in_torch, tolerance=1e-3)


for build in (diffusion_block, radiance_field, spectral_norm, sinkhorn, alignment_loss,
              embedding_bag, neighbour_embedding, cox_loss, cached_decoding):
    build()
