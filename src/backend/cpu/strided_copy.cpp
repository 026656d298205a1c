// A copy is brought into a normal form first: axes in the order of dst's memory, neighbours that
// are one run in both arrays merged. What is left is rows that lie side by side (memcpy), planes
// that change places (blocked transpose), or rows with a stride.
#include "backend/cpu/strided_copy.h"

#include <algorithm>
#include <array>
#include <cstring>
#ifdef __SSE2__
#include <immintrin.h>
#endif

#include "backend/cpu/host/parallel.h"

namespace ricci::cpu {
namespace {

constexpr std::size_t MostAxes = 64;  // of size 2 or more: there are no larger arrays
constexpr std::int64_t TileBytes = 1 << 17;
constexpr std::int64_t PlaneBlock = 32;

struct CopyAxis {
  std::int64_t size;
  std::int64_t dst;  // strides, in elements
  std::int64_t src;
};

struct CopyPlan {
  std::array<CopyAxis, MostAxes> axes;
  std::size_t rank = 0;
  std::byte* dst;
  const std::byte* src;
  std::int64_t element_size;
  bool empty = false;

  CopyPlan(const ArrayView& to, const ArrayView& from)
      : dst(to.data), src(from.data), element_size(size_of(to.dtype)) {
    for (std::size_t a = 0; a < to.dims.size(); ++a)
      add({to.dims[a], to.strides[a], from.strides[a]});
    std::stable_sort(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(rank),
                     [](const CopyAxis& a, const CopyAxis& b) { return a.dst > b.dst; });
    merge();
  }

  void take_out(std::size_t a) {
    std::copy(axes.begin() + static_cast<std::ptrdiff_t>(a) + 1,
              axes.begin() + static_cast<std::ptrdiff_t>(rank),
              axes.begin() + static_cast<std::ptrdiff_t>(a));
    --rank;
  }

 private:
  void add(CopyAxis axis) {
    if (axis.size == 0) empty = true;
    if (axis.size <= 1) return;
    if (axis.dst < 0) {  // walk the axis from its other end
      dst += (axis.size - 1) * axis.dst * element_size;
      src += (axis.size - 1) * axis.src * element_size;
      axis.dst = -axis.dst;
      axis.src = -axis.src;
    }
    axes[rank++] = axis;
  }

  void merge() {
    for (std::size_t a = rank; a-- > 1;) {
      CopyAxis& outer = axes[a - 1];
      const CopyAxis& inner = axes[a];
      if (outer.dst != inner.dst * inner.size || outer.src != inner.src * inner.size) continue;
      outer = {outer.size * inner.size, inner.dst, inner.src};
      take_out(a);
    }
  }
};

// Walks the outer axes of a plan in row-major order.
class Walk {
 public:
  Walk(const CopyPlan& plan, std::size_t rank, std::int64_t start) : plan_(plan), rank_(rank) {
    for (std::size_t a = rank; a-- > 0;) {
      index_[a] = start % plan.axes[a].size;
      start /= plan.axes[a].size;
      dst_ += index_[a] * plan.axes[a].dst;
      src_ += index_[a] * plan.axes[a].src;
    }
  }
  void next() {
    for (std::size_t a = rank_; a-- > 0;) {
      const CopyAxis& axis = plan_.axes[a];
      dst_ += axis.dst;
      src_ += axis.src;
      if (++index_[a] < axis.size) return;
      index_[a] = 0;
      dst_ -= axis.size * axis.dst;
      src_ -= axis.size * axis.src;
    }
  }
  [[nodiscard]] std::int64_t dst() const { return dst_; }
  [[nodiscard]] std::int64_t src() const { return src_; }

 private:
  const CopyPlan& plan_;
  std::size_t rank_;
  std::array<std::int64_t, MostAxes> index_;
  std::int64_t dst_ = 0;
  std::int64_t src_ = 0;
};

std::int64_t outer_count(const CopyPlan& plan, std::size_t rank) {
  std::int64_t count = 1;
  for (std::size_t a = 0; a < rank; ++a) count *= plan.axes[a].size;
  return count;
}

template <class E>
void copy_row(E* dst, std::int64_t dst_stride, const E* src, std::int64_t src_stride,
              std::int64_t count) {
  if (dst_stride == 1 && src_stride == 1) {
    std::memcpy(dst, src, static_cast<std::size_t>(count) * sizeof(E));
  } else if (dst_stride == 1 && src_stride == 0) {
    std::fill_n(dst, count, *src);
  } else if (dst_stride == 1) {
    for (std::int64_t i = 0; i < count; ++i) dst[i] = src[i * src_stride];
  } else {
    for (std::int64_t i = 0; i < count; ++i) dst[i * dst_stride] = src[i * src_stride];
  }
}

// Rows along the last axis; long ones are cut, so that few rows still feed all threads.
template <class E>
void copy_rows(const CopyPlan& plan, ThreadPool& pool) {
  const std::size_t outer = plan.rank - 1;
  const CopyAxis& row = plan.axes[outer];
  const std::int64_t piece = std::min(row.size, TileBytes / static_cast<std::int64_t>(sizeof(E)));
  const std::int64_t pieces = (row.size + piece - 1) / piece;
  const std::int64_t tile =
      std::max<std::int64_t>(1, TileBytes / (piece * static_cast<std::int64_t>(sizeof(E))));
  auto* dst = reinterpret_cast<E*>(plan.dst);
  const auto* src = reinterpret_cast<const E*>(plan.src);
  parallel_for(
      pool, outer_count(plan, outer) * pieces, tile, [&](std::int64_t begin, std::int64_t end) {
        Walk at(plan, outer, begin / pieces);
        std::int64_t part = begin % pieces;
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t first = part * piece;
          copy_row(dst + at.dst() + first * row.dst, row.dst, src + at.src() + first * row.src,
                   row.src, std::min(piece, row.size - first));
          if (++part == pieces) {
            part = 0;
            at.next();
          }
        }
      });
}

template <class E>
void transpose_scalars(E* dst, std::int64_t dst_stride, const E* src, std::int64_t src_stride,
                       std::int64_t rows, std::int64_t columns) {
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) dst[i * dst_stride + j] = src[i + j * src_stride];
  }
}

