"""Writes whole_programs_values.inc: what JAX gives for the programs of whole_programs_test.cpp and more_programs_test.cpp."""

import numpy as np
import jax
import jax.numpy as jnp
from jax import grad, hessian, jacfwd, jacrev, jit, lax, vmap
VALUES = {}

def show(name, x):
    full = PROGRAM + "." + name
    count = sum(known.rpartition("#")[0] == full for known in VALUES)
    VALUES["%s#%d" % (full, count)] = np.asarray(x).astype(np.float64).ravel()

PROGRAM = 'gauss_newton'
t = jnp.linspace(0, 2, 20)
y = 2.5 * jnp.exp(-1.3 * t) + 0.5

def residual(p):
    return p[0] * jnp.exp(-p[1] * t) + p[2] - y
p = jnp.array([1.0, 1.0, 0.0])
for i in range(8):
    j = jacfwd(residual)(p)
    p = p + jnp.linalg.solve(j.T @ j, -j.T @ residual(p))
show('p', p)
show('q', p)
f = lambda x, w: (w @ x, jnp.sum(x * x))
j0, j1 = jacrev(f, 1)(jnp.array([1.0, 2.0]), jnp.array([[1.0, 2.0], [3.0, 4.0]]))
show('j0', j0)
show('j1', j1)

PROGRAM = 'maml'
net = [(jnp.sin(jnp.arange(8.0)).reshape(1, 8), jnp.zeros(8)), (jnp.cos(jnp.arange(8.0)).reshape(8, 1), jnp.zeros(1))]

def ap(n, x):
    for i, (w, b) in enumerate(n):
        x = x @ w + b
        if i + 1 < len(n):
            x = jnp.tanh(x)
    return x
loss = lambda n, x, y: jnp.mean((ap(n, x) - y) ** 2)

def adapt(n, x, y):
    for s in range(3):
        g = grad(loss)(n, x, y)
        n = jax.tree.map(lambda p, g: p - 0.1 * g, n, g)
    return n
maml = lambda n, t: loss(adapt(n, t[0], t[1]), t[2], t[3])
bl = lambda n, ts: jnp.mean(vmap(maml, (None, 0))(n, ts))
x = jnp.linspace(-1, 1, 20).reshape(4, 5, 1)
ph = jnp.arange(4.0).reshape(4, 1, 1)
ts = (x, jnp.sin(x + ph), x * 0.7, jnp.sin(x * 0.7 + ph))
v, g = jit(jax.value_and_grad(bl))(net, ts)
for _ in range(2):
    show('v', v)
    for w, b in g:
        show('w', w)
        show('b', b)

PROGRAM = 'hvp_scan_custom'

@jax.custom_vjp
def soft(x):
    return jnp.where(x > 0, x, 0.1 * x)
soft.defvjp(lambda x: (soft(x), x), lambda x, d: (d * jax.nn.sigmoid(3 * x),))
w = jnp.array([[0.5, -0.3, 0.2], [0.1, 0.4, -0.6], [-0.2, 0.3, 0.7]])
xs = jnp.sin(jnp.arange(12.0)).reshape(4, 3)

def run(w, xs, act, red=lambda h: jnp.sum(h * h)):

    def s(h, x):
        h = act(h @ w + x)
        return (h, red(h))
    return lax.scan(s, jnp.zeros(3), xs)

def rnn(w):
    h, ys = run(w, xs, soft)
    return ys.sum() + h.sum()
show('f', rnn(w))
show('g', grad(rnn)(w))

def rnt(w):
    h, ys = run(w, xs, jnp.tanh)
    return ys.sum() + h.sum()
show('hvp', jax.jvp(grad(rnt), (w,), (jnp.ones_like(w),))[1])
show('hvp_rr', grad(lambda w: jnp.sum(grad(rnn)(w) * jnp.cos(w)))(w))
xb = jnp.cos(jnp.arange(24.0)).reshape(2, 4, 3)

