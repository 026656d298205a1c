// Steps of recurrences: see recurrence_kernels.h. Part of vector_kernels_body.h.
#pragma once

#include "backend/cpu/kernels/vector_lanes.h"
#include "backend/cpu/kernels/vector_scores.h"

namespace ricci::cpu::RICCI_VECTOR_TARGET {
namespace {

constexpr std::int64_t Columns = RecurrenceColumns;

// e^x = 2^n e^r with |r| ≤ ln 2 / 2, e^r by its series.
inline Lanes<double> exp_lanes(Lanes<double> x) {
  using Words = Lanes<std::int64_t>;
  constexpr double Magic = 0x1.8p52;  // adding it rounds to an integer
  const Lanes<double> shifted = x * 0x1.71547652b82fep0 + Magic;
  const Lanes<double> n = shifted - Magic;
  // ln 2 in two parts; n times the first is exact.
  const Lanes<double> r = (x - n * 0x1.62e42feep-1) - n * 0x1.a39ef35793c76p-33;
  constexpr double Series[] = {
      1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
      1.0 / 720,       1.0 / 120,      1.0 / 24,      1.0 / 6,      0.5};
  Lanes<double> p = r * (1.0 / 6227020800) + Series[0];
  for (int i = 1; i < 11; ++i) p = p * r + Series[i];
  const Lanes<double> e = (p * (r * r) + r) + 1.0;
  // 2^n in two factors, so that results below the normal range come out right.
  Words k;
  __builtin_memcpy(&k, &shifted, sizeof k);
  k = k - 0x4338000000000000;
  const Words half = k >> 1;
  const Words first = (half + 1023) << 52;
  const Words second = (k - half + 1023) << 52;
  Lanes<double> a;
  Lanes<double> b;
  __builtin_memcpy(&a, &first, sizeof a);
  __builtin_memcpy(&b, &second, sizeof b);
  Lanes<double> y = e * a * b;
  y = x > 709.782712893384 ? Lanes<double>{} + __builtin_inf() : y;
  return x < -745.2 ? Lanes<double>{} : y;
}

/// All lanes of a block.
template <class T>
struct Block {
  static constexpr int Count = static_cast<int>(Columns) / LaneCount<T>;
  Lanes<T> at[Count];
};

template <class T>
inline Block<T> load_block(const T* from) {
  Block<T> v;
  for (int i = 0; i < Block<T>::Count; ++i) v.at[i] = load(from + i * LaneCount<T>);
  return v;
}
/// The first `width`; zeros behind them.
template <class T>
inline Block<T> load_block(const T* from, std::int64_t width) {
  if (width == Columns) return load_block(from);
  T held[Columns] = {};
  for (std::int64_t i = 0; i < width; ++i) held[i] = from[i];
  return load_block<T>(held);
}
template <class T>
inline void store_block(T* to, const Block<T>& v) {
  for (int i = 0; i < Block<T>::Count; ++i) store(to + i * LaneCount<T>, v.at[i]);
}
/// Those of the first `width`; others add nothing to sums over lanes, whatever has come of their
/// zeros: a factor that all lanes share may be an infinity.
template <class T>
class LiveLanes {
 public:
  explicit LiveLanes(std::int64_t width) {
    for (int i = 0; i < Block<T>::Count; ++i) {
      for (int l = 0; l < LaneCount<T>; ++l) live_[i][l] = i * LaneCount<T> + l < width ? -1 : 0;
    }
  }
  inline Lanes<T> of(int i, Lanes<T> v) const { return live_[i] ? v : Lanes<T>{}; }

 private:
  decltype(Lanes<T>{} < Lanes<T>{}) live_[Block<T>::Count];
};
template <class T>
inline Lanes<T> folded(const Block<T>& v) {
  Lanes<T> sum = v.at[0];
  for (int i = 1; i < Block<T>::Count; ++i) sum += v.at[i];
  return sum;
}

template <class T, int... I>
inline Lanes<T> neighbour_sums(Lanes<T> a, Lanes<T> b, Numbers<I...>) {
  return __builtin_shufflevector(a, b, (2 * I)...) + __builtin_shufflevector(a, b, (2 * I + 1)...);
}

/// Sums over lanes, a vector of them at a time: sum i of what was given is added to to[i].
template <class T>
class LaneSums {
 public:
  explicit LaneSums(T* to) : to_(to) {}
  inline void give(Lanes<T> v) {
    held_[count_++] = v;
    if (count_ < Whole) return;
    store(to_, load(to_) + summed());
    to_ += Whole;
    count_ = 0;
  }
  inline void finish() {
    if (count_ == 0) return;
    for (int i = count_; i < Whole; ++i) held_[i] = Lanes<T>{};
    const Lanes<T> sums = summed();
    for (int i = 0; i < count_; ++i) to_[i] += sums[i];
  }

