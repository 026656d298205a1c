// Weights in few bits to floats: blocks as ricci/quant/format.h has them, read as vectors. Part of
// vector_kernels_body.h.
#pragma once

#include "backend/cpu/kernels/vector_kernels.h"
#include "backend/cpu/kernels/vector_narrow.h"

namespace ricci::cpu::RICCI_VECTOR_TARGET {
namespace {

inline float half_at(const std::uint8_t* from) {
  std::uint16_t bits;
  __builtin_memcpy(&bits, from, sizeof bits);
  float f;
  widen_f16(&bits, &f, 1);
  return f;
}

// to[i] = scale·(code & 15) - least, then the same of the high halves.
inline void write_nibbles(const std::uint8_t* codes, int count, float low_scale, float low_least,
                          float high_scale, float high_least, float* low, float* high) {
  for (int i = 0; i < count; ++i) {
    low[i] = low_scale * static_cast<float>(codes[i] & 15) - low_least;
  }
  for (int i = 0; i < count; ++i) {
    high[i] = high_scale * static_cast<float>(codes[i] >> 4) - high_least;
  }
}

#if RICCI_VECTOR_BYTES == 64

inline __m512i wide_bytes(const std::uint8_t* from) {
  return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
inline __m512 count_from(float first) {
  return _mm512_add_ps(_mm512_set1_ps(first),
                       _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
}

inline float half_value(const std::uint8_t* from) {
  std::uint16_t bits;
  __builtin_memcpy(&bits, from, sizeof bits);
  return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(bits)));
}

// Sixteen codes of q6_k from each quarter of 32 in one half of a block, without their -32.
struct SixBits {
  __m512i q[4];
};
inline SixBits six_bits(const std::uint8_t* block, int half, int part) {
  const __m512i fifteen = _mm512_set1_epi32(15);
  const __m512i upper = _mm512_set1_epi32(48);
  const __m512i first = wide_bytes(block + 64 * half + 16 * part);
  const __m512i second = wide_bytes(block + 64 * half + 32 + 16 * part);
  const __m512i high = wide_bytes(block + 128 + 32 * half + 16 * part);
  return {{_mm512_or_si512(_mm512_and_si512(first, fifteen),
                           _mm512_and_si512(_mm512_slli_epi32(high, 4), upper)),
           _mm512_or_si512(_mm512_and_si512(second, fifteen),
                           _mm512_and_si512(_mm512_slli_epi32(high, 2), upper)),
           _mm512_or_si512(_mm512_srli_epi32(first, 4), _mm512_and_si512(high, upper)),
           _mm512_or_si512(_mm512_srli_epi32(second, 4),
                           _mm512_and_si512(_mm512_srli_epi32(high, 2), upper))}};
}

void decode_q4_0(const std::uint8_t* block, std::int64_t count, float* to) {
  const __m512 table = count_from(-8);
  for (std::int64_t b = 0; b < count; ++b, block += 18, to += 32) {
    const __m512 d = _mm512_set1_ps(half_value(block));
    const __m512i both = wide_bytes(block + 2);
    _mm512_storeu_ps(to, _mm512_mul_ps(_mm512_permutexvar_ps(both, table), d));
    const __m512i high = _mm512_srli_epi32(both, 4);
    _mm512_storeu_ps(to + 16, _mm512_mul_ps(_mm512_permutexvar_ps(high, table), d));
  }
}

void decode_q6_k(const std::uint8_t* block, std::int64_t count, float* to) {
  const __m512i middle = _mm512_set1_epi32(32);
  for (std::int64_t b = 0; b < count; ++b, block += 210, to += 256) {
    const float d = half_value(block + 208);
    for (int i = 0; i < 4; ++i) {
      const int half = i / 2;
      const int part = i % 2;
      const SixBits codes = six_bits(block, half, part);
#pragma GCC unroll 4
      for (int g = 0; g < 4; ++g) {
        const auto scale = static_cast<std::int8_t>(block[192 + 8 * half + 2 * g + part]);
        const __m512 numbers = _mm512_cvtepi32_ps(_mm512_sub_epi32(codes.q[g], middle));
        _mm512_storeu_ps(to + 128 * half + 32 * g + 16 * part,
                         _mm512_mul_ps(numbers, _mm512_set1_ps(d * static_cast<float>(scale))));
      }
    }
  }
}

// Eight numbers of 6 bits, as floats.
inline __m256 six_bit_floats(std::uint32_t first, std::uint32_t last) {
  const auto bytes = static_cast<long long>(first | static_cast<std::uint64_t>(last) << 32);
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(bytes)));
}

