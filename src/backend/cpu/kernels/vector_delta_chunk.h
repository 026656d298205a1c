// Chunks of the gated delta rule as products of matrices: see recurrence_kernels.h. Part of
// vector_kernels_body.h.
//
// Within a chunk, with S the state before it, a_t the decay from there to step t and Λ_ts that from
// step s to step t: u_t = v_t - a_t Sᵀk_t - Σ_{s<t} Λ_ts (k_t·k_s) β_s u_s, a triangular system
// for all u at once (the UT transform, applied rather than written down), and outputs and the next
// state are products with D = β u.
#pragma once

#include "backend/cpu/kernels/vector_panels.h"
#include "backend/cpu/kernels/vector_recurrence.h"

namespace ricci::cpu::RICCI_VECTOR_TARGET {
namespace {

constexpr std::int64_t ChunkSteps = DeltaChunkSteps;
constexpr std::int64_t ChunkColumns = DeltaChunkColumns;

// to [columns, rows] = from [rows, columns], transposed.
template <class T>
void turn(const T* from, std::int64_t from_row, std::int64_t rows, std::int64_t columns, T* to,
          std::int64_t to_row) {
  constexpr int N = LaneCount<T>;
  const std::int64_t whole_rows = rows / N * N;
  const std::int64_t whole_columns = columns / N * N;
  for (std::int64_t r = 0; r < whole_rows; r += N) {
    for (std::int64_t j = 0; j < whole_columns; j += N) {
      Lanes<T> square[N];
#pragma GCC unroll 16
      for (int i = 0; i < N; ++i) square[i] = load(from + (r + i) * from_row + j);
      transpose<N / 2, T>(square);
#pragma GCC unroll 16
      for (int i = 0; i < N; ++i) store(to + (j + i) * to_row + r, square[i]);
    }
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t j = r < whole_rows ? whole_columns : 0; j < columns; ++j) {
      to[j * to_row + r] = from[r * from_row + j];
    }
  }
}

// What both directions of a chunk share. Rooms are [steps][ChunkColumns] or [steps][ChunkSteps];
// columns behind the chunk's last one hold zeros as far as whole vectors of any width reach.
template <class T>
class Chunk {
 public:
  explicit Chunk(const DeltaChunk<T>& call)
      : c(call), steps(call.steps), columns((call.width + 15) / 16 * 16), room_(call.room) {
    decay = take(ChunkSteps * ChunkSteps);
    start = take(ChunkSteps);
    recall = take(ChunkSteps * ChunkSteps);
    scores = take(ChunkSteps * ChunkSteps);
    keys_turned = take(c.keys * ChunkSteps);
    recalled = take(ChunkSteps * ChunkColumns);
    errors = take(ChunkSteps * ChunkColumns);
    writes = take(ChunkSteps * ChunkColumns);
  }

  T* take(std::int64_t count) {
    T* const at = room_;
    room_ += (count + 15) / 16 * 16;
    return at;
  }

  // Sums of gates run from row to row: differences of running totals would lose what one large
  // gate hides, and make NaN of two infinities.
  void find_decays() {
    alignas(64) T sums[ChunkSteps] = {};
    T whole = 0;
    for (std::int64_t t = 0; t < steps; ++t) {
      const T gate = c.g[t * c.gate_step];
      T* row = decay + t * ChunkSteps;
      whole += gate;
      start[t] = whole;
      for (std::int64_t s = 0; s < t; ++s) sums[s] += gate;
      for (std::int64_t s = 0; s < ChunkSteps; s += LaneCount<T>) {
        store(row + s, exp_lanes(load(static_cast<const T*>(sums) + s)));
      }
      for (std::int64_t s = t + 1; s < ChunkSteps; ++s) row[s] = T(0);
    }
    for (std::int64_t t = steps; t < ChunkSteps; ++t) start[t] = T(0);
    for (std::int64_t t = 0; t < ChunkSteps; t += LaneCount<T>) {
      store(start + t, exp_lanes(load(static_cast<const T*>(start) + t)));
    }
  }
  // From step t to the last one; from before the chunk.
  [[nodiscard]] T decay_to_end(std::int64_t t) const { return decay[(steps - 1) * ChunkSteps + t]; }
  [[nodiscard]] T whole_decay() const { return start[steps - 1]; }

  // x_ts becomes factor·Λ_ts·x_ts for s < t + diagonal, 0 for later s.
  void keep_past(T* x, T factor, std::int64_t diagonal) const {
    for (std::int64_t t = 0; t < steps; ++t) {
      T* row = x + t * ChunkSteps;
      const T* by = decay + t * ChunkSteps;
      const std::int64_t past = t + diagonal;
      for (std::int64_t s = 0; s < past; ++s) row[s] *= factor * by[s];
      for (std::int64_t s = past; s < steps; ++s) row[s] = T(0);
    }
  }

