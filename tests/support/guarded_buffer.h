// Memory between two pages nobody may touch. Generated code is not seen by address sanitizers; a
// step over the edge of such a buffer is a fault the hardware reports.
#pragma once

#include <csignal>
#include <cstddef>
#include <span>

namespace ricci::testing {

/// Pages with a guard on either side. Making them takes several calls of the system, so those of
/// buffers that are gone are used again. One thread at a time makes and drops buffers.
class GuardedPages {
 public:
  explicit GuardedPages(std::size_t bytes);
  GuardedPages(GuardedPages&& other) noexcept;
  GuardedPages(const GuardedPages&) = delete;
  GuardedPages& operator=(const GuardedPages&) = delete;
  GuardedPages& operator=(GuardedPages&&) = delete;
  ~GuardedPages();

  /// What lies between the guards.
  [[nodiscard]] std::span<std::byte> room() const noexcept { return {room_, size_}; }
  void make_read_only();

 private:
  std::byte* room_ = nullptr;
  std::size_t size_ = 0;  // a power of two of pages
  bool read_only_ = false;
};

class GuardedBuffer {
 public:
  enum class Edge { End, Start };  ///< which end of the buffer lies at the edge of its pages

  /// Filled with bytes that differ from edge to edge: what depends on them shows.
  GuardedBuffer(std::size_t bytes, Edge edge);

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return {data_, size_}; }
  /// From now on a write is a fault too.
  void make_read_only() { pages_.make_read_only(); }

 private:
  GuardedPages pages_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// While it lives, a fault says what was being done before the process ends. A note made inside
/// another takes its place for a while.
class FaultNote {
 public:
  explicit FaultNote(const char* what);
  FaultNote(const FaultNote&) = delete;
  FaultNote& operator=(const FaultNote&) = delete;
  ~FaultNote();

 private:
  const char* outer_;
  struct sigaction before_ = {};
};

}  // namespace ricci::testing
