// What is done to a graph takes time that grows with it: four times as many nodes take about four
// times as long, through reading, cleaning up, every transform and scheduling. Anything quadratic
// takes sixteen.
#include <algorithm>
#include <ctime>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/compiler/rewrite/canonicalize.h"
#include "ricci/compiler/rewrite/cleanup.h"
#include "ricci/compiler/schedule/program.h"
#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"
#include "ricci/op/ops.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/jvp.h"
#include "ricci/transform/vmap.h"

namespace ricci::growth_test {
namespace {

Value input_of(Graph& g, const std::string& name) { return g.input(name, f32({4, 4})); }

struct Shape {
  const char* name;
  std::size_t nodes;  // that the stages take some milliseconds for
  std::function<Graph(std::size_t)> make;
};

std::vector<Shape> shapes() {
  return {
      {"chain", 1500,
       [](std::size_t n) {
         Graph g("chain");
         Value x = input_of(g, "x");
         for (std::size_t i = 0; i < n; ++i) x = i % 3 == 0 ? tanh(x) : x * 1.5;
         g.set_outputs({x});
         return g;
       }},
      {"side_by_side", 700,
       [](std::size_t n) {
         Graph g("side_by_side");
         std::vector<Value> out;
         for (std::size_t i = 0; i < n; ++i) {
           out.push_back(sin(input_of(g, "x" + std::to_string(i))) + 1.0);
         }
         g.set_outputs(out);
         return g;
       }},
      {"one_used_by_all", 1000,
       [](std::size_t n) {
         Graph g("one_used_by_all");
         const Value x = exp(input_of(g, "x"));
         Value total = x;
         for (std::size_t i = 0; i < n; ++i) total = total + x * static_cast<double>(i + 2);
         g.set_outputs({total});
         return g;
       }},
      {"all_used_by_one", 700,
       [](std::size_t n) {
         Graph g("all_used_by_one");
         const Value x = input_of(g, "x");
         std::vector<Value> parts;
         for (std::size_t i = 0; i < n; ++i) parts.push_back(x * static_cast<double>(i + 2));
         g.set_outputs({sum(concat(parts, {.axis = 0}))});
         return g;
       }},
      {"layers", 250,
       [](std::size_t n) {
         Graph g("layers");
         Value x = input_of(g, "x");
         for (std::size_t i = 0; i < n; ++i) {
           const Value w = input_of(g, "w" + std::to_string(i));
           x = relu(matmul(x, w) + sum(w, {0}));
         }
         g.set_outputs({sum(x * x)});
         return g;
       }},
  };
}

struct Stage {
  const char* name;
  std::function<void(const Graph&)> run;
};

template <class Name>
std::vector<Name> all_inputs(const Graph& graph) {
  std::vector<Name> names;
  for (const Node& node : graph.nodes()) {
    if (const auto* input = node.op.as<op::Input>()) names.emplace_back(input->name);
  }
  return names;
}

std::vector<Stage> stages() {
  return {
      {"text", [](const Graph& g) { (void)parse_graph(print(g)); }},
      {"verify", [](const Graph& g) { verify(g); }},
      {"common_subexpressions", [](const Graph& g) { (void)common_subexpression_elimination(g); }},
      {"constant_folding", [](const Graph& g) { (void)constant_folding(g); }},
      {"dead_code", [](const Graph& g) { (void)dead_code_elimination(g); }},
      {"canonicalize", [](const Graph& g) { (void)canonicalize(g); }},
      {"vjp", [](const Graph& g) { (void)vjp(g, all_inputs<ValueRef>(g)); }},
      {"jvp", [](const Graph& g) { (void)jvp(g, all_inputs<ValueRef>(g)); }},
      {"vmap", [](const Graph& g) { (void)vmap(g, all_inputs<BatchedInput>(g), 3); }},
      {"prepare", [](const Graph& g) { (void)prepare_for_device(g); }},
      {"schedule", [](const Graph& g) { (void)make_program(g); }},
  };
}

double seconds_of_this_thread() {
  std::timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double seconds_for(const Stage& stage, const Graph& graph) {
  const double before = seconds_of_this_thread();
  stage.run(graph);
  return seconds_of_this_thread() - before;
}

class Growth : public ::testing::TestWithParam<Shape> {};

// A machine that is busy makes some measurements long, and none of what is quadratic short.
TEST_P(Growth, IsNearLinear) {
  constexpr int Tries = 5;
  constexpr double Most = 9;
  constexpr double Least = 1e-3;  // seconds, below which a clock says little
  const Graph small = GetParam().make(GetParam().nodes);
  const Graph large = GetParam().make(4 * GetParam().nodes);
  for (const Stage& stage : stages()) {
    double least = 1e9;
    double best = 1e9;
    double ratio = 1e9;
    for (int i = 0; i < Tries && ratio > Most; ++i) {
      least = std::min(least, std::max(Least, seconds_for(stage, small)));
      best = std::min(best, seconds_for(stage, large));
      ratio = best / least;
    }
    EXPECT_LE(ratio, Most) << stage.name << ": " << least << " s, and " << best
                           << " s for four times as many nodes";
  }
}

INSTANTIATE_TEST_SUITE_P(Graphs, Growth, ::testing::ValuesIn(shapes()),
                         [](const auto& shape) { return std::string(shape.param.name); });

}  // namespace
}  // namespace ricci::growth_test
