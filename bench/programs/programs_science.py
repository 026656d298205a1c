"""Programs of science and finance: simulations, filters, fits and solvers."""

from cases import integers, normal, uniform
from graphs import Program, op, program
from lazy import F, jax, jnp, lax, nn, torch


def kmeans():
    g = Program()
    x, c = g.input("x", (20000, 16)), g.input("c", (64, 16))
    distances = (c * c).sum(1) - (x @ c.transpose(1, 0)) * 2.0
    nearest = op.arg_min(distances, axis=1)
    sums = op.scatter_add(x, nearest, out_dim=64)
    one = g.constant(1.0, shape=(20000,))
    counts = op.scatter_add(one, nearest, out_dim=64)
    g.returns(sums / op.max(counts, 1.0).reshape(64, 1))

    def in_jax(x, c):
        nearest = lax.argmin(jnp.sum(c * c, 1) - 2 * (x @ c.T), 1, "int32")
        sums = jnp.zeros_like(c).at[nearest].add(x)
        counts = jnp.zeros(64).at[nearest].add(1)
        return sums / jnp.maximum(counts, 1)[:, None]

    def in_torch(x, c):
        nearest = torch.argmin((c * c).sum(1) - 2 * (x @ c.T), 1)
        sums = torch.zeros_like(c).index_add(0, nearest, x)
        return sums / torch.bincount(nearest, minlength=64).clamp(min=1)[:, None]

    program("kmeans", g, in_jax, in_torch, tolerance=1e-3)


def power_iteration():
    g = Program()
    x, v = g.input("x", (5000, 128)), g.input("v", (128, 1))
    centred = x - x.mean(0, keep=True)
    covariance = (centred.transpose(1, 0) @ centred * (1 / 5000)).like(128, 128)

    def step(v, a):
        w = a @ v
        return [w / op.sqrt((w * w).sum(0, 1))]

    last = g.scan(step, [v], bcasts=[covariance], length=50)
    g.returns(op.abs(last))

    def in_jax(x, v):
        centred = x - jnp.mean(x, 0)
        a = centred.T @ centred / 5000
        return jnp.abs(lax.fori_loop(0, 50, lambda i, v: (lambda w: w / jnp.linalg.norm(w))(a @ v),
                                     v))

    def in_torch(x, v):
        centred = x - x.mean(0)
        a = centred.T @ centred / 5000
        for _ in range(50):
            w = a @ v
            v = w / torch.linalg.norm(w)
        return v.abs()

    program("power_iteration", g, in_jax, in_torch, tolerance=5e-2)


def kalman():
    """Many filters of four states and two measurements, step by step."""
    g = Program()
    z = g.input("z", (200, 64, 2, 1))
    f = g.input("f", (4, 4), rule=lambda r, s: [[1, 0, .1, 0], [0, 1, 0, .1], [0, 0, 1, 0],
                                                [0, 0, 0, 1]])
    h = g.input("h", (2, 4), rule=lambda r, s: [[1, 0, 0, 0], [0, 1, 0, 0]])
    q = g.input("q", (4, 4), rule=lambda r, s: [[.01 * (i == j) for j in range(4)]
                                                for i in range(4)])
    r = g.input("r", (2, 2), rule=lambda r, s: [[.1 * (i == j) for j in range(2)]
                                                for i in range(2)])
    x0 = g.constant(0.0, shape=(64, 4, 1))
    p0 = g.input("p0", (64, 4, 4), rule=lambda _, s: [[[float(i == j) for j in range(4)]
                                                       for i in range(4)]] * 64)

    def step(x, p, f, h, q, r, z):
        x, p = f @ x, f @ p @ f.transpose(1, 0) + q
        ht = h.transpose(1, 0)
        s = h @ p @ ht + r
        gain = op.batched_dense_solve(s, h @ p).transpose(0, 2, 1)
        x = x + gain @ (z - h @ x)
        p = p - gain @ (h @ p)
        return [x, p, x]

    _, p, xs = g.scan(step, [x0, p0], [z], [f, h, q, r], stacked=1)
    g.returns(xs, p)

    def in_jax(z, f, h, q, r, p0):
        def step(carry, z):
            x, p = carry
            x, p = f @ x, f @ p @ f.T + q
            s = h @ p @ h.T + r
            gain = jnp.linalg.solve(s, h @ p).swapaxes(1, 2)
            x = x + gain @ (z - h @ x)
            return (x, p - gain @ (h @ p)), x

        (_, p), xs = lax.scan(step, (jnp.zeros((64, 4, 1)), p0), z)
        return xs, p

    program("kalman", g, in_jax, tolerance=1e-3)


