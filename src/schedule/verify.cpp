#include "ricci/compiler/schedule/verify.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "ricci/op/ops.h"
#include "ricci/op/table.h"
#include "ricci/support/checked.h"
#include "ricci/support/error.h"

#include "loop/reach.h"
#include "schedule/calls.h"
#include "schedule/launches_apart.h"
#include "schedule/results_in_place.h"
#include "schedule/step_buffers.h"
#include "schedule/verify_control.h"
#include "schedule/verify_memory.h"

namespace ricci {
namespace {

struct Fault {
  std::string what;
};

void require(bool holds, const char* what) {
  if (!holds) throw Fault{what};
}

// A damaged program may have sizes that are no numbers.
std::int64_t product(std::int64_t a, std::int64_t b) {
  const std::optional<std::int64_t> exact = try_mul(a, b);
  require(exact.has_value(), "a size does not fit in 64 bits");
  return *exact;
}

using loop::Reach;

class Checker {
 public:
  Checker(const Program& program, const schedule::Target& target)
      : program_(program), target_(target), is_given_(program.buffers.size(), false) {}

  void run() {
    require(program_.arena_bytes >= 0 && program_.arena_bytes <= MostBytes,
            "its arena is larger than any memory, or negative");
    for (const BufferId b : program_.inputs) require(has_role(b, Buffer::Role::Input), Input);
    for (const BufferId b : program_.outputs) require(has_role(b, Buffer::Role::Output), Output);
    for (const auto* ports : {&program_.inputs, &program_.outputs}) {
      for (const BufferId b : *ports) is_given_[static_cast<std::size_t>(b)] = true;
    }
    for (const Buffer& b : program_.buffers) {
      require(b.role != Buffer::Role::Seed || (b.dtype == DType::I64 && b.elements == 1),
              "the buffer of the seed is not one i64");
    }
    for (const loop::Kernel& k : program_.kernels) check(k);
    for (std::size_t s = 0; s < program_.steps.size(); ++s) {
      try {
        std::visit([&](const auto& what) { check(what); }, program_.steps[s].what);
      } catch (const Fault& fault) {
        throw Fault{fmt::format("step {} ({}): {}", s, program_.steps[s].label, fault.what)};
      }
    }
    if (auto fault = schedule::find_memory_fault(program_)) throw Fault{std::move(*fault)};
  }

 private:
  static constexpr std::int64_t MostBytes = std::int64_t{1} << 60;
  static constexpr const char* Input = "the buffer of an input is not marked as an input";
  static constexpr const char* Output = "the buffer of an output is not marked as an output";
  static constexpr const char* OtherType = "a buffer is used as if it were of another type";

  [[nodiscard]] bool exists(BufferId b) const {
    return b >= 0 && static_cast<std::size_t>(b) < program_.buffers.size();
  }
  [[nodiscard]] const Buffer& buffer(BufferId b) const {
    return program_.buffers[static_cast<std::size_t>(b)];
  }
  // What a step uses must be in memory; a temporary that fusion left over has no place.
  void use(BufferId b) const {
    require(exists(b), "a step uses a buffer that does not exist");
    const Buffer& used = buffer(b);
    const bool is_port = used.role == Buffer::Role::Input || used.role == Buffer::Role::Output;
    require(!is_port || is_given_[static_cast<std::size_t>(b)],
            "a step uses an input or output that nobody gives");
    if (used.role != Buffer::Role::Temporary) return;
    if (used.offset % target_.alignment() != 0) {
      throw Fault{
          fmt::format("a buffer does not begin at a multiple of {} bytes", target_.alignment())};
    }
    require(used.offset >= 0 && used.bytes() <= program_.arena_bytes &&
                used.offset <= program_.arena_bytes - used.bytes(),
            "a buffer lies outside the arena");
  }
  [[nodiscard]] bool has_role(BufferId b, Buffer::Role role) const {
    return exists(b) && buffer(b).role == role;
  }

