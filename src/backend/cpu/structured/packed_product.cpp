#include "backend/cpu/structured/packed_product.h"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "backend/cpu/structured/thread_scratch.h"
#include "support/align.h"

namespace ricci::cpu {
namespace {

// From so many rows on it pays to bring pieces into the order of packed products.
constexpr std::int64_t FewPackedRows = 8;
// Rows that the kernels for few take at once.
constexpr std::int64_t AtOnce = 4;

template <class T>
const ProductKernels<T>& sums_in() {
  if constexpr (sizeof(T) == 8) {
    return vector_kernels().f64;
  } else {
    return vector_kernels().f32;
  }
}

// Rows of a piece that lie whole pages apart would compete for the same lines of the cache.
constexpr std::int64_t RowGap = 16;

std::int64_t whole_units(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }

}  // namespace

// A piece of the weight: columns [column0, column1) of y, and of the depth [k0, k1).
template <class T>
struct PackedProductPlan<T>::Tile {
  std::int64_t column0 = 0;
  std::int64_t column1 = 0;
  std::int64_t k0 = 0;
  std::int64_t k1 = 0;
  const T* piece = nullptr;
};

// The geometry decides how it is cut, never the number of threads.
template <class T>
PackedProductPlan<T>::PackedProductPlan(const PackedShape& shape)
    : shape_(shape),
      along_rows_(StoredWeight::rows_are_outputs(shape.scheme) != shape.transposed),
      panels_(shape.rows > FewPackedRows) {
  constexpr auto Size = static_cast<std::int64_t>(sizeof(T));
  const std::int64_t unit =
      shape.scheme.is_packed() ? quant::info(shape.scheme.format).block_length : 1;
  const PanelKernels<T>& p = sums_in<T>().panels;
  if (panels_ && along_rows_) {
    width_ = p.columns;
    chunk_ = p.depth;  // whole blocks, with room in the second cache
    while (chunk_ % unit != 0) chunk_ += p.depth;
    chunk_ *= std::max<std::int64_t>(1, 4 * p.depth / chunk_);
  } else if (panels_) {
    // Enough of each row to read memory in runs, where that leaves enough tiles.
    const std::int64_t strips = std::clamp<std::int64_t>(shape.columns() / (16 * p.columns), 1, 4);
    width_ = whole_units(strips * p.columns, unit);
    chunk_ = p.depth;
  } else if (along_rows_) {
    width_ = 12;
    chunk_ = whole_units(512, unit);
  } else {
    width_ = whole_units(1024, unit);
    chunk_ = 8;
  }
  if (std::is_same_v<T, float> && shape.rows <= AtOnce && !shape.transposed) {
    direct_ = along_rows_ ? StoredWeight::has_dots(shape.scheme)
                          : StoredWeight::has_row_sums(shape.scheme);
    if (direct_) width_ = along_rows_ ? 32 : 1024;
  }
  const std::int64_t strips = (shape.rows + p.rows - 1) / p.rows;
  strip_room_ = whole_units(strips * p.strip_elements + p.slack, 16);
  const std::int64_t blocks = (shape.depth() + p.depth - 1) / p.depth;
  if (direct_) scratch_bytes_ = aligned(shape.rows * (shape.depth() / 16 + 1) * Size);
  if (panels_) scratch_bytes_ = aligned(blocks * strip_room_ * Size);
  stride_ = along_rows_ ? chunk_ + RowGap : width_;
  piece_ = (along_rows_ ? width_ : chunk_) * stride_;
  const std::int64_t strip = panels_ ? whole_units(width_, p.columns) * p.depth : 0;
  thread_bytes_ = (piece_ + strip) * Size;
  // Weights are floats before they are anything else.
  if (sizeof(T) != sizeof(float)) thread_bytes_ += std::max(width_, chunk_) * 4;
}

template <class T>
std::int64_t PackedProductPlan<T>::orders() const {
  if (tiles() == 0 || shape_.depth() == 0) return 0;
  if (direct_) return along_rows_ ? shape_.rows : 0;
  const std::int64_t block = sums_in<T>().panels.depth;
  return panels_ ? (shape_.depth() + block - 1) / block : 0;
}

template <class T>
std::int64_t PackedProductPlan<T>::tiles() const {
  return shape_.rows == 0 ? 0 : (shape_.columns() + width_ - 1) / width_;
}

template <class T>
void PackedProductPlan<T>::order(std::int64_t part, const T* x, T* to) const {
  const std::int64_t depth = shape_.depth();
  if constexpr (std::is_same_v<T, float>) {
    if (direct_) {
      const float* row = x + part * depth;
      return vector_kernels().packed.sum_sixteens(row, depth, to + part * (depth / 16));
    }
  }
  const PanelKernels<T>& p = sums_in<T>().panels;
  const std::int64_t k = part * p.depth;
  p.pack_rows(x + k, depth, 1, shape_.rows, std::min(p.depth, depth - k), to + part * strip_room_);
}

template <class T>
void PackedProductPlan<T>::run_part(std::int64_t tile, const T* x, const StoredWeight& weight, T* y,
                                    const T* ordered) const {
  if (shape_.depth() == 0) {
    const std::int64_t columns = std::min(width_, shape_.columns() - tile * width_);
    for (std::int64_t m = 0; m < shape_.rows; ++m) {
      std::fill_n(y + m * shape_.columns() + tile * width_, columns, T(0));
    }
    return;
  }
  if constexpr (std::is_same_v<T, float>) {
    if (direct_) return run_direct(tile, x, weight, y, ordered);
  }
  run_tile(tile, x, weight, y, ordered);
}

template <class T>
void PackedProductPlan<T>::run(ThreadPool& pool, const T* x, const StoredWeight& weight, T* y,
                               std::byte* scratch) const {
  auto* ordered = reinterpret_cast<T*>(scratch);
  pool.run(orders(), [&](std::int64_t part) { order(part, x, ordered); });
  pool.run(tiles(), [&](std::int64_t tile) { run_part(tile, x, weight, y, ordered); });
}

template <class T>
void PackedProductPlan<T>::run_all(ThreadPool& pool, std::span<const Call> calls) {
  const auto each = [&](auto&& count, auto&& f) {
    std::vector<std::int64_t> ends;
    std::int64_t all = 0;
    for (const Call& c : calls) ends.push_back(all += count(c.plan));
    pool.run(all, [&](std::int64_t part) {
      const auto which = std::ranges::upper_bound(ends, part) - ends.begin();
      const Call& c = calls[static_cast<std::size_t>(which)];
      const std::int64_t first = which == 0 ? 0 : ends[static_cast<std::size_t>(which) - 1];
      f(c, part - first, reinterpret_cast<T*>(c.scratch));
    });
  };
  each([](const PackedProductPlan& p) { return p.orders(); },
       [](const Call& c, std::int64_t part, T* room) { c.plan.order(part, c.x, room); });
  each([](const PackedProductPlan& p) { return p.tiles(); },
       [](const Call& c, std::int64_t tile, T* room) {
         c.plan.run_part(tile, c.x, c.weight, c.y, room);
       });
}

template <class T>
void PackedProductPlan<T>::run_direct(std::int64_t tile, const float* x, const StoredWeight& weight,
                                      float* y, const float* sums) const {
  const std::int64_t depth = shape_.depth();
  const std::int64_t columns = shape_.columns();
  const std::int64_t first = tile * width_;
  const std::int64_t last = std::min(columns, first + width_);
  if (!along_rows_) {
    auto* part = reinterpret_cast<float*>(thread_scratch(thread_bytes_));
    for (std::int64_t m = 0; m < shape_.rows; ++m) {
      weight.add_rows(x + m * depth, first, last, part, y + m * columns + first);
    }
    return;
  }
  for (std::int64_t m = 0; m < shape_.rows; ++m) {
    weight.dots(first, last, x + m * depth, sums + m * (depth / 16), y + m * columns + first);
  }
}

// Can rows be decoded to where packed products want them, strip by strip?
template <class T>
bool PackedProductPlan<T>::has_strips(const Tile& t) const {
  const std::int64_t columns = sums_in<T>().panels.columns;
  return std::is_same_v<T, float> && panels_ && !along_rows_ && !shape_.scheme.is_packed() &&
         (t.column1 - t.column0) % columns == 0 && columns % 2 == 0;
}

// A few rows at a time: then memory is still read in runs.
template <class T>
void PackedProductPlan<T>::decode_strips(const Tile& t, const StoredWeight& weight,
                                         float* piece) const {
  constexpr std::int64_t Few = 8;
  const std::int64_t width = sums_in<T>().panels.columns;
  const std::int64_t depth = t.k1 - t.k0;
  for (std::int64_t k = t.k0; k < t.k1; k += Few) {
    for (std::int64_t n = t.column0; n < t.column1; n += width) {
      weight.decode(k, std::min(k + Few, t.k1), n, n + width,
                    piece + (n - t.column0) * depth + (k - t.k0) * width, width);
    }
  }
}

// The weight's part of a tile, as its rows have it, or in strips.
template <class T>
void PackedProductPlan<T>::decode(const Tile& t, const StoredWeight& weight, T* piece) const {
  const std::int64_t row0 = along_rows_ ? t.column0 : t.k0;
  const std::int64_t row1 = along_rows_ ? t.column1 : t.k1;
  const std::int64_t column0 = along_rows_ ? t.k0 : t.column0;
  const std::int64_t column1 = along_rows_ ? t.k1 : t.column1;
  if constexpr (std::is_same_v<T, float>) {
    if (has_strips(t)) return decode_strips(t, weight, piece);
    weight.decode(row0, row1, column0, column1, piece, stride_);
  } else {
    auto* row = reinterpret_cast<float*>(reinterpret_cast<std::byte*>(piece) + thread_bytes_ -
                                         std::max(width_, chunk_) * 4);
    for (std::int64_t r = row0; r < row1; ++r) {
      weight.decode(r, r + 1, column0, column1, row, stride_);
      std::copy_n(row, column1 - column0, piece + (r - row0) * stride_);
    }
  }
}

template <class T>
void PackedProductPlan<T>::run_tile(std::int64_t tile, const T* x, const StoredWeight& weight, T* y,
                                    const T* packed_x) const {
  auto* piece = reinterpret_cast<T*>(thread_scratch(thread_bytes_));
  Tile t{.column0 = tile * width_,
         .column1 = std::min(shape_.columns(), (tile + 1) * width_),
         .piece = piece};
  const std::int64_t depth = shape_.depth();
  for (t.k0 = 0; t.k0 < depth; t.k0 += chunk_) {
    t.k1 = std::min(depth, t.k0 + chunk_);
    decode(t, weight, piece);
    panels_ ? multiply_panels(t, packed_x, y) : multiply_few(t, x, y);
  }
}

template <class T>
void PackedProductPlan<T>::multiply_few(const Tile& t, const T* x, T* y) const {
  const ProductKernels<T>& kernels = sums_in<T>();
  for (std::int64_t m = 0; m < shape_.rows; m += AtOnce) {
    Product<T> p{.m = std::min(AtOnce, shape_.rows - m),
                 .n = t.column1 - t.column0,
                 .k = t.k1 - t.k0,
                 .a = x + m * shape_.depth() + t.k0,
                 .a_row = shape_.depth(),
                 .a_column = 1,
                 .b = t.piece,
                 .b_row = along_rows_ ? 1 : stride_,
                 .b_column = along_rows_ ? stride_ : 1,
                 .c = y + m * shape_.columns() + t.column0,
                 .c_row = shape_.columns(),
                 .accumulate = t.k0 > 0};
    along_rows_ ? kernels.dots(p) : kernels.rows(p);
  }
}

template <class T>
void PackedProductPlan<T>::multiply_panels(const Tile& t, const T* packed_x, T* y) const {
  const PanelKernels<T>& p = sums_in<T>().panels;
  T* strip = const_cast<T*>(t.piece) + piece_;
  const std::int64_t columns = t.column1 - t.column0;
  for (std::int64_t k = t.k0; k < t.k1; k += p.depth) {
    const std::int64_t depth = std::min(p.depth, t.k1 - k);
    const std::int64_t from = k - t.k0;
    const bool in_strips = has_strips(t);
    if (along_rows_) {
      p.pack_columns(t.piece + from, 1, stride_, columns, depth, strip);
    } else if (!in_strips) {
      p.pack_columns(t.piece + from * stride_, stride_, 1, columns, depth, strip);
    }
    p.multiply({.m = shape_.rows,
                .n = columns,
                .depth = depth,
                .a = packed_x + k / p.depth * strip_room_,
                .a_as_rows = true,
                .b = in_strips ? t.piece : strip,
                .c = y + t.column0,
                .c_row = shape_.columns(),
                .accumulate = k > 0});
  }
}

template class PackedProductPlan<float>;
template class PackedProductPlan<double>;

}  // namespace ricci::cpu
