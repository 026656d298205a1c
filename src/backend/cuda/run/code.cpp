#include "backend/cuda/run/code.h"

#include <map>
#include <mutex>
#include <optional>

#include <fmt/format.h>

#include "ricci/support/error.h"

#include "backend/cuda/load/nvrtc.h"
#include "backend/cuda/run/code_folder.h"
#include "support/fork.h"
#include "support/phases.h"

namespace ricci::cuda {
namespace {

struct Cache {
  ForkMutex mutex;
  std::map<std::string, std::shared_ptr<const LoadedKernel>, std::less<>> codes;  // by text
  CodeStatistics statistics;
};

Cache& cache() {
  static auto* const the_cache = new Cache;  // the driver may be gone before it would be
  return *the_cache;
}

// All that the code of a kernel depends on.
std::string key_of(const Gpu& gpu, const KernelText& text) {
  return fmt::format("{} as {} NVRTC {} {}\n{} {}\n{}", gpu.architecture(),
                     gpu.code_target().architecture, compiler_version(), compiler_options(),
                     text.name, text.shared_bytes, text.text);
}

struct Missing {
  const KernelText* text = nullptr;
  std::string key;
  std::shared_ptr<const LoadedKernel> code = nullptr;
  bool loaded = false;
};

std::vector<char> compiled(const Gpu& gpu, const KernelText& text) {
  const Phase phase("NVRTC");
  return compile_source(text.text, gpu.code_target().architecture, gpu.code_target().form);
}

void make(const Gpu& gpu, Missing& missing, const KeptCode* kept) {
  gpu.use();
  if (kept != nullptr) {
    const auto found = kept->load(missing.key);
    try {
      if (found) missing.code = std::make_shared<const LoadedKernel>(gpu, *found, *missing.text);
    } catch (const DeviceError&) {
      missing.code = nullptr;  // of a newer driver: it is compiled again
    }
    missing.loaded = missing.code != nullptr;
    if (missing.loaded) return;
  }
  const UnforkedWork unforked;
  const std::vector<char> cubin = compiled(gpu, *missing.text);
  missing.code = std::make_shared<const LoadedKernel>(gpu, cubin, *missing.text);
  if (kept != nullptr) kept->store(missing.key, {cubin.data(), cubin.size()});
}

}  // namespace

LoadedKernel::LoadedKernel(const Gpu& gpu, std::span<const char> cubin, const KernelText& text)
    : gpu_(gpu) {
  const Phase phase("load");
  const Driver& driver = gpu.driver();
  if (text.shared_bytes > gpu.shared_bytes()) {
    throw UserError(ErrorCode::UnsupportedOnBackend,
                    fmt::format("a kernel needs {} bytes of shared memory, a block of {} has {}",
                                text.shared_bytes, gpu.name(), gpu.shared_bytes()));
  }
  driver.check(gpu.with_room([&] { return driver.module_load(&module_, cubin.data()); }),
               "load a kernel");
  Status status = driver.module_function(&function_, module_, text.name.c_str());
  // What it has besides counts too, and is known to the driver alone: it is always asked.
  if (status == 0 && text.shared_bytes > 0) {
    status = driver.function_set(function_, FunctionDynamicShared, text.shared_bytes);
  }
  if (status != 0) driver.module_unload(module_);
  driver.check(status, "load a kernel");
}

LoadedKernel::~LoadedKernel() {
  if (gpu_.try_use())
    gpu_.driver().module_unload(module_);  // a child of fork has nothing to unload
}

std::vector<std::shared_ptr<const LoadedKernel>> compile_all(
    const Gpu& gpu, std::span<const KernelText* const> texts, ThreadPool& pool,
    const CodeFolder& folder) {
  std::vector<std::string> keys;
  std::map<std::string, std::shared_ptr<const LoadedKernel>, std::less<>> known;
  std::vector<Missing> missing;
  for (const KernelText* text : texts) keys.push_back(key_of(gpu, *text));
  {
    const std::lock_guard lock(cache().mutex);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (known.contains(keys[i])) continue;
      const auto found = cache().codes.find(keys[i]);
      known[keys[i]] = found == cache().codes.end() ? nullptr : found->second;
      if (found == cache().codes.end()) missing.push_back({texts[i], keys[i]});
    }
  }
  if (!missing.empty()) {
    std::optional<KeptCode> kept;
    if (!folder.path.empty()) kept.emplace(folder.path, folder.max_bytes);
    const PhaseRef outer = current_phase();
    pool.run(static_cast<std::int64_t>(missing.size()), [&](std::int64_t n) {
      const PhaseWithin within(outer);
      make(gpu, missing[static_cast<std::size_t>(n)], kept ? &*kept : nullptr);
    });
    if (kept) kept->trim();
    const std::lock_guard lock(cache().mutex);
    constexpr std::size_t Most = 4096;  // a process that goes on with new sizes must not grow
    if (cache().codes.size() > Most) cache().codes.clear();
    for (const Missing& m : missing) {
      ++(m.loaded ? cache().statistics.loaded : cache().statistics.compiled);
      cache().codes[m.key] = m.code;
      known[m.key] = m.code;
    }
  }
  std::vector<std::shared_ptr<const LoadedKernel>> out;
  out.reserve(keys.size());
  for (const std::string& key : keys) out.push_back(known.at(key));
  return out;
}

CodeStatistics code_statistics() {
  const std::lock_guard lock(cache().mutex);
  return cache().statistics;
}

void forget_code() {
  const std::lock_guard lock(cache().mutex);
  cache().codes.clear();
}

}  // namespace ricci::cuda
