// Every identity of the table, on the numbers that break identities, in every dtype it is for.
#include <cmath>
#include <complex>
#include <limits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/compiler/rewrite/canonicalize.h"
#include "ricci/compiler/rewrite/cleanup.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/text.h"

#include "rewrite/exact.h"
#include "rewrite/pattern.h"
#include "support/compare.h"

namespace ricci::rewrite_rules_test {
namespace {

using testing::same;

// Builds a pattern out of inputs; numbers take the dtype of what stands beside them.
class PatternGraph {
 public:
  PatternGraph(Graph& graph, DType dtype) : graph_(graph), dtype_(dtype) {}

  Value build(const Pattern& p, DType number_dtype) {
    const DType inner = p.form == Pattern::Form::Where ? dtype_ : number_dtype;
    std::vector<Value> args;
    for (std::size_t k = 0; k < p.args.size(); ++k) {
      const bool condition = p.form == Pattern::Form::Where && k == 0;
      args.push_back(build(p.args[k], condition ? DType::Bool : inner));
    }
    switch (p.form) {
      case Pattern::Form::Variable: return variable_of(p.code, number_dtype);
      case Pattern::Form::Number:
        return graph_.constant(Tensor::splat(Type{number_dtype, {}}, p.number));
      case Pattern::Form::Unary: return activation(static_cast<UnaryKind>(p.code), args[0]);
      case Pattern::Form::Binary: return binary(static_cast<BinaryKind>(p.code), args[0], args[1]);
      case Pattern::Form::Compare:
        return compare(static_cast<CompareKind>(p.code), args[0], args[1]);
      case Pattern::Form::Where: return where(args[0], args[1], args[2]);
    }
    throw InternalError("a pattern of no form");
  }

 private:
  // Variables lie along axes of their own, so that all combinations of values meet.
  Value variable_of(int code, DType dtype) {
    const std::string name = fmt::format("v{}", code);
    if (const auto found = graph_.find(name)) return graph_.value({*found, 0});
    Dims dims{1, 1, 1};
    dims[static_cast<std::size_t>(code)] = dtype == DType::Bool ? 2 : 9;
    return graph_.input(name, {dtype, dims});
  }

