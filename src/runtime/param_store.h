// The values a compiled graph keeps for its params, in the device's memory. Those that runs update
// in place lie in arrays of the store's own; others are shared with whoever gave them where the
// device can read the host's memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "ricci/compiler/device/memory.h"
#include "ricci/type/tensor.h"

#include "support/fork.h"

namespace ricci::runtime {

class ParamStore {
 public:
  ParamStore(device::Memory& memory, std::size_t inputs) : memory_(memory), values_(inputs) {}

  /// `in_place`: runs will write to it, so it is copied. The mutex must be held for writing.
  void set(std::size_t input, const Tensor& value, bool in_place);

  /// The value another store keeps, without a second array of it in the device's memory. Its mutex
  /// must be held for reading, this one's for writing.
  void share(std::size_t input, const ParamStore& other, std::size_t other_input);

  // The mutex must be held for reading.
  [[nodiscard]] bool has(std::size_t input) const noexcept { return values_[input].given; }
  /// How often a value was set; how often any was.
  [[nodiscard]] std::uint64_t version(std::size_t input) const { return values_[input].version; }
  [[nodiscard]] std::uint64_t version() const noexcept { return version_.load(); }
  [[nodiscard]] const Type& type(std::size_t input) const { return values_[input].type; }
  /// A value of its own, or one that never changes.
  [[nodiscard]] Tensor get(std::size_t input) const;
  /// Where the elements lie, row-major, in the device's memory.
  [[nodiscard]] const std::byte* data(std::size_t input) const noexcept {
    return values_[input].data;
  }
  /// The same for writing; the mutex must be held for writing. Only values set `in_place`.
  [[nodiscard]] std::byte* mutable_data(std::size_t input) const noexcept {
    return values_[input].array->data();
  }

  [[nodiscard]] ForkSharedMutex& mutex() const noexcept { return mutex_; }

 private:
  struct Stored {
    bool given = false;
    bool in_place = false;
    std::uint64_t version = 0;
    Type type;
    const std::byte* data = nullptr;
    Tensor shared;                         // the host's value, unless it changes
    std::shared_ptr<device::Array> array;  // the device's, unless it is the host's
  };
  device::Memory& memory_;
  mutable ForkSharedMutex mutex_;
  std::vector<Stored> values_;
  std::atomic<std::uint64_t> version_ = 0;  // read without the mutex
};

}  // namespace ricci::runtime
