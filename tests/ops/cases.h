// Cases: one table per op, from which every check of the op is run (types, text, values, layouts,
// expansion, refusals). An op without a table does not link into the tests.
//
//   Cases cases(const op::Concat*) {
//     return cases_of<op::Concat>({
//         {.name = "two_rows", .in = {T({2, 3}), T({1, 3})}, .op = {.axis = 0}},
//         {.name = "rank_differs", .in = {T({2, 3}), T({2})}, .op = {.axis = 0}, .rejects = "c2"},
//     });
//   }
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "ricci/ir/graph.h"
#include "ricci/op/ops.h"

namespace ricci::testing {

inline constexpr double Inf = std::numeric_limits<double>::infinity();
inline constexpr double NaN = std::numeric_limits<double>::quiet_NaN();
inline constexpr DTypeSet Numbers = dtypes::floats | dtypes::ints | dtypes::complexes;
inline constexpr DTypeSet Fields = dtypes::floats | dtypes::complexes;
inline constexpr ErrorCode OutOfRange = ErrorCode::IndexOutOfRange;
inline const Dim Symbol = Dim::symbol("n");

/// A vector of two.
[[nodiscard]] inline Type vec(DType d) { return {d, {2}}; }

/// An operand: its shape, its dtype (absent: the dtype the case is crossed with) and its values.
struct In {
  Dims dims;
  std::optional<DType> dtype;
  double low = -2;  ///< random values lie in [low, high]; integers are rounded down
  double high = 2;
  std::vector<double> values = {};  ///< given values instead of random ones
  double diagonal = 0;              ///< added to the diagonals of matrices of random values

  [[nodiscard]] In between(double l, double h) const {
    return {dims, dtype, l, h, values, diagonal};
  }
  [[nodiscard]] In with(std::vector<double> v) const {
    return {dims, dtype, low, high, v, diagonal};
  }
  [[nodiscard]] In plus_diagonal(double d) const { return {dims, dtype, low, high, values, d}; }
};
/// Random values for an operand.
[[nodiscard]] Tensor random_values(const In& in, const Type& type, std::uint64_t seed);

/// An operand of the crossed dtype.
[[nodiscard]] inline In T(Dims dims) { return {.dims = std::move(dims), .dtype = {}}; }
/// An operand of a fixed dtype.
[[nodiscard]] inline In Fixed(DType dtype, Dims dims) {
  return {.dims = std::move(dims), .dtype = dtype};
}
/// Random indices in [0, limit).
[[nodiscard]] inline In Index(Dims dims, std::int64_t limit, DType dtype = DType::I32) {
  return {.dims = std::move(dims), .dtype = dtype, .low = 0, .high = static_cast<double>(limit)};
}

/// A case with its op erased.
struct Case {
  std::string name;
  std::vector<In> in;
  std::optional<Op> op;
  DTypeSet dtypes;
  std::vector<Body> (*bodies)(DType) = nullptr;
  std::vector<bool> wanted;
  std::string rejects;
  std::vector<std::vector<double>> out;
  std::optional<ErrorCode> fails;
};
using Cases = std::vector<Case>;

/// No default member initialisers here: GCC 12 stumbles over them in a template aggregate.
template <OpStruct O>
struct CaseOf {
  std::string name;
  std::vector<In> in;
  O op;
  DTypeSet dtypes;                           ///< dtypes the case is crossed with; none: floats
  std::vector<Body> (*bodies)(DType dtype);  ///< sub-graphs, for control flow
  std::vector<bool> wanted;                  ///< as NodeSpec::wanted
  std::string rejects;                       ///< the constraint this case breaks
  std::vector<std::vector<double>> out;      ///< expected values per result, by hand
  std::optional<ErrorCode> fails;            ///< the fault running it reports
};

template <OpStruct O>
[[nodiscard]] Cases cases_of(std::vector<CaseOf<O>> list) {
  Cases out;
  for (CaseOf<O>& c : list) {
    out.push_back({std::move(c.name), std::move(c.in), Op(std::move(c.op)),
                   c.dtypes == DTypeSet{} ? dtypes::floats : c.dtypes, c.bodies,
                   std::move(c.wanted), std::move(c.rejects), std::move(c.out), c.fails});
  }
  return out;
}

/// Shapes every element-wise op is tried on: rank 0, size 0 and 1, odd, longer than any vector,
/// rank 6.
[[nodiscard]] inline std::vector<Dims> shape_classes() {
  return {{}, {0}, {1}, {7}, {3, 5}, {2, 0, 3}, {67}, {4, 33}, {1, 2, 1, 3, 2, 2}};
}

/// `case_2x0x3`: a case name for a shape.
[[nodiscard]] inline std::string shape_name(const std::string& base, const Dims& dims) {
  std::string out = base + "_";
  for (const Dim& d : dims) out += (out.back() == '_' ? "" : "x") + d.to_string();
  return dims.empty() ? base + "_scalar" : out;
}

#define RICCI_OP(Type, builder) Cases cases(const op::Type*);
#include "ricci/op/list.def"

/// The table of an op.
[[nodiscard]] Cases cases_for(OpKind kind);

/// Every size `from` of an operand becomes `to`, so that shapes that went together still do.
void replace_size(Case& c, std::int64_t from, std::int64_t to);

/// A case built as a graph, with values for its inputs.
struct BuiltCase {
  Graph graph{"case"};
  std::vector<std::pair<std::string, Tensor>> feeds;
};
[[nodiscard]] BuiltCase build_case(const Case& c, DType dtype);

}  // namespace ricci::testing
