// A device with a kernel for every call: programs made for it have all roles there are, whichever
// devices a build has.
#pragma once

#include "ricci/compiler/schedule/target.h"

namespace ricci::testing {

class ClaimingTarget final : public schedule::Target {
 public:
  [[nodiscard]] bool claims(const loop::Call& /*call*/,
                            std::span<const Type> /*operands*/) const override {
    return true;
  }
  [[nodiscard]] bool compares_indices(const loop::Scatter& /*scatter*/) const override {
    return false;
  }
};

inline const schedule::Target& claiming_target() {
  static const ClaimingTarget target;
  return target;
}

}  // namespace ricci::testing
