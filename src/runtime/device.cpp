#include "ricci/runtime/device.h"

namespace ricci {

Device Device::cpu(int threads) { return {"cpu", std::make_shared<ThreadPool>(threads)}; }

const Device& Device::default_cpu() {
  static const Device device = cpu();
  return device;
}

}  // namespace ricci
