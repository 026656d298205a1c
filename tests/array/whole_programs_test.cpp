// Solvers and models: programs as somebody writes them who knows JAX. They compile as they stand
// and give what JAX gives (make_whole_programs_reference.py).
#include "array/whole_programs.h"

// Lambdas take what they capture under the same names, as people write them.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"

namespace ricci::whole_programs_test {
namespace {

namespace gauss_newton {
struct P {
  Array a, k, c;
};
}  // namespace gauss_newton
TEST(ArrayPrograms, GaussNewton) {
  using namespace gauss_newton;
  WholeProgram program("gauss_newton");

  const Array t = linspace(0, 2, 20);
  const Array y = 2.5 * exp(-1.3 * t) + 0.5;
  auto residual = [&](const P& p) { return p.a * exp(-p.k * t) + p.c - y; };
  P p{array(1.0), array(1.0), array(0.0)};
  for (int i = 0; i < 8; ++i) {
    P J = jacfwd(residual)(p);
    Array j = stack({J.a, J.k, J.c}, 1);
    Array r = residual(p);
    Array d = solve(matmul(transpose(j), j), -matmul(transpose(j), r));
    p = P{p.a + d[0], p.k + d[1], p.c + d[2]};
  }
  program.check("p", stack({p.a, p.k, p.c}));
  // the same jitted, with lstsq
  auto step = jit([&](const P& p) {
    auto J = jacfwd(residual)(p);
    Array d = lstsq(stack(leaves(J), 1), -residual(p));
    auto it = unbind(d);
    int i = 0;
    return tree_map([&](Array x) { return x + it[i++]; }, p);
  });
  P q{1.0, 1.0, 0.0};
  for (int i = 0; i < 8; ++i) q = step(q);
  program.check("q", stack(leaves(q)));
  // struct-valued results, several arguments, jacrev<1>
  auto f = [](Array x, Array w) { return std::tuple{matmul(w, x), sum(x * x)}; };
  auto [j0, j1] = jacrev<1>(f)(array({1., 2.}), array({{1., 2.}, {3., 4.}}));
  program.check("j0", j0);
  program.check("j1", j1);
}

namespace maml {
struct Net {
  std::vector<std::pair<Array, Array>> layers;
  Array operator()(Array x) const {
    for (size_t i = 0; i < layers.size(); i++) {
      auto [w, b] = layers[i];
      x = matmul(x, w) + b;
      if (i + 1 < layers.size()) x = tanh(x);
    }
    return x;
  }
};
struct Task {
  Array x, y, xt, yt;
};
}  // namespace maml
TEST(ArrayPrograms, LearningToLearn) {
  using namespace maml;
  WholeProgram program("maml");

  Array i = arange(4 * 1 * 8, {.dtype = float32});
  Net net{{{reshape(sin(arange(8, {.dtype = float32})), {1, 8}), zeros({8})},
           {reshape(cos(arange(8, {.dtype = float32})), {8, 1}), zeros({1})}}};
  auto loss = [](const Net& n, Array x, Array y) { return mean(square(n(x) - y)); };
  auto adapt = [=](const Net& n, Array x, Array y) {
    Net m = n;
    for (int s = 0; s < 3; s++) {
      Net g = grad(loss)(m, x, y);
      m = tree_map([](Array p, Array g) { return p - 0.1 * g; }, m, g);
    }
    return m;
  };
  auto maml = [=](const Net& n, const Task& t) { return loss(adapt(n, t.x, t.y), t.xt, t.yt); };
  auto batch_loss = [=](const Net& n, const Task& ts) {
    return mean(vmap(maml, {.in_axes = {std::nullopt, 0}})(n, ts));
  };
  Array x = reshape(linspace(-1, 1, 4 * 5), {4, 5, 1});
  Array ph = reshape(arange(4, {.dtype = float32}), {4, 1, 1});
  Task ts{x, sin(x + ph), x * 0.7, sin(x * 0.7 + ph)};
  auto [v, g] = jit(value_and_grad(batch_loss))(net, ts);
  program.check("v", v);
  for (auto [w, b] : g.layers) {
    program.check("w", w);
    program.check("b", b);
  }
  // with scan in place of the loop
  auto adapt2 = [=](const Net& n, Array x, Array y) {
    return fori_loop(
        0, 3,
        [&](Array, Net m) {
          Net d = grad(loss)(m, x, y);
          return tree_map([](Array p, Array q) { return p - 0.1 * q; }, m, d);
        },
        n);
  };
  auto maml2 = [=](const Net& n, const Task& t) { return loss(adapt2(n, t.x, t.y), t.xt, t.yt); };
  auto bl2 = [=](const Net& n, const Task& ts) {
    return mean(vmap(maml2, {.in_axes = {{}, 0}})(n, ts));
  };
  auto [v2, g2] = jit(value_and_grad(bl2))(net, ts);
  program.check("v", v2);
  for (auto [w, b] : g2.layers) {
    program.check("w", w);
    program.check("b", b);
  }
}

TEST(ArrayPrograms, RulesInsideScans) {
  WholeProgram program("hvp_scan_custom");

  // a custom_vjp inside a scan, then hvp, vmap of grad of it
  auto soft = custom_vjp([](Array x) { return where(x > 0, x, 0.1 * x); },
                         [](Array x, Array, Array d) { return d * sigmoid(3 * x); });
  Array w = array({{0.5, -0.3, 0.2}, {0.1, 0.4, -0.6}, {-0.2, 0.3, 0.7}});
  Array xs = reshape(sin(arange(12, {.dtype = float32})), {4, 3});
  auto rnn = [&](Array w) {
    auto [last, ys] = scan(zeros({3}), xs, [&](Array h, Array x) {
      h = soft(matmul(h, w) + x);
      return carry_and(h, sum(h * h));
    });
    return sum(ys) + sum(last);
  };
  program.check("f", rnn(w));
  program.check("g", grad(rnn)(w));
  program.check("hvp", hvp([&](Array w) {
                  auto [last, ys] = scan(zeros({3}), xs, [&](Array h, Array x) {
                    h = tanh(matmul(h, w) + x);
                    return carry_and(h, sum(h * h));
                  });
                  return sum(ys) + sum(last);
                })(w, ones_like(w)));
  // reverse over reverse through the custom rule: derivative of the rule
  program.check("hvp_rr", grad([&](Array w) { return sum(grad(rnn)(w) * cos(w)); })(w));
  // vmap of grad of scan, with per-example xs captured by closure of the mapped argument
  Array xb = reshape(cos(arange(24, {.dtype = float32})), {2, 4, 3});
  auto per = [&](Array w, Array xs) {
    auto [last, ys] = scan(zeros({3}), xs, [&](Array h, Array x) {
      h = soft(matmul(h, w) + x);
      return carry_and(h, h);
    });
    return sum(ys * ys);
  };
  program.check("vgs", jit(vmap(grad(per), {.in_axes = {{}, 0}}))(w, xb));
  program.check("vgs1", vmap(grad<1>(per), {.in_axes = {{}, 0}})(w, xb));
  program.check("jf",
                jacfwd(jacrev([](Array x) { return sum(sin(x) * x * x); }))(array({1., 2., 3.})));
}

namespace adaptive_ode {
struct State {
  Array t, y, h;
  Array steps;
};
auto solve_ivp(auto&& f, Array y0, double t1, double tol) {
  auto cond_fn = [&](const State& s) { return s.t < t1; };
  auto body = [&](const State& s) {
    Array h = minimum(s.h, t1 - s.t);
    Array k1 = f(s.t, s.y), k2 = f(s.t + h, s.y + h * k1);
    Array y = s.y + 0.5 * h * (k1 + k2);
    Array err = max(abs(0.5 * h * (k2 - k1)));
    Array accept = err <= tol;
    Array factor = clip(0.9 * sqrt(tol / maximum(err, 1e-12)), 0.2, 5.0);
    return State{where(accept, s.t + h, s.t), where(accept, y, s.y), h * factor, s.steps + 1};
  };
  return while_loop(State{0.0, y0, 0.1, 0}, cond_fn, body, {.max_iterations = 400});
}
}  // namespace adaptive_ode
TEST(ArrayPrograms, AdaptiveSteps) {
  using namespace adaptive_ode;
  WholeProgram program("adaptive_ode");

  auto run = [](Array mu) {
    auto vdp = [&](Array t, Array y) {
      return stack({y[1], mu * (1 - y[0] * y[0]) * y[1] - y[0] + 0.1 * sin(t)});
    };
    return solve_ivp(vdp, array({2.0, 0.0}), 2.0, 1e-3);
  };
  State s = jit(run)(array(1.5));
  program.check("y", s.y);
  program.check("t", s.t);
  program.check("steps", s.steps);
  program.check("g", grad([&](Array mu) { return run(mu).y[0]; })(array(1.5)));
  program.check("jvp", jvp([&](Array mu) { return run(mu).y; }, array(1.5), array(1.0)).second);
  // vmapped: while loops over different numbers of steps
  auto ys = jit(vmap([&](Array mu) {
    auto s = run(mu);
    return std::pair{s.y, s.steps};
  }))(array({0.5, 1.0, 3.0}));
  program.check("vy", ys.first);
  program.check("vs", ys.second);
}

namespace kalman {
struct KF {
  Array A, C, Q, R;
};
struct Belief {
  Array m, P;
};
}  // namespace kalman
TEST(ArrayPrograms, KalmanFilter) {
  using namespace kalman;
  WholeProgram program("kalman");

  KF kf{array({{1.0, 0.1}, {0.0, 1.0}}), array({{1.0, 0.0}}), 0.01 * eye(2), 0.1 * eye(1)};
  Array zs = expand_dims(sin(0.3 * arange(20, {.dtype = float32})), -1);
  auto filter = [](const KF& k, Array zs) {
    auto step = [&](Belief b, Array z) {
      Array m = matmul(k.A, b.m), P = matmul(matmul(k.A, b.P), k.A.T()) + k.Q;
      Array S = matmul(matmul(k.C, P), k.C.T()) + k.R;
      Array K = solve(S, matmul(k.C, P)).T();
      Array v = z - matmul(k.C, m);
      Array ll = -0.5 * (dot(v, solve(S, v)) + slogdet(S).second + std::log(2 * M_PI));
      Belief next{m + matmul(K, v), P - matmul(matmul(K, k.C), P)};
      return carry_and(next, std::tuple{next, ll});
    };
    auto [last, ys] = scan(Belief{zeros({2}), eye(2)}, zs, step);
    auto [beliefs, ll] = ys;
    return std::pair{sum(ll), beliefs};
  };
  auto [ll, bs] = jit(filter)(kf, zs);
  program.check("ll", ll);
  program.check("m", bs.m);
  program.check("P", bs.P[-1]);
  auto [g, aux] = grad([&](const KF& k) { return filter(k, zs); })(kf);
  program.check("gA", g.A);
  program.check("gC", g.C);
  program.check("gQ", g.Q);
  program.check("gR", g.R);
  auto h = hessian([&](Array logr) {
    KF k = kf;
    k.R = exp(logr) * eye(1);
    return filter(k, zs).first;
  })(array(-1.0));
  program.check("h", h);
}

namespace raymarch {
struct Sphere {
  Array center;
  Array radius;
};
}  // namespace raymarch
TEST(ArrayPrograms, RayMarching) {
  using namespace raymarch;
  WholeProgram program("raymarch");

  Sphere s{array({0.1, -0.2, 0.3}), 0.8};
  auto sdf = [](const Sphere& s, Array p) {
    Array sphere = norm(p - s.center) - s.radius;
    Array q = abs(p - array({1.2, 0.0, 0.0})) - 0.3;
    Array box = norm(maximum(q, 0.0)) + minimum(max(q), 0.0);
    return minimum(sphere, box);
  };
  auto march = [&](const Sphere& s, Array ro, Array rd) {
    return fori_loop(0, 24, [&](Array, Array t) { return t + sdf(s, ro + t * rd); }, 0.0);
  };
  auto render = [&](const Sphere& s, int n) {
    auto g = meshgrid({linspace(-1, 1, n), linspace(-1, 1, n)});
    Array uv = reshape(stack({g[0], g[1]}, -1), {-1, 2});
    Array ro = array({0.0, 0.0, -3.0});
    auto shade = [&](Array uv) {
      Array rd = concat({0.5 * uv, ones({1})});
      rd = rd / norm(rd);
      Array t = march(s, ro, rd);
      Array p = ro + t * rd;
      Array normal = grad([&](Array p) { return sdf(s, p); })(p);
      Array lam = clip(dot(normal, array({0.577, 0.577, -0.577})), 0.0, 1.0);
      return cond(t > 5.0, [&] { return array(0.0); }, [&] { return lam; });
    };
    return reshape(vmap(shade)(uv), {n, n});
  };
  auto img = jit([&](const Sphere& s) { return render(s, 8); })(s);
  program.check("img", img);
  auto gr = jit(grad([&](const Sphere& s) { return sum(square(render(s, 8))); }))(s);
  program.check("gc", gr.center);
  program.check("gr", gr.radius);
}

}  // namespace
}  // namespace ricci::whole_programs_test

#pragma GCC diagnostic pop
