#include "backend/cpu/structured/fourier_line.h"

#include <algorithm>
#include <complex>
#include <limits>
#include <optional>

#include "ricci/op/spectrum.h"

#include "support/unit_root.h"

namespace ricci::cpu {
namespace {

constexpr std::int64_t LongestRadix = 1024;    // rows of a pass
constexpr std::int64_t TileNumbers = 1 << 14;  // worth a tile

struct Split {
  std::vector<std::int64_t> radices;
  double cost = std::numeric_limits<double>::infinity();
};

// What share of the lanes columns leave empty makes a pass dearer.
double filled_lanes(std::int64_t columns, std::int64_t lanes) {
  const std::int64_t blocks = (columns + lanes - 1) / lanes;
  return static_cast<double>(blocks * lanes) / static_cast<double>(columns);
}

// The best way to go on with n when the columns of further passes are `side` at a time; 0: the
// first pass, whose columns are n / its rows.
template <class T>
Split best_split(std::int64_t n, std::int64_t passes, std::int64_t side, std::int64_t lanes) {
  Split best;
  if (passes == 1) {
    if (n <= LongestRadix && RowTransform<T>::can(n)) {
      best = {{n}, RowTransform<T>::cost(n, lanes) * filled_lanes(side, lanes)};
    }
    return best;
  }
  for (std::int64_t r = 2; r <= std::min(n / 2, LongestRadix); ++r) {
    if (n % r != 0 || !RowTransform<T>::can(r)) continue;
    Split rest = best_split<T>(n / r, passes - 1, side == 0 ? r : side, lanes);
    constexpr double Memory = 6;
    const double columns = filled_lanes(side == 0 ? n / r : side, lanes);
    const double cost = rest.cost + (RowTransform<T>::cost(r, lanes) + Memory) * columns;
    if (cost >= best.cost) continue;
    rest.radices.insert(rest.radices.begin(), r);
    best = {std::move(rest.radices), cost};
  }
  return best;
}

template <class T>
Split split_of(std::int64_t n, std::int64_t lanes) {
  const std::vector<std::int64_t> primes = prime_factors(n);
  if (primes.empty() || primes.back() > LongestRadix) return {};
  for (std::int64_t passes = 2; passes <= 4; ++passes) {
    Split found = best_split<T>(n, passes, 0, lanes);
    if (!found.radices.empty()) return found;
  }
  return {};
}

}  // namespace

template <class T>
bool LineTransform<T>::pays(std::int64_t n, std::int64_t lanes) {
  if (!RowTransform<T>::can(n) || n > LongestRadix) return true;
  if (n < lanes * lanes) return false;
  const Split split = split_of<T>(n, lanes);
  // As a column it is moved to and from rows of lanes.
  constexpr double Movement = 16;
  return split.cost < RowTransform<T>::cost(n, lanes) + Movement;
}

template <class T>
LineTransform<T>::LineTransform(std::int64_t n, const FourierKernels<T>& kernels)
    : kernels_(kernels), n_(n) {
  const Split split = split_of<T>(n, kernels.lanes);
  if (split.radices.empty()) {
    make_convolution();
  } else {
    make_passes(split.radices);
  }
}

// After a pass of R rows, result k of column p is row p of column q + s·k of the next. Columns are
// kept in blocks of lanes, [block, row, 2, lanes]: those of q for k = 0, then for k = 1, …
template <class T>
void LineTransform<T>::make_passes(const std::vector<std::int64_t>& radices) {
  const std::int64_t lanes = kernels_.lanes;
  const std::int64_t row = 2 * lanes;
  std::int64_t m = n_;
  std::int64_t sides = 1;
  for (std::size_t i = 0; i < radices.size(); ++i) {
    const std::int64_t r = radices[i];
    const std::int64_t part = m;  // the numbers this pass and those behind it turn among each other
    m /= r;
    Pass pass;
    pass.rows = std::make_unique<RowTransform<T>>(r, kernels_);
    pass.m = m;
    pass.sides = sides;
    pass.blocks = i == 0 ? (m + lanes - 1) / lanes : sides * m;
    pass.per_tile = std::max<std::int64_t>(1, TileNumbers / (r * lanes));
    pass.tiles = (pass.blocks + pass.per_tile - 1) / pass.per_tile;
    const auto push = [&](std::vector<T>& to, std::int64_t turns) {
      const std::complex<double> w = unit_root(-turns, part);
      to.push_back(static_cast<T>(w.real()));
      to.push_back(static_cast<T>(w.imag()));
    };
    const bool last = i + 1 == radices.size();
    for (std::int64_t p = 0; !last && p < (i == 0 ? pass.blocks : m); ++p) {
      for (std::int64_t k = 0; k < r; ++k) push(pass.coarse, (i == 0 ? p * lanes : p) * k);
    }
    for (std::int64_t k = 0; i == 0 && k < r; ++k) {
      for (std::int64_t c = 0; c < lanes; ++c) {
        pass.fine.push_back(static_cast<T>(unit_root(-c * k, part).real()));
      }
      for (std::int64_t c = 0; c < lanes; ++c) {
        pass.fine.push_back(static_cast<T>(unit_root(-c * k, part).imag()));
      }
    }
    sides = i == 0 ? (r + lanes - 1) / lanes : sides * r;
    if (!last) largest_ = std::max(largest_, sides * m * row);
    thread_room_ = std::max(thread_room_, 2 * pass.rows->room() * row);
    passes_.push_back(std::move(pass));
  }
  shared_room_ = (radices.size() > 2 ? 2 : 1) * largest_;
}

template <class T>
void LineTransform<T>::run_block(std::size_t pass, std::int64_t block, const Work& work) const {
  if (pass == 0) return run_first(passes_[0], block, work);
  if (pass + 1 < passes_.size()) return run_middle(passes_[pass], block, work);
  run_last(passes_[pass], block, work);
}

template <class T>
void LineTransform<T>::run_first(const Pass& pass, std::int64_t block, const Work& w) const {
  const std::int64_t row = 2 * kernels_.lanes;
  const std::int64_t p = block * kernels_.lanes;
  const std::int64_t count = std::min(kernels_.lanes, pass.m - p);
  const std::int64_t rows = pass.rows->rows();
  const T* y = pass.rows->run(w.in.view(p, pass.m), count, w.own, w.own + pass.rows->room() * row);
  kernels_.twist(y, rows, count, pass.fine.data(), pass.coarse.data() + block * rows * 2,
                 w.to + p * row, pass.m * row);
}

template <class T>
void LineTransform<T>::run_middle(const Pass& pass, std::int64_t block, const Work& w) const {
  const std::int64_t row = 2 * kernels_.lanes;
  const std::int64_t rows = pass.rows->rows();
  const std::int64_t side = block / pass.m;
  const std::int64_t p = block % pass.m;
  const T* from = w.from + (side * rows * pass.m + p) * row;
  const T* y = pass.rows->run({from, from + kernels_.lanes, pass.m * row, 1}, kernels_.lanes, w.own,
                              w.own + pass.rows->room() * row);
  kernels_.spread({y, rows, rows, pass.coarse.data() + p * rows * 2, nullptr,
                   pass.sides * pass.m * row, false, w.to + (side * pass.m + p) * row});
}

template <class T>
void LineTransform<T>::run_last(const Pass& pass, std::int64_t block, const Work& w) const {
  const std::int64_t row = 2 * kernels_.lanes;
  const std::int64_t rows = pass.rows->rows();
  const std::int64_t first_rows = passes_[0].rows->rows();
  const std::int64_t sides = (first_rows + kernels_.lanes - 1) / kernels_.lanes;
  const std::int64_t inside = block % sides * kernels_.lanes;
  const std::int64_t q = block / sides * first_rows + inside;
  const T* from = w.from + block * rows * row;
  pass.rows->run({from, from + kernels_.lanes, row, 1},
                 std::min(kernels_.lanes, first_rows - inside), w.scale, w.out.view(q, n_ / rows),
                 w.own, w.own + pass.rows->room() * row);
}

template <class T>
void LineTransform<T>::make_convolution() {
  // The shortest lengths that are fast are not always those that split well.
  std::int64_t m = next_fast_length(2 * n_ - 1);
  while (split_of<T>(m, kernels_.lanes).radices.empty()) m = next_fast_length(m + 1);
  inner_ = std::make_unique<LineTransform>(m, kernels_);
  chirp_ = chirp_of<T>(n_);
  shared_room_ = 4 * m + inner_->shared_room_;
  thread_room_ = inner_->thread_room_;

  const std::vector<double> c = chirp_of<double>(n_);
  std::vector<double> a(static_cast<std::size_t>(2 * m));
  std::vector<double> b(a.size());
  for (std::int64_t j = 0; j < n_; ++j) {
    for (const std::int64_t at : {j, (m - j) % m}) {
      a[static_cast<std::size_t>(2 * at)] = c[static_cast<std::size_t>(2 * j)];
      a[static_cast<std::size_t>(2 * at + 1)] = -c[static_cast<std::size_t>(2 * j + 1)];
    }
  }
  const LineTransform<double> exact(m);
  const auto in_turn = [](std::int64_t count, const auto& f) {
    for (std::int64_t i = 0; i < count; ++i) f(i);
  };
  const auto room = [](std::int64_t elements) {
    return std::make_unique<double[]>(static_cast<std::size_t>(elements));
  };
  const auto shared = room(exact.shared_room());
  const auto own = room(exact.thread_room());
  exact.run(in_turn, paired_line<const double>(a.data(), false), paired_line(b.data(), false),
            1 / static_cast<double>(m), shared.get(), [&] { return own.get(); });
  chirp_bins_.assign(b.begin(), b.end());
}

template <class T>
void LineTransform<T>::chirp(const FourierLine<const T>& in, std::int64_t begin, std::int64_t end,
                             T* a) const {
  for (std::int64_t j = begin; j < end; ++j) {
    if (j >= n_) {
      a[2 * j] = a[2 * j + 1] = T(0);
      continue;
    }
    const T re = in.re[j * in.step];
    const T im = in.im == nullptr ? T(0) : in.im[j * in.step];
    const T* w = chirp_.data() + 2 * j;
    a[2 * j] = re * w[0] - im * w[1];
    a[2 * j + 1] = re * w[1] + im * w[0];
  }
}

template <class T>
void LineTransform<T>::multiply_bins(std::int64_t begin, std::int64_t end, T* a) const {
  for (std::int64_t k = begin; k < end; ++k) {
    const T* w = chirp_bins_.data() + 2 * k;
    const T re = a[2 * k] * w[0] - a[2 * k + 1] * w[1];
    a[2 * k + 1] = a[2 * k] * w[1] + a[2 * k + 1] * w[0];
    a[2 * k] = re;
  }
}

template <class T>
void LineTransform<T>::chirp_back(const T* a, std::int64_t begin, std::int64_t end, T scale,
                                  const FourierLine<T>& out) const {
  for (std::int64_t k = begin; k < end; ++k) {
    const T* w = chirp_.data() + 2 * k;
    out.re[k * out.step] = (a[2 * k] * w[0] - a[2 * k + 1] * w[1]) * scale;
    if (out.im == nullptr) continue;
    out.im[k * out.step] = (a[2 * k] * w[1] + a[2 * k + 1] * w[0]) * scale;
  }
}

template class LineTransform<float>;
template class LineTransform<double>;

}  // namespace ricci::cpu