  Graph& graph_;
  DType dtype_;
};

Tensor hard_values(const Type& type) {
  static constexpr double Inf = std::numeric_limits<double>::infinity();
  static constexpr double NaN = std::numeric_limits<double>::quiet_NaN();
  if (type.dtype == DType::Bool) {
    return Tensor::from_numbers<std::int64_t>(type, std::vector<std::int64_t>{0, 1});
  }
  if (is_int(type.dtype)) {
    return Tensor::from_numbers<std::int64_t>(
        type, std::vector<std::int64_t>{0, 1, -1, 2, 7, -128, 127, 1LL << 31,
                                        std::numeric_limits<std::int64_t>::min()});
  }
  const std::vector<double> values{0.0, -0.0, 1, -1.5, Inf, -Inf, NaN, 6e-8, 3e4};
  if (is_float(type.dtype)) return Tensor::from_numbers<double>(type, values);
  std::vector<std::complex<double>> pairs;
  for (std::size_t i = 0; i < values.size(); ++i) {
    pairs.emplace_back(values[i], values[(4 * i + 1) % values.size()]);
  }
  return Tensor::from_numbers<std::complex<double>>(type, pairs);
}

Feeds hard_feeds(const Graph& g) {
  Feeds feeds;
  for (const NodeId id : g.inputs()) {
    feeds.emplace(g.node(id).op.as<op::Input>()->name, hard_values(g.node(id).types[0]));
  }
  return feeds;
}

TEST(RewriteRules, EveryIdentityHoldsToTheBit) {  // [algebra]
  for (const Identity& identity : algebra_identities()) {
    std::size_t tried = 0;
    for (const DType dtype : AllDTypes) {
      if (identity.when != nullptr && !identity.when(dtype)) continue;
      Graph g("identity");
      try {
        g.set_outputs({PatternGraph(g, dtype).build(identity.from, dtype)});
      } catch (const UserError&) {
        continue;  // the function is not defined for this dtype
      }
      SCOPED_TRACE(fmt::format("{} in {}\n{}", identity.name, name(dtype), print(g)));
      ++tried;
      const PassResult r = canonicalize(g);
      EXPECT_TRUE(r.changed);
      EXPECT_LT(rewrite_measure(r.graph), rewrite_measure(g));
      EXPECT_FALSE(canonicalize(r.graph).changed);
      std::vector<Tensor> before;
      try {
        before = interpret(g, hard_feeds(g));
      } catch (const UserError&) {
        continue;  // an integer is divided by zero on both sides
      }
      EXPECT_TRUE(same(interpret(r.graph, hard_feeds(g))[0], before[0])) << print(r.graph);
    }
    EXPECT_GT(tried, 0U) << identity.name << " is tried with no dtype";
  }
}

// x - (0 - 0i) turns an imaginary part of -0.0 into 0.0.
TEST(RewriteRules, ComplexZeroHasTwoSigns) {
  for (const double imaginary : {0.0, -0.0}) {
    Graph g("g");
    const Type type{DType::C128, {9}};
    const Value x = g.input("x", type);
    g.set_outputs({x - g.constant(Tensor::splat(type, std::complex<double>(0.0, imaginary)))});
    const PassResult r = canonicalize(g);
    EXPECT_EQ(r.changed, !std::signbit(imaginary));
    EXPECT_TRUE(same(interpret(r.graph, hard_feeds(g))[0], interpret(g, hard_feeds(g))[0]));
  }
}

// Exchanging the operands changes no bit where the table says so.
TEST(RewriteRules, CommutingKindsGiveTheSameBits) {
  const auto check = [](auto kind, const auto& apply_kind) {
    for (const DType dtype : AllDTypes) {
      if (!row(kind).commutes.has(dtype)) continue;
      ASSERT_TRUE(row(kind).dtypes.has(dtype)) << row(kind).name;
      const std::int64_t count = dtype == DType::Bool ? 2 : 9;
      Graph g("g");
      const Value a = g.input("a", {dtype, {count, 1}});
      const Value b = g.input("b", {dtype, {count}});
      g.set_outputs({apply_kind(kind, a, b), apply_kind(kind, b, a)});
      const auto out = interpret(g, hard_feeds(g));
      EXPECT_TRUE(same(out[0], out[1])) << row(kind).name << " in " << name(dtype);
    }
  };
  for (std::size_t k = 0; k < enumerator_names(BinaryKind{}).size(); ++k) {
    check(static_cast<BinaryKind>(k),
          [](auto kind, Value a, Value b) { return binary(kind, a, b); });
  }
  for (std::size_t k = 0; k < enumerator_names(CompareKind{}).size(); ++k) {
    check(static_cast<CompareKind>(k),
          [](auto kind, Value a, Value b) { return compare(kind, a, b); });
  }
}

TEST(RewriteRules, BodiesOfNodesWithoutOperandsAreSimplified) {
  Graph g("g");
  const auto body = [](Graph& inside, std::span<const Value>) {
    const Value c = inside.constant(Tensor::of<float>({2}, {1, 2}));
    return std::vector{exp(-(-c))};
  };
  const std::vector<Type> none;
  g.set_outputs(
      {g.value({g.add({.op = Op(op::Scan{.length = 3, .num_carry = 0}),
                       .bodies = {{"body", make_body("body", none, body, g.registry())}}}),
                0})});
  const PassResult r = canonicalize(g);
  EXPECT_TRUE(r.changed);
  EXPECT_LT(rewrite_measure(r.graph), rewrite_measure(g));
  EXPECT_EQ(r.graph.nodes().back().bodies[0].graph->size(), 2U);
  EXPECT_TRUE(same(interpret(r.graph, {})[0], interpret(g, {})[0]));
}

TEST(RewriteRules, InputsKeepTheirNames) {
  Graph g("g");
  const Value x = g.input("x", f32({2}));
  g.set_outputs({(x - g.constant(Tensor::splat(f32({2}), 0))).named("y")});
  const PassResult r = canonicalize(g);
  ASSERT_TRUE(r.changed);
  EXPECT_EQ(r.graph.node(r.graph.inputs()[0]).names, g.node(g.inputs()[0]).names);
}

// More bytes than an integer counts are over the budget, not under it.
TEST(RewriteRules, FoldingHasABudgetWithoutOverflow) {
  Graph g("g");
  const std::int64_t huge = std::int64_t{1} << 30;
  const Value c = g.constant(Tensor::splat(Type{DType::I64, {huge, 1 << 29}}, 1));
  g.set_outputs({reduce(c, {.op = ReduceKind::Sum, .axes = {0, 1}})});
  EXPECT_FALSE(constant_folding(g).changed);
}

TEST(RewriteRules, AreListedOnce) {
  std::set<std::string_view> names;
  for (const RuleInfo& rule : rewrite_rules()) {
    EXPECT_TRUE(names.insert(rule.name).second) << rule.name;
    EXPECT_NE(rule.identity.find("->"), std::string_view::npos) << rule.name;
  }
  EXPECT_GT(names.size(), algebra_identities().size());
}

// Skipping a cast changes nothing, for every three dtypes where it is said to be so.
TEST(RewriteRules, SkippedCastsAreExact) {
  for (const DType from : AllDTypes) {
    for (const DType middle : AllDTypes) {
      for (const DType to : AllDTypes) {
        if (!cast_may_skip(from, middle, to)) continue;
        Graph g("casts");
        const Value x = g.input("x", {from, {from == DType::Bool ? 2 : 9}});
        g.set_outputs({cast(cast(x, {.to = middle}), {.to = to}), cast(x, {.to = to})});
        const auto out = interpret(g, hard_feeds(g));
        EXPECT_TRUE(same(out[0], out[1]))
            << name(from) << " over " << name(middle) << " to " << name(to);
      }
    }
  }
}

TEST(RewriteRules, NewNodesSayWhereTheyComeFrom) {
  Graph g("g");
  const Value x = g.input("x", f32({2, 3, 4}));
  const Value y = transpose(transpose(x, {{1, 2, 0}}), {{1, 2, 0}}).named("y");
  g.set_outputs({y});
  const PassResult r = canonicalize(g);
  const Node& made = r.graph.nodes().back();
  EXPECT_EQ(made.names[0], "y");
  ASSERT_NE(made.provenance, nullptr);
  EXPECT_EQ(made.provenance->origin, "canonicalize");
  EXPECT_EQ(made.provenance->where.line, g.nodes().back().provenance->where.line);
}

}  // namespace
}  // namespace ricci::rewrite_rules_test
