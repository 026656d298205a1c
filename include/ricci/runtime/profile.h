// Where the time of a program goes.
//
//   Profile profile;
//   f.run(feeds, {.profile = &profile});
//   std::puts(profile.to_string().c_str());                    // a table
//   io::write_file("trace.json", profile.chrome_trace());      // for ui.perfetto.dev
//
// Runs add to it; several threads may run with one profile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ricci/support/error.h"

namespace ricci {

/// A step of a program. Steps inside loops and branches come after the step that runs them, one
/// level deeper; the time of that one includes theirs.
struct ProfileRow {
  std::string program;
  std::size_t step = 0;
  int depth = 0;
  std::string label;     ///< ops, and the user's own words
  std::string kind;      ///< `kernel`, `control` or the op that is called
  SourcePosition where;  ///< in the user's source
  std::int64_t runs = 0;
  double seconds = 0;      ///< of all runs
  std::int64_t bytes = 0;  ///< one run reads and writes about this much
  std::int64_t flops = 0;  ///< and makes about as many operations on numbers
};

class Profile {
 public:
  /// The first `max_events` events of all runs are kept for the trace; all count in the rows.
  explicit Profile(std::size_t max_events = 100'000);
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  [[nodiscard]] std::vector<ProfileRow> rows() const;
  /// Of all runs, from the first step to the last.
  [[nodiscard]] double seconds() const;
  [[nodiscard]] std::int64_t runs() const;
  /// A table: step, time, share, GB/s and GFLOP/s (estimates), label and source line.
  [[nodiscard]] std::string to_string() const;
  /// Chrome's trace format, which Perfetto reads too.
  [[nodiscard]] std::string chrome_trace() const;

 private:
  friend class ProfileObserver;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ricci
