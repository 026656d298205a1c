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

namespace ricci::laws_test {
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

// Runs with other seeds take other samples.
std::size_t first_case(std::size_t every) {
  return static_cast<std::size_t>(testing::first_seed()) % every;
}

TEST(ArrayLaws, CasesOfOpsAsFunctions) {
  std::size_t checked = 0;
  std::size_t number = first_case(37);
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

// The gradient of a function, compiled, against what the graph level makes of its graph, and a
// batch of the same example twice. False when there is nothing to differentiate.
template <class Loss>
bool check_gradient(const Loss& loss, const std::vector<Array>& args, const std::string& what) {
  const auto tree = detail::trace_tree("trace", detail::TraceScope::Once, loss, std::tuple(args),
                                       Here::current());
  const Graph& traced = detail::graph_of(tree.function);
  const std::vector<Array>& captures = tree.function.captures;
  const std::vector<NodeId> inputs = traced.inputs();
  std::vector<ValueRef> wrt;
  for (std::size_t k = 0; k < args.size(); ++k) {
    if (is_float(args[k].dtype())) wrt.emplace_back(ValueId{inputs[k], 0});
  }
  if (wrt.empty()) return false;
  const auto function = jit(grad(loss));
  std::optional<Graph> level;
  try {
    level = grad(traced, wrt, {.zero_missing_wrt = true, .internal_seed = true}).graph;
  } catch (const UserError&) {
    EXPECT_THROW((void)function(args), UserError) << what;  // what one refuses, both do
    return false;
  }
  std::vector<Array> found;
  for (const Array& g : function(args)) {
    if (is_float(g.dtype())) found.push_back(g);
  }
  // What it captured are its last inputs, in the order in which it met them.
  EXPECT_EQ(inputs.size(), args.size() + captures.size()) << what;
  Feeds feeds;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const Array& x = k < args.size() ? args[k] : captures[k - args.size()];
    feeds.emplace(*traced.node(inputs[k]).leaf_name(), x.tensor());
  }
  expect_same(tensors_of(found), compile(*level).run(feeds), what);
  // Batched: the same example twice gives the same twice.
  const auto doubled = tree_map([](const Array& x) { return stack({x, x}); }, args);
  const Array both = vmap(loss)(doubled);
  const Dims pair = {2};
  EXPECT_EQ(both.shape(), pair) << what;
  expect_same(tensors_of({both[1]}), tensors_of({both[0]}), what);
  expect_same(tensors_of({both[0]}), tensors_of({loss(args)}), what + ", one of a batch");
  return true;
}

TEST(ArrayLaws, GradientsOfCasesAsFunctions) {
  std::size_t checked = 0;
  std::size_t number = first_case(29);
  for (const OpDescriptor& d : all_ops()) {
    if (d.vjp == RuleSource::Refused || d.vjp == RuleSource::Zero) continue;
    for (const testing::Case& c : testing::cases_for(d.kind)) {
      if (++number % 29 != 0 || !c.rejects.empty() || c.fails || !c.dtypes.has(DType::F32))
        continue;
      const CaseProgram p = testing::program_of(c, DType::F32);
      if (!is_plain(p.graph)) continue;
      const auto loss = [&](const std::vector<Array>& x) { return total_of(replay(p.graph, x)); };
      const std::string what = std::string(d.info->name) + "." + c.name;
      checked += check_gradient(loss, arrays_of(p.graph, p.feeds), what) ? 1 : 0;
    }
  }
  EXPECT_GT(checked, 15U);
}

// The gradient of a closure by some inputs, the others captured, is that of the function of all.
void expect_captured_gradient(const Graph& graph, const std::vector<Array>& args, std::size_t half,
                              const std::string& what) {
  const auto whole = [&](const std::vector<Array>& x) { return total_of(replay(graph, x)); };
  const auto part = [&](const std::vector<Array>& x) {
    std::vector<Array> all = args;
    for (std::size_t i = 0; i < half; ++i) all[i] = x[i];
    return whole(all);
  };
  if (!check_gradient(whole, args, what)) return;
  const std::vector<Array> given(args.begin(), args.begin() + static_cast<std::ptrdiff_t>(half));
  const auto has_derivative = [](const Array& x) { return is_float(x.dtype()); };
  if (std::ranges::none_of(given, has_derivative)) return;
  (void)check_gradient(part, given, what + ", captured");
  std::vector<Array> expected = jit(grad(whole))(args);
  expected.resize(half);
  expect_same(tensors_of(jit(grad(part))(given)), tensors_of(expected), what + ", gradient");
}

TEST(ArrayLaws, RandomProgramsInClosures) {
  const std::uint64_t count = testing::program_count(120);
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
    const std::string what = "captured, seed " + std::to_string(seed);
    expect_same(tensors_of(jit(f)(given)), expected, what);
    expect_captured_gradient(p.graph, args, half, what);
  }
}

}  // namespace
}  // namespace ricci::laws_test