  // to [steps, n] = rows [steps, k] b [k, n], or += that.
  void multiply(const T* rows, std::int64_t row, std::int64_t k, const T* b, std::int64_t b_row,
                std::int64_t n, T* to, std::int64_t to_row, bool accumulate = false) const {
    product_in_blocks<T>({steps, n, k, rows, row, 1, b, b_row, 1, to, to_row, accumulate});
  }
  // The same with xᵀ for rows: x [steps, m].
  void multiply_turned(const T* x, std::int64_t x_row, std::int64_t m, const T* b,
                       std::int64_t b_row, std::int64_t n, T* to, std::int64_t to_row,
                       bool accumulate) const {
    product_in_blocks<T>({m, n, steps, x, 1, x_row, b, b_row, 1, to, to_row, accumulate});
  }

  // A copy of rows that are `row` elements apart, with zeros behind the last column.
  void copy_rows(const T* from, std::int64_t row, T* to) const {
    for (std::int64_t t = 0; t < steps; ++t) {
      std::int64_t j = 0;
      for (; j < c.width; ++j) to[t * ChunkColumns + j] = from[t * row + j];
      for (; j < columns; ++j) to[t * ChunkColumns + j] = T(0);
    }
  }

  // to_t = factor·from_t
  void scale_row(const T* from, T factor, T* to) const {
    for (std::int64_t j = 0; j < columns; j += LaneCount<T>) store(to + j, load(from + j) * factor);
  }
  // to_t += x_t·y_t for all steps
  void add_dots(const T* x, std::int64_t x_row, const T* y, std::int64_t y_row, std::int64_t count,
                T* to) const {
    LaneSums<T> sums(to);
    for (std::int64_t t = 0; t < steps; ++t) {
      sums.give(dot_lanes(x + t * x_row, y + t * y_row, count, Lanes<T>{}));
    }
    sums.finish();
  }
  // sum + x·y, still in lanes
  [[nodiscard]] Lanes<T> dot_lanes(const T* x, const T* y, std::int64_t count, Lanes<T> sum) const {
    std::int64_t j = 0;
    for (; j + LaneCount<T> <= count; j += LaneCount<T>) sum += load(x + j) * load(y + j);
    if (const int last = static_cast<int>(count - j); last > 0) {
      sum += load_some(x + j, last) * load_some(y + j, last);
    }
    return sum;
  }

  // Keys with keys and, where `with_scores`, queries with keys: what steps have to do with earlier
  // ones.
  void compare_keys(bool with_scores) {
    find_decays();
    turn(c.k, c.key_step, steps, c.keys, keys_turned, ChunkSteps);
    multiply(c.k, c.key_step, c.keys, keys_turned, ChunkSteps, steps, recall, ChunkSteps);
    keep_past(recall, T(-1), 0);
    if (!with_scores) return;
    multiply(c.q, c.key_step, c.keys, keys_turned, ChunkSteps, steps, scores, ChunkSteps);
    keep_past(scores, c.kappa, 1);
  }

  // The errors u and what is written for them, D = β u, block after block of steps.
  void find_errors() {
    multiply(c.k, c.key_step, c.keys, c.s, ChunkColumns, columns, recalled, ChunkColumns);
    copy_rows(c.v, c.value_step, errors);
    for (std::int64_t t = 0; t < steps; ++t) {
      T* row = errors + t * ChunkColumns;
      for (std::int64_t j = 0; j < columns; j += LaneCount<T>) {
        const Lanes<T> old = load(static_cast<const T*>(recalled) + t * ChunkColumns + j);
        store(row + j, load(static_cast<const T*>(row) + j) - old * start[t]);
      }
    }
    for (std::int64_t b = 0; b < steps; b += SolvedAtOnce) {
      const std::int64_t end = steps - b < SolvedAtOnce ? steps : b + SolvedAtOnce;
      if (b > 0) {
        product_in_blocks<T>({end - b, columns, b, recall + b * ChunkSteps, ChunkSteps, 1, writes,
                              ChunkColumns, 1, errors + b * ChunkColumns, ChunkColumns, true});
      }
      for (std::int64_t t = b; t < end; ++t) {
        T* row = errors + t * ChunkColumns;
        product_of_rows<T, 1>({1, columns, t - b, recall + t * ChunkSteps + b, 0, 1,
                               writes + b * ChunkColumns, ChunkColumns, 1, row, 0, true});
        scale_row(row, c.beta[t * c.gate_step], writes + t * ChunkColumns);
      }
    }
  }

