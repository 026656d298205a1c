// Text as numbers: the characters that occur in it, and random pieces of it to train on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ricci/type/tensor.h"

namespace gpt {

using Tokens = std::vector<std::int32_t>;

/// The characters (bytes) of a text, numbered from 0 in their own order.
class Vocabulary {
 public:
  explicit Vocabulary(std::string_view text);

  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(characters_.size()); }
  /// Characters that are not in the vocabulary become spaces, or the first one where there is none.
  [[nodiscard]] Tokens encode(std::string_view text) const;
  [[nodiscard]] char decode(std::size_t token) const { return characters_.at(token); }

 private:
  std::string characters_;
  std::array<std::int32_t, 256> tokens_{};
};

/// Pieces of a text, and the character that follows each of theirs: what the model has to say.
struct Batch {
  ricci::Tensor ids;     ///< i32[pieces, length]
  ricci::Tensor labels;  ///< i32[pieces, length]
};

/// Cuts `pieces` pieces of `length` characters out of a text, at random places.
class Batches {
 public:
  Batches(Tokens text, std::int64_t pieces, std::int64_t length, std::uint64_t seed);
  [[nodiscard]] Batch next();

 private:
  Tokens text_;
  std::int64_t pieces_;
  std::int64_t length_;
  std::mt19937_64 random_;
};

/// A whole file; throws ricci::UserError where it cannot be read.
[[nodiscard]] std::string read_text(const std::string& path);

}  // namespace gpt
