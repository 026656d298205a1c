#include "backend/cpu/code_cache.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>

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

// Largest first, each to the share with the least so far.
std::vector<std::vector<std::size_t>> shared_out(const std::vector<KernelSource>& kernels,
                                                 std::size_t threads) {
  std::vector<std::size_t> order(kernels.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto size = [&](std::size_t i) { return kernels[i].kernel->code.size() + 8; };
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return size(a) > size(b); });
  std::vector<std::vector<std::size_t>> shares(std::min(threads, kernels.size()));
  std::vector<std::size_t> sizes(shares.size(), 0);
  for (const std::size_t i : order) {
    const auto least = std::ranges::min_element(sizes) - sizes.begin();
    shares[static_cast<std::size_t>(least)].push_back(i);
    sizes[static_cast<std::size_t>(least)] += size(i);
  }
  return shares;
}

}  // namespace

std::vector<CompiledKernel> compile_all(std::span<const loop::Kernel> kernels, ThreadPool& pool) {
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
  // Each thread compiles a share of about equal size, as one module: setting up LLVM is dear.
  const auto shares = shared_out(missing, static_cast<std::size_t>(pool.threads()));
  std::vector<std::shared_ptr<const JitCode>> codes(shares.size());
  pool.run(static_cast<std::int64_t>(shares.size()), [&](std::int64_t n) {
    std::vector<KernelSource> sources;
    for (const std::size_t i : shares[static_cast<std::size_t>(n)]) sources.push_back(missing[i]);
    codes[static_cast<std::size_t>(n)] = compile_kernels(sources, {});
  });
  const std::lock_guard lock(cache().mutex);
  for (std::size_t n = 0; n < shares.size(); ++n) {
    for (const std::size_t i : shares[n]) {
      const CompiledKernel compiled{
          codes[n], reinterpret_cast<KernelFunction>(codes[n]->find(missing[i].symbol))};
      cache().kernels[missing_keys[i]] = compiled;
      known[missing_keys[i]] = compiled;
    }
  }
  std::vector<CompiledKernel> out;
  for (const std::string& key : keys) out.push_back(known.at(key));
  return out;
}

}  // namespace ricci::cpu
