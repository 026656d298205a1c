#include "data/byte_pairs.h"

#include <queue>

#include <fmt/format.h>

#include "ricci/support/error.h"

#include "data/pretokenizer.h"

namespace ricci {
namespace {

std::array<char32_t, 256> make_byte_characters() {
  std::array<char32_t, 256> out{};
  char32_t next = 256;
  for (char32_t b = 0; b < 256; ++b) {
    const bool is_seen = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
    out[b] = is_seen ? b : next++;
  }
  return out;
}

// Symbols of a word as a list; those that were joined into another are gone.
struct Symbol {
  std::int32_t id = 0;
  std::int32_t before = -1, behind = -1;
};

struct Candidate {
  std::int32_t rank, place, left, right, made;
  // The queue gives the largest: the first rank, and of equal ones the first place.
  bool operator<(const Candidate& other) const {
    return rank != other.rank ? rank > other.rank : place > other.place;
  }
};

[[noreturn]] void no_token(std::string_view text, std::size_t size) {
  std::string bytes;
  for (const char c : text.substr(0, size)) {
    bytes += fmt::format(" {}", static_cast<unsigned>(static_cast<unsigned char>(c)));
  }
  throw UserError(ErrorCode::Refused,
                  fmt::format("the tokenizer has no token for the {}{}",
                              size == 1 ? "byte" : "character of the bytes", bytes),
                  "take one with tokens for all bytes");
}

}  // namespace

const std::array<char32_t, 256>& byte_characters() noexcept {
  static const std::array<char32_t, 256> characters = make_byte_characters();
  return characters;
}

std::string spelled(std::string_view bytes) {
  std::string out;
  for (const char b : bytes) {
    const char32_t c = byte_characters()[static_cast<unsigned char>(b)];
    if (c < 0x80) {
      out += static_cast<char>(c);
    } else {
      out += static_cast<char>(0xC0U | c >> 6U);
      out += static_cast<char>(0x80U | (c & 0x3FU));
    }
  }
  return out;
}

std::optional<std::string> unspelled(std::string_view text) {
  static const std::array<std::int16_t, 512> bytes = [] {
    std::array<std::int16_t, 512> out{};
    out.fill(-1);
    for (std::size_t b = 0; b < 256; ++b) out[byte_characters()[b]] = static_cast<std::int16_t>(b);
    return out;
  }();
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    if (c.code >= bytes.size() || bytes[c.code] < 0) return std::nullopt;
    out += static_cast<char>(bytes[c.code]);
    at += c.size;
  }
  return out;
}

std::string byte_name(char byte) {
  return fmt::format("<0x{:02X}>", static_cast<unsigned>(static_cast<unsigned char>(byte)));
}

std::optional<char> named_byte(std::string_view text) {
  constexpr std::string_view Digits = "0123456789ABCDEF";
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return std::nullopt;
  const std::size_t high = Digits.find(text[3]);
  const std::size_t low = Digits.find(text[4]);
  if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
  return static_cast<char>(high * 16 + low);
}

bool BytePairs::add_token(std::int32_t id, std::string bytes) {
  if (bytes_.contains(id) || !ids_.emplace(bytes, id).second) return false;
  bytes_.emplace(id, std::move(bytes));
  return true;
}

bool BytePairs::add_merge(std::int32_t left, std::int32_t right) {
  const std::string* a = bytes(left);
  const std::string* b = bytes(right);
  if (a == nullptr || b == nullptr) return false;
  const std::optional<std::int32_t> made = find(*a + *b);
  if (!made) return false;
  const auto rank = static_cast<std::int32_t>(merges_.size());
  merges_.emplace_back(left, right);
  by_pair_.insert_or_assign(pair_key(left, right), Merge{rank, *made});
  return true;
}

void BytePairs::finish() {
  for (std::size_t b = 0; b < byte_ids_.size(); ++b) {
    byte_ids_[b] = find(std::string(1, static_cast<char>(b))).value_or(-1);
  }
}

std::optional<std::int32_t> BytePairs::find(std::string_view bytes) const {
  const auto it = ids_.find(std::string(bytes));
  return it == ids_.end() ? std::nullopt : std::optional(it->second);
}

