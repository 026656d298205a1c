// Where the time of compiling goes. A `Phase` is a scope with a name; those within it are its
// parts. They are noted while somebody listens (`PhaseLog`), and cost a load otherwise.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ricci {

namespace detail {
class PhaseTree;
struct PhaseNode;
}  // namespace detail

/// A phase as it is reported: its times on all threads together.
struct PhaseTime {
  std::string name;
  std::size_t depth = 0;  ///< of phases it is part of
  std::int64_t times = 0;
  double seconds = 0;
  double own_seconds = 0;  ///< without its parts
};

/// Listens to the phases of every thread while it lives, or until a newer one listens.
class PhaseLog {
 public:
  PhaseLog();
  PhaseLog(const PhaseLog&) = delete;
  PhaseLog& operator=(const PhaseLog&) = delete;
  ~PhaseLog();

  /// Every phase before its parts, parts in the order they began first. Those that are under way
  /// count with what is over of them.
  [[nodiscard]] std::vector<PhaseTime> times() const;

 private:
  std::shared_ptr<detail::PhaseTree> tree_;
};

/// The phase a thread is in, to be handed to threads that do a part of it.
class PhaseRef {
 public:
  PhaseRef() = default;

 private:
  friend class Phase;
  friend class PhaseWithin;
  friend PhaseRef current_phase() noexcept;
  std::shared_ptr<detail::PhaseTree> tree_;
  detail::PhaseNode* node_ = nullptr;
};
[[nodiscard]] PhaseRef current_phase() noexcept;

/// While it lives, phases of this thread are parts of `outer`.
class PhaseWithin {
 public:
  explicit PhaseWithin(PhaseRef outer) noexcept;
  PhaseWithin(const PhaseWithin&) = delete;
  PhaseWithin& operator=(const PhaseWithin&) = delete;
  ~PhaseWithin();

 private:
  PhaseRef before_;
};

class Phase {
 public:
  explicit Phase(std::string_view name);
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;
  ~Phase();

 private:
  PhaseRef now_;  // nothing where nobody listens
  PhaseRef before_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace ricci
