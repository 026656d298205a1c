// Where programs run: a value that names a back end. Copies are cheap and mean the same device;
// everything compiled for it shares what it has (threads, memory).
//
//   Device cpu = Device::cpu();              // all cores
//   Device two = Device::cpu(2);             // never more than two threads
//   Device gpu = Device::cuda();             // an NVIDIA GPU
//   Device slow = Device::named("lir");      // programs run element by element, to compare with
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ricci {

namespace device {
class Backend;
}

/// A device of this build, and why it cannot be used here, if it cannot.
struct DeviceListing {
  std::string name;
  std::string why_not = {};  ///< empty: it can be used
};

class Device {
 public:
  /// One by name; `threads` is how many of the host's threads its programs use, the caller's
  /// included, 0 for one per core. UserError(unsupported_on_backend) that says why when this build
  /// has none of that name or it cannot be used here.
  [[nodiscard]] static Device named(std::string_view name, int threads = 0);
  /// This machine's processor.
  [[nodiscard]] static Device cpu(int threads = 0) { return named("cpu", threads); }
  /// The first NVIDIA GPU of this machine. `threads` compile its kernels.
  [[nodiscard]] static Device cuda(int threads = 0) { return named("cuda", threads); }
  /// The CPU with all cores, shared by everyone who does not ask for another.
  [[nodiscard]] static const Device& default_cpu();
  /// What is used where none is named: the default CPU, or else the first this build has.
  [[nodiscard]] static const Device& standard();
  /// All that this build knows. Drivers may be loaded to find out which can be used.
  [[nodiscard]] static std::vector<DeviceListing> all();
  /// Their names alone.
  [[nodiscard]] static std::vector<std::string> names();

  /// Loads the code generator now, so that the first compile does not wait for it: some 10 ms the
  /// first time, nothing afterwards. May be called from any thread, say while a program still reads
  /// its data.
  void warm_up() const;

  /// Bytes of memory this process may use: the machine's, or what a container is allowed.
  [[nodiscard]] static std::int64_t memory_bytes();

  [[nodiscard]] std::string_view name() const noexcept;
  [[nodiscard]] int threads() const noexcept;
  /// For those who compile programs themselves; see ricci/compiler/device/backend.h.
  [[nodiscard]] const device::Backend& backend() const noexcept { return *backend_; }

 private:
  explicit Device(std::shared_ptr<const device::Backend> backend) : backend_(std::move(backend)) {}
  std::shared_ptr<const device::Backend> backend_;
};

}  // namespace ricci
