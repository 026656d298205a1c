// What JAX gives for whole programs (make_whole_programs_reference.py).
#pragma once

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ricci/array.h"

namespace ricci {

inline const std::map<std::string, std::vector<double>>& program_values() {
  static const std::map<std::string, std::vector<double>> values = {
#include "array/whole_programs_values.inc"
  };
  return values;
}

class WholeProgram {
 public:
  explicit WholeProgram(std::string name) : name_(std::move(name)) {}
  // Relative to the largest number there is.
  void check(const std::string& what, const Array& x) {
    std::string full = name_ + "." + what;
    full += "#" + std::to_string(seen_[what]++);
    SCOPED_TRACE(full);
    const std::vector<double>& expected = program_values().at(full);
    const std::vector<double> found = x.to_vector();
    ASSERT_EQ(found.size(), expected.size());
    double scale = 1e-3;
    for (const double v : expected) {
      if (std::isfinite(v)) scale = std::max(scale, std::abs(v));
    }
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (found[i] == expected[i]) continue;  // infinities
      EXPECT_NEAR(found[i], expected[i], 2e-4 * scale) << i;
    }
  }

 private:
  std::string name_;
  std::map<std::string, int> seen_;  // how often a name has been checked
};

}  // namespace ricci
