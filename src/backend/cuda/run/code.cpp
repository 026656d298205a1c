#include "backend/cuda/run/code.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>

#include <fmt/format.h>

#include "ricci/support/error.h"

#include "backend/cuda/load/nvrtc.h"
#include "backend/cuda/run/code_folder.h"
#include "backend/cuda/run/source_groups.h"
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
  return fmt::format("kernel for {} as {} NVRTC {} {}\n{} {}\n{}", gpu.architecture(),
                     gpu.code_target().architecture, compiler_version(), compiler_options(),
                     text.name, text.shared_bytes, text.text);
}

// Where the code of a kernel is kept: the name of a piece of code, and of the kernel in it.
struct KeptPlace {
  std::string code;
  std::string name;
};
std::string text_of(const KeptPlace& place) { return place.code + '\n' + place.name; }
std::optional<KeptPlace> place_of(const std::vector<char>& text) {
  const auto end = std::ranges::find(text, '\n');
  if (end == text.end()) return std::nullopt;
  return KeptPlace{{text.begin(), end}, {end + 1, text.end()}};
}

struct Missing {
  const KernelText* text = nullptr;
  std::string key;
  std::shared_ptr<const LoadedKernel> code = nullptr;
  bool loaded = false;
};

// Makes the kernels that are not there yet.
class Making {
 public:
  Making(const Gpu& gpu, const KeptCode* kept, ThreadPool& pool, std::span<Missing> missing)
      : gpu_(gpu), kept_(kept), pool_(pool), missing_(missing) {}

  void run() {
    if (kept_ != nullptr) load();
    compile();
  }

 private:
  // What an earlier process has left: each piece of code once.
  void load() {
    std::map<std::string, std::vector<std::pair<Missing*, std::string>>> wanted;
    for (Missing& m : missing_) {
      const auto found = kept_->load(m.key);
      const auto place = found ? place_of(*found) : std::nullopt;
      if (place) wanted[place->code].emplace_back(&m, place->name);
    }
    std::vector<const decltype(wanted)::value_type*> all;
    for (const auto& entry : wanted) all.push_back(&entry);
    for_all(all.size(), [&](std::size_t n) {
      const auto& [key, kernels] = *all[n];
      const auto found = kept_->load(key);
      if (!found) return;
      try {
        const auto code = std::make_shared<const LoadedCode>(gpu_, *found);
        for (const auto& [m, name] : kernels) {
          m->code = std::make_shared<const LoadedKernel>(code, name, *m->text);
          m->loaded = true;
        }
      } catch (const DeviceError&) {
        return;  // of a newer driver: it is compiled again
      }
    });
  }

  void compile() {
    std::vector<Missing*> left;
    std::vector<const KernelText*> texts;
    for (Missing& m : missing_) {
      if (m.code != nullptr) continue;
      left.push_back(&m);
      texts.push_back(m.text);
    }
    const std::vector<SourceGroup> groups =
        group_sources(texts, static_cast<std::size_t>(pool_.threads()));
    for_all(groups.size(), [&](std::size_t n) {
      try {
        make(groups[n], left);
      } catch (const DeviceError&) {
        if (groups[n].members.size() == 1) throw;
        for (const std::size_t m : groups[n].members) make(join_sources(texts, {m}), left);
      }
    });
  }

  void make(const SourceGroup& group, const std::vector<Missing*>& of) const {
    const UnforkedWork unforked;
    const std::vector<char> cubin = compiled(group.text);
    const auto code = std::make_shared<const LoadedCode>(gpu_, cubin);
    std::string keys;
    for (std::size_t k = 0; k < group.members.size(); ++k) {
      Missing& m = *of[group.members[k]];
      m.code = std::make_shared<const LoadedKernel>(code, group.names[k], *m.text);
      keys += m.key;
    }
    if (kept_ == nullptr) return;
    const std::string key = "group " + kept_file_name(keys);
    kept_->store(key, {cubin.data(), cubin.size()});
    for (std::size_t k = 0; k < group.members.size(); ++k) {
      kept_->store(of[group.members[k]]->key, text_of({key, group.names[k]}));
    }
  }

  [[nodiscard]] std::vector<char> compiled(const std::string& text) const {
    const Phase phase("NVRTC");
    return compile_source(text, gpu_.code_target().architecture, gpu_.code_target().form);
  }

  template <class F>
  void for_all(std::size_t count, const F& f) {
    const PhaseRef outer = current_phase();
    pool_.run(static_cast<std::int64_t>(count), [&](std::int64_t n) {
      const PhaseWithin within(outer);
      gpu_.use();
      f(static_cast<std::size_t>(n));
    });
  }

  const Gpu& gpu_;
  const KeptCode* kept_;
  ThreadPool& pool_;
  std::span<Missing> missing_;
};

}  // namespace

LoadedCode::LoadedCode(const Gpu& gpu, std::span<const char> cubin) : gpu_(gpu) {
  const Phase phase("load");
  const Driver& driver = gpu.driver();
  driver.check(gpu.with_room([&] { return driver.module_load(&module_, cubin.data()); }),
               "load a kernel");
}

LoadedCode::~LoadedCode() {
  if (gpu_.try_use())
    gpu_.driver().module_unload(module_);  // a child of fork has nothing to unload
}

LoadedKernel::LoadedKernel(std::shared_ptr<const LoadedCode> code, const std::string& name,
                           const KernelText& text)
    : code_(std::move(code)) {
  const Gpu& gpu = code_->gpu();
  if (text.shared_bytes > gpu.shared_bytes()) {
    throw UserError(ErrorCode::UnsupportedOnBackend,
                    fmt::format("a kernel needs {} bytes of shared memory, a block of {} has {}",
                                text.shared_bytes, gpu.name(), gpu.shared_bytes()));
  }
  const Driver& driver = gpu.driver();
  driver.check(driver.module_function(&function_, code_->module(), name.c_str()), "load a kernel");
  // What it has besides counts too, and is known to the driver alone: it is always asked.
  if (text.shared_bytes > 0) {
    driver.check(driver.function_set(function_, FunctionDynamicShared, text.shared_bytes),
                 "load a kernel");
  }
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
    Making(gpu, kept ? &*kept : nullptr, pool, missing).run();
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
