"""Programs of machine learning: blocks of networks, losses, steps of training and of inference."""

from cases import integers, normal, uniform
from graphs import Program, op, program
from lazy import F, jax, jnp, lax, nn, torch


def weights(g, name, *shape, scale=None):
    fan = 1
    for n in shape[:-1] if len(shape) == 2 else shape[1:]:
        fan *= n
    return g.input(name, shape, rule=normal(scale or fan**-0.5))


def lstm():
    g = Program()
    length, batch, width = 64, 32, 128
    x, wx, wh = g.input("x", (length, batch, width)), weights(g, "wx", width, 512), weights(g, "wh",
                                                                                            width,
                                                                                            512)
    b = g.input("b", (512,), rule=normal(.1))
    z = (x @ wx + b).like(length, batch, 512)
    zeros = g.constant(0.0, shape=(batch, width))

    def step(h, c, wh, z):
        i, f, u, o = ((z + h @ wh).cut(1, k * width, width) for k in range(4))
        c = op.sigmoid(f) * c + op.sigmoid(i) * op.tanh(u)
        return [op.sigmoid(o) * op.tanh(c), c]

    h, _ = g.scan(step, [zeros, zeros], [z], [wh])
    g.returns((h * h).mean(0, 1))

    def in_jax(x, wx, wh, b):
        def step(carry, z):
            h, c = carry
            i, f, u, o = jnp.split(z + h @ wh, 4, -1)
            c = nn.sigmoid(f) * c + nn.sigmoid(i) * jnp.tanh(u)
            return (nn.sigmoid(o) * jnp.tanh(c), c), None

        zeros = jnp.zeros((batch, width))
        return jnp.mean(jnp.square(lax.scan(step, (zeros, zeros), x @ wx + b)[0][0]))

    def in_torch(x, wx, wh, b):
        zeros = torch.zeros(1, batch, width)
        out = torch._VF.lstm(x, (zeros, zeros), (wx.T, wh.T, b, torch.zeros(512)), True, 1, 0.0,
                             True,
                             False, False)
        return torch.mean(torch.square(out[1][0]))

    program("lstm", g, in_jax, in_torch, grad="wx wh b", tolerance=1e-3)


def gru():
    g = Program()
    length, batch, width = 64, 32, 128
    x, wx, wh = g.input("x", (length, batch, width)), weights(g, "wx", width, 384), weights(g, "wh",
                                                                                            width,
                                                                                            384)
    z = (x @ wx).like(length, batch, 384)

    def step(h, wh, z):
        p = h @ wh
        part = lambda a, k: a.cut(1, k * width, width)
        r = op.sigmoid(part(z, 0) + part(p, 0))
        u = op.sigmoid(part(z, 1) + part(p, 1))
        n = op.tanh(part(z, 2) + r * part(p, 2))
        h = n + u * (h - n)
        return [h, h]

    _, ys = g.scan(step, [g.constant(0.0, shape=(batch, width))], [z], [wh], stacked=1)
    g.returns(ys)

    def in_jax(x, wx, wh):
        def step(h, z):
            z0, z1, z2 = jnp.split(z, 3, -1)
            p0, p1, p2 = jnp.split(h @ wh, 3, -1)
            r, u = nn.sigmoid(z0 + p0), nn.sigmoid(z1 + p1)
            n = jnp.tanh(z2 + r * p2)
            h = n + u * (h - n)
            return h, h

        return lax.scan(step, jnp.zeros((batch, width)), x @ wx)[1]

    def in_torch(x, wx, wh):
        return torch._VF.gru(x, torch.zeros(1, batch, width), (wx.T, wh.T), False, 1, 0.0, False,
                             False,
                             False)[0]

    program("gru_inference", g, in_jax, in_torch, tolerance=1e-3)


