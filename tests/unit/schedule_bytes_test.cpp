// Programs as bytes: nothing is lost, and bytes that are not a program are refused.
#include <algorithm>
#include <cstring>
#include <functional>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/compiler/schedule/program.h"
#include "ricci/compiler/schedule/verify.h"
#include "ricci/ir/text.h"
#include "ricci/op/table.h"

#include "ops/cases.h"
#include "schedule/archive.h"
#include "schedule/program_bytes.h"
#include "support/claiming_target.h"

namespace ricci::testing::schedule_bytes_test {
namespace {

using schedule::program_from_bytes;
using schedule::to_bytes;

void expect_same_views(const std::vector<BufferView>& a, const std::vector<BufferView>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].buffer, b[i].buffer);
    EXPECT_EQ(a[i].type, b[i].type);
    EXPECT_EQ(a[i].layout, b[i].layout);
  }
}

void expect_same_call(const CallStep& a, const CallStep& b) {
  EXPECT_EQ(a.reference, b.reference);
  EXPECT_EQ(a.call, b.call) << loop::to_string(a.call) << ", then " << loop::to_string(b.call);
  expect_same_views(a.operands, b.operands);
  expect_same_views(a.results, b.results);
}

void expect_same(const Program& a, const Program& b) {
  EXPECT_EQ(a.inputs, b.inputs);
  EXPECT_EQ(a.outputs, b.outputs);
  ASSERT_EQ(a.buffers.size(), b.buffers.size());
  for (std::size_t i = 0; i < a.buffers.size(); ++i) {
    EXPECT_EQ(a.buffers[i].offset, b.buffers[i].offset);
    if (a.buffers[i].role != Buffer::Role::Constant) continue;
    EXPECT_EQ(std::memcmp(a.buffers[i].constant.data(), b.buffers[i].constant.data(),
                          static_cast<std::size_t>(a.buffers[i].bytes())),
              0);
  }
  ASSERT_EQ(a.references.size(), b.references.size());
  for (std::size_t i = 0; i < a.references.size(); ++i) {
    EXPECT_EQ(op_of(a.references[i]), op_of(b.references[i])) << a.references[i].name();
  }
  ASSERT_EQ(a.steps.size(), b.steps.size());
  for (std::size_t s = 0; s < a.steps.size(); ++s) {
    ASSERT_EQ(a.steps[s].what.index(), b.steps[s].what.index());
    if (const auto* call = std::get_if<CallStep>(&a.steps[s].what)) {
      expect_same_call(*call, std::get<CallStep>(b.steps[s].what));
    } else if (const auto* control = std::get_if<ControlStep>(&a.steps[s].what)) {
      const auto& other = std::get<ControlStep>(b.steps[s].what);
      expect_same_views(control->operands, other.operands);
      expect_same_views(control->results, other.results);
      ASSERT_EQ(control->how.index(), other.how.index());
      if (const auto* plan = std::get_if<loop::LoopPlan>(&control->how)) {
        EXPECT_EQ(*plan, std::get<loop::LoopPlan>(other.how));
      }
      EXPECT_EQ(control->carries, other.carries);
      ASSERT_EQ(control->bodies.size(), other.bodies.size());
      for (std::size_t i = 0; i < other.bodies.size(); ++i) {
        EXPECT_EQ(control->bodies[i].first, other.bodies[i].first);
        expect_same(*control->bodies[i].second, *other.bodies[i].second);
      }
    } else if (const auto* l = std::get_if<LoopStep>(&a.steps[s].what)) {
      const auto& other = std::get<LoopStep>(b.steps[s].what);
      expect_same_views(l->operands, other.operands);
      expect_same_views(l->results, other.results);
      EXPECT_EQ(loop::to_string(l->loop), loop::to_string(other.loop));
    }
  }
}

class ScheduleBytes : public ::testing::TestWithParam<std::size_t> {};

