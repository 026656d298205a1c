// What a tokenizer.json says of how texts are made ready, taken apart and framed, beside its model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/pretokenizer.h"
#include "io/json_value.h"

namespace ricci {

/// What is done to a text first.
struct NormalizerStep {
  enum class Kind : std::uint8_t { Nfc, Prepend, Replace };
  Kind kind = Kind::Nfc;
  std::string from = {};  ///< of Replace
  std::string to = {};    ///< of Prepend, what comes before a text that is not empty
};

/// Spaces as a character of their own, with which words begin.
struct Metaspace {
  enum class Prepend : std::uint8_t { Always, First, Never };
  std::string replacement = "\u2581";
  Prepend prepend = Prepend::Always;  ///< to every text that does not begin with one, or the first
  bool split = true;
};

/// How tokens of characters are shown.
struct ShownTokens {
  std::vector<std::pair<std::string, std::string>> replaced = {};  ///< in each, one after the other
  bool bytes = false;                                              ///< `<0x0A>` is a byte
  std::string stripped = {};    ///< taken away where a text begins with it,
  std::int64_t strip_most = 0;  ///< so often at most
};

struct TokenizerParts {
  std::vector<NormalizerStep> normalizer = {};
  /// Tokens are of characters, as SentencePiece has them, and not of bytes.
  bool characters = false;
  std::optional<Metaspace> metaspace = {};
  ShownTokens shown = {};
  WordPattern pattern = WordPattern::Gpt2;
  bool add_prefix_space = false;  ///< before a text that does not begin with one
  /// Tokens before and behind a text, where a model is to have such.
  std::vector<std::int32_t> before = {}, behind = {};
  std::map<std::int32_t, std::string> framing = {};  ///< what these are called
};

/// Of the values of these keys, which begin at `base` in the file. UserError(file.tokenizer_kind)
/// for what is not known.
void read_normalizer(const io::JsonValue& value, std::size_t base, TokenizerParts& out);
void read_pretokenizer(const io::JsonValue& value, std::size_t base, TokenizerParts& out);
void read_post_processor(const io::JsonValue& value, std::size_t base, TokenizerParts& out);
/// Of a tokenizer whose other parts are known.
void read_decoder(const io::JsonValue& value, std::size_t base, TokenizerParts& out);

[[nodiscard]] std::string normalized(const TokenizerParts& parts, std::string_view text);
/// All places of a text.
[[nodiscard]] std::string replaced_all(std::string_view text, std::string_view from,
                                       std::string_view to);

/// The same as JSON.
[[nodiscard]] std::string normalizer_json(const TokenizerParts& parts);
[[nodiscard]] std::string pretokenizer_json(const TokenizerParts& parts);
[[nodiscard]] std::string post_processor_json(const TokenizerParts& parts);
[[nodiscard]] std::string decoder_json(const TokenizerParts& parts);

[[noreturn]] void other_kind_of_tokenizer(const std::string& what, std::size_t at);

}  // namespace ricci
