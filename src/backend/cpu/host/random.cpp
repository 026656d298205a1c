// Random numbers, bit for bit those of the reference: words of a Philox stream, many at a time, and
// the same arithmetic in f64 behind them.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "backend/cpu/host/element.h"
#include "backend/cpu/host/kernels.h"
#include "backend/cpu/host/numbers.h"
#include "backend/cpu/host/parallel.h"
#include "backend/cpu/host/simd.h"
#include "backend/cpu/host/view.h"
#include "support/philox.h"

namespace ricci::cpu {
namespace {

constexpr std::int64_t DrawnAtOnce = 1024;

#if defined(__x86_64__)
// philox4x32 of 16 counters in a row, four to a vector: a word sits in the lower half of its lane,
// which is all that the widening multiplication reads.
[[gnu::target("avx2")]] void sixteen_blocks(PhiloxKey key, std::uint64_t first,
                                            std::uint32_t* out) {
  constexpr std::size_t Vectors = 4;
  __m256i c0[Vectors];  // NOLINT: std::array loses the alignment attribute
  __m256i c1[Vectors];  // NOLINT
  __m256i c2[Vectors];  // NOLINT
  __m256i c3[Vectors];  // NOLINT
  for (std::size_t v = 0; v < Vectors; ++v) {
    const std::uint64_t counter = first + 4 * v;
    const __m256i step = _mm256_add_epi64(_mm256_set1_epi64x(static_cast<long long>(counter)),
                                          _mm256_set_epi64x(3, 2, 1, 0));
    c0[v] = step;
    c1[v] = _mm256_srli_epi64(step, 32);
    c2[v] = _mm256_setzero_si256();
    c3[v] = _mm256_setzero_si256();
  }
  const __m256i m0 = _mm256_set1_epi64x(PhiloxMultipliers[0]);
  const __m256i m1 = _mm256_set1_epi64x(PhiloxMultipliers[1]);
  for (int round = 0; round < 10; ++round) {
    const __m256i k0 = _mm256_set1_epi64x(key[0]);
    const __m256i k1 = _mm256_set1_epi64x(key[1]);
    for (std::size_t v = 0; v < Vectors; ++v) {
      const __m256i p0 = _mm256_mul_epu32(c0[v], m0);
      const __m256i p1 = _mm256_mul_epu32(c2[v], m1);
      c0[v] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p1, 32), c1[v]), k0);
      c1[v] = p1;
      c2[v] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p0, 32), c3[v]), k1);
      c3[v] = p0;
    }
    key = {key[0] + PhiloxWeyl[0], key[1] + PhiloxWeyl[1]};
  }
  for (std::size_t v = 0; v < Vectors; ++v) {
    const __m256i low = _mm256_blend_epi32(c0[v], _mm256_slli_epi64(c1[v], 32), 0xAA);
    const __m256i high = _mm256_blend_epi32(c2[v], _mm256_slli_epi64(c3[v], 32), 0xAA);
    const __m256i even = _mm256_unpacklo_epi64(low, high);  // blocks 0 and 2
    const __m256i odd = _mm256_unpackhi_epi64(low, high);   // blocks 1 and 3
    auto* to = reinterpret_cast<__m256i*>(out + 16 * v);
    _mm256_storeu_si256(to, _mm256_permute2x128_si256(even, odd, 0x20));
    _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(even, odd, 0x31));
  }
}
#endif

// Words [4·first, 4·(first + blocks)) of a stream, and some more: `out` has room for a multiple of
// 64.
void stream_words(PhiloxKey key, std::uint64_t first, std::int64_t blocks, std::uint32_t* out) {
#if defined(__x86_64__)
  if (has_avx2()) {
    for (std::int64_t at = 0; at < blocks; at += 16) {
      sixteen_blocks(key, first + static_cast<std::uint64_t>(at), out + 4 * at);
    }
    return;
  }
#endif
  for (std::int64_t at = 0; at < blocks; ++at) {
    const std::uint64_t step = first + static_cast<std::uint64_t>(at);
    const PhiloxBlock block = philox4x32(
        {static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(step >> 32), 0, 0}, key);
    std::copy(block.begin(), block.end(), out + 4 * at);
  }
}

