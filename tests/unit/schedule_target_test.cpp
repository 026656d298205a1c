// What the scheduler does with what it is told about a device: how branches are run, and where
// temporaries lie.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/compiler/schedule/program.h"
#include "ricci/compiler/schedule/target.h"
#include "ricci/compiler/schedule/verify.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/text.h"
#include "ricci/transform/grad.h"

#include "schedule/step_buffers.h"

namespace ricci::schedule_target_test {
namespace {

class TestTarget final : public schedule::Target {
 public:
  TestTarget(bool waits, std::int64_t alignment, std::int64_t unshared = 0)
      : waits_(waits), alignment_(alignment), unshared_(unshared) {}
  [[nodiscard]] bool claims(const loop::Call& /*call*/,
                            std::span<const Type> /*operands*/) const override {
    return true;
  }
  [[nodiscard]] std::int64_t short_branch() const override { return waits_ ? short_branch_ : 0; }
  [[nodiscard]] const schedule::KernelShape& kernel_shape() const override { return shape; }
  [[nodiscard]] const schedule::Costs& costs() const override { return prices; }
  void take_for_short(std::int64_t elements) { short_branch_ = elements; }

  schedule::KernelShape shape;
  schedule::Costs prices;
  [[nodiscard]] std::int64_t alignment() const override { return alignment_; }
  [[nodiscard]] std::int64_t unshared_bytes() const override { return unshared_; }

 private:
  bool waits_;
  std::int64_t alignment_;
  std::int64_t unshared_;
  std::int64_t short_branch_ = 1 << 18;
};

// Gradients of attention go anywhere.
class PlacingTarget final : public schedule::Target {
 public:
  [[nodiscard]] bool claims(const loop::Call& /*call*/,
                            std::span<const Type> /*operands*/) const override {
    return true;
  }
  [[nodiscard]] bool writes_view(const loop::Call& call, std::size_t /*result*/,
                                 const Type& /*type*/,
                                 const loop::Layout& /*layout*/) const override {
    return std::holds_alternative<loop::Attention>(call);
  }
};

std::size_t branches_in(const Program& program) {
  return static_cast<std::size_t>(std::ranges::count_if(program.steps, [](const Step& s) {
    const auto* control = std::get_if<ControlStep>(&s.what);
    return control != nullptr && std::holds_alternative<Branch>(control->how);
  }));
}

Graph branch(const std::string& type, const std::string& otherwise) {
  return parse_graph(fmt::format(R"(
graph @choice {{
  %p = input "p" : bool[]
  %x = input "x" : {0}
  %i = input "i" : i32[2]
  %y = if %p, %x, %i then {{
    %a = input "a" : {0}
    %n = input "n" : i32[2]
    %e = exp %a
    %t = reduce %e {{op = sum, axes = [0]}}
    return %t
  }} else {{
    %a = input "a" : {0}
    %n = input "n" : i32[2]
    {1}
    return %t
  }}
  return %y
}}
)",
                                 type, otherwise));
}
constexpr const char* Sines = "%s = sin %a\n    %t = reduce %s {op = max, axes = [0]}";

// What is only put into a larger array is computed there, unless somebody else wants it too.
TEST(ScheduleTarget, ResultsAreWrittenWhereTheyArePut) {
  const auto text = [](const char* returned) {
    return fmt::format(R"(
graph @gradients {{
  %x = input "x" : f32[2, 6, 24]
  %g = input "g" : f32[2, 6, 8]
  %q = narrow %x {{axis = 2, len = 8, start = 0}}
  %k = narrow %x {{axis = 2, len = 8, start = 8}}
  %v = narrow %x {{axis = 2, len = 8, start = 16}}
  %a, %b, %c = attention_backward %q, %k, %v, %g {{head_dim = 4, num_heads = 2}}
  %d = concat %a, %b, %c {{axis = 2}}
  return {}
}}
)",
                       returned);
  };
  const PlacingTarget placing;
  const TestTarget other(false, 64);
  const auto steps = [&](const char* returned, const schedule::Target& target) {
    const Program program = make_program(parse_graph(text(returned)), {.target = &target});
    EXPECT_EQ(find_fault(program, target), std::nullopt);
    return program.steps.size();
  };
  EXPECT_EQ(steps("%d", placing), 1U);
  EXPECT_EQ(steps("%d", other), 2U);  // which one step moves
  EXPECT_EQ(steps("%d, %b", placing), 2U);
  // Programs whose parts overlap, or that the device cannot write so, are malformed.
  Program program = make_program(parse_graph(text("%d")), {.target = &placing});
  EXPECT_NE(find_fault(program, other), std::nullopt);
  auto& call = std::get<CallStep>(program.steps[0].what);
  call.results[1].layout.offset = 7;
  EXPECT_NE(find_fault(program, placing), std::nullopt);
}

