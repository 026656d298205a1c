// A program for a device (LIR): loop kernels, calls, loops and branches over planned buffers.
// Nothing differentiates it and nothing changes its plan; it names no instruction set.
//
//   Program program = make_program(graph);       // graph with static types
//   std::puts(to_string(program).c_str());
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ricci/compiler/loop/call.h"
#include "ricci/compiler/loop/kernel.h"
#include "ricci/compiler/loop/layout.h"
#include "ricci/compiler/loop/loop_plan.h"
#include "ricci/compiler/loop/written_loop.h"
#include "ricci/ir/graph.h"

namespace ricci {

namespace schedule {
class Target;
}

using BufferId = std::int32_t;

/// An array the program reads or writes.
struct Buffer {
  enum class Role : std::uint8_t {
    Input,      ///< handed in by the caller: inputs and params, in order of creation
    Output,     ///< handed in by the caller to be filled
    Constant,   ///< part of the program
    Temporary,  ///< a part of the arena
    Seed,       ///< one i64 that the device keeps: the run's seed, for random numbers
  };
  Role role = Role::Temporary;
  DType dtype = DType::F32;
  std::int64_t elements = 0;
  std::int32_t index = -1;  ///< which input or output
  std::int64_t offset = 0;  ///< of a temporary, in bytes
  Tensor constant = {};

  [[nodiscard]] std::int64_t bytes() const { return elements * size_of(dtype); }
};

/// A buffer, or elements of it, under a shape.
struct BufferView {
  BufferId buffer = -1;  ///< -1: a result nobody wants
  Type type;
  loop::Layout layout;
};

struct Program;

/// What a step, or one launch of it, computes.
struct Origin {
  std::vector<NodeId> nodes;  ///< of the prepared graph
  std::string label;          ///< for profiles: ops, and the user's own words
  std::string apart_because;  ///< why it is not part of an earlier kernel; may be empty
  SourcePosition where;
};

/// A kernel and what it is given.
struct Launch {
  std::size_t kernel = 0;
  std::vector<BufferId> buffers;  ///< one per argument; -1 for local ones
  Origin from = {};
};

/// One kernel, or several side by side: no one writes where another reads or writes, so their tiles
/// may run in any order.
struct KernelStep {
  std::vector<Launch> launches;
};

/// What a device does with a kernel of its own, by its role; a host call where it has none.
struct CallStep {
  loop::Call call;
  std::size_t reference = 0;  ///< what it computes, among the program's references
  std::vector<BufferView> operands;
  std::vector<BufferView> results;
  /// A kernel whose element e is element e of the first operand: a device may run its rows just
  /// before the part of the call that reads them, or all of them before the call begins.
  std::optional<Launch> before = {};
  /// A kernel whose element e reads element e of the first result and no other: a device may run
  /// its rows as soon as theirs are there, or all of them when the call is done.
  std::optional<Launch> after = {};
};

/// Runs one of two bodies: the first when every element of operand 0 is something else than 0. Both
/// take the other operands and give the results.
struct Branch {};

/// A branch or a loop whose bodies are programs. A body's inputs are its buffers of role Input; its
/// temporaries live in `workspace`. Operands are row-major. All that happens is copies, zeros,
/// flags that are looked at and bodies that run, between buffers that stay where they are.
struct ControlStep {
  std::variant<Branch, loop::LoopPlan> how;
  std::vector<BufferView> operands;
  std::vector<BufferView> results;
  /// What they are called, and the programs: the two of a branch, or the body of a loop, behind
  /// which there may be its condition.
  std::vector<std::pair<std::string, std::shared_ptr<const Program>>> bodies;
  BufferId workspace = -1;
  /// Loops: for every carry two buffers, which the trips read and fill in turn.
  std::vector<std::array<BufferId, 2>> carries = {};
};

/// A loop with a small body, written out. Operands and results are row-major.
struct LoopStep {
  loop::WrittenLoop loop;
  std::vector<BufferView> operands;
  std::vector<BufferView> results;
};

/// Its origin speaks for all its launches.
struct Step : Origin {
  std::variant<KernelStep, CallStep, ControlStep, LoopStep> what;
};

struct Program {
  std::string name;
  std::vector<Buffer> buffers;
  std::vector<loop::Kernel> kernels;
  /// What its calls compute, in the words of the graph: for those who check a call, name it or have
  /// the reference's kernel run it. Calls that compute the same share one.
  std::vector<loop::Reference> references;
  std::vector<Step> steps;
  std::vector<BufferId> inputs;  ///< inputs and params, in order of creation
  std::vector<BufferId> outputs;
  std::int64_t arena_bytes = 0;        ///< temporaries, after planning
  std::int64_t live_bytes = 0;         ///< the most that is alive at once: no plan needs less
  std::shared_ptr<const Graph> graph;  ///< what it was made from, prepared

  [[nodiscard]] const loop::Reference& reference_of(const CallStep& call) const {
    return references[call.reference];
  }
  /// Where ops are found that were registered at run time.
  [[nodiscard]] const Registry& registry() const {
    return graph ? graph->registry() : default_registry();
  }
};

/// An output whose buffer is that of an input: the run replaces the input's value.
struct Donated {
  std::size_t output = 0;
  std::size_t input = 0;  ///< among inputs and params, in order of creation
};

struct ProgramOptions {
  bool fuse = true;
  const schedule::Target* target = nullptr;  ///< the device it is for; absent: `plain_target()`
  std::vector<Donated> donated = {};
  /// Bytes the arena should take: values are computed again instead of kept until it fits or
  /// nothing more can be done, which changes no bit of a result. 0: as many as it needs.
  std::int64_t memory_budget = 0;
};

/// Prepares, fuses, orders and plans. `graph` must have static types; UserError otherwise. Whether
/// a budget was met is for the caller to see: `arena_bytes`.
[[nodiscard]] Program make_program(const Graph& graph, const ProgramOptions& options = {});

/// What the scheduler is given: composites expanded, gradients of loops as loops, means as sums.
[[nodiscard]] Graph prepare_for_device(const Graph& graph, const ProgramOptions& options = {});
/// The program of a graph that was prepared with the same options: `make_program` does both.
[[nodiscard]] Program program_of_prepared(Graph prepared, const ProgramOptions& options = {});

/// Readable text: buffers, steps, kernels.
[[nodiscard]] std::string to_string(const Program& program);

}  // namespace ricci
