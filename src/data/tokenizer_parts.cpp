#include "data/tokenizer_parts.h"

#include <array>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "ricci/support/text.h"

#include "io/fault.h"
#include "support/json.h"

namespace ricci {
namespace {

using io::JsonValue;

// Patterns as files of published models have them.
constexpr std::pair<std::string_view, WordPattern> Published[] = {
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
     WordPattern::Gpt2},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     WordPattern::ThreeDigits},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     WordPattern::OneDigit}};

// Members of an object; `null` has none.
bool truth(const JsonValue& value, std::string_view key, bool otherwise) {
  const JsonValue* found = value.find(key);
  return found == nullptr ? otherwise : found->boolean();
}

std::string type_of(const JsonValue& value) { return value.at("type").string(); }

void read_split(const JsonValue& value, std::size_t base, TokenizerParts& out) {
  const JsonValue& pattern = value.at("pattern");
  const JsonValue* regex = pattern.find("Regex");
  if (regex == nullptr) other_kind_of_tokenizer("it splits at a text", base + value.offset());
  for (const auto& [text, kind] : Published) {
    if (regex->string() != text) continue;
    out.pattern = kind;
    const JsonValue* behavior = value.find("behavior");
    // What matches is a word; of words that are removed or joined the tokens would be others.
    if ((behavior != nullptr && behavior->string() != "Isolated") ||
        truth(value, "invert", false)) {
      other_kind_of_tokenizer("its Split is not Isolated", base + value.offset());
    }
    return;
  }
  other_kind_of_tokenizer(
      fmt::format("it splits by the pattern {}", quote(shortened(regex->string()))),
      base + regex->offset());
}

void read_byte_level(const JsonValue& value, std::size_t base, bool is_split, TokenizerParts& out) {
  const bool prefix = truth(value, "add_prefix_space", true);
  const bool pattern = truth(value, "use_regex", true);
  if (is_split && (prefix || pattern)) {
    other_kind_of_tokenizer("it splits words once more", base + value.offset());
  }
  out.add_prefix_space = prefix;
  if (!is_split) out.pattern = pattern ? WordPattern::Gpt2 : WordPattern::None;
}

// [before, text, behind], of which the file says what is called how.
void read_template(const JsonValue& value, std::size_t base, TokenizerParts& out) {
  bool seen = false;
  for (const JsonValue& part : value.at("single").array()) {
    if (part.find("Sequence") != nullptr) {
      if (seen) other_kind_of_tokenizer("its template has a text twice", base + part.offset());
      seen = true;
      continue;
    }
    const std::string name = part.at("SpecialToken").at("id").string();
    for (const JsonValue& id : value.at("special_tokens").at(name).at("ids").array()) {
      const std::int64_t token = id.integer();
      if (token < 0 || token > std::numeric_limits<std::int32_t>::max()) {
        id.fault("this is no token");
      }
      (seen ? out.behind : out.before).push_back(static_cast<std::int32_t>(token));
      out.framing.emplace(static_cast<std::int32_t>(token), name);
    }
  }
  if (!seen) other_kind_of_tokenizer("its template has no text", base + value.offset());
}

// A `Sequence` one by one, or the one there is.
template <class Each>
void each_of(const JsonValue& value, std::string_view list, Each&& each) {
  if (type_of(value) != "Sequence") return each(value);
  for (const JsonValue& one : value.at(list).array()) each(one);
}

}  // namespace

void other_kind_of_tokenizer(const std::string& what, std::size_t at) {
  io::file_fault("tokenizer_kind",
                 fmt::format("the tokenizer is of another kind than those that are read: {}", what),
                 at,
                 "BPE on the level of bytes is read, as GPT-2, GPT-NeoX, Llama 3 and Qwen have it");
}

void read_normalizer(const JsonValue& value, std::size_t base, TokenizerParts& out) {
  if (value.is_null()) return;
  each_of(value, "normalizers", [&](const JsonValue& one) {
    const std::string type = type_of(one);
    if (type != "NFC") {
      other_kind_of_tokenizer("its normalizer is " + shortened(type), base + one.offset());
    }
    out.nfc = true;
  });
}

