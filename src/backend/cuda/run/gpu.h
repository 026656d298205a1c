// The GPU programs run on: the driver's context on it and what it can do. One for the process, made
// when the device is first opened.
#pragma once

#include <cstdint>
#include <string>

#include "backend/cuda/load/cublas.h"
#include "backend/cuda/load/driver.h"
#include "backend/cuda/load/nvrtc.h"

namespace ricci::cuda {

class Gpu {
 public:
  /// Opened once. UserError(unsupported_on_backend) that says why when there is none.
  [[nodiscard]] static const Gpu& get();

  [[nodiscard]] const Driver& driver() const noexcept { return driver_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const std::string& architecture() const noexcept { return architecture_; }
  /// What its kernels are compiled to.
  [[nodiscard]] const CodeTarget& code_target() const noexcept { return code_target_; }
  [[nodiscard]] std::int64_t memory_bytes() const noexcept { return memory_bytes_; }
  [[nodiscard]] std::int32_t shared_bytes() const noexcept { return shared_bytes_; }
  [[nodiscard]] bool has_pools() const noexcept { return pool_ != nullptr; }
  /// What memory is given, taken back and copied on, by all threads.
  [[nodiscard]] Stream memory_stream() const noexcept { return memory_stream_; }
  /// Hands what the pool keeps back to the driver, which puts other things there than arrays too.
  /// False when there is nothing to hand back.
  [[nodiscard]] bool trim() const noexcept;
  /// What `f`, a call of the driver's, gives; without room once more after `trim`.
  template <class F>
  [[nodiscard]] Status with_room(const F& f) const {
    const Status status = f();
    return status == OutOfMemory && trim() ? f() : status;
  }
  /// Loaded when the first product is planned; null without cuBLASLt.
  [[nodiscard]] CublasHandle cublas() const;

  /// Makes its context this thread's: to be called before anything else of the driver's.
  /// DeviceError in a child of fork, where the driver does not work.
  void use() const;
  /// The same, where nothing is to be thrown: whether the driver can be called.
  [[nodiscard]] bool try_use() const noexcept;

 private:
  Gpu();

  const Driver& driver_;
  std::uint64_t generation_;  // of the process that opened it
  ContextHandle context_ = nullptr;
  Pool pool_ = nullptr;
  Stream memory_stream_ = nullptr;
  std::string name_;
  std::string architecture_;
  CodeTarget code_target_;
  std::int64_t memory_bytes_ = 0;
  std::int32_t shared_bytes_ = 0;
};

/// Compute capability 8.0, Ampere: bf16, 96 KiB of shared memory a block.
inline constexpr int OldestCapability = 80;

/// Why programs cannot run on a GPU here; empty when they can.
[[nodiscard]] std::string why_not();

}  // namespace ricci::cuda