def black_scholes():
    """Prices and their derivatives in spot, volatility, rate and time."""
    g = Program()
    names = {"s": (50, 150), "k": (50, 150), "v": (.1, .5), "r": (.01, .05), "t": (.1, 2)}
    s, k, v, r, t = (g.input(n, (200000,), rule=uniform(*b)) for n, b in names.items())
    root = v * op.sqrt(t)
    d1 = (op.log(s / k) + (r + v * v * 0.5) * t) / root
    cdf = lambda d: (op.erf(d * 0.7071067811865476) + 1.0) * 0.5
    g.returns((s * cdf(d1) - k * op.exp(-(r * t)) * cdf(d1 - root)).sum(0))

    def price(xp, erf):
        def run(s, k, v, r, t):
            root = v * xp.sqrt(t)
            d1 = (xp.log(s / k) + (r + v * v / 2) * t) / root
            cdf = lambda d: (erf(d * 0.7071067811865476) + 1) / 2
            return xp.sum(s * cdf(d1) - k * xp.exp(-r * t) * cdf(d1 - root))
        return run

    program("black_scholes", g, lambda *a: price(jnp, lax.erf)(*a), lambda *a: price(torch,
                                                                                     torch.erf)(*a),
            grad="s v r t", tolerance=1e-3)


def n_body():
    g = Program()
    count = 1024
    x, v, m = g.input("x", (count, 3)), g.input("v", (count, 3)), g.input("m", (count,),
                                                                          rule=uniform(.5, 1))

    def step(x, v, m):
        d = x.reshape(1, count, 3) - x.reshape(count, 1, 3)
        r2 = (d * d).sum(2) + 0.01
        force = m / (r2 * op.sqrt(r2))
        a = (d * force.reshape(count, count, 1)).sum(1)
        v = v + a * 0.0001
        return [x + v * 0.0001, v]

    g.returns(*g.scan(step, [x, v], bcasts=[m], length=5))

    def step_in(xp):
        def step(x, v, m):
            d = x[None] - x[:, None]
            r2 = xp.sum(d * d, -1) + 0.01
            a = xp.sum(d * (m / (r2 * xp.sqrt(r2)))[..., None], 1)
            v = v + 0.0001 * a
            return x + 0.0001 * v, v
        return step

    def in_torch(x, v, m):
        for _ in range(5):
            x, v = step_in(torch)(x, v, m)
        return x, v

    program("n_body", g, lambda x, v, m: lax.fori_loop(0, 5, lambda i, c: step_in(jnp)(*c, m),
                                                       (x, v)),
            in_torch, tolerance=1e-3)


def neighbours(u, rows, columns, zero):
    """Values above, below, left and right of each cell, zero outside."""
    p = op.pad(u, zero, low=[1, 1], high=[1, 1])
    at = lambda i, j: p.cut(0, i, rows).cut(1, j, columns)
    return at(0, 1), at(2, 1), at(1, 0), at(1, 2)


def padded_neighbours(u, pad):
    p = pad(u)
    return p[:-2, 1:-1], p[2:, 1:-1], p[1:-1, :-2], p[1:-1, 2:]


