#include "backend/cpu/structured/matmul.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/structured/matmul_copy.h"
#include "backend/cpu/structured/matmul_panels.h"
#include "backend/cpu/structured/thread_scratch.h"

namespace ricci::cpu {
namespace {

const std::byte* element(DType dtype, const void* data, std::int64_t index) {
  return static_cast<const std::byte*>(data) + index * size_of(dtype);
}
std::byte* element(DType dtype, void* data, std::int64_t index) {
  return static_cast<std::byte*>(data) + index * size_of(dtype);
}

template <class R>
R* in_scratch(void* scratch, std::int64_t bytes) {
  return reinterpret_cast<R*>(static_cast<std::byte*>(scratch) + bytes);
}

}  // namespace

template <class R>
void MatmulPlan::multiply(const MatmulTile& t, const Side& a, const void* a_data, const Side& b,
                          const void* b_data, R* c, std::int64_t c_row, bool accumulate) const {
  if (method_ == Method::Panels) {
    return multiply_panels(t, a, a_data, b_data, c, c_row, accumulate);
  }
  if (depth_parts_ > 1) return add_parts(t, static_cast<const R*>(b_data), c, c_row, accumulate);
  const MatmulLayout& la = a.layout();
  const MatmulLayout& lb = b.layout();
  const Product<R> p{.m = t.row1 - t.row0,
                     .n = t.column1 - t.column0,
                     .k = k_,
                     .a = static_cast<const R*>(a_data) + t.row0 * la.row,
                     .a_row = la.row,
                     .a_column = la.column,
                     .b_row = lb.row,
                     .b_column = lb.column,
                     .c = c,
                     .c_row = c_row,
                     .accumulate = accumulate};
  multiply_unpacked(b, b_data, t.column0 * lb.column, p);
}

// `p` but for its b, which is a side's matrix from element `first` on.
template <class R>
void MatmulPlan::multiply_unpacked(const Side& b, const void* b_data, std::int64_t first,
                                   Product<R> p) const {
  if constexpr (std::is_same_v<R, float>) {
    if (b.narrow) {
      const NarrowKernels& kernels = narrow_kernels(dtype_);
      return (method_ == Method::Rows ? kernels.rows : kernels.dots)(
          {.m = p.m,
           .n = p.n,
           .k = p.k,
           .a = p.a,
           .a_row = p.a_row,
           .a_column = p.a_column,
           .b = static_cast<const std::uint16_t*>(b_data) + first,
           .b_row = p.b_row,
           .b_column = p.b_column,
           .c = p.c,
           .c_row = p.c_row,
           .accumulate = p.accumulate});
    }
  }
  p.b = static_cast<const R*>(b_data) + first;
  const ProductKernels<R>& kernels = product_kernels<R>();
  if (method_ == Method::Rows) return kernels.rows(p);
  if (method_ == Method::Dots) return kernels.dots(p);
  if (!turned_) return kernels.blocks(p);
  // What is read of the turned operand stays in the nearest caches.
  constexpr std::int64_t NearDepth = 256;
  for (std::int64_t k = 0; k < k_; k += NearDepth) {
    Product<R> part = p;
    part.k = std::min(NearDepth, k_ - k);
    part.a += k * part.a_column;
    part.b += k * part.b_row;
    part.accumulate = p.accumulate || k > 0;
    kernels.blocks(part);
  }
}

template <class R>
void MatmulPlan::multiply_panels(const MatmulTile& t, const Side& a, const void* a_data,
                                 const void* b_data, R* c, std::int64_t c_row,
                                 bool accumulate) const {
  const PanelKernels<R>& kernels = product_kernels<R>().panels;
  const PanelMaker<R> panels(dtype_, b_.narrow);
  const MatmulLayout& from = a.layout();
  R* strips = reinterpret_cast<R*>(thread_scratch(thread_bytes_));
  R* own = strips + own_panel_;
  const std::int64_t m = t.row1 - t.row0;
  for (std::int64_t k = 0; k < k_; k += panels.depth()) {
    const std::int64_t depth = std::min(panels.depth(), k_ - k);
    const std::int64_t places = panels.places(depth);
    panels.pack_rows(a_data, from, t.row0, k, m, depth, strips);
    const auto multiply = [&](std::int64_t n0, std::int64_t n1, const R* packed) {
      panels.multiply({.m = m,
                       .n = n1 - n0,
                       .depth = places,
                       .a = strips,
                       .a_as_rows = from.column == 1,
                       .b = packed,
                       .c = c + n0 - t.column0,
                       .c_row = c_row,
                       .accumulate = accumulate || k > 0});
    };
    if (!packs_in_tiles_) {
      const std::int64_t before = panels.places(k) * panel_columns_ + t.column0 * places;
      multiply(t.column0, t.column1, static_cast<const R*>(b_data) + before);
      continue;
    }
    const std::int64_t together = StripsTogether * kernels.columns;
    for (std::int64_t n = t.column0; n < t.column1; n += together) {
      const std::int64_t end = std::min(n + together, t.column1);
      panels.pack_columns(b_data, b_.layout(), k, n, end - n, depth, own);
      multiply(n, end, own);
    }
  }
}

// Sums over one part of the depth.
template <class R>
void MatmulPlan::multiply_part(std::int64_t index, const void* a, const void* b,
                               void* scratch) const {
  const std::int64_t batch = index / depth_parts_;
  const std::int64_t k = index % depth_parts_ * part_depth_;
  const MatmulLayout& la = a_.layout();
  const MatmulLayout& lb = b_.layout();
  const Product<R> p{.m = m_,
                     .n = n_,
                     .k = std::min(part_depth_, k_ - k),
                     .a = static_cast<const R*>(matrix<R>(a_, batch, a, scratch)) + k * la.column,
                     .a_row = la.row,
                     .a_column = la.column,
                     .b_row = lb.row,
                     .b_column = lb.column,
                     .c = in_scratch<R>(scratch, parts_offset_) + index * m_ * n_,
                     .c_row = n_};
  multiply_unpacked(b_, matrix<R>(b_, batch, b, scratch), k * lb.row, p);
}

template <class R>
void MatmulPlan::add_parts(const MatmulTile& t, const R* parts, R* c, std::int64_t c_row,
                           bool accumulate) const {
  const std::int64_t columns = t.column1 - t.column0;
  for (std::int64_t i = t.row0; i < t.row1; ++i, c += c_row) {
    if (!accumulate) std::fill_n(c, columns, R{});
    for (std::int64_t part = 0; part < depth_parts_; ++part) {
      const R* from = parts + (part * m_ + i) * n_ + t.column0;
      for (std::int64_t j = 0; j < columns; ++j) c[j] = static_cast<R>(c[j] + from[j]);
    }
  }
}

template <class R>
const void* MatmulPlan::matrix(const Side& side, std::int64_t batch, const void* data,
                               void* scratch) const {
  const std::int64_t at = offset_of(side.layout(), batch);
  if (side.copied) return in_scratch<R>(scratch, side.offset) + at;
  return element(dtype_, data, at);
}

template <class R>
R* MatmulPlan::panels(MatmulMemory memory) const {
  return kept_bytes_ != 0 ? static_cast<R*>(memory.panels)
                          : in_scratch<R>(memory.scratch, panels_offset_);
}

template <class R>
void MatmulPlan::run_matrix(const MatmulTile& t, std::int64_t batch, const void* a, const void* b,
                            void* c, MatmulMemory memory) const {
  void* const scratch = memory.scratch;
  const bool packed = method_ == Method::Panels && !packs_in_tiles_;
  const void* given = matrix<R>(a_, batch, a, scratch);
  const void* met = matrix<R>(b_, batch, b, scratch);
  if (packed) met = panels<R>(memory) + offset_of(panels_, batch);
  if (depth_parts_ > 1) {
    met = in_scratch<R>(scratch, parts_offset_) + batch * depth_parts_ * m_ * n_;
  }
  const std::int64_t c_first = offset_of(c_, batch) + t.row0 * c_.row + t.column0 * c_.column;
  if (!c_in_scratch_) {
    multiply<R>(t, a_, given, b_, met, static_cast<R*>(c) + c_first, c_.row, accumulate_);
    return;
  }
  const std::int64_t plane = m_ * n_;
  R* z = in_scratch<R>(scratch, c_offset_) + batch * plane * (complex_ ? 2 : 1) + t.row0 * n_ +
         t.column0;
  multiply<R>(t, a_, given, b_, met, z, n_, false);
  if (complex_) {  // (x + ix')(y + iy') = xy + (-x')y' + i(xy' + x'y)
    const auto* x = static_cast<const R*>(given);
    const auto* y = static_cast<const R*>(met);
    const R* y_imaginary = y + (packed ? panel_elements_ : b_.plane);
    multiply<R>(t, a_, x + 2 * a_.plane, b_, y_imaginary, z, n_, true);
    multiply<R>(t, a_, x, b_, y_imaginary, z + plane, n_, false);
    multiply<R>(t, a_, x + a_.plane, b_, y, z + plane, n_, true);
  }
  if (turns_c_) {
    return product_kernels<R>().panels.turn(z, n_, t.row1 - t.row0, t.column1 - t.column0,
                                            static_cast<R*>(c) + c_first, c_.column,
                                            t.row1 - t.row0);
  }
  const MatrixAt at{t.row1 - t.row0, t.column1 - t.column0, c_.row, c_.column};
  scatter<R>(c_dtype_, z, n_, plane, element(c_dtype_, c, c_first), at, accumulate_);
}

// Stretches of the last batch axis.
template <class R>
void MatmulPlan::run_tiny(const MatmulTile& t, const void* a, const void* b, void* c) const {
  const std::int64_t numbers = complex_ ? 2 : 1;
  const std::int64_t axis = batch_.back();
  const auto matrices = [&]<class N>(const MatmulLayout& l, N* data, std::int64_t batch) {
    return TinyMatrices<N>{data + numbers * offset_of(l, batch), numbers * l.batch.back(),
                           numbers * l.row, numbers * l.column};
  };
  for (std::int64_t batch = t.batch0; batch < t.batch1;) {
    const std::int64_t count = std::min(axis - batch % axis, t.batch1 - batch);
    product_kernels<R>().tiny({.count = count,
                               .m = m_,
                               .n = n_,
                               .k = k_,
                               .a = matrices(a_.from, static_cast<const R*>(a), batch),
                               .b = matrices(b_.from, static_cast<const R*>(b), batch),
                               .c = matrices(c_, static_cast<R*>(c), batch),
                               .accumulate = accumulate_,
                               .complex = complex_});
    batch += count;
  }
}

template <class R>
void MatmulPlan::run_small(std::int64_t batch, const void* a, const void* b, void* c) const {
  constexpr std::int64_t Plane = std::int64_t{32} * 32;
  const MatmulTile whole{batch, batch + 1, 0, m_, 0, n_};
  const void* from_a = element(dtype_, a, offset_of(a_.from, batch));
  const void* from_b = element(dtype_, b, offset_of(b_.from, batch));
  void* to = element(c_dtype_, c, offset_of(c_, batch));
  const bool direct_c = !complex_ && size_of(c_dtype_) == std::int64_t{sizeof(R)} && c_.column == 1;
  alignas(64) R held[7 * Plane];
  // Strides only: copies of whole sides would allocate.
  Side x{.from = {{}, a_.from.row, a_.from.column}};
  Side y{.from = {{}, b_.from.row, b_.from.column}};
  const R* x_data = static_cast<const R*>(from_a);
  const R* y_data = static_cast<const R*>(from_b);
  if (!native_) {
    gather<R>(dtype_, from_a, {m_, k_, a_.from.row, a_.from.column}, held, k_, Plane, complex_);
    x.from.row = k_;
    x.from.column = 1;
    x_data = held;
  }
  if (!native_ || b_.from.column != 1) {
    R* copy = held + 3 * Plane;
    gather<R>(dtype_, from_b, {k_, n_, b_.from.row, b_.from.column}, copy, n_, Plane, false);
    y.from.row = n_;
    y.from.column = 1;
    y_data = copy;
  }
  if (direct_c) {
    return multiply<R>(whole, x, x_data, y, y_data, static_cast<R*>(to), c_.row, accumulate_);
  }
  R* z = held + 5 * Plane;
  multiply<R>(whole, x, x_data, y, y_data, z, n_, false);
  if (complex_) {
    multiply<R>(whole, x, x_data + 2 * Plane, y, y_data + Plane, z, n_, true);
    multiply<R>(whole, x, x_data, y, y_data + Plane, z + Plane, n_, false);
    multiply<R>(whole, x, x_data + Plane, y, y_data, z + Plane, n_, true);
  }
  scatter<R>(c_dtype_, z, n_, Plane, to, {m_, n_, c_.row, c_.column}, accumulate_);
}

void MatmulPlan::fill(const MatmulTile& t, std::int64_t batch, void* c) const {
  const auto size = static_cast<std::size_t>(size_of(c_dtype_));
  for (std::int64_t i = t.row0; i < t.row1; ++i) {
    const std::int64_t row = offset_of(c_, batch) + i * c_.row;
    for (std::int64_t j = t.column0; j < t.column1; ++j) {
      std::memset(element(c_dtype_, c, row + j * c_.column), 0, size);
    }
  }
}

template <class R>
void MatmulPlan::copy_part(const Side& side, std::int64_t part, const void* from,
                           void* scratch) const {
  const bool by_columns = side.to.column != 1;
  const std::int64_t stored_rows = by_columns ? side.columns : side.rows;
  const std::int64_t stored_columns = by_columns ? side.rows : side.columns;
  const std::int64_t parts = copy_parts(side.to, side.rows, side.columns);
  std::int64_t copy = part / parts;
  const std::int64_t first = part % parts * RowsPerCopy;
  std::int64_t source = 0;
  std::int64_t target = 0;
  for (std::size_t i = batch_.size(); i-- > 0;) {
    if (side.from.batch[i] == 0) continue;
    source += copy % batch_[i] * side.from.batch[i];
    target += copy % batch_[i] * side.to.batch[i];
    copy /= batch_[i];
  }
  if (turned_) {
    return turn_part<R>(first, static_cast<const R*>(from) + source,
                        in_scratch<R>(scratch, side.offset) + target);
  }
  const std::int64_t row_step = by_columns ? side.from.column : side.from.row;
  const MatrixAt at{std::min(RowsPerCopy, stored_rows - first), stored_columns, row_step,
                    by_columns ? side.from.row : side.from.column};
  gather<R>(dtype_, element(dtype_, from, source + first * row_step), at,
            in_scratch<R>(scratch, side.offset) + target + first * stored_columns, stored_columns,
            side.plane, &side == &a_);
}

// Rows of the turned operand, from `first` on.
template <class R>
void MatmulPlan::turn_part(std::int64_t first, const R* from, R* to) const {
  product_kernels<R>().panels.turn(from + first, b_.from.column, b_.columns,
                                   std::min(RowsPerCopy, b_.rows - first), to + first * b_.columns,
                                   b_.columns, b_.columns);
}

void MatmulPlan::prepare_tile(std::int64_t tile, const void* a, const void* b,
                              void* scratch) const {
  const std::int64_t of_a = copy_tiles(a_);
  const bool first = tile < of_a;
  // With the sides swapped, the caller's b is our a.
  const void* from = first != swapped_ ? a : b;
  with_arithmetic(dtype_, [&]<class R>() {
    copy_part<R>(first ? a_ : b_, first ? tile : tile - of_a, from, scratch);
  });
}

void MatmulPlan::pack_tile(std::int64_t tile, const void* a, const void* b,
                           MatmulMemory memory) const {
  if (swapped_) std::swap(a, b);
  with_arithmetic(dtype_, [&]<class R>() {
    if (depth_parts_ > 1) return multiply_part<R>(tile, a, b, memory.scratch);
    pack_columns<R>(tile, b, memory);
  });
}

template <class R>
void MatmulPlan::pack_columns(std::int64_t index, const void* b, MatmulMemory memory) const {
  const std::int64_t parts = (n_ + packed_at_once_ - 1) / packed_at_once_;
  const std::int64_t first = index % parts * packed_at_once_;
  const std::int64_t columns = std::min(packed_at_once_, n_ - first);
  const std::int64_t plane = index / parts % panel_planes_;
  // The first batch that uses this copy.
  std::int64_t copy = index / parts / panel_planes_;
  std::int64_t batch = 0;
  std::int64_t step = 1;
  for (std::size_t i = batch_.size(); i-- > 0;) {
    if (panels_.batch[i] != 0) {
      batch += copy % batch_[i] * step;
      copy /= batch_[i];
    }
    step *= batch_[i];
  }
  const PanelMaker<R> maker(dtype_, b_.narrow);
  const void* source = matrix<R>(b_, batch, b, memory.scratch);
  if (plane > 0) source = static_cast<const R*>(source) + plane * b_.plane;
  R* to = panels<R>(memory) + offset_of(panels_, batch) + plane * panel_elements_;
  for (std::int64_t k = 0; k < k_; k += maker.depth()) {
    const std::int64_t depth = std::min(maker.depth(), k_ - k);
    maker.pack_columns(source, b_.layout(), k, first, columns, depth,
                       to + maker.places(k) * panel_columns_ + first * maker.places(depth));
  }
}

void MatmulPlan::run_tile(std::int64_t index, const void* a, const void* b, void* c,
                          MatmulMemory memory) const {
  if (swapped_) std::swap(a, b);
  const MatmulTile t = inner_tile(index);
  with_arithmetic(dtype_, [&]<class R>() {
    if (method_ == Method::Tiny) return run_tiny<R>(t, a, b, c);
    for (std::int64_t batch = t.batch0; batch < t.batch1; ++batch) {
      if (method_ == Method::Fill) {
        fill(t, batch, c);
      } else if (method_ == Method::Small) {
        run_small<R>(batch, a, b, c);
      } else {
        run_matrix<R>(t, batch, a, b, c, memory);
      }
    }
  });
}

}  // namespace ricci::cpu
