// Loops and branches of arrays: captures, gradients, what they refuse.
#include <cmath>

#include <gtest/gtest.h>

#include "ricci/array.h"
#include "ricci/graph.h"
#include "ricci/support/error.h"

namespace ricci::control_test {
namespace {

using Numbers = std::vector<double>;

std::string refused(const std::function<void()>& f) {
  try {
    f();
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

void expect_values(const Array& actual, const Numbers& expected, double tolerance = 1e-5) {
  const Numbers found = actual.to_vector();
  ASSERT_EQ(found.size(), expected.size()) << actual;
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << actual;
  }
}

TEST(ArrayLoops, ScanRunsAlongRows) {
  const auto [last, ys] = scan(0.0, array({1.0, 2.0, 3.0}), [](Array c, Array x) {
    c = c + x;
    return carry_and(c, c * 10);
  });
  EXPECT_EQ(last.item(), 6);
  expect_values(ys, {10, 30, 60});
  const auto reversed =
      scan(0.0, array({1.0, 2.0, 3.0}), [](Array c, Array x) { return carry_and(c + x, c); },
           {.reverse = true});
  expect_values(reversed.ys, {5, 3, 0});
  // A number that the loop starts from takes the dtype of what it meets.
  EXPECT_EQ(scan(0.0, array({1.0}, {.dtype = DType::F64}), [](Array c, Array x) { return c + x; })
                .last.dtype(),
            DType::F64);
  EXPECT_EQ(scan(1, 5, [](Array c) { return c * 2; }).last.item(), 32);
}

struct State {
  Array position, speed;
};
TEST(ArrayLoops, CarriesAreTreesAndBodiesCapture) {  // [FE-2a]
  const Array k = array({4.0});
  const auto fall = [&](Array stiffness) {
    const State start = {array({1.0}), array({0.0})};
    const auto [last, path] = scan(start, 50, [&](State s) {
      s.speed = s.speed - 0.01 * stiffness * s.position;
      s.position = s.position + 0.01 * s.speed;
      return carry_and(s, s.position);
    });
    return std::pair{sum(last.position), path};
  };
  const double slope = (fall(k + 0.1).first.item() - fall(k - 0.1).first.item()) / 0.2;
  const auto [g, path] = grad(fall)(k);
  EXPECT_NEAR(g.item(), slope, 1e-3);
  EXPECT_EQ(path.shape(), (Dims{50, 1}));
  // Policies of what is kept change nothing.
  const auto lean = grad([&](Array stiffness) {
    return sum(scan(array({1.0}), 20, [&](Array x) { return sin(x * stiffness); },
                    {.save = {.policy = ScanSave::Recompute}})
                   .last);
  });
  const auto plain = grad([&](Array stiffness) {
    return sum(scan(array({1.0}), 20, [&](Array x) { return sin(x * stiffness); }).last);
  });
  expect_values(lean(k), plain(k).to_vector());
}

TEST(ArrayLoops, ForiCounts) {
  const Array x = array({1.0, 2.0, 3.0});
  const Array total =
      fori_loop(0, 3, [&](Array i, Array s) { return s + take(x, i) * cast(i, DType::F32); }, 0.0);
  EXPECT_EQ(total.item(), 8);
  expect_values(grad([](Array y) {
                  return sum(fori_loop(0, 3, [&](Array, Array s) { return s * y; }, ones({1})));
                })(array({2.0})),
                {12});
  EXPECT_EQ(fori_loop(3, 3, [](Array, Array s) { return s + 1; }, 7.0).item(), 7);
}

TEST(ArrayLoops, ForiCountsBetweenArrays) {
  const auto sum_below = jit([](Array n, Array w) {
    return fori_loop(0, n, [&](Array i, Array c) { return c + w * cast(i, float32); }, 0.0);
  });
  EXPECT_EQ(sum_below(array(5), 2.0).item(), 20);
  EXPECT_EQ(sum_below(array(0), 2.0).item(), 0);
  expect_values(vmap(sum_below, {.in_axes = {0, {}}})(array({1, 2, 4}), array(1.0)), {0, 1, 6});
  const auto bounded = [](Array w) {
    return fori_loop(array(1), array(4), [&](Array, Array c) { return c * w; }, w,
                     {.max_iterations = 5});
  };
  EXPECT_EQ(grad(bounded)(array(2.0)).item(), 32);
}

TEST(ArrayLoops, WhileAsksAndCaptures) {
  const Array limit = array({100.0});
  const Array root = while_loop(
      array({1.0}), [&](Array x) { return x * x < limit; },
      [&](Array x) { return x + limit / 100; });
  EXPECT_EQ(root.item(), 10);
  const auto f = [](Array a) {
    return sum(while_loop(
        a, [](Array x) { return all(x < 50); }, [&](Array x) { return x * a; },
        {.max_iterations = 20}));
  };
  // 3·3·3·3 = 81: a⁴, whose slope is 4·a³.
  expect_values(grad(f)(array({3.0})), {108});
  EXPECT_NE(
      refused([&] {
        (void)grad([](Array a) {
          return sum(while_loop(a, [](Array x) { return x < 50; }, [&](Array x) { return x * a; }));
        })(array({3.0}));
      }).find("unbounded_loop"),
      std::string::npos);
}

TEST(ArrayBranches, OnlyOneRuns) {
  const Array x = array({2.0});
  const auto f = [](Array y) {
    return cond(sum(y) > 0, [&] { return log(y); }, [&] { return y * y; });
  };
  expect_values(f(x), {std::log(2.0)});
  expect_values(f(-x), {4});
  expect_values(grad([&](Array y) { return sum(f(y)); })(-x), {-4});
  expect_values(jit(f)(x), {std::log(2.0)});
  // A branch that would never end is not entered.
  const Array y = cond(
      x[0] < 0,
      [&] { return while_loop(x, [](Array v) { return v == v; }, [](Array v) { return v; }); },
      [&] { return x; });
  expect_values(y, {2});
  expect_values(cond(true, [](Array v) { return v + 1; }, [](Array v) { return v; }, x), {3});
  // A number takes the dtype of the other branch.
  EXPECT_EQ(cond(
                x[0] > 5, [&] { return cast(x[0], DType::F64); }, [&] { return Array(0.1); })
                .item(),
            0.1);
}

TEST(ArrayBranches, SwitchChoosesByNumber) {
  const Array x = array({3.0});
  const auto f = [&](const Array& i) {
    return switch_(i, [&] { return x; }, [&] { return x * x; }, [&] { return -x; });
  };
  expect_values(f(0), {3});
  expect_values(f(1), {9});
  expect_values(f(2), {-3});
  expect_values(f(7), {-3});
  expect_values(vmap(f)(array({0, 1, 2})), {3, 9, -3});
}

TEST(ArrayBranches, AreBatchedAndNested) {
  const auto f = [](Array x) {
    return cond(
        x > 0,
        [&] {
          return scan(
                     x, 3,
                     [&](Array c) { return cond(c > 4, [&] { return c; }, [&] { return c * 2; }); })
              .last;
        },
        [&] { return Array(0.0) * x; });
  };
  expect_values(vmap(f)(array({1.0, -1.0, 3.0, 5.0})), {8, 0, 6, 5});
  expect_values(vmap(grad(f))(array({1.0, -1.0, 3.0, 5.0})), {8, 0, 2, 1});
}

TEST(ArrayLoops, ErrorsSayWhat) {
  const Array x = array({1.0, 2.0});
  EXPECT_NE(refused([&] {
              (void)scan(x, 3, [](Array c) { return sum(c); });
            }).find("a carry of 'scan' starts as f32[2], and the body gives f32[]"),
            std::string::npos);
  EXPECT_NE(refused([&] {
              (void)scan(x, std::pair{zeros({2}), zeros({3})},
                         [](Array c, std::pair<Array, Array>) { return c; });
            }).find("along 2 and along 3 rows"),
            std::string::npos);
  EXPECT_NE(refused([&] {
              (void)cond(x[0] > 0, [&] { return x; }, [&] { return x[0]; });
            }).find("the first branch of 'cond' gives f32[2], the second f32[]"),
            std::string::npos);
  EXPECT_NE(refused([&] {
              (void)cond(
                  x[0] > 0, [&] { return std::pair{x, x}; }, [&] { return std::pair{x, x[0]}; });
            }).find("the first branch of 'cond' gives as result 1 f32[2], the second f32[]"),
            std::string::npos);
  const std::string unbounded = refused([&] {
    (void)grad([](Array a) {
      return while_loop(a, [](Array s) { return s < 3; }, [](Array s) { return s * 2; });
    })(x[0])
        .item();
  });
  EXPECT_NE(unbounded.find("say how often it runs at most (max_iterations)"), std::string::npos)
      << unbounded;
  EXPECT_NE(refused([&] {
              (void)scan(x, 3, [](Array c) { return c.item() > 0 ? c : -c; });
            }).find("item() wants one element"),
            std::string::npos);
}

// Whoever goes down to graphs has the headers of arrays in sight too.
TEST(ArrayLoops, LoopsOfGraphsAreTakenForWhatTheyAre) {
  using Values = std::vector<Value>;
  using Inputs = std::span<const Value>;
  Graph g("loops");
  const Value c = g.input("c", f64({2}));
  const Value last = scan(c, [](Graph&, Inputs in) { return Values{in[0] * 2.0}; }, 3);
  const Values found =
      while_loop(
          std::array{last}, [](Graph&, Inputs in) { return Values{lt(sum(in[0]), 100.0)}; },
          [](Graph&, Inputs in) { return Values{in[0] * 2.0}; })
          .carries;
  g.set_outputs(found);
  const auto out = interpret(g, {{"c", Tensor::from_numbers<double>(f64({2}), Numbers{1, 2})}});
  EXPECT_EQ(out[0].numbers<double>(), (Numbers{64, 128}));
}

}  // namespace
}  // namespace ricci::control_test
