#include "backend/cuda/run/gpu.h"

#include <array>
#include <limits>

#include <fmt/format.h>

#include "ricci/support/error.h"

#include "support/fork.h"
#include "support/phases.h"

namespace ricci::cuda {
namespace {

struct Capability {
  int major = 0;
  int minor = 0;
  [[nodiscard]] int number() const { return 10 * major + minor; }
};

Capability capability(const Driver& driver) {
  Capability c;
  DeviceNumber device = 0;
  driver.check(driver.device_get(&device, 0), "be found");
  driver.check(driver.device_attribute(&c.major, AttributeMajor, device), "be asked");
  driver.check(driver.device_attribute(&c.minor, AttributeMinor, device), "be asked");
  return c;
}

}  // namespace

std::string why_not() {
  const UnforkedWork unforked;  // a child would wait for what is half loaded
  const LoadedDriver& loaded = loaded_driver();
  if (loaded.generation != process_generation()) {
    return "the NVIDIA driver was started before a fork, and does not work in the child";
  }
  if (!loaded.why_not.empty()) return loaded.why_not;
  try {
    const Capability c = capability(loaded.driver);
    if (c.number() < OldestCapability) {
      return fmt::format("the GPU has compute capability {}.{}, at least {}.{} is needed", c.major,
                         c.minor, OldestCapability / 10, OldestCapability % 10);
    }
    if (why_no_compiler().empty() && !code_target(c.number())) {
      return fmt::format("NVRTC {} compiles nothing for a GPU of compute capability {}.{}",
                         compiler_version(), c.major, c.minor);
    }
  } catch (const DeviceError& error) {
    return error.what();
  }
  return why_no_compiler();
}

Gpu::Gpu() : driver_(loaded_driver().driver), generation_(process_generation()) {
  DeviceNumber device = 0;
  driver_.check(driver_.device_get(&device, 0), "be found");
  std::array<char, 256> text{};
  driver_.check(driver_.device_name(text.data(), text.size() - 1, device), "tell its name");
  name_ = text.data();
  const Capability c = capability(driver_);
  architecture_ = fmt::format("sm_{}", c.number());
  code_target_ = cuda::code_target(c.number()).value();  // see why_not
  std::size_t bytes = 0;
  driver_.check(driver_.device_memory(&bytes, device), "tell its memory");
  memory_bytes_ = static_cast<std::int64_t>(bytes);
  driver_.check(driver_.device_attribute(&shared_bytes_, AttributeSharedOptIn, device),
                "tell its shared memory");
  driver_.check(driver_.retain_context(&context_, device), "be opened");
  driver_.check(driver_.set_context(context_), "be opened");
  int pools = 0;
  if (driver_.device_attribute(&pools, AttributePools, device) == 0 && pools != 0) {
    driver_.check(driver_.default_pool(&pool_, device), "give its pool of memory");
    std::uint64_t keep = std::numeric_limits<std::uint64_t>::max();
    driver_.check(driver_.pool_set(pool_, PoolReleaseThreshold, &keep), "keep its pool");
  }
  driver_.check(driver_.stream_create(&memory_stream_, StreamNonBlocking), "make a stream");
}

bool Gpu::trim() const noexcept {
  if (pool_ == nullptr) return false;
  // What is still on its way back counts as used.
  return driver_.stream_wait(memory_stream_) == 0 && driver_.pool_trim(pool_, 0) == 0;
}

CublasHandle Gpu::cublas() const {
  use();
  const UnforkedWork unforked;
  static const CublasHandle handle = [] {
    const Phase phase("cuBLASLt");
    const Cublas& library = cublas_library();
    CublasHandle made = nullptr;
    if (!library.why_not.empty() || library.create(&made) != 0) return CublasHandle{};
    return made;
  }();
  return handle;
}

const Gpu& Gpu::get() {
  const std::string fault = why_not();
  if (!fault.empty()) {
    throw UserError(ErrorCode::UnsupportedOnBackend,
                    fmt::format("the device 'cuda' cannot be used here: {}", fault));
  }
  const UnforkedWork unforked;  // a child would wait for one that is half made
  static const Gpu the;
  return the;
}

bool Gpu::try_use() const noexcept {
  return generation_ == process_generation() && driver_.set_context(context_) == 0;
}

void Gpu::use() const {
  if (generation_ != process_generation()) {
    throw DeviceError("a GPU that was opened before a fork cannot be used in the child");
  }
  driver_.check(driver_.set_context(context_), "be used by this thread");
}

}  // namespace ricci::cuda
