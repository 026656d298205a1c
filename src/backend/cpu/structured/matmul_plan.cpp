// How a matrix product is computed: the method, the copies it needs and the tiles. All of it
// depends on shape, layout and dtype only.
#include <algorithm>
#include <tuple>
#include <utility>

#include "ricci/support/checked.h"
#include "ricci/support/error.h"

#include "backend/cpu/structured/matmul.h"
#include "backend/cpu/structured/matmul_copy.h"
#include "backend/cpu/structured/matmul_panels.h"
#include "support/align.h"
#include "type/small_dtype.h"

namespace ricci::cpu {
namespace {

// Where one method overtakes another, measured; sizes in elements, work in multiplications.
constexpr std::int64_t FewestTogether = 4;          // tiny matrices, one to a lane
constexpr std::int64_t TinyTileWork = 1 << 18;      // of those, elements moved and multiplied
constexpr std::int64_t SmallSize = 32;              // m, n, k up to here: registers, nothing packed
constexpr std::int64_t FewRows = 4;                 // read B once, row by row
constexpr std::int64_t UnpackedRows = 12;           // B is read too seldom to be packed,
constexpr std::int64_t NearRows = 36;               // or so if it stays in the second cache,
constexpr std::int64_t NearBytes = 5 << 18;         // which has room for this much,
constexpr std::int64_t NearestBytes = 1 << 16;      // or all but stays in the first
constexpr std::int64_t NearestBlock = 1 << 13;      // with the columns of a block
constexpr std::int64_t TileWork = 8 << 20;          // enough to hide what a tile costs
constexpr std::int64_t LeastWork = 1 << 21;         // less is not worth a second thread,
constexpr std::int64_t LeastPacked = 1 << 15;       // nor are fewer elements to pack
constexpr std::int64_t LeastTileRows = 60;          // fewer would read B too often,
constexpr std::int64_t TilesPerMatrix = 16;         // and so would more tiles than this
constexpr std::int64_t LeastTileColumns = 128;      // fewer would pack A too often
constexpr std::int64_t RowStep = 6;                 // whole strips of rows
constexpr std::int64_t StreamedElements = 1 << 16;  // of B in a tile of few rows
constexpr std::int64_t LeastStreamed = 1 << 17;     // fewer are not worth a second thread
constexpr std::int64_t FarBytes = 4 << 20;          // B is in no near cache: read in order,
constexpr std::int64_t StreamedColumns = 1 << 10;   // in runs of so many columns at least,
constexpr std::int64_t NearColumns = 1 << 8;        // or so many where a cache holds it

std::int64_t rounded_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }
std::int64_t quotient_up(std::int64_t n, std::int64_t by) {
  return by == 0 ? 0 : (n + by - 1) / by;
}

bool is_native(DType dtype) {
  switch (dtype) {
    case DType::F32:
    case DType::F64:
    case DType::I32:
    case DType::U32:
    case DType::I64: return true;
    default: return false;
  }
}

// What with_arithmetic computes in; complex numbers are stored as they are computed.
DType arithmetic_dtype(DType dtype) {
  if (is_native(dtype) || is_complex(dtype)) return dtype;
  return is_float(dtype) ? DType::F32 : DType::U32;
}

// One size per part: about `wanted` parts, each a multiple of `step` and at least `least`.
std::int64_t part_size(std::int64_t size, std::int64_t wanted, std::int64_t step,
                       std::int64_t least) {
  const std::int64_t part = rounded_up(quotient_up(size, std::max<std::int64_t>(wanted, 1)), step);
  return std::max(std::min(size, std::max(part, least)), std::int64_t{1});
}

// Is B read from a near cache, as often as so many rows need it?
bool stays_near(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t size) {
  const std::int64_t bytes = k * n * size;
  return (m <= NearRows && bytes <= NearBytes) ||
         (k * std::min(n, PackedColumns) <= NearestBlock && bytes <= NearestBytes);
}

}  // namespace

