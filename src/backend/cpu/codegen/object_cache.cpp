#include "backend/cpu/codegen/object_cache.h"

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <sstream>

#include <fmt/format.h>
#include <llvm/ADT/ArrayRef.h>
#include <llvm/Support/SHA256.h>

#include "ricci/support/error.h"
#include "ricci/support/text.h"

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

std::string digest(std::string_view text) {
  const auto bytes = llvm::SHA256::hash(
      llvm::ArrayRef(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()));
  return to_hex(std::as_bytes(std::span(bytes)));
}
constexpr std::size_t DigestSize = 64;

constexpr std::string_view Magic = "ricci-kernel-2";
constexpr std::string_view EntryEnding = ".kernel";
constexpr std::string_view ObjectEnding = ".o";
constexpr std::int64_t MaxEntryBytes = std::int64_t{1} << 26;
constexpr std::int64_t MaxObjectBytes = std::int64_t{1} << 28;

std::string entry_name(const std::string& key) {
  return digest(code_version() + "\n" + key) + std::string(EntryEnding);
}

// Of this version and of those before it, whose digests were shorter.
bool is_cache_file(std::string_view name) {
  const std::size_t stem = name.find_first_not_of("0123456789abcdef");
  if (stem == std::string_view::npos || (stem != DigestSize && stem != DigestSize / 2))
    return false;
  return name.substr(stem) == EntryEnding || name.substr(stem) == ObjectEnding;
}

struct Reference {
  std::string object;  // the digest of its bytes
  std::string symbol;
};

// Where a kernel's code is, and the whole key, so that no entry is taken for another's. The digest
// at its end covers all of it.
std::string reference_text(const Reference& r, const std::string& key) {
  std::string text =
      fmt::format("{}\n{}\n{}\n{}\n{}\n", Magic, r.object, r.symbol, code_version(), key);
  return text + digest(text);
}

std::optional<Reference> parse_reference(const std::string& text, const std::string& key) {
  std::istringstream lines(text);
  std::string magic;
  Reference r;
  std::getline(lines, magic);
  std::getline(lines, r.object);
  std::getline(lines, r.symbol);
  if (text != reference_text(r, key)) return std::nullopt;
  return r;
}

std::shared_ptr<const JitCode> load_object(const PrivateFolder& folder, const std::string& name) {
  const auto object = folder.read(name + std::string(ObjectEnding), MaxObjectBytes);
  if (!object || digest(*object) != name) return nullptr;
  try {
    return jit_load(std::span(object->data(), object->size()));
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

ObjectCache::ObjectCache(std::string path, std::int64_t max_bytes)
    : path_(std::move(path)), max_bytes_(max_bytes), folder_(PrivateFolder::open(path_)) {}

std::vector<ObjectCache::Hit> ObjectCache::load(std::span<const std::string> keys) const {
  std::vector<Hit> hits(keys.size());
  if (!folder_) return hits;
  std::map<std::string, std::shared_ptr<const JitCode>> objects;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto text = folder_->read(entry_name(keys[i]), MaxEntryBytes);
    const auto reference = text ? parse_reference(*text, keys[i]) : std::nullopt;
    if (!reference) continue;
    const auto [at, is_new] = objects.try_emplace(reference->object);
    if (is_new) at->second = load_object(*folder_, reference->object);
    if (at->second == nullptr || at->second->find(reference->symbol) == nullptr) continue;
    hits[i] = {at->second, reference->symbol};
  }
  return hits;
}

void ObjectCache::store(std::span<const Entry> entries, std::span<const char> object) const {
  if (!folder_) return;
  const std::string_view bytes(object.data(), object.size());
  const std::string name = digest(bytes);
  folder_->replace(name + std::string(ObjectEnding), bytes);
  auto stored = static_cast<std::int64_t>(bytes.size());
  for (const Entry& e : entries) {
    const std::string text = reference_text({name, e.symbol}, e.key);
    folder_->replace(entry_name(e.key), text);
    stored += static_cast<std::int64_t>(text.size());
  }
  if (is_time_to_trim(path_, stored, max_bytes_)) folder_->trim(max_bytes_, is_cache_file);
}

}  // namespace ricci::cpu
