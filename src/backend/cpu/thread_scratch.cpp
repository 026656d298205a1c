#include "backend/cpu/thread_scratch.h"

#include <cstdlib>
#include <memory>
#include <new>

namespace ricci::cpu {
namespace {

struct Free {
  void operator()(std::byte* p) const noexcept { std::free(p); }
};

struct Room {
  std::unique_ptr<std::byte, Free> memory;
  std::int64_t bytes = 0;
};

}  // namespace

std::byte* thread_scratch(std::int64_t bytes) {
  thread_local Room room;
  if (room.bytes < bytes) {
    constexpr std::int64_t Page = 4096;
    const std::int64_t rounded = (bytes + Page - 1) / Page * Page;
    room.memory.reset(
        static_cast<std::byte*>(std::aligned_alloc(64, static_cast<std::size_t>(rounded))));
    if (!room.memory) {
      room.bytes = 0;
      throw std::bad_alloc();
    }
    room.bytes = rounded;
  }
  return room.memory.get();
}

}  // namespace ricci::cpu
