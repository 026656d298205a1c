// Scatters that are loops: which they are, that they give what the reference gives on every device,
// and that an index out of range is a fault all the same.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/compiler/schedule/program.h"
#include "ricci/compiler/schedule/target.h"
#include "ricci/ir/text.h"

#include "backend/agreement.h"
#include "support/compare.h"

namespace ricci::testing::scatter_loops_test {
namespace {

std::size_t count_calls(const Program& program) {
  std::size_t n = 0;
  for (const Step& step : program.steps) {
    n += std::holds_alternative<CallStep>(step.what) ? 1 : 0;
    if (const auto* control = std::get_if<ControlStep>(&step.what)) {
      for (const auto& [role, body] : control->bodies) n += count_calls(*body);
    }
  }
  return n;
}

// Has a kernel for every call, and would rather have none.
class AnyTarget final : public schedule::Target {
 public:
  [[nodiscard]] bool claims(const loop::Call& /*call*/,
                            std::span<const Type> /*operands*/) const override {
    return true;
  }
};

void expect_calls(const Graph& graph, std::size_t calls) {
  const AnyTarget target;
  const Program program = make_program(graph, {.target = &target});
  EXPECT_EQ(count_calls(program), calls) << to_string(program);
}

Tensor indices_below(std::uint64_t seed, const Type& type, std::int64_t limit) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < *type.numel(); ++i) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    numbers.push_back(static_cast<std::int64_t>((seed >> 33U) % static_cast<std::uint64_t>(limit)));
  }
  return Tensor::from_numbers<std::int64_t>(type, numbers);
}

struct Scatters {
  Graph graph{"scatters"};
  Feeds feeds;
};

// All three ops, of rows before and behind the axis, with neighbours to fuse with.
Scatters scatters(DType dtype, DType index, std::int64_t rows, std::int64_t count) {
  Scatters s;
  Graph& g = s.graph;
  const Value i = g.input("i", {index, {count}});
  const Value each = g.input("each", {index, {3, count, 2}});
  const Value u = g.input("u", {dtype, {count, 5}});
  const Value v = g.input("v", {dtype, {3, count, 2}});
  const Value w = g.input("w", {dtype, {rows, 5}});
  g.set_outputs({add(scatter_add(neg(u), i, {.out_dim = rows}), w),
                 neg(gather_backward(v, i, {.axis = 1, .axis_size = rows})),
                 scatter_add_along_axis(v, each, {.axis = 1, .axis_size = rows})});
  s.feeds = {{"i", indices_below(1, i.type(), rows)},
             {"each", indices_below(2, each.type(), rows)},
             {"u", random_tensor(3, u.type(), 0, 9)},
             {"v", random_tensor(4, v.type(), 0, 9)},
             {"w", random_tensor(5, w.type(), 0, 9)}};
  return s;
}

TEST(BackendScatterLoops, FewRowsOrIndicesAreLoops) {
  for (const DType dtype :
       {DType::F32, DType::BF16, DType::F64, DType::I8, DType::I64, DType::C64, DType::C128}) {
    for (const auto& [rows, count] : {std::pair{7, 1}, {1, 9}, {5, 3}, {16, 16}, {300, 1}}) {
      SCOPED_TRACE(fmt::format("{} rows, {} indices of {}", rows, count, name(dtype)));
      const Scatters s = scatters(dtype, DType::I32, rows, count);
      expect_calls(s.graph, 0);
      expect_agreement_everywhere(s.graph, s.feeds);
      if (HasFailure()) return;
    }
  }
}

// Rows that get none, one and several updates, as in the gradient of an interpolation: looked up
// layer by layer, whatever the target has kernels for.
TEST(BackendScatterLoops, KnownIndicesAreLookedUpWhereRowsGetSeveral) {
  for (const DType dtype : {DType::F32, DType::F64, DType::I32, DType::C64}) {
    Graph g("several");
    std::vector<std::int64_t> numbers;
    for (std::int64_t k = 0; k < 200; ++k) numbers.push_back(k * k / 500);
    const Value i = g.constant(Tensor::from_numbers<std::int64_t>(i32({200}), numbers));
    const Value u = g.input("u", {dtype, {200, 70}});
    const Value v = g.input("v", {dtype, {3, 200, 2}});
    g.set_outputs({neg(scatter_add(u, i, {.out_dim = 81})),
                   gather_backward(v, i, {.axis = 1, .axis_size = 90})});
    Feeds feeds = {{"u", random_tensor(1, u.type(), -9, 9)},
                   {"v", random_tensor(2, v.type(), -9, 9)}};
    // The first rows get more than a few.
    expect_agreement_everywhere(g, feeds);
    Graph h("a few");
    for (std::size_t k = 0; k < numbers.size(); ++k) {
      numbers[k] = static_cast<std::int64_t>(k) * 7 % 100;
    }
    const Value j = h.constant(Tensor::from_numbers<std::int64_t>(i32({200}), numbers));
    const Value w = h.input("u", {dtype, {200, 70}});
    h.set_outputs({scatter_add(w, j, {.out_dim = 100})});
    expect_calls(h, 0);
    expect_agreement_everywhere(h, {{"u", feeds.at("u")}});
  }
}