void decode_q4_k(const std::uint8_t* block, std::int64_t count, float* to) {
  constexpr std::uint32_t Six = 0x3f3f3f3f;
  constexpr std::uint32_t Four = 0x0f0f0f0f;
  constexpr std::uint32_t Two = 0x03030303;
  const __m512i fifteen = _mm512_set1_epi32(15);
  for (std::int64_t b = 0; b < count; ++b, block += 144, to += 256) {
    std::uint32_t s[3];
    __builtin_memcpy(s, block + 4, sizeof s);
    const __m256 d = _mm256_set1_ps(half_value(block));
    const __m256 dmin = _mm256_set1_ps(half_value(block + 2));
    float scale[8];
    float least[8];
    _mm256_storeu_ps(scale,
                     d * six_bit_floats(s[0] & Six, (s[2] & Four) | ((s[0] >> 6) & Two) << 4));
    _mm256_storeu_ps(
        least, dmin * six_bit_floats(s[1] & Six, ((s[2] >> 4) & Four) | ((s[1] >> 6) & Two) << 4));
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {  // 16 bytes: numbers of two groups of 32
      const int group = i / 2 * 2;
      const __m512i both = wide_bytes(block + 16 + 16 * i);
      const auto number = [&](__m512i code, int g) {
        return _mm512_sub_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(code), _mm512_set1_ps(scale[g])),
                             _mm512_set1_ps(least[g]));
      };
      float* at = to + 32 * group + 16 * (i % 2);
      _mm512_storeu_ps(at, number(_mm512_and_si512(both, fifteen), group));
      _mm512_storeu_ps(at + 32, number(_mm512_srli_epi32(both, 4), group + 1));
    }
  }
}

