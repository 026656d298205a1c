// How branches and loops drive their bodies on any device: which buffers a body reads and fills
// each time, as their plans say. Addresses are the device's; they are counted with here and handed
// on, and only the device looks behind them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ricci/compiler/device/memory.h"
#include "ricci/compiler/schedule/program.h"

namespace ricci::device {

/// The bodies of a control step on a device. What is asked for is done in order; a device may still
/// be at work when a function returns that gives nothing back.
class Bodies {
 public:
  virtual ~Bodies() = default;
  /// Where the buffers of a body are; its inputs and outputs are set before it is run.
  [[nodiscard]] virtual std::span<std::byte*> buffers(std::size_t body) = 0;
  /// Runs a body with the buffers it has now.
  virtual void run(std::size_t body) = 0;
  /// Is it known that a body has met a fault, so that further trips are of no use?
  [[nodiscard]] virtual bool has_failed() const { return false; }
  virtual void copy(std::byte* to, const std::byte* from, std::int64_t bytes) = 0;
  virtual void zero(std::byte* at, std::int64_t bytes) = 0;
  virtual void store_count(std::byte* at, std::int32_t count) = 0;
  /// Is every element something else than zero? Asked once a branch, and once a trip of a loop
  /// with a condition.
  /// A device that has met a fault may say no, which ends the loop.
  [[nodiscard]] virtual bool all_nonzero(const std::byte* at, DType dtype,
                                         std::int64_t elements) = 0;
};

/// A carry while its loop runs.
struct CarryRoom {
  std::byte* at = nullptr;
  std::int64_t count = 0;  ///< of its pace
  std::int64_t rows = 0;   ///< kept so far
};

/// What a loop or branch keeps while it runs.
struct ControlRoom {
  std::vector<CarryRoom> carries;
  /// Per body and output: room for one that nobody wants; null for others.
  std::vector<std::vector<std::byte*>> spare;
  Array memory;
};

[[nodiscard]] ControlRoom make_control_room(const ControlStep& step, Memory& memory);
/// How many bytes its room takes for results of its bodies that nobody wants.
[[nodiscard]] std::int64_t control_spare_bytes(const ControlStep& step);

/// Runs a control step of a program whose buffers are at `buffers`. Allocates nothing.
void run_control(const ControlStep& step, std::span<std::byte* const> buffers, ControlRoom& room,
                 Bodies& bodies);

/// The answer for elements that lie in the host's memory.
[[nodiscard]] bool all_nonzero_on_host(const std::byte* at, DType dtype, std::int64_t elements);

}  // namespace ricci::device