TEST(BackendScatterLoops, ManyOfBothAreCalls) {
  Graph g("many");
  const Value u = g.input("u", f32({500, 64}));
  const Value i = g.input("i", i32({500}));
  const Value each = g.input("each", i32({500, 64}));
  g.set_outputs({scatter_add(u, i, {.out_dim = 1000}),
                 scatter_add_along_axis(u, each, {.axis = 0, .axis_size = 1000})});
  expect_calls(g, 2);
  Graph h("single elements");
  const Value x = h.input("x", f32({1000}));
  h.set_outputs({scatter_add(x, h.input("i", i32({1000})), {.out_dim = 100})});
  expect_calls(h, 0);
}

// Indices of few bits, where rows have numbers of more.
// Rows of a few elements are written out, each width for itself.
TEST(BackendScatterLoops, RowsOfFewElementsOfAnyNumber) {
  for (const DType dtype : {DType::F32, DType::F64, DType::BF16, DType::I32, DType::C64}) {
    for (std::int64_t width = 1; width <= 10; ++width) {
      SCOPED_TRACE(fmt::format("{} {}", name(dtype), width));
      Graph g("widths");
      const Value x = g.input("x", {dtype, {37, width}});
      const Value u = g.input("u", {dtype, {301, width}});
      const Value i = g.input("i", {DType::I32, {301}});
      std::vector<Value> out{scatter_add(u, i, {.out_dim = 37})};
      for (const ScatterKind kind : {ScatterKind::Set, ScatterKind::Add, ScatterKind::Mul}) {
        out.push_back(scatter(x, u, i, {.kind = kind}));
      }
      if (!is_complex(dtype)) out.push_back(scatter(x, u, i, {.kind = ScatterKind::Max}));
      g.set_outputs(out);
      expect_agreement_everywhere(g, {{"x", random_tensor(3, x.type())},
                                      {"u", random_tensor(4, u.type())},
                                      {"i", indices_below(5, i.type(), 37)}});
    }
  }
}

TEST(BackendScatterLoops, IndicesOfEveryDtype) {
  for (const DType index : {DType::I8, DType::U8, DType::I16, DType::I64}) {
    const Scatters s = scatters(DType::F32, index, 300, 1);
    Feeds feeds = s.feeds;
    feeds["i"] = indices_below(7, {index, {1}}, 120);
    feeds["each"] = indices_below(8, {index, {3, 1, 2}}, 120);
    expect_calls(s.graph, 0);
    expect_agreement_everywhere(s.graph, feeds);
  }
}

TEST(BackendScatterLoops, FaultWhereAnIndexIsOutOfRange) {
  for (const std::int64_t bad : {-1, 5, 1 << 30}) {
    for (const char* which : {"i", "each"}) {
      for (const std::int64_t count : {1, 3}) {
        const Scatters s = scatters(DType::F32, DType::I32, 5, count);
        Feeds feeds = s.feeds;
        std::vector<std::int64_t> numbers = feeds.at(which).numbers<std::int64_t>();
        numbers.back() = bad;
        feeds[which] = Tensor::from_numbers<std::int64_t>(feeds.at(which).type(), numbers);
        EXPECT_EQ(std::get<ErrorCode>(reference_outcome(s.graph, feeds)),
                  ErrorCode::IndexOutOfRange);
        expect_agreement_everywhere(s.graph, feeds);
      }
    }
  }
}