// dst[i, j] = src[j, i] of one block; rows of dst and columns of src are contiguous.
template <class E>
void transpose_block(E* dst, std::int64_t dst_stride, const E* src, std::int64_t src_stride,
                     std::int64_t rows, std::int64_t columns) {
#ifdef __SSE2__
  if constexpr (sizeof(E) == 4) {
    const std::int64_t whole_rows = rows / 4 * 4;
    const std::int64_t whole_columns = columns / 4 * 4;
    const auto load = [&](std::int64_t i, std::int64_t j) {
      return _mm_loadu_ps(reinterpret_cast<const float*>(src + i + j * src_stride));
    };
    const auto store = [&](std::int64_t i, std::int64_t j, __m128 v) {
      _mm_storeu_ps(reinterpret_cast<float*>(dst + i * dst_stride + j), v);
    };
    for (std::int64_t i = 0; i < whole_rows; i += 4) {
      for (std::int64_t j = 0; j < whole_columns; j += 4) {
        __m128 a = load(i, j);
        __m128 b = load(i, j + 1);
        __m128 c = load(i, j + 2);
        __m128 d = load(i, j + 3);
        _MM_TRANSPOSE4_PS(a, b, c, d);
        store(i, j, a);
        store(i + 1, j, b);
        store(i + 2, j, c);
        store(i + 3, j, d);
      }
    }
    transpose_scalars(dst + whole_columns, dst_stride, src + whole_columns * src_stride, src_stride,
                      whole_rows, columns - whole_columns);
    transpose_scalars(dst + whole_rows * dst_stride, dst_stride, src + whole_rows, src_stride,
                      rows - whole_rows, columns);
    return;
  }
#endif
  transpose_scalars(dst, dst_stride, src, src_stride, rows, columns);
}

// Planes of the axis that is contiguous in src (`across`) and the last one, contiguous in dst.
template <class E>
void copy_planes(CopyPlan plan, std::size_t across, ThreadPool& pool) {
  const CopyAxis q = plan.axes[across];
  const CopyAxis p = plan.axes[plan.rank - 1];
  plan.take_out(across);
  const std::size_t outer = plan.rank - 1;
  const std::int64_t q_blocks = (q.size + PlaneBlock - 1) / PlaneBlock;
  const std::int64_t p_blocks = (p.size + PlaneBlock - 1) / PlaneBlock;
  const std::int64_t tile =
      TileBytes / (PlaneBlock * PlaneBlock * static_cast<std::int64_t>(sizeof(E)));
  auto* dst = reinterpret_cast<E*>(plan.dst);
  const auto* src = reinterpret_cast<const E*>(plan.src);
  const std::int64_t blocks = q_blocks * p_blocks;
  parallel_for(
      pool, outer_count(plan, outer) * blocks, tile, [&](std::int64_t begin, std::int64_t end) {
        Walk at(plan, outer, begin / blocks);
        std::int64_t block = begin % blocks;
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t i0 = block / p_blocks * PlaneBlock;
          const std::int64_t j0 = block % p_blocks * PlaneBlock;
          transpose_block(dst + at.dst() + i0 * q.dst + j0, q.dst, src + at.src() + i0 + j0 * p.src,
                          p.src, std::min(PlaneBlock, q.size - i0),
                          std::min(PlaneBlock, p.size - j0));
          if (++block == blocks) {
            block = 0;
            at.next();
          }
        }
      });
}

template <class E>
void copy_elements(const CopyPlan& plan, ThreadPool& pool) {
  if (plan.rank == 0) {
    std::memcpy(plan.dst, plan.src, sizeof(E));
    return;
  }
  const CopyAxis& last = plan.axes[plan.rank - 1];
  if (last.dst == 1 && last.src != 1 && last.src != 0) {
    for (std::size_t a = plan.rank - 1; a-- > 0;) {
      if (plan.axes[a].src == 1) return copy_planes<E>(plan, a, pool);
    }
  }
  copy_rows<E>(plan, pool);
}

struct Bytes16 {
  std::uint64_t low;
  std::uint64_t high;
};

}  // namespace

void copy_strided(const ArrayView& dst, const ArrayView& src, ThreadPool& pool) {
  const CopyPlan plan(dst, src);
  if (plan.empty) return;
  switch (plan.element_size) {
    case 1: return copy_elements<std::uint8_t>(plan, pool);
    case 2: return copy_elements<std::uint16_t>(plan, pool);
    case 4: return copy_elements<std::uint32_t>(plan, pool);
    case 8: return copy_elements<std::uint64_t>(plan, pool);
    default: return copy_elements<Bytes16>(plan, pool);
  }
}

}  // namespace ricci::cpu
