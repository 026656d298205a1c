#include "schedule/recompute.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "ricci/compiler/schedule/cost.h"
#include "ricci/op/ops.h"
#include "ricci/support/stop.h"

#include "schedule/fit_bodies.h"
#include "schedule/place_temporaries.h"
#include "schedule/side_by_side.h"
#include "schedule/step_buffers.h"

namespace ricci::schedule {
namespace {

std::size_t number_of(BufferId b) { return static_cast<std::size_t>(b); }

// What a step takes, in simple operations.
double time_of(const Program& program, const Step& step, const Costs& costs) {
  const StepCost cost = estimate_cost(program, step);
  return cost.flops + costs.byte * cost.bytes() + costs.step;
}

// Which steps use the buffers of a program, and how much is alive at each.
struct BufferUses {
  std::vector<std::vector<std::size_t>> by;       // steps that read or write a buffer
  std::vector<std::vector<std::size_t>> written;  // steps that write it
  std::vector<std::int64_t> alive;                // bytes at every step

  BufferUses(const Program& program, std::int64_t alignment)
      : by(program.buffers.size()),
        written(program.buffers.size()),
        alive(bytes_alive(program, alignment)) {
    const auto note = [](std::vector<std::size_t>& steps, std::size_t s) {
      if (steps.empty() || steps.back() != s) steps.push_back(s);
    };
    for (std::size_t s = 0; s < program.steps.size(); ++s) {
      for_uses(program, program.steps[s], [&](BufferId b, bool writes) {
        note(by[number_of(b)], s);
        if (writes) note(written[number_of(b)], s);
      });
    }
  }

  [[nodiscard]] std::size_t fullest() const {
    return static_cast<std::size_t>(std::ranges::max_element(alive) - alive.begin());
  }
  // By how much the steps exceed a number of bytes, together.
  [[nodiscard]] double excess(std::int64_t bytes) const {
    double sum = 0;
    for (const std::int64_t a : alive)
      sum += static_cast<double>(std::max<std::int64_t>(0, a - bytes));
    return sum;
  }
};

// Steps that compute a value again.
struct Again {
  std::vector<Step> steps;               // on the new buffers
  std::map<BufferId, BufferId> buffers;  // old ones, and the new ones that hold the same
  std::vector<Buffer> fresh;             // the new ones
  std::set<BufferId> kept;               // small operands that live until then
  double time = 0;
};

// Finds the steps that compute a value again just before a step.
class AgainSearch {
 public:
  AgainSearch(const Program& program, const BufferUses& uses,
              const std::vector<std::pair<BufferId, BufferId>>& replaced, BufferId wanted,
              std::size_t before, const Costs& costs)
      : program_(program), uses_(uses), replaced_(replaced), before_(before), costs_(costs) {
    small_ = program.buffers[number_of(wanted)].bytes() / costs.much_smaller;
    found_ = make(wanted);
  }
  std::optional<Again> take() {
    if (!found_) return std::nullopt;
    return std::move(again_);
  }

 private:
  static constexpr std::size_t MostSteps = 12;

  [[nodiscard]] const Buffer& of(BufferId b) const { return program_.buffers[number_of(b)]; }

  bool make(BufferId b) {
    if (again_.buffers.contains(b)) return true;
    const std::vector<std::size_t>& writers = uses_.written[number_of(b)];
    if (writers.size() != 1 || writers[0] >= before_) return false;
    std::optional<Step> step = step_for(b, writers[0]);
    if (!step) return false;
    std::set<BufferId> writes;
    std::set<BufferId> reads;
    for_uses(program_, *step,
             [&](BufferId used, bool written) { (written ? writes : reads).insert(used); });
    // What it both reads and writes it has made itself, but for a lone kernel.
    const bool lone = std::holds_alternative<KernelStep>(step->what);
    for (const BufferId r : reads) {
      if (writes.contains(r) ? lone : !is_there(r, writers[0])) return false;
    }
    if (again_.steps.size() >= MostSteps) return false;
    again_.time += time_of(program_, *step, costs_);
    std::map<BufferId, BufferId> scratch;  // what this step fills in part: nobody else reads it
    for (const BufferId w : writes) {
      (is_made_whole(w, *step, writers[0]) ? again_.buffers : scratch)[w] = add_fresh(w);
    }
    for_buffers(*step, [&](BufferId& used) {
      if (used < 0) return;
      const bool part = scratch.contains(used);
      const auto& names = part ? scratch : again_.buffers;
      const auto now = names.find(used);
      if (now != names.end()) used = now->second;
    });
    step->label += " (again)";
    again_.steps.push_back(std::move(*step));
    return true;
  }

  // Does a copy of step `s`, or of some kernels of it, write all of a buffer? Several kernels may
  // write pieces of one array, as those of a concat do, in one step or in several.
  [[nodiscard]] bool is_made_whole(BufferId b, const Step& copy, std::size_t s) const {
    const auto writes_in = [&](const Step& step) {
      std::size_t count = 0;
      for_uses(program_, step,
               [&](BufferId used, bool written) { count += written && used == b ? 1 : 0; });
      return count;
    };
    return uses_.written[number_of(b)].size() == 1 &&
           writes_in(copy) == writes_in(program_.steps[s]);
  }

