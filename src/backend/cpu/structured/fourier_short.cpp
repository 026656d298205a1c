#include "backend/cpu/structured/fourier_short.h"

#include <algorithm>

#include "support/unit_root.h"

namespace ricci::cpu {
namespace {

constexpr std::int64_t MostBytes = 1 << 14;  // of a line, which stays in the nearest cache

}  // namespace

template <class T>
bool ShortTransform<T>::can(std::int64_t n, const FourierKernels<T>& kernels) {
  const std::int64_t lanes = kernels.lanes;
  if (kernels.lines == nullptr || n % lanes != 0 || 2 * n * std::int64_t{sizeof(T)} > MostBytes) {
    return false;
  }
  const std::int64_t columns = n / lanes;
  if (columns > lanes) return RowTransform<T>::has_steps(columns);
  return columns >= kernels.fewest_columns && lanes % columns == 0;
}

template <class T>
ShortTransform<T>::ShortTransform(std::int64_t n, double scale, const FourierKernels<T>& kernels)
    : kernels_(kernels), steps_{.rows = n / kernels.lanes} {
  const std::int64_t lanes = kernels.lanes;
  const std::int64_t columns = n / lanes;
  together_ = std::max<std::int64_t>(1, lanes / columns);
  room_ = columns > lanes ? columns * 2 * lanes : 0;
  if (columns > lanes) {
    rows_.emplace(columns, kernels);
    steps_ = rows_->steps();
  }
  const auto push_row = [&](std::int64_t first, std::int64_t k, const auto& part) {
    for (std::int64_t c = 0; c < lanes; ++c) {
      const std::int64_t column = columns < lanes ? c % columns : first + c;
      roots_.push_back(static_cast<T>(part(unit_root(-k * column, n) * scale)));
    }
  };
  for (std::int64_t first = 0; first < columns; first += lanes) {
    for (std::int64_t k = 0; k < lanes; ++k) {
      push_row(first, k, [](const auto& z) { return z.real(); });
      push_row(first, k, [](const auto& z) { return z.imag(); });
    }
  }
}

template class ShortTransform<float>;
template class ShortTransform<double>;

}  // namespace ricci::cpu
