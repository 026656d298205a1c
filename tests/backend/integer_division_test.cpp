// Quotients, remainders and powers of integers in loop kernels: every pair of special numbers, and
// faults in the words of the reference.
#include <limits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/compiler/schedule/program.h"
#include "ricci/interp/interpreter.h"
#include "ricci/runtime/compiled_graph.h"

#include "support/compare.h"
#include "support/every_device.h"

namespace ricci::testing::integer_division_test {
namespace {

constexpr std::array IntegerTypes = {DType::I8,  DType::I16, DType::I32,
                                     DType::I64, DType::U8,  DType::U32};

// Small numbers, the ends of the range and what is next to them, as they are stored.
std::vector<std::int64_t> special_integers(DType dtype) {
  const std::int64_t bits = size_of(dtype) * 8;
  const bool sign = dtype != DType::U8 && dtype != DType::U32;
  const std::int64_t most = sign ? std::numeric_limits<std::int64_t>::max() >> (64 - bits)
                                 : (std::int64_t{1} << bits) - 1;
  std::vector<std::int64_t> out = {1, 2, 3, 5, 7, 10, 63, 100, most / 2, most / 3, most - 1, most};
  if (!sign) return out;
  const std::size_t positive = out.size();
  for (std::size_t i = 0; i < positive; ++i) out.push_back(-out[i]);
  out.push_back(-most - 1);
  return out;
}

class BackendIntegerDivision : public OnEveryDevice {
 protected:
  void expect_same(const Graph& g, const Feeds& feeds) const {
    const std::vector<Tensor> actual = compile(g, device()).run(feeds);
    const std::vector<Tensor> expected = interpret(g, feeds);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(same(actual[i], expected[i])) << "output " << i;
    }
  }
  std::string message(const Graph& g, const Feeds& feeds) const {
    try {
      (void)compile(g, device()).run(feeds);
    } catch (const UserError& e) {
      EXPECT_EQ(e.code(), ErrorCode::Attr);
      return e.diagnostic().message;
    }
    return "";
  }
};

TEST_P(BackendIntegerDivision, OfEveryPairOfSpecialNumbers) {
  for (const DType dtype : IntegerTypes) {
    SCOPED_TRACE(name(dtype));
    std::vector<std::int64_t> tops;
    std::vector<std::int64_t> bottoms;
    for (const std::int64_t a : special_integers(dtype)) {
      for (const std::int64_t b : special_integers(dtype)) {
        tops.push_back(a);
        bottoms.push_back(b);
      }
    }
    tops.push_back(0);
    bottoms.push_back(-1 +
                      2 * static_cast<std::int64_t>(dtype == DType::U8 || dtype == DType::U32));
    const Type type{dtype, {static_cast<std::int64_t>(tops.size())}};
    Graph g("pairs");
    const Value a = g.input("a", type);
    const Value b = g.input("b", type);
    const auto number = [&](std::int64_t n) { return g.constant(Tensor::splat({dtype, {}}, n)); };
    g.set_outputs({div(a, b), rem(a, b), div(a, number(7)), rem(a, number(7)), div(a, number(1)),
                   add(div(a, b), rem(b, a.graph().constant(Tensor::splat(type, std::int64_t{3})))),
                   pow(a, rem(max(b, number(0)), number(23)))});
    expect_same(g, {{"a", Tensor::from_numbers<std::int64_t>(type, tops)},
                    {"b", Tensor::from_numbers<std::int64_t>(type, bottoms)}});
    const Program program = make_program(g);
    for (const Step& s : program.steps) EXPECT_TRUE(std::holds_alternative<KernelStep>(s.what));
  }
}

TEST_P(BackendIntegerDivision, ByZeroIsReported) {
  for (const DType dtype : IntegerTypes) {
    for (const std::int64_t n : {1, 5, 64, 1003}) {
      SCOPED_TRACE(fmt::format("{}[{}]", name(dtype), n));
      const Type type{dtype, {n}};
      std::vector<std::int64_t> bottoms(static_cast<std::size_t>(n), 3);
      bottoms.back() = 0;
      const Feeds feeds{{"a", Tensor::splat(type, std::int64_t{9}).contiguous()},
                        {"b", Tensor::from_numbers<std::int64_t>(type, bottoms)}};
      const auto of = [&](auto&& f) {
        Graph g("by_zero");
        const Value a = g.input("a", type);
        g.set_outputs({f(a, g.input("b", type))});
        return g;
      };
      EXPECT_EQ(message(of([](Value a, Value b) { return div(a, b); }), feeds),
                "integer division by zero");
      EXPECT_EQ(message(of([](Value a, Value b) { return rem(a, b); }), feeds),
                "integer remainder by zero");
      // What follows the last element is no element.
      expect_same(of([](Value a, Value b) { return div(a, add(b, a)); }), feeds);
    }
  }
}

TEST_P(BackendIntegerDivision, NegativePowersAreReported) {
  const Type type{DType::I32, {3}};
  Graph g("power");
  const Value a = g.input("a", type);
  const Value b = g.input("b", type);
  g.set_outputs({pow(a, b)});
  const auto numbers = [&](std::vector<std::int64_t> n) {
    return Tensor::from_numbers<std::int64_t>(type, n);
  };
  expect_same(g, {{"a", numbers({2, -3, 0})}, {"b", numbers({30, 5, 0})}});
  EXPECT_EQ(message(g, {{"a", numbers({2, 3, 4})}, {"b", numbers({3, -5, 0})}}),
            "integer power with exponent -5");
}

RICCI_ON_EVERY_DEVICE(BackendIntegerDivision);

}  // namespace
}  // namespace ricci::testing::integer_division_test
