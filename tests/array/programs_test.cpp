// Small programs as somebody who knows JAX writes them down.
#include <cmath>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "ricci/array.h"
#include "ricci/support/error.h"

namespace ricci::programs_test {
namespace {

using Numbers = std::vector<double>;

struct Logistic {
  Array w = zeros({3}), b = zeros({});
};

TEST(ArrayPrograms, LogisticRegressionWithAShortLastBatch) {
  const Array truth = array({2.0, -1.0, 0.5});
  const Array x = normal(Key(1), {50, 3});
  const Array y = cast(matmul(x, truth) > 0.0, float32);
  const auto loss = [](const Logistic& m, const Array& bx, const Array& by) {
    return binary_cross_entropy_with_logits(matmul(bx, m.w) + m.b, by);
  };
  const auto step = jit(
      [&](const Logistic& m, const Array& bx, const Array& by) {
        return tree_map([](const Array& p, const Array& g) { return p - g; }, m,
                        grad(loss)(m, bx, by));
      },
      {.symbolic = {{1, {"n"}}, {2, {"n"}}}, .donate = {0}});
  Logistic m;
  for (int epoch = 0; epoch < 15; ++epoch) {
    const Array order = permutation(Key(2).fold_in(epoch), 50);
    for (std::int64_t at = 0; at < 50; at += 16) {
      const Array rows = order[slice(at, at + 16)];
      m = step(std::move(m), x[rows], y[rows]);
    }
  }
  EXPECT_EQ(step.compiled(), 1U);
  EXPECT_GT(mean((matmul(x, m.w) + m.b > 0.0) == (y > 0.5)).item(), 0.9);
}

TEST(ArrayPrograms, KMeans) {
  const Array points = concat({normal(Key(1), {20, 2}, -5, 0.5), normal(Key(2), {30, 2}, 5, 0.5)});
  Array centres = points(array({0, 49}));
  const auto round = jit([](const Array& p, const Array& c) {
    const Array gaps = sum(square(p(slice(), newaxis) - c), -1);
    const Array nearest = argmin(gaps, 1);
    const Array total = zeros_like(c).at(nearest).add(p);
    const Array count = bincount(nearest, 2);
    return std::pair{total / expand_dims(cast(count, float32), 1), count};
  });
  Array count;
  for (int i = 0; i < 4; ++i) std::tie(centres, count) = round(points, centres);
  EXPECT_EQ(count.to_vector(), (Numbers{20, 30}));
  EXPECT_NEAR(centres(0, 0).item(), -5, 0.5);
  EXPECT_NEAR(centres(1, 1).item(), 5, 0.5);
}

TEST(ArrayPrograms, PowerIterationUntilItSettles) {
  const Array a = array({{2.0, 1.0}, {1.0, 3.0}});
  struct State {
    Array v, change;
    Array steps = 0;
  };
  const auto out = jit([](const Array& m) {
    return while_loop(
        State{ones({2}), 1.0, 0}, [](const State& s) { return s.change > 1e-6 && s.steps < 100; },
        [&](const State& s) {
          const Array next = normalize(matvec(m, s.v));
          return State{next, amax(abs(next - s.v)), s.steps + 1};
        });
  })(a);
  EXPECT_NEAR(dot(out.v, matvec(a, out.v)).item(), amax(eigh(a).first).item(), 1e-4);
}

TEST(ArrayPrograms, MetropolisWithKeys) {
  const auto log_density = [](const Array& x) { return -0.5 * square(x - 2.0); };
  const auto sample = jit([&](const Key& key) {
    struct State {
      Key key;
      Array x;
    };
    return scan(State{key, array(0.0)}, 4000,
                [&](const State& s) {
                  const auto [next, a, b] = split<3>(s.key);
                  const Array proposal = s.x + normal(a, {}) * 1.5;
                  const Array accept =
                      log(uniform(b, {})) < log_density(proposal) - log_density(s.x);
                  const Array x = where(accept, proposal, s.x);
                  return carry_and(State{next, x}, x);
                })
        .ys;
  });
  const Array chain = sample(Key(7))[slice(500, {})];
  EXPECT_NEAR(mean(chain).item(), 2, 0.2);
  EXPECT_NEAR(var(chain).item(), 1, 0.3);
  EXPECT_TRUE(array_equal(sample(Key(7)), sample(Key(7))));
  EXPECT_FALSE(array_equal(sample(Key(7)), sample(Key(8))));
}

struct Cell {
  Array wx, wh, b;
};
using Model = std::map<std::string, std::vector<Cell>>;

TEST(ArrayPrograms, AStackOfRecurrentCellsInAMapOfVectors) {
  const auto cell = [](std::uint64_t k) {
    return Cell{normal(Key(k), {4, 4}, 0, 0.3), normal(Key(k + 1), {4, 4}, 0, 0.3), zeros({4})};
  };
  const Model model{{"cells", {cell(1), cell(3)}}};
  const auto run = [](const Model& m, const Array& xs) {
    Array ys = xs;
    for (const Cell& c : m.at("cells")) {
      ys = scan(zeros({4}), ys, [&](const Array& h, const Array& x) {
             const Array next = tanh(matmul(x, c.wx) + matmul(h, c.wh) + c.b);
             return carry_and(next, next);
           }).ys;
    }
    return mean(square(ys));
  };
  const Array xs = normal(Key(9), {5, 4});
  const auto [value, g] = jit(value_and_grad(run))(model, xs);
  EXPECT_EQ(leaf_names(g)[0], "cells.0.wx");
  // Against a difference quotient in one direction.
  const double h = 1e-2;
  const Model up = tree_map([&](const Array& p) { return p + h; }, model);
  const Model down = tree_map([&](const Array& p) { return p - h; }, model);
  Array along = 0.0;
  for (const Array& d : leaves(g)) along = along + sum(d);
  EXPECT_NEAR(along.item(), (run(up, xs).item() - run(down, xs).item()) / (2 * h), 1e-2);
}

TEST(ArrayPrograms, GameOfLife) {
  const auto round = [](const Array& grid) {
    Array around = zeros_like(grid);
    for (const int i : {-1, 0, 1}) {
      for (const int j : {-1, 0, 1}) {
        if (i != 0 || j != 0) around = around + roll(roll(grid, i, 0), j, 1);
      }
    }
    return cast((around == 3) || ((grid == 1) && (around == 2)), int32);
  };
  const Array blinker = zeros({5, 5}, {.dtype = int32}).at(2, slice(1, 4)).set(1);
  const Array after = jit([&](const Array& g) {
    return fori_loop(0, 2, [&](const Array&, const Array& x) { return round(x); }, g);
  })(blinker);
  EXPECT_TRUE(array_equal(after, blinker));
  EXPECT_TRUE(array_equal(round(blinker), transpose(blinker)));
}

TEST(ArrayPrograms, GradientsOfEveryExample) {
  const auto loss = [](const Logistic& m, const Array& x, const Array& y) {
    return square(dot(x, m.w) + m.b - y);
  };
  const Logistic m{array({1.0, 2.0, 3.0}), array(0.5)};
  const Array x = normal(Key(1), {4, 3});
  const Array y = normal(Key(2), {4});
  const auto each = vmap(grad(loss), {.in_axes = {{}, 0, 0}})(m, x, y);
  EXPECT_EQ(each.w.shape(), (Dims{4, 3}));
  const auto third = grad(loss)(m, x[2], y[2]);
  EXPECT_TRUE(allclose(each.w[2], third.w));
  // Norms, clipping and the mean, as for private training.
  const Array norms = sqrt(sum(square(each.w), 1) + square(each.b));
  const Array clipped = each.w * expand_dims(minimum(1.0, 1.0 / norms), 1);
  EXPECT_LE(amax(norm(clipped, 1)).item(), 1.0 + 1e-5);
}

TEST(ArrayPrograms, AGaussianProcessFindsItsLength) {
  const Array x = linspace(0, 6, 20);
  const Array y = sin(x);
  const auto nll = [&](const Array& log_length) {
    const Array d = x(slice(), newaxis) - x;
    const Array k = exp(-0.5 * square(d / exp(log_length))) + 1e-2 * eye(20);
    const Array l = cholesky(k);
    const Array alpha = solve(k, y);
    return 0.5 * dot(y, alpha) + sum(log(diagonal(l)));
  };
  const auto step = jit(value_and_grad(nll));
  Array p = array(-1.0);
  Array first;
  Array last;
  for (int i = 0; i < 40; ++i) {
    const auto [value, g] = step(p);
    if (i == 0) first = value;
    last = value;
    p = p - 0.02 * clip(g, -5.0, 5.0);
  }
  EXPECT_LT(last.item(), first.item() - 1);
  EXPECT_GT(p.item(), -0.5);
}

TEST(ArrayPrograms, LearningToLearn) {
  // One step of descent inside, differentiated by where it starts.
  const auto inner = [](const Array& w, const Array& target) { return sum(square(w - target)); };
  const auto outer = [&](const Array& start, const Array& target) {
    const Array adapted = start - 0.1 * grad(inner)(start, target);
    return inner(adapted, target);
  };
  const Array tasks = array({{1.0, 0.0}, {3.0, 2.0}});
  const auto meta = jit(grad(
      [&](const Array& start) { return mean(vmap(outer, {.in_axes = {{}, 0}})(start, tasks)); }));
  Array start = zeros({2});
  for (int i = 0; i < 60; ++i) start = start - 0.2 * meta(start);
  EXPECT_TRUE(allclose(start, array({2.0, 1.0}), 1e-2, 1e-2)) << start;
}

TEST(ArrayPrograms, CausalAttentionByHand) {
  const auto attend = [](const Array& x, const Array& wq, const Array& wk, const Array& wv) {
    const Array q = matmul(x, wq);
    const Array k = matmul(x, wk);
    const std::int64_t n = x.dim(0).value();
    const Array scores = matmul(q, k.T()) / std::sqrt(4.0);
    const Array seen = tril(ones({n, n})) == 1.0;
    return matmul(softmax(where(seen, scores, -1e30)), matmul(x, wv));
  };
  const Array x = normal(Key(1), {6, 4});
  const Array w = normal(Key(2), {3, 4, 4});
  const Array y = attend(x, w[0], w[1], w[2]);
  // What comes later changes nothing before it.
  const Array changed = attend(x.at(-1).set(0.0), w[0], w[1], w[2]);
  EXPECT_TRUE(allclose(y[slice(0, 5)], changed[slice(0, 5)]));
  const Array j = jacrev([&](const Array& v) { return attend(v, w[0], w[1], w[2])[0]; })(x);
  EXPECT_EQ(amax(abs(j(slice(), slice(1, {})))).item(), 0);
}

TEST(ArrayPrograms, AnImplicitRootWithARule) {
  const auto root = custom_vjp(
      [](const Array& a) {
        return while_loop(
            a, [&](const Array& x) { return abs(x * x - a) > 1e-6; },
            [&](const Array& x) { return 0.5 * (x + a / x); });
      },
      [](const Array&, const Array& x, const Array& d) { return d / (2.0 * x); });
  EXPECT_NEAR(jit(root)(array(2.0)).item(), std::sqrt(2.0), 1e-4);
  EXPECT_NEAR(grad(root)(array(4.0)).item(), 0.25, 1e-5);
  EXPECT_NEAR(grad([&](const Array& a) { return grad(root)(a); })(array(4.0)).item(), -1.0 / 32,
              1e-4);
}

TEST(ArrayPrograms, Mandelbrot) {
  const auto grid = meshgrid({linspace(-1, 1, 5), linspace(-2, 1, 7)});
  const Array c = make_complex(grid[1], grid[0]);
  const Array count = jit([](const Array& k) {
    return fori_loop(
               0, 30,
               [&](const Array&, const std::pair<Array, Array>& s) {
                 const Array inside = abs(s.first) < 2.0;
                 return std::pair{where(inside, s.first * s.first + k, s.first),
                                  s.second + cast(inside, int32)};
               },
               std::pair{zeros_like(k), zeros({5, 7}, {.dtype = int32})})
        .second;
  })(c);
  EXPECT_EQ(count(2, 4).item(), 30);  // 0 is inside
  EXPECT_LT(count(0, 0).item(), 5);
}

TEST(ArrayPrograms, PrintingWhatHappens) {
  const Array loss = array(0.123456);
  EXPECT_EQ(formatted("{:4} loss {:.4f} {}", 12, loss, "ok"), "  12 loss 0.1235 ok");
  EXPECT_EQ(formatted("{:.1f}", array({{1.0, 2.25}, {3.5, 4.0}})), "[[1.0 2.2]\n [3.5 4.0]]");
  EXPECT_EQ(formatted("{}", array({1, 2})), "[1 2]");
  EXPECT_THROW((void)formatted("{:zz}", loss), UserError);
  EXPECT_THROW((void)formatted("{} {}", loss), UserError);
  ::testing::internal::CaptureStdout();
  const auto f = jit([](const Array& x) { return sum(debug_print("x = {}", x * 2.0)); });
  EXPECT_EQ(f(array({1.0, 2.0})).item(), 6);
  EXPECT_EQ(grad(f)(array({1.0, 2.0})).to_vector(), (Numbers{2, 2}));
  EXPECT_EQ(vmap(f)(ones({2, 1})).to_vector(), (Numbers{2, 2}));
  print("{}", f(array({3.0})));
  const std::string out = ::testing::internal::GetCapturedStdout();
  EXPECT_EQ(out.find("x = [2. 4.]\n"), 0U) << out;
  EXPECT_NE(out.find("x = [6.]\n6.0\n"), std::string::npos) << out;
}

TEST(ArrayPrograms, FilesOfStructs) {
  struct Net {
    Cell cell{ones({4, 4}), zeros({4, 4}), zeros({4})};
    std::vector<Array> heads{arange(3), arange(4)};
  };
  struct Empty {
    Array w, b;
  };
  const std::string file = ::testing::TempDir() + "ricci_net.npz";
  Net net;
  net.cell.b = array({1.0, 2.0, 3.0, 4.0});
  save(file, net);
  EXPECT_EQ(load<Net>(file).cell.b.to_vector(), (Numbers{1, 2, 3, 4}));
  EXPECT_EQ(load(file, Net{}).heads[1].to_vector(), (Numbers{0, 1, 2, 3}));
  save(file, Empty{ones({2}), zeros({3})});
  EXPECT_EQ(load<Empty>(file).w.to_vector(), (Numbers{1, 1}));  // fields without a value take it
  EXPECT_THROW((void)load<Net>(file), UserError);
}

}  // namespace
}  // namespace ricci::programs_test
