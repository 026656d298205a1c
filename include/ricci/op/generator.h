// Generators: values made from nothing but attributes.
#pragma once

#include "ricci/op/fields.h"

namespace ricci::op {

/// Counts along one axis.   out[i_0, …, i_r] = i_axis
struct Iota {
  Dims shape;
  Axis axis = 0;
  DType dtype = DType::I32;

  static constexpr OpInfo info{.name = "iota",
                               .operands = "",
                               .results = "out",
                               .help = "the index along one axis",
                               .formula = "out[i_0, …, i_r] = i_axis",
                               .constraints = "c1 dtype: dtype is a number, not bool\n"
                                              "c2 shape: no dimension is negative"};
  static void fields(auto& self, auto&& f) {
    f("shape", self.shape, "shape of the result", Presence::Required);
    f("axis", self.axis, "axis that is counted");
    f("dtype", self.dtype, "dtype of the result");
  }
  static std::size_t axis_rank(const Iota& self, auto&&) { return self.shape.size(); }
  bool operator==(const Iota&) const = default;
};

}  // namespace ricci::op