  static void check(const loop::Kernel& k) {
    constexpr std::int64_t MostChunks = std::int64_t{1} << 24;
    require(k.kept <= k.outer && k.outer <= k.extents.size(), "a kernel's axes are out of order");
    require(std::ranges::all_of(k.extents, [](std::int64_t n) { return n >= 0; }),
            "a kernel has an axis of negative size");
    std::int64_t elements = 1;
    for (const std::int64_t n : k.extents)
      elements = product(elements, std::max<std::int64_t>(n, 1));
    require(k.chunks >= 1 && k.chunks <= MostChunks,
            "the number of chunks of a kernel's accumulated rows is out of range");
    (void)product(k.kept_rows(), k.chunks);
    require(!k.flat || (k.extents.size() == 1 && k.outer == 0 && k.accumulators.empty()),
            "a flat kernel has more than one row");
    require(k.work >= 0, "a kernel's work is negative");
  }

  void check(const KernelStep& s) const {
    require(!s.launches.empty(), "a step launches nothing");
    for (const Launch& launch : s.launches) check(launch);
    require(schedule::launches_apart(program_, s), "launches side by side depend on each other");
  }

  static bool overlap(const Buffer& a, const Buffer& b) {
    return a.role == Buffer::Role::Temporary && b.role == Buffer::Role::Temporary &&
           a.offset < b.offset + b.bytes() && b.offset < a.offset + a.bytes();
  }

  void check(const Launch& s) const {
    require(s.kernel < program_.kernels.size(), "a step launches a kernel that does not exist");
    const loop::Kernel& k = program_.kernels[s.kernel];
    require(s.buffers.size() == k.arguments.size(),
            "a step hands a kernel another number of buffers than it has arguments");
    for (std::size_t i = 0; i < s.buffers.size(); ++i) {
      const bool local = k.arguments[i].role == loop::ArgumentRole::Local;
      require(!local || s.buffers[i] < 0,
              "a step hands over a buffer for an array that a kernel has to itself");
      if (local) continue;
      use(s.buffers[i]);
      require(buffer(s.buffers[i]).dtype == k.arguments[i].dtype, OtherType);
      if (k.arguments[i].role == loop::ArgumentRole::Out) check_writable(s.buffers[i]);
    }
    for (const loop::Accumulator& acc : k.accumulators) check(acc, k, s);
    // A kernel that was read has no code: that is machine code by now.
    for (const loop::Instr& instr : k.code) {
      if (instr.code == loop::Code::Load) check(instr.access, k, s);
    }
    for (const loop::Stage& stage : k.stages) {
      for (const loop::Store& store : stage.stores) check(store.access, k, s);
    }
  }

  void check_writable(BufferId b) const {
    const Buffer::Role role = buffer(b).role;
    require(role == Buffer::Role::Output || role == Buffer::Role::Temporary,
            "a step writes to a buffer that may only be read");
  }

  // Every tile adds up in the local array, then writes at its own place of the other.
  void check(const loop::Accumulator& acc, const loop::Kernel& k, const Launch& s) const {
    const auto local = static_cast<std::size_t>(acc.local);
    const auto argument = static_cast<std::size_t>(acc.argument);
    const std::int64_t length = acc.per_element ? k.row_elements() : 1;
    if (acc.running) {
      require(local < s.buffers.size() && s.buffers[local] < 0 && k.chunks == 1 &&
                  k.arguments[local].elements >= length,
              "a kernel has no room for its running totals");
      return;
    }
    require(local < s.buffers.size() && s.buffers[local] < 0 && argument < s.buffers.size() &&
                s.buffers[argument] >= 0,
            "a kernel accumulates into an argument that does not exist");
    const std::int64_t all = product(product(k.kept_rows(), k.chunks), length);
    require(k.arguments[local].elements >= length && buffer(s.buffers[argument]).elements >= all,
            "a kernel accumulates outside a buffer");
  }

