// Included twice by vector_packed_int8.h, with RICCI_INT8_NAME, RICCI_INT8_TARGET (an attribute)
// and RICCI_INT8_DOT (sums of four products of u8 and i8) defined.

RICCI_INT8_TARGET inline __m256 RICCI_INT8_NAME(products)(__m256i codes, const std::int8_t* x) {
  return _mm256_cvtepi32_ps(RICCI_INT8_DOT(codes, load_32(x)));
}

RICCI_INT8_TARGET float RICCI_INT8_NAME(int8_dot_q4_0)(const std::uint8_t* block,
                                                       std::int64_t count, const Int8Row& x) {
  __m256 total = _mm256_setzero_ps();
  float offset = 0;
  for (std::int64_t b = 0; b < count; ++b, block += 18) {
    const float d = f16_value(block);
    const __m128i both = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + 2));
    const __m256i codes =
        _mm256_and_si256(_mm256_set_m128i(_mm_srli_epi16(both, 4), both), _mm256_set1_epi8(15));
    total = _mm256_fmadd_ps(RICCI_INT8_NAME(products)(codes, x.codes + 32 * b),
                            _mm256_set1_ps(d * x.scales[b]), total);
    offset += d * x.sums_of_32[b];
  }
  return sum_of(total) - 8 * offset;
}

RICCI_INT8_TARGET float RICCI_INT8_NAME(int8_dot_q8_0)(const std::uint8_t* block,
                                                       std::int64_t count, const Int8Row& x) {
  __m256 total = _mm256_setzero_ps();
  for (std::int64_t b = 0; b < count; ++b, block += 34) {
    const __m256i w = load_32(block + 2);
    const __m256i signed_x = _mm256_sign_epi8(load_32(x.codes + 32 * b), w);
    const __m256i sums = RICCI_INT8_DOT(_mm256_abs_epi8(w), signed_x);
    total = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums),
                            _mm256_set1_ps(f16_value(block) * x.scales[b]), total);
  }
  return sum_of(total);
}

// Shared by q4_k and q5_k: `High` says that there is a fifth bit, and that codes lie further back.
template <bool High>
RICCI_INT8_TARGET float RICCI_INT8_NAME(int8_dot_affine)(const std::uint8_t* block,
                                                         std::int64_t count, const Int8Row& x) {
  constexpr int Bytes = High ? 176 : 144;
  const __m256i fifteen = _mm256_set1_epi8(15);
  __m256 total = _mm256_setzero_ps();
  __m256 offsets = _mm256_setzero_ps();
  for (std::int64_t b = 0; b < count; ++b, block += Bytes) {
    std::uint8_t scales[8];
    std::uint8_t leasts[8];
    six_bit_parts(block + 4, scales, leasts);
    const __m256 units =
        _mm256_mul_ps(_mm256_set1_ps(f16_value(block)), _mm256_loadu_ps(x.scales + 8 * b));
    alignas(32) float unit[8];
    _mm256_store_ps(unit, _mm256_mul_ps(unsigned_numbers(scales), units));
    const __m256 least =
        _mm256_mul_ps(unsigned_numbers(leasts), _mm256_set1_ps(f16_value(block + 2)));
    offsets = _mm256_fmadd_ps(least, _mm256_loadu_ps(x.sums_of_32 + 8 * b), offsets);
    const __m256i high = High ? load_32(block + 16) : _mm256_setzero_si256();
    const std::uint8_t* codes = block + (High ? 48 : 16);
    const std::int8_t* at = x.codes + 256 * b;
#pragma GCC unroll 4
    for (int p = 0; p < 4; ++p) {
      const __m256i both = load_32(codes + 32 * p);
      __m256i low = _mm256_and_si256(both, fifteen);
      __m256i top = _mm256_and_si256(_mm256_srli_epi16(both, 4), fifteen);
      if constexpr (High) {
        // Bit 2p becomes 16, and bit 2p + 1.
        const __m256i bit = _mm256_set1_epi8(16);
        const __m256i first = _mm256_slli_epi16(_mm256_srli_epi16(high, 2 * p), 4);
        const __m256i second = _mm256_slli_epi16(_mm256_srli_epi16(high, 2 * p + 1), 4);
        low = _mm256_or_si256(low, _mm256_and_si256(first, bit));
        top = _mm256_or_si256(top, _mm256_and_si256(second, bit));
      }
      total = _mm256_fmadd_ps(RICCI_INT8_NAME(products)(low, at + 64 * p),
                              _mm256_set1_ps(unit[2 * p]), total);
      total = _mm256_fmadd_ps(RICCI_INT8_NAME(products)(top, at + 64 * p + 32),
                              _mm256_set1_ps(unit[2 * p + 1]), total);
    }
  }
  return sum_of(_mm256_sub_ps(total, offsets));
}

