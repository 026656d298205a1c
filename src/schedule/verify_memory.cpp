#include "schedule/verify_memory.h"

#include <algorithm>

#include <fmt/format.h>

#include "schedule/step_buffers.h"

namespace ricci::schedule {
namespace {

std::size_t index_of(BufferId b) { return static_cast<std::size_t>(b); }

class MemoryChecker {
 public:
  explicit MemoryChecker(const Program& program)
      : program_(program), lives_(program.buffers.size()) {}

  std::optional<std::string> run() {
    collect();
    std::vector<BufferId> used;
    for (std::size_t b = 0; b < lives_.size(); ++b) {
      const Buffer& buffer = program_.buffers[b];
      if (buffer.role != Buffer::Role::Temporary || !lives_[b].used || buffer.bytes() == 0)
        continue;
      if (!lives_[b].written_first) {
        return fmt::format("step {} reads b{}, which nothing has filled", lives_[b].first, b);
      }
      used.push_back(static_cast<BufferId>(b));
    }
    std::ranges::sort(used, {}, [&](BufferId b) { return std::pair(of(b).offset, b); });
    for (std::size_t i = 0; i < used.size(); ++i) {
      const std::int64_t end = of(used[i]).offset + of(used[i]).bytes();
      for (std::size_t j = i + 1; j < used.size() && of(used[j]).offset < end; ++j) {
        if (!can_share(used[i], used[j])) {
          return fmt::format("b{} and b{} are wanted at the same time and place", used[i], used[j]);
        }
      }
    }
    return std::nullopt;
  }

 private:
  struct Life {
    std::size_t first = 0;
    std::size_t last = 0;
    bool used = false;
    bool written_first = false;  ///< in its first step
  };

  [[nodiscard]] const Buffer& of(BufferId b) const { return program_.buffers[index_of(b)]; }

  void collect() {
    for (std::size_t s = 0; s < program_.steps.size(); ++s) {
      for_uses(program_, program_.steps[s], [&](BufferId b, bool written) {
        Life& life = lives_[index_of(b)];
        if (!life.used) life.first = s;
        life.used = true;
        life.last = s;
        if (life.first == s && written) life.written_first = true;
      });
    }
  }

  [[nodiscard]] bool can_share(BufferId a, BufferId b) const {
    if (lives_[index_of(b)].first < lives_[index_of(a)].first) std::swap(a, b);
    const std::size_t end = lives_[index_of(a)].last;
    if (end < lives_[index_of(b)].first) return true;
    return end == lives_[index_of(b)].first && lives_[index_of(a)].first < end &&
           is_replaced(end, a, b);
  }

  // Does one kernel of step `s`, and nothing else of it, read `a` and write `b` in its place?
  [[nodiscard]] bool is_replaced(std::size_t s, BufferId a, BufferId b) const {
    if (of(a).offset != of(b).offset || of(a).bytes() != of(b).bytes()) return false;
    std::size_t uses = 0;
    for_uses(program_, program_.steps[s], [&](BufferId used, bool) {
      if (used == a || used == b) ++uses;
    });
    bool replaced = false;
    const auto look = [&](const Launch& launch) {
      const auto in = std::ranges::find(launch.buffers, a);
      const auto out = std::ranges::find(launch.buffers, b);
      if (in == launch.buffers.end() || out == launch.buffers.end()) return;
      const loop::Kernel& k = program_.kernels[launch.kernel];
      // A kernel that was read has no stages: nobody can tell.
      replaced = k.stages.empty() ||
                 loop::can_overwrite(k, static_cast<std::size_t>(out - launch.buffers.begin()),
                                     static_cast<std::size_t>(in - launch.buffers.begin()));
    };
    if (const auto* k = std::get_if<KernelStep>(&program_.steps[s].what)) {
      std::ranges::for_each(k->launches, look);
    } else if (const auto* c = std::get_if<CallStep>(&program_.steps[s].what)) {
      for_attached(*c, look);
      if (c->before && c->operands[0].buffer == b) --uses;  // what was made for it
    }
    return replaced && uses == 2;
  }

  const Program& program_;
  std::vector<Life> lives_;
};

}  // namespace

std::optional<std::string> find_memory_fault(const Program& program) {
  return MemoryChecker(program).run();
}

}  // namespace ricci::schedule
