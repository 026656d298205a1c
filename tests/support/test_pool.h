// The threads that tests of the CPU back end's parts run on.
#pragma once

#include "ricci/compiler/device/backend.h"
#include "ricci/runtime/device.h"

#include "backend/cpu/codegen/backend.h"

namespace ricci::testing {

/// Those of a CPU device.
inline ThreadPool& pool_of(const Device& device = Device::default_cpu()) {
  return dynamic_cast<const cpu::Backend&>(device.backend()).pool();
}

}  // namespace ricci::testing