def resnet_block():
    """Two convolutions with batch norm in training, the sum, and its gradients."""
    g = Program()
    n, c, s = 8, 64, 28
    x, w1, w2 = g.input("x", (n, c, s, s)), weights(g, "w1", c, c, 3, 3), weights(g, "w2", c, c, 3,
                                                                                  3)
    scale1, scale2 = (g.input(k, (c,), rule=uniform(.5, 1.5)) for k in ("g1", "g2"))

    def normed(h, scale):
        mean = h.mean(0, 2, 3, keep=True)
        centred = h - mean
        variance = (centred * centred).mean(0, 2, 3, keep=True)
        return centred * op.rsqrt(variance + 1e-5) * scale.reshape(c, 1, 1)

    conv = lambda h, w: op.conv(h, w, padding=[1, 1])
    h = op.relu(normed(conv(x, w1), scale1))
    y = op.relu(normed(conv(h, w2), scale2) + x)
    g.returns((y * y).mean(0, 1, 2, 3))

    def jax_norm(h, scale):
        mean = jnp.mean(h, (0, 2, 3), keepdims=True)
        variance = jnp.mean(jnp.square(h - mean), (0, 2, 3), keepdims=True)
        return (h - mean) * lax.rsqrt(variance + 1e-5) * scale[:, None, None]

    def in_jax(x, w1, w2, g1, g2):
        conv = lambda h, w: lax.conv_general_dilated(h, w, (1, 1), "SAME")
        h = nn.relu(jax_norm(conv(x, w1), g1))
        return jnp.mean(jnp.square(nn.relu(jax_norm(conv(h, w2), g2) + x)))

    def in_torch(x, w1, w2, g1, g2):
        norm = lambda h, scale: F.batch_norm(h, None, None, scale, None, True)
        h = torch.relu(norm(F.conv2d(x, w1, padding=1), g1))
        return torch.mean(torch.square(torch.relu(norm(F.conv2d(h, w2, padding=1), g2) + x)))

    program("resnet_block", g, in_jax, in_torch, grad="x w1 w2 g1 g2", tolerance=2e-3)


