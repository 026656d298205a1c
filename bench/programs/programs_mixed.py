"""Programs put together from parts that seldom meet: shifts around a ring, patches, masks, edges."""

from cases import booleans, integers, normal, positive_definite, uniform
from graphs import Program, op, program
from lazy import F, jax, jnp, lax, nn, torch


def rolled(u, axis, amount, n):
    """As jnp.roll: what leaves at one end enters at the other."""
    cut = (n - amount) % n
    return op.concat(u.cut(axis, cut, n - cut), u.cut(axis, 0, cut), axis=axis)


def periodic_diffusion():
    """Gray and Scott's reaction in a box without walls, and its gradient."""
    g = Program()
    n = 48
    u, v = g.input("u", (n, n, n)), g.input("v", (n, n, n))

    def laplacian(a):
        total = a * -6.0
        for axis in range(3):
            total = total + rolled(a, axis, 1, n) + rolled(a, axis, -1, n)
        return total

    reaction = u * v * v
    next_u = u + laplacian(u) * 0.16 - reaction + (-u + 1.0) * 0.035
    next_v = v + laplacian(v) * 0.08 + reaction - v * 0.1
    g.returns((next_u * next_u).sum(0, 1, 2) + (next_v * next_v).sum(0, 1, 2))

    def step(u, v, roll, total):
        def laplacian(a):
            return sum(roll(a, s, d) for d in range(3) for s in (1, -1)) - 6 * a

        reaction = u * v * v
        u, v = (u + 0.16 * laplacian(u) - reaction + 0.035 * (1 - u),
                v + 0.08 * laplacian(v) + reaction - 0.1 * v)
        return total(u * u) + total(v * v)

    program("periodic_diffusion", g, lambda u, v: step(u, v, jnp.roll, jnp.sum),
            lambda u, v: step(u, v, torch.roll, torch.sum), grad="u v", tolerance=1e-3)


def lattice_boltzmann():
    """Nine populations of a gas stream to their neighbours, then collide."""
    g = Program()
    n = 256
    f = g.input("f", (9, n, n), rule=uniform(.5, 1.5))
    moves = [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)]
    weights = [4 / 9] + [1 / 9] * 4 + [1 / 36] * 4
    streamed = []
    for i, move in enumerate(moves):
        a = f.cut(0, i, 1).reshape(n, n)
        for axis, amount in enumerate(move):
            a = rolled(a, axis, amount, n) if amount else a
        streamed.append(a)

    def collide(parts):
        total = sum(parts[1:], parts[0])
        x = (parts[1] + parts[5] + parts[8] - parts[3] - parts[6] - parts[7]) / total
        y = (parts[2] + parts[5] + parts[6] - parts[4] - parts[7] - parts[8]) / total
        square = (x * x + y * y) * 1.5
        out = []
        for p, (a, b), w in zip(parts, moves, weights):
            along = (x * float(a) + y * float(b)) * 3.0
            out.append(p - (p - total * w * (along + along * along * 0.5 - square + 1.0)) * 0.6)
        return out

    g.returns(op.concat(*[a.reshape(1, n, n) for a in collide(streamed)], axis=0))

    def run(f, roll, stack):
        return stack(collide([roll(f[i], move, (0, 1)) for i, move in enumerate(moves)]))

    program("lattice_boltzmann", g, lambda f: run(f, jnp.roll, jnp.stack),
            lambda f: run(f, torch.roll, torch.stack), tolerance=1e-3)


def kalman_update():
    """One measurement for each of many filters."""
    g = Program()
    many, states, seen = 4096, 6, 3
    x, z = g.input("x", (many, states, 1)), g.input("z", (many, seen, 1))
    p, h = g.input("p", (many, states, states), rule=positive_definite), g.input("h", (seen, states))
    r = g.input("r", (seen, seen), rule=positive_definite)
    hp = h @ p
    s = hp @ h.transpose(1, 0) + r
    gain = op.batched_dense_solve(s, hp).transpose(0, 2, 1)
    g.returns(x + gain @ (z - h @ x), p - gain @ hp)

    def run(x, z, p, h, r, solve):
        hp = h @ p
        gain = solve(hp @ h.T + r, hp).swapaxes(1, 2)
        return x + gain @ (z - h @ x), p - gain @ hp

    program("kalman_update", g, lambda *a: run(*a, jnp.linalg.solve),
            lambda *a: run(*a, torch.linalg.solve), tolerance=1e-3)


