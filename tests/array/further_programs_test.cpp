// Programs of newcomers, one idea each, against values that come by another way: plain loops of
// C++, closed forms, sums over everything, differences.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ricci/array.h"

namespace ricci::further_programs_test {
namespace {

using Numbers = std::vector<double>;

double item(const Array& x) { return x.item(); }

// --- A Kalman filter forwards and a smoother backwards, against one large linear system ---------

struct Belief {
  Array m, p;
};
struct Steps {
  Belief filtered, predicted;
};
struct Chain {
  Array a, q, h, r;  // x' = a·x + N(0, q), y = h·x + N(0, r)
};

Steps filter(const Chain& c, const Array& ys) {
  const Belief start{zeros({2}, float64), eye(2, {.dtype = float64})};
  return scan(start, ys,
              [&](Belief b, Array y) {
                const Array s = matmul(c.h, matmul(b.p, c.h.T())) + c.r;
                const Array gain = matmul(b.p, matmul(c.h.T(), inv(s)));
                const Belief now{b.m + matvec(gain, y - matvec(c.h, b.m)),
                                 b.p - matmul(gain, matmul(c.h, b.p))};
                const Belief next{matvec(c.a, now.m), matmul(c.a, matmul(now.p, c.a.T())) + c.q};
                return carry_and(next, Steps{now, b});
              })
      .ys;
}

Array smooth(const Chain& c, const Array& ys) {
  const Steps s = filter(c, ys);
  const std::int64_t n = ys.size(0);
  const Belief last{s.filtered.m[-1], s.filtered.p[-1]};
  struct Row {
    Belief now, next;
  };
  const auto part = [&](const Belief& b, std::int64_t from, std::int64_t to) {
    return tree_map([&](const Array& x) { return x[slice(from, to)]; }, b);
  };
  const Row rows{part(s.filtered, 0, n - 1), part(s.predicted, 1, n)};
  const Array before =
      scan(last, rows,
           [&](Belief after, Row row) {
             const Array g = matmul(row.now.p, matmul(c.a.T(), inv(row.next.p)));
             const Belief b{row.now.m + matvec(g, after.m - row.next.m),
                            row.now.p + matmul(g, matmul(after.p - row.next.p, g.T()))};
             return carry_and(b, b.m);
           },
           {.reverse = true})
          .ys;
  return concat({before, expand_dims(last.m, 0)});
}

TEST(ArrayPrograms, ASmootherIsTheSolutionOfOneLargeSystem) {
  const Chain c{array({{1.0, 0.1}, {-0.2, 0.9}}, float64), array({{0.1, 0.0}, {0.0, 0.2}}, float64),
                array({{1.0, 0.5}}, float64), array({{0.3}}, float64)};
  const Array ys = array({{0.5}, {1.2}, {-0.3}, {0.8}, {0.1}}, float64);
  const std::int64_t n = 5;
  // -log p is a quadratic function of all states: its Hessian and gradient at 0 give the minimum.
  const auto energy = [&](const Array& x) {
    Array e = sum(square(x[0]));
    for (std::int64_t t = 0; t < n; ++t) {
      const Array miss = ys[t] - matvec(c.h, x[t]);
      e = e + dot(miss, solve(c.r, miss));
      if (t == 0) continue;
      const Array jump = x[t] - matvec(c.a, x[t - 1]);
      e = e + dot(jump, solve(c.q, jump));
    }
    return e / 2;
  };
  const Array zero = zeros({n, 2}, float64);
  const Array h = hessian(energy)(zero).reshape(2 * n, 2 * n);
  const Array best = -solve(h, grad(energy)(zero).flatten()).reshape(n, 2);
  EXPECT_TRUE(allclose(jit(smooth)(c, ys), best, 1e-9, 1e-10));
  // A struct of gradients, by one number of it with differences.
  const auto loss = [&](const Chain& k) { return sum(square(smooth(k, ys))); };
  const Chain slope = jit(grad(loss))(c);
  const auto at = [&](double d) {
    Chain k = c;
    k.a = k.a.at(0, 1).add(d);
    return item(loss(k));
  };
  EXPECT_NEAR(slope.a(0, 1).item(), (at(1e-5) - at(-1e-5)) / 2e-5, 1e-6);
}

// --- L-BFGS over a map of arrays -----------------------------------------------------------------

using Params = std::map<std::string, Array>;

Array inner_product(const Params& a, const Params& b) {
  Array s = 0.0;
  for (const auto& [name, x] : a) s = s + sum(x * b.at(name));
  return s;
}
Params plus(const Params& a, const Array& k, const Params& b) {
  return tree_map([&](const Array& x, const Array& y) { return x + k * y; }, a, b);
}

TEST(ArrayPrograms, LbfgsOverAMapFindsTheRidgeSolution) {
  const Array x = normal(Key(3), {40, 3}, float64);
  const Array y = matmul(x, array({1.0, -2.0, 0.5}, float64)) + 0.7 +
                  normal(Key(4), {40}, 0, 0.1, {.dtype = float64});
  const auto loss = [&](const Params& p) {
    return sum(square(matmul(x, p.at("w")) + p.at("b") - y)) + 0.5 * sum(square(p.at("w"))) +
           0.5 * square(p.at("b"));
  };
  const auto slope = jit(value_and_grad(loss));
  Params p = {{"w", zeros({3}, float64)}, {"b", zeros({}, float64)}};
  auto [value, g] = slope(p);
  std::vector<std::pair<Params, Params>> pairs;
  int calls = 1;
  while (item(inner_product(g, g)) > 1e-18 && calls < 200) {
    Params d = g;
    std::vector<Array> alphas;
    for (auto it = pairs.rbegin(); it != pairs.rend(); ++it) {
      const auto& [s, t] = *it;
      alphas.push_back(inner_product(s, d) / inner_product(s, t));
      d = plus(d, -alphas.back(), t);
    }
    if (!pairs.empty()) {
      const auto& [s, t] = pairs.back();
      const Array scale = inner_product(s, t) / inner_product(t, t);
      d = tree_map([&](const Array& v) { return scale * v; }, d);
    }
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const auto& [s, t] = pairs[i];
      const Array b = inner_product(t, d) / inner_product(s, t);
      d = plus(d, alphas[pairs.size() - 1 - i] - b, s);
    }
    double step = 1;
    for (;; step /= 2) {
      Params q = plus(p, -step, d);
      auto [v, h] = slope(q);
      ++calls;
      // A decrease that is below what the sum can show counts as one.
      const double wanted = item(value) - 1e-4 * step * item(inner_product(g, d));
      if (item(v) > wanted + 1e-12 && step > 1e-12) continue;
      pairs.emplace_back(plus(q, -1.0, p), plus(h, -1.0, g));
      if (pairs.size() > 5) pairs.erase(pairs.begin());
      p = std::move(q), g = std::move(h), value = v;
      break;
    }
  }
  EXPECT_LT(calls, 60);
  EXPECT_EQ(slope.compiled(), 1U);
  const Array design = concat({x, ones({40, 1}, float64)}, 1);
  const Array normal_matrix = matmul(design.T(), design) + 0.5 * eye(4, {.dtype = float64});
  const Array best = solve(normal_matrix, matvec(design.T(), y));
  EXPECT_TRUE(allclose(p.at("w"), best[slice(0, 3)], 1e-7, 1e-9));
  EXPECT_NEAR(item(p.at("b")), best[3].item(), 1e-8);
}

// --- A batch of loops of different lengths -------------------------------------------------------

TEST(ArrayPrograms, ABatchOfWhilesCountsAsEachAlone) {
  struct State {
    Array n, steps = 0;
    std::optional<Array> highest = 0;
  };
  const auto collatz = [](const Array& n) {
    return while_loop(
        State{n, 0, n}, [](const State& s) { return s.n != 1; },
        [](const State& s) {
          const Array next = where(s.n % 2 == 0, floor_divide(s.n, 2), 3 * s.n + 1);
          return State{next, s.steps + 1, maximum(*s.highest, next)};
        });
  };
  const std::vector<std::int64_t> starts = {1, 27, 6, 97, 2};
  const State all = jit(vmap(collatz))(array(starts));
  for (std::size_t i = 0; i < starts.size(); ++i) {
    std::int64_t n = starts[i], steps = 0, highest = n;
    for (; n != 1; ++steps) {
      n = n % 2 == 0 ? n / 2 : 3 * n + 1;
      highest = std::max(highest, n);
    }
    EXPECT_EQ(all.steps.to_vector<std::int64_t>()[i], steps);
    EXPECT_EQ(all.highest->to_vector<std::int64_t>()[i], highest);
  }
  // Newton's root by a bounded loop: d√a/da = 1/(2√a), each of its own length, capture included.
  const Array tolerance = array(1e-12, float64);
  const auto root = [&](const Array& a) {
    return while_loop(
        a, [&](const Array& x) { return abs(x * x - a) > tolerance * a; },
        [&](const Array& x) { return (x + a / x) / 2; }, {.max_iterations = 40});
  };
  const Array a = array({0.5, 2.0, 900.0}, float64);
  const auto [values, slopes] = jit(vmap(value_and_grad(root)))(a);
  EXPECT_TRUE(allclose(values, sqrt(a), 1e-10));
  EXPECT_TRUE(allclose(slopes, 0.5 / sqrt(a), 1e-9));
}

// --- A rule of one's own inside a scan inside jit ------------------------------------------------

TEST(ArrayPrograms, AClippedGradientInsideAScanInsideJit) {
  // The identity, whose cotangent is kept within ±bound.
  const auto clipped =
      custom_vjp([](const Array& x, const Array& bound) { return x + 0.0 * bound; },
                 [](const Array&, const Array& bound, const Array&, const Array& ct) {
                   return std::tuple{clip(ct, -bound, bound), zeros_like(bound)};
                 });
  const Array w = array({1.5, 0.5, -2.0}, float64);
  const auto loss = [&](const Array& h0, const Array& bound) {
    const auto [last, ys] = scan(h0, w, [&](Array h, Array k) {
      h = clipped(h, bound) * k;
      return carry_and(h, square(h));
    });
    return sum(ys) + last;
  };
  const auto by_hand = [](double h0, double bound) {
    const std::array<double, 3> k = {1.5, 0.5, -2.0};
    std::array<double, 4> h = {h0};
    for (std::size_t t = 0; t < 3; ++t) h[t + 1] = h[t] * k[t];
    double ct = 1;
    for (std::size_t t = 3; t-- > 0;) {
      ct = std::clamp((ct + 2 * h[t + 1]) * k[t], -bound, bound);
    }
    return ct;
  };
  const auto slope = jit(grad(loss));
  for (const double bound : {0.3, 2.0, 100.0}) {
    for (const double h0 : {0.1, -1.0, 3.0}) {
      EXPECT_NEAR(slope(array(h0, float64), array(bound, float64)).item(), by_hand(h0, bound),
                  1e-12);
    }
  }
  const Array many =
      vmap(slope, {.in_axes = {0, {}}})(array({0.1, -1.0, 3.0}, float64), array(2.0, float64));
  EXPECT_TRUE(allclose(many, array({by_hand(0.1, 2), by_hand(-1, 2), by_hand(3, 2)}, float64)));
}

// --- A neural controlled differential equation ---------------------------------------------------

struct Cde {
  Array in, out, read;
  [[nodiscard]] Array field(const Array& z) const {  // [hidden, channels]
    return tanh(matvec(out, tanh(matvec(in, z)))).reshape(z.size(0), -1);
  }
  [[nodiscard]] Array operator()(const Array& path) const {  // [times, channels]
    const Array steps = diff(path, 1, 0);
    const auto heun = [&](Array z, Array dx) {
      const Array k1 = matvec(field(z), dx);
      const Array k2 = matvec(field(z + k1), dx);
      return carry_and(z + (k1 + k2) / 2, z);
    };
    return dot(read,
               scan(zeros({4}, float64) + 0.1, steps, heun, {.save = Save::recompute()}).last);
  }
};

TEST(ArrayPrograms, ANeuralCdeFollowsItsPath) {
  const Keys keys = split(Key(11), 4);
  const Cde f{0.5 * normal(keys[0], {6, 4}, float64), 0.5 * normal(keys[1], {12, 6}, float64),
              normal(keys[2], {4}, float64)};
  const Array paths = cumsum(0.3 * normal(keys[3], {5, 9, 3}, float64), 1);
  const auto loss = [&](const Cde& net, const Array& x) { return mean(square(vmap(net)(x))); };
  const auto [value, g] = jit(value_and_grad(loss))(f, paths);

  // The same in loops.
  const auto plain = [](const Cde& net, const Array& path) {
    const Numbers in = net.in.to_vector(), out = net.out.to_vector(), read = net.read.to_vector();
    const Numbers x = path.to_vector();
    Numbers z(4, 0.1);
    const auto moved = [&](const Numbers& at, std::size_t t) {
      Numbers hidden(6), change(4);
      for (std::size_t i = 0; i < 6; ++i) {
        for (std::size_t j = 0; j < 4; ++j) hidden[i] += in[i * 4 + j] * at[j];
        hidden[i] = std::tanh(hidden[i]);
      }
      for (std::size_t i = 0; i < 12; ++i) {
        double v = 0;
        for (std::size_t j = 0; j < 6; ++j) v += out[i * 6 + j] * hidden[j];
        change[i / 3] += std::tanh(v) * (x[(t + 1) * 3 + i % 3] - x[t * 3 + i % 3]);
      }
      return change;
    };
    for (std::size_t t = 0; t < 8; ++t) {
      const Numbers k1 = moved(z, t);
      Numbers there = z;
      for (std::size_t i = 0; i < 4; ++i) there[i] += k1[i];
      const Numbers k2 = moved(there, t);
      for (std::size_t i = 0; i < 4; ++i) z[i] += (k1[i] + k2[i]) / 2;
    }
    double y = 0;
    for (std::size_t i = 0; i < 4; ++i) y += read[i] * z[i];
    return y;
  };
  const auto mean_square = [&](const Cde& net) {
    double s = 0;
    for (std::int64_t i = 0; i < 5; ++i) s += std::pow(plain(net, paths[i]), 2) / 5;
    return s;
  };
  EXPECT_NEAR(item(value), mean_square(f), 1e-12);
  const auto moved_by = [&](double d) {
    Cde net = f;
    net.in = net.in.at(2, 1).add(d);
    net.out = net.out.at(7, 3).add(-d);
    return mean_square(net);
  };
  EXPECT_NEAR(item(g.in(2, 1) - g.out(7, 3)), (moved_by(1e-5) - moved_by(-1e-5)) / 2e-5, 1e-8);
}

// --- A hidden Markov model: gradients of log Z are marginals -------------------------------------

TEST(ArrayPrograms, SlopesOfAForwardPassAreMarginals) {
  struct Hmm {
    Array start, move, see;  // log weights [s], [s, s], [times, s]
  };
  const Keys keys = split(Key(5), 3);
  const Hmm m{normal(keys[0], {3}, float64), normal(keys[1], {3, 3}, float64),
              normal(keys[2], {5, 3}, float64)};
  const auto log_z = [](const Hmm& h) {
    return logsumexp(scan(h.start + h.see[0], h.see[slice(1, none)], [&](Array a, Array s) {
                       return logsumexp(expand_dims(a, 1) + h.move, 0) + s;
                     }).last);
  };
  const auto [value, marginals] = jit(value_and_grad(log_z))(m);
  const Numbers start = m.start.to_vector(), move = m.move.to_vector(), see = m.see.to_vector();
  double z = 0;
  Numbers seen(15), moved(9);
  for (int path = 0; path < 243; ++path) {
    std::array<std::size_t, 5> s{};
    for (int t = 0, p = path; t < 5; ++t, p /= 3)
      s[static_cast<std::size_t>(t)] = static_cast<std::size_t>(p % 3);
    double w = start[s[0]] + see[s[0]];
    for (std::size_t t = 1; t < 5; ++t) w += move[s[t - 1] * 3 + s[t]] + see[t * 3 + s[t]];
    w = std::exp(w);
    z += w;
    for (std::size_t t = 0; t < 5; ++t) seen[t * 3 + s[t]] += w;
    for (std::size_t t = 1; t < 5; ++t) moved[s[t - 1] * 3 + s[t]] += w;
  }
  EXPECT_NEAR(item(value), std::log(z), 1e-12);
  for (std::size_t i = 0; i < 15; ++i)
    EXPECT_NEAR(marginals.see.to_vector()[i], seen[i] / z, 1e-12);
  for (std::size_t i = 0; i < 9; ++i)
    EXPECT_NEAR(marginals.move.to_vector()[i], moved[i] / z, 1e-12);
}

// --- Steps that are learnt: a gradient through gradients, a task each ----------------------------

TEST(ArrayPrograms, AnInnerLoopOfStepsIsDifferentiatedTaskByTask) {
  // Tasks are bowls |w - c|²/2: k steps of rate r leave (1 - r)ᵏ·(w - c).
  const auto task = [](const Array& w, const Array& c) { return sum(square(w - c)) / 2; };
  struct Meta {
    Array w, rate;
  };
  const auto adapted = [&](const Meta& m, const Array& c) {
    return fori_loop(0, 3, [&](Array, Array w) { return w - m.rate * grad(task)(w, c); }, m.w);
  };
  const auto meta_loss = [&](const Meta& m, const Array& centres) {
    return mean(vmap([&](Array c) { return task(adapted(m, c), c); })(centres));
  };
  const Meta m{array({1.0, -1.0}, float64), array(0.3, float64)};
  const Array centres = array({{0.0, 0.5}, {2.0, 1.0}, {-1.0, 3.0}}, float64);
  const auto [value, g] = jit(value_and_grad(meta_loss))(m, centres);
  const Array gap = m.w - centres;
  const double far = item(sum(square(gap))) / 6;
  EXPECT_NEAR(item(value), far * std::pow(0.7, 6), 1e-12);
  EXPECT_NEAR(item(g.rate), far * -6 * std::pow(0.7, 5), 1e-12);
  EXPECT_TRUE(allclose(g.w, std::pow(0.7, 6) * mean(gap, 0), 1e-12));
}

// --- Shortest ways by writing into places that are computed --------------------------------------

TEST(ArrayPrograms, ShortestWaysByRelaxingEdges) {
  const std::vector<std::int32_t> from = {0, 0, 1, 2, 2, 3, 4}, to = {1, 2, 3, 1, 3, 4, 0};
  const std::vector<float> length = {7, 2, 1, 3, 8, 2, 1};
  struct State {
    Array far, changed = true;
    std::map<std::string, Array> seen;
  };
  const auto ways = jit([](const Array& a, const Array& b, const Array& l, const Array& source) {
    const Array far = full({6}, INFINITY).at(source).set(0.0);
    return while_loop(
        State{far, true, {{"rounds", Array(0)}}}, [](const State& s) { return s.changed; },
        [&](const State& s) {
          const Array next = s.far.at(b).min(s.far[a] + l);
          return State{next, any(next != s.far), {{"rounds", s.seen.at("rounds") + 1}}};
        });
  });
  for (int source = 0; source < 6; ++source) {
    Numbers far(6, INFINITY);
    far[static_cast<std::size_t>(source)] = 0;
    for (int round = 0; round < 6; ++round) {
      for (std::size_t e = 0; e < from.size(); ++e) {
        double& there = far[static_cast<std::size_t>(to[e])];
        there = std::min(there, far[static_cast<std::size_t>(from[e])] + length[e]);
      }
    }
    EXPECT_EQ(ways(array(from), array(to), array(length), array(source)).far.to_vector(), far);
  }
  EXPECT_EQ(ways.compiled(), 1U);
}

}  // namespace
}  // namespace ricci::further_programs_test
