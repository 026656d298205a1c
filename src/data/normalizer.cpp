#include "data/normalizer.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "data/pretokenizer.h"
#include "data/unicode_composition.h"

namespace ricci {
namespace {

// Bytes that are no UTF-8, above all characters: they have no class and compose with nothing.
constexpr char32_t FirstByte = 0x110000;

// Syllables of Hangul are computed, not listed.
constexpr char32_t Syllables = 0xAC00, Leads = 0x1100, Vowels = 0x1161, Tails = 0x11A7;
constexpr char32_t LeadCount = 19, VowelCount = 21, TailCount = 28;
constexpr char32_t SyllableCount = LeadCount * VowelCount * TailCount;

std::uint32_t mark_class(char32_t code) noexcept {
  const auto marks = classes_of_marks();
  const auto it = std::ranges::lower_bound(marks, code, {}, &MarkClass::last);
  return it != marks.end() && it->first <= code ? it->kind : 0;
}

const Composition* parts_of(char32_t code) noexcept {
  for (const auto list : {composed_characters(), characters_taken_apart()}) {
    const auto it = std::ranges::lower_bound(list, code, {}, &Composition::code);
    if (it != list.end() && it->code == code) return &*it;
  }
  return nullptr;
}

void take_apart(char32_t code, std::vector<char32_t>& out) {
  if (code >= Syllables && code < Syllables + SyllableCount) {
    const char32_t i = code - Syllables;
    out.push_back(Leads + i / (VowelCount * TailCount));
    out.push_back(Vowels + i / TailCount % VowelCount);
    if (i % TailCount != 0) out.push_back(Tails + i % TailCount);
    return;
  }
  const Composition* parts = parts_of(code);
  if (parts == nullptr) return out.push_back(code);
  take_apart(parts->first, out);
  if (parts->second != 0) take_apart(parts->second, out);
}

// By what they are composed of.
const std::vector<Composition>& by_parts() {
  static const std::vector<Composition> sorted = [] {
    const auto all = composed_characters();
    std::vector<Composition> out(all.begin(), all.end());
    std::ranges::sort(out, {}, [](const Composition& c) { return std::pair(c.first, c.second); });
    return out;
  }();
  return sorted;
}

std::optional<char32_t> together(char32_t first, char32_t second) {
  if (first >= Leads && first < Leads + LeadCount && second >= Vowels &&
      second < Vowels + VowelCount) {
    return Syllables + ((first - Leads) * VowelCount + second - Vowels) * TailCount;
  }
  if (first >= Syllables && first < Syllables + SyllableCount &&
      (first - Syllables) % TailCount == 0 && second > Tails && second < Tails + TailCount) {
    return first + second - Tails;
  }
  const auto parts = [](const Composition& c) { return std::pair(c.first, c.second); };
  const auto it = std::ranges::lower_bound(by_parts(), std::pair(first, second), {}, parts);
  if (it == by_parts().end() || parts(*it) != std::pair(first, second)) return std::nullopt;
  return it->code;
}

// Marks behind a character in the order of their classes.
void put_in_order(std::vector<char32_t>& codes) {
  const auto is_mark = [](char32_t c) { return mark_class(c) != 0; };
  for (auto at = codes.begin(); at != codes.end();) {
    at = std::find_if(at, codes.end(), is_mark);
    const auto end = std::find_if_not(at, codes.end(), is_mark);
    std::ranges::stable_sort(at, end, {}, mark_class);
    at = end;
  }
}

void put_together(std::vector<char32_t>& codes) {
  std::vector<char32_t> out;
  std::optional<std::size_t> base;  // the last character that marks are on
  std::uint32_t before = 0;         // the class of the last one in `out`
  for (const char32_t c : codes) {
    const std::uint32_t kind = mark_class(c);
    if (base && (*base + 1 == out.size() || before < kind)) {
      if (const auto one = together(out[*base], c)) {
        out[*base] = *one;
        continue;
      }
    }
    if (kind == 0) base = out.size();
    before = kind;
    out.push_back(c);
  }
  codes = std::move(out);
}

void append(std::string& out, char32_t c) {
  const auto byte = [&](char32_t b) { out += static_cast<char>(b); };
  if (c >= FirstByte) return byte(c - FirstByte);
  if (c < 0x80) return byte(c);
  if (c < 0x800) {
    byte(0xC0U | c >> 6U);
  } else if (c < 0x10000) {
    byte(0xE0U | c >> 12U);
    byte(0x80U | (c >> 6U & 0x3FU));
  } else {
    byte(0xF0U | c >> 18U);
    byte(0x80U | (c >> 12U & 0x3FU));
    byte(0x80U | (c >> 6U & 0x3FU));
  }
  byte(0x80U | (c & 0x3FU));
}

}  // namespace

std::string normalized_nfc(std::string_view text) {
  const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  if (std::ranges::all_of(text, is_ascii)) return std::string(text);
  std::vector<char32_t> codes;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    const bool is_character = c.code < FirstByte;
    if (is_character) {
      take_apart(c.code, codes);
    } else {
      codes.push_back(FirstByte + static_cast<unsigned char>(text[at]));
    }
    at += c.size;
  }
  put_in_order(codes);
  put_together(codes);
  std::string out;
  for (const char32_t c : codes) append(out, c);
  return out;
}

}  // namespace ricci