def unet():
    """Down, across and up again, with the skip joined in."""
    g = Program()
    x = g.input("x", (2, 3, 64, 64))
    w = [weights(g, f"w{i}", *s) for i, s in enumerate(
        [(16, 3, 3, 3), (32, 16, 3, 3), (16, 48, 3, 3), (1, 16, 1, 1)])]
    conv = lambda h, w: op.conv(h, w, padding=[1, 1])
    a = op.relu(conv(x, w[0]))
    down = op.pool(a, kind="max", kernel_size=[2, 2], stride=[2, 2])
    b = op.relu(conv(down, w[1]))
    up = op.resize(b, sizes=[64, 64])
    c = op.relu(conv(op.concat(a, up, axis=1), w[2]))
    g.returns(op.square(op.conv(c, w[3])).mean(0, 1, 2, 3))

    def in_jax(x, *w):
        conv = lambda h, w: lax.conv_general_dilated(h, w, (1, 1), "SAME")
        a = nn.relu(conv(x, w[0]))
        down = lax.reduce_window(a, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
        up = jnp.repeat(jnp.repeat(nn.relu(conv(down, w[1])), 2, 2), 2, 3)
        c = nn.relu(conv(jnp.concatenate([a, up], 1), w[2]))
        return jnp.mean(jnp.square(conv(c, w[3])))

    def in_torch(x, *w):
        a = torch.relu(F.conv2d(x, w[0], padding=1))
        up = F.interpolate(torch.relu(F.conv2d(F.max_pool2d(a, 2), w[1], padding=1)),
                           scale_factor=2.0)
        c = torch.relu(F.conv2d(torch.cat([a, up], 1), w[2], padding=1))
        return torch.mean(torch.square(F.conv2d(c, w[3])))

    program("unet", g, in_jax, in_torch, grad="w0 w1 w2 w3", tolerance=2e-3)


def graph_convolution():
    g = Program()
    nodes, edges, width = 5000, 40000, 64
    x, w = g.input("x", (nodes, width)), weights(g, "w", width, width)
    s, t = (g.input(k, (edges,), "i32", integers(nodes)) for k in ("s", "t"))
    messages = op.gather(x @ w, s, axis=0)
    h = op.relu(op.scatter_add(messages, t, out_dim=nodes))
    g.returns((h * h).mean(0, 1))

    def in_jax(x, w, s, t):
        h = nn.relu(jax.ops.segment_sum((x @ w)[s], t, nodes))
        return jnp.mean(h * h)

    def in_torch(x, w, s, t):
        h = torch.relu(torch.zeros(nodes, width).index_add(0, t, (x @ w).index_select(0, s)))
        return torch.mean(h * h)

    program("graph_convolution", g, in_jax, in_torch, grad="x w", tolerance=1e-3)


def beam_search():
    g = Program()
    beams, words = 8, 32000
    logits, scores = g.input("logits", (beams, words)), g.input("scores", (beams, 1))
    log_p = logits - op.reduce(logits, op="log_sum_exp", axes=[1], keep_dim=True)
    best, place = op.top_k((log_p + scores).reshape(beams * words), k=beams, results=2)
    place.dtype = "i32"
    g.returns(best, place / words, place % words)

    def in_jax(logits, scores):
        best, place = lax.top_k((nn.log_softmax(logits) + scores).reshape(-1), beams)
        return best, place // words, place % words

    def in_torch(logits, scores):
        best, place = torch.topk((F.log_softmax(logits, -1) + scores).reshape(-1), beams)
        return best, place // words, place % words

    program("beam_search", g, in_jax, in_torch)


def text_conv():
    """Bytes, embedded, convolved at three widths, pooled over time, classified."""
    g = Program()
    batch, length, width, classes = 32, 256, 32, 4
    ids, labels = g.input("ids", (batch, length), "i32", integers(256)), g.input(
        "labels", (batch,), "i32", integers(classes))
    table, last = g.input("table", (256, width)), weights(g, "last", 3 * 64, classes)
    kernels = [weights(g, f"k{n}", 64, width, n) for n in (3, 4, 5)]
    x = op.gather(table, ids, axis=0).transpose(0, 2, 1)
    h = [op.relu(op.conv(x, k, stride=[1], padding=[0], dilation=[1])).max(2) for k in kernels]
    logits = op.concat(*h, axis=1) @ last
    g.returns(op.softmax_cross_entropy_with_logits(logits, labels).mean(0))

    def in_jax(ids, labels, table, last, *kernels):
        x = table[ids].swapaxes(1, 2)
        h = [jnp.max(nn.relu(lax.conv_general_dilated(x, k, (1,), "VALID")), 2) for k in kernels]
        log_p = nn.log_softmax(jnp.concatenate(h, 1) @ last)
        return -jnp.mean(jnp.take_along_axis(log_p, labels[:, None], 1))

    def in_torch(ids, labels, table, last, *kernels):
        x = F.embedding(ids, table).transpose(1, 2)
        h = [torch.amax(torch.relu(F.conv1d(x, k)), 2) for k in kernels]
        return F.cross_entropy(torch.cat(h, 1) @ last, labels)

    program("text_conv", g, in_jax, in_torch, grad="table last k3 k4 k5", tolerance=2e-3)


def contrastive():
    g = Program()
    n = 512
    a, b = g.input("a", (n, 128)), g.input("b", (n, 128))
    labels = g.add("iota", [], {"shape": [n]})
    unit = lambda x: x * op.rsqrt((x * x).sum(1, keep=True))
    logits = unit(a) @ unit(b).transpose(1, 0) * 10.0
    loss = lambda z: op.softmax_cross_entropy_with_logits(z, labels).mean(0)
    g.returns(loss(logits) + loss(logits.transpose(1, 0)))

    def in_jax(a, b):
        unit = lambda x: x / jnp.linalg.norm(x, axis=1, keepdims=True)
        z = 10 * (unit(a) @ unit(b).T)
        diagonal = jnp.diagonal(z)
        rows, columns = nn.logsumexp(z, axis=1), nn.logsumexp(z, axis=0)
        return jnp.mean(rows - diagonal) + jnp.mean(columns - diagonal)

    def in_torch(a, b):
        z = 10 * (F.normalize(a, dim=1) @ F.normalize(b, dim=1).T)
        labels = torch.arange(n)
        return F.cross_entropy(z, labels) + F.cross_entropy(z.T, labels)

    program("contrastive", g, in_jax, in_torch, grad="a b", tolerance=1e-3)


def physics_informed():
    """A network's second derivative in its input must balance it; the gradient in its weights."""
    g = Program()
    points, width = 4096, 64
    x = g.input("x", (points, 1), rule=uniform(-1, 1))
    w1, w2, w3 = (weights(g, n, *s) for n, s in (("w1", (1, width)), ("w2", (width, width)),
                                                 ("w3", (width, 1))))
    value, first, second = x @ w1, op.expand(w1, target_shape=[points, width]), None
    for w in (w2, w3):
        h = op.tanh(value)
        slope = 1.0 - h * h
        dh = slope * first
        ddh = -(h * dh * first * 2.0) + (slope * second if second else 0.0)
        value, first, second = h @ w, dh @ w, ddh @ w
    residual = second + value - op.sin(x)
    g.returns((residual * residual).mean(0, 1))

    def in_jax(x, w1, w2, w3):
        def u(t):
            return (jnp.tanh(jnp.tanh(t[None] @ w1) @ w2) @ w3)[0]

        def balance(t):
            slope = lambda s: jax.jvp(u, (s,), (jnp.ones(1),))[1]
            return jax.jvp(slope, (t,), (jnp.ones(1),))[1] + u(t) - jnp.sin(t[0])

        return jnp.mean(jnp.square(jax.vmap(balance)(x)))

    program("physics_informed", g, in_jax, grad="w1 w2 w3", tolerance=2e-3)


def mixture_density():
    g = Program()
    n, parts = 20000, 8
    z, y = g.input("z", (n, 3 * parts)), g.input("y", (n, 1))
    logits, mean, log_scale = (z.cut(1, i * parts, parts) for i in range(3))
    t = (y - mean) * op.exp(-log_scale)
    log_p = logits - op.reduce(logits, op="log_sum_exp", axes=[1],
                               keep_dim=True) - t * t * 0.5 - log_scale
    g.returns(-op.reduce(log_p, op="log_sum_exp", axes=[1]).mean(0))

    def in_jax(z, y):
        logits, mean, log_scale = jnp.split(z, 3, 1)
        t = (y - mean) * jnp.exp(-log_scale)
        return -jnp.mean(nn.logsumexp(nn.log_softmax(logits) - t * t / 2 - log_scale, axis=1))

    def in_torch(z, y):
        logits, mean, log_scale = z.chunk(3, 1)
        t = (y - mean) * torch.exp(-log_scale)
        return -torch.mean(torch.logsumexp(F.log_softmax(logits, 1) - t * t / 2 - log_scale, 1))

    program("mixture_density", g, in_jax, in_torch, grad="z", tolerance=1e-3)


def linear_attention():
    g = Program()
    shape = (4, 8, 512, 64)
    q, k, v = (g.input(n, shape) for n in "qkv")
    feature = lambda x: op.elu(x) + 1.0
    fq, fk = feature(q), feature(k)
    state = fk.transpose(0, 1, 3, 2) @ v
    norm = (fq * fk.sum(2, keep=True)).sum(3, keep=True)
    g.returns(op.square(fq @ state / norm).mean(0, 1, 2, 3))

    def in_jax(q, k, v):
        q, k = nn.elu(q) + 1, nn.elu(k) + 1
        state = jnp.einsum("bhkd,bhke->bhde", k, v)
        y = jnp.einsum("bhqd,bhde->bhqe", q, state)
        return jnp.mean(jnp.square(y / jnp.einsum("bhqd,bhd->bhq", q, jnp.sum(k, 2))[..., None]))

    def in_torch(q, k, v):
        q, k = F.elu(q) + 1, F.elu(k) + 1
        y = q @ (k.transpose(2, 3) @ v)
        return torch.mean(torch.square(y / (q * k.sum(2, keepdim=True)).sum(3, keepdim=True)))

    program("linear_attention", g, in_jax, in_torch, grad="q k v", tolerance=1e-3)


def alibi_attention():
    g = Program()
    b, h, n, d = 2, 8, 256, 64
    q, k, v, s = *(g.input(m, (b, h, n, d)) for m in "qkv"), g.input("s", (h, 1, 1),
                                                                     rule=uniform(.01, .5))
    row, column = (g.add("iota", [], {"shape": [n, n], "axis": a, "dtype": "f32"}) for a in (0, 1))
    bias = op.where(op.le(column, row), (column - row) * s, -1e9)
    scores = q @ k.transpose(0, 1, 3, 2) * 0.125 + bias
    g.returns(op.softmax(scores) @ v)

    def attend(q, k, v, s, xp, softmax):
        place = xp.arange(n)
        distance = (place[None] - place[:, None])
        bias = xp.where(distance <= 0, s * distance, -1e9)
        return softmax(q @ k.swapaxes(2, 3) * 0.125 + bias) @ v

    def in_torch(q, k, v, s):
        place = torch.arange(n)
        distance = place[None] - place[:, None]
        bias = torch.where(distance <= 0, s * distance, -1e9)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias)

    program("alibi_attention", g, lambda *a: attend(*a, jnp, nn.softmax), in_torch)