def jax_neighbours(u):
    return padded_neighbours(u, lambda u: jnp.pad(u, 1))


def torch_neighbours(u):
    return padded_neighbours(u, lambda u: F.pad(u, (1, 1, 1, 1)))


def heat():
    g = Program()
    u = g.input("u", (512, 512))

    def step(u):
        a, b, c, d = neighbours(u, 512, 512, u.number(0.0))
        return [u + (a + b + c + d - u * 4.0) * 0.1]

    g.returns(g.scan(step, [u], length=50))
    advance = lambda u, near: (lambda a, b, c, d: u + 0.1 * (a + b + c + d - 4 * u))(*near(u))

    def in_torch(u):
        for _ in range(50):
            u = advance(u, torch_neighbours)
        return u

    program("heat", g, lambda u: lax.fori_loop(0, 50, lambda i, u: advance(u, jax_neighbours), u),
            in_torch)


def wave_gradient():
    """The sensitivity of a wave's last state to the speed of the medium."""
    g = Program()
    u, c = g.input("u", (128, 128)), g.input("c", (128, 128), rule=uniform(.1, .2))

    def step(u, before, c):
        w, x, y, z = neighbours(u, 128, 128, u.number(0.0))
        return [u * 2.0 - before + c * (w + x + y + z - u * 4.0), u]

    last, _ = g.scan(step, [u, g.input("b", (128, 128))], bcasts=[c], length=40)
    g.returns((last * last).sum(0, 1))

    def advance(u, before, c, near):
        w, x, y, z = near(u)
        return 2 * u - before + c * (w + x + y + z - 4 * u), u

    def in_jax(u, c, b):
        last = lax.scan(lambda s, _: (advance(*s, c, jax_neighbours), None), (u, b), None,
                        length=40)[0][0]
        return jnp.sum(last * last)

    def in_torch(u, c, b):
        for _ in range(40):
            u, b = advance(u, b, c, torch_neighbours)
        return torch.sum(u * u)

    program("wave_gradient", g, in_jax, in_torch, grad="c", tolerance=1e-3)


def fdtd():
    """Maxwell's equations in two dimensions: three fields that lean on each other's neighbours."""
    g = Program()
    n = 256
    ez, hx, hy = (g.input(name, (n, n)) for name in ("ez", "hx", "hy"))

    def step(ez, hx, hy):
        zero = ez.number(0.0)
        down = lambda a: op.pad(a.cut(0, 1, n - 1), zero, low=[0, 0], high=[1, 0])
        right = lambda a: op.pad(a.cut(1, 1, n - 1), zero, low=[0, 0], high=[0, 1])
        up = lambda a: op.pad(a.cut(0, 0, n - 1), zero, low=[1, 0], high=[0, 0])
        left = lambda a: op.pad(a.cut(1, 0, n - 1), zero, low=[0, 1], high=[0, 0])
        hx = hx - (right(ez) - ez) * 0.5
        hy = hy + (down(ez) - ez) * 0.5
        return [ez + (hy - up(hy) - hx + left(hx)) * 0.5, hx, hy]

    g.returns(*g.scan(step, [ez, hx, hy], length=50))

    def advance(ez, hx, hy, pad):
        down, right = (lambda a: pad(a[1:], 0, 1, 0, 0)), (lambda a: pad(a[:, 1:], 0, 0, 0, 1))
        up, left = (lambda a: pad(a[:-1], 1, 0, 0, 0)), (lambda a: pad(a[:, :-1], 0, 0, 1, 0))
        hx = hx - 0.5 * (right(ez) - ez)
        hy = hy + 0.5 * (down(ez) - ez)
        return ez + 0.5 * (hy - up(hy) - hx + left(hx)), hx, hy

    def in_torch(*f):
        for _ in range(50):
            f = advance(*f, lambda a, t, b, l, r: F.pad(a, (l, r, t, b)))
        return f

    program("fdtd", g, lambda *f: lax.fori_loop(
        0, 50, lambda i, f: advance(*f, lambda a, t, b, l, r: jnp.pad(a, ((t, b), (l, r)))), f),
        in_torch, tolerance=1e-3)


