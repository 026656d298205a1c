// Points where a derivative needs a decision: kinks, ties, zeros, infinities and empty ranges. The
// one table behind docs/SINGULAR_POINTS.md and the test of what it says.
#pragma once

#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ricci/ir/graph.h"

namespace ricci::testing {

struct SingularPoint {
  std::string function;                       ///< as people write it
  std::function<Value(Value)> build;          ///< of an f64 vector x; several elements are added up
  std::vector<double> at;                     ///< x
  double value = 0;                           ///< of the function
  std::vector<double> first;                  ///< the derivative by every element of x
  std::optional<std::vector<double>> second;  ///< the Hessian's rows added up; for one element, f''
  std::string why;
};

/// Shown when a test fails.
void PrintTo(const SingularPoint& p, std::ostream* out);

struct SingularSection {
  std::string title;
  std::vector<SingularPoint> points;
};

/// The whole table, in the order of the document.
[[nodiscard]] std::vector<SingularSection> singular_points();

/// Sections, by subject.
[[nodiscard]] std::vector<SingularSection> singular_functions();   ///< element by element
[[nodiscard]] std::vector<SingularSection> singular_reductions();  ///< over several elements
/// Factorisations, complex functions, codes, scatters, spectra.
[[nodiscard]] std::vector<SingularSection> singular_structures();

/// The document: one table a section.
[[nodiscard]] std::string singular_points_document();

/// Whether numbers are those of the table, but for a few roundings of the size of the largest one.
[[nodiscard]] ::testing::AssertionResult near_singular(const Tensor& actual,
                                                       const std::vector<double>& expected);

/// Element i of a vector, as a vector of one.
[[nodiscard]] Value element(Value x, std::int64_t i);
/// A constant vector in the graph of x.
[[nodiscard]] Value numbers_for(Value x, const std::vector<double>& numbers);

}  // namespace ricci::testing