const std::string* BytePairs::bytes(std::int32_t id) const {
  const auto it = bytes_.find(id);
  return it == bytes_.end() ? nullptr : &it->second;
}

const BytePairs::Merge* BytePairs::merge_of(std::int32_t left, std::int32_t right) const {
  const auto it = by_pair_.find(pair_key(left, right));
  return it == by_pair_.end() ? nullptr : &it->second;
}

void BytePairs::encode(std::string_view word, bool ignore_merges,
                       std::optional<std::int32_t> unknown, std::vector<std::int32_t>& out) const {
  if (ignore_merges) {
    if (const auto whole = find(word)) return out.push_back(*whole);
  }
  std::vector<std::int32_t> ids;
  ids.reserve(word.size());
  for (const char c : word) {
    std::int32_t id = byte_ids_[static_cast<unsigned char>(c)];
    if (id < 0 && !unknown) no_token({&c, 1}, 1);
    if (id < 0) id = *unknown;
    ids.push_back(id);
  }
  join(ids, out);
}

std::optional<std::int32_t> BytePairs::find_byte(char byte) const { return find(byte_name(byte)); }

void BytePairs::encode_characters(std::string_view word, bool ignore_merges,
                                  const Fallback& fallback, std::vector<std::int32_t>& out) const {
  if (ignore_merges) {
    if (const auto whole = find(word)) return out.push_back(*whole);
  }
  std::vector<std::int32_t> ids;
  ids.reserve(word.size());
  // Of unknown characters the token comes before the next known one: bytes pass it, as they do in
  // the library these files are of.
  bool waits = false;
  const auto put_waiting = [&] {
    if (waits) ids.push_back(*fallback.unknown);
    waits = false;
  };
  for (std::size_t at = 0; at < word.size();) {
    const std::string_view c = word.substr(at, code_point_at(word, at).size);
    at += c.size();
    if (const auto id = find(c)) {
      put_waiting();
      ids.push_back(*id);
      continue;
    }
    const std::size_t before = ids.size();
    for (std::size_t b = 0; fallback.bytes && b < c.size(); ++b) {
      if (const auto id = find_byte(c[b])) ids.push_back(*id);
    }
    if (fallback.bytes && ids.size() == before + c.size()) continue;
    ids.resize(before);
    if (!fallback.unknown) no_token(c, c.size());
    if (!fallback.fused) put_waiting();
    waits = true;
  }
  put_waiting();
  join(ids, out);
}

void BytePairs::join(const std::vector<std::int32_t>& ids, std::vector<std::int32_t>& out) const {
  std::vector<Symbol> symbols;
  symbols.reserve(ids.size());
  for (const std::int32_t id : ids) {
    const auto place = static_cast<std::int32_t>(symbols.size());
    symbols.push_back({id, place - 1, place + 1});
  }
  if (!symbols.empty()) symbols.back().behind = -1;
  std::priority_queue<Candidate> queue;
  const auto consider = [&](std::int32_t place) {
    if (place < 0) return;
    const Symbol& s = symbols[static_cast<std::size_t>(place)];
    if (s.behind < 0) return;
    const std::int32_t right = symbols[static_cast<std::size_t>(s.behind)].id;
    if (const Merge* m = merge_of(s.id, right)) {
      queue.push({m->rank, place, s.id, right, m->made});
    }
  };
  for (std::size_t i = 0; i + 1 < symbols.size(); ++i) consider(static_cast<std::int32_t>(i));
  while (!queue.empty()) {
    const Candidate c = queue.top();
    queue.pop();
    Symbol& left = symbols[static_cast<std::size_t>(c.place)];
    if (left.id != c.left || left.behind < 0) continue;
    Symbol& right = symbols[static_cast<std::size_t>(left.behind)];
    if (right.id != c.right) continue;
    left.id = c.made;
    left.behind = right.behind;
    right = {-1, -1, -1};
    if (left.behind >= 0) symbols[static_cast<std::size_t>(left.behind)].before = c.place;
    consider(left.before);
    consider(c.place);
  }
  for (std::int32_t at = symbols.empty() ? -1 : 0; at >= 0;
       at = symbols[static_cast<std::size_t>(at)].behind) {
    out.push_back(symbols[static_cast<std::size_t>(at)].id);
  }
}

}  // namespace ricci
