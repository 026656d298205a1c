// Matrix products of any dtype, batched, with operands strided in any way.
//
//   const MatmulPlan plan(shape);
//   plan.run(pool, a, b, c, scratch);            // scratch: plan.scratch_bytes(), 64-aligned
//
// or tile by tile, to go on with a tile's rows while they are in the cache:
//
//   pool.run(plan.prepare_tiles(), [&](auto t) { plan.prepare_tile(t, a, b, scratch); });
//   pool.run(plan.pack_tiles(), [&](auto t) { plan.pack_tile(t, a, b, scratch); });
//   pool.run(plan.tiles(), [&](auto t) { plan.run_tile(t, a, b, c, scratch); … plan.tile(t) … });
//
// An operand that is the same in many runs, as the weights of a recurrent cell in all its steps, is
// packed in the first of them:
//   MatmulMemory memory{scratch, panels};        // panels: plan.kept_bytes(), 64-aligned
//   plan.run(pool, a, b, c, memory);  memory.is_packed = true;  plan.run(pool, a2, b, c, memory);
//
// Floats narrower than f32 are multiplied and summed in f32 and rounded once; integers wrap.
// A plan is immutable; any number of threads may share it, each run with its own scratch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ricci/compiler/device/thread_pool.h"
#include "ricci/type/dtype.h"

#include "backend/cpu/kernels/vector_kernels.h"

namespace ricci::cpu {

/// Where an operand's matrices lie; strides in elements, of any sign, 0 to repeat.
struct MatmulLayout {
  std::vector<std::int64_t> batch;  ///< one stride per batch axis
  std::int64_t row = 0;
  std::int64_t column = 1;
};

/// c[β, m, n] = Σ_k a[β, m, k] · b[β, k, n], added to c when `accumulate`.
struct MatmulShape {
  DType dtype = DType::F32;
  std::vector<std::int64_t> batch;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  MatmulLayout a;
  MatmulLayout b;
  MatmulLayout c;  ///< no two elements of c share memory
  bool accumulate = false;
  bool same_a = false;      ///< a has in many runs the elements it has in the first one
  bool same_b = false;      ///< so has b
  bool whole_rows = false;  ///< every tile covers its rows from end to end
  bool wide_c = false;      ///< c holds what sums of the dtype are computed in, not rounded
};

/// Rows and columns of c that one tile writes, in each of a range of batches.
struct MatmulTile {
  std::int64_t batch0 = 0;
  std::int64_t batch1 = 0;
  std::int64_t row0 = 0;
  std::int64_t row1 = 0;
  std::int64_t column0 = 0;
  std::int64_t column1 = 0;
};

/// What a run works in.
struct MatmulMemory {
  MatmulMemory(void* room, void* kept = nullptr, bool is_made = false)  // NOLINT: mostly scratch
      : scratch(room), panels(kept), is_packed(is_made) {}
  void* scratch;
  void* panels;    ///< of the operand that is the same in many runs
  bool is_packed;  ///< they are there, from an earlier run
};

class MatmulPlan {
 public:
  /// Up to so many rows of a may be turned, so that a transposed b is read as it lies.
  static constexpr std::int64_t TurnedRows = 64;

  explicit MatmulPlan(MatmulShape shape);

  [[nodiscard]] std::int64_t scratch_bytes() const noexcept { return scratch_bytes_; }
  /// Of what is packed once for many runs; 0 when nothing is.
  [[nodiscard]] std::int64_t kept_bytes() const noexcept { return kept_bytes_; }
  /// Batches and rows as tiles count them: trailing batch axes that share one b and lie behind each
  /// other in a and c count as rows, and those that share one a as columns.
  [[nodiscard]] std::int64_t batches() const noexcept { return batches_; }
  [[nodiscard]] std::int64_t rows() const noexcept { return swapped_ ? n_ : m_; }