def per(w, xs):
    h, ys = run(w, xs, soft, lambda h: h)
    return jnp.sum(ys * ys)
show('vgs', vmap(grad(per), (None, 0))(w, xb))
show('vgs1', vmap(grad(per, 1), (None, 0))(w, xb))
show('jf', jacfwd(jacrev(lambda x: jnp.sum(jnp.sin(x) * x * x)))(jnp.array([1.0, 2.0, 3.0])))

PROGRAM = 'adaptive_ode'

def solve(f, y0, t1, tol, grad=True):

    def body(s):
        t, y, h, n = s
        hh = jnp.minimum(h, t1 - t)
        k1 = f(t, y)
        k2 = f(t + hh, y + hh * k1)
        yn = y + 0.5 * hh * (k1 + k2)
        err = jnp.max(jnp.abs(0.5 * hh * (k2 - k1)))
        a = err <= tol
        fac = jnp.clip(0.9 * jnp.sqrt(tol / jnp.maximum(err, 1e-12)), 0.2, 5.0)
        return (jnp.where(a, t + hh, t), jnp.where(a, yn, y), hh * fac, n + 1)
    s = (jnp.float32(0), y0, jnp.float32(0.1), 0)
    if not grad:
        return lax.while_loop(lambda s: s[0] < t1, body, s)

    def st(s, _):
        return (lax.cond(s[0] < t1, body, lambda s: s, s), None)
    return lax.scan(st, s, None, 400)[0]

def run(mu, g=True):
    return solve(lambda t, y: jnp.stack([y[1], mu * (1 - y[0] * y[0]) * y[1] - y[0] + 0.1 * jnp.sin(t)]), jnp.array([2.0, 0.0]), 2.0, 0.001, g)
s = jit(run)(1.5)
show('y', s[1])
show('t', s[0])
show('steps', s[3])
show('g', jit(grad(lambda m: run(m)[1][0]))(1.5))
show('jvp', jit(jacfwd(lambda m: run(m)[1]))(1.5))
v = vmap(lambda m: run(m, False))(jnp.array([0.5, 1.0, 3.0]))
show('vy', v[1])
show('vs', v[3])

PROGRAM = 'kalman'
kf = dict(A=jnp.array([[1.0, 0.1], [0.0, 1.0]]), C=jnp.array([[1.0, 0.0]]), Q=0.01 * jnp.eye(2), R=0.1 * jnp.eye(1))
zs = jnp.sin(0.3 * jnp.arange(20.0))[:, None]

def filt(k, zs):

    def step(b, z):
        m = k['A'] @ b[0]
        P = k['A'] @ b[1] @ k['A'].T + k['Q']
        S = k['C'] @ P @ k['C'].T + k['R']
        K = jnp.linalg.solve(S, k['C'] @ P).T
        v = z - k['C'] @ m
        ll = -0.5 * (v @ jnp.linalg.solve(S, v) + jnp.linalg.slogdet(S)[1] + jnp.log(2 * jnp.pi))
        n = (m + K @ v, P - K @ k['C'] @ P)
        return (n, (n, ll))
    _, (b, ll) = lax.scan(step, (jnp.zeros(2), jnp.eye(2)), zs)
    return (ll.sum(), b)
ll, b = filt(kf, zs)
show('ll', ll)
show('m', b[0])
show('P', b[1][-1])
g, _ = grad(filt, has_aux=True)(kf, zs)
for n in 'ACQR':
    show('g' + n, g[n])
show('h', hessian(lambda r: filt({**kf, 'R': jnp.exp(r) * jnp.eye(1)}, zs)[0])(-1.0))

PROGRAM = 'raymarch'

def sdf(s, p):
    q = jnp.abs(p - jnp.array([1.2, 0, 0])) - 0.3
    b = nrm(jnp.maximum(q, 0.0)) + jnp.minimum(q.max(), 0.0)
    return jnp.minimum(nrm(p - s[0]) - s[1], b)

