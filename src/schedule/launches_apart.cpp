#include "schedule/launches_apart.h"

#include <algorithm>
#include <limits>
#include <map>

#include "schedule/step_buffers.h"

namespace ricci::schedule {
namespace {

// Which launches do something: none, one, or several.
struct Launches {
  std::size_t least = std::numeric_limits<std::size_t>::max();
  std::size_t most = 0;

  void add(std::size_t launch) {
    least = std::min(least, launch);
    most = std::max(most, launch);
  }
  [[nodiscard]] bool none() const { return least > most; }
};

// Is there one of `a` and another of `b`?
bool differ(const Launches& a, const Launches& b) {
  return !a.none() && !b.none() && (a.least != b.most || a.most != b.least);
}

struct Uses {
  const Buffer* buffer = nullptr;
  Launches readers;
  Launches writers;
};

bool disturb(const Uses& a, const Uses& b) {
  return differ(a.writers, b.readers) || differ(a.writers, b.writers) ||
         differ(b.writers, a.readers);
}

}  // namespace

bool launches_apart(const Program& program, const KernelStep& step) {
  std::map<BufferId, Uses> uses;
  for (std::size_t i = 0; i < step.launches.size(); ++i) {
    for_arguments(program, step.launches[i], [&](BufferId b, bool written) {
      Uses& u = uses[b];
      u.buffer = &program.buffers[static_cast<std::size_t>(b)];
      (written ? u.writers : u.readers).add(i);
    });
  }
  std::vector<const Uses*> placed;
  for (const auto& [id, u] : uses) {
    if (differ(u.writers, u.readers)) return false;
    if (u.buffer->role == Buffer::Role::Temporary && u.buffer->bytes() > 0) placed.push_back(&u);
  }
  std::ranges::sort(placed, {}, [](const Uses* u) { return u->buffer->offset; });
  for (std::size_t i = 0; i < placed.size(); ++i) {
    const std::int64_t end = placed[i]->buffer->offset + placed[i]->buffer->bytes();
    for (std::size_t j = i + 1; j < placed.size() && placed[j]->buffer->offset < end; ++j) {
      if (disturb(*placed[i], *placed[j])) return false;
    }
  }
  return true;
}

}  // namespace ricci::schedule
