// Some steps of a recurrence for as many of its columns as lie side by side in `Columns` lanes: the
// inner loops of the state-space scan and of the gated delta rule. Rooms of a column block are
// [rows][Columns]; lanes without a column hold zeros. Arrays of the call are read with their own
// strides, and never behind the block's last column.
#pragma once

#include <cstdint>

namespace ricci::cpu {

inline constexpr std::int64_t RecurrenceColumns = 32;

/// H_t[m] = e^(Δ_t a[m]) H_{t-1}[m] + Δ_t B_t[m] x_t, y_t = Σ_m C_t[m] H_t[m]; columns are
/// channels.
template <class T>
struct ScanSteps {
  std::int64_t steps = 0;
  std::int64_t states = 0;
  std::int64_t channels = 0;  ///< from a step of x, delta and dy to the next
  std::int64_t width = 0;     ///< channels of this block
  const T* x = nullptr;
  const T* delta = nullptr;
  const T* b = nullptr;  ///< [steps][states], and so c
  const T* c = nullptr;
  const T* a = nullptr;  ///< [states][Columns]
  /// The state before the first step; that after step t is `h_step` elements further each time (0:
  /// in its place).
  T* h = nullptr;
  std::int64_t h_step = 0;
  T* decays = nullptr;  ///< [steps][states][Columns]; null: not kept
  T* y = nullptr;       ///< [steps][Columns]; null: not wanted

  // Backwards, from what a forward run kept.
  const T* dy = nullptr;
  T* later = nullptr;   ///< decay · gradient of the state behind the last step; then of the first
  T* da = nullptr;      ///< [states][Columns], added to
  T* dx = nullptr;      ///< [steps][Columns]
  T* ddelta = nullptr;  ///< [steps][Columns]
  T* db = nullptr;      ///< [steps][states], added to
  T* dc = nullptr;      ///< [steps][states], added to
};

/// S̃ = e^(g_t) S_{t-1}; u = v_t - S̃ᵀk_t; S_t = S̃ + β_t k_t uᵀ; o_t = κ S_tᵀq_t; columns are values.
template <class T>
struct DeltaSteps {
  std::int64_t steps = 0;
  std::int64_t keys = 0;
  std::int64_t width = 0;       ///< values of this block
  std::int64_t key_step = 0;    ///< from a step of q and k to the next
  std::int64_t value_step = 0;  ///< the same of v and dout
  std::int64_t gate_step = 0;   ///< the same of g and beta
  T kappa = T(1);
  const T* q = nullptr;
  const T* k = nullptr;
  const T* v = nullptr;
  const T* g = nullptr;
  const T* beta = nullptr;
  T* s = nullptr;  ///< [keys][Columns]: as `h` of ScanSteps
  std::int64_t s_step = 0;
  T* errors = nullptr;  ///< u: [steps][Columns]; null: not kept
  T* out = nullptr;     ///< [steps][Columns]; null: not wanted

  // Backwards, from what a forward run kept.
  const T* dout = nullptr;
  T* later = nullptr;  ///< [keys][Columns]: the gradient of the state behind the last step
  T* dq = nullptr;     ///< [steps][keys], added to
  T* dk = nullptr;     ///< [steps][keys], added to
  T* dv = nullptr;     ///< [steps][Columns]
  T* dg = nullptr;     ///< [steps], added to
  T* dbeta = nullptr;  ///< [steps], added to
};

inline constexpr std::int64_t DeltaChunkSteps = 32;
inline constexpr std::int64_t DeltaChunkColumns = 64;

/// Up to DeltaChunkSteps of the same steps at once, as products of matrices, for up to
/// DeltaChunkColumns values. Where a number is not finite nothing is given, for zeros of matrices
/// must not carry it to earlier steps: then the steps are for DeltaSteps.
template <class T>
struct DeltaChunk {
  std::int64_t steps = 0;
  std::int64_t keys = 0;
  std::int64_t width = 0;  ///< values of this block
  std::int64_t key_step = 0;
  std::int64_t value_step = 0;
  std::int64_t gate_step = 0;
  T kappa = T(1);
  const T* q = nullptr;
  const T* k = nullptr;
  const T* v = nullptr;
  const T* g = nullptr;
  const T* beta = nullptr;
  T* s = nullptr;     ///< [keys][DeltaChunkColumns]: before the chunk; forwards, then behind it
  T* out = nullptr;   ///< [steps][DeltaChunkColumns]; null: not wanted
  T* room = nullptr;  ///< `delta_chunk_room` numbers, 64-aligned

  const T* dout = nullptr;
  T* later = nullptr;  ///< [keys][DeltaChunkColumns]: the gradient of the state behind; then before
  T* dq = nullptr;     ///< [steps][keys], added to
  T* dk = nullptr;     ///< [steps][keys], added to
  T* dv = nullptr;     ///< [steps][DeltaChunkColumns]
  T* dg = nullptr;     ///< [steps], added to
  T* dbeta = nullptr;  ///< [steps], added to
};

/// Numbers of room a chunk needs.
[[nodiscard]] constexpr std::int64_t delta_chunk_room(std::int64_t keys) {
  constexpr std::int64_t Steps = DeltaChunkSteps;
  constexpr std::int64_t Values = DeltaChunkColumns;
  return Steps + 7 * Steps * Steps + 8 * Steps * Values + keys * (3 * Steps + Values);
}

template <class T>
struct RecurrenceKernels {
  void (*scan)(const ScanSteps<T>&) = nullptr;
  void (*scan_backward)(const ScanSteps<T>&) = nullptr;
  void (*delta)(const DeltaSteps<T>&) = nullptr;
  void (*delta_backward)(const DeltaSteps<T>&) = nullptr;
  /// False where something is not finite.
  bool (*delta_chunk)(const DeltaChunk<T>&) = nullptr;
  bool (*delta_chunk_backward)(const DeltaChunk<T>&) = nullptr;
  /// Are chunks the faster way to outputs alone? Narrow vectors do not wait for each other's sums,
  /// and steps take fewer of them; backwards chunks are faster everywhere.
  bool chunks_forward = false;
};

}  // namespace ricci::cpu
