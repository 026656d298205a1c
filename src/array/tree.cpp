#include "ricci/array/tree.h"

#include <cstring>

namespace ricci::detail {

void Flattened::text(std::string_view value) {
  words.push_back(value.size());
  while (!value.empty()) {
    std::uint64_t word = 0;
    const std::size_t n = std::min(value.size(), sizeof(word));
    std::memcpy(&word, value.data(), n);
    words.push_back(word);
    value.remove_prefix(n);
  }
}

void LeafNames::array(Array&) { names.push_back(path_); }

void LeafNames::enter(std::string_view field) {
  ends_.push_back(path_.size());
  if (!path_.empty()) path_ += '.';
  path_ += field;
}

void LeafNames::leave() {
  path_.resize(ends_.back());
  ends_.pop_back();
}

}  // namespace ricci::detail
