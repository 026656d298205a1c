// Arrays the caller has on the host, as a device sees them: the same, where it can read the host's
// memory, or else copies that are made before a run and brought back after it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "ricci/compiler/device/memory.h"
#include "ricci/compiler/schedule/program.h"

namespace ricci::runtime {

/// Its arrays are kept from run to run. One run at a time.
class Staging {
 public:
  Staging(device::Memory& memory, const Program& program);

  /// Before a run: forgets the last one's pointers.
  void begin();
  /// Puts the device's pointer for a host pointer.
  void stage_input(std::size_t input, const std::byte*& at);
  /// The same for an output. Where it is the host's array of an input that was staged (`donor`; -1:
  /// none), it is that input's array here too.
  void stage_output(std::size_t output, std::byte*& at, int donor);
  /// After the run: brings outputs back to the host.
  void collect();

 private:
  struct Place {
    device::Array array;
    const std::byte* host = nullptr;
  };
  [[nodiscard]] std::int64_t bytes_of(BufferId buffer) const;
  static void reserve(device::Memory& memory, Place& place, std::int64_t bytes);

  device::Memory& memory_;
  const Program& program_;
  std::vector<Place> inputs_;
  std::vector<Place> outputs_;
  struct Return {
    const device::Array* from = nullptr;
    std::byte* to = nullptr;
  };
  std::vector<Return> returns_;
};

}  // namespace ricci::runtime