  // A kernel that runs on parts of a call's operand or result while others are computed.
  void check_attached(const Launch& launch, const BufferView& passed) const {
    const loop::Kernel& k = program_.kernels[launch.kernel];
    require(passed.buffer >= 0 && k.accumulators.empty() &&
                k.rows() * k.row_elements() == *passed.type.numel(),
            "a kernel attached to a call does not cover the array it is attached to");
  }
  void check_before(const CallStep& s, const Launch& before) const {
    require(!s.operands.empty(), "a kernel is attached before a call that has no operands");
    check_attached(before, s.operands[0]);
    const BufferId made = s.operands[0].buffer;
    schedule::for_arguments(program_, before, [&](BufferId mine, bool written) {
      const auto apart = [&](BufferId b) {
        require(b < 0 || (b != mine && !overlap(buffer(b), buffer(mine))),
                "a kernel attached before a call shares memory with what the call uses");
      };
      for (const BufferView& v : s.results) apart(v.buffer);
      for (std::size_t k = 0; written && k < s.operands.size(); ++k) {
        if (k > 0 || mine != made) apart(s.operands[k].buffer);
      }
      if (!s.after) return;
      schedule::for_arguments(program_, *s.after, [&](BufferId b, bool also_written) {
        if (written || also_written) apart(b);
      });
    });
  }
  void check_after(const CallStep& s, const Launch& after) const {
    require(!s.results.empty(), "a kernel is attached after a call that has no results");
    check_attached(after, s.results[0]);
    schedule::for_arguments(program_, after, [&](BufferId written, bool is_written) {
      if (!is_written) return;
      for (const BufferView& v : s.operands) {
        require(v.buffer != written && !overlap(buffer(v.buffer), buffer(written)),
                "a kernel attached after a call overwrites an operand of the call");
      }
    });
  }

  void check(const loop::Access& a, const loop::Kernel& k, const Launch& s) const {
    if (std::ranges::find(k.extents, 0) != k.extents.end()) return;
    const auto argument = static_cast<std::size_t>(a.argument);
    require(argument < s.buffers.size(),
            "a kernel reads or writes an argument that does not exist");
    Reach reach(a.offset);
    std::vector<bool> guarded(a.strides.size(), false);
    for (const loop::Guard& g : a.guards) {
      if (add_guarded(reach, a, g, k, guarded) == Reads::Never) return;
    }
    for (std::size_t axis = 0; axis < a.strides.size(); ++axis) {
      if (!guarded[axis]) reach.add(a.strides[axis], k.extents[axis]);
    }
    for (const loop::Term& t : a.terms) reach.add(t.stride, t.limit);
    const BufferId b = s.buffers[argument];
    require(reach.is_inside(b < 0 ? k.arguments[argument].elements : buffer(b).elements),
            "a kernel reads or writes outside a buffer");
  }

  enum class Reads : std::uint8_t { Never, Sometimes };

  // Axes along which the place is a multiple of what the guard keeps in [0, limit), as far as the
  // kernel walks at all.
  static Reads add_guarded(Reach& reach, const loop::Access& a, const loop::Guard& g,
                           const loop::Kernel& k, std::vector<bool>& guarded) {
    require(g.strides.size() == a.strides.size(), "a guard does not have one stride per axis");
    Reach walked(g.offset);
    for (std::size_t i = 0; i < g.strides.size(); ++i) walked.add(g.strides[i], k.extents[i]);
    if (!walked.is_known()) return Reads::Sometimes;
    const std::int64_t low = std::max<std::int64_t>(0, walked.low());
    const std::int64_t high = std::min(g.limit - 1, walked.high());
    if (low > high) return Reads::Never;
    const auto first = std::ranges::find_if(g.strides, [](std::int64_t s) { return s != 0; });
    if (first == g.strides.end()) return Reads::Sometimes;
    const auto axis = static_cast<std::size_t>(first - g.strides.begin());
    if (a.strides[axis] % *first != 0) return Reads::Sometimes;
    const std::int64_t times = a.strides[axis] / *first;
    for (std::size_t i = 0; i < g.strides.size(); ++i) {
      if (g.strides[i] == 0) continue;
      if (guarded[i] || try_mul(g.strides[i], times) != a.strides[i]) return Reads::Sometimes;
    }
    for (std::size_t i = 0; i < g.strides.size(); ++i) guarded[i] = guarded[i] || g.strides[i] != 0;
    const std::optional<std::int64_t> back = try_mul(g.offset, -1);
    const std::optional<std::int64_t> from = back ? try_add(low, *back) : std::nullopt;
    reach.move(from ? try_mul(*from, times) : std::nullopt);
    reach.add(times, high - low + 1);
    return Reads::Sometimes;
  }

