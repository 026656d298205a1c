// A row of windows is worked on as a whole, tap by tap, so that the loops along it are vectors.
#include "backend/cpu/structured/pooling.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "ricci/support/error.h"
#include "ricci/type/tensor.h"

#include "backend/cpu/kernels/vector_kernels.h"
#include "backend/cpu/structured/thread_scratch.h"
#include "type/small_dtype.h"

namespace ricci::cpu {
namespace {

constexpr std::int64_t ChunkWindows = 256;      // windows of a row worked on at once
constexpr std::int64_t TileElements = 1 << 14;  // enough taps to be worth a tile

// What windows are combined in: f64 for itself, f32 for all others.
template <class T>
using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class T>
Sum<T> read(const T& x) {
  if constexpr (std::is_arithmetic_v<T>) {
    return x;
  } else {
    return static_cast<float>(static_cast<double>(x));
  }
}
template <class T>
T written(Sum<T> x) {
  if constexpr (std::is_arithmetic_v<T>) {
    return x;
  } else {
    return T(static_cast<double>(x));
  }
}

template <class F>
void with_pooled_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::F64: return f.template operator()<double>();
    case DType::F16: return f.template operator()<Float16>();
    case DType::BF16: return f.template operator()<BFloat16>();
    default: return f.template operator()<float>();
  }
}

// Calls f(plane) for every plane, several to a tile when they are small.
template <class F>
void for_each_plane(ThreadPool& pool, const loop::Pooling& g, F&& f) {
  std::int64_t some = TileElements;
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const std::int64_t taps = g.size_out[axis] * std::min(g.kernel[axis], g.size_in[axis]);
    some = std::max<std::int64_t>(1, some / std::max<std::int64_t>(taps, 1));
  }
  pool.run((g.planes + some - 1) / some, [&](std::int64_t tile) {
    const std::int64_t end = std::min((tile + 1) * some, g.planes);
    for (std::int64_t plane = tile * some; plane < end; ++plane) f(plane);
  });
}

// Windows [first, end) of row i, as far as they go.
struct RowPart {
  std::int64_t i = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;
};

template <class F>
void for_each_part(const loop::Pooling& g, F&& f) {
  // Windows further apart than the image is wide share no taps that are inside.
  const std::int64_t chunk = g.stride[1] > g.size_in[1] ? 1 : ChunkWindows;
  for (std::int64_t i = 0; i < g.size_out[0]; ++i) {
    for (std::int64_t first = 0; first < g.size_out[1]; first += chunk) {
      f(RowPart{i, first, std::min(chunk, g.size_out[1] - first)});
    }
  }
}

// Calls f(s0, s1, place) for every tap: windows s0 to s1 of the part have it inside the image,
// window s at place + s·stride.
template <class F>
void for_each_tap(const loop::Pooling& g, const RowPart& part, F&& f) {
  // A kernel may be far larger than the image: rows and columns of taps that no window of the part
  // has inside are not looked at.
  const std::int64_t top = part.i * g.stride[0] - g.padding[0];
  const std::int64_t left_edge = part.first * g.stride[1] - g.padding[1];
  const std::int64_t last_edge = left_edge + (part.count - 1) * g.stride[1];
  const std::int64_t end_u = std::min(g.kernel[0], g.size_in[0] - top);
  const std::int64_t end_v = std::min(g.kernel[1], g.size_in[1] - left_edge);
  const std::int64_t step = g.stride[1];
  for (std::int64_t u = std::max<std::int64_t>(0, -top); u < end_u; ++u) {
    const std::int64_t row = top + u;
    for (std::int64_t v = std::max<std::int64_t>(0, -last_edge); v < end_v; ++v) {
      const std::int64_t start = left_edge + v;
      const std::int64_t s0 = start >= 0 ? 0 : (-start + step - 1) / step;
      const std::int64_t left = g.size_in[1] - start;  // columns from window 0 to the edge
      const std::int64_t s1 = left <= 0 ? 0 : std::min(part.count, (left + step - 1) / step);
      if (s0 < s1) f(s0, s1, row * g.size_in[1] + start);
    }
  }
}

