// Where programs run. A device owns its threads; everything compiled for it shares them.
//
//   Device cpu = Device::cpu();          // all cores
//   Device two = Device::cpu(2);         // never more than two threads
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "ricci/device/thread_pool.h"

namespace ricci {

class Device {
 public:
  /// This machine's processor. `threads` counts the calling thread; 0 means one per core.
  [[nodiscard]] static Device cpu(int threads = 0);
  /// The CPU with all cores, shared by everyone who does not ask for another.
  [[nodiscard]] static const Device& default_cpu();

  /// Loads the code generator now, so that the first compile does not wait for it: some 10 ms the
  /// first time, nothing afterwards. May be called from any thread, say while a program still reads
  /// its data.
  void warm_up() const;

  /// Bytes of memory this process may use: the machine's, or what a container is allowed.
  [[nodiscard]] static std::int64_t memory_bytes();

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] int threads() const noexcept { return pool_->threads(); }
  [[nodiscard]] ThreadPool& pool() const noexcept { return *pool_; }

 private:
  Device(std::string name, std::shared_ptr<ThreadPool> pool)
      : name_(std::move(name)), pool_(std::move(pool)) {}
  std::string name_;
  std::shared_ptr<ThreadPool> pool_;
};

}  // namespace ricci
