// What programs of many nodes cost: four times the program takes about four times the time and the
// memory, whether it is read, checked, rewritten, differentiated, batched or compiled. Time is the
// processor's, of this thread; what grows with the square is sixteen times as much.
#include <algorithm>
#include <cstdint>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/compiler/rewrite/canonicalize.h"
#include "ricci/compiler/rewrite/cleanup.h"
#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"
#include "ricci/runtime/compiled_graph.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/jvp.h"
#include "ricci/transform/vmap.h"

#include "runtime/counted_allocations.h"

namespace ricci::cost_growth_test {
namespace {

using Size = std::int64_t;
const Type Four = f32({4});

Graph one_after_the_other(Size n) {
  Graph g("chain");
  Value x = g.input("x", Four);
  for (Size i = 0; i < n; ++i) x = i % 2 == 0 ? sin(x) : x * 0.5;
  g.set_outputs({sum(x)});
  return g;
}

Graph all_of_one(Size n) {
  Graph g("fan_out");
  const Value x = g.input("x", Four);
  Value total = x;
  for (Size i = 0; i < n; ++i) total = total + sin(x * (1.0 + static_cast<double>(i)));
  g.set_outputs({sum(total)});
  return g;
}

// Each reads two others, of which one lies far back.
Graph reading_far_back(Size n) {
  Graph g("far_back");
  std::vector<Value> all = {g.input("x", Four)};
  for (Size i = 0; i < n; ++i) all.push_back(all.back() + cos(all[all.size() / 2]));
  g.set_outputs({sum(all.back())});
  return g;
}

Graph of_many_params(Size n) {
  Graph g("params");
  Value total = g.input("x", Four);
  for (Size i = 0; i < n; ++i) total = total + tanh(g.param("w" + std::to_string(i), Four));
  g.set_outputs({sum(total)});
  return g;
}

Graph apart(Size n) {
  Graph g("apart");
  const Value x = g.input("x", Four);
  std::vector<Value> outputs = {sum(x)};
  for (Size i = 0; i < n; ++i) outputs.push_back(sum(x * (0.5 + static_cast<double>(i))));
  g.set_outputs(outputs);
  return g;
}

Graph in_one(Size n) {
  Graph g("concat");
  const Value x = g.input("x", Four);
  std::vector<Value> parts;
  for (Size i = 0; i < n; ++i) parts.push_back(x * (1.0 + static_cast<double>(i)));
  g.set_outputs({sum(concat(parts, {.axis = 0}))});
  return g;
}

struct Shape {
  const char* name;
  Graph (*make)(Size);
};
constexpr Shape Shapes[] = {
    {"chain", one_after_the_other}, {"fan_out", all_of_one}, {"far_back", reading_far_back},
    {"params", of_many_params},     {"apart", apart},        {"concat", in_one}};

struct Work {
  const char* name;
  Size size;  // of the smaller program
  std::function<void(const Graph&)> work;
};
const std::vector<Work>& works() {
  static const std::vector<Work> all = {
      {"text", 3000,
       [](const Graph& g) {
         const Graph again = parse_graph(print(g));
         verify(again);
       }},
      {"passes", 3000,
       [](const Graph& g) {
         const Graph merged = common_subexpression_elimination(g).graph;
         (void)canonicalize(constant_folding(dead_code_elimination(merged).graph).graph);
       }},
      {"grad", 2000, [](const Graph& g) { (void)grad(g, {std::string("x")}); }},
      {"jvp", 2000, [](const Graph& g) { (void)jvp(g, {"x"}); }},
      {"vmap", 2000, [](const Graph& g) { (void)vmap(g, {{"x"}}, 8); }},
      {"compile", 500, [](const Graph& g) { (void)compile(g, Device::named("lir")); }},
  };
  return all;
}

double seconds_of_thread() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Cost {
  double seconds = 0;
  std::int64_t bytes = 0;
};
Cost cost_of(const std::function<void(const Graph&)>& work, const Graph& g) {
  const testing::CountedAllocations memory;
  const double before = seconds_of_thread();
  work(g);
  return {seconds_of_thread() - before, memory.peak_bytes()};
}

class CostGrowth : public ::testing::TestWithParam<Work> {};

TEST_P(CostGrowth, IsThatOfTheProgram) {
  constexpr double MostTime = 9;    // four, and what caches and a busy machine add
  constexpr double MostMemory = 6;  // four, and what tables that double add
  constexpr int Tries = 4;
  for (const Shape& shape : Shapes) {
    const Work& w = GetParam();
    const Graph small = shape.make(w.size);
    const Graph large = shape.make(4 * w.size);
    w.work(small);  // what is made once is made
    Cost least_small = cost_of(w.work, small);
    Cost least_large = cost_of(w.work, large);
    // Somebody else may have been at work meanwhile.
    for (int i = 1; i < Tries && least_large.seconds > MostTime * least_small.seconds; ++i) {
      least_small.seconds = std::max(least_small.seconds, cost_of(w.work, small).seconds);
      least_large.seconds = std::min(least_large.seconds, cost_of(w.work, large).seconds);
    }
    EXPECT_LE(least_large.seconds, MostTime * least_small.seconds)
        << shape.name << ": " << least_small.seconds << " s, and of four times as much "
        << least_large.seconds << " s";
    EXPECT_LE(static_cast<double>(least_large.bytes),
              MostMemory * static_cast<double>(least_small.bytes))
        << shape.name << ": " << least_small.bytes << " bytes, and " << least_large.bytes;
  }
}

INSTANTIATE_TEST_SUITE_P(Of, CostGrowth, ::testing::ValuesIn(works()),
                         [](const auto& w) { return std::string(w.param.name); });

}  // namespace
}  // namespace ricci::cost_growth_test
