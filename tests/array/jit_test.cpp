// What `jit` can be told: static arguments, sizes that vary, memory that is handed over, a device.
#include <gtest/gtest.h>

#include "ricci/array.h"
#include "ricci/support/error.h"

namespace ricci::jit_test {
namespace {

using Numbers = std::vector<double>;

std::string refusal(const std::function<void()>& f) {
  try {
    f();
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

struct Batch {
  Array x, y;
};
struct Layer {
  Array w, b;
};

TEST(ArrayJitStatic, ArgumentsAreKnownInside) {
  // The number of rounds is an array, and a plain loop asks it.
  const auto f = jit(
      [](Array x, const Array& rounds) {
        for (int i = 0; i < static_cast<int>(rounds); ++i) x = x * 2.0;
        return x;
      },
      {.static_arguments = {1}});
  EXPECT_EQ(f(array({1.0, 2.0}), 3).to_vector(), (Numbers{8, 16}));
  EXPECT_EQ(f(array({5.0, 2.0}), 3).to_vector(), (Numbers{40, 16}));
  EXPECT_EQ(f.compiled(), 1U);
  EXPECT_EQ(f(array({1.0, 2.0}), 1).to_vector(), (Numbers{2, 4}));
  EXPECT_EQ(f.compiled(), 2U);
  const Array table = array({0, 2});
  const auto picks =
      jit([](const Array& x, const Array& at) { return x[static_cast<int>(at[0])] + x[1]; },
          {.static_arguments = {1}});
  EXPECT_EQ(picks(array({1.0, 2.0, 3.0}), table).item(), 3);
  EXPECT_EQ(picks(array({1.0, 2.0, 3.0}), array({2, 2})).item(), 5);
}

Array twice(const Array& x) { return 2.0 * x; }
Array squared(const Array& x) { return x * x; }

TEST(ArrayJitStatic, FunctionsNumbersAndTextsAreStaticByThemselves) {
  const auto apply_to = jit([](Array (*g)(const Array&), const Array& x) { return g(x) + 1.0; });
  EXPECT_EQ(apply_to(twice, array({3.0})).item(), 7);
  EXPECT_EQ(apply_to(squared, array({3.0})).item(), 10);
  EXPECT_EQ(apply_to.compiled(), 2U);
  const auto with_lambda = jit([](const auto& g, const Array& x) { return g(x); });
  EXPECT_EQ(with_lambda([](const Array& x) { return x + 1.0; }, array({1.0})).item(), 2);
  EXPECT_EQ(with_lambda([](const Array& x) { return x - 1.0; }, array({1.0})).item(), 0);
  const auto named =
      jit([](const Array& x, const std::string& how) { return how == "sum" ? sum(x) : mean(x); });
  EXPECT_EQ(named(array({1.0, 3.0}), std::string("sum")).item(), 4);
  EXPECT_EQ(named(array({1.0, 3.0}), std::string("mean")).item(), 2);
}

TEST(ArrayJitStatic, ErrorsSayWhat) {
  const auto f = jit([](const Array& x) { return x; }, {.static_arguments = {2}});
  EXPECT_NE(refusal([&] { (void)f(array({1.0})); }).find("names argument 2, the function has 1"),
            std::string::npos);
  const auto g = jit([](const Array& x, const Array& n) { return x * static_cast<double>(n); },
                     {.static_arguments = {1}});
  const auto outer = jit([&](const Array& x) { return g(x, sum(x)); });
  EXPECT_NE(refusal([&] { (void)outer(array({1.0})); }).find("is being traced by 'jit'"),
            std::string::npos);
}

TEST(ArrayJitSymbolic, IsTracedOnceForAllSizes) {
  int traced = 0;
  const auto f = jit(
      [&](const Array& x, const Array& w) {
        ++traced;
        const Array h = tanh(matmul(x, w));
        return std::pair{mean(h * h, 1), sum(x, 0)};
      },
      {.symbolic = {{0, {"n"}}}});
  const Array w = normal(Key(1), {3, 2});
  for (const std::int64_t n : {1, 4, 7, 4, 1}) {
    const Array x = normal(Key(2), {n, 3});
    const auto [m, s] = f(x, w);
    EXPECT_EQ(m.shape(), (Dims{n}));
    const Array h = tanh(matmul(x, w));
    EXPECT_TRUE(allclose(m, mean(h * h, 1), 1e-5, 1e-6));
    EXPECT_TRUE(allclose(s, sum(x, 0), 1e-5, 1e-6));
  }
  EXPECT_EQ(traced, 1);
  EXPECT_EQ(f.compiled(), 1U);
}

TEST(ArrayJitSymbolic, GradientsBatchesAndStructs) {
  const auto loss = [](const Layer& net, const Batch& b) {
    return mean(square(matmul(b.x, net.w) + net.b - b.y));
  };
  const auto step = jit(value_and_grad(loss), {.symbolic = {{1, {"n"}}}});
  const Layer net{normal(Key(1), {3, 2}), zeros({2})};
  for (const std::int64_t n : {2, 5}) {
    const Batch b{normal(Key(2), {n, 3}), normal(Key(3), {n, 2})};
    const auto [value, g] = step(net, b);
    const auto [expected, h] = value_and_grad(loss)(net, b);
    EXPECT_NEAR(value.item(), expected.item(), 1e-5);
    EXPECT_TRUE(allclose(g.w, h.w, 1e-4, 1e-5));
  }
  EXPECT_EQ(step.compiled(), 1U);
}

TEST(ArrayJitSymbolic, SizesOfOneNameAgree) {
  const auto f = jit([](const Array& x, const Array& y) { return x + y; },
                     {.symbolic = {{0, {"n"}}, {1, {"n"}}}});
  EXPECT_EQ(f(zeros({3}), ones({3})).to_vector(), (Numbers{1, 1, 1}));
  EXPECT_NE(refusal([&] { (void)f(zeros({3}), ones({4})); }).find("'n' of 'x1' is 4, elsewhere"),
            std::string::npos);
  const auto g = jit([](const Array& x) { return x; }, {.symbolic = {{0, {"n", 3}}}});
  EXPECT_NE(refusal([&] { (void)g(zeros({2, 4})); }).find("f32[n, 3], f32[2, 4] is given"),
            std::string::npos);
  // Inside another trace sizes are what they are there.
  const Array d = grad([&](const Array& x) { return sum(f(x, x * x)); })(array({1.0, 2.0}));
  EXPECT_EQ(d.to_vector(), (Numbers{3, 5}));
}

TEST(ArrayJitDonation, ResultsTakeTheMemoryThatIsHandedOver) {
  const auto step =
      jit([](const Layer& net, double rate) { return Layer{net.w - rate * net.w, net.b + 1.0}; });
  const auto in_place =
      jit([](const Layer& net, double rate) { return Layer{net.w - rate * net.w, net.b + 1.0}; },
          {.donate = {0}});
  Layer a{normal(Key(1), {8, 8}), zeros({8})};
  Layer b = a;
  for (int i = 0; i < 4; ++i) {
    a = step(a, 0.1);
    b = in_place(std::move(b), 0.1);
  }
  EXPECT_TRUE(array_equal(a.w, b.w));
  EXPECT_TRUE(array_equal(a.b, b.b));
  // The same memory, and what was handed over is gone.
  const float* before = b.w.data<float>().data();
  Layer c = in_place(std::move(b), 0.1);
  EXPECT_EQ(c.w.data<float>().data(), before);
  EXPECT_FALSE(b.w.valid());  // NOLINT: that is what is asked
}

TEST(ArrayJitDonation, NeverChangesWhatSomebodyHolds) {
  const auto in_place = jit([](const Array& x) { return x + 1.0; }, {.donate = {0}});
  Array x = in_place(zeros({4}).eval());
  const Array held = x;
  const Array y = in_place(std::move(x));
  EXPECT_EQ(held.to_vector(), (Numbers{1, 1, 1, 1}));
  EXPECT_EQ(y.to_vector(), (Numbers{2, 2, 2, 2}));
  // Nor a tensor of it, nor an argument that was not moved, nor one of another's memory.
  Array z = in_place(y);
  EXPECT_EQ(y.to_vector(), (Numbers{2, 2, 2, 2}));
  const Tensor tensor = z.tensor();
  const Array last = in_place(std::move(z));
  EXPECT_EQ(tensor.numbers<double>(), (Numbers{3, 3, 3, 3}));
  EXPECT_EQ(last.to_vector(), (Numbers{4, 4, 4, 4}));
  const Tensor mine = Tensor::of<float>({2}, {1, 2});
  EXPECT_EQ(in_place(Array(mine)).to_vector(), (Numbers{2, 3}));
  EXPECT_EQ(mine.numbers<double>(), (Numbers{1, 2}));
}

TEST(ArrayJitDevice, RunsWhereItIsTold) {
  for (const DeviceListing& d : Device::all()) {
    if (!d.why_not.empty()) continue;
    const auto f =
        jit([](const Array& x) { return sum(x * x) + x[0]; }, {.device = Device::named(d.name)});
    EXPECT_EQ(f(array({1.0, 2.0, 3.0})).item(), 15) << d.name;
    use_device(Device::named(d.name));
    EXPECT_EQ((array({1.0, 2.0}) * 3.0 + 1.0).to_vector(), (Numbers{4, 7})) << d.name;
    use_device(Device::standard());
  }
}

TEST(ArrayEager, LoopsThatNeverLookAreBounded) {
  // Wide instead of deep: every round reads what the last two left.
  Array a = array({1.0}).eval();
  Array b = array({1.0}).eval();
  for (int i = 0; i < 3000; ++i) {
    const Array next = (a + b) * 0.5;
    a = b;
    b = next;
  }
  EXPECT_NEAR(b.item(), 1, 1e-5);
  // Doubling what is read does not double what waits.
  Array x = array({1.0}).eval();
  for (int i = 0; i < 3000; ++i) x = x * 0.5 + x * 0.5;
  EXPECT_EQ(x.item(), 1);
  // Numbers alone.
  Array n = 0.0;
  for (int i = 0; i < 3000; ++i) n = n + 1.0;
  EXPECT_EQ(n.item(), 3000);
}

TEST(ArrayEager, LoopsThatHoldMuchAreComputed) {
  // Each round reads 64 MiB that nothing else holds: they are let go on the way.
  Array total = zeros({}).eval();
  std::vector<std::weak_ptr<detail::ArrayNode>> read;
  for (int i = 0; i < 40; ++i) {
    const Array much = Array(Tensor::splat(f32({1 << 24}), 1.0));
    read.emplace_back(much.node());
    total = total + much[i];
  }
  std::size_t held = 0;
  for (const auto& x : read) held += x.expired() ? 0 : 1;
  EXPECT_LT(held, 30U);
  EXPECT_EQ(total.item(), 40);
}

}  // namespace
}  // namespace ricci::jit_test
