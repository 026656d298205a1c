// What a tokenizer is made of.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ricci/data/tokenizer.h"

#include "data/byte_pairs.h"
#include "data/tokenizer_parts.h"

namespace ricci {

struct Tokenizer::Impl {
  BytePairs pairs;
  std::vector<AddedToken> added;
  std::optional<std::int32_t> unknown;
  std::string unknown_name;  // as it is in the file
  TokenizerParts parts;
  bool ignore_merges = false;  // for words that are tokens
  BytePairs::Fallback fallback;

  [[nodiscard]] static std::shared_ptr<const Impl> trained(std::span<const std::string_view> texts,
                                                           const TokenizerTraining& options);
  [[nodiscard]] static std::shared_ptr<const Impl> read(std::string_view json,
                                                        const TokenizerLimits& limits);
  [[nodiscard]] std::string json() const;

  /// To be called when everything is there.
  void finish();
  [[nodiscard]] const AddedToken* added_token(std::int32_t id) const;

  struct Match {
    std::size_t begin = 0, end = 0;
    const AddedToken* token = nullptr;
  };
  /// Those that are looked for first, or those behind; special ones only where `special` says so.
  [[nodiscard]] std::optional<Match> next_added(std::string_view text, std::size_t from,
                                                bool normalized, bool special) const;
  /// A text between added tokens; `first`: nothing is before it.
  void encode(std::string_view text, bool first, std::vector<std::int32_t>& out) const;
  /// What a token that is no added one stands for in a text.
  [[nodiscard]] std::string shown(std::string_view token) const;
  [[nodiscard]] std::string shown(const AddedToken& token) const;

 private:
  struct Node {
    std::map<char, std::size_t> next;
    const AddedToken* token = nullptr;
  };
  void encode_characters(std::string_view text, bool first, std::vector<std::int32_t>& out) const;
  [[nodiscard]] bool words_end_at(std::string_view mark) const;
  [[nodiscard]] bool fits(std::string_view text, const Match& match) const;
  std::vector<Node> plain_, normalized_;  // contents by their bytes; the first node is the root
  std::map<std::int32_t, const AddedToken*> added_by_id_;
  std::string word_mark_;  // before it words may be taken apart
};

}  // namespace ricci