TEST_P(ScheduleBytes, KeepProgramsOfEveryOp) {
  const OpDescriptor& d = all_ops()[GetParam()];
  if (d.op_class == OpClass::Custom || d.op_class == OpClass::Block) return;
  for (const Case& c : cases_for(d.kind)) {
    if (!c.rejects.empty()) continue;
    const auto dtype = std::ranges::find_if(AllDTypes, [&](DType t) { return c.dtypes.has(t); });
    ASSERT_NE(dtype, AllDTypes.end());
    SCOPED_TRACE(fmt::format("{} case '{}'", d.info->name, c.name));
    const BuiltCase built = build_case(c, *dtype);
    if (!built.graph.symbols().empty()) continue;
    const Program program = make_program(built.graph, {.fuse = true, .target = &claiming_target()});
    const std::vector<std::byte> bytes = to_bytes(program);
    const Program again = program_from_bytes(bytes);
    expect_same(program, again);
    EXPECT_EQ(to_bytes(again), bytes);
    if (HasFailure()) return;
  }
}
INSTANTIATE_TEST_SUITE_P(All, ScheduleBytes, ::testing::Range<std::size_t>(0, OpCount),
                         [](const auto& op) {
                           return std::string(all_ops()[op.param].info->name);
                         });

// Constants, kernels, calls, a loop that stays a loop.
Program varied_program() {
  return make_program(parse_graph(R"(
graph @varied {
  %x = input "x" : f32[8, 8]
  %t = constant [[1, 2], [3, 4]] : f32[2, 2]
  %s, _ = sort %x {axis = 1}
  %y = scan %s {length = 3} body {
    %c = input "c" : f32[8, 8]
    %p = matmul %c, %c
    %n = tanh %p
    return %n
  }
  %u = matmul %t, %t
  return %y, %u
}
)"),
                      {.fuse = true, .target = &claiming_target()});
}

TEST(ScheduleVerify, FindsWhatIsWrong) {
  const auto call_of = [](Program& p) -> CallStep& {
    const auto step = std::ranges::find_if(
        p.steps, [](const Step& s) { return std::holds_alternative<CallStep>(s.what); });
    return std::get<CallStep>(step->what);
  };
  const struct {
    const char* says;
    std::function<void(Program&)> damage;
  } faults[] = {
      {"a view reaches outside", [&](Program& p) { call_of(p).operands[0].layout.offset = 1; }},
      {"a view reaches outside", [&](Program& p) { call_of(p).operands[0].layout.offset = -1; }},
      {"a view reaches outside",
       [&](Program& p) { call_of(p).operands[0].layout.strides[0] = std::int64_t{1} << 62; }},
      {"a view reaches outside",
       [&](Program& p) { call_of(p).operands[0].layout.strides[1] = -1; }},
      {"takes 1 operand",
       [&](Program& p) { call_of(p).operands.push_back(call_of(p).operands[0]); }},
      {"number of results", [&](Program& p) { call_of(p).results.pop_back(); }},
      {"another type than its op gives",
       [&](Program& p) { call_of(p).results[0].type.dims = {Dim(4), Dim(16)}; }},
      {"of another type",
       [&](Program& p) {
         p.buffers[static_cast<std::size_t>(call_of(p).operands[0].buffer)].dtype = DType::I32;
       }},
      {"outside the arena", [](Program& p) { p.arena_bytes = 0; }},
      {"not marked as an output", [](Program& p) { p.outputs[0] = p.inputs[0]; }},
  };
  EXPECT_NO_THROW(verify(varied_program()));
  for (const auto& f : faults) {
    Program program = varied_program();
    f.damage(program);
    const std::string found = find_fault(program).value_or("nothing");
    EXPECT_NE(found.find(f.says), std::string::npos) << f.says << ", but: " << found;
    EXPECT_THROW(verify(program), InternalError) << f.says;
  }
}

TEST(ScheduleVerify, FindsKernelsThatLeaveTheirBuffers) {
  const Graph graph = parse_graph(R"(
graph @flip {
  %x = input "x" : f32[8]
  %r = reverse %x {axes = [0]}
  %y = exp %r
  return %y
}
)");
  Program program = make_program(graph);
  ASSERT_EQ(program.kernels.size(), 1U);
  EXPECT_EQ(find_fault(program), std::nullopt);
  program.buffers[static_cast<std::size_t>(program.inputs[0])].elements = 7;
  EXPECT_NE(find_fault(program).value_or("").find("a kernel reads or writes outside"),
            std::string::npos);
}