  /// Is a read by tiles only, each its own rows?
  [[nodiscard]] bool reads_a_in_tiles() const noexcept {
    return !swapped_ && !a_.copied && depth_parts_ == 1;
  }

  /// What each thread that runs tiles keeps for itself.
  [[nodiscard]] std::int64_t thread_bytes() const noexcept { return thread_bytes_; }

  /// Copies operands that are not in the arithmetic's own type into scratch; then packs what every
  /// tile needs, or computes what tiles add up. All of one come before the first of the next.
  [[nodiscard]] std::int64_t prepare_tiles() const noexcept;
  void prepare_tile(std::int64_t tile, const void* a, const void* b, void* scratch) const;
  [[nodiscard]] std::int64_t pack_tiles() const noexcept;
  void pack_tile(std::int64_t tile, const void* a, const void* b, MatmulMemory memory) const;

  [[nodiscard]] std::int64_t tiles() const noexcept;
  [[nodiscard]] MatmulTile tile(std::int64_t index) const noexcept;
  void run_tile(std::int64_t tile, const void* a, const void* b, void* c,
                MatmulMemory memory) const;

  void run(ThreadPool& pool, const void* a, const void* b, void* c, MatmulMemory memory) const {
    const auto nothing = [](std::int64_t) {};
    run(pool, a, b, c, memory, nothing, nothing);
  }
  /// Calls `before(t)` when tile t begins and `done(t)` when it is done.
  template <class Before, class Done>
  void run(ThreadPool& pool, const void* a, const void* b, void* c, MatmulMemory memory,
           Before&& before, Done&& done) const {
    const bool packs = kept_bytes_ == 0 || !memory.is_packed;
    pool.run(packs ? prepare_tiles() : copy_tiles(a_),
             [&](std::int64_t t) { prepare_tile(t, a, b, memory.scratch); });
    if (packs) pool.run(pack_tiles(), [&](std::int64_t t) { pack_tile(t, a, b, memory); });
    pool.run(tiles(), [&](std::int64_t t) {
      before(t);
      run_tile(t, a, b, c, memory);
      done(t);
    });
  }

 private:
  /// Strips of B that a tile packs at a time: enough of each row to read memory in runs.
  static constexpr std::int64_t StripsTogether = 4;

  enum class Method : std::uint8_t { Fill, Tiny, Small, Blocks, Rows, Dots, Panels };

  /// An operand as the kernels see it.
  struct Side {
    MatmulLayout from;  ///< in the caller's memory
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    bool same = false;        ///< in many runs
    bool narrow = false;      ///< floats of 16 bits, widened where they are read
    bool copied = false;      ///< into scratch, widened; complex numbers as planes
    MatmulLayout to;          ///< there
    std::int64_t plane = 0;   ///< elements from one plane to the next
    std::int64_t copies = 0;  ///< distinct batches
    std::int64_t offset = 0;  ///< of the copy in scratch, in bytes
    [[nodiscard]] const MatmulLayout& layout() const { return copied ? to : from; }
  };

  void fold_batches();
  void join_batches();
  [[nodiscard]] bool is_tiny() const;
  [[nodiscard]] bool keeps_a() const;
  [[nodiscard]] bool keeps_b() const;
  [[nodiscard]] bool turns_a() const;
  void swap_sides();
  void choose_method();
  void choose_tiles();
  void plan_copy(Side& side, std::int64_t planes);
  void plan_turn(Side& side);
  void plan_panels();
  void choose_streams(bool may_cut_columns);
  void plan_parts();
  [[nodiscard]] bool is_far() const;
  [[nodiscard]] std::int64_t offset_of(const MatmulLayout& layout, std::int64_t batch) const;
  [[nodiscard]] MatmulTile inner_tile(std::int64_t index) const noexcept;
  [[nodiscard]] static std::int64_t copy_tiles(const Side& side) noexcept;
  /// Where the panels are.
  template <class R>
  R* panels(MatmulMemory memory) const;

