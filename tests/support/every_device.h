// Tests that hold on every device this build has and this machine can use.
#pragma once

#include <string>
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

}  // namespace ricci::testing

#define RICCI_ON_EVERY_DEVICE(Suite)                                          \
  INSTANTIATE_TEST_SUITE_P(All, Suite, ::testing::ValuesIn(usable_devices()), \
                           [](const auto& device) { return device.param; })
