#include "backend/cuda/codegen/prelude.h"

#include <algorithm>
#include <array>
#include <vector>

namespace ricci::cuda {
namespace {

bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Not as a part of a longer name.
bool has_word(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos;
       at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const bool begins = at == 0 || !is_word_char(text[at - 1]);
    if (begins && (end == text.size() || !is_word_char(text[end]))) return true;
  }
  return false;
}

bool uses(std::string_view text, std::string_view names) {
  while (!names.empty()) {
    const std::size_t end = std::min(names.find(' '), names.size());
    if (has_word(text, names.substr(0, end))) return true;
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return false;
}

constexpr std::string_view Types = R"(typedef signed char i8;
typedef unsigned char u8;
typedef long long i64;
typedef unsigned long long u64;

struct ricci_fault {
  unsigned kind;
  i64 value;
  i64 limit;
  unsigned origin;
  const volatile unsigned* stop;
};

)";

}  // namespace

std::string with_prelude(std::string_view source) {
  std::vector<std::string_view> used;
  const std::array groups = {number_snippets(), complex_snippets(), function_snippets()};
  for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
    for (auto snippet = group->rbegin(); snippet != group->rend(); ++snippet) {
      const auto in = [&](std::string_view text) { return uses(text, snippet->names); };
      if (in(source) || std::ranges::any_of(used, in)) used.push_back(snippet->text);
    }
  }
  std::string out(Types);
  for (auto text = used.rbegin(); text != used.rend(); ++text) {
    out += text->substr(text->find_first_not_of('\n'));
    out += '\n';
  }
  return out += source;
}

}  // namespace ricci::cuda
