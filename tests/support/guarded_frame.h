// The buffers of a program's context, taken to places where a step over their edge is a fault.
#pragma once

#include <algorithm>
#include <vector>

#include "backend/cpu/run/executable.h"
#include "support/guarded_buffer.h"

namespace ricci::testing {

/// A copy between guards.
[[nodiscard]] inline GuardedBuffer guarded_copy(std::span<const std::byte> bytes,
                                                GuardedBuffer::Edge edge) {
  GuardedBuffer copy(bytes.size(), edge);
  std::ranges::copy(bytes, copy.data());
  return copy;
}

/// Takes temporaries out of the arena, and constants out of the program, to places of their own for
/// as long as it lives.
class GuardedFrame {
 public:
  GuardedFrame(const cpu::Executable& executable, cpu::Frame& frame, GuardedBuffer::Edge edge)
      : edge_(edge) {
    guard(executable, frame);
  }

 private:
  void guard(const cpu::Executable& executable, cpu::Frame& frame) {
    const ricci::Program& program = executable.program();
    for (std::size_t b = 0; b < program.buffers.size(); ++b) {
      const Buffer& planned = program.buffers[b];
      if (planned.role == Buffer::Role::Temporary) {
        const auto bytes = static_cast<std::size_t>(planned.bytes());
        frame.buffers[b] = buffers_.emplace_back(bytes, edge_).data();
      } else if (planned.role == Buffer::Role::Constant) {
        buffers_.push_back(guarded_copy(planned.constant.bytes(), edge_));
        buffers_.back().make_read_only();
        frame.buffers[b] = buffers_.back().data();
      }
    }
    for (std::size_t s = 0; s < frame.bodies.size(); ++s) {
      for (std::size_t k = 0; k < frame.bodies[s].size(); ++k) {
        guard(*executable.body(s, k), frame.bodies[s][k]);
      }
    }
  }

  GuardedBuffer::Edge edge_;
  std::vector<GuardedBuffer> buffers_;
};

}  // namespace ricci::testing
