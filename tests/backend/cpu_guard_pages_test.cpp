// Op cases with every input, output and temporary between pages nobody may
// touch: once ending right before one, once starting right behind one. Inputs can only be read.
#include <algorithm>
#include <cstring>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/op/table.h"
#include "ricci/runtime/device.h"

#include "backend/agreement.h"
#include "backend/cpu/code_cache.h"
#include "backend/cpu/executable.h"
#include "ops/cases.h"
#include "ops/transformed_case.h"
#include "support/guarded_buffer.h"
#include "test_paths.h"

namespace ricci::testing {
namespace {

using Edge = GuardedBuffer::Edge;

class GuardedRun {
 public:
  GuardedRun(const Graph& graph, Edge edge)
      : graph_(graph),
        edge_(edge),
        executable_(std::make_shared<ricci::Program>(
                        make_program(graph, {.fuse = true, .claims = cpu::claims})),
                    cpu::JitSource(Device::default_cpu().pool())),
        context_(executable_) {
    guard(executable_, context_.frame());
  }

  std::vector<Tensor> operator()(const Feeds& feeds) {
    std::vector<const std::byte*> inputs;
    for (const Tensor& t : check_feeds(graph_, feeds).values) {
      const Tensor plain = t.contiguous();
      GuardedBuffer& b = buffer(plain.bytes().size());
      std::ranges::copy(plain.bytes(), b.data());
      b.make_read_only();
      inputs.push_back(b.data());
    }
    std::vector<std::byte*> outputs;
    for (const ValueId v : graph_.outputs()) outputs.push_back(buffer(byte_size(v)).data());
    executable_.run(context_, Device::default_cpu().pool(), {inputs, outputs, 0, nullptr});
    std::vector<Tensor> results;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      results.push_back(Tensor::zeros(graph_.type(graph_.outputs()[i])));
      const auto bytes = static_cast<std::size_t>(byte_size(graph_.outputs()[i]));
      if (bytes != 0) std::memcpy(results.back().mutable_data(), outputs[i], bytes);
    }
    return results;
  }

 private:
  GuardedBuffer& buffer(std::size_t bytes) { return buffers_.emplace_back(bytes, edge_); }

  [[nodiscard]] std::size_t byte_size(ValueId v) const {
    const Type& type = graph_.type(v);
    return static_cast<std::size_t>(type.numel().value() * size_of(type.dtype));
  }

  // Temporaries leave the arena, and constants the program, for places of their own.
  void guard(const cpu::Executable& executable, cpu::Frame& frame) {
    const ricci::Program& program = executable.program();
    for (std::size_t b = 0; b < program.buffers.size(); ++b) {
      const Buffer& planned = program.buffers[b];
      if (planned.role == Buffer::Role::Temporary) {
        frame.buffers[b] = buffer(static_cast<std::size_t>(planned.bytes())).data();
      } else if (planned.role == Buffer::Role::Constant) {
        GuardedBuffer& own = buffer(planned.constant.bytes().size());
        std::ranges::copy(planned.constant.bytes(), own.data());
        own.make_read_only();
        frame.buffers[b] = own.data();
      }
    }
    for (std::size_t s = 0; s < frame.bodies.size(); ++s) {
      for (std::size_t k = 0; k < frame.bodies[s].size(); ++k) {
        guard(executable.body(s, k), frame.bodies[s][k]);
      }
    }
  }

  const Graph& graph_;
  Edge edge_;
  std::vector<GuardedBuffer> buffers_;
  cpu::Executable executable_;
  cpu::Context context_;
};

std::size_t& runs() {
  static std::size_t count = 0;
  return count;
}

void expect_inside(const CaseProgram& p, const std::string& what) {
  const FaultNote note(what.c_str());
  const Outcome expected = reference_outcome(p.graph, p.feeds);
  for (const Edge edge : {Edge::End, Edge::Start}) {
    const Outcome actual = GuardedRun(p.graph, edge)(p.feeds);
    ++runs();
    EXPECT_EQ(disagreement(p.graph, p.feeds, actual, expected), "") << what;
  }
}

TEST(BackendGuardPagesDeathTest, AStepOverTheEdgeIsAFault) {
  const FaultNote note("on purpose");
  for (const Edge edge : {Edge::End, Edge::Start}) {
    const GuardedBuffer b(100, edge);
    volatile std::byte* outside = edge == Edge::End ? b.data() + 100 : b.data() - 1;
    EXPECT_DEATH((void)*outside, "over the edge of a buffer: on purpose");
  }
  GuardedBuffer constant(100, Edge::End);
  constant.make_read_only();
  EXPECT_DEATH(*static_cast<volatile std::byte*>(constant.data()) = std::byte{1}, "on purpose");
}

class BackendGuardPages : public ::testing::TestWithParam<std::size_t> {};

TEST_P(BackendGuardPages, NobodyStepsOverTheEdge) {
  const OpDescriptor& d = all_ops()[GetParam()];
  if (d.op_class == OpClass::Block) return;
  for (const Case& c : cases_for(d.kind)) {
    if (!c.rejects.empty() || c.fails) continue;
    for (const DType dtype : {DType::F32, DType::F16, DType::I8, DType::C128}) {
      if (!c.dtypes.has(dtype)) continue;
      const CaseProgram p = program_of(c, dtype);
      if (!p.graph.symbols().empty()) continue;
      const std::string what = fmt::format("{} case '{}' in {}", d.info->name, c.name, name(dtype));
      try {
        expect_inside(p, what);
      } catch (const std::exception& e) {
        ADD_FAILURE() << what << ": " << e.what();
      }
      if (HasFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, BackendGuardPages, ::testing::Range<std::size_t>(0, OpCount),
                         [](const auto& op) {
                           return std::string(all_ops()[op.param].info->name);
                         });

// Writes the closing summary that `make test` prints.
class Summary : public ::testing::Environment {
 public:
  void TearDown() override {
    if (runs() == 0) return;
    std::ofstream out(RICCI_BUILD_DIR "/test-summary-guard-pages.txt");
    out << fmt::format("guard pages: {} runs of op cases inside their buffers\n", runs());
  }
};
const ::testing::Environment* const summary =
    ::testing::AddGlobalTestEnvironment(new Summary);  // NOLINT: gtest owns it

}  // namespace
}  // namespace ricci::testing
