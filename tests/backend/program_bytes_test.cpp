// Programs that were bytes in between give the same bits: every op's cases, with the machine code
// of the program they were made from.
#include "schedule/program_bytes.h"

#include <deque>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/op/table.h"
#include "ricci/runtime/device.h"

#include "backend/cpu/codegen/code_cache.h"
#include "backend/cpu/run/executable.h"
#include "backend/cpu/run/target.h"
#include "ops/cases.h"
#include "support/test_pool.h"

namespace ricci::testing::program_bytes_test {
namespace {

// Hands on the JIT's code and remembers it.
struct Recorder final : cpu::CodeSource {
  std::vector<cpu::KernelCode> kernels(std::span<const loop::Kernel> kernels) override {
    kernel_code.push_back(jit.kernels(kernels));
    return kernel_code.back();
  }
  cpu::LoopCode loop(const loop::WrittenLoop& loop) override {
    loop_code.push_back(jit.loop(loop));
    return loop_code.back();
  }
  cpu::JitSource jit{pool_of()};
  std::deque<std::vector<cpu::KernelCode>> kernel_code;
  std::deque<cpu::LoopCode> loop_code;
};

// Gives what was recorded, in order.
struct Replayer final : cpu::CodeSource {
  explicit Replayer(Recorder& r) : recorded(r) {}
  std::vector<cpu::KernelCode> kernels(std::span<const loop::Kernel>) override {
    auto code = std::move(recorded.kernel_code.front());
    recorded.kernel_code.pop_front();
    return code;
  }
  cpu::LoopCode loop(const loop::WrittenLoop&) override {
    auto code = std::move(recorded.loop_code.front());
    recorded.loop_code.pop_front();
    return code;
  }
  Recorder& recorded;
};

struct Outcome {
  std::vector<Tensor> results;
  std::optional<ErrorCode> fault;
};

Outcome run(const cpu::Executable& executable, const BuiltCase& built) {
  const Graph& graph = built.graph;
  const std::map<std::string, Tensor> feeds(built.feeds.begin(), built.feeds.end());
  std::vector<Tensor> held;
  std::vector<const std::byte*> inputs;
  for (const Node& node : graph.nodes()) {
    const auto* in = node.op.as<op::Input>();
    const auto* param = node.op.as<op::Param>();
    if (in == nullptr && param == nullptr) continue;
    held.push_back(feeds.at(in != nullptr ? in->name : param->name).contiguous());
    inputs.push_back(held.back().data());
  }
  Outcome out;
  std::vector<std::byte*> outputs;
  for (const ValueId v : graph.outputs()) out.results.push_back(Tensor::zeros(graph.type(v)));
  for (Tensor& t : out.results) outputs.push_back(t.mutable_data());
  cpu::Context context(executable);
  try {
    device::run(executable, context, {inputs, outputs, 3, nullptr});
  } catch (const UserError& e) {
    out.fault = e.code();
  }
  return out;
}

class BackendProgramBytes : public ::testing::TestWithParam<std::size_t> {};

TEST_P(BackendProgramBytes, RunLikeThePrograms) {
  const OpDescriptor& d = all_ops()[GetParam()];
  if (d.op_class == OpClass::Custom || d.op_class == OpClass::Block) return;
  for (const Case& c : cases_for(d.kind)) {
    if (!c.rejects.empty()) continue;
    const auto dtype = std::ranges::find_if(AllDTypes, [&](DType t) { return c.dtypes.has(t); });
    SCOPED_TRACE(fmt::format("{} case '{}'", d.info->name, c.name));
    const BuiltCase built = build_case(c, *dtype);
    if (!built.graph.symbols().empty()) continue;
    const auto program = std::make_shared<const Program>(
        make_program(built.graph, {.fuse = true, .target = &cpu::target()}));
    const std::vector<std::byte> bytes = schedule::to_bytes(*program);
    const auto stored = std::make_shared<const Program>(schedule::program_from_bytes(bytes));
    Recorder recorder;
    const cpu::Executable made(program, recorder, pool_of());
    const cpu::Executable read(stored, Replayer(recorder), pool_of());
    const Outcome expected = run(made, built);
    const Outcome actual = run(read, built);
    EXPECT_EQ(actual.fault, expected.fault);
    if (expected.fault) continue;
    for (std::size_t r = 0; r < expected.results.size(); ++r) {
      EXPECT_TRUE(actual.results[r].identical(expected.results[r])) << "result " << r;
    }
    if (HasFailure()) return;
  }
}
INSTANTIATE_TEST_SUITE_P(All, BackendProgramBytes, ::testing::Range<std::size_t>(0, OpCount),
                         [](const auto& op) {
                           return std::string(all_ops()[op.param].info->name);
                         });

}  // namespace
}  // namespace ricci::testing::program_bytes_test
