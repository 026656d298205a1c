// Derivatives of every case of every op in f16 and bf16 against those in f64 of the same numbers:
// what a rule computes in between stays in range, and is rounded a few times at most.
#include <algorithm>
#include <cmath>
#include <complex>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/interp/interpreter.h"
#include "ricci/ir/text.h"
#include "ricci/op/table.h"

#include "ops/cases.h"
#include "ops/chosen_cases.h"
#include "ops/transformed_case.h"
#include "support/compare.h"

namespace ricci::testing {
namespace {

class OpSmallFloats : public ::testing::TestWithParam<std::size_t> {};

// The program's results in f64, of the numbers that another one has in a narrower dtype.
std::vector<Tensor> in_f64(const CaseProgram& wide, const CaseProgram& small) {
  Feeds feeds;
  for (const auto& [name, t] : wide.feeds) {
    const Tensor& given = small.feeds.at(name);
    using Number = std::complex<double>;
    feeds.emplace(name, is_differentiable(t.dtype())
                            ? Tensor::from_numbers<Number>(t.type(), given.numbers<Number>())
                            : given);
  }
  return interpret(wide.graph, feeds);
}

// The largest difference, in units of the last place of the largest number.
double largest_error(const Tensor& found, const Tensor& expected) {
  const std::vector<double> have = found.numbers<double>();
  const std::vector<double> want =
      Tensor::from_numbers<double>(found.type(), expected.numbers<double>()).numbers<double>();
  double size = 0;
  double gap = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (!std::isfinite(want[i])) continue;
    size = std::max(size, std::abs(want[i]));
    gap = std::max(gap, std::isfinite(have[i]) ? std::abs(have[i] - want[i]) : HUGE_VAL);
  }
  const double unit = found.dtype() == DType::F16 ? 0x1p-11 : 0x1p-8;
  return gap == 0 ? 0 : gap / (unit * std::max(size, unit));
}

template <class Derivative>
void expect_near_f64(const Case& c, DType dtype, Derivative&& derivative) {
  // Loops round at every step.
  const double units = descriptor(c.op->kind()).bodies.empty() ? 16 : 128;
  const CaseProgram small = derivative(program_of(c, dtype));
  const CaseProgram wide = derivative(program_of(c, DType::F64));
  const std::vector<Tensor> found = interpret(small.graph, small.feeds);
  const std::vector<Tensor> expected = in_f64(wide, small);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t r = 0; r < found.size(); ++r) {
    if (!is_float(found[r].dtype()) || found[r].dtype() == DType::F64) continue;
    EXPECT_LE(largest_error(found[r], expected[r]), units) << "result " << r << "\n"
                                                           << print(small.graph);
  }
}

TEST_P(OpSmallFloats, DerivativesAreNearThoseInF64) {
  const OpDescriptor& d = all_ops()[GetParam()];
  if (!is_chosen(d) || d.vjp == RuleSource::Leaf || d.op_class == OpClass::Block) return;
  if (has(d.info->traits, Trait::Random)) return;
  for (const Case& c : cases_for(d.kind)) {
    if (!c.rejects.empty() || c.fails || is_unbounded(c) || !c.dtypes.has(DType::F64)) continue;
    for (const DType dtype : {DType::F16, DType::BF16}) {
      if (!c.dtypes.has(dtype)) continue;
      SCOPED_TRACE(fmt::format("{} case '{}' in {}", d.info->name, c.name, name(dtype)));
      if (!build_case(c, dtype).graph.symbols().empty()) continue;
      if (program_of(c, dtype).differentiable().empty()) continue;
      try {
        expect_near_f64(c, dtype, [](const CaseProgram& p) { return gradient_of(p, 7); });
        expect_near_f64(c, dtype, [](const CaseProgram& p) { return tangent_of(p, 7); });
      } catch (const std::exception& e) {
        ADD_FAILURE() << e.what();
      }
      if (HasFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, OpSmallFloats, ::testing::Range<std::size_t>(0, OpCount),
                         [](const auto& op) {
                           return std::string(all_ops()[op.param].info->name);
                         });

}  // namespace
}  // namespace ricci::testing