  // δ_s += Σ_{t>s} recall_ts dv_t with dv = β δ, from the last step to the first.
  void solve_back(T* delta, T* dv) const {
    const std::int64_t blocks = (steps + SolvedAtOnce - 1) / SolvedAtOnce;
    for (std::int64_t block = blocks; block-- > 0;) {
      const std::int64_t b = block * SolvedAtOnce;
      const std::int64_t end = steps - b < SolvedAtOnce ? steps : b + SolvedAtOnce;
      if (end < steps) {
        product_in_blocks<T>({end - b, columns, steps - end, recall + end * ChunkSteps + b, 1,
                              ChunkSteps, dv + end * ChunkColumns, ChunkColumns, 1,
                              delta + b * ChunkColumns, ChunkColumns, true});
      }
      for (std::int64_t s = end; s-- > b;) {
        T* row = delta + s * ChunkColumns;
        product_of_rows<T, 1>({1, columns, end - s - 1, recall + (s + 1) * ChunkSteps + s, 0,
                               ChunkSteps, dv + (s + 1) * ChunkColumns, ChunkColumns, 1, row, 0,
                               true});
        scale_row(row, c.beta[s * c.gate_step], dv + s * ChunkColumns);
      }
    }
  }

  // Is every number finite?
  [[nodiscard]] static bool is_finite(const T* x, std::int64_t rows, std::int64_t row,
                                      std::int64_t count) {
    Lanes<T> none{};
    for (std::int64_t t = 0; t < rows; ++t) {
      std::int64_t j = 0;
      for (; j + LaneCount<T> <= count; j += LaneCount<T>) none += load(x + t * row + j) * T(0);
      if (const int last = static_cast<int>(count - j); last > 0) {
        none += load_some(x + t * row + j, last) * T(0);
      }
    }
    return lane_sum<T>(none) == T(0);
  }

  const DeltaChunk<T>& c;
  std::int64_t steps;
  std::int64_t columns;
  T* decay;        // Λ: [t][s]
  T* start;        // a: [t]
  T* recall;       // -Λ_ts (k_t·k_s) for s < t
  T* scores;       // κ Λ_ts (q_t·k_s) for s ≤ t
  T* keys_turned;  // [keys][ChunkSteps]
  T* recalled;     // Sᵀk_t
  T* errors;       // u
  T* writes;       // D

 private:
  static constexpr std::int64_t SolvedAtOnce = 8;
  T* room_;
};

template <class T>
bool delta_chunk(const DeltaChunk<T>& c) {
  Chunk<T> chunk(c);
  const std::int64_t steps = chunk.steps;
  chunk.compare_keys(c.out != nullptr);
  chunk.find_errors();
  if (!chunk.is_finite(chunk.errors, steps, ChunkColumns, chunk.columns)) return false;
  if (c.out != nullptr) {
    T* const of_state = chunk.recalled;
    chunk.multiply(c.q, c.key_step, c.keys, c.s, ChunkColumns, chunk.columns, of_state,
                   ChunkColumns);
    for (std::int64_t t = 0; t < steps; ++t) {
      chunk.scale_row(of_state + t * ChunkColumns, c.kappa * chunk.start[t],
                      c.out + t * ChunkColumns);
    }
    chunk.multiply(chunk.scores, ChunkSteps, steps, chunk.writes, ChunkColumns, chunk.columns,
                   c.out, ChunkColumns, true);
    if (!chunk.is_finite(c.out, steps, ChunkColumns, chunk.columns)) return false;
  }
  for (std::int64_t t = 0; t < steps; ++t) {
    T* const row = chunk.writes + t * ChunkColumns;
    chunk.scale_row(row, chunk.decay_to_end(t), row);
  }
  for (std::int64_t i = 0; i < c.keys; ++i) {
    T* const row = c.s + i * ChunkColumns;
    chunk.scale_row(row, chunk.whole_decay(), row);
  }
  chunk.multiply_turned(c.k, c.key_step, c.keys, chunk.writes, ChunkColumns, chunk.columns, c.s,
                        ChunkColumns, true);
  return true;
}

// With E the gradient of the state behind the chunk: δ_s = Σ_{t≥s} scores_ts do_t + Λ_Cs Eᵀk_s +
// Σ_{t>s} recall_ts dv_t, dv = β δ, another triangular system; P = do Dᵀ and R = dv Dᵀ are what
// the products of queries and keys with keys are worth, and every other gradient is a product.
template <class T>
class ChunkBack : Chunk<T> {
  using Base = Chunk<T>;
  using Base::c;
  using Base::columns;
  using Base::steps;
  using Base::take;

