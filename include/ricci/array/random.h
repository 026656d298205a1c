// Random numbers. A `Key` says which: the same key gives the same numbers, on every device and in
// every program. Without one a generator of the process draws a fresh key, which `manual_seed`
// sets.
//
//   Key key(7);
//   auto [a, b] = split<2>(key);
//   Array x = normal(a, {3, 4});
//   Array ys = vmap([](Key k) { return normal(k, {4}); })(split(b, 100));
//   Array y = uniform({3, 4});             // from the generator
//
// Inside `jit` the generator gives every call numbers of its own. Where one trace stands for many
// steps or examples (the bodies of loops, vmap), drawing from it is an error: carry a key along.
#pragma once

#include <array>
#include <cstdint>
#include <iterator>
#include <optional>
#include <source_location>
#include <vector>

#include "ricci/array/array.h"
#include "ricci/array/tree.h"

namespace ricci {

class Key {
 public:
  /// Keys of neighbouring seeds have nothing in common.
  explicit Key(std::uint64_t seed);
  Key() : Key(0) {}
  /// From an i64 of rank 0.
  explicit Key(Array words) : words_(std::move(words)) {}

  [[nodiscard]] const Array& words() const noexcept { return words_; }
  [[nodiscard]] Array& words() noexcept { return words_; }
  /// Another key, by number: a step, an index; traced or not.
  [[nodiscard]] Key fold_in(const Array& number,
                            std::source_location where = std::source_location::current()) const;

 private:
  Array words_;
};

/// Keys in a row, along the axes of their array: what `split` gives, and what loops and `vmap` take
/// one Key after the other of.
class Keys : public Key {
 public:
  using Key::Key;

  [[nodiscard]] std::size_t size() const {
    return static_cast<std::size_t>(words().dim(0).value());
  }
  [[nodiscard]] Key operator[](std::int64_t i) const { return Key(words()[i]); }
  operator std::vector<Key>() const;  // NOLINT: the same one by one

  class Place {
   public:
    using value_type = Key;
    using reference = Key;
    using pointer = void;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::input_iterator_tag;
    explicit Place(ArrayRow row) : row_(std::move(row)) {}
    [[nodiscard]] Key operator*() const { return Key(*row_); }
    Place& operator++() {
      ++row_;
      return *this;
    }
    Place operator++(int) { return Place(row_++); }
    friend bool operator==(const Place&, const Place&) = default;

