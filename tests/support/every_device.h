// Tests that hold on every device this build has and this machine can use.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "ricci/runtime/device.h"

namespace ricci::testing {

/// A suite that derives from it and is declared with RICCI_ON_EVERY_DEVICE runs once a device.
class OnEveryDevice : public ::testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] const Device& device() const { return device_; }

 private:
  Device device_ = Device::named(GetParam());
};

inline std::vector<std::string> usable_devices() {
  std::vector<std::string> names;
  for (const DeviceListing& l : Device::all()) {
    if (l.why_not.empty()) names.push_back(l.name);
  }
  return names;
}

/// Is it part of this build, and can it be used here? Tests of what only it does skip themselves
/// where not.
inline bool has_device(std::string_view name) {
  return std::ranges::count(usable_devices(), name) != 0;
}

}  // namespace ricci::testing

#define RICCI_ON_EVERY_DEVICE(Suite)                                          \
  INSTANTIATE_TEST_SUITE_P(All, Suite, ::testing::ValuesIn(usable_devices()), \
                           [](const auto& device) { return device.param; })
