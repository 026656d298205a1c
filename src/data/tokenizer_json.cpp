// tokenizer.json, as Hugging Face's library has it, of the kind BPE on bytes or characters.
#include <algorithm>
#include <functional>
#include <set>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "ricci/support/error.h"
#include "ricci/support/text.h"

#include "data/tokenizer_impl.h"
#include "io/fault.h"
#include "io/json_cursor.h"
#include "support/json.h"

namespace ricci {
namespace {

using io::JsonCursor;

// What is in the file, in whatever order.
struct File {
  std::vector<std::pair<std::string, std::int32_t>> vocabulary;
  std::vector<std::pair<std::string, std::string>> merges;
  std::vector<AddedToken> added;
  std::string unknown;
  TokenizerParts parts;
  bool has_model = false, ignore_merges = false, byte_fallback = false, fuse_unknown = false;
};

class Reader {
 public:
  Reader(std::string_view text, const TokenizerLimits& limits)
      : text_(text), json_(text), limits_(limits) {}

  File read() {
    std::pair<io::JsonValue, std::size_t> pretokenizer;  // read before the decoder
    std::pair<io::JsonValue, std::size_t> decoder;
    json_.object([&](const std::string& key) {
      if (key == "model") return model();
      if (key == "added_tokens") return added_tokens();
      if (key == "truncation" || key == "padding") return nothing(key);
      const auto part = [&](auto&& read) {
        const std::size_t at = json_.offset();
        json_.skip();
        read(io::parse_json(text_.substr(at, json_.offset() - at)), at);
      };
      using Value = io::JsonValue;
      if (key == "normalizer") {
        part([&](const Value& v, std::size_t at) { read_normalizer(v, at, out_.parts); });
      } else if (key == "pre_tokenizer") {
        part([&](const Value& v, std::size_t at) { pretokenizer = {v, at}; });
      } else if (key == "post_processor") {
        part([&](const Value& v, std::size_t at) { read_post_processor(v, at, out_.parts); });
      } else if (key == "decoder") {
        part([&](const Value& v, std::size_t at) { decoder = {v, at}; });
      } else {
        json_.skip();
      }
    });
    json_.end();
    if (!out_.has_model) io::file_fault("tokenizer", "the tokenizer has no model", 0);
    read_pretokenizer(pretokenizer.first, pretokenizer.second, out_.parts);
    read_decoder(decoder.first, decoder.second, out_.parts);
    return std::move(out_);
  }

 private:
  [[nodiscard]] char next() {
    const std::size_t at = json_.offset();
    return at < text_.size() ? text_[at] : '\0';
  }
  [[nodiscard]] bool truth() {
    const char c = next();
    if (c != 't' && c != 'f') json_.fault("true or false is expected");
    json_.skip();
    return c == 't';
  }
  [[nodiscard]] std::string text() {
    const std::size_t at = json_.offset();
    std::string out = json_.string();
    if (std::cmp_greater(out.size(), limits_.max_token_bytes)) {
      io::file_fault(
          "tokenizer",
          fmt::format("a token has {} bytes, more than {}", out.size(), limits_.max_token_bytes),
          at);
    }
    return out;
  }
  [[nodiscard]] std::int32_t token() {
    const std::size_t at = json_.offset();
    const std::int64_t id = json_.integer();
    if (id < limits_.max_tokens && id <= 0x7FFFFFFF) return static_cast<std::int32_t>(id);
    io::file_fault("tokenizer", fmt::format("token {} is beyond {}", id, limits_.max_tokens), at);
  }
  void count(std::size_t have, const char* what) {
    if (std::cmp_less(have, limits_.max_tokens)) return;
    json_.fault(fmt::format("there are more than {} {}", limits_.max_tokens, what));
  }

  void nothing(const std::string& key) {
    if (next() != 'n') other_kind_of_tokenizer("it has a " + key, json_.offset());
    json_.skip();
  }

  void model() {
    const std::size_t at = json_.offset();
    out_.has_model = true;
    json_.object([&](const std::string& field) {
      if (field == "type") {
        const std::string type = json_.string();
        if (type != "BPE") other_kind_of_tokenizer("its model is " + shortened(type), at);
      } else if (field == "vocab") {
        json_.object([&](const std::string& spelling) {
          count(out_.vocabulary.size(), "tokens");
          if (std::cmp_greater(spelling.size(), limits_.max_token_bytes)) {
            json_.fault("a token is too long");
          }
          out_.vocabulary.emplace_back(spelling, token());
        });
      } else if (field == "merges") {
        json_.array([&] { merge(); });
      } else if (field == "unk_token") {
        next() == 'n' ? json_.skip() : void(out_.unknown = text());
      } else if (field == "ignore_merges") {
        out_.ignore_merges = truth();
      } else if (field == "byte_fallback") {
        out_.byte_fallback = truth();
      } else if (field == "fuse_unk") {
        out_.fuse_unknown = truth();
      } else if (field == "dropout") {
        nothing("dropout");
      } else if (field == "continuing_subword_prefix" || field == "end_of_word_suffix") {
        const std::size_t here = json_.offset();
        if (next() == 'n') return json_.skip();
        if (!json_.string().empty()) other_kind_of_tokenizer("its model has a " + field, here);
      } else {
        json_.skip();
      }
    });
  }

  // "a b" or ["a", "b"]
  void merge() {
    count(out_.merges.size(), "merges");
    if (next() == '[') {
      std::vector<std::string> parts;
      json_.array([&] {
        if (parts.size() == 2) json_.fault("a merge is of two tokens");
        parts.push_back(text());
      });
      if (parts.size() != 2) json_.fault("a merge is of two tokens");
      out_.merges.emplace_back(std::move(parts[0]), std::move(parts[1]));
      return;
    }
    const std::string both = text();
    const std::size_t space = both.find(' ');
    if (space == std::string::npos || space == 0 || space + 1 == both.size() ||
        both.find(' ', space + 1) != std::string::npos) {
      json_.fault("a merge is of two tokens, with a space between them");
    }
    out_.merges.emplace_back(both.substr(0, space), both.substr(space + 1));
  }

