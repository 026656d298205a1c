// Graphs replayed as functions of arrays: cases of all ops and random programs, eager, compiled,
// differentiated and batched as functions, against what the graph level makes of them.
#include <optional>

#include <gtest/gtest.h>

#include "ricci/array.h"
#include "ricci/interp/interpreter.h"
#include "ricci/op/table.h"
#include "ricci/runtime/compiled_graph.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/vmap.h"

#include "array/node.h"
#include "ops/cases.h"
#include "ops/transformed_case.h"
#include "property/for_programs.h"
#include "property/generator.h"
#include "support/compare.h"

namespace ricci {
namespace {

using testing::CaseProgram;

// What a graph does, op by op, with arrays.
std::vector<Array> replay(const Graph& graph, std::span<const Array> inputs) {
  std::vector<std::vector<Array>> values(graph.size());
  std::size_t next = 0;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& n = graph.node(id);
    if (n.is_leaf()) {
      values[id] = {inputs[next++]};
      continue;
    }
    std::vector<Array> operands;
    for (const ValueId v : n.operands) operands.push_back(values[v.node][v.result]);
    values[id] = detail::results_of(detail::op_node(
        n.op, std::move(operands), std::source_location::current(), n.bodies, n.wanted));
  }
  std::vector<Array> out;
  for (const ValueId v : graph.outputs()) out.push_back(values[v.node][v.result]);
  return out;
}

std::vector<Array> arrays_of(const Graph& graph, const Feeds& feeds) {
  std::vector<Array> out;
  for (const NodeId id : graph.leaves()) out.emplace_back(feeds.at(*graph.node(id).leaf_name()));
  return out;
}

std::vector<Tensor> tensors_of(const std::vector<Array>& arrays) {
  eval(arrays);
  std::vector<Tensor> out;
  for (const Array& x : arrays) out.push_back(x.tensor());
  return out;
}

// The sum of all float outputs: what a gradient of a function is taken of.
Array total_of(const std::vector<Array>& outputs) {
  Array total = zeros({});
  for (const Array& y : outputs) {
    if (is_float(y.dtype())) total = total + cast(sum(y), DType::F32);
  }
  return total;
}

bool is_plain(const Graph& graph) {
  if (!graph.symbols().empty()) return false;
  for (const Node& n : graph.nodes()) {
    if (n.op.has(Trait::Random) || n.op.op_class() == OpClass::Block) return false;
    if (n.op.op_class() == OpClass::Custom) return false;
    for (const Body& b : n.bodies) {
      if (!is_plain(*b.graph)) return false;
    }
  }
  return true;
}

// Eager and compiled give what the compiled graph gives, to the last bit where one program is the
// other, and as close as programs that fuse differently are.
void expect_same(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected,
                 const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    EXPECT_TRUE(testing::close(actual[i], expected[i])) << what << ", output " << i;
  }
}

void check_program(const Graph& graph, const Feeds& feeds, const std::string& what) {
  std::vector<Tensor> expected;
  try {
    expected = compile(graph).run(feeds);
  } catch (const UserError&) {
    return;  // a fault of its own: an index out of range, a singular matrix
  }
  const std::vector<Array> args = arrays_of(graph, feeds);
  const auto f = [&](const std::vector<Array>& x) { return replay(graph, x); };
  expect_same(tensors_of(f(args)), expected, what + ", eager");
  expect_same(tensors_of(jit(f)(args)), expected, what + ", jit");
}

TEST(ArrayLaws, CasesOfOpsAsFunctions) {
  std::size_t checked = 0;
  std::size_t number = 0;
  for (const OpDescriptor& d : all_ops()) {
    for (const testing::Case& c : testing::cases_for(d.kind)) {
      if (++number % 37 != 0 || !c.rejects.empty() || c.fails || !c.dtypes.has(DType::F32))
        continue;
      const CaseProgram p = testing::program_of(c, DType::F32);
      if (!is_plain(p.graph)) continue;
      check_program(p.graph, p.feeds, std::string(d.info->name) + "." + c.name);
      ++checked;
    }
  }
  EXPECT_GT(checked, 20U);
}

TEST(ArrayLaws, GradientsOfCasesAsFunctions) {
  std::size_t checked = 0;
  std::size_t number = 0;
  for (const OpDescriptor& d : all_ops()) {
    if (d.vjp == RuleSource::Refused || d.vjp == RuleSource::Zero) continue;
    for (const testing::Case& c : testing::cases_for(d.kind)) {
      if (++number % 29 != 0 || !c.rejects.empty() || c.fails || !c.dtypes.has(DType::F32))
        continue;
      const CaseProgram p = testing::program_of(c, DType::F32);
      if (!is_plain(p.graph)) continue;
      const auto loss = [&](const std::vector<Array>& x) { return total_of(replay(p.graph, x)); };
      const std::vector<Array> args = arrays_of(p.graph, p.feeds);
      const Graph traced = trace(loss, args);
      std::vector<ValueRef> wrt;
      for (const NodeId id : traced.inputs()) {
        if (is_float(traced.node(id).types[0].dtype)) wrt.emplace_back(ValueId{id, 0});
      }
      if (wrt.empty()) continue;
      const auto function = jit(grad(loss));
      std::optional<Graph> level;
      try {
        level = grad(traced, wrt, {.zero_missing_wrt = true, .internal_seed = true}).graph;
      } catch (const UserError&) {
        EXPECT_THROW((void)function(args), UserError) << c.name;  // what one refuses, both do
        continue;
      }
      Feeds feeds;
      std::size_t k = 0;
      for (const NodeId id : traced.inputs()) {
        feeds.emplace(*traced.node(id).leaf_name(), args[k++].tensor());
      }
      const std::vector<Tensor> expected = compile(*level).run(feeds);
      std::vector<Array> found;
      for (const Array& g : function(args)) {
        if (is_float(g.dtype())) found.push_back(g);
      }
      expect_same(tensors_of(found), expected, std::string(d.info->name) + "." + c.name);
      // Batched: the same example twice gives the same twice.
      const auto doubled = tree_map([](const Array& x) { return stack({x, x}); }, args);
      const Array both = vmap(loss)(doubled);
      EXPECT_EQ(both.shape(), (Dims{2})) << c.name;
      expect_same(tensors_of({both[1]}), tensors_of({both[0]}), c.name);
      ++checked;
    }
  }
  EXPECT_GT(checked, 15U);
}

TEST(ArrayLaws, RandomProgramsInClosures) {
  const std::uint64_t count = testing::program_count(20);
  for (std::uint64_t seed = testing::first_seed(); seed < testing::first_seed() + count; ++seed) {
    const testing::Program p = testing::generate(seed, {.nodes = 8, .tame = true});
    if (!is_plain(p.graph)) continue;
    check_program(p.graph, p.feeds, "seed " + std::to_string(seed));
    // Half of the inputs captured instead of given.
    const std::vector<Array> args = arrays_of(p.graph, p.feeds);
    const std::size_t half = args.size() / 2;
    const auto f = [&](const std::vector<Array>& x) {
      std::vector<Array> all = args;
      for (std::size_t i = 0; i < half; ++i) all[i] = x[i];
      return replay(p.graph, all);
    };
    const std::vector<Array> given(args.begin(), args.begin() + static_cast<std::ptrdiff_t>(half));
    std::vector<Tensor> expected;
    try {
      expected = compile(p.graph).run(p.feeds);
    } catch (const UserError&) {
      continue;
    }
    expect_same(tensors_of(jit(f)(given)), expected, "captured, seed " + std::to_string(seed));
  }
}

}  // namespace
}  // namespace ricci
