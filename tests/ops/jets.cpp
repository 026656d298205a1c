// Taylor mode on the cases of every op: its derivatives along a curve are those of nested forward
// mode, whose rules are checked on their own. [nth-order-general]
#include <algorithm>
#include <complex>
#include <map>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/compiler/rule/vjp.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"
#include "ricci/op/table.h"
#include "ricci/transform/jet.h"
#include "ricci/transform/jvp.h"

#include "ops/cases.h"
#include "ops/chosen_cases.h"
#include "ops/transformed_case.h"
#include "support/compare.h"

namespace ricci::testing {
namespace {

// Inputs that can be moved: floating, and not indices held by floats.
Names movable(const Graph& graph) {
  std::set<std::string> fixed;
  for (const Node& node : graph.nodes()) {
    for (std::size_t k = 0; k < node.operands.size(); ++k) {
      const ValueId v = node.operands[k];
      const auto* in = graph.node(v.node).op.as<op::Input>();
      if (in == nullptr || carries_derivative(graph.registry(), node, k, graph.type(v))) continue;
      fixed.insert(in->name);
    }
  }
  Names out;
  for (const NodeId id : graph.inputs()) {
    const auto& in = *graph.node(id).op.as<op::Input>();
    if (is_differentiable(in.type.dtype) && !fixed.contains(in.name)) out.push_back(in.name);
  }
  return out;
}

std::string derivative_name(int order, const std::string& name) {
  return order == 0 ? name : fmt::format("d{}_{}", order, name);
}

// The derivatives of every order by nesting: the outputs of each level, differentiated again.
std::vector<Tensor> nested(Graph graph, const Names& names, int order, const Feeds& feeds,
                           const Feeds& curve) {
  const std::size_t outputs = graph.outputs().size();
  std::vector<Tensor> all = interpret(graph, feeds);
  std::vector<std::pair<std::string, int>> moving;  // an input and which derivative it holds
  std::map<std::string, std::string> base;
  for (const std::string& name : names) {
    moving.emplace_back(name, 0);
    base[name] = name;
  }
  Feeds now = feeds;
  for (int level = 1; level <= order; ++level) {
    std::vector<ValueRef> wrt;
    for (const auto& [input, k] : moving) wrt.emplace_back(input);
    const Transformed t = jvp(graph, wrt);
    std::vector<std::pair<std::string, int>> next = moving;
    for (const auto& [input, k] : moving) {
      const std::string& chosen = t.names.at("tangent_" + input);
      base[chosen] = base[input];
      now[chosen] = curve.at(derivative_name(k + 1, base[input]));
      next.emplace_back(chosen, k + 1);
    }
    moving = std::move(next);
    graph = t.graph;
    // Only the newest derivatives are differentiated again.
    std::vector<ValueId> last(graph.outputs().end() - static_cast<std::ptrdiff_t>(outputs),
                              graph.outputs().end());
    graph.set_outputs(std::move(last));
    for (Tensor& d : interpret(graph, now)) all.push_back(std::move(d));
  }
  return all;
}

// Where nesting gives a number, so does the series. (Past infinity both may lose their way.)
::testing::AssertionResult agree(const Tensor& actual, const Tensor& expected, Tolerance t) {
  if (actual.type() != expected.type()) return ::testing::AssertionFailure() << "types differ";
  if (!is_differentiable(expected.dtype())) return same(actual, expected);
  auto numbers = actual.numbers<std::complex<double>>();
  auto wanted = expected.numbers<std::complex<double>>();
  const auto is_number = [](std::complex<double> v) {
    return std::isfinite(v.real()) && std::isfinite(v.imag());
  };
  double size = 1;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!is_number(wanted[i])) {
      numbers[i] = wanted[i] = 0;
    } else {
      size = std::max(size, std::abs(wanted[i]));
    }
  }
  const Type wide{DType::C128, expected.type().dims};
  return close(Tensor::from_numbers<std::complex<double>>(wide, numbers),
               Tensor::from_numbers<std::complex<double>>(wide, wanted),
               {t.relative, t.absolute * size});
}

