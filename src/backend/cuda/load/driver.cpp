#include "backend/cuda/load/driver.h"

#include <array>

#include <fmt/format.h>

#include "ricci/support/error.h"

#include "backend/cuda/load/library.h"
#include "support/fork.h"

namespace ricci::cuda {
namespace {

constexpr int OldestDriver = 12000;  // of CUDA 12.0, as the driver counts

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

// The first function that is missing; null when all are there.
const char* find_all(const Library& library, Driver& driver) {
#define RICCI_CUDA_FIND(member, exported, parameters)                             \
  driver.member = reinterpret_cast<Status(*) parameters>(library.find(exported)); \
  if (driver.member == nullptr) return exported;
  RICCI_CUDA_DRIVER(RICCI_CUDA_FIND)
#undef RICCI_CUDA_FIND
  return nullptr;
}

std::string why_no_gpu(const Driver& driver) {
  int version = 0;
  int count = 0;
  const Status begun = driver.init(0);
  if (begun == NoDevice) return "this machine has no NVIDIA GPU";
  if (begun != 0) return "the NVIDIA driver does not start: " + driver.words_for(begun);
  if (driver.driver_version(&version) == 0 && version < OldestDriver) {
    return fmt::format("the NVIDIA driver is for CUDA {}, at least {} is needed",
                       version_text(version), version_text(OldestDriver));
  }
  if (driver.device_count(&count) != 0 || count == 0) return "this machine has no NVIDIA GPU";
  return {};
}

}  // namespace

std::string Driver::words_for(Status status) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (error_name == nullptr || error_name(status, &name) != 0 || name == nullptr ||
      error_string(status, &text) != 0 || text == nullptr) {
    return fmt::format("error {} of the CUDA driver", status);
  }
  return fmt::format("{}: {}", name, text);
}

void Driver::check(Status status, const char* doing) const {
  if (status == 0) return;
  if (status == OutOfMemory) {
    throw UserError(ErrorCode::OutOfMemory,
                    fmt::format("there is no room left on the GPU, which could not {}", doing));
  }
  throw DeviceError(fmt::format("the GPU could not {}", doing), words_for(status));
}

LoadedDriver load_driver(const std::string& folders) {
  const std::array<std::string, 2> names = {"libcuda.so.1", "libcuda.so"};
  LoadedDriver out;
  out.generation = process_generation();
  // One that has all functions is the driver, whatever it then says of this machine.
  const Library library(names, folders, [&](const Library& found) -> std::string {
    const char* missing = find_all(found, out.driver);
    return missing == nullptr ? "" : fmt::format("it is too old: it has no {}", missing);
  });
  if (!library.found()) {
    out.why_not = fmt::format("there is no NVIDIA driver ({})", library.why_not());
    return out;
  }
  out.driver.driver_version(&out.version);
  out.why_not = why_no_gpu(out.driver);
  return out;
}

const LoadedDriver& loaded_driver() {
  static const LoadedDriver loaded = load_driver(library_folders());
  return loaded;
}

}  // namespace ricci::cuda
