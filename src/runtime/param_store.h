// The values a compiled graph keeps for its params. Those that runs update in place lie in buffers
// of the store's own; others are shared with whoever gave them.
#pragma once

#include <cstddef>
#include <memory>
#include <shared_mutex>
#include <vector>

#include "ricci/type/tensor.h"

namespace ricci::runtime {

class ParamStore {
 public:
  explicit ParamStore(std::size_t inputs) : values_(inputs) {}

  /// `in_place`: runs will write to it, so it is copied. The mutex must be held for writing.
  void set(std::size_t input, const Tensor& value, bool in_place);

  // The mutex must be held for reading.
  [[nodiscard]] bool has(std::size_t input) const noexcept { return values_[input].given; }
  [[nodiscard]] const Type& type(std::size_t input) const { return values_[input].type; }
  /// A value of its own, or one that never changes.
  [[nodiscard]] Tensor get(std::size_t input) const;
  /// Where the elements lie, row-major.
  [[nodiscard]] const std::byte* data(std::size_t input) const noexcept {
    return values_[input].data;
  }
  /// The same for writing; the mutex must be held for writing. Only values set `in_place`.
  [[nodiscard]] std::byte* mutable_data(std::size_t input) const noexcept {
    return values_[input].buffer.get();
  }

  [[nodiscard]] std::shared_mutex& mutex() const noexcept { return mutex_; }

 private:
  struct Free {
    void operator()(std::byte* p) const noexcept;
  };
  struct Stored {
    bool given = false;
    Type type;
    const std::byte* data = nullptr;
    Tensor shared;
    std::unique_ptr<std::byte, Free> buffer;
  };
  mutable std::shared_mutex mutex_;
  std::vector<Stored> values_;
};

}  // namespace ricci::runtime
