#include "backend/cpu/codegen/object_cache.h"

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <sstream>

#include <fmt/format.h>

#include "ricci/support/error.h"
#include "ricci/support/text.h"

#include "support/sealed_entry.h"
#include "support/sha256.h"

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

constexpr std::string_view EntryKind = "ricci-kernel-3";
constexpr std::string_view EntryEnding = ".kernel";
constexpr std::string_view ObjectEnding = ".o";
constexpr std::int64_t MaxEntryBytes = std::int64_t{1} << 26;
constexpr std::int64_t MaxObjectBytes = std::int64_t{1} << 28;

std::string whole_key(const std::string& key) { return code_version() + "\n" + key; }

// Of this version and of those before it, whose digests were shorter.
bool is_cache_file(std::string_view name) {
  const std::size_t stem = name.find_first_not_of("0123456789abcdef");
  if (stem == std::string_view::npos || (stem != SealSize && stem != SealSize / 2)) return false;
  return name.substr(stem) == EntryEnding || name.substr(stem) == ObjectEnding;
}

struct Reference {
  std::string object;  // the digest of its bytes
  std::string symbol;
};

std::string reference_text(const Reference& r, const std::string& key) {
  return seal_entry(EntryKind, whole_key(key), fmt::format("{}\n{}\n", r.object, r.symbol));
}

std::optional<Reference> parse_reference(const std::string& text, const std::string& key) {
  const auto content = open_entry(text, EntryKind, whole_key(key));
  if (!content) return std::nullopt;
  std::istringstream lines{std::string(*content)};
  Reference r;
  std::getline(lines, r.object);
  std::getline(lines, r.symbol);
  return r;
}

std::shared_ptr<const JitCode> load_object(const PrivateFolder& folder, const std::string& name,
                                           const ObjectCache::Loader& load) {
  const auto object = folder.read(name + std::string(ObjectEnding), MaxObjectBytes);
  if (!object || sha256_hex(*object) != name) return nullptr;
  try {
    return load(std::span(object->data(), object->size()));
  } catch (const Error&) {
    return nullptr;
  }
}

// Looking through a large folder takes a while: it is done when a process first stores something,
// and then once for every sixteenth of the limit that it has stored.
// Without locks, which a fork could leave locked; folders that share a place are only trimmed less
// often.
bool is_time_to_trim(const std::string& folder, std::int64_t stored, std::int64_t max_bytes) {
  static std::array<std::atomic<std::int64_t>, 64> stored_since;  // and 1; 0: never trimmed
  std::atomic<std::int64_t>& since = stored_since[std::hash<std::string>()(folder) % 64];
  const std::int64_t before = since.fetch_add(stored);
  if (before != 0 && before + stored < max_bytes / 16) return false;
  since = 1;
  return true;
}

}  // namespace

ObjectCache::ObjectCache(std::string path, std::int64_t max_bytes, Loader loader)
    : path_(std::move(path)),
      max_bytes_(max_bytes),
      loader_(loader ? std::move(loader) : [](std::span<const char> o) { return jit_load(o); }),
      folder_(PrivateFolder::open(path_)) {}

std::vector<ObjectCache::Hit> ObjectCache::load(std::span<const std::string> keys) const {
  std::vector<Hit> hits(keys.size());
  if (!folder_) return hits;
  std::map<std::string, std::shared_ptr<const JitCode>> objects;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto text = folder_->read(entry_name(whole_key(keys[i]), EntryEnding), MaxEntryBytes);
    const auto reference = text ? parse_reference(*text, keys[i]) : std::nullopt;
    if (!reference) continue;
    const auto [at, is_new] = objects.try_emplace(reference->object);
    if (is_new) at->second = load_object(*folder_, reference->object, loader_);
    if (at->second == nullptr || at->second->find(reference->symbol) == nullptr) continue;
    hits[i] = {at->second, reference->symbol};
  }
  return hits;
}

void ObjectCache::store(std::span<const Entry> entries, std::span<const char> object) const {
  if (!folder_) return;
  const std::string_view bytes(object.data(), object.size());
  const std::string name = sha256_hex(bytes);
  folder_->replace(name + std::string(ObjectEnding), bytes);
  auto stored = static_cast<std::int64_t>(bytes.size());
  for (const Entry& e : entries) {
    const std::string text = reference_text({name, e.symbol}, e.key);
    folder_->replace(entry_name(whole_key(e.key), EntryEnding), text);
    stored += static_cast<std::int64_t>(text.size());
  }
  if (is_time_to_trim(path_, stored, max_bytes_)) folder_->trim(max_bytes_, is_cache_file);
}

}  // namespace ricci::cpu
