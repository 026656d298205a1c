"""Recurrences, control flow, and functions with rules of their own."""

from cases import case, normal, skip, through, uniform
from lazy import jax, jnp, lax, torch


def scan_text(feeds, carry, xs, body, length, bcasts=()):
    """A scan over the feeds named, which gives its last carry; all feeds are f32."""
    inputs = "\n".join(f'%{n} = input "{n}" : f32[{", ".join(map(str, s))}]'
                       for n, s in feeds.items())
    inner = "\n".join(f'%{n} = input "{n}" : f32[{", ".join(map(str, feeds[n][n in xs:]))}]'
                      for n in (carry, *bcasts, *xs))
    operands = ", ".join("%" + n for n in (carry, *bcasts, *xs))
    return (f"graph @survey {{\n{inputs}\n%y = scan {operands} {{length = {length}, num_bcast = "
            f"{len(bcasts)}, num_xs = {len(xs)}}} body {{\n{inner}\n{body}\nreturn %n\n}}\n"
            f"return %y\n}}\n")


STEP = "%p = matmul %c, %w\n%s = add %p, %x\n%n = tanh %s"


def torch_loop(c, w, x):
    for row in x.unbind(0):
        c = torch.tanh(c @ w + row)
    return c


for klass, length, batch, width in (("tiny", 4, 1, 8), ("cache", 100, 16, 64), ("memory", 64, 64,
                                                                                512),
                                    ("short rows", 1000, 1, 16), ("odd", 37, 3, 51)):
    feeds = {"c": (batch, width), "w": (width, width), "x": (length, batch, width)}
    rules = {"c": feeds["c"], "w": ("f32", feeds["w"], normal(0.5 / width**0.5)), "x": feeds["x"]}
    case("scan", klass, rules, scan_text(feeds, "c", ["x"], STEP, length, ["w"]),
         lambda c, w, x: lax.scan(lambda c, x: (jnp.tanh(c @ w + x), None), c, x)[0],
         torch_loop, wrt="c w x", tolerance=1e-3)
LONG = {"c": (64,), "x": (5000, 64)}
case("scan", "long rows", LONG, scan_text(LONG, "c", ["x"], "%d = constant splat 0.9 : f32[]\n"
                                          "%m = mul %c, %d\n%n = add %m, %x", 5000),
     lambda c, x: lax.scan(lambda c, x: (c * 0.9 + x, None), c, x)[0], None, wrt="c x",
     member="filter")
through("scan", "scan_backward")

WHILE = """graph @survey {
  %x = input "x" : f32[SHAPE]
  %i = constant splat 0 : i32[]
  %y, %k = while %x, %i {max_iterations = 50} cond {
    %x = input "x" : f32[SHAPE]
    %i = input "i" : i32[]
    %n = constant splat 50 : i32[]
    %more = lt %i, %n
    return %more
  } body {
    %x = input "x" : f32[SHAPE]
    %i = input "i" : i32[]
    %s = sin %x
    %one = constant splat 1 : i32[]
    %j = add %i, %one
    return %s, %j
  }
  return %y
}
"""
for klass, shape in (("tiny", (16,)), ("cache", (256, 256))):
    size = ", ".join(map(str, shape))

    def looped(x):
        for _ in range(50):
            x = torch.sin(x)
        return x

    case("while", klass, {"x": shape}, WHILE.replace("SHAPE", size),
         lambda x: lax.fori_loop(0, 50, lambda i, v: jnp.sin(v), x), looped, wrt="x")
through("while", "while_backward")

IF = """graph @survey {
  %x = input "x" : f32[512, 512]
  %s = reduce %x {op = sum, axes = [0, 1]}
  %z = constant splat 1000000.0 : f32[]
  %p = lt %s, %z
  %y = if %p, %x then {
    %x = input "x" : f32[512, 512]
    %a = tanh %x
    return %a
  } else {
    %x = input "x" : f32[512, 512]
    %b = sin %x
    return %b
  }
  return %y
}
"""
case("if", "cache", {"x": (512, 512)}, IF,
     lambda x: lax.cond(jnp.sum(x) < 1e6, jnp.tanh, jnp.sin, x),
     lambda x: torch.tanh(x) if torch.sum(x) < 1e6 else torch.sin(x), wrt="x")