def mixture_of_experts():
    g = Program()
    rows, width, experts = 512, 128, 8
    x, gate = g.input("x", (rows, width)), weights(g, "gate", width, experts)
    up, down = weights(g, "up", experts, width, 256, scale=.1), weights(g, "down", experts, 256,
                                                                        width, scale=.06)
    score, chosen = op.top_k(x @ gate, k=2, results=2)
    share = op.softmax(score)
    y = None
    for i in range(2):
        pick = chosen.cut(1, i, 1).reshape(rows)
        h = op.gelu_approx(op.grouped_matmul(x, up, pick))
        part = op.grouped_matmul(h, down, pick) * share.cut(1, i, 1)
        y = part if y is None else y + part
    g.returns(y)

    def in_jax(x, gate, up, down):
        score, chosen = lax.top_k(x @ gate, 2)
        share = nn.softmax(score)
        flat = chosen.reshape(-1)
        order = jnp.argsort(flat)
        sizes = jnp.zeros(experts, "int32").at[flat].add(1)
        h = nn.gelu(lax.ragged_dot(jnp.repeat(x, 2, 0)[order], up, sizes))
        found = lax.ragged_dot(h, down, sizes)
        back = jnp.zeros_like(found).at[order].set(found)
        return jnp.sum(back.reshape(rows, 2, width) * share[..., None], 1)

    def in_torch(x, gate, up, down):
        score, chosen = torch.topk(x @ gate, 2)
        share = torch.softmax(score, 1)
        y = torch.zeros_like(x)
        for e in range(experts):
            row, slot = (chosen == e).nonzero(as_tuple=True)
            part = F.gelu(x[row] @ up[e], approximate="tanh") @ down[e]
            y.index_add_(0, row, part * share[row, slot][:, None])
        return y

    program("mixture_of_experts", g, in_jax, in_torch, tolerance=1e-3)


