#include "support/singular_points.h"

#include <algorithm>
#include <cmath>
#include <ostream>

#include <fmt/format.h>

#include "ricci/build/build.h"

#include "support/compare.h"

namespace ricci::testing {

Value element(Value x, std::int64_t i) { return narrow(x, {.axis = 0, .start = i, .len = 1}); }

Value numbers_for(Value x, const std::vector<double>& numbers) {
  const auto count = static_cast<std::int64_t>(numbers.size());
  return x.graph().constant(Tensor::of<double>({count}, std::span<const double>(numbers)));
}

// Zeros may be differences of ones.
::testing::AssertionResult near_singular(const Tensor& actual,
                                         const std::vector<double>& expected) {
  double largest = 0;
  for (const double v : expected) {
    if (std::isfinite(v)) largest = std::max(largest, std::fabs(v));
  }
  const auto count = static_cast<std::int64_t>(expected.size());
  const Tensor table = Tensor::of<double>({count}, std::span<const double>(expected));
  return close(actual.reshaped({actual.numel()}), table,
               {1e-12, 1e-12 * (largest == 0 ? 1 : largest)});
}

std::vector<SingularSection> singular_points() {
  std::vector<SingularSection> out = singular_functions();
  for (SingularSection& s : singular_reductions()) out.push_back(std::move(s));
  for (SingularSection& s : singular_structures()) out.push_back(std::move(s));
  return out;
}

namespace {

std::string number(double v) {
  if (std::isnan(v)) return "NaN";
  if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
  return fmt::format("{:.6g}", v == 0 ? 0.0 : v);
}

std::string list(const std::vector<double>& numbers) {
  if (numbers.size() == 1) return number(numbers[0]);
  std::string out;
  for (const double v : numbers) out += (out.empty() ? "" : ", ") + number(v);
  return "(" + out + ")";
}

// A bar would end a cell of the table.
std::string cell(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '|' ? "\\|" : std::string(1, c);
  return out;
}

constexpr const char* Introduction = R"(# Derivatives at singular points

What every derivative is where a formula alone does not say: at kinks, ties, zeros, infinities and
over empty ranges. At every point below forward and reverse mode give the same numbers.

- A kink of a function of one number has derivative 0, and so has the derivative there.
- A tie of `max` or `min` is shared equally; pooling, sorting and `top_k` follow the index they chose.
- What `where` does not choose gets a cotangent of 0. In reverse mode that is not enough where the
  slope is infinite or NaN (0·inf is NaN, as in `where(x > 0, log(x), 0)` at 0): replace the *operand*
  by a harmless value on that side as well. Our own rules do.
- `sigmoid`, `tanh` and their relatives have derivative 0 where they are flat, infinities included, and
  never NaN.
- Where eigenvalues or singular values repeat or vanish, derivatives of vectors leave out the pairs whose
  difference is no more than rounding: they are finite, and right for what does not depend on the basis
  (`tests/unit/factorization_test.cpp`). Second derivatives there are finite, and no more is said.
- Codes pass a cotangent as their straight-through rule says; clipped ones pass it in range, edges included,
  and nothing beyond (`tests/unit/rule_quant_test.cpp` has `quantize` and the integer products).
- A splat that is not drawn gets 0: behind the camera or nearer than its least depth, fainter than the
  cutoff, behind what makes a pixel opaque, or with a number that is NaN or infinite
  (`tests/backend/splat_edges_test.cpp`).

In the columns, several numbers belong to the elements of x in order; the second derivative is the
sum of each row of the Hessian. This file is written from the table in `tests/support/` that the
tests check (`RICCI_UPDATE_GOLDEN=1` writes it again).
)";

}  // namespace

void PrintTo(const SingularPoint& p, std::ostream* out) {
  *out << p.function << " at " << list(p.at);
}

std::string singular_points_document() {
  std::string out = Introduction;
  for (const SingularSection& s : singular_points()) {
    out += fmt::format("\n## {}\n\n", s.title);
    out += "| function | x | value | derivative | second | why |\n";
    out += "| --- | --- | --- | --- | --- | --- |\n";
    for (const SingularPoint& p : s.points) {
      out +=
          fmt::format("| {} | {} | {} | {} | {} | {} |\n", cell("`" + p.function + "`"), list(p.at),
                      number(p.value), list(p.first), p.second ? list(*p.second) : "", cell(p.why));
    }
  }
  return out;
}

}  // namespace ricci::testing
