#include "support/phases.h"

#include <atomic>
#include <list>
#include <utility>

#include "support/fork.h"

namespace ricci {
namespace detail {

struct PhaseNode {
  std::string name;
  std::int64_t times = 0;
  double seconds = 0;
  std::list<PhaseNode> parts;  // which others point into
};

class PhaseTree {
 public:
  PhaseNode* enter(PhaseNode* outer, std::string_view name) {
    const std::lock_guard lock(mutex_);
    std::list<PhaseNode>& among = outer != nullptr ? outer->parts : roots_;
    for (PhaseNode& known : among) {
      if (known.name == name) return &known;
    }
    among.push_back({std::string(name), 0, 0, {}});
    return &among.back();
  }

  void leave(PhaseNode& node, double seconds) {
    const std::lock_guard lock(mutex_);
    ++node.times;
    node.seconds += seconds;
  }

  [[nodiscard]] std::vector<PhaseTime> times() const {
    const std::lock_guard lock(mutex_);
    std::vector<PhaseTime> out;
    for (const PhaseNode& root : roots_) add(root, 0, out);
    return out;
  }

 private:
  static void add(const PhaseNode& node, std::size_t depth, std::vector<PhaseTime>& out) {
    PhaseTime t{node.name, depth, node.times, node.seconds, node.seconds};
    for (const PhaseNode& part : node.parts) t.own_seconds -= part.seconds;
    if (t.own_seconds < 0) t.own_seconds = 0;  // its parts ran side by side
    out.push_back(std::move(t));
    for (const PhaseNode& part : node.parts) add(part, depth + 1, out);
  }

  mutable ForkMutex mutex_;
  std::list<PhaseNode> roots_;
};

}  // namespace detail

namespace {

struct Listener {
  std::atomic<bool> is_there = false;
  ForkMutex mutex;
  std::shared_ptr<detail::PhaseTree> tree;

  std::shared_ptr<detail::PhaseTree> now() {
    const std::lock_guard lock(mutex);
    return tree;
  }
};

Listener& listener() {
  static Listener the_listener;
  return the_listener;
}

thread_local PhaseRef this_phase;

}  // namespace

PhaseLog::PhaseLog() : tree_(std::make_shared<detail::PhaseTree>()) {
  const std::lock_guard lock(listener().mutex);
  listener().tree = tree_;
  listener().is_there = true;
}

PhaseLog::~PhaseLog() {
  const std::lock_guard lock(listener().mutex);
  if (listener().tree != tree_) return;
  listener().tree.reset();
  listener().is_there = false;
}

std::vector<PhaseTime> PhaseLog::times() const { return tree_->times(); }

PhaseRef current_phase() noexcept { return this_phase; }

PhaseWithin::PhaseWithin(PhaseRef outer) noexcept
    : before_(std::exchange(this_phase, std::move(outer))) {}
PhaseWithin::~PhaseWithin() { this_phase = std::move(before_); }

Phase::Phase(std::string_view name) {
  if (!listener().is_there.load(std::memory_order_relaxed)) return;
  now_.tree_ = listener().now();
  if (now_.tree_ == nullptr) return;
  // What an older log has heard of is no part of what this one hears.
  detail::PhaseNode* outer = this_phase.tree_ == now_.tree_ ? this_phase.node_ : nullptr;
  now_.node_ = now_.tree_->enter(outer, name);
  before_ = std::exchange(this_phase, now_);
  start_ = std::chrono::steady_clock::now();
}

Phase::~Phase() {
  if (now_.node_ == nullptr) return;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start_;
  now_.tree_->leave(*now_.node_, took.count());
  this_phase = std::move(before_);
}

}  // namespace ricci
