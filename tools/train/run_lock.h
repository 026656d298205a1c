// One process at a time writes the folder of a run.
#pragma once

#include <string>

#include "support/descriptor.h"

namespace ricci::tool {

/// Held while it lives, and let go by the system when the process ends, however it ends.
class RunLock {
 public:
  static constexpr const char* Name = "run.lock";

  /// UserError(busy) that names the process which holds it. Where the file system has no locks
  /// there is none.
  explicit RunLock(const std::string& folder);

 private:
  Descriptor file_;
};

}  // namespace ricci::tool