def nrm(x):
    n2 = jnp.sum(x * x)
    return jnp.where(n2 > 0, jnp.sqrt(jnp.where(n2 > 0, n2, 1.0)), 0.0)

def render(s, n):
    g = jnp.meshgrid(jnp.linspace(-1, 1, n), jnp.linspace(-1, 1, n), indexing='ij')
    uv = jnp.stack(g, -1).reshape(-1, 2)
    ro = jnp.array([0.0, 0, -3.0])

    def shade(uv):
        rd = jnp.concatenate([0.5 * uv, jnp.ones(1)])
        rd = rd / nrm(rd)
        t = lax.fori_loop(0, 24, lambda i, t: t + sdf(s, ro + t * rd), 0.0)
        p = ro + t * rd
        nn = grad(lambda p: sdf(s, p))(p)
        lam = jnp.clip(nn @ jnp.array([0.577, 0.577, -0.577]), 0, 1)
        return jnp.where(t > 5.0, 0.0, lam)
    return vmap(shade)(uv).reshape(n, n)
s = (jnp.array([0.1, -0.2, 0.3]), jnp.float32(0.8))
show('img', render(s, 8))
g = grad(lambda s: jnp.sum(render(s, 8) ** 2))(s)
show('gc', g[0])
show('gr', g[1])

PROGRAM = 'beam'
V, T, K = (7, 6, 3)
table = jax.nn.log_softmax(jnp.sin(1.7 * jnp.arange(V * V, dtype=jnp.float32)).reshape(V, V) * 2)

def body(t, b):
    tok, score, alive = b
    last = tok[:, t - 1]
    l = table[last] + score[:, None]
    s, i = lax.top_k(l.ravel(), K)
    p = i // V
    k = i % V
    return (tok[p].at[:, t].set(k), s, alive[p] & (k != 0))
r = lax.fori_loop(1, T, body, (jnp.zeros((K, T), jnp.int32), jnp.array([0.0, -1000000000.0, -1000000000.0]), jnp.ones(K, bool)))
show('tok', r[0])
show('score', r[1])
show('alive', r[2])

PROGRAM = 'graphconv'
src = jnp.array([0, 1, 2, 3, 4, 0, 2, 4])
dst = jnp.array([1, 2, 3, 4, 0, 2, 4, 1])
N = 5
x = jnp.cos(jnp.arange(15.0)).reshape(5, 3)

def conv(h, w):
    m = (h @ w)[src]
    d = jnp.zeros(N).at[dst].add(1.0)
    a = jnp.zeros((N, w.shape[1])).at[dst].add(m)
    return a / jnp.maximum(d, 1)[:, None]
net = lambda g: jnp.sum(conv(jax.nn.relu(conv(x, g[0])), g[1]) ** 2)
g = (jnp.sin(jnp.arange(12.0)).reshape(3, 4), jnp.sin(jnp.arange(8.0)).reshape(4, 2))
show('f', net(g))
d = grad(net)(g)
show('w1', d[0])
show('w2', d[1])
show('seg', jax.ops.segment_sum(x, jnp.array([0, 0, 1, 1, 1]), 2))
show('segm', jax.ops.segment_max(x, jnp.array([0, 0, 1, 1, 1]), 2))

def gat(h):
    e = jnp.sum(h[src] * h[dst], 1)
    m = jnp.full(N, -jnp.inf).at[dst].max(e)
    p = jnp.exp(e - m[dst])
    z = jnp.zeros(N).at[dst].add(p)
    return jnp.zeros((N, 3)).at[dst].add((p / z[dst])[:, None] * h[src])
show('gat', gat(x))
show('ggat', grad(lambda h: jnp.sum(jnp.sin(gat(h))))(x))