   private:
    ArrayRow row_;
  };
  [[nodiscard]] Place begin() const { return Place(words().begin()); }
  [[nodiscard]] Place end() const { return Place(words().end()); }
};

/// A key is an array to functions of functions.
template <>
struct TreeTraits<Key> {
  static void visit(Key& key, TreeVisitor& v) { v.visit(key.words()); }
};
template <>
struct TreeTraits<Keys> : TreeTraits<Key> {};

/// Keys that have nothing in common with each other and with `key`.
[[nodiscard]] Keys split(const Key& key, std::int64_t count,
                         std::source_location where = std::source_location::current());
/// Two, as often: auto [next, drawn] = split(key).
[[nodiscard]] std::array<Key, 2> split(
    const Key& key, std::source_location where = std::source_location::current());
template <std::size_t N>
[[nodiscard]] std::array<Key, N> split(const Key& key, Here where = Here::current()) {
  const Keys all = split(key, N, where);
  std::array<Key, N> out{};
  for (std::size_t i = 0; i < N; ++i) out[i] = all[static_cast<std::int64_t>(i)];
  return out;
}

/// A fresh key from the generator.
[[nodiscard]] Key next_key(std::source_location where = std::source_location::current());
/// Starts the generator anew.
void manual_seed(std::uint64_t seed);

struct RandomOptions {
  DType dtype = DType::F32;
};
/// Uniform in [low, high).
[[nodiscard]] Array uniform(const Key& key, const Dims& shape, double low = 0, double high = 1,
                            RandomOptions options = {},
                            std::source_location where = std::source_location::current());
[[nodiscard]] Array uniform(const Dims& shape, double low = 0, double high = 1,
                            RandomOptions options = {},
                            std::source_location where = std::source_location::current());
[[nodiscard]] Array normal(const Key& key, const Dims& shape, double mean = 0, double scale = 1,
                           RandomOptions options = {},
                           std::source_location where = std::source_location::current());
[[nodiscard]] Array normal(const Dims& shape, double mean = 0, double scale = 1,
                           RandomOptions options = {},
                           std::source_location where = std::source_location::current());
/// As JAX has them: normal(key, {3}, float64).
template <std::same_as<DType> D>
[[nodiscard]] Array uniform(const Key& key, const Dims& shape, D dtype, double low = 0,
                            double high = 1, Here where = Here::current()) {
  return uniform(key, shape, low, high, {.dtype = dtype}, where);
}
template <std::same_as<DType> D>
[[nodiscard]] Array normal(const Key& key, const Dims& shape, D dtype,
                           Here where = Here::current()) {
  return normal(key, shape, 0, 1, {.dtype = dtype}, where);
}
/// Whole numbers in [low, high), as i32.
[[nodiscard]] Array randint(const Key& key, const Dims& shape, std::int64_t low, std::int64_t high,
                            std::source_location where = std::source_location::current());
[[nodiscard]] Array randint(const Dims& shape, std::int64_t low, std::int64_t high,
                            std::source_location where = std::source_location::current());
/// True with probability p.
[[nodiscard]] Array bernoulli(const Key& key, double p, const Dims& shape,
                              std::source_location where = std::source_location::current());
/// x with elements left out with probability p and the others made larger by 1/(1 - p).
[[nodiscard]] Array dropout(const Key& key, const Array& x, double p,
                            std::source_location where = std::source_location::current());
[[nodiscard]] Array dropout(const Array& x, double p,
                            std::source_location where = std::source_location::current());

/// Standard normal numbers within [low, high].
[[nodiscard]] Array truncated_normal(const Key& key, const Dims& shape, double low = -2,
                                     double high = 2,
                                     std::source_location where = std::source_location::current());
/// -log(u) of uniform u: mean 1.
[[nodiscard]] Array exponential(const Key& key, const Dims& shape, RandomOptions options = {},
                                std::source_location where = std::source_location::current());
[[nodiscard]] Array gumbel(const Key& key, const Dims& shape, RandomOptions options = {},
                           std::source_location where = std::source_location::current());
/// Classes, i32, drawn by logarithms of probabilities [.., C] that need not be normalised.
[[nodiscard]] Array categorical(const Key& key, const Array& logits,
                                std::source_location where = std::source_location::current());
/// 0 … n - 1 in some order; or the rows of an array.
[[nodiscard]] Array permutation(const Key& key, std::int64_t n,
                                std::source_location where = std::source_location::current());
[[nodiscard]] Array permutation(const Key& key, const Array& x,
                                std::source_location where = std::source_location::current());
struct ChoiceOptions {
  bool replace = true;          ///< one may be drawn several times
  std::optional<Array> p = {};  ///< probabilities [n]; absent: all alike
};
/// Numbers of 0 … n - 1, i32; or rows of an array.
[[nodiscard]] Array choice(const Key& key, std::int64_t n, const Dims& shape,
                           const ChoiceOptions& options = {},
                           std::source_location where = std::source_location::current());
[[nodiscard]] Array choice(const Key& key, const Array& x, const Dims& shape,
                           const ChoiceOptions& options = {},
                           std::source_location where = std::source_location::current());
/// e^-|x| / 2
[[nodiscard]] Array laplace(const Key& key, const Dims& shape, RandomOptions options = {},
                            std::source_location where = std::source_location::current());
[[nodiscard]] Array logistic(const Key& key, const Dims& shape, RandomOptions options = {},
                             std::source_location where = std::source_location::current());
[[nodiscard]] Array cauchy(const Key& key, const Dims& shape, RandomOptions options = {},
                           std::source_location where = std::source_location::current());
/// -1 or 1, i32.
[[nodiscard]] Array rademacher(const Key& key, const Dims& shape,
                               std::source_location where = std::source_location::current());
/// Vectors [shape…, n] of mean [n] and covariance [n, n].
[[nodiscard]] Array multivariate_normal(
    const Key& key, const Array& mean, const Array& cov, const Dims& shape = {},
    std::source_location where = std::source_location::current());
/// Of density x^(a - 1) e^-x / Γ(a), a spread over the shape; 0 where a is 0, NaN where it is
/// negative or no finite number. No derivative passes by a.
[[nodiscard]] Array gamma(const Key& key, const Array& a, const Dims& shape,
                          std::source_location where = std::source_location::current());
/// Within (0, 1), of density proportional to x^(a - 1) (1 - x)^(b - 1).
[[nodiscard]] Array beta(const Key& key, const Array& a, const Array& b, const Dims& shape,
                         std::source_location where = std::source_location::current());
/// Shares [shape…, n] that add up to 1, by concentrations [n].
[[nodiscard]] Array dirichlet(const Key& key, const Array& alpha, const Dims& shape = {},
                              std::source_location where = std::source_location::current());
/// How often something happens that does so `rate` times on average, i32; -1 where the rate is no
/// number from 0 to 2.1·10⁹.
[[nodiscard]] Array poisson(const Key& key, const Array& rate, const Dims& shape,
                            std::source_location where = std::source_location::current());

/// The names as JAX has them: random::normal(random::key(0), {3}).
namespace random {
using ricci::bernoulli;
using ricci::beta;
using ricci::categorical;
using ricci::cauchy;
using ricci::choice;
using ricci::dirichlet;
using ricci::exponential;
using ricci::gamma;
using ricci::gumbel;
using ricci::laplace;
using ricci::logistic;
using ricci::multivariate_normal;
using ricci::normal;
using ricci::permutation;
using ricci::poisson;
using ricci::rademacher;
using ricci::randint;
using ricci::split;
using ricci::truncated_normal;
using ricci::uniform;
[[nodiscard]] inline Key key(std::uint64_t seed) { return Key(seed); }
[[nodiscard]] inline Key PRNGKey(std::uint64_t seed) { return Key(seed); }
[[nodiscard]] inline Key fold_in(const Key& key, const Array& number) {
  return key.fold_in(number);
}
}  // namespace random

/// As PyTorch has them, from the generator.
[[nodiscard]] Array rand(const Dims& shape,
                         std::source_location where = std::source_location::current());
[[nodiscard]] Array randn(const Dims& shape,
                          std::source_location where = std::source_location::current());

}  // namespace ricci
