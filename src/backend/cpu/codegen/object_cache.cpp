#include "backend/cpu/codegen/object_cache.h"

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>

#include <fmt/format.h>
#include <unistd.h>

#include "ricci/support/error.h"
#include "ricci/support/hash.h"

#ifndef RICCI_CODE_FINGERPRINT
#define RICCI_CODE_FINGERPRINT "unknown"
#endif

namespace ricci::cpu {
namespace {

// Everything generated code depends on besides the kernel.
const std::string& code_version() {
  static const std::string version = [] {
    const TargetInfo& t = host_target();
    return fmt::format("ricci {} {} for {} {} {} {}", RICCI_VERSION, RICCI_CODE_FINGERPRINT, t.name,
                       t.cpu, t.features, t.vector_bits);
  }();
  return version;
}

// 128 bits in hexadecimal.
std::string digest(std::string_view text) {
  const std::uint64_t low = Hasher().add(text).value();
  const std::uint64_t high = Hasher().add(std::uint64_t{1}).add(text).add(low).value();
  return fmt::format("{:016x}{:016x}", high, low);
}

std::optional<std::string> contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  if (!file.good() && !file.eof()) return std::nullopt;
  return std::move(text).str();
}

// Readers see the old file or the new one.
void replace(const std::string& path, std::string_view text) {
  static std::atomic<std::uint64_t> count = 0;
  const std::string temporary = fmt::format("{}.{}.{}.tmp", path, getpid(), count++);
  std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file || std::rename(temporary.c_str(), path.c_str()) != 0) std::remove(temporary.c_str());
}

// A kernel's file: where its code is, and its whole key, so that two kernels with one digest are
// not mistaken for each other.
constexpr std::string_view Magic = "ricci-kernel-1";

struct Reference {
  std::string object;
  std::string symbol;
};

std::string reference_text(const Reference& r, const std::string& key) {
  return fmt::format("{}\n{}\n{}\n{}\n{}", Magic, r.object, r.symbol, code_version(), key);
}

std::optional<Reference> parse_reference(const std::string& text, const std::string& key) {
  std::istringstream lines(text);
  std::string magic;
  Reference r;
  std::getline(lines, magic);
  std::getline(lines, r.object);
  std::getline(lines, r.symbol);
  if (magic != Magic || text != reference_text(r, key)) return std::nullopt;
  // Names from a file are never paths.
  if (r.object.find_first_not_of("0123456789abcdef") != std::string::npos) return std::nullopt;
  return r;
}

// An object is named after its contents: one that does not fit its name is damaged.
std::shared_ptr<const JitCode> load_object(const std::string& path, const std::string& name) {
  const std::optional<std::string> object = contents(path);
  if (!object || digest(*object) != name) return nullptr;
  try {
    return jit_load(std::span(object->data(), object->size()));
  } catch (const Error&) {
    return nullptr;
  }
}

}  // namespace

ObjectCache::ObjectCache(std::string folder) : folder_(std::move(folder)) {
  std::error_code ignored;
  std::filesystem::create_directories(folder_, ignored);
}

std::vector<ObjectCache::Hit> ObjectCache::load(std::span<const std::string> keys) const {
  std::map<std::string, std::shared_ptr<const JitCode>> objects;
  std::vector<Hit> hits;
  for (const std::string& key : keys) {
    hits.emplace_back();
    const auto text = contents(path(digest(code_version() + "\n" + key) + ".kernel"));
    const auto reference = text ? parse_reference(*text, key) : std::nullopt;
    if (!reference) continue;
    const auto [at, is_new] = objects.try_emplace(reference->object);
    if (is_new) at->second = load_object(path(reference->object + ".o"), reference->object);
    if (at->second == nullptr || at->second->find(reference->symbol) == nullptr) continue;
    hits.back() = {at->second, reference->symbol};
  }
  return hits;
}

void ObjectCache::store(std::span<const Entry> entries, std::span<const char> object) const {
  const std::string_view bytes(object.data(), object.size());
  const std::string name = digest(bytes);
  replace(path(name + ".o"), bytes);
  for (const Entry& e : entries) {
    replace(path(digest(code_version() + "\n" + e.key) + ".kernel"),
            reference_text({name, e.symbol}, e.key));
  }
}

}  // namespace ricci::cpu