// What a gradient needs and the forward pass would keep for it alone is computed when it comes
// back, of what is kept anyway: the slope of relu of its result, normalised rows of their smaller
// input.
TEST(ScheduleTarget, GradientsComputeWhatNobodyElseKeeps) {
  const TestTarget target(false, 64);
  const auto kept = [&](const Graph& loss, std::vector<ValueRef> wrt, DType dtype,
                        std::int64_t elements) {
    const Program program = make_program(value_and_grad(loss, wrt).graph, {.target = &target});
    EXPECT_EQ(find_fault(program, target), std::nullopt);
    std::map<BufferId, std::set<std::size_t>> used;
    for (std::size_t s = 0; s < program.steps.size(); ++s) {
      schedule::for_buffers(program.steps[s], [&](BufferId b) { used[b].insert(s); });
    }
    return std::ranges::count_if(used, [&](const auto& use) {
      if (use.first < 0 || use.second.size() < 2) return false;
      const Buffer& b = program.buffers[static_cast<std::size_t>(use.first)];
      return b.role == Buffer::Role::Temporary && b.dtype == dtype && b.elements == elements;
    });
  };
  Graph relus("relus");
  const Value x = relus.input("x", f32({512, 48}));
  const Value h = relu(matmul(x, relus.param("w", f32({48, 96}))) + relus.param("b", f32({96})));
  relus.set_outputs({sum(square(matmul(h, relus.param("v", f32({96, 32})))), {0, 1})});
  EXPECT_EQ(kept(relus, {"w", "b", "v"}, DType::Bool, 512 * 96), 0);

  Graph norms("norms");
  const Type small(DType::BF16, {512, 96});
  const Value s = norms.input("s", small);
  const Value before = s + matmul(s, norms.param("w", Type(DType::BF16, {96, 96})));
  const Value y = layer_norm(before, norms.param("g", Type(DType::BF16, {96})),
                             norms.param("c", Type(DType::BF16, {96})));
  const Value out = before + matmul(y, norms.param("v", Type(DType::BF16, {96, 96})));
  norms.set_outputs({sum(cast(square(out), {.to = DType::F32}), {0, 1})});
  EXPECT_EQ(kept(norms, {"w", "g", "c", "v"}, DType::F32, 512 * 96), 0);
}

TEST(ScheduleTarget, ShortBranchesAreComputedBothWaysWhereTheyWait) {
  const Graph graph = branch("f32[6, 5]", Sines);
  for (const bool waits : {true, false}) {
    const TestTarget target(waits, 64);
    const ProgramOptions options{.fuse = true, .target = &target};
    EXPECT_EQ(branches_in(make_program(graph, options)), waits ? 0U : 1U);
    const Graph prepared = prepare_for_device(graph, options);
    for (const bool way : {true, false}) {
      const Feeds feeds = {{"p", Tensor::splat({DType::Bool, {}}, std::int64_t{way})},
                           {"x", Tensor::splat(f32({6, 5}), 0.5)},
                           {"i", Tensor::zeros({DType::I32, {2}})}};
      EXPECT_TRUE(interpret(prepared, feeds)[0].identical(interpret(graph, feeds)[0])) << way;
    }
  }
}

TEST(ScheduleTarget, BranchesInsideBranchesAndLoopsAreComputedBothWaysToo) {
  const Graph graph = parse_graph(R"(
graph @steps {
  %x = input "x" : f32[8]
  %y = scan %x {length = 3} body {
    %c = input "c" : f32[8]
    %z = constant 0.0 : f32[]
    %m = reduce %c {op = max, axes = [0]}
    %p = gt %m, %z
    %n = if %p, %c, %p then {
      %a = input "a" : f32[8]
      %q = input "q" : bool[]
      %r = if %q, %a then {
        %b = input "b" : f32[8]
        %s = sin %b
        return %s
      } else {
        %b = input "b" : f32[8]
        return %b
      }
      return %r
    } else {
      %a = input "a" : f32[8]
      %q = input "q" : bool[]
      %e = exp %a
      return %e
    }
    return %n
  }
  return %y
}
)");
  const TestTarget target(true, 64);
  const std::string text = print(prepare_for_device(graph, {.fuse = true, .target = &target}));
  EXPECT_EQ(text.find("= if "), std::string::npos) << text;
}

// Two ways through 30 elements and a reduction of these: how many that may be is the device's to
// say.
TEST(ScheduleTarget, HowShortABranchHasToBeIsTheDevices) {
  const Graph graph = branch("f32[6, 5]", Sines);
  for (const auto& [elements, branches] : {std::pair{1000, 0U}, {40, 1U}}) {
    TestTarget target(true, 64);
    target.take_for_short(elements);
    EXPECT_EQ(branches_in(make_program(graph, {.fuse = true, .target = &target})), branches);
  }
}

// A loop is written out, or not, by the instructions it takes on the device's vectors.
TEST(ScheduleTarget, HowLongAWrittenLoopMayBeIsTheDevices) {
  const Graph graph = parse_graph(R"(
graph @steps {
  %x = input "x" : f32[16]
  %y = scan %x {length = 5} body {
    %c = input "c" : f32[16]
    %s = sin %c
    return %s
  }
  return %y
}
)");
  const auto is_written = [&](std::int64_t vector_bytes, std::int64_t most) {
    TestTarget target(false, 64);
    target.shape.vector_bytes = vector_bytes;
    target.shape.most_loop_instructions = most;
    const Program made = make_program(graph, {.fuse = true, .target = &target});
    return std::holds_alternative<LoopStep>(made.steps.back().what);
  };
  std::int64_t enough = 0;
  while (enough < 900 && !is_written(64, enough)) ++enough;
  EXPECT_GT(enough, 0);
  EXPECT_LT(enough, 900);
  EXPECT_FALSE(is_written(4, enough));
}

