// Byte-pair encoding: texts as tokens and back. Tokens are made of bytes, so that any text, and
// what is no text, comes back as it was, or in the form NFC where a file asks for that.
//
//   Tokenizer t = Tokenizer::load("tokenizer.json");      // GPT-2's and its kin
//   std::vector<std::int32_t> tokens = t.encode("Hello world");
//   std::string text = t.decode(tokens);
//
//   Tokenizer own = Tokenizer::train(text, {.vocabulary = 4096, .special = {"<|endoftext|>"}});
//   own.save("tokenizer.json");
//
// Files are those of Hugging Face's `tokenizers`, of the kind BPE: on the level of bytes, as GPT-2,
// GPT-NeoX, Llama 3 and Qwen have them, or on characters, as Llama 2 and Mistral do; what they ask
// for beyond that is refused. The same text gives the same tokens there and here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ricci {

struct TokenizerTraining {
  /// Tokens at most: special ones, 256 bytes, and pairs that were joined.
  std::int64_t vocabulary = 4096;
  /// Tokens that stand for themselves, and are the first ones.
  std::vector<std::string> special = {};
  /// Pairs that are there less often are not joined.
  std::int64_t least_count = 2;
};

/// A token that is found in a text before it is split.
struct AddedToken {
  std::int32_t id = 0;
  std::string content;
  bool special = true;       ///< left out by decode, if it is asked to
  bool single_word = false;  ///< found only where no letter or digit is next to it
  bool lstrip = false;       ///< takes the spaces before it
  bool rstrip = false;       ///< takes the spaces after it
  bool normalized = false;   ///< looked for after those that are not
};

struct TokenizerLimits {
  std::int64_t max_file_bytes = std::int64_t{1} << 28;
  std::int64_t max_tokens = 4'000'000;
  std::int64_t max_token_bytes = 65536;
};

/// A handle on something that does not change; any number of threads may use one.
class Tokenizer {
 public:
  /// The 256 bytes and nothing else.
  Tokenizer();
  /// The same text and options give the same tokenizer, everywhere.
  [[nodiscard]] static Tokenizer train(std::string_view text,
                                       const TokenizerTraining& options = {});
  /// From several texts, none of which goes on in the next one.
  [[nodiscard]] static Tokenizer train(std::span<const std::string> texts,
                                       const TokenizerTraining& options = {});

  /// tokenizer.json. UserError(file) for a damaged one, UserError(file.tokenizer_kind) for one of
  /// another kind; both say what.
  [[nodiscard]] static Tokenizer load(const std::string& path, const TokenizerLimits& limits = {});
  [[nodiscard]] static Tokenizer from_json(std::string_view json,
                                           const TokenizerLimits& limits = {});
  [[nodiscard]] std::string to_json() const;
  /// The file appears when it is complete.
  void save(const std::string& path) const;

  /// Special tokens in the text are found where `special` says so; otherwise they are text.
  [[nodiscard]] std::vector<std::int32_t> encode(std::string_view text, bool special = true) const;
  /// UserError(index_out_of_range) for a number that is no token.
  [[nodiscard]] std::string decode(std::span<const std::int32_t> tokens,
                                   bool skip_special = false) const;

  /// One more than the largest token.
  [[nodiscard]] std::int64_t size() const noexcept;
  /// The bytes of a token.
  [[nodiscard]] std::string bytes(std::int32_t token) const;
  /// The token of these bytes, or the special one of this name; nothing when there is none.
  [[nodiscard]] std::optional<std::int32_t> find(std::string_view bytes) const;
  [[nodiscard]] std::span<const AddedToken> added() const noexcept;
  /// Tokens that a model is to have before and behind a text, as its file says; `encode` gives
  /// those of the text.
  [[nodiscard]] std::span<const std::int32_t> before() const noexcept;
  [[nodiscard]] std::span<const std::int32_t> behind() const noexcept;

 private:
  struct Impl;
  explicit Tokenizer(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

}  // namespace ricci
