// What a tokenizer.json says of how texts are made ready, taken apart and framed, beside its model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "data/pretokenizer.h"
#include "io/json_value.h"

namespace ricci {

struct TokenizerParts {
  bool nfc = false;  ///< texts are brought to this form first
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
void read_decoder(const io::JsonValue& value, std::size_t base);

/// The same as JSON.
[[nodiscard]] std::string normalizer_json(const TokenizerParts& parts);
[[nodiscard]] std::string pretokenizer_json(const TokenizerParts& parts);
[[nodiscard]] std::string post_processor_json(const TokenizerParts& parts);

[[noreturn]] void other_kind_of_tokenizer(const std::string& what, std::size_t at);

}  // namespace ricci
