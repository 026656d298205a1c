// Which ops are calls, and what their calls say.
#include <set>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/compiler/rule/lower.h"
#include "ricci/compiler/schedule/cost.h"
#include "ricci/compiler/schedule/program.h"
#include "ricci/compiler/schedule/target.h"
#include "ricci/ir/text.h"
#include "ricci/op/ops.h"
#include "ricci/op/table.h"

#include "ops/cases.h"
#include "schedule/program_bytes.h"
#include "support/claiming_target.h"

namespace ricci::testing::schedule_calls_test {
namespace {

// Views, copies, functions, choices, conversions, reductions and random numbers are loops in every
// dtype: no device has to have kernels for them.
TEST(ScheduleCalls, OpsThatAreLoopsInEveryDtype) {
  const std::set<OpKind> loops{
      OpKind::Iota,    OpKind::DimSize,   OpKind::Compare,      OpKind::Where,     OpKind::Cast,
      OpKind::Reshape, OpKind::Expand,    OpKind::Narrow,       OpKind::Transpose, OpKind::Concat,
      OpKind::Reverse, OpKind::Reduce,    OpKind::StopGradient, OpKind::Unary,     OpKind::Binary,
      OpKind::Pad,     OpKind::RngNormal, OpKind::RngUniform,   OpKind::RngBits};
  std::size_t checked = 0;
  for (const OpKind kind : loops) {
    for (const Case& c : cases_for(kind)) {
      if (!c.rejects.empty()) continue;
      for (const DType dtype : AllDTypes) {
        if (!c.dtypes.has(dtype)) continue;
        const BuiltCase built = build_case(c, dtype);
        if (!built.graph.symbols().empty()) continue;
        const Graph prepared = prepare_for_device(built.graph);
        for (const Node& node : prepared.nodes()) {
          if (!loops.contains(node.op.kind())) continue;
          ++checked;
          EXPECT_NE(lower_node(prepared, node).form, Lowering::Form::Call)
              << fmt::format("'{}' of {}, case '{}'", node.op.mnemonic(), name(dtype), c.name);
        }
      }
    }
  }
  EXPECT_GT(checked, 500U);
}

// The programs of an op's cases in every dtype, fused and op by op.
std::vector<Program> programs_for(const OpDescriptor& d, const schedule::Target& target) {
  std::vector<Program> all;
  if (d.op_class == OpClass::Custom || d.op_class == OpClass::Block) return all;
  for (const Case& c : cases_for(d.kind)) {
    if (!c.rejects.empty()) continue;
    for (const DType dtype : AllDTypes) {
      if (!c.dtypes.has(dtype)) continue;
      const BuiltCase built = build_case(c, dtype);
      if (!built.graph.symbols().empty()) continue;
      for (const bool fuse : {true, false}) {
        all.push_back(make_program(built.graph, {.fuse = fuse, .target = &target}));
      }
    }
  }
  return all;
}

template <std::size_t... I>
std::set<std::string_view> all_roles(std::index_sequence<I...> /*of all*/) {
  return {std::variant_alternative_t<I, loop::Call>::role...};
}

// Every role is what some op becomes where all are claimed, says so in the text, and comes back
// from bytes.
TEST(ScheduleCalls, EveryRoleIsPrintedAndKept) {
  std::set<std::string_view> seen{loop::HostCall::role};
  for (const OpDescriptor& d : all_ops()) {
    for (const Program& program : programs_for(d, claiming_target())) {
      const std::vector<std::byte> bytes = schedule::to_bytes(program);
      const Program again = schedule::program_from_bytes(bytes);
      for (std::size_t s = 0; s < program.steps.size(); ++s) {
        const auto* call = std::get_if<CallStep>(&program.steps[s].what);
        if (call == nullptr) continue;
        if (std::holds_alternative<loop::HostCall>(call->call)) continue;
        seen.insert(role_of(call->call));
        const std::string text = loop::to_string(call->call);
        EXPECT_TRUE(text.starts_with(role_of(call->call)) && text.ends_with("]")) << text;
        EXPECT_NE(to_string(program).find("    as " + text), std::string::npos) << text;
        EXPECT_EQ(call->call, std::get<CallStep>(again.steps[s].what).call) << text;
      }
    }
  }
  EXPECT_EQ(seen, all_roles(std::make_index_sequence<std::variant_size_v<loop::Call>>()));
}

// A device without kernels of its own has loops and host calls, and the same number of operations
// to do in them.
TEST(ScheduleCalls, WhatNobodyClaimsIsAHostCall) {
  std::size_t calls = 0;
  for (const OpDescriptor& d : all_ops()) {
    for (const Program& program : programs_for(d, schedule::plain_target())) {
      for (const Step& step : program.steps) {
        const auto* call = std::get_if<CallStep>(&step.what);
        if (call == nullptr) continue;
        ++calls;
        EXPECT_TRUE(std::holds_alternative<loop::HostCall>(call->call))
            << program.reference_of(*call).name();
        EXPECT_NE(to_string(program).find(
                      fmt::format("host call {}(", program.reference_of(*call).name())),
                  std::string::npos);
      }
    }
  }
  EXPECT_GT(calls, 50U);
}

TEST(ScheduleCalls, HostCallsCostWhatTheirRolesCost) {
  const Graph graph = parse_graph(R"(
graph @f {
  %x = input "x" : f32[2, 8, 16]
  %w = input "w" : f32[16, 4]
  %y = matmul %x, %w
  return %y
}
)");
  const Program native = make_program(graph, {.target = &claiming_target()});
  const Program host = make_program(graph, {.target = &schedule::plain_target()});
  EXPECT_EQ(estimate_cost(native).flops, 2.0 * 2 * 8 * 16 * 4);
  EXPECT_EQ(estimate_cost(host).flops, estimate_cost(native).flops);
  EXPECT_NE(to_string(native).find("as matrix_product [8 x 16 by 16 x 4, batch [2] of axes [0] "
                                   "and [-1]]"),
            std::string::npos)
      << to_string(native);
}

// Where the extremes are is searched in loops, of flags too, whatever the device has kernels for.
TEST(ScheduleCalls, PlacesOfExtremesAreSearchedInLoops) {
  std::size_t checked = 0;
  for (const Case& c : cases_for(OpKind::ArgReduce)) {
    if (!c.rejects.empty()) continue;
    for (const DType dtype : AllDTypes) {
      if (!c.dtypes.has(dtype)) continue;
      const BuiltCase built = build_case(c, dtype);
      if (!built.graph.symbols().empty()) continue;
      ++checked;
      const Graph prepared =
          prepare_for_device(built.graph, {.fuse = true, .target = &claiming_target()});
      for (const Node& node : prepared.nodes()) {
        EXPECT_FALSE(node.op.is<op::ArgReduce>()) << name(dtype) << ", case '" << c.name << "'";
      }
    }
  }
  EXPECT_GT(checked, 10U);
}

}  // namespace
}  // namespace ricci::testing::schedule_calls_test
