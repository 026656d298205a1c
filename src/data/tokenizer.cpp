#include "ricci/data/tokenizer.h"

#include <algorithm>

#include <fmt/format.h>

#include "ricci/support/error.h"
#include "ricci/support/file.h"
#include "ricci/support/stop.h"

#include "data/normalizer.h"
#include "data/pretokenizer.h"
#include "data/tokenizer_impl.h"
#include "data/unicode_classes.h"
#include "io/fault.h"

namespace ricci {

void Tokenizer::Impl::finish() {
  pairs.finish();
  for (const bool normalized : {false, true}) {
    std::vector<Node>& nodes = normalized ? normalized_ : plain_;
    nodes.assign(1, {});
    for (const AddedToken& t : added) {
      if (t.normalized != normalized || t.content.empty()) continue;
      std::size_t at = 0;
      for (const char c : t.content) {
        const auto [it, is_new] = nodes[at].next.emplace(c, nodes.size());
        at = it->second;
        if (is_new) nodes.emplace_back();
      }
      if (nodes[at].token == nullptr) nodes[at].token = &t;
    }
  }
  for (const AddedToken& t : added) added_by_id_.emplace(t.id, &t);
}

const AddedToken* Tokenizer::Impl::added_token(std::int32_t id) const {
  const auto it = added_by_id_.find(id);
  return it == added_by_id_.end() ? nullptr : it->second;
}

bool Tokenizer::Impl::fits(std::string_view text, const Match& match) const {
  if (!match.token->single_word) return true;
  const auto is_word = [](CodePoint c) {
    return c.size > 0 && (is_letter(c.code) || is_number(c.code) || c.code == U'_');
  };
  return !is_word(code_point_before(text, match.begin)) && !is_word(code_point_at(text, match.end));
}

// The leftmost, and of those the longest.
std::optional<Tokenizer::Impl::Match> Tokenizer::Impl::next_added(std::string_view text,
                                                                  std::size_t from, bool normalized,
                                                                  bool special) const {
  const std::vector<Node>& nodes = normalized ? normalized_ : plain_;
  for (std::size_t begin = from; begin < text.size() && nodes.size() > 1; ++begin) {
    Match found{begin, begin, nullptr};
    std::size_t node = 0;
    for (std::size_t at = begin; at < text.size(); ++at) {
      const auto next = nodes[node].next.find(text[at]);
      if (next == nodes[node].next.end()) break;
      node = next->second;
      const AddedToken* token = nodes[node].token;
      if (token != nullptr && (special || !token->special)) found = {begin, at + 1, token};
    }
    if (found.token == nullptr) continue;
    if (!fits(text, found)) {
      begin = found.end - 1;
      continue;
    }
    if (found.token->lstrip) {
      for (CodePoint c = code_point_before(text, found.begin);
           found.begin > from && c.size > 0 && is_space(c.code);
           c = code_point_before(text, found.begin)) {
        found.begin -= c.size;
      }
    }
    if (found.token->rstrip) {
      for (CodePoint c = code_point_at(text, found.end); c.size > 0 && is_space(c.code);
           c = code_point_at(text, found.end)) {
        found.end += c.size;
      }
    }
    return found;
  }
  return std::nullopt;
}

void Tokenizer::Impl::encode(std::string_view text, std::vector<std::int32_t>& out) const {
  std::string own;
  if (parts.add_prefix_space && !text.empty() && !text.starts_with(' ')) {
    own = " " + std::string(text);
    text = own;
  }
  while (!text.empty()) {
    throw_if_stopped();
    const std::size_t size = first_word(text, parts.pattern);
    pairs.encode(text.substr(0, size), ignore_merges, unknown, out);
    text.remove_prefix(size);
  }
}

Tokenizer::Tokenizer() : impl_(Impl::trained({}, {.vocabulary = 256})) {}

Tokenizer Tokenizer::train(std::string_view text, const TokenizerTraining& options) {
  return Tokenizer(Impl::trained({&text, 1}, options));
}

Tokenizer Tokenizer::train(std::span<const std::string> texts, const TokenizerTraining& options) {
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  return Tokenizer(Impl::trained(views, options));
}

Tokenizer Tokenizer::from_json(std::string_view json, const TokenizerLimits& limits) {
  return Tokenizer(Impl::read(json, limits));
}

Tokenizer Tokenizer::load(const std::string& path, const TokenizerLimits& limits) {
  const std::vector<std::byte> bytes = read_file(path, limits.max_file_bytes);
  try {
    return from_json(io::as_text(bytes), limits);
  } catch (const UserError& e) {
    throw io::in_file(e, path);
  }
}

std::string Tokenizer::to_json() const { return impl_->json(); }
void Tokenizer::save(const std::string& path) const { write_file(path, to_json()); }

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, bool special) const {
  std::vector<std::int32_t> out;
  // Texts between added tokens are looked through for those that come behind, and what is between
  // these is text.
  const auto between = [&](std::string_view part, auto&& self, bool normalized) -> void {
    std::size_t at = 0;
    const auto text_before = [&](std::size_t end) {
      const std::string_view before = part.substr(at, end - at);
      if (before.empty()) return;
      if (normalized) return impl_->encode(before, out);
      if (!impl_->parts.nfc) return self(before, self, true);
      self(normalized_nfc(before), self, true);
    };
    while (const auto found = impl_->next_added(part, at, normalized, special)) {
      text_before(found->begin);
      out.push_back(found->token->id);
      at = found->end;
    }
    text_before(part.size());
  };
  between(text, between, false);
  return out;
}

std::string Tokenizer::decode(std::span<const std::int32_t> tokens, bool skip_special) const {
  std::string out;
  for (const std::int32_t id : tokens) {
    if (const AddedToken* added = impl_->added_token(id)) {
      if (!(skip_special && added->special)) out += added->content;
    } else {
      out += bytes(id);
    }
  }
  return out;
}

std::int64_t Tokenizer::size() const noexcept {
  std::int64_t out = 0;
  for (const auto& [id, bytes] : impl_->pairs.tokens()) out = std::max<std::int64_t>(out, id + 1);
  for (const AddedToken& t : impl_->added) out = std::max<std::int64_t>(out, t.id + 1);
  return out;
}

std::string Tokenizer::bytes(std::int32_t token) const {
  if (const AddedToken* added = impl_->added_token(token)) return added->content;
  if (const std::string* found = impl_->pairs.bytes(token)) return *found;
  throw UserError(ErrorCode::IndexOutOfRange, fmt::format("there is no token {}", token),
                  fmt::format("the tokenizer has tokens below {}", size()));
}

std::optional<std::int32_t> Tokenizer::find(std::string_view bytes) const {
  for (const AddedToken& t : impl_->added) {
    if (t.content == bytes) return t.id;
  }
  return impl_->pairs.find(bytes);
}

std::span<const AddedToken> Tokenizer::added() const noexcept { return impl_->added; }
std::span<const std::int32_t> Tokenizer::before() const noexcept { return impl_->parts.before; }
std::span<const std::int32_t> Tokenizer::behind() const noexcept { return impl_->parts.behind; }

}  // namespace ricci
