#include "schedule/attach.h"

#include <algorithm>
#include <optional>

#include "schedule/step_buffers.h"

namespace ricci::schedule {
namespace {

// How many steps a kernel is moved at most: what it reads or writes lives so much longer.
constexpr std::size_t Soon = 8;

// Does element e of the kernel see element e of the argument and no other?
bool reads_in_order(const loop::Kernel& k, std::size_t argument) {
  const std::vector<std::int64_t> in_order = loop::contiguous(k.extents).strides;
  return std::ranges::all_of(k.code, [&](const loop::Instr& i) {
    if (i.code != loop::Code::Load || i.access.argument != static_cast<std::int32_t>(argument)) {
      return true;
    }
    return i.per_element && i.access.offset == 0 && i.access.terms.empty() &&
           i.access.guards.empty() && i.access.strides == in_order;
  });
}

// Does element e of the kernel write element e of the argument and no other? Perhaps in several
// stages: values wait there for later ones.
bool writes_in_order(const loop::Kernel& k, std::size_t argument) {
  const std::vector<std::int64_t> in_order = loop::contiguous(k.extents).strides;
  bool stored = false;
  for (const loop::Stage& stage : k.stages) {
    for (const loop::Store& store : stage.stores) {
      const loop::Access& a = store.access;
      if (a.argument != static_cast<std::int32_t>(argument)) continue;
      stored = true;
      if (!stage.per_element || a.offset != 0 || !a.terms.empty() || a.strides != in_order) {
        return false;
      }
    }
  }
  return stored;
}

// May it meet a number it can do nothing with?
bool can_fault(const loop::Kernel& k) {
  const auto checked = [](const loop::Term& t) { return !t.clamp; };
  return std::ranges::any_of(k.code, [&](const loop::Instr& i) {
    return loop::is_partial(i) || std::ranges::any_of(i.access.terms, checked);
  });
}

class Attacher {
 public:
  Attacher(Program& program, const std::vector<std::pair<BufferId, BufferId>>& replaced,
           const Target& target)
      : program_(program),
        target_(target),
        place_(program.buffers.size()),
        readers_(program.buffers.size(), 0) {
    for (std::size_t b = 0; b < place_.size(); ++b) place_[b] = static_cast<BufferId>(b);
    for (const auto& [output, input] : replaced) place_[at(output)] = input;
    for (const Step& step : program.steps) {
      for_reads(step, [&](BufferId b) { ++readers_[at(b)]; });
    }
  }

  void run() {
    std::vector<bool> gone(program_.steps.size(), false);
    for (std::size_t c = 0; c < program_.steps.size(); ++c) {
      const auto* call = std::get_if<CallStep>(&program_.steps[c].what);
      if (call == nullptr || call->results[0].buffer < 0) continue;
      if (target_.runs_kernel_behind(call->call)) {
        if (const auto k = reader(c, gone)) {
          attach_after(c, *k);
          gone[*k] = true;
        }
      }
      if (target_.runs_in_parts(call->call)) {
        if (const auto k = maker(c, gone)) {
          attach_before(c, *k);
          gone[*k] = true;
        }
      }
    }
    std::vector<Step> steps;
    for (std::size_t s = 0; s < gone.size(); ++s) {
      if (!gone[s]) steps.push_back(std::move(program_.steps[s]));
    }
    program_.steps = std::move(steps);
  }

 private:
  static std::size_t at(BufferId b) { return static_cast<std::size_t>(b); }

  template <class F>
  void for_reads(const Step& step, F&& f) const {
    for_uses(program_, step, [&](BufferId b, bool written) {
      if (!written) f(b);
    });
  }
  template <class F>
  void for_writes(const Step& step, F&& f) const {
    for_uses(program_, step, [&](BufferId b, bool written) {
      if (written) f(b);
    });
  }

  // The first kernel that reads what call `c` makes, if it comes soon and can run with the call.
  [[nodiscard]] std::optional<std::size_t> reader(std::size_t c,
                                                  const std::vector<bool>& gone) const {
    const BufferId made = std::get<CallStep>(program_.steps[c].what).results[0].buffer;
    const std::size_t end = std::min(program_.steps.size(), c + 1 + Soon);
    for (std::size_t s = c + 1; s < end; ++s) {
      if (gone[s]) continue;
      bool reads = false;
      for_reads(program_.steps[s], [&](BufferId b) { reads = reads || b == made; });
      if (!reads) continue;
      if (fits(program_.steps[s], made) && can_move(c, s, gone)) return s;
      return std::nullopt;
    }
    return std::nullopt;
  }

  // The kernel that makes the first operand of call `c`, if it comes soon before it and can run
  // with the call.
  [[nodiscard]] std::optional<std::size_t> maker(std::size_t c,
                                                 const std::vector<bool>& gone) const {
    const auto& call = std::get<CallStep>(program_.steps[c].what);
    const BufferView& wanted = call.operands[0];
    const std::int64_t elements = program_.buffers[at(wanted.buffer)].elements;
    if (*wanted.type.numel() != elements ||
        !loop::is_contiguous(wanted.layout, wanted.type.static_dims())) {
      return std::nullopt;
    }
    const std::size_t first = c - std::min(c, Soon);
    for (std::size_t s = c; s-- > first;) {
      if (gone[s]) continue;
      bool makes = false;
      for_writes(program_.steps[s], [&](BufferId b) { makes = makes || b == wanted.buffer; });
      if (!makes) continue;
      if (fits(program_.steps[s], wanted.buffer) && can_wait(s, c, gone)) return s;
      return std::nullopt;
    }
    return std::nullopt;
  }

