// What one thread uses at a time says so, rather than breaking, when two do.
#pragma once

#include "ricci/support/error.h"

#include "support/fork.h"

namespace ricci {

/// While it lives nobody else is let in: UserError(busy), which says so in `message`.
class OneUser {
 public:
  OneUser(OneAtATime& one, const char* message, const char* help) : one_(one) {
    if (!one_.try_enter()) throw UserError(ErrorCode::Busy, message, help);
  }
  OneUser(const OneUser&) = delete;
  OneUser& operator=(const OneUser&) = delete;
  ~OneUser() { one_.leave(); }

 private:
  OneAtATime& one_;
};

}  // namespace ricci