  // Does it call kernels of users, here or in bodies?
  static bool calls_users(const Program& program, const Step& step) {
    if (const auto* call = std::get_if<CallStep>(&step.what)) {
      return op_of(program.reference_of(*call)).is<op::Custom>();
    }
    const auto* control = std::get_if<ControlStep>(&step.what);
    return control != nullptr && std::ranges::any_of(control->bodies, [](const auto& body) {
             return std::ranges::any_of(body.second->steps, [&](const Step& inside) {
               return calls_users(*body.second, inside);
             });
           });
  }

  // The step that writes a buffer, or those kernels of it that do.
  [[nodiscard]] std::optional<Step> step_for(BufferId b, std::size_t s) const {
    const Step& step = program_.steps[s];
    if (const auto* kernels = std::get_if<KernelStep>(&step.what)) {
      std::vector<Launch> makers;  // each may make a part of it
      std::ranges::copy_if(kernels->launches, std::back_inserter(makers),
                           [&](const Launch& launch) { return writes(launch, b); });
      if (makers.empty()) return std::nullopt;
      return kernel_step(std::move(makers));
    }
    const auto* call = std::get_if<CallStep>(&step.what);
    // Kernels of users are called as often as the program says.
    if (calls_users(program_, step)) return std::nullopt;
    if (call == nullptr) return step;
    const auto made_by_call = [&](BufferId x) {
      return std::ranges::any_of(call->results, [&](const BufferView& v) { return v.buffer == x; });
    };
    if (call->before && writes(*call->before, b)) return kernel_step({*call->before});
    const bool result_is_there = !call->results.empty() && is_alive(call->results[0].buffer);
    if (call->after && writes(*call->after, b) && !made_by_call(b) && result_is_there) {
      return kernel_step({*call->after});
    }
    return step;
  }
  [[nodiscard]] bool writes(const Launch& launch, BufferId b) const {
    bool found = false;
    for_arguments(program_, launch,
                  [&](BufferId used, bool written) { found = found || (written && used == b); });
    return found;
  }

  // Is it read at the place in question or behind it?
  [[nodiscard]] bool is_alive(BufferId b) const {
    return b >= 0 &&
           (of(b).role != Buffer::Role::Temporary ||
            (!uses_.by[number_of(b)].empty() && uses_.by[number_of(b)].back() >= before_));
  }

  // Does an operand of step `s` hold the same just before the place in question, or can it be made
  // to?
  bool is_there(BufferId b, std::size_t s) {
    const std::vector<std::size_t>& writers = uses_.written[number_of(b)];
    switch (of(b).role) {
      case Buffer::Role::Constant:
      case Buffer::Role::Seed: return true;
      case Buffer::Role::Input:
        return std::ranges::none_of(replaced_, [&](const auto& pair) {
          const auto& fills = uses_.written[number_of(pair.first)];
          return pair.second == b && !fills.empty() && fills.front() < before_;
        });
      case Buffer::Role::Output: return writers.empty() || writers.back() <= s;
      case Buffer::Role::Temporary: break;
    }
    if (writers.empty() || writers.back() > s) return false;
    if (is_alive(b)) return true;
    if (of(b).bytes() <= small_) {
      again_.kept.insert(b);
      return true;
    }
    return make(b);
  }

  BufferId add_fresh(BufferId old) {
    again_.fresh.push_back({.dtype = of(old).dtype, .elements = of(old).elements});
    return static_cast<BufferId>(program_.buffers.size() + again_.fresh.size() - 1);
  }

  const Program& program_;
  const BufferUses& uses_;
  const std::vector<std::pair<BufferId, BufferId>>& replaced_;
  std::size_t before_;
  const Costs& costs_;
  std::int64_t small_ = 0;  // bytes of an operand that is kept rather than made, too
  bool found_ = false;
  Again again_;
};

// A value that could be computed again instead of lying idle at the fullest step.
struct Candidate {
  std::size_t before = 0;  // the step that reads it next
  Again again;
  double bytes_per_time = 0;
};

class Recomputer {
 public:
  Recomputer(Program& program, const std::vector<std::pair<BufferId, BufferId>>& replaced,
             const Target& target)
      : program_(program), replaced_(replaced), target_(target), alignment_(target.alignment()) {}

  void run(std::int64_t budget) {
    const std::vector<Step> steps = program_.steps;
    const std::vector<Buffer> buffers = program_.buffers;
    const std::int64_t before = program_.arena_bytes;
    make_rounds(budget);
    if (program_.arena_bytes < before) return;
    program_.steps = steps;  // all of it was for nothing
    program_.buffers = buffers;
    place_temporaries(program_, alignment_);
  }

