#include "backend/cpu/structured/thread_scratch.h"

#include <memory>
#include <new>

namespace ricci::cpu {
namespace {

constexpr std::align_val_t Alignment{64};

struct Free {
  void operator()(std::byte* p) const noexcept { ::operator delete(p, Alignment); }
};

struct OwnPiece {
  std::unique_ptr<std::byte, Free> memory;
  std::int64_t bytes = 0;
};

}  // namespace

std::int64_t thread_scratch_bytes(std::int64_t bytes) {
  constexpr std::int64_t Page = 4096;
  return (bytes + Page - 1) / Page * Page;
}

std::byte* thread_scratch(std::int64_t bytes) {
  thread_local OwnPiece room;
  if (room.bytes < bytes) {
    const std::int64_t rounded = thread_scratch_bytes(bytes);
    room.memory.reset();
    room.bytes = 0;
    room.memory.reset(
        static_cast<std::byte*>(::operator new(static_cast<std::size_t>(rounded), Alignment)));
    room.bytes = rounded;
  }
  return room.memory.get();
}

}  // namespace ricci::cpu