  void check(const CallStep& s) const {
    check_views(s.operands, s.results);
    check_types(s);
    check_places(s);
    // What comes before is compared with what comes after: both have to be sound for that.
    schedule::for_attached(s, [&](const Launch& launch) { check(launch); });
    if (s.before) check_before(s, *s.before);
    if (s.after) check_after(s, *s.after);
  }

  // Kernels write results one element behind the other, or as the device says; and one that wrote
  // to what it reads could change indices it has found to be good.
  void check_places(const CallStep& s) const {
    require(std::ranges::any_of(s.results, [](const BufferView& v) { return v.buffer >= 0; }),
            "a call makes nothing that is wanted");
    for (std::size_t r = 0; r < s.results.size(); ++r) {
      const BufferView& result = s.results[r];
      if (result.buffer < 0) continue;
      require(schedule::is_row_major(result) ||
                  target_.writes_view(s.call, r, result.type, result.layout),
              "a result of a call is not row-major");
      for (const BufferView& v : s.operands) {
        require(v.buffer != result.buffer, "a call writes to its operands");
      }
      for (std::size_t other = 0; other < r; ++other) {
        require(s.results[other].buffer != result.buffer ||
                    schedule::lie_apart(s.results[other], result),
                "a call writes two results to one place");
      }
    }
  }

  // As many operands as the op takes, and results as it gives, of the types it gives; and the role
  // that it has on these, or none.
  void check_types(const CallStep& s) const {
    require(s.reference < program_.references.size(), "a call computes what nothing says");
    const Op& op = op_of(program_.reference_of(s));
    if (auto fault = schedule::find_type_fault(op, s.operands, s.results, program_.registry())) {
      throw Fault{std::move(*fault)};
    }
    require(std::holds_alternative<loop::HostCall>(s.call) ||
                s.call == schedule::call_on(op, s.operands, s.results),
            "a call is not what its op is on these arrays");
  }

  void check(const ControlStep& s) const {
    check_views(s.operands, s.results);
    use(s.workspace);
    require(has_role(s.workspace, Buffer::Role::Temporary), "a body works in what is not its own");
    for (const auto& pair : s.carries) {
      for (const BufferId b : pair) use(b);
    }
    for (const auto& [role, body] : s.bodies) {
      Checker(*body, target_).run();
      require(body->arena_bytes <= buffer(s.workspace).bytes(),
              "the workspace of a control step is too small for a body");
    }
    if (auto fault = schedule::find_control_fault(program_, s)) throw Fault{std::move(*fault)};
  }

  void check(const LoopStep& s) const {
    check_views(s.operands, s.results);
    if (auto fault = schedule::find_loop_fault(s)) throw Fault{std::move(*fault)};
  }

  void check_views(const std::vector<BufferView>& operands,
                   const std::vector<BufferView>& results) const {
    for (const BufferView& v : operands) check(v, true);
    for (const BufferView& v : results) {
      check(v, false);
      if (v.buffer >= 0) check_writable(v.buffer);
    }
  }
  void check(const BufferView& v, bool needed) const {
    require(v.layout.strides.size() == v.type.rank(), "a view does not have one stride per axis");
    if (!needed && v.buffer < 0) return;
    use(v.buffer);
    require(buffer(v.buffer).dtype == v.type.dtype, OtherType);
    const StaticDims dims = v.type.static_dims();
    if (std::ranges::find(dims, 0) != dims.end()) return;
    Reach reach(v.layout.offset);
    for (std::size_t axis = 0; axis < dims.size(); ++axis) {
      reach.add(v.layout.strides[axis], dims[axis]);
    }
    require(reach.is_inside(buffer(v.buffer).elements), "a view reaches outside its buffer");
  }

  const Program& program_;
  const schedule::Target& target_;
  std::vector<bool> is_given_;  // inputs and outputs that are in their lists
};

}  // namespace

std::optional<std::string> find_fault(const Program& program, const schedule::Target& target) {
  try {
    Checker(program, target).run();
    return std::nullopt;
  } catch (Fault& fault) {
    return std::move(fault.what);
  }
}

void verify(const Program& program, const schedule::Target& target) {
  if (const std::optional<std::string> fault = find_fault(program, target)) {
    throw InternalError(fmt::format("the program '{}' is malformed: {}", program.name, *fault));
  }
}

}  // namespace ricci
