#include "backend/cpu/code_cache.h"

#include <map>
#include <mutex>

#include <fmt/format.h>

namespace ricci::cpu {
namespace {

struct Cache {
  std::mutex mutex;
  std::map<std::string, CompiledKernel> kernels;
};

Cache& cache() {
  static Cache the_cache;
  return the_cache;
}

}  // namespace

std::vector<CompiledKernel> compile_all(std::span<const loop::Kernel> kernels) {
  std::vector<std::string> keys;
  for (const loop::Kernel& k : kernels) keys.push_back(code_key(k));
  std::map<std::string, CompiledKernel> known;
  std::vector<KernelSource> missing;
  std::vector<std::string> missing_keys;
  {
    const std::lock_guard lock(cache().mutex);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (known.contains(keys[i])) continue;
      const auto found = cache().kernels.find(keys[i]);
      known[keys[i]] = found == cache().kernels.end() ? CompiledKernel{} : found->second;
      if (found != cache().kernels.end()) continue;
      missing.push_back({&kernels[i], fmt::format("k{}", missing.size())});
      missing_keys.push_back(keys[i]);
    }
  }
  if (!missing.empty()) {
    const std::shared_ptr<const JitCode> code = compile_kernels(missing, {});
    const std::lock_guard lock(cache().mutex);
    for (std::size_t i = 0; i < missing.size(); ++i) {
      const CompiledKernel compiled{
          code, reinterpret_cast<KernelFunction>(code->find(missing[i].symbol))};
      cache().kernels[missing_keys[i]] = compiled;
      known[missing_keys[i]] = compiled;
    }
  }
  std::vector<CompiledKernel> out;
  for (const std::string& key : keys) out.push_back(known.at(key));
  return out;
}

}  // namespace ricci::cpu
