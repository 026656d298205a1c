#include "ricci/support/stop.h"

#include <utility>

#include "ricci/support/error.h"

#include "support/stop_flag.h"

namespace ricci {
namespace {

constinit thread_local const StopFlag* current = nullptr;

}  // namespace

const StopFlag* current_stop_flag() noexcept { return current; }

void fail_stopped() {
  throw UserError(ErrorCode::Stopped, "the program was stopped before it was done");
}

bool stop_requested() noexcept {
  return current != nullptr && current->load(std::memory_order_relaxed);
}

void throw_if_stopped() { throw_if_set(current); }

StopScope::StopScope(StopToken token) noexcept : token_(std::move(token)), outer_(current) {
  if (token_.flag() != nullptr) current = token_.flag();
}

StopScope::~StopScope() { current = outer_; }

StopFlagScope::StopFlagScope(const StopFlag* flag) noexcept
    : outer_(std::exchange(current, flag)) {}

StopFlagScope::~StopFlagScope() { current = outer_; }

}  // namespace ricci
