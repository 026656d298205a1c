// Memory between two pages nobody may touch. Generated code is not seen by address sanitizers; a
// step over the edge of such a buffer is a fault the hardware reports.
#pragma once

#include <cstddef>
#include <span>

namespace ricci::testing {

class GuardedBuffer {
 public:
  enum class Edge { End, Start };  ///< which end of the buffer lies at the edge of its pages

  GuardedBuffer(std::size_t bytes, Edge edge);
  GuardedBuffer(GuardedBuffer&& other) noexcept;
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(GuardedBuffer&&) = delete;
  ~GuardedBuffer();

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return {data_, size_}; }
  /// From now on a write is a fault too.
  void make_read_only();

 private:
  std::byte* pages_ = nullptr;  // guard, room, guard
  std::size_t mapped_ = 0;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// While it lives, a fault says what was being done before the process ends.
class FaultNote {
 public:
  explicit FaultNote(const char* what);
  FaultNote(const FaultNote&) = delete;
  FaultNote& operator=(const FaultNote&) = delete;
  ~FaultNote();
};

}  // namespace ricci::testing
