#include "schedule/verify_memory.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

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
    return find_clash(std::move(used));
  }

 private:
  struct Life {
    std::size_t first = 0;
    std::size_t last = 0;
    bool used = false;
    bool written_first = false;  ///< in its first step
  };

  [[nodiscard]] const Buffer& of(BufferId b) const { return program_.buffers[index_of(b)]; }

  // From step to step, with the buffers that are wanted at one by their offsets: what begins is
  // compared with those it touches. One that takes another's place stands for both.
  std::optional<std::string> find_clash(std::vector<BufferId> begins) const {
    std::vector<BufferId> ends = begins;
    std::ranges::sort(begins, {}, [&](BufferId b) { return std::pair(life(b).first, b); });
    std::ranges::sort(ends, {}, [&](BufferId b) { return std::pair(life(b).last, b); });
    std::map<std::int64_t, BufferId> wanted;
    auto over = ends.begin();
    for (const BufferId b : begins) {
      for (; life(*over).last < life(b).first; ++over) {
        const auto at = wanted.find(of(*over).offset);
        if (at != wanted.end() && at->second == *over) wanted.erase(at);
      }
      auto touched = wanted.upper_bound(of(b).offset);
      if (touched != wanted.begin() && end_of(std::prev(touched)->second) > of(b).offset) --touched;
      while (touched != wanted.end() && touched->first < end_of(b)) {
        const BufferId a = touched->second;
        if (!can_share(a, b)) {
          return fmt::format("b{} and b{} are wanted at the same time and place", a, b);
        }
        touched = wanted.erase(touched);
      }
      wanted.emplace(of(b).offset, b);
    }
    return std::nullopt;
  }

  [[nodiscard]] const Life& life(BufferId b) const { return lives_[index_of(b)]; }
  [[nodiscard]] std::int64_t end_of(BufferId b) const { return of(b).offset + of(b).bytes(); }

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
