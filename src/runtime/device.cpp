#include "ricci/runtime/device.h"

#include "ricci/compiler/device/backend.h"
#include "ricci/compiler/device/memory.h"

#include "backend/backends.h"
#include "support/fork.h"

namespace ricci {

Device Device::named(std::string_view name, int threads) {
  return Device(backend::open(name, threads));
}

const Device& Device::default_cpu() {
  const UnforkedWork unforked;  // a child would wait for a device that is half made
  static const Device device = cpu();
  return device;
}

const Device& Device::standard() {
  static const Device device = [] {
    const std::string first = backend::names().front();
    return first == "cpu" ? default_cpu() : named(first);
  }();
  return device;
}

std::vector<DeviceListing> Device::all() {
  std::vector<DeviceListing> out;
  for (device::Listed& l : backend::list())
    out.push_back({std::move(l.name), std::move(l.why_not)});
  return out;
}

std::vector<std::string> Device::names() { return backend::names(); }

void Device::warm_up() const { backend_->warm_up(); }
std::int64_t Device::memory_bytes() { return device::host_memory().total_bytes(); }
std::string_view Device::name() const noexcept { return backend_->name(); }
int Device::threads() const noexcept { return backend_->threads(); }

}  // namespace ricci