INNER = """{
    %x = input "x" : f32[256, 512]
    %w = input "w" : f32[512, 512]
    %h = matmul %x, %w
    %t = tanh %h
    %u = matmul %t, %w
    %v = tanh %u
    return %v
  }"""
case("checkpoint", "cache", {"x": (256, 512), "w": ("f32", (512, 512), normal(0.04))},
     f"%y = checkpoint %x, %w body {INNER}",
     lambda x, w: jax.checkpoint(lambda x, w: jnp.tanh(jnp.tanh(x @ w) @ w))(x, w),
     lambda x, w: torch.tanh(torch.tanh(x @ w) @ w), wrt="x w")
case("custom_fn", "cache", {"x": (256, 512), "w": ("f32", (512, 512), normal(0.04))},
     f"%y = custom_fn %x, %w fwd {INNER}", lambda x, w: jnp.tanh(jnp.tanh(x @ w) @ w),
     lambda x, w: torch.tanh(torch.tanh(x @ w) @ w), wrt="x w")


def by_time(*arrays):
    return tuple(a.swapaxes(0, 1) for a in arrays)


def selective(x, delta, a, b, c):
    def step(h, at):
        x_t, delta_t, b_t, c_t = at
        h = jnp.exp(delta_t[..., None] * a) * h + (delta_t * x_t)[..., None] * b_t[:, None]
        return h, jnp.einsum("bjm,bm->bj", h, c_t)

    first = jnp.zeros((x.shape[0],) + a.shape, x.dtype)
    return lax.scan(step, first, by_time(x, delta, b, c))[1].swapaxes(0, 1)


def delta_net(q, k, v, g, beta):
    def step(s, at):
        q_t, k_t, v_t, g_t, beta_t = at
        s = jnp.exp(g_t)[..., None, None] * s
        d = beta_t[..., None] * (v_t - jnp.einsum("bhij,bhi->bhj", s, k_t))
        s = s + k_t[..., None] * d[..., None, :]
        return s, jnp.einsum("bhij,bhi->bhj", s, q_t) * q.shape[-1] ** -0.5

    first = jnp.zeros((q.shape[0], v.shape[2], q.shape[3], v.shape[3]), q.dtype)
    return lax.scan(step, first, by_time(q, k, v, g, beta))[1].swapaxes(0, 1)


for klass, batch, length, channels in (("cache", 2, 64, 64), ("memory", 4, 256, 256)):
    case("selective_scan", klass,
         {"x": (batch, length, channels), "delta": ("f32", (batch, length, channels),
                                                    uniform(0.01, 0.1)),
          "a": ("f32", (channels, 16), uniform(-1, -0.1)), "b": (batch, length, 16),
          "c": (batch, length, 16)},
         "%y = selective_scan %x, %delta, %a, %b, %c {state_size = 16}", selective, None,
         wrt="x delta a b c", tolerance=1e-3)
    heads = channels // 32
    case("gated_delta_net", klass,
         {"q": ("f32", (batch, length, heads, 32), normal(0.2)),
          "k": ("f32", (batch, length, heads, 32), normal(0.15)), "v": (batch, length, heads, 32),
          "g": ("f32", (batch, length, heads), uniform(-0.2, -0.01)),
          "beta": ("f32", (batch, length, heads), uniform(0.1, 0.9))},
         "%y = gated_delta_net %q, %k, %v, %g, %beta {state_size = 32}", delta_net, None,
         wrt="q k v g beta", tolerance=1e-3)
through("selective_scan", "selective_scan_backward")
through("gated_delta_net", "gated_delta_net_backward")

skip("no peer has it; `make bench` measures a step with it (splat_step)", "gaussian_splat_prepare",
     "gaussian_splat_rasterize", "gaussian_splat_render", "gaussian_splat_backward")
skip("what it costs is the business of who registers it", "custom")