def game_of_life():
    g = Program()
    n = 512
    a = g.input("a", (n, n), "i32", integers(2))

    def step(a):
        p = op.concat(a.cut(0, n - 1, 1), a, a.cut(0, 0, 1), axis=0)
        p = op.concat(p.cut(1, n - 1, 1), p, p.cut(1, 0, 1), axis=1)
        at = lambda i, j: p.cut(0, i, n).cut(1, j, n)
        s = None
        for i in range(3):
            for j in range(3):
                if (i, j) != (1, 1):
                    s = at(i, j) if s is None else s + at(i, j)
        alive = op.logical_or(op.eq(s, 3), op.logical_and(op.eq(s, 2), op.eq(a, 1)))
        return [alive.to("i32")]

    g.returns(g.scan(step, [a], length=20))

    def advance(a, roll, cast):
        s = sum(roll(a, (i, j)) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
        return cast((s == 3) | ((s == 2) & (a == 1)))

    def in_torch(a):
        for _ in range(20):
            a = advance(a, lambda a, s: torch.roll(a, s, (0, 1)), lambda b: b.to(torch.int32))
        return a

    program("game_of_life", g, lambda a: lax.fori_loop(0, 20, lambda i, a: advance(
        a, lambda a, s: jnp.roll(a, s, (0, 1)), lambda b: b.astype("int32")), a), in_torch)


def monte_carlo():
    """The price of an Asian option; the numbers drawn differ, so do the prices."""
    g = Program()
    k = g.input("k", (4,), "u32", integers(1000))
    z = g.add("rng_normal", [], {"shape": [64, 20000], "key": 5})
    paths = op.exp(op.cumsum(z * 0.02 + 0.0001, axis=0)) * 100.0
    strike = op.max(paths.mean(0) - 100.0, 0.0)
    g.returns(strike.mean(0), k)

    def in_jax(k):
        z = jax.random.normal(jax.random.wrap_key_data(k, impl="rbg"), (64, 20000))
        paths = 100 * jnp.exp(jnp.cumsum(0.02 * z + 0.0001, 0))
        return jnp.mean(jnp.maximum(jnp.mean(paths, 0) - 100, 0)), k

    def in_torch(k):
        paths = 100 * torch.exp(torch.cumsum(0.02 * torch.randn(64, 20000) + 0.0001, 0))
        return torch.mean(torch.clamp(torch.mean(paths, 0) - 100, min=0)), k

    program("monte_carlo", g, in_jax, in_torch, compare=False)


def conjugate_gradient():
    """Poisson's equation by conjugate gradients, until the residual is small."""
    g = Program()
    n = 128
    b = g.input("b", (n, n))

    def laplacian(u):
        w, x, y, z = neighbours(u, n, n, u.number(0.0))
        return u * 4.2 - (w + x + y + z)

    zeros = g.constant(0.0, shape=(n, n))
    rr = (b * b).sum(0, 1).like()

    def step(x, r, p, rr):
        ap = laplacian(p)
        alpha = rr / (p * ap).sum(0, 1)
        r = r - ap * alpha
        new = (r * r).sum(0, 1)
        return [x + p * alpha, r, r + p * (new / rr), new]

    x, *_ = g.loop(lambda x, r, p, rr: [rr > 1e-6], step, [zeros, b, b, rr], 200)
    g.returns(x)

    def in_jax(b):
        def laplace(u):
            w, x, y, z = jax_neighbours(u)
            return 4.2 * u - (w + x + y + z)

        def step(s):
            x, r, p, rr = s
            ap = laplace(p)
            alpha = rr / jnp.sum(p * ap)
            r = r - alpha * ap
            new = jnp.sum(r * r)
            return x + alpha * p, r, r + (new / rr) * p, new

        return lax.while_loop(lambda s: s[3] > 1e-6, step, (jnp.zeros_like(b), b, b,
                                                            jnp.sum(b * b)))[0]

    program("conjugate_gradient", g, in_jax, tolerance=1e-3)


def gauss_newton():
    """Many small fits of a·exp(-b·t) + c, five steps each."""
    g = Program()
    fits, points = 2000, 64
    t, y = g.input("t", (points,), rule=uniform(0, 3)), g.input("y", (fits, points))
    p = g.constant(1.0, shape=(fits, 3))

    def step(p, t, y):
        a, b, c = (p.cut(1, i, 1) for i in range(3))
        e = op.exp(-(b * t))
        residual = y - a * e - c
        one = op.expand(p.number(1.0), target_shape=[fits, points])
        j = op.concat(*[v.reshape(fits, points, 1) for v in (e, -(a * t * e), one)], axis=2)
        jt = j.transpose(0, 2, 1)
        eye = op.eq(p.graph.add("iota", [], {"shape": [3, 3], "axis": 0}),
                    p.graph.add("iota", [], {"shape": [3, 3], "axis": 1})).to("f32")
        normal_matrix = jt @ j + eye * 0.1
        delta = op.batched_dense_solve(normal_matrix, jt @ residual.reshape(fits, points, 1))
        return [p + delta.reshape(fits, 3)]

    g.returns(g.scan(step, [p], bcasts=[t, y], length=5))

    def in_jax(t, y):
        model = lambda p: p[0] * jnp.exp(-p[1] * t) + p[2]

        def step(p, y):
            j = jax.jacfwd(model)(p)
            return p + jnp.linalg.solve(j.T @ j + 0.1 * jnp.eye(3), j.T @ (y - model(p)))

        return lax.fori_loop(0, 5, lambda i, p: jax.vmap(step)(p, y), jnp.ones((fits, 3)))

    program("gauss_newton", g, in_jax, tolerance=2e-2)


def ray_marcher():
    """Forty steps of every ray towards a sphere that is bent by sines."""
    g = Program()
    n = 65536
    o, d = g.input("o", (n, 3), rule=normal(.1)), g.input("d", (n, 3))
    unit = (d / op.sqrt((d * d).sum(1, keep=True))).like(n, 3)
    t = g.constant(0.0, shape=(n, 1))

    def step(t, o, d):
        p = o + d * t
        bent = op.sin(p * 3.0).sum(1, keep=True) * 0.05
        distance = 1.0 - op.sqrt((p * p).sum(1, keep=True)) + bent
        return [t + op.max(distance, 0.001) * 0.8]

    g.returns(g.scan(step, [t], bcasts=[o, unit], length=40))

    def march(o, d, xp, norm, clip):
        d = d / norm(d)

        def step(t):
            p = o + d * t
            distance = 1 - norm(p) + 0.05 * xp.sum(xp.sin(3 * p), 1)[:, None]
            return t + 0.8 * clip(distance)
        return step

    def in_jax(o, d):
        step = march(o, d, jnp, lambda a: jnp.sqrt(jnp.sum(a * a, 1, keepdims=True)),
                     lambda a: jnp.maximum(a, 0.001))
        return lax.fori_loop(0, 40, lambda i, t: step(t), jnp.zeros((n, 1)))

    def in_torch(o, d):
        step = march(o, d, torch, lambda a: torch.linalg.norm(a, dim=1, keepdim=True),
                     lambda a: torch.clamp(a, min=0.001))
        t = torch.zeros(n, 1)
        for _ in range(40):
            t = step(t)
        return t

    program("ray_marcher", g, in_jax, in_torch, tolerance=1e-3)


for build in (kmeans, power_iteration, kalman, black_scholes, n_body, heat, wave_gradient, fdtd,
              game_of_life, monte_carlo, conjugate_gradient, gauss_newton, ray_marcher):
    build()
