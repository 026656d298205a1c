// Fourier transforms of one long line of complex numbers.
//
// A length that is a product of two or more numbers of rows is transformed in as many passes, each
// of which goes through memory once: columns of the line seen as a matrix, turned, and written so
// that the next pass finds its columns side by side. Any other length becomes a convolution.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "backend/cpu/structured/fourier_rows.h"

namespace ricci::cpu {

/// A line: number j at re + j·step and im + j·step; im may be null where it is read.
template <class T>
struct FourierLine {
  T* re = nullptr;
  T* im = nullptr;
  std::int64_t step = 2;

  [[nodiscard]] FourierView<T> view(std::int64_t first, std::int64_t row) const {
    return {re + first * step, im == nullptr ? nullptr : im + first * step, row * step, step};
  }
};
/// Real and imaginary parts in turns; exchanged, the transform is the inverse.
template <class T>
[[nodiscard]] FourierLine<T> paired_line(T* z, bool exchanged) {
  return exchanged ? FourierLine<T>{z + 1, z} : FourierLine<T>{z, z + 1};
}

template <class T>
class LineTransform {
 public:
  explicit LineTransform(std::int64_t n, const FourierKernels<T>& kernels = fourier_kernels<T>());

  /// Is a line of n better transformed by passes than as a column among others?
  [[nodiscard]] static bool pays(std::int64_t n, std::int64_t lanes);

  /// Elements of room: shared by the run, and for each thread.
  [[nodiscard]] std::int64_t shared_room() const { return shared_room_; }
  [[nodiscard]] std::int64_t thread_room() const { return thread_room_; }
  /// `each(count, f)` calls f on every tile below `count`, on any threads, and `own()` gives the
  /// room of the calling one. No room overlaps the line.
  template <class Each, class Own>
  void run(const Each& each, const FourierLine<const T>& in, const FourierLine<T>& out, T scale,
           T* shared, const Own& own) const {
    if (inner_) {
      convolve(each, in, out, scale, shared, own);
      return;
    }
    T* from = shared;
    for (std::size_t i = 0; i < passes_.size(); ++i) {
      const Pass& pass = passes_[i];
      T* to = i % 2 == 0 ? shared : shared + largest_;
      each(pass.tiles, [&](std::int64_t tile) {
        const Work work{in, out, scale, from, to, own()};
        const std::int64_t end = std::min((tile + 1) * pass.per_tile, pass.blocks);
        for (std::int64_t b = tile * pass.per_tile; b < end; ++b) run_block(i, b, work);
      });
      from = to;
    }
  }

 private:
  struct Pass {
    std::unique_ptr<RowTransform<T>> rows;
    std::int64_t m = 1;       ///< columns apart, of each block of lanes
    std::int64_t sides = 1;   ///< blocks of columns side by side that are read
    std::int64_t blocks = 0;  ///< all there is to do
    std::int64_t per_tile = 1;
    std::int64_t tiles = 0;
    std::vector<T> fine;    ///< first pass: [rows, 2, lanes]
    std::vector<T> coarse;  ///< first pass: [blocks, rows, 2]; later ones [m, rows, 2]
  };
  struct Work {
    const FourierLine<const T>& in;
    const FourierLine<T>& out;
    T scale;
    const T* from;
    T* to;
    T* own;
  };
  void make_passes(const std::vector<std::int64_t>& radices);
  void make_convolution();
  void run_block(std::size_t pass, std::int64_t block, const Work& work) const;
  void run_first(const Pass& pass, std::int64_t block, const Work& work) const;
  void run_middle(const Pass& pass, std::int64_t block, const Work& work) const;
  void run_last(const Pass& pass, std::int64_t block, const Work& work) const;
  // Parts of a convolution: numbers [begin, end) of a line.
  void chirp(const FourierLine<const T>& in, std::int64_t begin, std::int64_t end, T* a) const;
  void multiply_bins(std::int64_t begin, std::int64_t end, T* a) const;
  void chirp_back(const T* a, std::int64_t begin, std::int64_t end, T scale,
                  const FourierLine<T>& out) const;

  template <class Each, class Own>
  void convolve(const Each& each, const FourierLine<const T>& in, const FourierLine<T>& out,
                T scale, T* shared, const Own& own) const {
    constexpr std::int64_t Part = 1 << 14;
    const std::int64_t m = inner_->n_;
    T* a = shared;
    T* b = shared + 2 * m;
    T* rest = shared + 4 * m;
    const auto in_parts = [&](std::int64_t count, const auto& f) {
      each((count + Part - 1) / Part,
           [&](std::int64_t tile) { f(tile * Part, std::min(count, (tile + 1) * Part)); });
    };
    in_parts(m, [&](std::int64_t begin, std::int64_t end) { chirp(in, begin, end, a); });
    inner_->run(each, paired_line<const T>(a, false), paired_line(b, false), T(1), rest, own);
    in_parts(m, [&](std::int64_t begin, std::int64_t end) { multiply_bins(begin, end, b); });
    inner_->run(each, paired_line<const T>(b, true), paired_line(a, true), T(1), rest, own);
    in_parts(n_,
             [&](std::int64_t begin, std::int64_t end) { chirp_back(a, begin, end, scale, out); });
  }

  const FourierKernels<T>& kernels_;
  std::int64_t n_;
  std::int64_t shared_room_ = 0;
  std::int64_t thread_room_ = 0;
  std::int64_t largest_ = 0;  ///< elements between two passes
  std::vector<Pass> passes_;
  /// Of a convolution.
  std::unique_ptr<LineTransform> inner_;
  std::vector<T> chirp_;
  std::vector<T> chirp_bins_;
};

extern template class LineTransform<float>;
extern template class LineTransform<double>;

}  // namespace ricci::cpu
