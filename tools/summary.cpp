#include "summary.h"

#include <algorithm>
#include <cmath>
#include <complex>

#include <fmt/format.h>

#include "ricci/support/stop.h"
#include "ricci/support/text.h"

#include "type/elements.h"

namespace ricci::tool {
namespace {

constexpr std::int64_t MostShown = 16;

// Nested lists, as constants are written; few elements, hence few axes worth the recursion.
std::string values(const Tensor& t, std::size_t axis) {
  if (axis == t.rank()) return detail::print_element(t.dtype(), t.data());
  std::vector<std::string> parts;
  for (std::int64_t i = 0; i < t.dims()[axis]; ++i) {
    parts.push_back(values(t.narrowed(axis, i, 1), axis + 1));
  }
  return "[" + join(parts, ", ") + "]";
}

struct Range {
  double least = INFINITY;
  double most = -INFINITY;
  double total = 0;
  std::int64_t finite = 0;
  std::int64_t others = 0;

  void add(double v) {
    if (!std::isfinite(v)) {
      ++others;
      return;
    }
    least = std::min(least, v);
    most = std::max(most, v);
    total += v;
    ++finite;
  }
};

// In row-major order, a piece at a time: doubles of all elements may need more memory than there
// is, and more time than there is to be.
void add_all(Range& range, const Tensor& t) {
  constexpr std::int64_t Piece = 1 << 16;
  if (t.numel() > Piece) {
    std::size_t axis = 0;
    while (t.dims()[axis] == 1) ++axis;
    const std::int64_t length = t.dims()[axis];
    const std::int64_t step = std::max<std::int64_t>(1, Piece / (t.numel() / length));
    for (std::int64_t i = 0; i < length; i += step) {
      add_all(range, t.narrowed(axis, i, std::min(step, length - i)));
    }
    return;
  }
  throw_if_stopped();
  if (is_complex(t.dtype())) {
    for (const std::complex<double>& c : t.numbers<std::complex<double>>()) range.add(std::abs(c));
  } else {
    for (const double v : t.numbers<double>()) range.add(v);
  }
}

std::string range_of(const Tensor& t) {
  Range range;
  add_all(range, t);
  std::string out = "no finite value";
  if (range.finite != 0) {
    out = fmt::format("{}min {:.6g}  max {:.6g}  mean {:.6g}", is_complex(t.dtype()) ? "|z|: " : "",
                      range.least, range.most, range.total / static_cast<double>(range.finite));
  }
  if (range.others != 0) out += fmt::format("  not finite {}", range.others);
  return out;
}

}  // namespace

std::string summary(const Tensor& tensor) {
  if (tensor.numel() == 0) return "no elements";
  return tensor.numel() <= MostShown ? values(tensor, 0) : range_of(tensor);
}

}  // namespace ricci::tool