PROGRAM = 'attention'
B, T, D, H = (2, 5, 8, 2)
w = lambda s: (0.3 * jnp.sin(s * jnp.arange(64.0))).reshape(D, H, D // H)
p = [w(1.1), w(1.3), w(1.7), w(1.9).reshape(H, D // H, D)]
x = jnp.cos(jnp.arange(B * T * D * 1.0)).reshape(B, T, D)

def attn(p, x):
    q, k, v = [jnp.einsum('btd,dhk->bthk', x, p[i]) for i in range(3)]
    s = jnp.einsum('bthk,bshk->bhts', q, k) / jnp.sqrt(D // H)
    s = jnp.where(jnp.tril(jnp.ones((T, T), bool)), s, -jnp.inf)
    return jnp.einsum('bhts,bshk,hkd->btd', jax.nn.softmax(s), v, p[3])
show('y', attn(p, x))
g = grad(lambda p, x: jnp.sum(jnp.sin(attn(p, x))))(p, x)
for n, a in zip('qkvo', g):
    show('g' + n, a)
show('y2', attn(p, x))
show('e1', 6.0)
show('e2', [3, 5, 7])
show('e3', jnp.outer(jnp.arange(3), jnp.arange(2)))
show('e4', 4 * jnp.ones((2, 3, 2)))
show('e5', jnp.ones((2, 3)))

PROGRAM = 'phase'
x = jnp.sin(0.7 * jnp.arange(64.0)).reshape(8, 8)
X = jnp.fft.fft2(x)
show('mag', abs(X))
loss = lambda g: jnp.mean((jnp.abs(jnp.fft.fft2(g)) - jnp.abs(X)) ** 2)
g = jnp.cos(1.1 * x) + 0.3
show('l', loss(g))
show('dl', grad(loss)(g))

def st(g):
    G = jnp.fft.fft2(g)
    return jnp.fft.ifft2(jnp.abs(X) * G / jnp.maximum(jnp.abs(G), 1e-09)).real
for _ in range(10):
    g = st(g)
show('gs', g)
f = lambda z: jnp.sum(jnp.abs(jnp.fft.fft(z * jnp.exp(1j * z))) ** 2)
z = jnp.array([0.1 + 1j, 0.2 - 0.5j, 0.3 + 0.25j, -0.4])
dz = grad(f)(z)
show('dzr', dz.real)
show('dzi', dz.imag)
show('ang', jnp.angle(z))
show('rf', abs(jnp.fft.rfft(x[0])))
show('irf', x[0])
show('fs', jnp.fft.fftshift(jnp.arange(8)))
show('ff', jnp.fft.fftfreq(8))
show('conv', jnp.fft.ifft(jnp.fft.fft(x[0]) * jnp.fft.fft(x[1])).real)

PROGRAM = 'trees'
M = lambda s: jnp.sin(s * jnp.arange(9.0)).reshape(3, 3)
m = dict(a_in=M(1.0), s0=M(2.0), s0b=jnp.ones(3), s1=M(3.0), sc=jnp.array([1.5, 0.5]), m=jnp.array([2.0, 0.1, 0.2]))
x = jnp.cos(jnp.arange(6.0)).reshape(2, 3)

def f(m):
    h = jnp.tanh(x @ m['a_in'])
    h = jnp.tanh(h @ m['s0'] + m['s0b'])
    h = jnp.tanh(h @ m['s1'])
    return jnp.sum((m['sc'][0] * h * m['m'][0] + m['sc'][1] * m['m'][1] - m['m'][2]) ** 2)
v, g = jax.value_and_grad(f)(m)
show('v', v)
show('in', g['a_in'])
for n in ['s0', 's0b', 's1', 'sc', 'm']:
    show(n, g[n])
show('norm', jnp.sqrt(sum((jnp.sum(l * l) for l in jax.tree.leaves(g)))))
show('tr', sum((jnp.sum(l) for l in jax.tree.leaves(g))))
show('flat', jnp.concatenate([v.ravel() for v in m.values()]))
show('back', 3.0)
show('z', 0.0)

PROGRAM = 'masks_at'
x = jnp.arange(12.0).reshape(3, 4)
show('a', x.at[0].set(9.0))
show('b', x.at[:, 1].add(100))
show('c', x.at[jnp.array([0, 2]), jnp.array([1, 3])].multiply(2))
show('d', x.at[0:2, 1:3].set(1))
show('e', x.at[-1, ::2].min(3.0))
show('f', jnp.where(x > 5, x, 0))
show('g', x.at[jnp.array([0, 0, 1])].add(1.0))
show('h', x[jnp.array([[0, 1], [2, 0]])])
show('i', x[jnp.array([0, 1]), jnp.array([2, 3])])
show('j', x[..., -1])
show('k', x[None, 1, 3:0:-1])
show('l', 6)
m = x > 5
show('m', x[m])
show('n', x.at[m].set(0.0))
show('o', x.sum())
show('p', x.T)
show('q', x.reshape(2, 6)[1])
show('r', x[0, 0])
show('s', x.at[m].set(-1.0))
show('t', grad(lambda x: jnp.sum(x.at[m].multiply(3.0) ** 2))(x))
show('u', x.sum())
show('v', 2 * x.sum())
show('w', x[:1] + x[:, None, 0])
show('x', [3, 2])
show('y', [3, 2])
show('z', x.at[1].divide(2.0))
show('aa', x.at[1].add(-2.0))
show('ab', x.at[1].power(2.0))
show('ac', x.at[1].apply(jnp.sin))

PROGRAM = 'vdp_misc'
x = jnp.array([0.5, -1.0, 2.0])

def f(a):
    inner = lambda b: lax.cond(jnp.sum(b) > jnp.sum(a), lambda: jnp.sum(a * b * b), lambda: jnp.sum(jnp.sin(a) * b))
    return jnp.sum(grad(inner)(a * 2) * a)
show('a', f(x))
show('ga', grad(f)(x))
show('ha', hessian(f)(x))
sw = lambda i, v: lax.switch(i, [lambda: jnp.sin(v), lambda: v * v, lambda: lax.stop_gradient(v) * v])
show('sw', vmap(lambda i: grad(lambda v: jnp.sum(sw(i, v)))(x))(jnp.arange(3)))
ck = jax.checkpoint(lambda v: jnp.tanh(v @ (jnp.arange(9.0) * 0.1).reshape(3, 3)))
show('ck', grad(lambda v: jnp.sum(ck(ck(v))))(x))
show('ckj', jacrev(lambda v: ck(ck(v)))(x))
show('ckh', hessian(lambda v: jnp.sum(ck(ck(v))))(x))
y, pull = jax.vjp(lambda a, b: (a * b, jnp.sum(a) * b), x, x * 2)
for i in range(3):
    da, db = pull((x * i, jnp.ones(3)))
    show('da', da)
    show('db', db)
y2, push = jax.linearize(lambda a: jnp.sin(a) * a, x)
for i in range(3):
    show('push', push(x * i))
show('vp', vmap(pull)((jnp.eye(3), jnp.zeros((3, 3))))[0])

def weird(n, g=False):

    def b(s):
        i, v = s
        return (i + 1, lax.cond(v > 1, lambda: lax.scan(lambda c, e: (c + e * 0.1, None), v, x)[0], lambda: v * 2))
    return lax.fori_loop(0, 3, lambda i, s: b(s), (0, n))[1]
show('w', vmap(weird)(x))
show('gw', vmap(grad(weird))(x))
g = grad(lambda v: jnp.sum(jnp.exp(jnp.sin(v))))
show('th', jnp.stack([g(x + t) + jnp.exp(x) * 49 for t in range(4)]))
acc = np.zeros(3, np.float64)
for i in range(10000):
    acc = acc * 0.999 + np.array(x) * i
show('acc', acc)
lines = ['// Written by make_whole_programs_reference.py.']
for name, values in VALUES.items():
    lines.append('{"%s", {%s}},' % (name, ', '.join(('NAN' if np.isnan(v) else repr(float(np.float32(v))) for v in values))))
open(__file__.replace('make_whole_programs_reference.py', 'whole_programs_values.inc'), 'w').write('\n'.join(lines) + '\n')
