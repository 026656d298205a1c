#include "schedule/results_in_place.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "schedule/step_buffers.h"

namespace ricci::schedule {
namespace {

constexpr std::size_t NoStep = static_cast<std::size_t>(-1);

// Where a kernel that does nothing else puts the elements of its first argument, one after another.
struct Move {
  std::vector<std::int64_t> extents;
  loop::Layout to;
};

std::optional<Move> plain_move(const loop::Kernel& k) {
  if (k.arguments.size() != 2 || k.stages.size() != 1 || k.code.size() != 1) return std::nullopt;
  if (!k.reductions.empty() || !k.accumulators.empty()) return std::nullopt;
  const loop::Stage& stage = k.stages[0];
  const loop::Instr& load = k.code[0];
  if (!stage.per_element || stage.stores.size() != 1 || load.code != loop::Code::Load) {
    return std::nullopt;
  }
  const loop::Access& from = load.access;
  const loop::Access& to = stage.stores[0].access;
  const bool plain =
      from.terms.empty() && from.guards.empty() && to.terms.empty() && to.guards.empty() &&
      from.offset == 0 && loop::is_contiguous({0, from.strides}, k.extents) &&
      k.arguments[0].dtype == k.arguments[1].dtype && from.argument == 0 && to.argument == 1;
  if (!plain) return std::nullopt;
  return Move{k.extents, {to.offset, to.strides}};
}

class Placer {
 public:
  Placer(Program& program, const std::vector<std::pair<BufferId, BufferId>>& replaced,
         const Target& target)
      : program_(program), target_(target), uses_(program.buffers.size()) {
    for (std::size_t s = 0; s < program.steps.size(); ++s) {
      for_uses(program, program.steps[s],
               [&](BufferId b, bool written) { uses_[at(b)].push_back({s, written}); });
    }
    for (const auto& [output, input] : replaced) {
      uses_[at(output)].clear();
      uses_[at(input)].clear();
    }
  }

  void run() {
    std::vector<bool> gone(program_.steps.size(), false);
    for (std::size_t c = 0; c < program_.steps.size(); ++c) {
      auto* call = std::get_if<CallStep>(&program_.steps[c].what);
      if (call == nullptr || call->before || call->after) continue;
      for (std::size_t r = 0; r < call->results.size(); ++r) {
        const std::size_t mover = placed(c, *call, r);
        if (mover != NoStep) gone[mover] = true;
      }
    }
    if (std::ranges::none_of(gone, [](bool g) { return g; })) return;
    std::vector<Step> steps;
    for (std::size_t s = 0; s < gone.size(); ++s) {
      if (!gone[s]) steps.push_back(std::move(program_.steps[s]));
    }
    program_.steps = std::move(steps);
  }

 private:
  struct Use {
    std::size_t step = 0;
    bool written = false;
  };
  static std::size_t at(BufferId b) { return static_cast<std::size_t>(b); }

  // Puts result `r` of the call in its place, if it can: then the step that did so is of no use.
  std::size_t placed(std::size_t c, CallStep& call, std::size_t r) {
    BufferView& result = call.results[r];
    if (result.buffer < 0 || !is_temporary(result.buffer)) return NoStep;
    const std::vector<Use>& uses = uses_[at(result.buffer)];
    if (uses.size() != 2 || uses[0].step != c || uses[1].step == c || uses[1].written) {
      return NoStep;
    }
    const std::size_t mover = uses[1].step;
    const auto* kernels = std::get_if<KernelStep>(&program_.steps[mover].what);
    if (kernels == nullptr || kernels->launches.size() != 1) return NoStep;
    const Launch& launch = kernels->launches[0];
    const std::optional<Move> move = plain_move(program_.kernels[launch.kernel]);
    if (!move) return NoStep;
    const StaticDims dims = result.type.static_dims();
    const std::optional<loop::Layout> layout = loop::reshaped(move->to, move->extents, dims);
    if (!layout || !target_.writes_view(call.call, r, result.type, *layout)) return NoStep;
    const BufferView there{launch.buffers[1], result.type, *layout};
    if (!is_free(there, c, mover, call)) return NoStep;
    result = there;
    for (Use& u : uses_[at(there.buffer)]) {
      if (u.step == mover) u.step = c;
    }
    return mover;
  }

  [[nodiscard]] bool is_temporary(BufferId b) const {
    return program_.buffers[at(b)].role == Buffer::Role::Temporary;
  }

  // Nobody looks at the array before its part was filled, or writes to it between the call and
  // then.
  [[nodiscard]] bool is_free(const BufferView& there, std::size_t c, std::size_t mover,
                             const CallStep& call) const {
    const std::vector<Use>& uses = uses_[at(there.buffer)];
    if (uses.empty()) return false;  // what lies where an input does
    const auto in_between = [&](const Use& u) {
      return u.step < mover && (!u.written || u.step > c);
    };
    if (std::ranges::any_of(uses, in_between)) return false;
    return std::ranges::all_of(call.results, [&](const BufferView& other) {
      return other.buffer != there.buffer || lie_apart(other, there);
    });
  }

  Program& program_;
  const Target& target_;
  std::vector<std::vector<Use>> uses_;  // none of what lies where something else does
};

// Of the axes from `first` on: the number of places from the first element to the last.
std::int64_t reach_from(const BufferView& v, std::size_t first) {
  const StaticDims dims = v.type.static_dims();
  std::int64_t reach = 0;
  for (std::size_t a = first; a < dims.size(); ++a) reach += (dims[a] - 1) * v.layout.strides[a];
  return reach;
}

bool has_negative(const BufferView& v) {
  return std::ranges::any_of(v.layout.strides, [](std::int64_t s) { return s < 0; });
}

}  // namespace

// Outer strides are multiples of a number: by what is left over, the inner parts lie apart.
bool lie_apart(const BufferView& a, const BufferView& b) {
  if (has_negative(a) || has_negative(b)) return false;
  const std::size_t rank = std::min(a.layout.strides.size(), b.layout.strides.size());
  const StaticDims a_dims = a.type.static_dims();
  const StaticDims b_dims = b.type.static_dims();
  std::int64_t divisor = 0;
  for (std::size_t outer = 0; outer <= rank; ++outer) {
    const std::int64_t a_span = reach_from(a, outer);
    const std::int64_t b_span = reach_from(b, outer);
    const bool one_line = divisor == 0;  // no outer axes
    const std::int64_t low = one_line ? a.layout.offset : a.layout.offset % divisor;
    const std::int64_t other = one_line ? b.layout.offset : b.layout.offset % divisor;
    const bool wraps = !one_line && (low + a_span >= divisor || other + b_span >= divisor);
    if (!wraps && (low + a_span < other || other + b_span < low)) return true;
    if (outer == rank) break;
    if (a_dims[outer] > 1) divisor = std::gcd(divisor, a.layout.strides[outer]);
    if (b_dims[outer] > 1) divisor = std::gcd(divisor, b.layout.strides[outer]);
  }
  return false;
}

void put_results_in_place(Program& program,
                          const std::vector<std::pair<BufferId, BufferId>>& replaced,
                          const Target& target) {
  Placer(program, replaced, target).run();
}

}  // namespace ricci::schedule