 private:
  void make_rounds(std::int64_t budget) {
    constexpr int MostRounds = 8;
    std::int64_t goal = budget;
    for (int round = 0; round < MostRounds && goal > 0; ++round) {
      const bool fits = reach(goal);
      place_temporaries(program_, alignment_);
      if (program_.arena_bytes <= budget || !fits) return;
      goal -= program_.arena_bytes - budget;  // gaps between what is alive
    }
  }

  // Until at no step more than `goal` bytes are alive; false when that is not to be had.
  bool reach(std::int64_t goal) {
    for (;;) {
      throw_if_stopped();
      const BufferUses uses(program_, alignment_);
      if (program_.steps.empty() || uses.alive[uses.fullest()] <= goal) return true;
      if (!take_best(uses, goal)) return false;
    }
  }

  bool take_best(const BufferUses& uses, std::int64_t goal) {
    std::vector<Candidate> candidates = candidates_at(uses, uses.fullest());
    std::vector<std::size_t> order(candidates.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
      const double x = candidates[a].bytes_per_time;
      const double y = candidates[b].bytes_per_time;
      return x != y ? x > y : a < b;
    });
    const double excess = uses.excess(goal);
    for (const std::size_t i : order) {
      std::vector<Step> steps = program_.steps;
      std::vector<Buffer> buffers = program_.buffers;
      insert(candidates[i], uses);
      if (BufferUses(program_, alignment_).excess(goal) < excess) return true;
      program_.steps = std::move(steps);
      program_.buffers = std::move(buffers);
    }
    return false;
  }

  [[nodiscard]] std::vector<Candidate> candidates_at(const BufferUses& uses,
                                                     std::size_t full) const {
    std::vector<Candidate> out;
    for (std::size_t b = 0; b < program_.buffers.size(); ++b) {
      const Buffer& buffer = program_.buffers[b];
      if (buffer.role != Buffer::Role::Temporary || buffer.bytes() == 0) continue;
      const std::optional<std::size_t> next = idle_until(uses, b, full);
      if (!next) continue;
      std::optional<Again> again =
          AgainSearch(program_, uses, replaced_, static_cast<BufferId>(b), *next, target_.costs())
              .take();
      if (!again) continue;
      const std::int64_t bytes = freed(uses, *again, full, *next);
      if (bytes <= 0) continue;
      const double per_time = static_cast<double>(bytes) / again->time;
      out.push_back({*next, std::move(*again), per_time});
    }
    return out;
  }

  // The step that uses a buffer next, when it lies idle at step `full`.
  [[nodiscard]] static std::optional<std::size_t> idle_until(const BufferUses& uses, std::size_t b,
                                                             std::size_t full) {
    const std::vector<std::size_t>& steps = uses.by[b];
    const auto next = std::ranges::lower_bound(steps, full);
    if (next == steps.begin() || next == steps.end() || *next == full) return std::nullopt;
    return *next;
  }

  // Is a buffer replaced by one that is computed again?
  [[nodiscard]] bool gives_way(const BufferUses& uses, BufferId b) const {
    return program_.buffers[number_of(b)].role == Buffer::Role::Temporary &&
           uses.written[number_of(b)].size() == 1;
  }

  [[nodiscard]] std::int64_t freed(const BufferUses& uses, const Again& again, std::size_t full,
                                   std::size_t before) const {
    std::int64_t bytes = 0;
    for (const auto& [old, now] : again.buffers) {
      const std::optional<std::size_t> next = idle_until(uses, number_of(old), full);
      if (next && *next >= before && gives_way(uses, old)) {
        bytes += program_.buffers[number_of(old)].bytes();
      }
    }
    for (const BufferId b : again.kept) {
      if (uses.by[number_of(b)].back() < full) bytes -= program_.buffers[number_of(b)].bytes();
    }
    return bytes;
  }

  void insert(Candidate& candidate, const BufferUses& uses) {
    const auto renamed = [&](BufferId& b) {
      const auto now = candidate.again.buffers.find(b);
      if (b >= 0 && now != candidate.again.buffers.end() && gives_way(uses, b)) b = now->second;
    };
    for (std::size_t s = candidate.before; s < program_.steps.size(); ++s) {
      for_buffers(program_.steps[s], renamed);
    }
    program_.buffers.insert(program_.buffers.end(), candidate.again.fresh.begin(),
                            candidate.again.fresh.end());
    program_.steps.insert(program_.steps.begin() + static_cast<std::ptrdiff_t>(candidate.before),
                          std::make_move_iterator(candidate.again.steps.begin()),
                          std::make_move_iterator(candidate.again.steps.end()));
  }

  Program& program_;
  const std::vector<std::pair<BufferId, BufferId>>& replaced_;
  const Target& target_;
  std::int64_t alignment_;
};

}  // namespace

void recompute_to_fit(Program& program, std::int64_t budget,
                      const std::vector<std::pair<BufferId, BufferId>>& replaced,
                      const Target& target) {
  Recomputer(program, replaced, target).run(budget);
  if (program.arena_bytes > budget) fit_bodies(program, budget, target);
}

}  // namespace ricci::schedule