  // A kernel that goes through the elements of a buffer in order.
  [[nodiscard]] bool fits(const Step& step, BufferId buffer) const {
    const auto* kernels = std::get_if<KernelStep>(&step.what);
    if (kernels == nullptr) return false;
    const Launch& launch = kernels->launches.front();
    const loop::Kernel& k = program_.kernels[launch.kernel];
    const std::int64_t elements = program_.buffers[at(buffer)].elements;
    if (elements == 0 || !k.accumulators.empty() || k.rows() * k.row_elements() != elements) {
      return false;
    }
    for (std::size_t a = 0; a < launch.buffers.size(); ++a) {
      if (launch.buffers[a] != buffer) continue;
      const bool written = k.arguments[a].role == loop::ArgumentRole::Out;
      if (!(written ? writes_in_order(k, a) : reads_in_order(k, a))) return false;
    }
    return true;
  }

  // Can step `s` run with the call `c` behind it? Nobody in between may need what it writes or
  // change what it reads, and in the call only the first operand may: its parts are made while
  // others are already read and their results written.
  [[nodiscard]] bool can_wait(std::size_t s, std::size_t c, const std::vector<bool>& gone) const {
    const Launch& launch = std::get<KernelStep>(program_.steps[s].what).launches.front();
    const auto& call = std::get<CallStep>(program_.steps[c].what);
    if (call.after && can_fault(program_.kernels[launch.kernel]) &&
        can_fault(program_.kernels[call.after->kernel])) {
      return false;  // which of them would be told of?
    }
    bool free = true;
    for_arguments(program_, launch, [&](BufferId mine, bool written) {
      const auto meets = [&](BufferId b) {
        if (b >= 0 && place_[at(b)] == place_[at(mine)]) free = false;
      };
      for (std::size_t t = s + 1; t < c && free; ++t) {
        if (gone[t]) continue;
        for_writes(program_.steps[t], meets);
        if (written) for_reads(program_.steps[t], meets);
      }
      for (const BufferView& v : call.results) meets(v.buffer);
      if (call.after) {
        for_arguments(program_, *call.after, [&](BufferId b, bool also_written) {
          if (written || also_written) meets(b);
        });
      }
      if (!written) return;
      for (std::size_t k = 1; k < call.operands.size(); ++k) meets(call.operands[k].buffer);
      if (mine != call.operands[0].buffer) meets(call.operands[0].buffer);
    });
    return free;
  }

  // Can step `s` run where the call `c` does? What else it reads must be there, and what lies where
  // it writes must have been read.
  [[nodiscard]] bool can_move(std::size_t c, std::size_t s, const std::vector<bool>& gone) const {
    const Launch& launch = std::get<KernelStep>(program_.steps[s].what).launches.front();
    const BufferId made = std::get<CallStep>(program_.steps[c].what).results[0].buffer;
    bool free = true;
    for_arguments(program_, launch, [&](BufferId mine, bool written) {
      for (std::size_t t = c; t < s && free; ++t) {
        if (gone[t]) continue;
        const auto meets = [&](BufferId b) {
          if (place_[at(b)] == place_[at(mine)]) free = false;
        };
        if (mine == made) continue;
        if (written) {
          for_reads(program_.steps[t], meets);
        } else {
          for_writes(program_.steps[t], meets);
        }
      }
    });
    return free;
  }

  void attach_before(std::size_t c, std::size_t s) {
    Step& step = program_.steps[c];
    Launch launch = std::move(std::get<KernelStep>(program_.steps[s].what).launches.front());
    step.label = launch.from.label + ", then " + step.label;
    step.nodes.insert(step.nodes.begin(), launch.from.nodes.begin(), launch.from.nodes.end());
    std::get<CallStep>(step.what).before = std::move(launch);
  }

  void attach_after(std::size_t c, std::size_t s) {
    Step& step = program_.steps[c];
    auto& call = std::get<CallStep>(step.what);
    Launch launch = std::move(std::get<KernelStep>(program_.steps[s].what).launches.front());
    overwrite(call, launch);
    step.label += ", then " + launch.from.label;
    step.nodes.insert(step.nodes.end(), launch.from.nodes.begin(), launch.from.nodes.end());
    call.after = std::move(launch);
  }

  // Makes the call compute where the kernel's result will be, when only the kernel reads it.
  void overwrite(CallStep& call, Launch& launch) const {
    const BufferId made = call.results[0].buffer;
    const Buffer& from = program_.buffers[at(made)];
    const auto in =
        static_cast<std::size_t>(std::ranges::find(launch.buffers, made) - launch.buffers.begin());
    if (from.role != Buffer::Role::Temporary || readers_[at(made)] != 1) return;
    const loop::Kernel& k = program_.kernels[launch.kernel];
    for (std::size_t o = 0; o < launch.buffers.size(); ++o) {
      if (k.arguments[o].role != loop::ArgumentRole::Out) continue;
      const BufferId out = launch.buffers[o];
      const Buffer& to = program_.buffers[at(out)];
      const bool alone = std::ranges::none_of(launch.buffers, [&](BufferId b) {
        return b >= 0 && b != out && place_[at(b)] == place_[at(out)];
      });
      if (!alone || to.dtype != from.dtype || to.elements != from.elements ||
          !loop::can_overwrite(k, o, in)) {
        continue;
      }
      call.results[0].buffer = out;
      launch.buffers[in] = out;
      return;
    }
  }

  Program& program_;
  const Target& target_;
  std::vector<BufferId> place_;       ///< per buffer: the one whose memory it is
  std::vector<std::size_t> readers_;  ///< per buffer: arguments and operands that read it
};

}  // namespace

void attach_kernels(Program& program, const std::vector<std::pair<BufferId, BufferId>>& replaced,
                    const Target& target) {
  Attacher(program, replaced, target).run();
}

}  // namespace ricci::schedule