TEST(ScheduleVerify, FindsSumsThatLeaveTheirBuffers) {
  const Program sound = make_program(parse_graph(R"(
graph @columns {
  %x = input "x" : f32[8, 64]
  %y = reduce %x {op = sum, axes = [0]}
  return %y
}
)"));
  ASSERT_EQ(sound.kernels.size(), 1U);
  ASSERT_EQ(sound.kernels[0].accumulators.size(), 1U);
  const loop::Accumulator& sum = sound.kernels[0].accumulators[0];
  EXPECT_EQ(find_fault(sound), std::nullopt);
  const auto expect_found = [](const Program& program, const char* what) {
    EXPECT_NE(find_fault(program).value_or("").find(what), std::string::npos) << what;
  };
  Program small_local = sound;
  small_local.kernels[0].arguments[static_cast<std::size_t>(sum.local)].elements = 1;
  expect_found(small_local, "accumulates outside");
  Program small_output = sound;
  small_output.buffers[static_cast<std::size_t>(sound.outputs[0])].elements = 1;
  expect_found(small_output, "accumulates outside");
  Program endless = sound;
  endless.kernels[0].extents[0] = std::int64_t{1} << 60;
  expect_found(endless, "does not fit in 64 bits");
  Program nowhere = sound;
  nowhere.kernels[0].accumulators[0].argument = 7;
  expect_found(nowhere, "an argument that does not exist");
}

TEST(ScheduleVerify, FindsBodiesThatDoNotFit) {
  const Program sound = make_program(parse_graph(R"(
graph @loop {
  %h0 = input "h0" : f32[64]
  %xs = input "xs" : f32[5, 64]
  %last, %all = scan %h0, %xs {length = 5, num_xs = 1} body {
    %h = input "h" : f32[64]
    %x = input "x" : f32[64]
    %next = add %h, %x
    return %next, %next
  }
  return %last, %all
}
)"),
                                     {.fuse = false});
  EXPECT_EQ(find_fault(sound), std::nullopt);
  const auto loop_of = [](Program& p) -> ControlStep& {
    const auto step = std::ranges::find_if(
        p.steps, [](const Step& s) { return std::holds_alternative<ControlStep>(s.what); });
    return std::get<ControlStep>(step->what);
  };
  Program longer = sound;
  std::get<loop::LoopPlan>(loop_of(longer).how).most_trips = 5000;
  EXPECT_NE(find_fault(longer).value_or("").find("of another size"), std::string::npos);
  Program tight = sound;
  tight.buffers[static_cast<std::size_t>(loop_of(tight).carries[0][0])].elements = 1;
  EXPECT_NE(find_fault(tight).value_or("").find("for a carry is too small"), std::string::npos);
}

TEST(ScheduleVerify, FindsWritesToInputs) {
  Program program = make_program(parse_graph(R"(
graph @one {
  %x = input "x" : f32[8]
  %y = exp %x
  return %y
}
)"));
  auto& launch = std::get<KernelStep>(program.steps[0].what).launches[0];
  std::ranges::replace(launch.buffers, program.outputs[0], program.inputs[0]);
  EXPECT_NE(find_fault(program).value_or("").find("may only be read"), std::string::npos);
}

// What the runner takes for granted about loops, branches and calls: each change makes it read or
// write where nothing is.
TEST(ScheduleVerify, FindsWhatTheRunnerReliesOn) {
  const Program loops = make_program(parse_graph(R"(
graph @loops {
  %x = input "x" : f32[4, 4]
  %rows = input "rows" : f32[3, 4, 4]
  %c, %ys = scan %x, %rows {length = 3, num_carry = 1, num_xs = 1} body {
    %c = input "c" : f32[4, 4]
    %r = input "r" : f32[4, 4]
    %p = matmul %c, %r
    return %p, %r
  }
  %s, _ = sort %c {axis = 1}
  return %s, %ys
}
)"),
                                     {.fuse = false, .target = &claiming_target()});
  ASSERT_EQ(find_fault(loops), std::nullopt);
  const auto control_of = [](Program& p) -> ControlStep& {
    const auto step = std::ranges::find_if(
        p.steps, [](const Step& s) { return std::holds_alternative<ControlStep>(s.what); });
    return std::get<ControlStep>(step->what);
  };
  const auto call_of = [](Program& p) -> CallStep& {
    const auto step = std::ranges::find_if(
        p.steps, [](const Step& s) { return std::holds_alternative<CallStep>(s.what); });
    return std::get<CallStep>(step->what);
  };
  const auto reference_of = [&](Program& p) -> loop::Reference& {
    return p.references[call_of(p).reference];
  };
  const auto set_type = [](BufferView& v, Dims dims) {
    v.type.dims = dims;
    v.layout.strides = row_major_strides(v.type.static_dims());
  };
  const struct {
    const char* says;
    std::function<void(Program&)> change;
  } faults[] = {
      {"nobody gives", [&](Program& p) { p.inputs.pop_back(); }},
      {"nobody gives", [&](Program& p) { p.outputs.pop_back(); }},
      {"operand of a loop is not row-major",
       [&](Program& p) { control_of(p).operands[1].layout.strides[0] = 0; }},
      {"result of a loop is not row-major",
       [&](Program& p) { control_of(p).results[1].layout.strides[0] = 0; }},
      {"result of a call is not row-major",
       [&](Program& p) { call_of(p).results[0].layout.strides = {0, 0}; }},
      {"nothing that is wanted",
       [&](Program& p) {
         for (BufferView& v : call_of(p).results) v.buffer = -1;
       }},
      {"normal form",
       [&](Program& p) { reference_of(p) = loop::Reference(Op(op::Sort{.axis = -1})); }},
      {"not what its op is",
       [&](Program& p) { reference_of(p) = loop::Reference(Op(op::Sort{.axis = 0})); }},
      {"what nothing says", [&](Program& p) { call_of(p).reference = p.references.size(); }},
      {"not what its op is", [&](Program& p) { std::get<loop::Sort>(call_of(p).call).kept = 9; }},
      {"another size", [&](Program& p) { set_type(control_of(p).operands[1], {2, 4, 4}); }},
      {"another size", [&](Program& p) { set_type(control_of(p).results[1], {2, 4, 4}); }},
      {"a body is missing", [&](Program& p) { control_of(p).bodies.clear(); }},
      {"in two ways",
       [&](Program& p) { control_of(p).carries[0][1] = control_of(p).carries[0][0]; }},
      {"writes to its operands",
       [&](Program& p) { control_of(p).carries[0][1] = control_of(p).operands[0].buffer; }},
      {"not its own", [&](Program& p) { control_of(p).workspace = p.inputs[0]; }},
      {"multiple of 64 bytes",
       [&](Program& p) {
         p.buffers[static_cast<std::size_t>(control_of(p).carries[0][0])].offset += 4;
       }},
  };
  for (const auto& f : faults) {
    Program changed = loops;
    f.change(changed);
    const std::string found = find_fault(changed).value_or("nothing");
    EXPECT_NE(found.find(f.says), std::string::npos) << f.says << ", but: " << found;
  }
}

TEST(ScheduleVerify, FindsTemporariesInEachOthersWay) {
  const Graph graph = parse_graph(R"(
graph @products {
  %x = input "x" : f32[6, 6]
  %a = matmul %x, %x
  %b = matmul %a, %x
  %c = matmul %b, %a
  %d = matmul %c, %c
  return %d
}
)");
  const Program program = make_program(graph, {.fuse = false});
  EXPECT_EQ(find_fault(program), std::nullopt);
  const auto result = [&](std::size_t step) {
    return std::get<CallStep>(program.steps[step].what).results[0].buffer;
  };
  const auto at = [](BufferId b) { return static_cast<std::size_t>(b); };
  ASSERT_EQ(program.steps.size(), 4U);
  // a is read by the third product, b made by the second.
  Program shared = program;
  shared.buffers[at(result(1))].offset = shared.buffers[at(result(0))].offset + 64;
  EXPECT_NE(find_fault(shared).value_or("").find("wanted at the same time and place"),
            std::string::npos);
  // c may lie where nothing is wanted any more, but not where its own operands are.
  shared = program;
  shared.buffers[at(result(2))].offset = shared.buffers[at(result(0))].offset;
  EXPECT_NE(find_fault(shared).value_or("").find("wanted at the same time and place"),
            std::string::npos);
  Program swapped = program;
  std::swap(swapped.steps[0], swapped.steps[1]);
  EXPECT_NE(find_fault(swapped).value_or("").find("which nothing has filled"), std::string::npos);
}

TEST(ScheduleVerify, KernelsReplaceElementByElementOnly) {
  const auto program_with = [](const char* second) {
    return make_program(parse_graph(fmt::format(R"(
graph @rows {{
  %x = input "x" : f32[4, 4]
  %a = exp %x
  {}
  %y = matmul %b, %x
  return %y
}}
)",
                                                second)),
                        {.fuse = false});
  };
  const auto one_place = [](Program p) {
    const BufferId a = std::get<KernelStep>(p.steps[0].what).launches[0].buffers[1];
    const BufferId b = std::get<KernelStep>(p.steps[1].what).launches[0].buffers[1];
    p.buffers[static_cast<std::size_t>(b)].offset = p.buffers[static_cast<std::size_t>(a)].offset;
    return p;
  };
  EXPECT_EQ(find_fault(one_place(program_with("%b = tanh %a"))), std::nullopt);
  const Program turned =
      one_place(program_with("%t = transpose %a {perm = [1, 0]}\n  %b = tanh %t"));
  EXPECT_NE(find_fault(turned).value_or("").find("wanted at the same time and place"),
            std::string::npos);
}

bool is_refused(std::span<const std::byte> bytes) {
  try {
    (void)program_from_bytes(bytes);
    return false;
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), ErrorCode::File) << e.what();
    return true;
  }
}

