#include "ricci/array/random.h"

#include <atomic>
#include <cmath>
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
  return Key(draw_keys(words_ + by * Array(Golden), 1, where)[0]);
}

std::vector<Key> split(const Key& key, std::int64_t count) {
  require_memory(count, detail::ArrayBytes, "the number of keys");
  const Array all = draw_keys(key.words(), count, std::source_location::current());
  std::vector<Key> out;
  for (std::int64_t i = 0; i < count; ++i) out.emplace_back(all[i]);
  return out;
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
                       {key.words()}, where);
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
                       {key.words()}, where);
}

Array normal(const Dims& shape, double mean, double scale, RandomOptions options,
             std::source_location where) {
  return normal(next_key(where), shape, mean, scale, options, where);
}

Array randint(const Key& key, const Dims& shape, std::int64_t low, std::int64_t high,
              std::source_location where) {
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
  // The inverse of the distribution, on the part of it that lies within.
  const double root = std::sqrt(2.0);
  const double from = std::erf(low / root);
  const double to = std::erf(high / root);
  const Array u = uniform(key, shape, from, to, {.dtype = DType::F64}, where);
  // Halving until erf is found: 40 times is more than f32 needs.
  const Array none = zeros(shape, {.dtype = DType::F64}, where);
  const auto halve = [&](const Array&, const std::pair<Array, Array>& ends) {
    const Array m = (ends.first + ends.second) * 0.5;
    const Array below = erf(m, where) < u;
    return std::pair{ricci::where(below, m, ends.first, where),
                     ricci::where(below, ends.second, m, where)};
  };
  const auto [a, b] =
      fori_loop(0, 40, halve, std::pair{none + low / root, none + high / root}, {}, where);
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

Array rand(const Dims& shape, std::source_location where) {
  return uniform(shape, 0, 1, {}, where);
}
Array randn(const Dims& shape, std::source_location where) {
  return normal(shape, 0, 1, {}, where);
}

}  // namespace ricci
