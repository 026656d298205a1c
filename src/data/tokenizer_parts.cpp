#include "data/tokenizer_parts.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "ricci/support/text.h"

#include "data/normalizer.h"
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

// Of a Replace: what is looked for.
std::string text_pattern(const JsonValue& value, std::size_t base) {
  const JsonValue* text = value.at("pattern").find("String");
  if (text == nullptr || text->string().empty()) {
    other_kind_of_tokenizer("it replaces by a pattern", base + value.offset());
  }
  return text->string();
}

std::string content(const JsonValue& value) { return value.at("content").string(); }

// How many times longer a text may become, whatever the steps: otherwise a short file would make a
// text of any length.
class Growth {
 public:
  void add(std::size_t from, std::size_t to, std::size_t at) {
    constexpr std::size_t Most = 64;
    times_ *= std::clamp<std::size_t>((to + from - 1) / from, 1, Most + 1);
    if (times_ > Most) {
      other_kind_of_tokenizer(fmt::format("it makes texts more than {} times longer", Most), at);
    }
  }

 private:
  std::size_t times_ = 1;
};

void read_metaspace_fields(const JsonValue& value, std::size_t base, Metaspace& out) {
  using Prepend = Metaspace::Prepend;
  if (const JsonValue* text = value.find("replacement")) out.replacement = text->string();
  if (out.replacement.empty()) other_kind_of_tokenizer("a space is nothing", base + value.offset());
  Growth().add(1, out.replacement.size(), base + value.offset());
  out.split = truth(value, "split", true);
  const JsonValue* scheme = value.find("prepend_scheme");
  if (scheme == nullptr) {
    out.prepend = truth(value, "add_prefix_space", true) ? Prepend::Always : Prepend::Never;
  } else if (scheme->string() == "first") {
    out.prepend = Prepend::First;
  } else if (scheme->string() == "never") {
    out.prepend = Prepend::Never;
  } else if (scheme->string() != "always") {
    other_kind_of_tokenizer("its prepend_scheme is " + shortened(scheme->string()),
                            base + scheme->offset());
  }
}

void read_metaspace(const JsonValue& value, std::size_t base, TokenizerParts& out) {
  read_metaspace_fields(value, base, out.metaspace.emplace());
}

std::string metaspace_json(const Metaspace& m) {
  using Prepend = Metaspace::Prepend;
  return fmt::format(R"({{"type":"Metaspace","replacement":{},"prepend_scheme":"{}","split":{}}})",
                     quote_json(m.replacement),
                     m.prepend == Prepend::Always  ? "always"
                     : m.prepend == Prepend::First ? "first"
                                                   : "never",
                     m.split);
}

std::string replace_json(const std::string& from, const std::string& to) {
  return fmt::format(R"({{"type":"Replace","pattern":{{"String":{}}},"content":{}}})",
                     quote_json(from), quote_json(to));
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
                 "BPE is read, on the level of bytes as GPT-2, GPT-NeoX, Llama 3 and Qwen have it, "
                 "or of characters as Llama 2 and Mistral have it");
}

void read_normalizer(const JsonValue& value, std::size_t base, TokenizerParts& out) {
  if (value.is_null()) return;
  using Kind = NormalizerStep::Kind;
  Growth growth;
  each_of(value, "normalizers", [&](const JsonValue& one) {
    const std::string type = type_of(one);
    if (type == "NFC") {
      out.normalizer.push_back({.kind = Kind::Nfc});
    } else if (type == "Prepend") {
      growth.add(1, one.at("prepend").string().size() + 1, base + one.offset());
      out.normalizer.push_back({.kind = Kind::Prepend, .to = one.at("prepend").string()});
    } else if (type == "Replace") {
      growth.add(text_pattern(one, base).size(), content(one).size(), base + one.offset());
      out.normalizer.push_back(
          {.kind = Kind::Replace, .from = text_pattern(one, base), .to = content(one)});
    } else {
      other_kind_of_tokenizer("its normalizer is " + shortened(type), base + one.offset());
    }
  });
}