MatmulPlan::MatmulPlan(MatmulShape s)
    : dtype_(s.dtype),
      c_dtype_(s.wide_c ? arithmetic_dtype(s.dtype) : s.dtype),
      complex_(is_complex(s.dtype)),
      native_(is_native(s.dtype)),
      batch_(std::move(s.batch)),
      m_(s.m),
      n_(s.n),
      k_(s.k),
      a_{.from = std::move(s.a), .rows = s.m, .columns = s.k, .same = s.same_a},
      b_{.from = std::move(s.b), .rows = s.k, .columns = s.n, .same = s.same_b},
      c_(std::move(s.c)),
      accumulate_(s.accumulate),
      whole_rows_(s.whole_rows) {
  check_internal(dtype_ != DType::Bool, "bool has no matrix product");
  for (const MatmulLayout* layout : {&a_.from, &b_.from, &c_}) {
    check_internal(layout->batch.size() == batch_.size(), "one stride per batch axis");
  }
  fold_batches();
  // An axis of one element may have any stride; take the one that looks row-major.
  const auto tidy = [](MatmulLayout& l, std::int64_t rows, std::int64_t columns) {
    if (columns == 1 && rows == 1) {
      l.row = l.column = 1;
    } else if (columns == 1) {
      l.column = l.row == 1 ? rows : 1;
    } else if (rows == 1) {
      l.row = l.column == 1 ? columns : 1;
    }
  };
  tidy(a_.from, m_, k_);
  tidy(b_.from, k_, n_);
  tidy(c_, m_, n_);
  const bool columns_adjoin = c_.row == 1 && c_.column != 1;
  if (turns_a()) {
    swap_sides();
    turned_ = true;
  } else if (columns_adjoin || (n_ <= FewRows && m_ > FewRows) || keeps_a()) {
    swap_sides();
  }
  choose_method();
  choose_tiles();
  if (method_ == Method::Panels) plan_panels();
  if (depth_parts_ > 1) plan_parts();
}

void MatmulPlan::fold_batches() {
  while (!batch_.empty()) {
    const std::int64_t size = batch_.back();
    const std::int64_t a = a_.from.batch.back();
    const std::int64_t b = b_.from.batch.back();
    const std::int64_t c = c_.batch.back();
    const bool one = size == 1;
    const bool rows = b == 0 && (m_ == 1 || (a == m_ * a_.from.row && c == m_ * c_.row));
    const bool columns = a == 0 && (n_ == 1 || (b == n_ * b_.from.column && c == n_ * c_.column));
    if (!one && rows && m_ > 0) {
      if (m_ == 1) std::tie(a_.from.row, c_.row) = std::pair{a, c};
      m_ = a_.rows = checked_mul(m_, size);
    } else if (!one && columns && n_ > 0) {
      if (n_ == 1) std::tie(b_.from.column, c_.column) = std::pair{b, c};
      n_ = b_.columns = checked_mul(n_, size);
    } else if (!one) {
      break;
    }
    batch_.pop_back();
    for (MatmulLayout* layout : {&a_.from, &b_.from, &c_}) layout->batch.pop_back();
  }
  join_batches();
  for (const std::int64_t size : batch_) batches_ = checked_mul(batches_, size);
}

// Axes that are one axis to all three.
void MatmulPlan::join_batches() {
  for (std::size_t i = batch_.size(); i-- > 1;) {
    bool together = true;
    for (const MatmulLayout* l : {&a_.from, &b_.from, &c_}) {
      together = together && l->batch[i - 1] == l->batch[i] * batch_[i];
    }
    if (!together) continue;
    const auto at = static_cast<std::ptrdiff_t>(i);
    batch_[i - 1] = checked_mul(batch_[i - 1], batch_[i]);
    batch_.erase(batch_.begin() + at);
    for (MatmulLayout* l : {&a_.from, &b_.from, &c_}) {
      l->batch[i - 1] = l->batch[i];
      l->batch.erase(l->batch.begin() + at);
    }
  }
}

bool MatmulPlan::is_tiny() const {
  return (native_ || complex_) && std::max({m_, n_, k_}) <= TinyProducts<float>::Most &&
         !batch_.empty() && batch_.back() >= FewestTogether;
}

// Is B packed for many runs? That it is read too seldom to be packed is then no reason. Where it
// stays near and lies well, sums that stay in registers all along the depth gain more than packing.
bool MatmulPlan::keeps_b() const {
  if (!b_.same || m_ <= FewRows || k_ <= SmallSize || n_ < PackedColumns || is_tiny()) return false;
  return !native_ || b_.from.column != 1 || !stays_near(m_, n_, k_, size_of(dtype_));
}

