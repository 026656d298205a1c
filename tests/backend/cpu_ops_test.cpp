// Every case of every op on the CPU device against the reference interpreter, between guard pages.
#include <fstream>
#include <set>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/compiler/device/backend.h"
#include "ricci/compiler/schedule/program.h"
#include "ricci/interp/interpreter.h"
#include "ricci/op/table.h"
#include "ricci/runtime/device.h"

#include "backend/agreement.h"
#include "ops/cases.h"
#include "support/compare.h"
#include "support/guarded_buffer.h"
#include "support/guarded_run.h"
#include "test_paths.h"

namespace ricci::testing::cpu_ops_test {
namespace {

class CpuOps : public ::testing::TestWithParam<std::size_t> {};

std::size_t& compared() {
  static std::size_t count = 0;
  return count;
}

void expect_same_fault(const Graph& graph, const Feeds& feeds, ErrorCode code) {
  try {
    (void)run_between_guards(graph, feeds);
    ADD_FAILURE() << "no fault is reported";
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), code) << e.what();
  }
}

// The ops of calls that the reference's kernels serve, in the bodies of loops and branches too.
void add_host_calls(const Program& program, std::set<std::string>& ops) {
  for (const Step& step : program.steps) {
    if (const auto* control = std::get_if<ControlStep>(&step.what)) {
      for (const auto& [name, body] : control->bodies) add_host_calls(*body, ops);
    }
    const auto* call = std::get_if<CallStep>(&step.what);
    if (call == nullptr || !std::holds_alternative<loop::HostCall>(call->call)) continue;
    ops.emplace(program.reference_of(*call).name());
  }
}

// No op is left to the reference's kernels, which are hundreds of times slower, but those that are
// registered, and attention in f64 in the branch for infinite operands that lead to NaN.
void expect_no_host_calls(const Graph& graph) {
  const Program program = make_program(graph, {.target = &Device::named("cpu").backend().target()});
  std::set<std::string> ops;
  add_host_calls(program, ops);
  ops.erase("attention");
  ops.erase("attention_backward");
  EXPECT_EQ(ops, std::set<std::string>{}) << to_string(program);
}

void expect_agreement(const Case& c, DType dtype) {
  const BuiltCase built = build_case(c, dtype);
  if (!built.graph.symbols().empty()) return;
  ++compared();
  if (!c.op->is<op::Custom>()) expect_no_host_calls(built.graph);
  const Feeds feeds(built.feeds.begin(), built.feeds.end());
  if (c.fails) {
    expect_same_fault(built.graph, feeds, *c.fails);
    return;
  }
  const std::vector<Tensor> expected = interpret(built.graph, feeds);
  const std::vector<Tensor> actual = run_between_guards(built.graph, feeds);
  ASSERT_EQ(actual.size(), expected.size());
  // Functions of complex numbers have poles: how far rounding carries is the program's to say.
  if (is_complex(dtype)) {
    EXPECT_EQ(disagreement(built.graph, feeds, actual, expected), "");
    return;
  }
  for (std::size_t r = 0; r < actual.size(); ++r) {
    EXPECT_TRUE(close(actual[r], expected[r])) << "result " << r;
  }
}

TEST_P(CpuOps, AgreeWithTheReference) {
  const OpDescriptor& d = all_ops()[GetParam()];
  for (const Case& c : cases_for(d.kind)) {
    if (!c.rejects.empty() || d.op_class == OpClass::Block) continue;
    // Written out as a loop, the sweep makes as many trips as its tape has rows and no more.
    if (d.kind == OpKind::WhileBackward && c.fails) continue;
    for (const DType dtype : AllDTypes) {
      if (!c.dtypes.has(dtype)) continue;
      const std::string what = fmt::format("{} case '{}' in {}", d.info->name, c.name, name(dtype));
      SCOPED_TRACE(what);
      const FaultNote note(what.c_str());
      try {
        expect_agreement(c, dtype);
      } catch (const std::exception& e) {
        ADD_FAILURE() << e.what();
      }
      if (HasFailure()) return;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(All, CpuOps, ::testing::Range<std::size_t>(0, OpCount),
                         [](const auto& op) {
                           return std::string(all_ops()[op.param].info->name);
                         });

// Writes the closing summary that `make test` prints.
class Summary : public ::testing::Environment {
 public:
  void TearDown() override {
    if (compared() == 0) return;
    std::ofstream out(RICCI_BUILD_DIR "/test-summary-cpu-ops.txt");
    out << fmt::format("ops on the CPU: {} cases, every buffer between guard pages\n", compared());
  }
};
const ::testing::Environment* const summary =
    ::testing::AddGlobalTestEnvironment(new Summary);  // NOLINT: gtest owns it

}  // namespace
}  // namespace ricci::testing::cpu_ops_test
