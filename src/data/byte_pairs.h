// Bytes, or characters, and the pairs of them that are joined.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ricci {

/// Bytes as characters that can be seen, as GPT-2 spells them in files: 256 characters below
/// U+0144.
[[nodiscard]] const std::array<char32_t, 256>& byte_characters() noexcept;
[[nodiscard]] std::string spelled(std::string_view bytes);
/// Nothing for a text with other characters.
[[nodiscard]] std::optional<std::string> unspelled(std::string_view text);

/// A byte as a token among characters, `<0x0A>`, and back.
[[nodiscard]] std::string byte_name(char byte);
[[nodiscard]] std::optional<char> named_byte(std::string_view text);

class BytePairs {
 public:
  /// False when there is one of that number, or those bytes.
  bool add_token(std::int32_t id, std::string bytes);
  /// The next one to be joined; both and what they make are tokens. False when they are not.
  bool add_merge(std::int32_t left, std::int32_t right);
  /// To be called when all tokens are there.
  void finish();

  [[nodiscard]] std::optional<std::int32_t> find(std::string_view bytes) const;
  [[nodiscard]] const std::string* bytes(std::int32_t id) const;
  [[nodiscard]] const std::unordered_map<std::int32_t, std::string>& tokens() const noexcept {
    return bytes_;
  }
  [[nodiscard]] const std::vector<std::pair<std::int32_t, std::int32_t>>& merges() const noexcept {
    return merges_;
  }

  /// Appends the tokens of a word. UserError(refused) for a byte that is no token, unless `unknown`
  /// stands for it.
  void encode(std::string_view word, bool ignore_merges, std::optional<std::int32_t> unknown,
              std::vector<std::int32_t>& out) const;

  /// What stands for a character that is no token.
  struct Fallback {
    bool bytes = false;  ///< tokens of its bytes, `<0x0A>`, where there are such for all of them
    bool fused = false;  ///< one `unknown` for several in a row
    std::optional<std::int32_t> unknown = {};
  };
  /// The same for tokens that are made of characters.
  void encode_characters(std::string_view word, bool ignore_merges, const Fallback& fallback,
                         std::vector<std::int32_t>& out) const;
  /// The token of a byte among characters.
  [[nodiscard]] std::optional<std::int32_t> find_byte(char byte) const;

 private:
  void join(const std::vector<std::int32_t>& ids, std::vector<std::int32_t>& out) const;
  struct Merge {
    std::int32_t rank = 0;
    std::int32_t made = 0;
  };
  [[nodiscard]] const Merge* merge_of(std::int32_t left, std::int32_t right) const;

  std::unordered_map<std::string, std::int32_t> ids_;
  std::unordered_map<std::int32_t, std::string> bytes_;
  std::vector<std::pair<std::int32_t, std::int32_t>> merges_;
  std::unordered_map<std::uint64_t, Merge> by_pair_;
  std::array<std::int32_t, 256> byte_ids_{};  // -1: none
};

[[nodiscard]] inline std::uint64_t pair_key(std::int32_t left, std::int32_t right) noexcept {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32U |
         static_cast<std::uint32_t>(right);
}

}  // namespace ricci
