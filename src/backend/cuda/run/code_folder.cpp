#include "backend/cuda/run/code_folder.h"

#include <fmt/format.h>

#include "ricci/support/hash.h"

namespace ricci::cuda {
namespace {

constexpr std::string_view Magic = "ricci-cubin-1\n";
constexpr std::string_view Ending = ".cubin";
constexpr std::int64_t MaxBytes = std::int64_t{1} << 26;
constexpr std::size_t DigestSize = 32;

std::string digest(std::string_view text) {
  const std::uint64_t first = Hasher().add(text).value();
  return fmt::format("{:016x}{:016x}", first, Hasher().add(~first).add(text).value());
}

bool is_kept_file(std::string_view name) {
  return name.find_first_not_of("0123456789abcdef") == DigestSize &&
         name.substr(DigestSize) == Ending;
}

// All but the digest.
std::string head_of(std::string_view key) {
  return fmt::format("{}{}\n{}", Magic, key.size(), key);
}

}  // namespace

std::string kept_file_name(std::string_view key) { return digest(key) + std::string(Ending); }

KeptCode::KeptCode(const std::string& path, std::int64_t max_bytes)
    : folder_(PrivateFolder::open(path)), max_bytes_(max_bytes) {}

std::optional<std::vector<char>> KeptCode::load(std::string_view key) const {
  if (!folder_) return std::nullopt;
  const auto text = folder_->read(kept_file_name(key), MaxBytes);
  const std::string head = head_of(key);
  if (!text || text->size() < head.size() + DigestSize || !text->starts_with(head)) {
    return std::nullopt;
  }
  const std::string_view all(*text);
  const std::string_view body = all.substr(0, all.size() - DigestSize);
  if (digest(body) != all.substr(body.size())) return std::nullopt;
  return std::vector<char>(body.begin() + static_cast<std::ptrdiff_t>(head.size()), body.end());
}

void KeptCode::store(std::string_view key, std::string_view code) const {
  if (!folder_) return;
  std::string text = head_of(key);
  text += code;
  text += digest(text);
  folder_->replace(kept_file_name(key), text);
}

void KeptCode::trim() const {
  if (folder_) folder_->trim(max_bytes_, is_kept_file);
}

}  // namespace ricci::cuda