PhiloxStream stream_of(const HostArguments& c) {
  const auto& random = c.as<loop::Random>();
  return {c.seed, stream_key(c, random.key, random.key_operand)};
}

// Calls `f(first element, count, words)` for pieces of the result that take `per_element` words
// each.
template <class F>
void for_each_piece(const HostArguments& c, const PhiloxStream& stream, std::int64_t per_element,
                    const F& f) {
  parallel_for(c.pool, count_of(c.results[0].dims), DrawnAtOnce,
               [&](std::int64_t begin, std::int64_t end) {
                 std::array<std::uint32_t, 4 * DrawnAtOnce> words;
                 const std::int64_t blocks = ((end - begin) * per_element + 3) / 4;
                 const auto first = static_cast<std::uint64_t>(begin * per_element / 4);
                 stream_words(stream.key(), first, blocks, words.data());
                 f(begin, end - begin, words.data());
               });
}

// Numbers in [0, 1) as PhiloxStream makes them.
template <bool Is64>
RICCI_INLINE inline double uniform(const std::uint32_t* words, std::int64_t i) {
  if constexpr (Is64) {
    const std::uint64_t both = (std::uint64_t{words[2 * i]} << 32) | words[2 * i + 1];
    return static_cast<double>(both >> 11) * 0x1p-53;
  } else {
    return static_cast<double>(words[i] >> 8) * 0x1p-24;
  }
}

// f16 and bf16 are the f32 draw, rounded.
template <class T>
T rounded(double v) {
  if constexpr (std::is_same_v<T, double>) {
    return v;
  } else {
    return element_cast<T>(static_cast<float>(v));
  }
}

void run_uniform(const HostArguments& c) {
  const double low = c.as<loop::Random>().offset;
  const double width = c.as<loop::Random>().factor;
  with_float_type(c.results[0].dtype, [&]<class T>() {
    constexpr bool Is64 = std::is_same_v<T, double>;
    for_each_piece(c, stream_of(c), Is64 ? 2 : 1,
                   [&](std::int64_t begin, std::int64_t count, const std::uint32_t* words) {
                     T* out = c.results[0].as<T>() + begin;
                     vectorised([&]() RICCI_INLINE {
                       for (std::int64_t i = 0; i < count; ++i) {
                         out[i] = rounded<T>(low + uniform<Is64>(words, i) * width);
                       }
                     });
                   });
  });
}

void run_normal(const HostArguments& c) {
  const double mean = c.as<loop::Random>().offset;
  const double scale = c.as<loop::Random>().factor;
  with_float_type(c.results[0].dtype, [&]<class T>() {
    constexpr bool Is64 = std::is_same_v<T, double>;
    // ln 0 is not a number one can draw.
    constexpr double Least = Is64 ? std::numeric_limits<double>::min()
                                  : static_cast<double>(std::numeric_limits<float>::min());
    for_each_piece(c, stream_of(c), Is64 ? 4 : 2,
                   [&](std::int64_t begin, std::int64_t count, const std::uint32_t* words) {
                     T* out = c.results[0].as<T>() + begin;
                     for (std::int64_t i = 0; i < count; ++i) {
                       const double u1 = std::max(uniform<Is64>(words, 2 * i), Least);
                       const double u2 = uniform<Is64>(words, 2 * i + 1);
                       out[i] = rounded<T>(mean + scale * std::sqrt(-2 * std::log(u1)) *
                                                      std::cos(2 * std::numbers::pi * u2));
                     }
                   });
  });
}

void run_bits(const HostArguments& c) {
  for_each_piece(c, stream_of(c), 1,
                 [&](std::int64_t begin, std::int64_t count, const std::uint32_t* words) {
                   std::copy_n(words, count, c.results[0].as<std::uint32_t>() + begin);
                 });
}

}  // namespace

HostKernel random_normal_kernel() noexcept { return {run_normal}; }
HostKernel random_uniform_kernel() noexcept { return {run_uniform}; }
HostKernel random_words_kernel() noexcept { return {run_bits}; }

}  // namespace ricci::cpu