// What is added to another row is not part of a sum, whatever it is; a sum starts from 0.
TEST(BackendScatterLoops, RowsKeepToThemselves) {
  constexpr float Inf = std::numeric_limits<float>::infinity();
  Graph g("apart");
  const Value u = g.input("u", f32({4}));
  const Value i = g.input("i", i32({4}));
  const Value one = g.input("one", i32({1}));
  const Value zero = g.input("zero", f32({1}));
  const Value places = g.constant(Tensor::of<std::int32_t>({4}, {3, 0, 5, 1}));
  const Value line = iota(g, {.shape = {4}});
  const auto signs = [](Value x) { return reciprocal(x); };  // -inf for -0
  g.set_outputs({scatter_add(u, i, {.out_dim = 6}), signs(scatter_add(u, i, {.out_dim = 6})),
                 signs(scatter_add(zero, one, {.out_dim = 3})),
                 signs(scatter_add(u, places, {.out_dim = 6})),
                 signs(scatter_add(u, line, {.out_dim = 4}))});
  expect_calls(g, 0);
  expect_agreement_everywhere(
      g, {{"u", Tensor::of<float>({4}, {Inf, std::numeric_limits<float>::quiet_NaN(), -0.0F, 2})},
          {"i", Tensor::of<std::int32_t>({4}, {1, 2, 4, 4})},
          {"one", Tensor::of<std::int32_t>({1}, {1})},
          {"zero", Tensor::of<float>({1}, {-0.0F})}});
}

// Known indices: in line, in any order, all rows or some of them, some rows twice, one that does
// not exist.
TEST(BackendScatterLoops, KnownIndicesAreLookedUp) {
  const std::vector<std::vector<std::int32_t>> all = {{0, 1, 2, 3}, {2, 3, 4, 5}, {3, 0, 2, 1},
                                                      {5, 0, 4, 2}, {4, 4, 0, 1}, {1, 0, 6, 2},
                                                      {1, 0, -1, 2}};
  for (const std::vector<std::int32_t>& places : all) {
    Graph g("known");
    const Value i = g.constant(Tensor::of<std::int32_t>({4}, places));
    const Value u = g.input("u", f32({3, 4, 50}));
    g.set_outputs({exp(gather_backward(u, i, {.axis = 1, .axis_size = 6}))});
    expect_agreement_everywhere(g, {{"u", random_tensor(1, u.type())}});
  }
  Graph large("large");
  std::vector<std::int32_t> turned(700);
  for (std::size_t k = 0; k < turned.size(); ++k) turned[k] = static_cast<std::int32_t>(699 - k);
  const Value u = large.input("u", f32({700, 33}));
  const Value places = large.constant(Tensor::of<std::int32_t>({700}, turned));
  large.set_outputs({scatter_add(u, places, {.out_dim = 900}),
                     scatter_add(u, iota(large, {.shape = {700}}), {.out_dim = 900})});
  expect_calls(large, 0);
  expect_agreement_everywhere(large, {{"u", random_tensor(1, u.type())}});
}

TEST(BackendScatterLoops, OfNothingOrToNothing) {
  for (const auto& [rows, count, width] :
       {std::tuple{4, 0, 3}, {0, 0, 3}, {4, 2, 0}, {0, 2, 3}, {1, 1, 1}}) {
    Graph g("empty");
    const Value i = g.input("i", i32({count}));
    const Value u = g.input("u", f32({count, width}));
    g.set_outputs({scatter_add(u, i, {.out_dim = rows})});
    for (const std::int64_t index : {0, 9}) {
      expect_agreement_everywhere(
          g, {{"u", random_tensor(1, u.type())}, {"i", Tensor::splat(i.type(), index)}});
    }
  }
}

// One index a trip: the body of the loop has no call.
TEST(BackendScatterLoops, InTheBodiesOfLoops) {
  const Graph g = parse_graph(R"(
graph @histogram {
  %h = input "h" : f32[6]
  %i = input "i" : i32[20, 1]
  %x = input "x" : f32[20, 1]
  %out = scan %h, %i, %x {length = 20, num_carry = 1, num_xs = 2} body {
    %h = input "h" : f32[6]
    %i = input "i" : i32[1]
    %x = input "x" : f32[1]
    %s = scatter_add %x, %i {out_dim = 6}
    %n = add %h, %s
    return %n
  }
  return %out
}
)");
  expect_calls(g, 0);
  Feeds feeds{{"h", random_tensor(1, f32({6}))},
              {"i", indices_below(2, i32({20, 1}), 6)},
              {"x", random_tensor(3, f32({20, 1}))}};
  expect_agreement_everywhere(g, feeds);
  feeds["i"] = indices_below(2, i32({20, 1}), 60);
  expect_agreement_everywhere(g, feeds);
}

}  // namespace
}  // namespace ricci::testing::scatter_loops_test
