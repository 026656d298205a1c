// What the verifier of written-out loops and of plans finds: each change would make those who run a
// loop read or write where nothing is, or compute what is not there.
#include <functional>
#include <limits>

#include <gtest/gtest.h>

#include "ricci/compiler/loop/written_loop.h"
#include "ricci/compiler/schedule/program.h"
#include "ricci/compiler/schedule/verify.h"
#include "ricci/ir/text.h"

namespace ricci::testing::loop_written_test {
namespace {

constexpr std::int64_t Huge = std::numeric_limits<std::int64_t>::max();

const Program& sound() {
  static const Program program = make_program(parse_graph(R"(
graph @loop {
  %x = input "x" : f32[2, 2]
  %w = input "w" : f32[2, 2]
  %rows = input "rows" : f32[4, 2]
  %kept, %ys = scan %x, %w, %rows {length = 4, num_bcast = 1, num_xs = 1, save_trajectory = true, num_checkpoints = 2} body {
    %c = input "c" : f32[2, 2]
    %v = input "v" : f32[2, 2]
    %r = input "r" : f32[2]
    %k = constant [[1, 2], [3, 4]] : f32[2, 2]
    %p = matmul %c, %v
    %q = add %p, %r
    %t = mul %q, %k
    %s = reduce %t {op = sum, axes = [1]}
    return %q, %s
  }
  return %kept, %ys
}
)"));
  return program;
}

const Program& sound_while() {
  static const Program program = make_program(parse_graph(R"(
graph @loop {
  %x = input "x" : f32[2]
  %y, %trips, %tape = while %x {max_iterations = 6, num_checkpoints = 3} cond {
    %c = input "c" : f32[2]
    %one = constant 1.0 : f32[]
    %p = gt %c, %one
    return %p
  } body {
    %c = input "c" : f32[2]
    %half = constant 0.5 : f32[]
    %n = mul %c, %half
    return %n
  }
  return %y, %trips, %tape
}
)"));
  return program;
}

LoopStep& loop_of(Program& p) { return std::get<LoopStep>(p.steps.at(0).what); }

struct Change {
  const char* says;
  std::function<void(LoopStep&)> make;
};

void expect_found(const Program& program, const std::vector<Change>& changes) {
  ASSERT_EQ(find_fault(program), std::nullopt);
  for (const Change& c : changes) {
    Program changed = program;
    c.make(loop_of(changed));
    const std::string found = find_fault(changed).value_or("nothing");
    EXPECT_NE(found.find(c.says), std::string::npos) << c.says << ", but: " << found;
  }
}

using loop::StoredRead;
using loop::WrittenItem;

WrittenItem& item_of(LoopStep& s, WrittenItem::Kind kind) {
  for (WrittenItem& item : s.loop.body.items) {
    if (item.kind == kind) return item;
  }
  throw InternalError("there is no such item");
}
WrittenItem& pointwise(LoopStep& s) { return item_of(s, WrittenItem::Kind::Pointwise); }
WrittenItem& reduction(LoopStep& s) { return item_of(s, WrittenItem::Kind::Reduction); }
WrittenItem& product(LoopStep& s) { return item_of(s, WrittenItem::Kind::Product); }

TEST(LoopWritten, FindsPlansThatDoNotFit) {
  expect_found(
      sound(),
      {
          {"another size", [](LoopStep& s) { s.loop.plan.most_trips = 5; }},
          {"can be counted", [](LoopStep& s) { s.loop.plan.most_trips = -1; }},
          {"can be counted", [](LoopStep& s) { s.loop.plan.most_trips = Huge; }},
          {"no length", [](LoopStep& s) { s.loop.plan.most_trips.reset(); }},
          {"does not know", [](LoopStep& s) { s.loop.plan.conditional = true; }},
          {"does not exist", [](LoopStep& s) { s.loop.plan.carries[0].operand = 3; }},
          {"does not exist", [](LoopStep& s) { s.loop.plan.wholes[0] = -1; }},
          {"another number", [](LoopStep& s) { s.loop.plan.wholes.clear(); }},
          {"another size", [](LoopStep& s) { s.loop.plan.xs[0].array = 0; }},
          {"another size", [](LoopStep& s) { s.loop.plan.xs[0].rows.first = 1; }},
          {"does not exist", [](LoopStep& s) { s.loop.plan.xs[0].rows.step = -1; }},
          {"does not exist", [](LoopStep& s) { s.loop.plan.ys[0].rows = {0, Huge}; }},
          {"another size", [](LoopStep& s) { s.loop.plan.xs[0].rows = {Huge, 0}; }},
          {"two ways", [](LoopStep& s) { s.loop.plan.ys[0].array = 0; }},
          {"as it is", [](LoopStep& s) { s.loop.plan.ys[0].array = -1; }},
          {"no known pace", [](LoopStep& s) { s.loop.plan.carries[0].kept->pace.limit = 0; }},
          {"no known pace", [](LoopStep& s) { s.loop.plan.carries[0].kept->pace.start = -1; }},
          {"no known pace", [](LoopStep& s) { s.loop.plan.carries[0].kept->pace.add = 5; }},
          {"another size", [](LoopStep& s) { s.loop.plan.carries[0].kept->pace.add = 3; }},
          {"in one place", [](LoopStep& s) { s.loop.plan.carries[0].kept->rows.step = 0; }},
          {"does not exist", [](LoopStep& s) { s.loop.plan.carries[0].kept->rows.step = -1; }},
          {"another size", [](LoopStep& s) { s.loop.plan.carries[0].last = 0; }},
          {"does not exist", [](LoopStep& s) { s.loop.plan.zeroed = {2}; }},
          {"two ways", [](LoopStep& s) { s.loop.plan.trip_count = 0; }},
          {"writes to its operands",
           [](LoopStep& s) { s.operands[0].buffer = s.results[0].buffer; }},
      });
}

TEST(LoopWritten, FindsConditionsThatAreNone) {
  expect_found(sound_while(),
               {
                   {"does not know", [](LoopStep& s) { s.loop.condition.reset(); }},
                   {"without a bound", [](LoopStep& s) { s.loop.plan.most_trips.reset(); }},
                   {"another size", [](LoopStep& s) { s.loop.plan.carries[0].kept->pace = {}; }},
                   {"one i32",
                    [](LoopStep& s) {
                      s.loop.plan.carries[0].last = -1;
                      s.loop.plan.trip_count = 0;
                    }},
                   {"does not give one", [](LoopStep& s) { s.loop.condition->outputs.clear(); }},
                   {"another number",
                    [](LoopStep& s) {
                      s.loop.condition->inputs.clear();
                      s.loop.condition->items.clear();
                      s.loop.condition
                          ->storages[static_cast<std::size_t>(s.loop.condition->outputs[0])]
                          .elements = 0;
                    }},
               });
}

TEST(LoopWritten, FindsItemsThatReachOutside) {
  const auto first = [](WrittenItem& i) -> StoredRead& { return std::get<StoredRead>(i.reads[0]); };
  expect_found(
      sound(),
      {
          {"reads outside", [&](LoopStep& s) { first(pointwise(s)).layout.offset = 1; }},
          {"reads outside", [&](LoopStep& s) { first(pointwise(s)).layout.strides[0] = Huge; }},
          {"reads outside", [&](LoopStep& s) { first(product(s)).layout.strides[1] = -1; }},
          {"other axes", [&](LoopStep& s) { first(pointwise(s)).layout.strides.pop_back(); }},
          {"does not exist", [&](LoopStep& s) { first(pointwise(s)).storage = 99; }},
          {"that it fills",
           [&](LoopStep& s) { first(pointwise(s)).storage = pointwise(s).storage; }},
          {"nothing has filled",
           [](LoopStep& s) { std::swap(s.loop.body.items[0], s.loop.body.items[1]); }},
          {"writes outside", [](LoopStep& s) { pointwise(s).to.offset = 1; }},
          {"writes outside", [](LoopStep& s) { pointwise(s).to.strides.pop_back(); }},
          {"twice to one place", [](LoopStep& s) { pointwise(s).to.strides[0] = 0; }},
          {"may only read", [](LoopStep& s) { pointwise(s).storage = s.loop.body.inputs[0]; }},
          {"may only read", [](LoopStep& s) { pointwise(s).storage = -1; }},
          {"no known box", [](LoopStep& s) { pointwise(s).dims[0] = 0; }},
          {"no known box", [](LoopStep& s) { pointwise(s).dims[0] = Huge; }},
          {"another size", [](LoopStep& s) { reduction(s).reduced[1] = false; }},
          {"instruction that is none", [](LoopStep& s) { reduction(s).reduced.pop_back(); }},
          {"instruction that is none", [](LoopStep& s) { reduction(s).reduce = ReduceKind::Mean; }},
          {"gives another type", [](LoopStep& s) { reduction(s).instr.dtype = DType::F64; }},
          {"of another type", [](LoopStep& s) { product(s).instr.dtype = DType::F64; }},
          {"instruction that is none", [](LoopStep& s) { product(s).dims.pop_back(); }},
          {"instruction that is none",
           [](LoopStep& s) { product(s).reads[1] = loop::SplatRead{DType::F32, 1.0}; }},
          {"instruction that is none", [](LoopStep& s) { pointwise(s).reads.pop_back(); }},
          {"instruction that is none",
           [](LoopStep& s) { pointwise(s).instr.code = loop::Code::Load; }},
          {"instruction that is none", [](LoopStep& s) { pointwise(s).instr.kind = 255; }},
          {"not defined",
           [](LoopStep& s) {
             pointwise(s).instr.kind = static_cast<std::uint8_t>(BinaryKind::BitwiseAnd);
           }},
          {"not defined",
           [](LoopStep& s) { pointwise(s).reads[1] = loop::SplatRead{DType::F64, 1.0}; }},
          {"than it says",
           [](LoopStep& s) {
             pointwise(s).reads[1] = loop::SplatRead{DType::F32, std::int64_t{1}};
           }},
          {"no known numbers",
           [](LoopStep& s) {
             pointwise(s).reads[1] = loop::SequenceRead{DType::F32, {Huge, {1, 1}}};
           }},
          {"type or size", [](LoopStep& s) { s.loop.body.storages[0].dtype = DType::C64; }},
          {"type or size", [](LoopStep& s) { s.loop.body.storages[0].elements = -1; }},
          {"an input", [](LoopStep& s) { s.loop.body.inputs[0] = s.loop.body.inputs[1]; }},
          {"an output", [](LoopStep& s) { s.loop.body.outputs[0] = s.loop.body.inputs[0]; }},
          {"an output", [](LoopStep& s) { s.loop.body.outputs[0] = s.loop.body.outputs[1]; }},
          {"nothing has filled", [](LoopStep& s) { s.loop.body.items.pop_back(); }},
      });
}

TEST(LoopWritten, FindsConstantsOfAnotherSize) {
  expect_found(sound(), {{"a constant", [](LoopStep& s) {
                            for (loop::Storage& storage : s.loop.body.storages) {
                              if (storage.constant) storage.elements = 5;
                            }
                          }}});
}

}  // namespace
}  // namespace ricci::testing::loop_written_test