  /// The matrix of a side that a batch uses, in the caller's memory or in scratch.
  template <class R>
  const void* matrix(const Side& side, std::int64_t batch, const void* data, void* scratch) const;
  template <class R>
  void multiply_panels(const MatmulTile& t, const Side& a, const void* a_data, const void* b_data,
                       R* c, std::int64_t c_row, bool accumulate) const;
  template <class R>
  void pack_columns(std::int64_t index, const void* b, MatmulMemory memory) const;
  template <class R>
  void multiply_part(std::int64_t index, const void* a, const void* b, void* scratch) const;
  template <class R>
  void add_parts(const MatmulTile& t, const R* parts, R* c, std::int64_t c_row,
                 bool accumulate) const;
  template <class R>
  void copy_part(const Side& side, std::int64_t part, const void* from, void* scratch) const;
  template <class R>
  void run_matrix(const MatmulTile& t, std::int64_t batch, const void* a, const void* b, void* c,
                  MatmulMemory memory) const;
  template <class R>
  void turn_part(std::int64_t first, const R* from, R* to) const;
  template <class R>
  void run_tiny(const MatmulTile& t, const void* a, const void* b, void* c) const;
  template <class R>
  void run_small(std::int64_t batch, const void* a, const void* b, void* c) const;
  template <class R>
  void multiply(const MatmulTile& t, const Side& a, const void* a_data, const Side& b,
                const void* b_data, R* c, std::int64_t c_row, bool accumulate) const;
  template <class R>
  void multiply_unpacked(const Side& b, const void* b_data, std::int64_t first, Product<R> p) const;
  void fill(const MatmulTile& t, std::int64_t batch, void* c) const;

  DType dtype_;
  DType c_dtype_;
  bool complex_;
  bool native_;  ///< computed in the dtype itself
  Method method_ = Method::Fill;
  std::vector<std::int64_t> batch_;
  std::int64_t batches_ = 1;
  std::int64_t m_;
  std::int64_t n_;
  std::int64_t k_;
  Side a_;
  Side b_;
  MatmulLayout c_;
  bool accumulate_;
  bool whole_rows_;
  bool swapped_ = false;       ///< computes cᵀ = bᵀ aᵀ
  bool turned_ = false;        ///< so, because a is smaller to turn than b is to pack
  bool c_in_scratch_ = false;  ///< computed there, then stored,
  bool turns_c_ = false;       ///< square by square, since it lies the other way round
  std::int64_t c_offset_ = 0;
  std::int64_t scratch_bytes_ = 0;
  std::int64_t kept_bytes_ = 0;  ///< of panels that are not in scratch
  std::int64_t thread_bytes_ = 0;
  // B in strips: per distinct batch and plane, block of the depth by block.
  MatmulLayout panels_;              ///< the batches' strides
  std::int64_t panel_copies_ = 0;    ///< distinct batches
  std::int64_t panel_elements_ = 0;  ///< of one plane
  std::int64_t panel_columns_ = 0;   ///< n, rounded up to whole strips
  std::int64_t panel_planes_ = 1;
  std::int64_t packed_at_once_ = 1;  ///< columns of b in one of the pack tiles
  std::int64_t panels_offset_ = 0;   ///< in scratch, in bytes
  /// No two tiles read the same of B: each packs what it needs when it needs it.
  bool packs_in_tiles_ = false;
  std::int64_t own_panel_ = 0;  ///< where a thread keeps that, behind its strips of A
  // A large B that few rows meet is read from end to end: parts of the depth, each with sums of its
  // own.
  std::int64_t depth_parts_ = 1;
  std::int64_t part_depth_ = 0;
  std::int64_t parts_offset_ = 0;  ///< in scratch, in bytes: [batches, parts, m, n]
  std::int64_t tile_batches_ = 1;
  std::int64_t tile_rows_ = 1;
  std::int64_t tile_columns_ = 1;
};

}  // namespace ricci::cpu