void read_pretokenizer(const JsonValue& value, std::size_t base, TokenizerParts& out) {
  out.characters = value.is_null() || type_of(value) == "Metaspace";
  if (value.is_null()) return;
  if (out.characters) return read_metaspace(value, base, out);
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

void read_decoder(const JsonValue& value, std::size_t base, TokenizerParts& out) {
  if (value.is_null()) {
    if (out.characters) other_kind_of_tokenizer("it has no decoder", base);
    return;
  }
  bool fused = false;
  Growth growth;
  each_of(value, "decoders", [&](const JsonValue& one) {
    const std::string type = type_of(one);
    const bool is_bytes = type == "ByteLevel";
    if (is_bytes == out.characters) {
      other_kind_of_tokenizer(fmt::format("its decoder is {} and its tokens are of {}",
                                          shortened(type), out.characters ? "characters" : "bytes"),
                              base + one.offset());
    }
    if (is_bytes) return;
    ShownTokens& shown = out.shown;
    if (type == "Replace" && !shown.bytes && !fused) {
      growth.add(text_pattern(one, base).size(), content(one).size(), base + one.offset());
      shown.replaced.emplace_back(text_pattern(one, base), content(one));
    } else if (type == "ByteFallback" && !fused) {
      shown.bytes = true;
    } else if (type == "Fuse") {
      fused = true;
    } else if (type == "Strip" && fused && shown.stripped.empty()) {
      shown.stripped = content(one);
      shown.strip_most = one.at("start").integer();
      if (one.at("stop").integer() != 0) {
        other_kind_of_tokenizer("it strips the end of texts", base + one.offset());
      }
    } else if (type == "Metaspace" && shown.replaced.empty() && !fused) {
      Metaspace found;
      read_metaspace_fields(one, base, found);
      shown.replaced.emplace_back(found.replacement, " ");
      if (found.prepend != Metaspace::Prepend::Never) {
        shown.stripped = " ";
        shown.strip_most = 1;
      }
      fused = true;
    } else {
      other_kind_of_tokenizer("its decoder has a " + shortened(type), base + one.offset());
    }
  });
  if (out.characters && !fused) other_kind_of_tokenizer("its decoder fuses nothing", base);
}

std::string replaced_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  if (from.empty()) return std::string(text);
  std::size_t at = 0;
  for (std::size_t next; (next = text.find(from, at)) != std::string_view::npos;) {
    out += text.substr(at, next - at);
    out += to;
    at = next + from.size();
  }
  return out += text.substr(at);
}

std::string normalized(const TokenizerParts& parts, std::string_view text) {
  std::string out(text);
  for (const NormalizerStep& step : parts.normalizer) {
    switch (step.kind) {
      case NormalizerStep::Kind::Nfc: out = normalized_nfc(out); break;
      case NormalizerStep::Kind::Prepend:
        if (!out.empty()) out = step.to + out;
        break;
      case NormalizerStep::Kind::Replace: out = replaced_all(out, step.from, step.to); break;
    }
  }
  return out;
}

std::string normalizer_json(const TokenizerParts& parts) {
  std::string all;
  for (const NormalizerStep& step : parts.normalizer) {
    if (!all.empty()) all += ',';
    switch (step.kind) {
      case NormalizerStep::Kind::Nfc: all += R"({"type":"NFC"})"; break;
      case NormalizerStep::Kind::Prepend:
        all += fmt::format(R"({{"type":"Prepend","prepend":{}}})", quote_json(step.to));
        break;
      case NormalizerStep::Kind::Replace: all += replace_json(step.from, step.to); break;
    }
  }
  if (parts.normalizer.empty()) return "null";
  if (parts.normalizer.size() == 1) return all;
  return R"({"type":"Sequence","normalizers":[)" + all + "]}";
}

std::string decoder_json(const TokenizerParts& parts) {
  if (!parts.characters) {
    return R"({"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true})";
  }
  std::string out = R"({"type":"Sequence","decoders":[)";
  for (const auto& [from, to] : parts.shown.replaced) out += replace_json(from, to) + ",";
  if (parts.shown.bytes) out += R"({"type":"ByteFallback"},)";
  out += R"({"type":"Fuse"})";
  if (!parts.shown.stripped.empty()) {
    out += fmt::format(R"(,{{"type":"Strip","content":{},"start":{},"stop":0}})",
                       quote_json(parts.shown.stripped), parts.shown.strip_most);
  }
  return out + "]}";
}

std::string pretokenizer_json(const TokenizerParts& parts) {
  if (parts.characters) return parts.metaspace ? metaspace_json(*parts.metaspace) : "null";
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
