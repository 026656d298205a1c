#include "backend/cuda/run/code_folder.h"

#include "support/sealed_entry.h"

namespace ricci::cuda {
namespace {

constexpr std::string_view CubinKind = "ricci-cubin-2";
constexpr std::string_view CubinEnding = ".cubin";
constexpr std::int64_t MaxBytes = std::int64_t{1} << 26;

// Of this version and of those before it, whose digests were shorter.
bool is_kept_file(std::string_view name) {
  constexpr std::size_t Short = SealSize / 2;
  return is_entry_name(name, CubinEnding) ||
         (name.find_first_not_of("0123456789abcdef") == Short && name.substr(Short) == CubinEnding);
}

}  // namespace

std::string kept_file_name(std::string_view key) { return entry_name(key, CubinEnding); }

KeptCode::KeptCode(const std::string& path, std::int64_t max_bytes)
    : folder_(PrivateFolder::open(path)), max_bytes_(max_bytes) {}

std::optional<std::vector<char>> KeptCode::load(std::string_view key) const {
  if (!folder_) return std::nullopt;
  const auto entry = folder_->read(kept_file_name(key), MaxBytes);
  const auto code = entry ? open_entry(*entry, CubinKind, key) : std::nullopt;
  if (!code) return std::nullopt;
  return std::vector<char>(code->begin(), code->end());
}

void KeptCode::store(std::string_view key, std::string_view code) const {
  if (folder_) folder_->replace(kept_file_name(key), seal_entry(CubinKind, key, code));
}

void KeptCode::trim() const {
  if (folder_) folder_->trim(max_bytes_, is_kept_file);
}

}  // namespace ricci::cuda
