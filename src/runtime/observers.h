// What looks on while a program runs.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "ricci/compiler/device/executable.h"
#include "ricci/compiler/device/memory.h"
#include "ricci/runtime/profile.h"

namespace ricci {

/// Times steps; adds what it saw to a profile when it is destroyed.
class ProfileObserver final : public device::StepObserver {
 public:
  explicit ProfileObserver(Profile& profile);
  ProfileObserver(const ProfileObserver&) = delete;
  ProfileObserver& operator=(const ProfileObserver&) = delete;
  ~ProfileObserver() override;

  void before(const Program& program, std::size_t step, const device::Buffers& buffers) override;
  void after(const Program& program, std::size_t step, const device::Buffers& buffers) override;

 private:
  using Clock = std::chrono::steady_clock;
  struct Seen {
    const Program* program = nullptr;
    std::size_t step = 0;
    int depth = 0;
    std::int64_t runs = 0;
    std::int64_t nanoseconds = 0;
  };
  struct Event {
    std::size_t seen = 0;
    std::int64_t start = 0;  // nanoseconds after the profile was made
    std::int64_t duration = 0;
  };
  struct Open {
    std::size_t seen = 0;
    Clock::time_point start;
  };
  std::size_t find(const Program& program, std::size_t step);

  Profile& profile_;
  std::map<std::pair<const Program*, std::size_t>, std::size_t> index_;
  std::vector<Seen> seen_;
  std::vector<Event> events_;
  std::vector<Open> open_;
  std::int64_t nanoseconds_ = 0;  // of steps that are in no other
};

namespace runtime {

/// Stops at the first step that makes a NaN or an infinity of finite numbers.
class FiniteObserver final : public device::StepObserver {
 public:
  void before(const Program& program, std::size_t step, const device::Buffers& buffers) override;
  void after(const Program& program, std::size_t step, const device::Buffers& buffers) override;

  /// UserError that names an input that holds a NaN before anything is run.
  static void check_inputs(const Program& program, device::Memory& memory,
                           std::span<const std::byte* const> inputs,
                           const std::vector<std::string>& names);

 private:
  struct Held {
    bool nan = false;
    bool infinite = false;
  };
  // A step that has begun, and what the operands of its launches hold.
  struct Around {
    std::string what;
    std::vector<Held> operands;
  };
  void judge(const Origin& made_by, const Held& in, const Held& out, std::int64_t element) const;

  std::vector<Around> around_;
};

}  // namespace runtime
}  // namespace ricci
