#include "text.h"

#include <stdexcept>

#include "ricci/io/file.h"

namespace gpt {

Vocabulary::Vocabulary(std::string_view text) {
  std::array<bool, 256> occurs{};
  for (const char c : text) occurs[static_cast<unsigned char>(c)] = true;
  for (std::size_t c = 0; c < occurs.size(); ++c) {
    if (!occurs[c]) continue;
    tokens_[c] = static_cast<std::int32_t>(characters_.size());
    characters_.push_back(static_cast<char>(c));
  }
  for (std::size_t c = 0; c < occurs.size(); ++c) {
    if (!occurs[c]) tokens_[c] = tokens_[' '];
  }
}

Tokens Vocabulary::encode(std::string_view text) const {
  Tokens tokens;
  tokens.reserve(text.size());
  for (const char c : text) tokens.push_back(tokens_[static_cast<unsigned char>(c)]);
  return tokens;
}

Batches::Batches(Tokens text, std::int64_t pieces, std::int64_t length, std::uint64_t seed)
    : text_(std::move(text)), pieces_(pieces), length_(length), random_(seed) {
  if (static_cast<std::int64_t>(text_.size()) <= length_) {
    throw std::invalid_argument("the text is too short: it must be longer than one context");
  }
}

Batch Batches::next() {
  const auto length = static_cast<std::ptrdiff_t>(length_);
  std::uniform_int_distribution<std::ptrdiff_t> start(
      0, static_cast<std::ptrdiff_t>(text_.size()) - length - 1);
  Tokens ids;
  Tokens labels;
  for (std::int64_t piece = 0; piece < pieces_; ++piece) {
    const auto first = text_.begin() + start(random_);
    ids.insert(ids.end(), first, first + length);
    labels.insert(labels.end(), first + 1, first + length + 1);
  }
  using Elements = std::span<const std::int32_t>;
  return {.ids = ricci::Tensor::of<std::int32_t>({pieces_, length_}, Elements(ids)),
          .labels = ricci::Tensor::of<std::int32_t>({pieces_, length_}, Elements(labels))};
}

std::string read_text(const std::string& path) {
  const std::vector<std::byte> bytes = ricci::io::read_file(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace gpt