 private:
  static constexpr int Whole = LaneCount<T>;
  inline Lanes<T> summed() {
    for (int half = Whole / 2; half > 0; half /= 2) {
      for (int i = 0; i < half; ++i) {
        held_[i] =
            neighbour_sums<T>(held_[2 * i], held_[2 * i + 1], typename CountTo<Whole>::type{});
      }
    }
    return held_[0];
  }

  T* to_;
  int count_ = 0;
  Lanes<T> held_[Whole];
};

template <class T>
inline T lane_sum(Lanes<T> v) {
  T total = 0;
  LaneSums<T> sums(&total);
  sums.give(v);
  sums.finish();
  return total;
}

template <class T>
inline T exp_one(T x) {
  return exp_lanes(Lanes<T>{} + x)[0];
}

template <class T>
void scan_steps(const ScanSteps<T>& s) {
  constexpr int Count = Block<T>::Count;
  const std::int64_t size = s.states * Columns;
  for (std::int64_t t = 0; t < s.steps; ++t) {
    const Block<T> x = load_block(s.x + t * s.channels, s.width);
    const Block<T> delta = load_block(s.delta + t * s.channels, s.width);
    const T* b = s.b + t * s.states;
    const T* c = s.c + t * s.states;
    const T* before = s.h + t * s.h_step;
    T* after = s.h + (t + 1) * s.h_step;
    T* decays = s.decays == nullptr ? nullptr : s.decays + t * size;
    Block<T> added;
    Block<T> y{};
    for (int i = 0; i < Count; ++i) added.at[i] = delta.at[i] * x.at[i];
    for (std::int64_t m = 0; m < s.states; ++m) {
      for (int i = 0; i < Count; ++i) {
        const std::int64_t at = m * Columns + i * LaneCount<T>;
        const Lanes<T> decay = exp_lanes(delta.at[i] * load(s.a + at));
        const Lanes<T> h = decay * load(before + at) + added.at[i] * b[m];
        store(after + at, h);
        if (decays != nullptr) store(decays + at, decay);
        y.at[i] += h * c[m];
      }
    }
    if (s.y != nullptr) store_block(s.y + t * Columns, y);
  }
}

template <class T>
void scan_steps_back(const ScanSteps<T>& s) {
  constexpr int Count = Block<T>::Count;
  const std::int64_t size = s.states * Columns;
  const LiveLanes<T> live(s.width);
  for (std::int64_t t = s.steps; t-- > 0;) {
    const Block<T> x = load_block(s.x + t * s.channels, s.width);
    const Block<T> delta = load_block(s.delta + t * s.channels, s.width);
    const Block<T> dy = load_block(s.dy + t * s.channels, s.width);
    const T* b = s.b + t * s.states;
    const T* c = s.c + t * s.states;
    const T* before = s.h + t * s.h_step;
    const T* after = before + s.h_step;
    const T* decays = s.decays + t * size;
    LaneSums<T> db(s.db + t * s.states);
    LaneSums<T> dc(s.dc + t * s.states);
    Block<T> to_input{};  // Σ_m G B
    Block<T> to_decay{};  // Σ_m G (ā a H + B x)
    Block<T> added;
    for (int i = 0; i < Count; ++i) added.at[i] = delta.at[i] * x.at[i];
    for (std::int64_t m = 0; m < s.states; ++m) {
      Lanes<T> to_b{};
      Lanes<T> to_c{};
      for (int i = 0; i < Count; ++i) {
        const std::int64_t at = m * Columns + i * LaneCount<T>;
        const Lanes<T> decay = load(decays + at);
        const Lanes<T> g = dy.at[i] * c[m] + load(static_cast<const T*>(s.later) + at);
        const Lanes<T> left = decay * load(before + at);
        const Lanes<T> kept = g * left;
        to_b += live.of(i, g * added.at[i]);
        to_c += live.of(i, dy.at[i] * load(after + at));
        to_input.at[i] += g * b[m];
        to_decay.at[i] += g * (left * load(s.a + at) + x.at[i] * b[m]);
        store(s.da + at, load(static_cast<const T*>(s.da) + at) + kept * delta.at[i]);
        store(s.later + at, decay * g);
      }
      db.give(to_b);
      dc.give(to_c);
    }
    db.finish();
    dc.finish();
    for (int i = 0; i < Count; ++i) to_input.at[i] *= delta.at[i];
    store_block(s.dx + t * Columns, to_input);
    store_block(s.ddelta + t * Columns, to_decay);
  }
}

template <class T>
void delta_steps(const DeltaSteps<T>& s) {
  constexpr int Count = Block<T>::Count;
  for (std::int64_t t = 0; t < s.steps; ++t) {
    const T* q = s.q + t * s.key_step;
    const T* k = s.k + t * s.key_step;
    const T decay = exp_one(s.g[t * s.gate_step]);
    const T beta = s.beta[t * s.gate_step];
    const T* before = s.s + t * s.s_step;
    T* after = s.s + (t + 1) * s.s_step;
    Block<T> error = load_block(s.v + t * s.value_step, s.width);
    Block<T> recalled{};
    for (std::int64_t j = 0; j < s.keys; ++j) {
      const Block<T> row = load_block(before + j * Columns);
      for (int i = 0; i < Count; ++i) recalled.at[i] += row.at[i] * k[j];
    }
    for (int i = 0; i < Count; ++i) error.at[i] -= recalled.at[i] * decay;
    Block<T> out{};
    for (std::int64_t j = 0; j < s.keys; ++j) {
      Block<T> row = load_block(before + j * Columns);
      const T factor = beta * k[j];
      for (int i = 0; i < Count; ++i) {
        row.at[i] = row.at[i] * decay + error.at[i] * factor;
        out.at[i] += row.at[i] * q[j];
      }
      store_block(after + j * Columns, row);
    }
    if (s.errors != nullptr) store_block(s.errors + t * Columns, error);
    if (s.out == nullptr) continue;
    for (int i = 0; i < Count; ++i) out.at[i] *= s.kappa;
    store_block(s.out + t * Columns, out);
  }
}

// G = κ·q doᵀ + E_{t+1}; dq = κ·S do; δ = Gᵀk; dβ = ⟨δ, u⟩; dv = β·δ; dS̃ = G - k dvᵀ;
// dk = G d - S̃ dv; dg = ⟨dS̃, S̃⟩; E_t = e^g·dS̃, with S̃ = e^g·S_{t-1}
template <class T>
void delta_steps_back(const DeltaSteps<T>& s) {
  constexpr int Count = Block<T>::Count;
  const LiveLanes<T> live(s.width);
  for (std::int64_t t = s.steps; t-- > 0;) {
    const T* q = s.q + t * s.key_step;
    const T* k = s.k + t * s.key_step;
    const T decay = exp_one(s.g[t * s.gate_step]);
    const T beta = s.beta[t * s.gate_step];
    const T* before = s.s + t * s.s_step;
    const T* after = before + s.s_step;
    const Block<T> dout = load_block(s.dout + t * s.value_step, s.width);
    const Block<T> error = load_block(static_cast<const T*>(s.errors) + t * Columns);
    Block<T> toward{};
    LaneSums<T> dq(s.dq + t * s.keys);
    for (std::int64_t j = 0; j < s.keys; ++j) {
      const T scaled = s.kappa * q[j];
      Block<T> later = load_block(static_cast<const T*>(s.later) + j * Columns);
      const Block<T> row = load_block(after + j * Columns);
      Lanes<T> to_q{};
      for (int i = 0; i < Count; ++i) {
        later.at[i] += dout.at[i] * scaled;
        toward.at[i] += later.at[i] * k[j];
        to_q += live.of(i, row.at[i] * dout.at[i]);
      }
      store_block(s.later + j * Columns, later);
      dq.give(to_q * s.kappa);
    }
    dq.finish();
    Block<T> value;
    Lanes<T> to_beta{};
    for (int i = 0; i < Count; ++i) {
      value.at[i] = toward.at[i] * beta;
      to_beta += live.of(i, toward.at[i] * error.at[i]);
    }
    store_block(s.dv + t * Columns, value);
    Lanes<T> to_gate{};
    LaneSums<T> dk(s.dk + t * s.keys);
    for (std::int64_t j = 0; j < s.keys; ++j) {
      Block<T> later = load_block(static_cast<const T*>(s.later) + j * Columns);
      const Block<T> row = load_block(before + j * Columns);
      Lanes<T> to_error{};
      Lanes<T> to_row{};
      for (int i = 0; i < Count; ++i) {
        to_error += live.of(i, later.at[i] * error.at[i]);
        to_row += live.of(i, row.at[i] * value.at[i]);
        later.at[i] -= value.at[i] * k[j];
        to_gate += live.of(i, later.at[i] * row.at[i]);
        later.at[i] *= decay;
      }
      store_block(s.later + j * Columns, later);
      dk.give(to_error * beta - to_row * decay);
    }
    dk.finish();
    s.dg[t] += decay * lane_sum<T>(to_gate);
    s.dbeta[t] += lane_sum<T>(to_beta);
  }
}

}  // namespace
}  // namespace ricci::cpu::RICCI_VECTOR_TARGET