TEST(ScheduleBytesDamaged, CutOffOrOverwrittenBytesAreRefused) {
  const std::vector<std::byte> bytes = to_bytes(varied_program());
  EXPECT_FALSE(is_refused(bytes));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_TRUE(is_refused(std::span(bytes).first(size))) << size;
  }
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    if (at >= 32 && at < 64) continue;  // not used so far
    std::vector<std::byte> other = bytes;
    other[at] ^= std::byte{0x41};
    EXPECT_TRUE(is_refused(other)) << at;
  }
  std::vector<std::byte> longer = bytes;
  longer.push_back({});
  EXPECT_TRUE(is_refused(longer));
}

// With a check sum that is right: what is read is a program that can be prepared, or is refused.
TEST(ScheduleBytesDamaged, WrongNumbersNeverCrashTheReader) {
  const std::vector<std::byte> bytes = to_bytes(varied_program());
  const std::vector<std::byte> body(bytes.begin() + 64, bytes.end());
  std::size_t refused = 0;
  std::size_t read = 0;
  for (std::size_t at = 0; at < body.size(); ++at) {
    for (const int value : {0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF}) {
      std::vector<std::byte> other = body;
      other[at] = static_cast<std::byte>(value);
      ++(is_refused(schedule::sealed(schedule::ProgramSeal, other)) ? refused : read);
    }
  }
  for (std::size_t size = 0; size < body.size(); ++size) {
    EXPECT_TRUE(is_refused(schedule::sealed(
        schedule::ProgramSeal, {body.begin(), body.begin() + static_cast<std::ptrdiff_t>(size)})))
        << size;
  }
  EXPECT_GT(refused, 100U);
  EXPECT_GT(read, 100U) << "labels and constants may be anything";
}

}  // namespace
}  // namespace ricci::testing::schedule_bytes_test
