#include "rewrite/name_pattern.h"

#include <algorithm>

namespace ricci {

// The last '*' takes one character more whenever what follows it does not fit.
bool matches_pattern(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t taken = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

bool is_meant(std::string_view pattern, const Node& node, bool ops_only) {
  if (matches_pattern(pattern, node.op.mnemonic())) return true;
  if (ops_only) return false;
  const auto fits = [&](const std::string& name) {
    return !name.empty() && matches_pattern(pattern, name);
  };
  if (std::ranges::any_of(node.names, fits)) return true;
  return node.provenance && fits(node.provenance->label);
}

}  // namespace ricci