 public:
  explicit ChunkBack(const DeltaChunk<T>& call) : Base(call) {
    cotangents_ = take(ChunkSteps * ChunkColumns);
    of_later_ = take(ChunkSteps * ChunkColumns);
    delta_ = take(ChunkSteps * ChunkColumns);
    values_ = take(ChunkSteps * ChunkColumns);
    turned_ = take(c.keys * ChunkColumns);
    writes_turned_ = take(ChunkColumns * ChunkSteps);
    to_scores_ = take(ChunkSteps * ChunkSteps);
    to_recall_ = take(ChunkSteps * ChunkSteps);
    worth_rows_ = take(ChunkSteps * ChunkSteps);
    worth_ = take(ChunkSteps * ChunkSteps);
    dq_ = take(ChunkSteps * c.keys);
    dk_ = take(ChunkSteps * c.keys);
  }

  bool run() {
    this->compare_keys(true);
    this->find_errors();
    find_values();
    compare_writes();
    find_keys();
    find_gates();
    if (!is_usable()) return false;
    give();
    return true;
  }

 private:
  void find_values() {
    this->copy_rows(c.dout, c.value_step, cotangents_);
    this->multiply(c.k, c.key_step, c.keys, c.later, ChunkColumns, columns, of_later_,
                   ChunkColumns);
    for (std::int64_t t = 0; t < steps; ++t) {
      const std::int64_t at = t * ChunkColumns;
      this->scale_row(of_later_ + at, this->decay_to_end(t), delta_ + at);
    }
    this->multiply_turned(this->scores, ChunkSteps, steps, cotangents_, ChunkColumns, columns,
                          delta_, ChunkColumns, true);
    this->solve_back(delta_, values_);
    this->add_dots(delta_, ChunkColumns, this->errors, ChunkColumns, columns, dbeta_);
    this->copy_rows(values_, ChunkColumns, c.dv);
  }

  // P and R, what they make of the decays, and then with the decays.
  void compare_writes() {
    turn(static_cast<const T*>(this->writes), ChunkColumns, steps, columns, writes_turned_,
         ChunkSteps);
    this->multiply(cotangents_, ChunkColumns, columns, writes_turned_, ChunkSteps, steps,
                   to_scores_, ChunkSteps);
    this->multiply(values_, ChunkColumns, columns, writes_turned_, ChunkSteps, steps, to_recall_,
                   ChunkSteps);
    for (std::int64_t t = 0; t < ChunkSteps; ++t) {
      const std::int64_t row = t * ChunkSteps;
      const std::int64_t past = t < steps ? t : 0;
      for (std::int64_t s = 0; s < past; ++s) {
        worth_rows_[row + s] = to_scores_[row + s] * this->scores[row + s] +
                               to_recall_[row + s] * this->recall[row + s];
      }
      for (std::int64_t s = past; s < ChunkSteps; ++s) worth_rows_[row + s] = T(0);
    }
    turn(static_cast<const T*>(worth_rows_), ChunkSteps, ChunkSteps, ChunkSteps, worth_,
         ChunkSteps);
    this->keep_past(to_scores_, c.kappa, 1);
    this->keep_past(to_recall_, T(-1), 0);
    // It stands at k_t and at k_s: made symmetric, both are one product.
    for (std::int64_t t = 0; t < steps; ++t) {
      for (std::int64_t s = 0; s < t; ++s) {
        to_recall_[s * ChunkSteps + t] = to_recall_[t * ChunkSteps + s];
      }
    }
  }

  // dq and dk. From here on rows of do, dv and D are times κ a_t, -a_t and Λ_Ct.
  void find_keys() {
    for (std::int64_t t = 0; t < steps; ++t) {
      const std::int64_t at = t * ChunkColumns;
      this->scale_row(cotangents_ + at, c.kappa * this->start[t], cotangents_ + at);
      this->scale_row(values_ + at, -this->start[t], values_ + at);
      this->scale_row(this->writes + at, this->decay_to_end(t), this->writes + at);
    }
    turn(static_cast<const T*>(c.s), ChunkColumns, c.keys, columns, turned_, c.keys);
    product(cotangents_, dq_, false);
    product(values_, dk_, false);
    this->add_dots(dq_, c.keys, c.q, c.key_step, c.keys, from_start_);
    this->add_dots(this->recalled, ChunkColumns, values_, ChunkColumns, columns, from_start_);
    this->add_dots(of_later_, ChunkColumns, this->writes, ChunkColumns, columns, to_end_);
    turn(static_cast<const T*>(c.later), ChunkColumns, c.keys, columns, turned_, c.keys);
    product(this->writes, dk_, true);
    this->multiply(to_scores_, ChunkSteps, steps, c.k, c.key_step, c.keys, dq_, c.keys, true);
    this->multiply(to_recall_, ChunkSteps, steps, c.k, c.key_step, c.keys, dk_, c.keys, true);
    this->multiply_turned(to_scores_, ChunkSteps, steps, c.q, c.key_step, c.keys, dk_, c.keys,
                          true);
  }
  void product(const T* rows, T* to, bool accumulate) const {
    this->multiply(rows, ChunkColumns, columns, turned_, c.keys, c.keys, to, c.keys, accumulate);
  }