// A mask of places that two read is made by each where that is little work, and kept where not.
TEST(ScheduleTarget, WhatIsLittleWorkIsTheDevices) {
  const Graph graph = parse_graph(R"(
graph @masks {
  %x = input "x" : f32[64, 64]
  %v = input "v" : f32[64, 1]
  %e = exp %v
  %w = expand %e {target_shape = [64, 64]}
  %t = tanh %w
  %a = mul %x, %t
  %m = matmul %a, %x
  %b = mul %m, %t
  return %b
}
)");
  const auto copies = [&](std::int64_t light) {
    TestTarget target(false, 64);
    target.prices.light_work = light;
    target.prices.early_work = 0;
    const std::string text = print(prepare_for_device(graph, {.fuse = true, .target = &target}));
    std::size_t count = 0;
    for (auto at = text.find("tanh"); at != std::string::npos; at = text.find("tanh", at + 1)) {
      ++count;
    }
    return count;
  };
  EXPECT_EQ(copies(0), 1U);
  EXPECT_EQ(copies(1000), 2U);
}

// What is not taken must not fault, and must not take long.
TEST(ScheduleTarget, OtherBranchesStayBranches) {
  const TestTarget target(true, 64);
  const struct {
    const char* why;
    Graph graph;
  } cases[] = {
      {"a gather may be out of range",
       branch("f32[6, 5]", "%g = gather %a, %n {axis = 0}\n"
                           "    %t = reduce %g {op = max, axes = [0]}")},
      {"a division by zero",
       branch("f32[6, 5]", "%d = div %n, %n\n    %f = cast %d {to = f32}\n"
                           "    %o = reduce %f {op = sum, axes = [0]}\n"
                           "    %v = reduce %a {op = sum, axes = [0]}\n    %t = add %v, %o")},
      {"a call", branch("f32[6, 5]", "%s, _ = sort %a {axis = 0}\n"
                                     "    %t = reduce %s {op = max, axes = [0]}")},
      {"much work", branch("f32[600, 500]", Sines)},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(branches_in(make_program(c.graph, {.fuse = true, .target = &target})), 1U) << c.why;
  }
}

TEST(ScheduleTarget, TemporariesLieWhereItsAlignmentAllows) {
  const Graph graph = parse_graph(R"(
graph @products {
  %x = input "x" : f32[3, 3]
  %a = matmul %x, %x
  %b = matmul %a, %x
  %c = matmul %b, %a
  return %c
}
)");
  const TestTarget dense(false, 16);
  const Program close = make_program(graph, {.fuse = false, .target = &dense});
  EXPECT_EQ(find_fault(close, dense), std::nullopt);
  EXPECT_NE(find_fault(close).value_or("").find("multiple of 64 bytes"), std::string::npos);

  const TestTarget wide(false, 256);
  Program apart = make_program(graph, {.fuse = false, .target = &wide});
  EXPECT_EQ(find_fault(apart, wide), std::nullopt);
  for (Buffer& b : apart.buffers) b.offset += b.role == Buffer::Role::Temporary ? 64 : 0;
  apart.arena_bytes += 64;
  EXPECT_EQ(find_fault(apart), std::nullopt);
  EXPECT_NE(find_fault(apart, wide).value_or("").find("multiple of 256 bytes"), std::string::npos);
}

// Where there is room for all of them, and nobody asks for less.
TEST(ScheduleTarget, FewTemporariesShareNoMemory) {
  const Graph graph = parse_graph(R"(
graph @chain {
  %x = input "x" : f32[3, 3]
  %a = matmul %x, %x
  %t = tanh %a
  %b = matmul %t, %x
  %c = matmul %b, %x
  %d = matmul %c, %x
  return %d
}
)");
  constexpr std::int64_t Alignment = 64;
  const auto arena = [&](std::int64_t unshared, std::int64_t budget = 0) {
    const TestTarget target(false, Alignment, unshared);
    const Program made =
        make_program(graph, {.fuse = true, .target = &target, .memory_budget = budget});
    EXPECT_EQ(find_fault(made, target), std::nullopt);
    EXPECT_EQ(made.live_bytes, 2 * Alignment);
    return made.arena_bytes;
  };
  EXPECT_EQ(arena(0), 2 * Alignment);
  EXPECT_EQ(arena(4 * Alignment), 4 * Alignment);
  EXPECT_EQ(arena(4 * Alignment - 1), 2 * Alignment);
  EXPECT_EQ(arena(4 * Alignment, 3 * Alignment), 2 * Alignment);
}

}  // namespace
}  // namespace ricci::schedule_target_test