inline __m512 signed_bytes(const std::int8_t* from) {
  return _mm512_cvtepi32_ps(
      _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
}

#else

inline void write_sub_blocks(const std::uint8_t* block, float* to);
void decode_q4_k(const std::uint8_t* block, std::int64_t count, float* to) {
  for (std::int64_t b = 0; b < count; ++b, block += 144, to += 256) write_sub_blocks(block, to);
}

void decode_q4_0(const std::uint8_t* block, std::int64_t count, float* to) {
  for (std::int64_t b = 0; b < count; ++b, block += 18, to += 32) {
    const float d = half_at(block);
    write_nibbles(block + 2, 16, d, 8 * d, d, 8 * d, to, to + 16);
  }
}

void decode_q6_k(const std::uint8_t* block, std::int64_t count, float* to) {
  for (std::int64_t b = 0; b < count; ++b, block += 210, to += 256) {
    const float d = half_at(block + 208);
    for (int q = 0; q < 8; ++q) {  // quarters of halves, 32 numbers each
      const int half = q / 4;
      const int quarter = q % 4;
      const std::uint8_t* low = block + 64 * half + 32 * (quarter % 2);
      const std::uint8_t* high = block + 128 + 32 * half;
      const int low_shift = quarter / 2 * 4;
      const int high_shift = quarter * 2;
      for (int part = 0; part < 2; ++part) {
        const int at = 8 * half + 2 * quarter + part;
        const float scale = d * static_cast<float>(static_cast<std::int8_t>(block[192 + at]));
        for (int i = 16 * part; i < 16 * part + 16; ++i) {
          const int code =
              (((low[i] >> low_shift) & 15) | (((high[i] >> high_shift) & 3) << 4)) - 32;
          to[32 * q + i] = scale * static_cast<float>(code);
        }
      }
    }
  }
}

#endif

void decode_q8_0(const std::uint8_t* block, std::int64_t count, float* to) {
  for (std::int64_t b = 0; b < count; ++b, block += 34, to += 32) {
    const float d = half_at(block);
    for (int i = 0; i < 32; ++i) {
      to[i] = d * static_cast<float>(static_cast<std::int8_t>(block[2 + i]));
    }
  }
}

// The eight scales and offsets of 6 bits in a block of q4_k or q5_k, times those of the block.
struct SubScales {
  float scale[8];
  float least[8];
};
inline SubScales sub_scales(const std::uint8_t* block) {
  const float d = half_at(block);
  const float dmin = half_at(block + 2);
  const std::uint8_t* s = block + 4;
  SubScales out;
  for (int j = 0; j < 8; ++j) {
    const int scale = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | ((s[j - 4] >> 6) << 4);
    const int least = j < 4 ? s[j + 4] & 63 : (s[j + 4] >> 4) | ((s[j] >> 6) << 4);
    out.scale[j] = d * static_cast<float>(scale);
    out.least[j] = dmin * static_cast<float>(least);
  }
  return out;
}

#if RICCI_VECTOR_BYTES != 64
inline void write_sub_blocks(const std::uint8_t* block, float* to) {
  const SubScales s = sub_scales(block);
  for (int p = 0; p < 4; ++p) {
    write_nibbles(block + 16 + 32 * p, 32, s.scale[2 * p], s.least[2 * p], s.scale[2 * p + 1],
                  s.least[2 * p + 1], to + 64 * p, to + 64 * p + 32);
  }
}
#endif

void decode_q5_k(const std::uint8_t* block, std::int64_t count, float* to) {
  for (std::int64_t b = 0; b < count; ++b, block += 176, to += 256) {
    const SubScales s = sub_scales(block);
    const std::uint8_t* high = block + 16;
    for (int j = 0; j < 8; ++j) {
      const std::uint8_t* codes = block + 48 + 32 * (j / 2);
      const int shift = j % 2 * 4;
      for (int i = 0; i < 32; ++i) {
        const int code = ((codes[i] >> shift) & 15) | (((high[i] >> j) & 1) << 4);
        to[32 * j + i] = s.scale[j] * static_cast<float>(code) - s.least[j];
      }
    }
  }
}

void decode_int8(const std::int8_t* codes, const float* scales, const float* zeros,
                 std::int64_t count, float* to) {
  if (zeros == nullptr) {
    std::int64_t j = 0;
#if RICCI_VECTOR_BYTES == 64
    for (; j + 16 <= count; j += 16) {
      _mm512_storeu_ps(to + j, _mm512_mul_ps(signed_bytes(codes + j), _mm512_loadu_ps(scales + j)));
    }
#endif
    for (; j < count; ++j) to[j] = static_cast<float>(codes[j]) * scales[j];
    return;
  }
  for (std::int64_t j = 0; j < count; ++j) {
    to[j] = (static_cast<float>(codes[j]) - zeros[j]) * scales[j];
  }
}

void decode_int4(const std::uint8_t* codes, const float* scales, const float* zeros,
                 std::int64_t count, float* to) {
  constexpr int Pairs = 128;
  std::uint16_t apart[Pairs];
  std::uint8_t bytes[2 * Pairs];
  for (std::int64_t j = 0; j < count; j += 2 * Pairs, codes += Pairs) {
    const std::int64_t left = count - j < 2 * Pairs ? count - j : 2 * Pairs;
    for (std::int64_t i = 0; i < (left + 1) / 2; ++i) {
      apart[i] = static_cast<std::uint16_t>((codes[i] | (codes[i] << 4)) & 0x0F0F);
    }
    __builtin_memcpy(bytes, apart, sizeof bytes);
    for (std::int64_t i = 0; i < left; ++i) to[j + i] = static_cast<float>(bytes[i]);
  }
  if (zeros != nullptr) {
    for (std::int64_t j = 0; j < count; ++j) to[j] -= zeros[j];
  }
  for (std::int64_t j = 0; j < count; ++j) to[j] *= scales[j];
}

// FP8 by way of f16, whose exponent has room for both.
template <bool E5>
void decode_fp8(const std::uint8_t* codes, const float* scales, std::int64_t count, float* to) {
  constexpr int Room = 256;
  std::uint16_t half[Room];
  for (std::int64_t j = 0; j < count; j += Room, codes += Room) {
    const std::int64_t left = count - j < Room ? count - j : Room;
    for (std::int64_t i = 0; i < left; ++i) {
      const unsigned code = codes[i];
      const unsigned size = code & 0x7FU;
      // e4m3 has no infinity, and one NaN: all bits.
      const unsigned e4 = size == 0x7FU ? 0x7E00U : size << 7;
      half[i] = static_cast<std::uint16_t>(E5 ? code << 8 : (code & 0x80U) << 8 | e4);
    }
    widen_f16(half, to + j, left);
  }
  const float unit = E5 ? 1.0F : 256.0F;
  if (scales == nullptr) {
    for (std::int64_t j = 0; j < count; ++j) to[j] *= unit;
    return;
  }
  for (std::int64_t j = 0; j < count; ++j) to[j] = to[j] * unit * scales[j];
}

void decode_e4m3(const std::uint8_t* codes, const float* scales, std::int64_t count, float* to) {
  decode_fp8<false>(codes, scales, count, to);
}
void decode_e5m2(const std::uint8_t* codes, const float* scales, std::int64_t count, float* to) {
  decode_fp8<true>(codes, scales, count, to);
}

}  // namespace
}  // namespace ricci::cpu::RICCI_VECTOR_TARGET
