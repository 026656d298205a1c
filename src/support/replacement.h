// The one way files are written: a new file in an open folder, under a name nobody can guess, which
// takes the place of another once it is whole. It is created for this purpose alone (never opened
// through a link, never shared with another process) and removed unless it was put in place.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <sys/stat.h>
#include <sys/types.h>

#include "support/descriptor.h"

namespace ricci {

/// Is this a name that files have while they are written?
[[nodiscard]] bool is_temporary_name(std::string_view name) noexcept;
/// Has a file of such a name not been written to for so long that its writer was killed?
[[nodiscard]] bool is_abandoned(const struct stat& status) noexcept;

class Replacement {
 public:
  enum class Sync : bool {
    No,  ///< for files that say themselves whether they are whole
    Yes
  };

  /// `folder` must stay open. Ask `is_open`; errno says why it is not.
  Replacement(const Descriptor& folder, mode_t mode);
  ~Replacement();
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  [[nodiscard]] bool is_open() const noexcept { return file_.is_open(); }
  [[nodiscard]] const Descriptor& file() const noexcept { return file_; }
  /// Gives the file a name in its folder, in place of what has it. False when that fails; errno
  /// says why.
  [[nodiscard]] bool put_in_place(const std::string& name, Sync sync) noexcept;

 private:
  const Descriptor& folder_;
  Descriptor file_;
  std::string temporary_;  // empty: nothing to remove
};

}  // namespace ricci
