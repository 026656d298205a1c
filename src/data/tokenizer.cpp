#include "ricci/data/tokenizer.h"

#include <algorithm>
#include <ranges>

#include <fmt/format.h>

#include "ricci/support/error.h"
#include "ricci/support/file.h"
#include "ricci/support/stop.h"

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
      for (const char c : normalized ? ricci::normalized(parts, t.content) : t.content) {
        const auto [it, is_new] = nodes[at].next.emplace(c, nodes.size());
        at = it->second;
        if (is_new) nodes.emplace_back();
      }
      if (nodes[at].token == nullptr) nodes[at].token = &t;
    }
  }
  for (const AddedToken& t : added) added_by_id_.emplace(t.id, &t);
  // Where no token goes on over the mark of a word, the words are taken one by one.
  if (parts.metaspace && words_end_at(parts.metaspace->replacement)) {
    word_mark_ = parts.metaspace->replacement;
  }
  for (const NormalizerStep& step : parts.normalizer) {
    const bool marks = step.kind == NormalizerStep::Kind::Replace && step.from == " ";
    if (marks && !parts.metaspace && words_end_at(step.to)) word_mark_ = step.to;
  }
}

bool Tokenizer::Impl::words_end_at(std::string_view mark) const {
  if (mark.empty()) return false;
  return std::ranges::none_of(pairs.merges(), [&](const auto& merge) {
    const std::string& left = *pairs.bytes(merge.first);
    const std::string& right = *pairs.bytes(merge.second);
    return right.starts_with(mark) && !left.ends_with(mark);
  });
}

std::string Tokenizer::Impl::shown(std::string_view token) const {
  std::string out(token);
  if (!parts.characters) return out;
  if (parts.shown.bytes) {
    if (const auto byte = named_byte(token)) return std::string(1, *byte);
  }
  for (const auto& [from, to] : parts.shown.replaced) out = replaced_all(out, from, to);
  return out;
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

void Tokenizer::Impl::encode_characters(std::string_view text, bool first,
                                        std::vector<std::int32_t>& out) const {
  std::string own;
  std::string_view split;
  if (parts.metaspace) {
    const Metaspace& m = *parts.metaspace;
    own = replaced_all(text, " ", m.replacement);
    const bool prepends = m.prepend == Metaspace::Prepend::Always ||
                          (m.prepend == Metaspace::Prepend::First && first);
    if (prepends && !own.starts_with(m.replacement)) own = m.replacement + own;
    text = own;
    if (m.split) split = m.replacement;
  }
  while (!text.empty()) {
    throw_if_stopped();
    std::size_t size = text.size();
    if (!split.empty()) {
      size = std::min(text.find(split, text.starts_with(split) ? split.size() : 0), size);
    } else if (!word_mark_.empty()) {
      std::size_t at = 0;
      while (text.substr(at).starts_with(word_mark_)) at += word_mark_.size();
      size = std::min(text.find(word_mark_, at), size);
    }
    pairs.encode_characters(text.substr(0, size), ignore_merges, fallback, out);
    text.remove_prefix(size);
  }
}

void Tokenizer::Impl::encode(std::string_view text, bool first,
                             std::vector<std::int32_t>& out) const {
  if (parts.characters) return encode_characters(text, first, out);
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

std::string Tokenizer::Impl::shown(const AddedToken& token) const {
  return token.normalized ? shown(normalized(parts, token.content)) : token.content;
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
  const auto between = [&](std::string_view part, auto&& self, bool normalized,
                           bool first) -> void {
    std::size_t at = 0;
    const auto text_before = [&](std::size_t end) {
      const std::string_view before = part.substr(at, end - at);
      if (before.empty()) return;
      const bool is_first = first && at == 0;
      if (normalized) return impl_->encode(before, is_first, out);
      if (impl_->parts.normalizer.empty()) return self(before, self, true, is_first);
      self(ricci::normalized(impl_->parts, before), self, true, is_first);
    };
    while (const auto found = impl_->next_added(part, at, normalized, special)) {
      text_before(found->begin);
      out.push_back(found->token->id);
      at = found->end;
    }
    text_before(part.size());
  };
  between(text, between, false, true);
  return out;
}

std::string Tokenizer::decode(std::span<const std::int32_t> tokens, bool skip_special) const {
  std::string out;
  for (const std::int32_t id : tokens) {
    if (const AddedToken* added = impl_->added_token(id)) {
      if (!(skip_special && added->special)) out += impl_->shown(*added);
    } else {
      out += bytes(id);
    }
  }
  const ShownTokens& shown = impl_->parts.shown;
  for (std::int64_t i = 0; i < shown.strip_most && out.starts_with(shown.stripped); ++i) {
    if (shown.stripped.empty()) break;
    out.erase(0, shown.stripped.size());
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
  if (const AddedToken* added = impl_->added_token(token)) return impl_->shown(*added);
  if (const std::string* found = impl_->pairs.bytes(token)) return impl_->shown(*found);
  throw UserError(ErrorCode::IndexOutOfRange, fmt::format("there is no token {}", token),
                  fmt::format("the tokenizer has tokens below {}", size()));
}

std::optional<std::int32_t> Tokenizer::find(std::string_view bytes) const {
  for (const AddedToken& t : impl_->added) {
    if (t.content == bytes) return t.id;
  }
  if (!impl_->parts.characters) return impl_->pairs.find(bytes);
  std::string spelling(bytes);
  for (const auto& [from, to] : impl_->parts.shown.replaced | std::views::reverse) {
    spelling = replaced_all(spelling, to, from);
  }
  const auto found = impl_->pairs.find(spelling);
  if (found || bytes.size() != 1 || !impl_->parts.shown.bytes) return found;
  return impl_->pairs.find_byte(bytes.front());
}

std::span<const AddedToken> Tokenizer::added() const noexcept { return impl_->added; }
std::span<const std::int32_t> Tokenizer::before() const noexcept { return impl_->parts.before; }
std::span<const std::int32_t> Tokenizer::behind() const noexcept { return impl_->parts.behind; }

}  // namespace ricci