// A packed one is kept as the B of cᵀ = bᵀ aᵀ, where this turns far less than it packs.
bool MatmulPlan::keeps_a() const {
  constexpr std::int64_t Less = 4;
  return a_.same && !b_.same && n_ > FewRows && m_ >= Less * n_ && k_ >= Less * n_ &&
         k_ > SmallSize && m_ >= PackedColumns && !is_tiny();
}

// A transposed B that few rows of A meet: bᵀ aᵀ reads it as it lies, and A is small.
bool MatmulPlan::turns_a() const {
  if (keeps_b()) return false;
  const bool lies_so = b_.from.row == 1 && b_.from.column >= k_ && b_.from.column != 1 &&
                       a_.from.column == 1 && c_.column == 1 && m_ > 0;
  return lies_so && native_ && !accumulate_ && !whole_rows_ && c_dtype_ == dtype_ &&
         m_ > UnpackedRows && m_ <= TurnedRows &&
         std::min(n_, k_) >= std::max(2 * m_, SmallSize + 1);
}

void MatmulPlan::swap_sides() {
  swapped_ = true;
  std::swap(m_, n_);
  std::swap(a_, b_);
  for (MatmulLayout* l : {&a_.from, &b_.from, &c_}) std::swap(l->row, l->column);
  for (Side* side : {&a_, &b_}) std::swap(side->rows, side->columns);
}

// A copy keeps the order its elements have in memory, so that they are read in runs.
void MatmulPlan::plan_copy(Side& side, std::int64_t planes) {
  side.copied = true;
  const bool by_columns = side.from.row == 1 && side.from.column != 1;
  side.to.row = by_columns ? 1 : side.columns;
  side.to.column = by_columns ? side.rows : 1;
  side.plane = checked_mul(side.rows, side.columns);
  side.to.batch.assign(batch_.size(), 0);
  side.copies = 1;
  for (std::size_t i = batch_.size(); i-- > 0;) {
    if (side.from.batch[i] == 0) continue;
    side.to.batch[i] = checked_mul(checked_mul(side.plane, planes), side.copies);
    side.copies = checked_mul(side.copies, batch_[i]);
  }
  side.offset = scratch_bytes_;
  const std::int64_t elements = checked_mul(checked_mul(side.plane, planes), side.copies);
  scratch_bytes_ =
      checked_add(scratch_bytes_, aligned(checked_mul(elements, size_of_arithmetic(dtype_))));
}

// Row by row, whatever order it has: [batches, rows, columns].
void MatmulPlan::plan_turn(Side& side) {
  plan_copy(side, 1);
  side.to.row = side.columns;
  side.to.column = 1;
}

void MatmulPlan::choose_method() {
  if (m_ == 0 || n_ == 0 || batches_ == 0 || k_ == 0) return;
  if (is_tiny()) {
    method_ = Method::Tiny;
    return;
  }
  // Small matrices are copied, where that is needed at all, on the stack.
  if (std::max({m_, n_, k_}) <= SmallSize) {
    method_ = Method::Small;
    return;
  }
  if (turned_) plan_turn(b_);
  const bool narrow = is_small_float(dtype_);
  if (!native_ && !narrow) {
    plan_copy(a_, complex_ ? 3 : 1);
    plan_copy(b_, complex_ ? 2 : 1);
  }
  const MatmulLayout& b = b_.layout();
  method_ = turned_ ? Method::Blocks : Method::Panels;
  const bool near = stays_near(m_, n_, k_, size_of_arithmetic(dtype_));
  const bool unpacked = m_ <= UnpackedRows && b.column == 1;
  const bool keeps = keeps_b();
  if (!keeps && !narrow && (unpacked || (near && b.column == 1))) method_ = Method::Blocks;
  // Sums of a few columns stay in registers all along the depth.
  const bool wide = narrow || n_ > PackedColumns || k_ * n_ >= LeastStreamed;
  if (!keeps && unpacked && ((m_ <= FewRows && wide) || is_far())) method_ = Method::Rows;
  // Packing floats of 16 bits turns half as many bytes.
  const std::int64_t dotted = narrow ? FewRows : UnpackedRows;
  if (!keeps && m_ <= dotted && b.column != 1 && b.row == 1 &&
      (narrow || a_.layout().column == 1)) {
    method_ = Method::Dots;
  }
  if (narrow) {
    b_.narrow = true;
    a_.narrow = method_ == Method::Panels;
    if (!a_.narrow) plan_turn(a_);  // few numbers, each of which is read often
  }
  const bool direct = is_native(c_dtype_) && c_.column == 1 && (m_ == 1 || c_.row >= n_);
  if (direct) return;
  c_in_scratch_ = true;
  turns_c_ = native_ && c_dtype_ == dtype_ && !accumulate_ && c_.row == 1;
  c_offset_ = scratch_bytes_;
  const std::int64_t elements = checked_mul(checked_mul(m_, n_), batches_ * (complex_ ? 2 : 1));
  scratch_bytes_ =
      checked_add(scratch_bytes_, aligned(checked_mul(elements, size_of_arithmetic(dtype_))));
}

