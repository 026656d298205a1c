// A copy is brought into a normal form first: axes in the order of dst's memory, neighbours that
// are one run in both arrays merged. What is left is rows that lie side by side (memcpy), planes
// that change places (blocked transpose), or rows with a stride.
#include "backend/cpu/structured/strided_copy.h"

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
    std::sort(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(rank),
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

// Blocks are a cache line wide both ways, so that every line is read or written whole, at once:
// rows a large power of two apart would push each other out of the cache.
template <class E>
constexpr std::int64_t BlockSize = 64 / static_cast<std::int64_t>(sizeof(E));

#ifdef __SSE2__
// Turns 4 by 4 elements of 4 bytes.
inline void turn_4x4(float* to, std::int64_t to_stride, const float* from,
                     std::int64_t from_stride) {
  __m128 a = _mm_loadu_ps(from);
  __m128 b = _mm_loadu_ps(from + from_stride);
  __m128 c = _mm_loadu_ps(from + 2 * from_stride);
  __m128 d = _mm_loadu_ps(from + 3 * from_stride);
  _MM_TRANSPOSE4_PS(a, b, c, d);
  _mm_storeu_ps(to, a);
  _mm_storeu_ps(to + to_stride, b);
  _mm_storeu_ps(to + 2 * to_stride, c);
  _mm_storeu_ps(to + 3 * to_stride, d);
}
#endif

// dst[i, j] = src[j, i] of one block; rows of dst and columns of src are contiguous.
template <class E>
void transpose_block(E* dst, std::int64_t dst_stride, const E* src, std::int64_t src_stride,
                     std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t B = BlockSize<E>;
  if (rows < B || columns < B) {
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) dst[i * dst_stride + j] = src[i + j * src_stride];
    }
    return;
  }
  std::array<E, static_cast<std::size_t>(B * B)> lines;
  for (std::int64_t j = 0; j < B; ++j) {
    std::memcpy(lines.data() + j * B, src + j * src_stride, 64);
  }
#ifdef __SSE2__
  if constexpr (sizeof(E) == 4) {
    for (std::int64_t i = 0; i < B; i += 4) {
      for (std::int64_t j = 0; j < B; j += 4) {
        turn_4x4(reinterpret_cast<float*>(dst + i * dst_stride + j), dst_stride,
                 reinterpret_cast<const float*>(lines.data() + j * B + i), B);
      }
    }
    return;
  }
#endif
  for (std::int64_t i = 0; i < B; ++i) {
    for (std::int64_t j = 0; j < B; ++j) {
      dst[i * dst_stride + j] = lines[static_cast<std::size_t>(j * B + i)];
    }
  }
}

// Planes of the axis that is contiguous in src (`across`) and the last one, contiguous in dst.
template <class E>
void copy_planes(CopyPlan plan, std::size_t across, ThreadPool& pool) {
  const CopyAxis q = plan.axes[across];
  const CopyAxis p = plan.axes[plan.rank - 1];
  plan.take_out(across);
  const std::size_t outer = plan.rank - 1;
  constexpr std::int64_t B = BlockSize<E>;
  const std::int64_t q_blocks = (q.size + B - 1) / B;
  const std::int64_t p_blocks = (p.size + B - 1) / B;
  const std::int64_t tile = TileBytes / (64 * B);
  auto* dst = reinterpret_cast<E*>(plan.dst);
  const auto* src = reinterpret_cast<const E*>(plan.src);
  const std::int64_t blocks = q_blocks * p_blocks;
  parallel_for(
      pool, outer_count(plan, outer) * blocks, tile, [&](std::int64_t begin, std::int64_t end) {
        Walk at(plan, outer, begin / blocks);
        std::int64_t block = begin % blocks;
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t i0 = block % q_blocks * B;
          const std::int64_t j0 = block / q_blocks * B;
          transpose_block(dst + at.dst() + i0 * q.dst + j0, q.dst, src + at.src() + i0 + j0 * p.src,
                          p.src, std::min(B, q.size - i0), std::min(B, p.size - j0));
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
