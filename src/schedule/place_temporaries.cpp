#include "schedule/place_temporaries.h"

#include <algorithm>
#include <set>
#include <span>
#include <unordered_map>

#include <fmt/format.h>

#include "ricci/support/checked.h"

#include "schedule/step_buffers.h"
#include "support/align.h"

namespace ricci::schedule {
namespace {

std::size_t at(BufferId b) { return static_cast<std::size_t>(b); }

// From the first step that uses a temporary to the last; of others and of unused ones, nothing.
std::vector<Lifetime> lifetimes(const Program& program) {
  constexpr std::size_t Never = ~std::size_t{0};
  std::vector<Lifetime> lives(program.buffers.size(), {0, Never, 0});
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    for_buffers(program.steps[s], [&](BufferId b) {
      if (b < 0) return;
      lives[at(b)].first = std::min(lives[at(b)].first, s);
      lives[at(b)].last = std::max(lives[at(b)].last, s);
    });
  }
  for (std::size_t b = 0; b < lives.size(); ++b) {
    const Buffer& buffer = program.buffers[b];
    if (buffer.role == Buffer::Role::Temporary && lives[b].first != Never) {
      lives[b].bytes = buffer.bytes();
    } else {
      lives[b] = {0, 0, 0};
    }
  }
  return lives;
}

// Lets a kernel's result lie where an operand that nobody reads any more does.
class Sharing {
 public:
  Sharing(const Program& program, std::vector<Lifetime>& lives)
      : program_(program), lives_(lives), place_(lives.size()) {
    for (std::size_t b = 0; b < place_.size(); ++b) place_[b] = b;
  }

  /// For every buffer the one whose memory it has.
  std::vector<std::size_t> run() {
    for (std::size_t s = 0; s < program_.steps.size(); ++s) {
      const Step& step = program_.steps[s];
      const auto* call = std::get_if<CallStep>(&step.what);
      const auto* kernels = std::get_if<KernelStep>(&step.what);
      std::vector<const Launch*> launches;
      const auto add = [&](const Launch& launch) { launches.push_back(&launch); };
      if (kernels != nullptr) std::ranges::for_each(kernels->launches, add);
      if (call != nullptr) for_attached(*call, add);
      if (launches.empty()) continue;
      Counts used;  // how many launches use a place
      for (const Launch* launch : launches) add_places(launch->buffers, used);
      if (call != nullptr) {
        std::vector<BufferId> own;
        for (const BufferView& v : call->operands) own.push_back(v.buffer);
        for (const BufferView& v : call->results) own.push_back(v.buffer);
        add_places(own, used);
      }
      for (const Launch* launch : launches) share(*launch, s, used);
    }
    return std::move(place_);
  }

 private:
  using Counts = std::unordered_map<std::size_t, int>;

  void add_places(const std::vector<BufferId>& buffers, Counts& to) const {
    std::set<std::size_t> own;
    for (const BufferId b : buffers) {
      if (b >= 0) own.insert(place_[at(b)]);
    }
    for (const std::size_t place : own) ++to[place];
  }

  // What runs in one step runs at the same time: what several parts of it use stays as it is.
  void share(const Launch& launch, std::size_t s, const Counts& used) {
    const auto several = [&](std::size_t place) {
      const auto found = used.find(place);
      return found != used.end() && found->second > 1;
    };
    const loop::Kernel& kernel = program_.kernels[launch.kernel];
    std::set<std::size_t> taken;  // by results that nobody reads later, too
    for (std::size_t o = 0; o < launch.buffers.size(); ++o) {
      if (kernel.arguments[o].role != loop::ArgumentRole::Out) continue;
      const std::size_t out = at(launch.buffers[o]);
      if (lives_[out].bytes == 0 || lives_[out].first != s) continue;
      for (std::size_t i = 0; i < launch.buffers.size(); ++i) {
        if (kernel.arguments[i].role != loop::ArgumentRole::In) continue;
        const std::size_t in = place_[at(launch.buffers[i])];
        if (lives_[in].bytes != lives_[out].bytes || lives_[in].last != s ||
            lives_[in].first == s || several(in) || several(out) || taken.contains(in)) {
          continue;
        }
        if (!loop::can_overwrite(kernel, o, i)) continue;
        lives_[in].last = lives_[out].last;
        lives_[out].bytes = 0;
        place_[out] = in;
        taken.insert(in);
        break;
      }
    }
  }

  const Program& program_;
  std::vector<Lifetime>& lives_;
  std::vector<std::size_t> place_;
};

// Sums of sizes must stay numbers, padding included; no plan then has to look.
void require_countable(const Program& program, std::span<const Lifetime> lives) {
  constexpr std::int64_t Most = std::int64_t{1} << 62;
  std::int64_t bytes = 0;
  for (const Lifetime& life : lives) bytes = saturating_add(bytes, life.bytes);
  if (bytes <= Most) return;
  throw UserError({.code = ErrorCode::OutOfMemory,
                   .detail = "compile",
                   .message = fmt::format("the temporaries of '{}' have more than {} bytes",
                                          program.name, Most),
                   .where = {},
                   .notes = {},
                   .help = "use smaller sizes"});
}

// One behind the other, unless that takes more than `most` bytes.
bool place_apart(Program& program, std::span<const Lifetime> lives, std::int64_t alignment,
                 std::int64_t most) {
  std::vector<std::int64_t> offsets;
  std::int64_t end = 0;
  for (const Lifetime& life : lives) {
    offsets.push_back(end);
    end += aligned(life.bytes, alignment);
  }
  if (end > most) return false;
  for (std::size_t b = 0; b < lives.size(); ++b) program.buffers[b].offset = offsets[b];
  program.arena_bytes = end;
  return true;
}

}  // namespace

std::vector<std::int64_t> bytes_alive(const Program& program, std::int64_t alignment) {
  std::vector<Lifetime> lives = lifetimes(program);
  (void)Sharing(program, lives).run();
  std::vector<std::int64_t> alive(program.steps.size() + 1, 0);
  for (const Lifetime& life : lives) {
    if (life.bytes == 0) continue;
    alive[life.first] += aligned(life.bytes, alignment);
    alive[life.last + 1] -= aligned(life.bytes, alignment);
  }
  for (std::size_t s = 1; s < alive.size(); ++s) alive[s] += alive[s - 1];
  alive.pop_back();
  return alive;
}

void place_temporaries(Program& program, std::int64_t alignment, std::int64_t unshared) {
  const std::vector<Lifetime> own = lifetimes(program);
  require_countable(program, own);
  std::vector<Lifetime> lives = own;
  const std::vector<std::size_t> place = Sharing(program, lives).run();
  const MemoryPlan memory = plan_memory(lives, alignment);
  program.live_bytes = memory.most_alive;
  if (place_apart(program, own, alignment, unshared)) return;
  for (std::size_t b = 0; b < lives.size(); ++b) {
    program.buffers[b].offset = memory.offsets[place[b]];
  }
  program.arena_bytes = memory.total;
}

}  // namespace ricci::schedule