void MatmulPlan::plan_panels() {
  with_arithmetic(dtype_, [&]<class R>() {
    const PanelKernels<R>& kernels = product_kernels<R>().panels;
    panel_columns_ = rounded_up(n_, kernels.columns);
    packed_at_once_ = rounded_up(quotient_up(LeastPacked, k_), PackedColumns);
    panel_planes_ = complex_ ? 2 : 1;
    panel_elements_ = checked_mul(PanelMaker<R>(dtype_, b_.narrow).places(k_), panel_columns_);
    const std::int64_t size = checked_mul(panel_elements_, panel_planes_);
    panels_.batch.assign(batch_.size(), 0);
    panel_copies_ = 1;
    for (std::size_t i = batch_.size(); i-- > 0;) {
      if (b_.from.batch[i] == 0) continue;
      panels_.batch[i] = checked_mul(size, panel_copies_);
      panel_copies_ = checked_mul(panel_copies_, batch_[i]);
    }
    const bool keeps = keeps_b();
    packs_in_tiles_ = !keeps && !complex_ && panel_copies_ == batches_ && tile_rows_ >= m_;
    panels_offset_ = scratch_bytes_;
    const auto bytes = static_cast<std::int64_t>(sizeof(R));
    const std::int64_t all = packs_in_tiles_ ? 0 : checked_mul(size, panel_copies_);
    std::int64_t& room = keeps ? kept_bytes_ : scratch_bytes_;
    room = checked_add(room, aligned(checked_mul(all, bytes)));
    const std::int64_t strips = quotient_up(tile_rows_, kernels.rows);
    own_panel_ = strips * kernels.strip_elements + rounded_up(kernels.slack, 64);
    const std::int64_t own = packs_in_tiles_ ? StripsTogether * kernels.columns * kernels.depth : 0;
    thread_bytes_ = (own_panel_ + own) * bytes;
  });
}

void MatmulPlan::choose_tiles() {
  tile_rows_ = std::max<std::int64_t>(m_, 1);
  tile_columns_ = std::max<std::int64_t>(n_, 1);
  if (m_ == 0 || n_ == 0 || batches_ == 0) return;
  const std::int64_t depth = std::max<std::int64_t>(k_, 1);
  const std::int64_t work = m_ * n_ * depth;
  if (method_ == Method::Tiny) {
    const std::int64_t each = m_ * k_ + k_ * n_ + m_ * n_ + work / 8;
    tile_batches_ = std::min(rounded_up(TinyTileWork / each, PackedColumns), batches_);
    return;
  }
  const bool streams = method_ == Method::Rows || method_ == Method::Dots;
  if (work <= LeastWork && !(streams && n_ * depth >= LeastStreamed)) {  // several to a tile
    tile_batches_ = std::clamp<std::int64_t>(LeastWork / work, 1, batches_);
    return;
  }
  // Rows of the caller's c are rows here, or columns when the sides are swapped.
  const bool may_cut_rows = !(whole_rows_ && swapped_);
  const bool may_cut_columns = !(whole_rows_ && !swapped_);
  if (streams) return choose_streams(may_cut_columns);
  const std::int64_t parts =
      std::clamp<std::int64_t>(work / TileWork, batches_ > 1 ? 1 : 2, TilesPerMatrix);
  std::int64_t down = 1;
  if (may_cut_rows) {
    down = std::clamp<std::int64_t>(m_ / LeastTileRows, 1, parts);
    tile_rows_ = part_size(m_, down, RowStep, 1);
  }
  if (may_cut_columns && down < parts) {
    const std::int64_t across = std::clamp<std::int64_t>(n_ / LeastTileColumns, 1, parts / down);
    tile_columns_ = part_size(n_, across, PackedColumns, 1);
  }
}