RICCI_INT8_TARGET float RICCI_INT8_NAME(int8_dot_q4_k)(const std::uint8_t* block,
                                                       std::int64_t count, const Int8Row& x) {
  return RICCI_INT8_NAME(int8_dot_affine)<false>(block, count, x);
}
RICCI_INT8_TARGET float RICCI_INT8_NAME(int8_dot_q5_k)(const std::uint8_t* block,
                                                       std::int64_t count, const Int8Row& x) {
  return RICCI_INT8_NAME(int8_dot_affine)<true>(block, count, x);
}

RICCI_INT8_TARGET float RICCI_INT8_NAME(int8_dot_q6_k)(const std::uint8_t* block,
                                                       std::int64_t count, const Int8Row& x) {
  const __m256i fifteen = _mm256_set1_epi8(15);
  const __m256i upper = _mm256_set1_epi8(48);
  __m256 total = _mm256_setzero_ps();
  __m256 offsets = _mm256_setzero_ps();
  for (std::int64_t b = 0; b < count; ++b, block += 210) {
    const __m256 d = _mm256_set1_ps(f16_value(block + 208));
    for (int half = 0; half < 2; ++half) {
      const std::uint8_t* low = block + 64 * half;
      const __m256i first = load_32(low);
      const __m256i second = load_32(low + 32);
      const __m256i high = load_32(block + 128 + 32 * half);
      const __m256i codes[4] = {
          _mm256_or_si256(_mm256_and_si256(first, fifteen),
                          _mm256_and_si256(_mm256_slli_epi16(high, 4), upper)),
          _mm256_or_si256(_mm256_and_si256(second, fifteen),
                          _mm256_and_si256(_mm256_slli_epi16(high, 2), upper)),
          _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(first, 4), fifteen),
                          _mm256_and_si256(high, upper)),
          _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(second, 4), fifteen),
                          _mm256_and_si256(_mm256_srli_epi16(high, 2), upper))};
      const __m256 scales = _mm256_mul_ps(signed_numbers(block + 192 + 8 * half), d);
      offsets = _mm256_fmadd_ps(scales, _mm256_loadu_ps(x.sums_of_16 + 16 * b + 8 * half), offsets);
      alignas(32) float scale[8];
      _mm256_store_ps(scale, scales);
      const std::int8_t* at = x.codes + 256 * b + 128 * half;
      const float* units = x.scales + 8 * b + 4 * half;
#pragma GCC unroll 4
      for (int g = 0; g < 4; ++g) {
        // Four lanes are sums of the first sixteen, four of the others.
        const __m256 both = _mm256_set_m128(_mm_set1_ps(scale[2 * g + 1] * units[g]),
                                            _mm_set1_ps(scale[2 * g] * units[g]));
        total = _mm256_fmadd_ps(RICCI_INT8_NAME(products)(codes[g], at + 32 * g), both, total);
      }
    }
  }
  return sum_of(_mm256_fnmadd_ps(_mm256_set1_ps(32), offsets, total));
}