  // A gate is worth what every decay over it is: from s to t, from the state before to t, from s to
  // the state behind, and from one state to the other. Only sums, so that nothing cancels.
  void find_gates() {
    Lanes<T> states{};
    for (std::int64_t i = 0; i < c.keys; ++i) {
      const std::int64_t at = i * ChunkColumns;
      states = this->dot_lanes(c.s + at, c.later + at, columns, states);
    }
    T across = lane_sum<T>(states) * this->whole_decay();
    T* const held = from_start_;  // of decays that end at t and start before the gate
    LaneSums<T> gates(dg_);
    for (std::int64_t i = 0; i < steps; ++i) {
      if (i > 0) held[i - 1] = T(0);
      Lanes<T> sum{};
      for (std::int64_t t = 0; t < ChunkSteps; t += LaneCount<T>) {
        Lanes<T> of_steps = load(static_cast<const T*>(held) + t);
        if (i > 0) of_steps += load(static_cast<const T*>(worth_) + (i - 1) * ChunkSteps + t);
        store(held + t, of_steps);
        sum += of_steps;
      }
      gates.give(sum);
    }
    gates.finish();
    for (std::int64_t i = 0; i < steps; ++i) {
      dg_[i] += across;
      across += to_end_[i];
    }
  }

  [[nodiscard]] bool is_usable() const {
    return this->is_finite(values_, steps, ChunkColumns, columns) &&
           this->is_finite(dq_, steps, c.keys, c.keys) &&
           this->is_finite(dk_, steps, c.keys, c.keys) &&
           this->is_finite(dg_, 1, ChunkSteps, steps) &&
           this->is_finite(dbeta_, 1, ChunkSteps, steps);
  }

  void give() const {
    for (std::int64_t e = 0; e < steps * c.keys; ++e) {
      c.dq[e] += dq_[e];
      c.dk[e] += dk_[e];
    }
    for (std::int64_t t = 0; t < steps; ++t) {
      c.dg[t] += dg_[t];
      c.dbeta[t] += dbeta_[t];
    }
    for (std::int64_t i = 0; i < c.keys; ++i) {
      T* const row = c.later + i * ChunkColumns;
      this->scale_row(row, this->whole_decay(), row);
    }
    this->multiply_turned(c.q, c.key_step, c.keys, cotangents_, ChunkColumns, columns, c.later,
                          ChunkColumns, true);
    this->multiply_turned(c.k, c.key_step, c.keys, values_, ChunkColumns, columns, c.later,
                          ChunkColumns, true);
  }

  T* cotangents_;     // do
  T* of_later_;       // Eᵀk_t
  T* delta_;          // δ
  T* values_;         // dv
  T* turned_;         // Sᵀ, then Eᵀ: [columns][keys]
  T* writes_turned_;  // Dᵀ: [columns][ChunkSteps]
  T* to_scores_;      // P
  T* to_recall_;      // R
  T* worth_rows_;     // what the exponents of Λ_ts are worth: [t][s]
  T* worth_;          // the same: [s][t]
  T* dq_;
  T* dk_;
  T dg_[ChunkSteps] = {};
  T dbeta_[ChunkSteps] = {};
  T from_start_[ChunkSteps] = {};  // what the exponents of a_t are worth
  T to_end_[ChunkSteps] = {};      // and those of Λ_Ct
};

template <class T>
bool delta_chunk_back(const DeltaChunk<T>& c) {
  return ChunkBack<T>(c).run();
}

template <class T>
constexpr RecurrenceKernels<T> recurrence_kernels() {
  return {scan_steps<T>,  scan_steps_back<T>,  delta_steps<T>,          delta_steps_back<T>,
          delta_chunk<T>, delta_chunk_back<T>, RICCI_VECTOR_BYTES == 64};
}

}  // namespace
}  // namespace ricci::cpu::RICCI_VECTOR_TARGET
