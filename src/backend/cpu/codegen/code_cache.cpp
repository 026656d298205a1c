#include "backend/cpu/codegen/code_cache.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "backend/cpu/codegen/loop_code.h"
#include "backend/cpu/codegen/object_cache.h"
#include "support/fork.h"
#include "support/phases.h"

namespace ricci::cpu {
namespace {

struct Cache {
  ForkMutex mutex;
  std::map<std::string, KernelCode> kernels;
  std::map<std::string, LoopCode> loops;
  CodeStatistics statistics;

  void count(const CodeStatistics& more) {
    statistics.compiled += more.compiled;
    statistics.loaded += more.loaded;
  }
  void forget() {
    kernels.clear();
    loops.clear();
  }
  // A process that goes on compiling new sizes would never stop growing. Programs that use the code
  // keep it.
  void make_room() {
    constexpr std::size_t Most = 4096;
    if (kernels.size() + loops.size() > Most) forget();
  }
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
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    return size(a) != size(b) ? size(a) > size(b) : a < b;
  });
  std::vector<std::vector<std::size_t>> shares(std::min(threads, kernels.size()));
  std::vector<std::size_t> sizes(shares.size(), 0);
  for (const std::size_t i : order) {
    const auto least = std::ranges::min_element(sizes) - sizes.begin();
    shares[static_cast<std::size_t>(least)].push_back(i);
    sizes[static_cast<std::size_t>(least)] += size(i);
  }
  return shares;
}

KernelFunction function_in(const JitCode& code, const std::string& symbol) {
  return reinterpret_cast<KernelFunction>(code.find(symbol));
}

// Kernels that are not in memory: from the folder, or from the code generator.
class Missing {
 public:
  explicit Missing(const CodeFolder& folder) {
    if (!folder.path.empty()) disk_.emplace(folder.path, folder.max_bytes);
  }

  void add(const loop::Kernel& kernel, const std::string& key) {
    kernels_.push_back(&kernel);
    keys_.push_back(key);
  }

  // By key.
  std::map<std::string, KernelCode> code(ThreadPool& pool, CodeStatistics& statistics) {
    std::map<std::string, KernelCode> found;
    if (keys_.empty()) return found;
    if (disk_) {
      const std::vector<ObjectCache::Hit> hits = disk_->load(keys_);
      for (std::size_t i = 0; i < hits.size(); ++i) {
        if (hits[i].code == nullptr) continue;
        found[keys_[i]] = {hits[i].code, function_in(*hits[i].code, hits[i].symbol)};
        ++statistics.loaded;
      }
    }
    compile_rest(pool, found, statistics);
    return found;
  }

 private:
  void compile_rest(ThreadPool& pool, std::map<std::string, KernelCode>& found,
                    CodeStatistics& statistics) {
    std::vector<KernelSource> sources;
    std::vector<std::string> keys;
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      if (found.contains(keys_[i])) continue;
      sources.push_back({kernels_[i], fmt::format("k{}", sources.size())});
      keys.push_back(keys_[i]);
    }
    // Each thread compiles a share of about equal size, as one module: setting up LLVM is dear.
    const auto shares = shared_out(sources, static_cast<std::size_t>(pool.threads()));
    std::vector<std::shared_ptr<const JitCode>> codes(shares.size());
    const PhaseRef phase = current_phase();
    pool.run(static_cast<std::int64_t>(shares.size()), [&](std::int64_t n) {
      const PhaseWithin within(phase);
      const auto share = static_cast<std::size_t>(n);
      std::vector<KernelSource> some;
      std::vector<ObjectCache::Entry> entries;
      for (const std::size_t i : shares[share]) {
        some.push_back(sources[i]);
        entries.push_back({keys[i], sources[i].symbol});
      }
      JitOptions options;
      options.keep_object = disk_.has_value();
      codes[share] = compile_kernels(some, options);
      if (disk_) disk_->store(entries, codes[share]->kept().object);
    });
    for (std::size_t n = 0; n < shares.size(); ++n) {
      for (const std::size_t i : shares[n]) {
        found[keys[i]] = {codes[n], function_in(*codes[n], sources[i].symbol)};
        ++statistics.compiled;
      }
    }
  }

  std::optional<ObjectCache> disk_;
  std::vector<const loop::Kernel*> kernels_;
  std::vector<std::string> keys_;
};

}  // namespace

std::vector<KernelCode> compile_all(std::span<const loop::Kernel> kernels, ThreadPool& pool,
                                    const CodeFolder& folder) {
  const Phase phase("machine code of kernels");
  std::vector<StartedKernel> started;
  std::vector<std::string> keys;
  for (const loop::Kernel& k : kernels) {
    started.push_back(from_first_places(k));
    keys.push_back(code_key(started.back().kernel));
  }
  std::map<std::string, KernelCode> known;
  Missing missing(folder);
  {
    const std::lock_guard lock(cache().mutex);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (known.contains(keys[i])) continue;
      const auto found = cache().kernels.find(keys[i]);
      known[keys[i]] = found == cache().kernels.end() ? KernelCode{} : found->second;
      if (found == cache().kernels.end()) missing.add(started[i].kernel, keys[i]);
    }
  }
  CodeStatistics statistics;
  const std::map<std::string, KernelCode> made = missing.code(pool, statistics);
  if (!made.empty()) {
    const std::lock_guard lock(cache().mutex);
    cache().count(statistics);
    cache().make_room();
    for (const auto& [key, compiled] : made) {
      cache().kernels[key] = compiled;
      known[key] = compiled;
    }
  }
  std::vector<KernelCode> out;
  out.reserve(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    out.push_back(known.at(keys[i]));
    out.back().starts = std::move(started[i].starts);
  }
  return out;
}

std::vector<KernelCode> JitSource::kernels(std::span<const loop::Kernel> kernels) {
  return compile_all(kernels, pool_, folder_);
}

LoopCode JitSource::loop(const loop::WrittenLoop& loop) {
  const Phase phase("machine code of loops");
  const std::string key = "loop " + loop_text(loop);
  {
    const std::lock_guard lock(cache().mutex);
    const auto found = cache().loops.find(key);
    if (found != cache().loops.end()) return found->second;
  }
  std::optional<ObjectCache> disk;
  if (!folder_.path.empty()) disk.emplace(folder_.path, folder_.max_bytes);
  CodeStatistics statistics;
  std::shared_ptr<const JitCode> code;
  if (disk) code = disk->load(std::span(&key, 1))[0].code;
  if (code != nullptr) {
    statistics.loaded = 1;
  } else {
    JitOptions options;
    options.keep_object = disk.has_value();
    code = compile_loop(loop, options);
    statistics.compiled = 1;
    const ObjectCache::Entry entry{key, LoopSymbol};
    if (disk) disk->store(std::span(&entry, 1), code->kept().object);
  }
  const LoopCode made{code, reinterpret_cast<LoopFunction>(code->find(LoopSymbol))};
  const std::lock_guard lock(cache().mutex);
  cache().count(statistics);
  cache().make_room();
  return cache().loops.emplace(key, made).first->second;
}

CodeStatistics code_statistics() {
  const std::lock_guard lock(cache().mutex);
  return cache().statistics;
}

void forget_code() {
  const std::lock_guard lock(cache().mutex);
  cache().forget();
}

}  // namespace ricci::cpu
