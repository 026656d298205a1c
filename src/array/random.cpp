#include "ricci/array/random.h"

#include <atomic>
#include <cmath>
#include <numbers>
#include <utility>

#include <fmt/format.h>

#include "ricci/array/callable.h"
#include "ricci/array/control.h"
#include "ricci/array/create.h"
#include "ricci/array/ops.h"
#include "ricci/op/ops.h"
#include "ricci/support/error.h"

#include "array/generator.h"
#include "array/node.h"
#include "support/float_environment.h"
#include "support/machine_memory.h"

namespace ricci {
namespace {

// Streams of one key that serve different ends start this far apart.
constexpr std::int64_t SplitStream = 0x5C1F0E3D;
constexpr auto Golden = static_cast<std::int64_t>(0x9E3779B97F4A7C15ULL);

std::uint64_t mixed(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

Array key_array(std::uint64_t word) {
  return detail::value_array(Tensor::of<std::int64_t>({}, {static_cast<std::int64_t>(word)}));
}

// [count] keys drawn from the stream of one.
Array draw_keys(const Array& key, std::int64_t count, std::source_location where) {
  const Array bits =
      detail::apply(Op(op::RngBits{.shape = {count, 2}, .key = SplitStream}), {key}, where);
  const Array wide = cast(bits, DType::I64, where);
  const Array high = wide(slice(), 0);
  const Array low = wide(slice(), 1);
  return high * Array(std::int64_t{1} << 32) + low;
}

// One key: several are drawn from one by one.
const Array& word_of(const Key& key, std::source_location where) {
  const Array& words = key.words();
  if (words.rank() == 0) return words;
  detail::refuse(ErrorCode::Shape, "keys",
                 fmt::format("{} keys stand where one is drawn from", to_string(words.shape())),
                 "take one, keys[0], or go through them: vmap(f)(keys), scan(x, keys, body)",
                 where);
}

struct Generator {
  std::atomic<std::uint64_t> seed{0};
  std::atomic<std::uint64_t> count{0};
};
Generator& generator() {
  static Generator g;
  return g;
}

}  // namespace

Key::Key(std::uint64_t seed) : words_(key_array(mixed(seed))) {}

Key Key::fold_in(const Array& number, std::source_location where) const {
  const Array by = number.node()->weak ? detail::strengthened(number, DType::I64, where)
                                       : cast(number, DType::I64, where);
  return Key(draw_keys(word_of(*this, where) + by * Array(Golden), 1, where)[0]);
}

std::array<Key, 2> split(const Key& key, std::source_location where) {
  return split<2>(key, where);
}
Keys split(const Key& key, std::int64_t count, std::source_location where) {
  // Bits, and the words that are made of them.
  require_memory(count, std::int64_t{4} * sizeof(std::int64_t), "the number of keys");
  return Keys(draw_keys(word_of(key, where), count, where));
}

Keys::operator std::vector<Key>() const {
  require_memory(words().size(), detail::ArrayBytes, "the number of keys");
  return {begin(), end()};
}

Key next_key(std::source_location where) {
  for (detail::Tracing* t = detail::innermost_trace(); t != nullptr; t = t->outer()) {
    if (t->scope() == detail::TraceScope::Jit) return Key(t->add_seed());
    if (t->scope() != detail::TraceScope::Many) continue;
    throw UserError(Diagnostic{
        .code = ErrorCode::Refused,
        .detail = "generator",
        .message = fmt::format("the generator is drawn from inside '{}', where all would get the "
                               "same numbers",
                               t->trace().what),
        .where = SourcePosition::from(where),
        .notes = {},
        .help = "give it keys: carry a Key and split it every step, or map over split keys"});
  }
  Generator& g = generator();
  return Key(key_array(mixed(mixed(g.seed.load()) + g.count.fetch_add(1))));
}

void manual_seed(std::uint64_t seed) {
  generator().seed.store(seed);
  generator().count.store(0);
}

detail::GeneratorState detail::generator_state() {
  return {generator().seed.load(), generator().count.load()};
}

void detail::set_generator_state(const GeneratorState& state) {
  generator().seed.store(state.seed);
  generator().count.store(state.count);
}

Array uniform(const Key& key, const Dims& shape, double low, double high, RandomOptions options,
              std::source_location where) {
  return detail::apply(Op(op::RngUniform{.low = low,
                                         .high = high,
                                         .shape = shape,
                                         .dtype = options.dtype,
                                         .key = 0,
                                         .op_seed = 0}),
                       {word_of(key, where)}, where);
}

Array uniform(const Dims& shape, double low, double high, RandomOptions options,
              std::source_location where) {
  return uniform(next_key(where), shape, low, high, options, where);
}

Array normal(const Key& key, const Dims& shape, double mean, double scale, RandomOptions options,
             std::source_location where) {
  return detail::apply(Op(op::RngNormal{.mean = mean,
                                        .scale = scale,
                                        .shape = shape,
                                        .dtype = options.dtype,
                                        .key = 0,
                                        .op_seed = 0}),
                       {word_of(key, where)}, where);
}

Array normal(const Dims& shape, double mean, double scale, RandomOptions options,
             std::source_location where) {
  return normal(next_key(where), shape, mean, scale, options, where);
}

Array randint(const Key& key, const Dims& shape, std::int64_t low, std::int64_t high,
              std::source_location where) {
  const DefaultFloatEnvironment floats;
  if (low >= high) {
    detail::refuse(ErrorCode::Attr, "randint",
                   fmt::format("'randint' draws from {} up to but not {}", low, high),
                   "the first number is below the second", where);
  }
  if (!std::in_range<std::int32_t>(low) || !std::in_range<std::int32_t>(high - 1)) {
    detail::refuse(
        ErrorCode::DType, "range",
        fmt::format("'randint' from {} to {} gives numbers that no i32 holds", low, high - 1),
        "draw a smaller range, and add to it in i64", where);
  }
  // f64 has 52 random bits: enough for every span of an i32.
  const Array u = uniform(key, shape, 0, 1, {.dtype = DType::F64}, where);
  const Array scaled = floor(u * static_cast<double>(high - low), where) + static_cast<double>(low);
  return cast(scaled, DType::I32, where);
}

Array randint(const Dims& shape, std::int64_t low, std::int64_t high, std::source_location where) {
  return randint(next_key(where), shape, low, high, where);
}

static void require_probability(double p, std::string_view what, std::source_location where) {
  if (p >= 0 && p <= 1) return;
  detail::refuse(ErrorCode::Attr, "probability", fmt::format("'{}' with probability {}", what, p),
                 "it is between 0 and 1", where);
}

Array bernoulli(const Key& key, double p, const Dims& shape, std::source_location where) {
  require_probability(p, "bernoulli", where);
  return uniform(key, shape, 0, 1, {}, where) < p;
}

Array dropout(const Key& key, const Array& x, double p, std::source_location where) {
  const DefaultFloatEnvironment floats;
  require_probability(p, "dropout", where);
  detail::require_valid(x, "dropout", where);
  // Of nothing that is left, nothing is made larger: 1/0 would be in the derivative.
  const double kept = p == 1 ? 1 : 1 - p;
  return ricci::where(bernoulli(key, 1 - p, x.shape(), where), div(x, kept, where), 0.0, where);
}

Array dropout(const Array& x, double p, std::source_location where) {
  return dropout(next_key(where), x, p, where);
}

Array truncated_normal(const Key& key, const Dims& shape, double low, double high,
                       std::source_location where) {
  const DefaultFloatEnvironment floats;
  // The inverse of the distribution, on the part of it that lies within.
  constexpr double root = std::numbers::sqrt2;
  const double from = std::erf(low / root);
  const double to = std::erf(high / root);
  const Array u = uniform(key, shape, from, to, {.dtype = DType::F64}, where);
  // Halving until erf is found: 40 times is more than f32 needs.
  const Array origin = zeros(shape, {.dtype = DType::F64}, where);
  const auto halve = [&](const Array&, const std::pair<Array, Array>& ends) {
    const Array m = (ends.first + ends.second) * 0.5;
    const Array below = erf(m, where) < u;
    return std::pair{ricci::where(below, m, ends.first, where),
                     ricci::where(below, ends.second, m, where)};
  };
  const auto [a, b] =
      fori_loop(0, 40, halve, std::pair{origin + low / root, origin + high / root}, {}, where);
  return clip(cast((a + b) * (0.5 * root), DType::F32, where), low, high, where);
}

// Of narrow dtypes a draw from [0, 1) may be rounded to 1, so their tails are made of wide ones.
static Array wide_uniform(const Key& key, const Dims& shape, DType dtype,
                          std::source_location where) {
  const DType wide = dtype == DType::F64 ? DType::F64 : DType::F32;
  return uniform(key, shape, 0, 1, {.dtype = wide}, where);
}

Array exponential(const Key& key, const Dims& shape, RandomOptions options,
                  std::source_location where) {
  // 1 - u is never 0.
  const Array u = wide_uniform(key, shape, options.dtype, where);
  return cast(neg(log1p(neg(u, where), where), where), options.dtype, where);
}

Array gumbel(const Key& key, const Dims& shape, RandomOptions options, std::source_location where) {
  // A draw of 0 is the least there is, and never the largest: it must not decide a maximum.
  const double tiny = options.dtype == DType::F64 ? 1e-300 : 1e-37;
  const Array u = max(wide_uniform(key, shape, options.dtype, where), tiny, where);
  return cast(neg(log(neg(log(u, where), where), where), where), options.dtype, where);
}

Array categorical(const Key& key, const Array& logits, std::source_location where) {
  const DType wide = logits.dtype() == DType::F64 ? DType::F64 : DType::F32;
  const Array noise = gumbel(key, logits.shape(), {.dtype = wide}, where);
  return argmax(cast(logits, wide, where) + noise, -1, false, where);
}

Array permutation(const Key& key, std::int64_t n, std::source_location where) {
  return argsort(uniform(key, {n}, 0, 1, {.dtype = DType::F64}, where), 0, false, where);
}

Array permutation(const Key& key, const Array& x, std::source_location where) {
  return take(x, permutation(key, x.dim(0).value(), where), 0, where);
}

Array choice(const Key& key, std::int64_t n, const Dims& shape, const ChoiceOptions& options,
             std::source_location where) {
  std::int64_t wanted = 1;
  for (const Dim& d : shape) wanted *= d.value();
  if (n < 1 || (!options.replace && wanted > n)) {
    detail::refuse(ErrorCode::Attr, "choice", fmt::format("'choice' of {} among {}", wanted, n),
                   "there is something to choose from, and for each draw where nothing is put back",
                   where);
  }
  if (options.p && options.p->shape() != Dims{n}) {
    detail::refuse(
        ErrorCode::Shape, "choice",
        fmt::format("'choice' among {} by probabilities {}", n, options.p->type().to_string()),
        "one probability for each", where);
  }
  if (options.replace && !options.p) return randint(key, shape, 0, n, where);
  if (options.replace) {
    Dims rows = shape;
    rows.emplace_back(n);
    const Array logits = log(*options.p, where);
    return categorical(key, broadcast_to(logits, rows, where), where);
  }
  if (!options.p) return reshape(permutation(key, n, where)(slice(0, wanted)), shape, where);
  // The largest of what is made by adding noise are drawn one after the other.
  const Array noise = gumbel(key, {n}, {.dtype = DType::F64}, where);
  const Array order =
      argsort(log(cast(*options.p, DType::F64, where), where) + noise, 0, true, where);
  return reshape(order(slice(0, wanted)), shape, where);
}

Array choice(const Key& key, const Array& x, const Dims& shape, const ChoiceOptions& options,
             std::source_location where) {
  return take(x, choice(key, x.dim(0).value(), shape, options, where), 0, where);
}

Array laplace(const Key& key, const Dims& shape, RandomOptions options,
              std::source_location where) {
  // Within (-1, 1): the logarithm of 0 is nobody's number.
  const DType wide = options.dtype == DType::F64 ? DType::F64 : DType::F32;
  const double edge = wide == DType::F64 ? 1 - 1e-15 : 1 - 1e-7;
  const Array u = max(uniform(key, shape, -1, 1, {.dtype = wide}, where), -edge, where);
  return cast(neg(sign(u, where), where) * log1p(neg(abs(u, where), where), where), options.dtype,
              where);
}

Array logistic(const Key& key, const Dims& shape, RandomOptions options,
               std::source_location where) {
  const double tiny = options.dtype == DType::F64 ? 1e-300 : 1e-37;
  const Array u = max(wide_uniform(key, shape, options.dtype, where), tiny, where);
  return cast(log(u, where) - log1p(neg(u, where), where), options.dtype, where);
}

Array cauchy(const Key& key, const Dims& shape, RandomOptions options, std::source_location where) {
  const Array u = wide_uniform(key, shape, options.dtype, where);
  return cast(tan((u - 0.5) * std::numbers::pi, where), options.dtype, where);
}

Array rademacher(const Key& key, const Dims& shape, std::source_location where) {
  return 2 * cast(bernoulli(key, 0.5, shape, where), DType::I32, where) - 1;
}

Array multivariate_normal(const Key& key, const Array& mean, const Array& cov, const Dims& shape,
                          std::source_location where) {
  Dims rows = shape;
  rows.push_back(mean.dim(0));
  const Array z = normal(key, rows, 0, 1, {.dtype = cov.dtype()}, where);
  return add(mean, matmul(z, transpose(cholesky(cov, where), {1, 0}, where), where), where);
}

namespace {

struct Drawn {
  Key key;
  Array value, done;
};

// Draws again, each round with a key of its own, where what was drawn is not taken.
template <class Draw>
Array drawn_until_taken(const Key& key, const Array& start, Draw&& draw) {
  const auto round = [&](const Drawn& s) {
    const auto [next, now] = split<2>(s.key);
    const auto [value, taken] = draw(now);
    return Drawn{next, where(s.done, s.value, value), s.done || taken};
  };
  const Drawn first{key, start, zeros(start.shape(), {.dtype = DType::Bool})};
  return while_loop(first, [](const Drawn& s) { return !all(s.done); }, round).value;
}

}  // namespace

namespace {

DType drawn_in(const Array& parameter) {
  return parameter.dtype() == DType::F64 ? DType::F64 : DType::F32;
}

// Logarithms of draws, in f64: of a small a most draws are smaller than any number. NaN where a is
// negative or no finite number, where no draw would ever be taken.
Array log_gamma(const Key& key, const Array& a, const Dims& shape, std::source_location where) {
  const Array given = stop_gradient(broadcast_to(cast(a, DType::F64, where), shape, where), where);
  const Array valid = logical_and(given >= 0.0, isfinite(given, where), where);
  const Array shapes = ricci::where(valid, given, 1.0, where);
  // Marsaglia and Tsang (2000), for a + 1 where a is below 1.
  const auto [draws, boost] = split<2>(key, where);
  const Array d = ricci::where(shapes < 1.0, shapes + 1.0, shapes, where) - 1.0 / 3.0;
  const Array c = 1.0 / sqrt(9.0 * d, where);
  const Array found = drawn_until_taken(draws, zeros_like(d, where), [&](const Key& k) {
    const auto [ka, kb] = split<2>(k);
    const Array x = normal(ka, shape, 0, 1, {.dtype = DType::F64});
    const Array u = max(uniform(kb, shape, 0, 1, {.dtype = DType::F64}), 1e-300);
    const Array t = 1.0 + c * x;
    const Array v = t * t * t;
    const Array bound = 0.5 * x * x + d - d * v + d * log(ricci::where(v > 0.0, v, 1.0));
    return std::pair{d * v, v > 0.0 && log(u) < bound};
  });
  const Array u = max(uniform(boost, shape, 0, 1, {.dtype = DType::F64}, where), 1e-300, where);
  const Array less = ricci::where(shapes < 1.0, log(u, where) / shapes, 0.0, where);
  return ricci::where(valid, log(found, where) + less, NAN, where);
}

}  // namespace

Array gamma(const Key& key, const Array& a, const Dims& shape, std::source_location where) {
  return cast(exp(log_gamma(key, a, shape, where), where), drawn_in(a), where);
}

Array beta(const Key& key, const Array& a, const Array& b, const Dims& shape,
           std::source_location where) {
  const auto [ka, kb] = split<2>(key, where);
  const Array x = log_gamma(ka, a, shape, where);
  const Array y = log_gamma(kb, b, shape, where);
  const DType dtype = drawn_in(a) == DType::F64 ? DType::F64 : drawn_in(b);
  return cast(sigmoid(sub(x, y, where), where), dtype, where);
}

Array dirichlet(const Key& key, const Array& alpha, const Dims& shape, std::source_location where) {
  Dims rows = shape;
  rows.push_back(alpha.dim(0));
  return cast(softmax(log_gamma(key, alpha, rows, where), -1, where), drawn_in(alpha), where);
}

Array poisson(const Key& key, const Array& rate, const Dims& shape, std::source_location where) {
  // What has no place among the numbers of the result, or is no rate, would never be counted.
  constexpr double Most = 2.1e9;
  const Array given =
      stop_gradient(broadcast_to(cast(rate, DType::F64, where), shape, where), where);
  const Array valid = logical_and(given >= 0.0, given <= Most, where);
  const Array rates = ricci::where(valid, given, 0.0, where);
  const auto [few, many] = split<2>(key, where);
  // Of small rates the steps that fit into it are counted; of large ones Hörmann's transformed
  // rejection (1993).
  const Array small = rates < 10.0;
  struct Steps {
    Key key;
    Array room, count;
  };
  const Steps first{few, ricci::where(small, rates, -1.0, where),
                    full(shape, -1, {.dtype = DType::I32}, where)};
  const Array counted = while_loop(
                            first, [](const Steps& s) { return any(s.room >= 0.0); },
                            [&](const Steps& s) {
                              const auto [next, now] = split<2>(s.key);
                              const Array step = exponential(now, shape, {.dtype = DType::F64});
                              const Array more = cast(s.room >= 0.0, DType::I32);
                              return Steps{next, s.room - step, s.count + more};
                            })
                            .count;
  const Array lam = ricci::where(small, 10.0, rates, where);
  const Array b = 0.931 + 2.53 * sqrt(lam, where);
  const Array slope = -0.059 + 0.02483 * b;
  const Array height = 1.1239 + 1.1328 / (b - 3.4);
  const Array sure = 0.9277 - 3.6224 / (b - 2.0);
  const Array found = drawn_until_taken(many, zeros_like(lam, where), [&](const Key& k) {
    const auto [ku, kv] = split<2>(k);
    const Array u = uniform(ku, shape, 0, 1, {.dtype = DType::F64}) - 0.5;
    const Array v = max(uniform(kv, shape, 0, 1, {.dtype = DType::F64}), 1e-300);
    const Array us = max(0.5 - abs(u), 1e-300);
    const Array n = floor((2.0 * slope / us + b) * u + lam + 0.43);
    const Array possible = n >= 0.0 && !(us < 0.013 && v > us);
    const Array weight = log(v * height / (slope / (us * us) + b));
    const Array likely =
        weight <= n * log(lam) - lam - lgamma(ricci::where(n >= 0.0, n, 0.0) + 1.0);
    return std::pair{n, (us >= 0.07 && v <= sure) || (possible && likely)};
  });
  const Array count = ricci::where(small, counted, cast(found, DType::I32, where), where);
  return ricci::where(valid, count, -1, where);
}

Array rand(const Dims& shape, std::source_location where) {
  return uniform(shape, 0, 1, {}, where);
}
Array randn(const Dims& shape, std::source_location where) {
  return normal(shape, 0, 1, {}, where);
}

}  // namespace ricci