def beam_step():
    """Scores of a batch of beams, the best of each, and their histories in the new order."""
    g = Program()
    batch, beams, words, length = 16, 4, 4096, 64
    logits, scores = g.input("logits", (batch, beams, words)), g.input("scores", (batch, beams, 1))
    history = g.input("history", (batch, beams, length), "i32", integers(words))
    done = g.input("done", (batch, beams, 1), "bool", booleans)
    log_p = logits - op.reduce(logits, op="log_sum_exp", axes=[2], keep_dim=True)
    candidates = op.where(done, scores + 0.0, scores + log_p).reshape(batch, beams * words)
    best, place = op.top_k(candidates, k=beams, results=2)
    place.dtype = "i32"
    came_from = (place / words).reshape(batch, beams, 1)
    rows = op.expand(came_from, target_shape=[batch, beams, length])
    g.returns(best, op.take_along_axis(history, rows, axis=1))

    def in_jax(logits, scores, history, done):
        candidates = jnp.where(done, scores, scores + nn.log_softmax(logits)).reshape(batch, -1)
        best, place = lax.top_k(candidates, beams)
        return best, jnp.take_along_axis(history, (place // words)[:, :, None], 1)

    program("beam_step", g, in_jax)


def group_norm_block():
    """Group norm, SiLU and a convolution, with the way around them: half of a diffusion block."""
    g = Program()
    n, c, s = 4, 64, 32
    x, w = g.input("x", (n, c, s, s)), g.input("w", (c, c, 3, 3), rule=normal(.04))
    scale, shift = g.input("scale", (c,), rule=uniform(.5, 1.5)), g.input("shift", (c,))
    time = g.input("time", (n, c, 1, 1))
    y = op.conv(op.silu(op.group_norm(x, scale, shift, num_groups=8) + time), w, padding=[1, 1]) + x
    g.returns((y * y).mean(0, 1, 2, 3))

    def in_jax(x, w, scale, shift, time):
        parts = x.reshape(n, 8, -1)
        parts = (parts - parts.mean(-1, keepdims=True)) * lax.rsqrt(parts.var(-1, keepdims=True) +
                                                                    1e-5)
        h = parts.reshape(x.shape) * scale[:, None, None] + shift[:, None, None] + time
        return jnp.mean(jnp.square(lax.conv_general_dilated(nn.silu(h), w, (1, 1), "SAME") + x))

    def in_torch(x, w, scale, shift, time):
        h = F.group_norm(x, 8, scale, shift) + time
        return torch.mean(torch.square(F.conv2d(F.silu(h), w, padding=1) + x))

    program("group_norm_block", g, in_jax, in_torch, grad="x w scale shift time", tolerance=2e-3)


def masked_maxima():
    """How far each series is below its highest point so far, where it was observed."""
    g = Program()
    rows, length = 512, 2000
    x, seen = g.input("x", (rows, length)), g.input("seen", (rows, length), "bool", booleans)
    highest = op.cummax(op.where(seen, x, -1e30), axis=1)
    fall = op.where(seen, highest - x, 0.0)
    g.returns(fall.max(1), fall.sum(1) / op.max(seen.to("f32").sum(1), 1.0))

    def in_jax(x, seen):
        fall = jnp.where(seen, lax.cummax(jnp.where(seen, x, -1e30), 1) - x, 0.0)
        return fall.max(1), fall.sum(1) / jnp.maximum(seen.sum(1), 1)

    def in_torch(x, seen):
        highest = torch.cummax(torch.where(seen, x, -1e30), 1)[0]
        fall = torch.where(seen, highest - x, 0.0)
        return fall.amax(1), fall.sum(1) / seen.sum(1).clamp(min=1)

    program("masked_maxima", g, in_jax, in_torch, tolerance=1e-3)


def patches():
    """Images cut into patches, each normalised and projected."""
    g = Program()
    n, c, s, p, width = 16, 3, 128, 16, 192
    x, w = g.input("x", (n, c, s, s)), g.input("w", (c * p * p, width), rule=normal(.03))
    k = s // p
    rows = x.reshape(n, c, k, p, k, p).transpose(0, 2, 4, 1, 3, 5).reshape(n, k * k, c * p * p)
    centred = rows - rows.mean(2, keep=True)
    normed = centred * op.rsqrt((centred * centred).mean(2, keep=True) + 1e-5)
    y = op.gelu(normed @ w)
    g.returns((y * y).mean(0, 1, 2))

    def run(x, w, permuted, rsqrt, gelu):
        rows = permuted(x.reshape(n, c, k, p, k, p)).reshape(n, k * k, -1)
        centred = rows - rows.mean(2)[..., None]
        y = gelu(centred * rsqrt((centred * centred).mean(2)[..., None] + 1e-5) @ w)
        return (y * y).mean()

    order = (0, 2, 4, 1, 3, 5)
    program("patches", g, lambda x, w: run(x, w, lambda a: a.transpose(order), lax.rsqrt,
                                           lambda a: nn.gelu(a, approximate=False)),
            lambda x, w: run(x, w, lambda a: a.permute(order), torch.rsqrt, F.gelu),
            grad="x w", tolerance=2e-3)


def segmentation_loss():
    """Cross entropy over the channels of images, which lie far apart in memory."""
    g = Program()
    n, classes, s = 4, 19, 128
    x, labels = g.input("x", (n, classes, s, s)), g.input("labels", (n, 1, s, s), "i32",
                                                          integers(classes))
    log_p = x - op.reduce(x, op="log_sum_exp", axes=[1], keep_dim=True)
    g.returns(-op.take_along_axis(log_p, labels, axis=1).mean(0, 1, 2, 3))
    program("segmentation_loss", g,
            lambda x, i: -jnp.mean(jnp.take_along_axis(nn.log_softmax(x, 1), i, 1)),
            lambda x, i: F.cross_entropy(x, i[:, 0].long()), grad="x", tolerance=1e-3)


def edge_softmax():
    """Attention along the edges of a graph: maxima, sums and averages by scatter."""
    g = Program()
    nodes, edges, width = 4000, 40000, 16
    h, a = g.input("h", (nodes, width)), g.input("a", (nodes, 1))
    s, t = (g.input(k, (edges,), "i32", integers(nodes)) for k in ("s", "t"))
    score = op.gather(a, s, axis=0) + op.gather(a, t, axis=0)
    score = op.max(score, score * 0.2).reshape(edges)
    lowest = g.constant(-1e30, shape=(nodes,))
    most = op.detach(op.scatter(lowest, score, t, kind="max"))
    weight = op.exp(score - op.gather(most, t, axis=0)).reshape(edges, 1)
    total = op.scatter_add(weight, t, out_dim=nodes)
    y = op.scatter_add(op.gather(h, s, axis=0) * weight, t, out_dim=nodes) / (total + 1e-9)
    g.returns((y * y).sum(0, 1))

    def in_jax(h, a, s, t):
        score = nn.leaky_relu(a[s] + a[t], 0.2)[:, 0]
        most = lax.stop_gradient(jax.ops.segment_max(score, t, nodes))
        weight = jnp.exp(score - most[t])[:, None]
        total = jax.ops.segment_sum(weight, t, nodes)
        return jnp.sum(jnp.square(jax.ops.segment_sum(h[s] * weight, t, nodes) / (total + 1e-9)))

    program("edge_softmax", g, in_jax, grad="h a", tolerance=1e-3)


for build in (periodic_diffusion, lattice_boltzmann, kalman_update, beam_step, group_norm_block,
              masked_maxima, patches, segmentation_loss, edge_softmax):
    build()
