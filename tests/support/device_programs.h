// What tests of devices share: a program with indices that may be wrong, its faults, and the arrays
// of a run in a device's memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/compiler/device/backend.h"
#include "ricci/interp/interpreter.h"
#include "ricci/runtime/compiled_graph.h"

#include "runtime/models.h"
#include "support/compare.h"

namespace ricci::testing {

inline void expect_close(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(close(actual[i], expected[i])) << "output " << i;
  }
}

/// Rows of a table of 16, by 40 ids; or the sum of them, one in each trip of a loop.
inline Graph picking_rows(bool in_loop = false) {
  Graph g("picking");
  const Value table = g.input("table", f32({16, 30}));
  const Value ids = g.input("ids", i32({40}));
  if (!in_loop) {
    g.set_outputs({gather(table, ids) * 2.0});
    return g;
  }
  const auto body = [](Graph&, std::span<const Value> v) -> std::vector<Value> {
    return {v[0] + gather(v[1], v[2])};
  };
  g.set_outputs(scan(std::array{g.input("c", f32({30}))}, {.bcasts = {table}, .xs = {ids}}, body));
  return g;
}

/// Feeds whose ids are all the same, but for one.
inline Feeds picking_feeds(const Graph& g, std::size_t place, std::int64_t id) {
  Feeds feeds = random_feeds(g);
  std::vector<std::int64_t> ids(40, 3);
  ids[place] = id;
  feeds["ids"] = Tensor::from_numbers<std::int64_t>(i32({40}), ids);
  return feeds;
}

/// What a run reports; where it reports nothing, a message that says so.
inline Diagnostic fault_on(const Device& device, const Graph& g, const Feeds& feeds) {
  try {
    (void)compile(g, device).run(feeds);
  } catch (const UserError& e) {
    return e.diagnostic();
  }
  return {.message = "no fault"};
}

/// Inputs and outputs of a program in a device's memory.
struct OnDevice {
  OnDevice(const device::Backend& backend, const ricci::Program& program, const Graph& graph,
           const Feeds& feeds) {
    for (const Tensor& t : check_feeds(graph, feeds).values) {
      arrays.emplace_back(backend.memory(), static_cast<std::int64_t>(t.bytes().size()));
      arrays.back().copy_in(t.data());
      inputs.push_back(arrays.back().data());
    }
    for (const BufferId b : program.outputs) {
      arrays.emplace_back(backend.memory(), program.buffers[static_cast<std::size_t>(b)].bytes());
      outputs.push_back(arrays.back().data());
    }
  }
  std::vector<device::Array> arrays;
  std::vector<const std::byte*> inputs;
  std::vector<std::byte*> outputs;
};

}  // namespace ricci::testing
