// Maxima of windows of two by two that do not overlap: what nearly every network pools by. Part of
// vector_kernels_body.h.
#pragma once

#include "backend/cpu/kernels/vector_lanes.h"

namespace ricci::cpu::RICCI_VECTOR_TARGET {
namespace {

using Floats = Lanes<float>;
using Flags = Lanes<std::int32_t>;
constexpr int FloatCount = LaneCount<float>;

inline Floats pick(Flags which, Floats yes, Floats no) {
  return (Floats)(((Flags)yes & which) | ((Flags)no & ~which));
}
inline Floats where(Flags which, Floats x) { return (Floats)((Flags)x & which); }

template <int... I>
inline Floats evens(Floats a, Floats b, Numbers<I...>) {
  return __builtin_shufflevector(a, b, (2 * I)...);
}
template <int... I>
inline Floats odds(Floats a, Floats b, Numbers<I...>) {
  return __builtin_shufflevector(a, b, (2 * I + 1)...);
}
/// a0 b0 a1 b1 …, from lane `Start` on.
template <int Start, int... I>
inline Floats mixed(Floats a, Floats b, Numbers<I...>) {
  return __builtin_shufflevector(a, b, (Start + I / 2 + (I % 2) * FloatCount)...);
}

using EachLane = typename CountTo<FloatCount>::type;

/// The four numbers of as many windows as a vector has lanes, in the order they are compared in.
struct Windows {
  Floats at[4];
};
inline Windows windows(const float* upper, const float* lower) {
  const Floats a = load(upper);
  const Floats b = load(upper + FloatCount);
  const Floats c = load(lower);
  const Floats d = load(lower + FloatCount);
  return {{evens(a, b, EachLane{}), odds(a, b, EachLane{}), evens(c, d, EachLane{}),
           odds(c, d, EachLane{})}};
}

/// A NaN counts as larger than everything, the first one most.
inline Flags is_better(Floats here, Floats best) {
  return (here > best) | ((here != here) & (best == best));
}

/// What a maximum keeps when another number comes: itself if it is larger or a NaN.
inline Flags stays(Floats best, Floats here) { return (best > here) | (best != best); }

/// One row of windows from two rows of an image.
void max_of_pairs(const float* upper, const float* lower, std::int64_t count, float* y) {
  std::int64_t i = 0;
  for (; i + FloatCount <= count; i += FloatCount) {
    const Windows w = windows(upper + 2 * i, lower + 2 * i);
    Floats best = w.at[0];
    for (int k = 1; k < 4; ++k) best = pick(stays(best, w.at[k]), best, w.at[k]);
    store(y + i, best);
  }
  for (; i < count; ++i) {
    const float at[4] = {upper[2 * i], upper[2 * i + 1], lower[2 * i], lower[2 * i + 1]};
    float best = at[0];
    for (int k = 1; k < 4; ++k) best = best > at[k] || best != best ? best : at[k];
    y[i] = best;
  }
}

void gradient_of_pair(const float* upper, const float* lower, float dy, float* d_upper,
                      float* d_lower) {
  const float at[4] = {upper[0], upper[1], lower[0], lower[1]};
  int best = 0;
  for (int i = 1; i < 4; ++i) {
    if (at[i] > at[best] || (at[i] != at[i] && at[best] == at[best])) best = i;
  }
  const float given = 0.0F + dy;
  d_upper[0] = best == 0 ? given : 0.0F;
  d_upper[1] = best == 1 ? given : 0.0F;
  d_lower[0] = best == 2 ? given : 0.0F;
  d_lower[1] = best == 3 ? given : 0.0F;
}

/// Two rows of the image's gradient: dy at every window's first maximum, zero elsewhere.
void max_of_pairs_backward(const float* upper, const float* lower, const float* dy,
                           std::int64_t count, float* d_upper, float* d_lower) {
  std::int64_t i = 0;
  for (; i + FloatCount <= count; i += FloatCount) {
    const Windows w = windows(upper + 2 * i, lower + 2 * i);
    Floats best = w.at[0];
    Flags better[4];
    for (int k = 1; k < 4; ++k) {
      better[k] = is_better(w.at[k], best);
      best = pick(better[k], w.at[k], best);
    }
    Floats left = load(dy + i) + Floats{};  // a sum starts from zero
    Floats given[4];
    for (int k = 3; k > 0; --k) {
      given[k] = where(better[k], left);
      left = where(~better[k], left);
    }
    given[0] = left;
    store(d_upper + 2 * i, mixed<0>(given[0], given[1], EachLane{}));
    store(d_upper + 2 * i + FloatCount, mixed<FloatCount / 2>(given[0], given[1], EachLane{}));
    store(d_lower + 2 * i, mixed<0>(given[2], given[3], EachLane{}));
    store(d_lower + 2 * i + FloatCount, mixed<FloatCount / 2>(given[2], given[3], EachLane{}));
  }
  for (; i < count; ++i) {
    gradient_of_pair(upper + 2 * i, lower + 2 * i, dy[i], d_upper + 2 * i, d_lower + 2 * i);
  }
}

}  // namespace
}  // namespace ricci::cpu::RICCI_VECTOR_TARGET