template <class T, class Combine>
void combine_part(const loop::Pooling& g, const RowPart& part, const T* x, Sum<T>* total,
                  Combine&& combine) {
  const std::int64_t step = g.stride[1];
  for_each_tap(g, part, [&](std::int64_t s0, std::int64_t s1, std::int64_t place) {
    if (step == 1) {
      for (std::int64_t s = s0; s < s1; ++s) total[s] = combine(total[s], read(x[place + s]));
    } else {
      for (std::int64_t s = s0; s < s1; ++s)
        total[s] = combine(total[s], read(x[place + s * step]));
    }
  });
}

// How many taps of a window lie inside, along one direction.
std::int64_t inside(const loop::Pooling& g, std::size_t axis, std::int64_t window) {
  const std::int64_t start = window * g.stride[axis] - g.padding[axis];
  return std::min(start + g.kernel[axis], g.size_in[axis]) - std::max<std::int64_t>(start, 0);
}

template <class T>
void pool_part(const loop::Pooling& g, const RowPart& part, const T* x, T* y) {
  using S = Sum<T>;
  constexpr S Inf = std::numeric_limits<S>::infinity();
  S total[ChunkWindows];
  const auto run = [&](S start, auto&& combine) {
    std::fill_n(total, part.count, start);
    combine_part(g, part, x, total, combine);
  };
  switch (g.kind) {
    // The later of equals, which may be zeros of different signs; a NaN stays.
    case ReduceKind::Max: run(-Inf, [](S a, S b) { return a > b || a != a ? a : b; }); break;
    case ReduceKind::Min: run(Inf, [](S a, S b) { return a < b || a != a ? a : b; }); break;
    case ReduceKind::Prod: run(1, [](S a, S b) { return a * b; }); break;
    case ReduceKind::Sum:
    case ReduceKind::Mean: run(0, [](S a, S b) { return a + b; }); break;
    case ReduceKind::Any:
    case ReduceKind::All:
    case ReduceKind::LogSumExp: throw InternalError("windows are not pooled by this reduction");
  }
  if (g.kind == ReduceKind::Mean) {
    const std::int64_t rows = g.count_padding ? g.kernel[0] : inside(g, 0, part.i);
    for (std::int64_t s = 0; s < part.count; ++s) {
      const std::int64_t columns = g.count_padding ? g.kernel[1] : inside(g, 1, part.first + s);
      total[s] /= static_cast<S>(rows) * static_cast<S>(columns);
    }
  }
  T* to = y + part.i * g.size_out[1] + part.first;
  for (std::int64_t s = 0; s < part.count; ++s) to[s] = written<T>(total[s]);
}

// The places of the windows' first maxima; a NaN counts as larger than everything.
template <class T>
void find_maxima(const loop::Pooling& g, const RowPart& part, const T* x, std::int64_t* places) {
  using S = Sum<T>;
  S best[ChunkWindows] = {};
  std::fill_n(places, part.count, -1);
  const std::int64_t step = g.stride[1];
  for_each_tap(g, part, [&](std::int64_t s0, std::int64_t s1, std::int64_t place) {
    for (std::int64_t s = s0; s < s1; ++s) {
      const S here = read(x[place + s * step]);
      // Bitwise, so that the loop has no branches.
      const bool better =
          (places[s] < 0) | (here > best[s]) | ((here != here) & (best[s] == best[s]));
      best[s] = better ? here : best[s];
      places[s] = better ? place + s * step : places[s];
    }
  });
}

// Windows of two by two, side by side.
bool is_by_pairs(const loop::Pooling& g) {
  using Two = std::array<std::int64_t, 2>;
  return g.dtype == DType::F32 && g.kernel == Two{2, 2} && g.stride == Two{2, 2} &&
         g.padding == Two{0, 0};
}

// Calls f(row, windows) for each row of windows: the offsets of its first row in the image and of
// its first window.
template <class F>
void for_each_row_of_pairs(ThreadPool& pool, const loop::Pooling& g, F&& f) {
  for_each_plane(pool, g, [&](std::int64_t plane) {
    for (std::int64_t i = 0; i < g.size_out[0]; ++i) {
      f((plane * g.size_in[0] + 2 * i) * g.size_in[1], (plane * g.size_out[0] + i) * g.size_out[1]);
    }
  });
}

void max_pool_by_pairs(ThreadPool& pool, const loop::Pooling& g, const float* x, float* y) {
  const VectorKernels& kernels = vector_kernels();
  for_each_row_of_pairs(pool, g, [&](std::int64_t row, std::int64_t window) {
    const float* upper = x + row;
    kernels.max_of_pairs(upper, upper + g.size_in[1], g.size_out[1], y + window);
  });
}