def quantised_mlp():
    g = Program()
    codes = integers(100, -100)
    x = g.input("x", (128, 512), "i8", codes)
    w = [g.input(f"w{i}", (512, 512), "i8", codes) for i in range(3)]
    h = x
    for k in w:
        h = op.q_matmul(h, k, mult=[0.00048828125], low=0)
    g.returns(h)

    def in_jax(x, *w):
        for k in w:
            z = lax.dot(x, k, preferred_element_type="int32")
            x = jnp.clip(jnp.round(z * 0.00048828125), 0, 127).astype("int8")
        return x

    def in_torch(x, *w):
        for k in w:
            x = torch.clamp(torch.round(torch._int_mm(x, k) * 0.00048828125), 0, 127).to(torch.int8)
        return x

    program("quantised_mlp", g, in_jax, in_torch, tolerance=1e-2)


def lora():
    g = Program()
    x, y, w = g.input("x", (256, 512)), g.input("y", (256, 512)), weights(g, "w", 512, 512)
    a, b = weights(g, "a", 512, 8), weights(g, "b", 8, 512)
    error = op.lora_matmul(x, w, a, b, scale=2.0) - y
    g.returns((error * error).mean(0, 1))
    loss = lambda x, y, w, a, b: ((x @ w + 2 * ((x @ a) @ b) - y) ** 2).mean()
    program("lora", g, loss, loss, grad="a b", tolerance=1e-3)


