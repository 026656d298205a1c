// Softmax over blocks of attention scores, and the exponential it needs. Part of
// vector_kernels_body.h.
#pragma once

namespace ricci::cpu::RICCI_VECTOR_TARGET {
namespace {

using Floats = Lanes<float>;
using Ints = Lanes<std::int32_t>;

constexpr std::int64_t Queries = ScoreKernels::Queries;
constexpr float Infinity = __builtin_inff();

// e^x = 2^n e^r with |r| ≤ ln 2 / 2; e^r = 1 + r + r²·p(r), p by interpolation at Chebyshev points.
inline Floats exp_lanes(Floats x) {
  constexpr float Magic = 12582912.0F;  // 1.5·2^23: adding it rounds to an integer
  const Floats shifted = x * 1.44269504F + Magic;
  const Floats n = shifted - Magic;
  // ln 2 in two parts; n times the first is exact.
  const Floats r = (x - n * 0.693359375F) - n * -2.12194440e-4F;
  Floats p = r * 1.3926184e-3F + 8.3631789e-3F;
  p = p * r + 4.16665561e-2F;
  p = p * r + 1.66665763e-1F;
  p = p * r + 0.5F;
  const Floats e = (p * (r * r) + r) + 1.0F;
  // 2^n in two factors, so that results below the normal range come out right.
  Ints k;
  __builtin_memcpy(&k, &shifted, sizeof k);
  k = k - 0x4B400000;
  const Ints half = k >> 1;
  const Ints first = (half + 127) << 23;
  const Ints second = (k - half + 127) << 23;
  Floats a;
  Floats b;
  __builtin_memcpy(&a, &first, sizeof a);
  __builtin_memcpy(&b, &second, sizeof b);
  Floats y = e * a * b;
  y = x > 88.7228394F ? Floats{} + Infinity : y;
  return x < -103.972084F ? Floats{} : y;
}

void exp_all(const float* x, float* y, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + LaneCount<float> <= count; i += LaneCount<float>) store(y + i, exp_lanes(load(x + i)));
  if (const int last = static_cast<int>(count - i); last > 0) {
    store_some(y + i, exp_lanes(load_some(x + i, last)), last);
  }
}

void take_scores(float* s, std::int64_t keys, float* maximum, float* total, float* correction) {
  for (std::int64_t q = 0; q < Queries; q += LaneCount<float>) {
    const Floats before = load(maximum + q);
    Floats largest = before;
    for (std::int64_t j = 0; j < keys; ++j) {
      const Floats here = load(s + j * Queries + q);
      largest = here > largest ? here : largest;
    }
    // While there is nothing but -inf, shift by 0: the exponentials are 0 then.
    const Floats shift = largest == -Infinity ? Floats{} : largest;
    const Floats factor = exp_lanes(before - shift);
    Floats sum = load(total + q) * factor;
    for (std::int64_t j = 0; j < keys; ++j) {
      const Floats e = exp_lanes(load(s + j * Queries + q) - shift);
      store(s + j * Queries + q, e);
      sum += e;
    }
    store(maximum + q, largest);
    store(total + q, sum);
    store(correction + q, factor);
  }
}

void exp_shifted(float* s, std::int64_t keys, const float* shift) {
  for (std::int64_t j = 0; j < keys; ++j) {
    for (std::int64_t q = 0; q < Queries; q += LaneCount<float>) {
      float* at = s + j * Queries + q;
      store(at, exp_lanes(load(at) - load(shift + q)));
    }
  }
}

void cap_scores(float* s, std::int64_t keys, float cap, float* slope) {
  for (std::int64_t i = 0; i < keys * Queries; i += LaneCount<float>) {
    const Floats x = load(s + i) / cap;
    const Floats size = x < 0.0F ? -x : x;
    const Floats e = exp_lanes(size * -2.0F);
    Floats t = (1.0F - e) / (1.0F + e);
    t = x < 0.0F ? -t : t;
    // Near 0 the difference above has no digits left, and a large cap needs them: the series.
    const Floats z = x * x;
    const Floats near =
        x + x * z * (-1.0F / 3 + z * (2.0F / 15 + z * (-17.0F / 315 + z * (62.0F / 2835))));
    t = size < 0.25F ? near : t;
    store(s + i, t * cap);
    if (slope != nullptr) store(slope + i, 1.0F - t * t);
  }
}

void add_products(const float* p, const float* dp, std::int64_t keys, float* total) {
  for (std::int64_t q = 0; q < Queries; q += LaneCount<float>) {
    Floats sum = load(total + q);
    for (std::int64_t j = 0; j < keys; ++j) {
      const Floats here = load(p + j * Queries + q);
      const Floats product = here * load(dp + j * Queries + q);
      sum += here == 0.0F ? Floats{} : product;
    }
    store(total + q, sum);
  }
}

void score_gradient(const float* p, float* dp, std::int64_t keys, const float* mean, float scale,
                    const float* slope) {
  for (std::int64_t j = 0; j < keys; ++j) {
    for (std::int64_t q = 0; q < Queries; q += LaneCount<float>) {
      const std::int64_t at = j * Queries + q;
      const Floats here = load(p + at);
      Floats d = here * (load(dp + at) - load(mean + q)) * scale;
      if (slope != nullptr) d = d * load(slope + at);
      store(dp + at, here == 0.0F ? Floats{} : d);
    }
  }
}

}  // namespace
}  // namespace ricci::cpu::RICCI_VECTOR_TARGET