void max_pool_backward_by_pairs(ThreadPool& pool, const loop::Pooling& g, const float* x,
                                const float* dy, float* dx) {
  const VectorKernels& kernels = vector_kernels();
  const bool covered = g.size_in[0] == 2 * g.size_out[0] && g.size_in[1] == 2 * g.size_out[1];
  if (!covered) std::fill_n(dx, g.planes * g.size_in[0] * g.size_in[1], 0.0F);
  for_each_row_of_pairs(pool, g, [&](std::int64_t row, std::int64_t window) {
    const float* upper = x + row;
    float* d_upper = dx + row;
    kernels.max_of_pairs_backward(upper, upper + g.size_in[1], dy + window, g.size_out[1], d_upper,
                                  d_upper + g.size_in[1]);
  });
}

}  // namespace

void pool_forward(ThreadPool& pool, const loop::Pooling& g, const void* x, void* y) {
  if (g.kind == ReduceKind::Max && is_by_pairs(g)) {
    return max_pool_by_pairs(pool, g, static_cast<const float*>(x), static_cast<float*>(y));
  }
  with_pooled_type(g.dtype, [&]<class T>() {
    for_each_plane(pool, g, [&](std::int64_t plane) {
      const T* from = static_cast<const T*>(x) + plane * g.size_in[0] * g.size_in[1];
      T* to = static_cast<T*>(y) + plane * g.size_out[0] * g.size_out[1];
      for_each_part(g, [&](const RowPart& p) { pool_part(g, p, from, to); });
    });
  });
}

void max_pool_backward(ThreadPool& pool, const loop::Pooling& g, const void* x, const void* dy,
                       void* dx) {
  if (is_by_pairs(g)) {
    return max_pool_backward_by_pairs(pool, g, static_cast<const float*>(x),
                                      static_cast<const float*>(dy), static_cast<float*>(dx));
  }
  with_pooled_type(g.dtype, [&]<class T>() {
    for_each_plane(pool, g, [&](std::int64_t plane) {
      const std::int64_t image = g.size_in[0] * g.size_in[1];
      const T* from = static_cast<const T*>(x) + plane * image;
      const T* given = static_cast<const T*>(dy) + plane * g.size_out[0] * g.size_out[1];
      T* to = static_cast<T*>(dx) + plane * image;
      Sum<T>* sums = nullptr;
      if constexpr (std::is_same_v<T, Sum<T>>) {
        sums = to;
      } else {  // rounded once, when all windows are in
        sums = reinterpret_cast<Sum<T>*>(thread_scratch(max_pool_backward_thread_bytes(g)));
      }
      std::fill_n(sums, image, Sum<T>{});
      for_each_part(g, [&](const RowPart& p) {
        std::int64_t places[ChunkWindows];
        find_maxima(g, p, from, places);
        const T* row = given + p.i * g.size_out[1] + p.first;
        for (std::int64_t s = 0; s < p.count; ++s) sums[places[s]] += read(row[s]);
      });
      if constexpr (!std::is_same_v<T, Sum<T>>) {
        for (std::int64_t i = 0; i < image; ++i) to[i] = written<T>(sums[i]);
      }
    });
  });
}

std::int64_t max_pool_backward_thread_bytes(const loop::Pooling& g) {
  const bool rounds = is_small_float(g.dtype);
  return rounds ? g.size_in[0] * g.size_in[1] * static_cast<std::int64_t>(sizeof(float)) : 0;
}

void max_pool_select(ThreadPool& pool, const loop::Pooling& g, const void* x, const void* v,
                     void* out) {
  with_pooled_type(g.dtype, [&]<class T>() {
    for_each_plane(pool, g, [&](std::int64_t plane) {
      const std::int64_t image = plane * g.size_in[0] * g.size_in[1];
      const T* from = static_cast<const T*>(x) + image;
      const T* chosen = static_cast<const T*>(v) + image;
      T* to = static_cast<T*>(out) + plane * g.size_out[0] * g.size_out[1];
      for_each_part(g, [&](const RowPart& p) {
        std::int64_t places[ChunkWindows];
        find_maxima(g, p, from, places);
        T* row = to + p.i * g.size_out[1] + p.first;
        for (std::int64_t s = 0; s < p.count; ++s) row[s] = chosen[places[s]];
      });
    });
  });
}

}  // namespace ricci::cpu
