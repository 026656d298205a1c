// A stop button for what takes long: runs, the interpreter, compiling.
//
//   StopSource stop;
//   f.run(feeds, {.stop = stop.token()});     // UserError(stopped) soon after
//   stop.request_stop();                      // … another thread or a signal handler says so
//
// Calls that take no token obey the scope they are made in:
//
//   const StopScope scope(stop.token());
//   CompiledGraph f = compile(graph);
#pragma once

#include <atomic>
#include <memory>

namespace ricci {

/// Whether someone has asked for a stop; once true it stays so.
using StopFlag = std::atomic<bool>;
static_assert(StopFlag::is_always_lock_free, "signal handlers set it");

/// What obeys a source. A token of no source never asks for a stop.
class StopToken {
 public:
  StopToken() noexcept = default;
  [[nodiscard]] bool stop_requested() const noexcept {
    return flag_ != nullptr && flag_->load(std::memory_order_relaxed);
  }
  [[nodiscard]] const StopFlag* flag() const noexcept { return flag_.get(); }

 private:
  friend class StopSource;
  explicit StopToken(std::shared_ptr<const StopFlag> flag) noexcept : flag_(std::move(flag)) {}
  std::shared_ptr<const StopFlag> flag_;
};

/// The button. It is pressed once: what runs later with its tokens stops at its first look.
class StopSource {
 public:
  StopSource() : flag_(std::make_shared<StopFlag>(false)) {}
  /// Any thread may call it, and any signal handler: it stores to an atomic and does nothing else.
  void request_stop() const noexcept { flag_->store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool stop_requested() const noexcept {
    return flag_->load(std::memory_order_relaxed);
  }
  [[nodiscard]] StopToken token() const noexcept { return StopToken(flag_); }

 private:
  std::shared_ptr<StopFlag> flag_;
};

/// While it lives, what this thread does for a program obeys a token: runs, compiles, the
/// interpreter, and the threads they use. Of nested scopes the inner one counts; one of no source
/// changes nothing.
class StopScope {
 public:
  explicit StopScope(StopToken token) noexcept;
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;
  ~StopScope();

 private:
  StopToken token_;
  const StopFlag* outer_;
};

/// Has the scope this thread is in been asked to stop? For kernels of your own that take long.
[[nodiscard]] bool stop_requested() noexcept;
/// UserError(stopped) when it has.
void throw_if_stopped();

}  // namespace ricci