// What the narrowest dtype on the way rounds away.
Tolerance rounding(const Graph& graph) {
  Tolerance out{1e-9, 1e-11};
  for (const Node& node : graph.nodes()) {
    if (node.op.is<op::BatchElementwiseRegion>() || node.op.is<op::ElementwiseRegion>()) {
      out = {1e-2, 1e-2};  // chains may cast
    }
    if (!descriptor(node.op.kind()).info->codes.empty()) out = {1e-5, 1e-5};  // f32 inside
    for (const Type& type : node.types) {
      const bool wide = type.dtype == DType::F64 || type.dtype == DType::C128;
      if (is_differentiable(type.dtype) && !wide) out = {1e-2, 1e-2};
    }
  }
  return out;
}

class OpJets : public ::testing::TestWithParam<std::size_t> {};

void check(const Case& c, DType dtype, int order) {
  BuiltCase b = build_case(c, dtype);
  Feeds feeds(b.feeds.begin(), b.feeds.end());
  const Names names = movable(b.graph);
  if (!b.graph.symbols().empty() || names.empty()) return;
  Feeds curve;
  std::uint64_t seed = 5;
  for (const std::string& name : names) {
    for (int k = 1; k <= order; ++k) {
      curve[derivative_name(k, name)] = random_tensor(seed++, feeds.at(name).type(), -1, 1);
    }
  }
  const Transformed t = jet(b.graph, {names.begin(), names.end()}, order);
  verify(t.graph);
  const std::vector<Tensor> expected = nested(b.graph, names, order, feeds, curve);
  feeds.insert(curve.begin(), curve.end());
  const std::vector<Tensor> actual = interpret(t.graph, feeds);
  ASSERT_EQ(actual.size(), expected.size());
  const Tolerance bound = rounding(b.graph);
  for (std::size_t i = 0; i < actual.size(); ++i) {
    EXPECT_TRUE(agree(actual[i], expected[i], bound)) << "output " << i << "\n" << print(b.graph);
  }
}

// Two cases of each setting of the attributes, for element-wise ops the first to order 4. Nesting
// what is written in many parts takes its time, and the parts are checked anyway: a few cases of
// those.
constexpr std::size_t CasesPerSetting = 2;
constexpr std::size_t CasesInParts = 3;

bool is_large(const Case& c) {
  return std::ranges::any_of(c.in, [](const In& in) {
    Dim count = 1;
    for (const Dim& d : in.dims) count = count * d;
    return count.is_static() && count.value() > 32;
  });
}

TEST_P(OpJets, AgreeWithNesting) {
  const OpDescriptor& d = all_ops()[GetParam()];
  if (!is_chosen(d)) return;
  if (d.jvp == RuleSource::Leaf || d.jvp == RuleSource::Refused) return;
  const bool in_parts = d.jvp == RuleSource::Expansion;
  std::vector<std::pair<Op, std::size_t>> tried;
  for (const Case& c : cases_for(d.kind)) {
    if (!c.rejects.empty() || c.fails || is_large(c)) continue;
    auto known = std::ranges::find_if(tried, [&](const auto& t) { return t.first == *c.op; });
    if (known == tried.end()) known = tried.emplace(tried.end(), *c.op, 0);
    const bool first = ++known->second == 1;
    if (known->second > (in_parts ? 1 : CasesPerSetting)) continue;
    if (in_parts && tried.size() > CasesInParts) return;
    for (const DType dtype : {DType::F64, DType::C128}) {
      if (!c.dtypes.has(dtype)) continue;
      SCOPED_TRACE(fmt::format("{} case '{}' in {}", d.info->name, c.name, name(dtype)));
      try {
        check(c, dtype, first && !in_parts && has(d.info->traits, Trait::Elementwise) ? 4 : 3);
      } catch (const std::exception& e) {
        ADD_FAILURE() << e.what();
      }
      if (HasFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, OpJets, ::testing::Range<std::size_t>(0, OpCount),
                         [](const auto& op) {
                           return std::string(all_ops()[op.param].info->name);
                         });

}  // namespace
}  // namespace ricci::testing
