#include "backend/cpu/structured/fourier_rows.h"

#include <algorithm>
#include <complex>
#include <numeric>

#include "ricci/op/spectrum.h"

#include "support/unit_root.h"

namespace ricci::cpu {
namespace {

constexpr std::int64_t FewRows = 96;  // fit into the nearest cache

template <class T>
void push(std::vector<T>& to, std::complex<double> z) {
  to.push_back(static_cast<T>(z.real()));
  to.push_back(static_cast<T>(z.imag()));
}

// The steps for n, first to last; none when a prime is too large. Twos are taken three at a time.
std::vector<std::int64_t> radices_of(std::int64_t n) {
  std::vector<std::int64_t> out;
  std::int64_t twos = 0;
  for (const std::int64_t p : prime_factors(n)) {
    if (p > LargestRadix) return {};
    if (p == 2) {
      ++twos;
    } else {
      out.insert(out.begin(), p);
    }
  }
  for (; twos >= 5 || twos == 3; twos -= 3) out.push_back(8);
  for (; twos >= 2; twos -= 2) out.push_back(4);
  if (twos == 1) out.push_back(2);
  return out;
}

bool has_radices(std::int64_t n) { return n == 1 || !radices_of(n).empty(); }

std::int64_t convolution_length(std::int64_t n) { return next_fast_length(2 * n - 1); }

}  // namespace

std::vector<std::int64_t> prime_factors(std::int64_t n) {
  std::vector<std::int64_t> out;
  for (std::int64_t p = 2; p <= n / p; ++p) {
    for (; n % p == 0; n /= p) out.push_back(p);
  }
  if (n > 1) out.push_back(n);
  return out;
}

template <class T>
std::vector<T> chirp_of(std::int64_t n) {
  std::vector<T> out;
  std::int64_t square = 0;  // j² mod 2n
  for (std::int64_t j = 0; j < n; ++j) {
    push(out, unit_root(-square, 2 * n));
    square = (square + 2 * j + 1) % (2 * n);
  }
  return out;
}

template <class T>
std::vector<T> roots_of(std::int64_t n, std::int64_t count) {
  std::vector<T> out;
  for (std::int64_t j = 0; j < count; ++j) push(out, unit_root(-j, n));
  return out;
}

template <class T>
bool RowTransform<T>::can(std::int64_t rows) {
  if (rows < 1 || rows > MostRows) return false;
  return has_radices(rows) || convolution_length(rows) <= MostRows;
}

template <class T>
bool RowTransform<T>::has_steps(std::int64_t rows) {
  return rows >= 1 && rows <= MostRows && has_radices(rows);
}

template <class T>
double RowTransform<T>::cost(std::int64_t rows, std::int64_t lanes) {
  constexpr double Memory = 4;  // loads and stores of a step
  if (!has_radices(rows)) {
    const std::int64_t m = convolution_length(rows);
    return 2 * (cost(m, lanes) + Memory) * static_cast<double>(m) / static_cast<double>(rows);
  }
  double total = 0;
  for (const std::int64_t r : radices_of(rows)) {
    total += Memory + (r % 2 == 1 ? 1.3 * static_cast<double>(r) : r == 8 ? 6 : 4);
  }
  // Blocks that leave the nearest cache.
  const std::int64_t bytes = rows * 2 * lanes * static_cast<int>(sizeof(T));
  return bytes > 40000 ? total * 1.2 : total;
}

template <class T>
RowTransform<T>::RowTransform(std::int64_t rows, const FourierKernels<T>& kernels)
    : kernels_(kernels), rows_(rows), room_(rows + 1) {
  if (has_radices(rows)) {
    add_stages(radices_of(rows));
  } else {
    make_convolution();
  }
}

// Row j: its digits in the order of the steps, last step's first.
template <class T>
void RowTransform<T>::add_stages(const std::vector<std::int64_t>& radices) {
  std::int64_t apart = 1;
  places_.assign(static_cast<std::size_t>(rows_), 0);
  for (const std::int64_t r : radices) {
    std::vector<T> roots;
    for (std::int64_t k = 0; k < apart; ++k) {
      for (std::int64_t j = 1; j < r; ++j) push(roots, unit_root(-j * k, r * apart));
    }
    std::vector<T> turns;
    for (std::int64_t k = 0; k < r; ++k) push(turns, unit_root(k, r));
    tables_.push_back(std::move(roots));
    tables_.push_back(std::move(turns));
    stages_.push_back(
        {r, apart, tables_[tables_.size() - 2].data(), tables_[tables_.size() - 1].data()});
    apart *= r;
  }
  for (std::int64_t j = 0; j < rows_; ++j) {
    std::int64_t rest = j;
    std::int64_t place = 0;
    for (auto s = stages_.rbegin(); s != stages_.rend(); ++s) {
      place += rest % s->radix * s->apart;
      rest /= s->radix;
    }
    places_[static_cast<std::size_t>(j)] = static_cast<std::int32_t>(place);
  }
  if (radices.size() < 2) return;
  for (std::int64_t j = 0; j < rows_; j += radices.back()) {
    part_places_.push_back(places_[static_cast<std::size_t>(j)]);
  }
}

// y[k] = c[k] Σ_j x[j] c[j] conj(c[k - j]), c the chirp: products of transforms of length m.
template <class T>
void RowTransform<T>::make_convolution() {
  const std::int64_t m = convolution_length(rows_);
  inner_ = std::make_unique<RowTransform>(m, kernels_);
  room_ = m + 1;
  places_.resize(static_cast<std::size_t>(rows_));
  std::iota(places_.begin(), places_.end(), 0);
  chirp_ = chirp_of<T>(rows_);
  for (std::size_t i = 0; i < chirp_.size(); ++i) {
    chirp_back_.push_back(i % 2 == 0 ? chirp_[i] : -chirp_[i]);
  }
  // The bins of conj(c), by the same rows in f64: one column of each block.
  const FourierKernels<double>& kernels = fourier_kernels<double>();
  const RowTransform<double> exact(m);
  const auto row = static_cast<std::size_t>(2 * kernels.lanes);
  const auto lanes = static_cast<std::size_t>(kernels.lanes);
  const auto size = static_cast<std::size_t>(exact.room()) * row;
  std::vector<double> a(size);
  std::vector<double> b(size);
  const std::vector<double> c = chirp_of<double>(rows_);
  for (std::int64_t j = 0; j < rows_; ++j) {
    for (const std::int64_t at : {j, (m - j) % m}) {
      const auto place = static_cast<std::size_t>(exact.places()[at]) * row;
      a[place] = c[static_cast<std::size_t>(2 * j)];
      a[place + lanes] = -c[static_cast<std::size_t>(2 * j + 1)];
    }
  }
  const double* bins = exact.run(a.data(), b.data());
  for (std::size_t k = 0; k < static_cast<std::size_t>(m); ++k) {
    push(chirp_bins_, std::complex(bins[k * row], bins[k * row + lanes]) / static_cast<double>(m));
  }
}

template <class T>
T* RowTransform<T>::run(T* a, T* b) const {
  if (!inner_) {
    kernels_.transform({rows_, stages_.data(), static_cast<std::int64_t>(stages_.size())}, a);
    return a;
  }
  // The inverse is the transform with real and imaginary parts exchanged, before and after; a
  // factor behind the exchange is its conjugate before it.
  const std::int64_t row = 2 * kernels_.lanes;
  const std::int64_t m = inner_->rows();
  kernels_.spread({a, rows_, m, chirp_.data(), inner_->places(), row, false, b});
  const T* bins = inner_->run(b, a);
  kernels_.spread({bins, m, m, chirp_bins_.data(), inner_->places(), row, true, a});
  const T* folded = inner_->run(a, b);
  kernels_.spread({folded, rows_, rows_, chirp_back_.data(), nullptr, row, true, b});
  return b;
}

template <class T>
T* RowTransform<T>::run(const FourierView<const T>& from, std::int64_t count, T* a, T* b) const {
  if (!has_parts(from)) {
    kernels_.load(from, rows_, count, places(), a);
    return run(a, b);
  }
  run_parts(from, count, a);
  kernels_.transform({rows_, &stages_.back(), 1}, a);
  return a;
}

template <class T>
void RowTransform<T>::run(const FourierView<const T>& from, std::int64_t count, T scale,
                          const FourierView<T>& to, T* a, T* b) const {
  const bool parts = has_parts(from);
  if (parts) {
    run_parts(from, count, a);
  } else {
    kernels_.load(from, rows_, count, places(), a);
    if (rows_ > FewRows || stages_.empty()) {
      return kernels_.store(run(a, b), rows_, count, scale, to);
    }
  }
  const auto steps = static_cast<std::int64_t>(stages_.size());
  kernels_.finish({rows_, stages_.data(), steps}, parts, a, count, scale, to);
}

// Columns that lie side by side; lines are better turned into columns in large squares.
template <class T>
bool RowTransform<T>::has_parts(const FourierView<const T>& from) const {
  return rows_ > FewRows && !part_places_.empty() && from.column <= 2;
}

template <class T>
void RowTransform<T>::run_parts(const FourierView<const T>& from, std::int64_t count, T* a) const {
  const FourierStage<T>& last = stages_.back();
  const auto before = static_cast<std::int64_t>(stages_.size()) - 1;
  FourierView<const T> part = from;
  part.row = from.row * last.radix;
  for (std::int64_t p = 0; p < last.radix; ++p) {
    kernels_.load(part, last.apart, count, part_places_.data(), a);
    kernels_.transform({last.apart, stages_.data(), before}, a);
    a += last.apart * 2 * kernels_.lanes;
    part.re += from.row;
    if (part.im != nullptr) part.im += from.row;
  }
}

template class RowTransform<float>;
template class RowTransform<double>;
template std::vector<float> chirp_of<float>(std::int64_t);
template std::vector<double> chirp_of<double>(std::int64_t);
template std::vector<float> roots_of<float>(std::int64_t, std::int64_t);
template std::vector<double> roots_of<double>(std::int64_t, std::int64_t);

}  // namespace ricci::cpu