def adamw():
    """The optimiser alone, on a dozen arrays of different sizes."""
    g = Program()
    shapes = [(256, 256), (256,), (1024, 256), (1024,), (256, 1024), (256,), (64, 64, 3, 3), (64,),
              (10, 256), (10,), (512, 128), (1,)]
    outputs = []
    for i, shape in enumerate(shapes):
        p, d, m = (g.input(f"{n}{i}", shape) for n in "pdm")
        v = g.input(f"v{i}", shape, rule=uniform(0, 1))
        m = m * 0.9 + d * 0.1
        v = v * 0.999 + d * d * 0.001
        outputs += [p * 0.99999 - m * 0.001 / (op.sqrt(v) + 1e-8), m, v]
    g.returns(*outputs)

    def step(arrays, sqrt):
        out = []
        for p, d, m, v in zip(*[iter(arrays)] * 4):
            m = 0.9 * m + 0.1 * d
            v = 0.999 * v + 0.001 * d * d
            out += [0.99999 * p - 0.001 * m / (sqrt(v) + 1e-8), m, v]
        return tuple(out)

    program("adamw", g, lambda *a: step(a, jnp.sqrt), lambda *a: step(a, torch.sqrt))


def tabular():
    g = Program()
    rows, width = 1024, 16
    sizes = [1000, 50, 7, 20000, 300, 12]
    ids = [g.input(f"c{i}", (rows,), "i32", integers(n)) for i, n in enumerate(sizes)]
    tables = [g.input(f"t{i}", (n, width), rule=normal(.1)) for i, n in enumerate(sizes)]
    dense, w1, w2 = g.input("dense", (rows, 13)), weights(g, "w1", 13 + 96, 128), weights(g, "w2",
                                                                                          128, 1)
    y = g.input("y", (rows, 1), rule=integers(2))
    x = op.concat(dense, *[op.gather(t, i, axis=0) for t, i in zip(tables, ids)], axis=1)
    z = op.relu(x @ w1) @ w2
    g.returns((op.softplus(z) - y * z).mean(0, 1))

    def in_jax(*a):
        ids, tables, (dense, w1, w2, y) = a[:6], a[6:12], a[12:]
        x = jnp.concatenate([dense] + [t[i] for t, i in zip(tables, ids)], 1)
        z = nn.relu(x @ w1) @ w2
        return jnp.mean(nn.softplus(z) - y * z)

    def in_torch(*a):
        ids, tables, (dense, w1, w2, y) = a[:6], a[6:12], a[12:]
        x = torch.cat([dense] + [F.embedding(i, t) for t, i in zip(tables, ids)], 1)
        z = torch.relu(x @ w1) @ w2
        return F.binary_cross_entropy_with_logits(z, y)

    program("tabular", g, in_jax, in_torch, grad="t0 t1 t2 t3 t4 t5 w1 w2", tolerance=1e-3)


for build in (lstm, gru, resnet_block, unet, graph_convolution, beam_search, text_conv, contrastive,
              physics_informed, mixture_density, linear_attention, alibi_attention,
              mixture_of_experts,
              quantised_mlp, lora, adamw, tabular):
    build()