  void added_tokens() {
    json_.array([&] {
      count(out_.added.size(), "added tokens");
      AddedToken t{.id = -1, .content = {}, .special = false};
      json_.object([&](const std::string& field) {
        if (field == "id")
          t.id = token();
        else if (field == "content")
          t.content = text();
        else if (field == "special")
          t.special = truth();
        else if (field == "single_word")
          t.single_word = truth();
        else if (field == "lstrip")
          t.lstrip = truth();
        else if (field == "rstrip")
          t.rstrip = truth();
        else if (field == "normalized")
          t.normalized = truth();
        else
          json_.skip();
      });
      if (t.id < 0 || t.content.empty()) json_.fault("an added token has an id and a content");
      out_.added.push_back(std::move(t));
    });
  }

  std::string_view text_;
  JsonCursor json_;
  const TokenizerLimits& limits_;
  File out_;
};

[[noreturn]] void contradiction(std::string message) {
  io::file_fault("tokenizer", std::move(message), 0, "the file is damaged");
}

}  // namespace

std::shared_ptr<const Tokenizer::Impl> Tokenizer::Impl::read(std::string_view json,
                                                             const TokenizerLimits& limits) {
  File file = Reader(json, limits).read();
  auto out = std::make_shared<Impl>();
  std::unordered_map<std::string, std::int32_t> by_spelling;
  for (const auto& [spelling, id] : file.vocabulary) {
    by_spelling.emplace(spelling, id);
    // What is no spelling of bytes is a token that stands for itself.
    const auto bytes = file.parts.characters ? std::nullopt : unspelled(spelling);
    if (!out->pairs.add_token(id, bytes.value_or(spelling))) {
      contradiction(fmt::format("token {}, {}, is there twice", id, quote(shortened(spelling))));
    }
  }
  const auto token = [&](const std::string& spelling) {
    const auto it = by_spelling.find(spelling);
    if (it == by_spelling.end()) {
      contradiction(fmt::format("a merge is of {}, which is no token", quote(shortened(spelling))));
    }
    return it->second;
  };
  for (const auto& [left, right] : file.merges) {
    if (out->pairs.add_merge(token(left), token(right))) continue;
    contradiction(fmt::format("{} and {} are joined to what is no token", quote(shortened(left)),
                              quote(shortened(right))));
  }
  std::set<std::int32_t> ids;
  for (const AddedToken& t : file.added) {
    const auto known = by_spelling.find(t.content);
    const std::string* taken = out->pairs.bytes(t.id);
    const bool fits = known == by_spelling.end() ? taken == nullptr : known->second == t.id;
    if (fits && ids.insert(t.id).second) continue;
    contradiction(fmt::format("the added token {}, {}, is another one in the vocabulary", t.id,
                              quote(shortened(t.content))));
  }
  if (!file.unknown.empty()) {
    out->unknown_name = file.unknown;
    const auto it = by_spelling.find(file.unknown);
    if (it != by_spelling.end()) out->unknown = it->second;
  }
  out->added = std::move(file.added);
  out->parts = std::move(file.parts);
  out->ignore_merges = file.ignore_merges;
  out->fallback = {file.byte_fallback, file.fuse_unknown, out->unknown};
  out->finish();
  return out;
}

std::string Tokenizer::Impl::json() const {
  const auto truth = [](bool x) { return x ? "true" : "false"; };
  std::string out = R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[)";
  for (const AddedToken& t : added) {
    out += fmt::format(
        R"({}{{"id":{},"content":{},"single_word":{},"lstrip":{},"rstrip":{},"normalized":{},"special":{}}})",
        &t == added.data() ? "" : ",", t.id, quote_json(t.content), truth(t.single_word),
        truth(t.lstrip), truth(t.rstrip), truth(t.normalized), truth(t.special));
  }
  out += fmt::format(R"(],"normalizer":{},"pre_tokenizer":{},"post_processor":{})",
                     normalizer_json(parts), pretokenizer_json(parts), post_processor_json(parts));
  out += fmt::format(R"(,"decoder":{},"model":{{"type":"BPE","dropout":null,"unk_token":)",
                     decoder_json(parts));
  out += unknown_name.empty() ? "null" : quote_json(unknown_name);
  out += fmt::format(
      R"(,"continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":{},"byte_fallback":{},"ignore_merges":{},"vocab":{{)",
      truth(fallback.fused), truth(fallback.bytes), truth(ignore_merges));
  std::map<std::int32_t, std::string> vocabulary;
  for (const auto& [id, bytes] : pairs.tokens()) {
    const AddedToken* own = added_token(id);
    vocabulary.emplace(id, own != nullptr     ? own->content
                           : parts.characters ? bytes
                                              : spelled(bytes));
  }
  const char* between = "";
  for (const auto& [id, spelling] : vocabulary) {
    out += fmt::format("{}{}:{}", between, quote_json(spelling), id);
    between = ",";
  }
  out += R"(},"merges":[)";
  between = "";
  for (const auto& [left, right] : pairs.merges()) {
    const std::string& a = *pairs.bytes(left);
    const std::string& b = *pairs.bytes(right);
    out += between;
    // Among characters there may be spaces.
    out += parts.characters ? fmt::format("[{},{}]", quote_json(a), quote_json(b))
                            : quote_json(spelled(a) + " " + spelled(b));
    between = ",";
  }
  return out + "]}}";
}

}  // namespace ricci