void read_pretokenizer(const JsonValue& value, std::size_t base, TokenizerParts& out) {
  bool is_split = false;
  bool has_bytes = false;
  each_of(value, "pretokenizers", [&](const JsonValue& one) {
    const std::string type = type_of(one);
    if (type == "Split" && !is_split && !has_bytes) {
      read_split(one, base, out);
      is_split = true;
    } else if (type == "ByteLevel" && !has_bytes) {
      read_byte_level(one, base, is_split, out);
      has_bytes = true;
    } else {
      other_kind_of_tokenizer("its pre_tokenizer has a " + shortened(type), base + one.offset());
    }
  });
  if (!has_bytes) other_kind_of_tokenizer("its pre_tokenizer has no ByteLevel", base);
}

void read_post_processor(const JsonValue& value, std::size_t base, TokenizerParts& out) {
  if (value.is_null()) return;
  each_of(value, "processors", [&](const JsonValue& one) {
    const std::string type = type_of(one);
    if (type == "TemplateProcessing") return read_template(one, base, out);
    if (type == "ByteLevel") return;  // about places in the text, not tokens
    other_kind_of_tokenizer("its post_processor is " + shortened(type), base + one.offset());
  });
}

void read_decoder(const JsonValue& value, std::size_t base) {
  if (value.is_null()) return;
  each_of(value, "decoders", [&](const JsonValue& one) {
    const std::string type = type_of(one);
    if (type == "ByteLevel") return;
    other_kind_of_tokenizer("its decoder is " + shortened(type), base + one.offset());
  });
}

std::string normalizer_json(const TokenizerParts& parts) {
  return parts.nfc ? R"({"type":"NFC"})" : "null";
}

std::string pretokenizer_json(const TokenizerParts& parts) {
  const bool is_split =
      parts.pattern == WordPattern::ThreeDigits || parts.pattern == WordPattern::OneDigit;
  const std::string bytes = fmt::format(
      R"({{"type":"ByteLevel","add_prefix_space":{},"trim_offsets":true,"use_regex":{}}})",
      parts.add_prefix_space, parts.pattern == WordPattern::Gpt2);
  if (!is_split) return bytes;
  for (const auto& [text, kind] : Published) {
    if (kind != parts.pattern) continue;
    return fmt::format(
        R"({{"type":"Sequence","pretokenizers":[{{"type":"Split","pattern":{{"Regex":{}}},"behavior":"Isolated","invert":false}},{}]}})",
        quote_json(text), bytes);
  }
  return bytes;
}

std::string post_processor_json(const TokenizerParts& parts) {
  if (parts.before.empty() && parts.behind.empty()) return "null";
  // A name may stand for several tokens in a file; here each has its own.
  const auto token = [&](std::int32_t id) {
    return fmt::format(R"({{"SpecialToken":{{"id":{},"type_id":0}}}})",
                       quote_json(std::to_string(id)));
  };
  std::string single;
  for (const std::int32_t id : parts.before) single += token(id) + ",";
  single += R"({"Sequence":{"id":"A","type_id":0}})";
  for (const std::int32_t id : parts.behind) single += "," + token(id);
  std::string named;
  for (const auto& [id, name] : parts.framing) {
    named += fmt::format(R"({}{}:{{"id":{},"ids":[{}],"tokens":[{}]}})", named.empty() ? "" : ",",
                         quote_json(std::to_string(id)), quote_json(std::to_string(id)), id,
                         quote_json(name));
  }
  return fmt::format(
      R"({{"type":"TemplateProcessing","single":[{}],"pair":[{{"Sequence":{{"id":"A","type_id":0}}}},{{"Sequence":{{"id":"B","type_id":1}}}}],"special_tokens":{{{}}}}})",
      single, named);
}

}  // namespace ricci