// Will most of B come from memory?
bool MatmulPlan::is_far() const { return k_ * n_ * size_of(dtype_) >= FarBytes; }

// Memory is fastest where it is read in order, many columns of a row at a time. Where there are too
// few for all tiles, tiles take parts of the depth.
void MatmulPlan::choose_streams(bool may_cut_columns) {
  constexpr std::int64_t EnoughNear = 4;  // tiles; adding up parts would cost more than it gains
  const std::int64_t parts = std::min(n_ * k_ / StreamedElements, TilesPerMatrix);
  // Complex numbers take several products, whose parts would have to be kept apart.
  const bool in_order = method_ == Method::Dots || complex_;
  const std::int64_t least = in_order ? 1 : is_far() ? StreamedColumns : NearColumns;
  const std::int64_t across = std::min(parts, n_ / least);
  const std::int64_t enough = is_far() ? parts : std::min(parts, EnoughNear);
  if (may_cut_columns && (in_order || across >= std::max<std::int64_t>(enough / batches_, 1))) {
    tile_columns_ = part_size(n_, across, 64, 64);
    return;
  }
  if (in_order || parts <= 1) return;
  part_depth_ = rounded_up(quotient_up(k_, parts), 8);
  depth_parts_ = quotient_up(k_, part_depth_);
  if (may_cut_columns) tile_columns_ = part_size(n_, across, 64, StreamedColumns);
}

void MatmulPlan::plan_parts() {
  parts_offset_ = scratch_bytes_;
  const std::int64_t elements =
      checked_mul(checked_mul(batches_, depth_parts_), checked_mul(m_, n_));
  scratch_bytes_ =
      checked_add(scratch_bytes_, aligned(checked_mul(elements, size_of_arithmetic(dtype_))));
}

std::int64_t MatmulPlan::pack_tiles() const noexcept {
  if (depth_parts_ > 1) return batches_ * depth_parts_;
  if (method_ != Method::Panels || packs_in_tiles_) return 0;
  return panel_copies_ * panel_planes_ * quotient_up(n_, packed_at_once_);
}

std::int64_t MatmulPlan::prepare_tiles() const noexcept { return copy_tiles(a_) + copy_tiles(b_); }

std::int64_t MatmulPlan::copy_tiles(const Side& side) noexcept {
  return side.copied ? side.copies * copy_parts(side.to, side.rows, side.columns) : 0;
}

std::int64_t MatmulPlan::tiles() const noexcept {
  if (m_ == 0 || n_ == 0 || (k_ == 0 && accumulate_)) return 0;
  return quotient_up(batches_, tile_batches_) * quotient_up(m_, tile_rows_) *
         quotient_up(n_, tile_columns_);
}

MatmulTile MatmulPlan::inner_tile(std::int64_t index) const noexcept {
  const std::int64_t across = quotient_up(n_, tile_columns_);
  const std::int64_t down = quotient_up(m_, tile_rows_);
  const std::int64_t j = index % across;
  const std::int64_t i = index / across % down;
  const std::int64_t batch = index / across / down;
  const auto end = [](std::int64_t at, std::int64_t size, std::int64_t all) {
    return std::min((at + 1) * size, all);
  };
  return {batch * tile_batches_, end(batch, tile_batches_, batches_),
          i * tile_rows_,        end(i, tile_rows_, m_),
          j * tile_columns_,     end(j, tile_columns_, n_)};
}

MatmulTile MatmulPlan::tile(std::int64_t index) const noexcept {
  MatmulTile t = inner_tile(index);
  if (swapped_) {
    std::swap(t.row0, t.column0);
    std::swap(t.row1, t.column1);
  }
  return t;
}

std::int64_t MatmulPlan::offset_of(const MatmulLayout& layout, std::int64_t batch) const {
  std::int64_t offset = 0;
  for (std::size_t i = batch_.size(); i-- > 0;) {
    offset += batch % batch_[i] * layout.batch[i];
    batch /= batch_[i];
  }
  return offset;
}

}  // namespace ricci::cpu
