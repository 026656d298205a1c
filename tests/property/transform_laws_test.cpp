// The laws of `laws.h` on random programs: shrunk to a small one where they fail.
#include <gtest/gtest.h>

#include "ricci/ir/verify.h"
#include "ricci/transform/error.h"

#include "property/for_programs.h"
#include "property/laws.h"

namespace ricci::testing {
namespace {

const GeneratorOptions Differentiable{
    .nodes = 8, .dtypes = {DType::F64}, .differentiable_only = true, .tame = true};
const GeneratorOptions Nested{.nodes = 4, .nested = true};

// A loop without a bound has no reverse mode, and says so.
Check where_defined(const Check& check) {
  return [check](const Program& p) -> std::string {
    try {
      return check(p);
    } catch (const AutodiffError& e) {
      if (e.code() != ErrorCode::UnboundedLoop) throw;
      return {};
    }
  };
}

TEST(PropertyTransforms, ForwardAndReverseModeAreTransposes) {
  for_programs(program_count(300), Differentiable, where_defined(check_adjoint));
}

TEST(PropertyTransforms, HessiansAreSymmetric) {
  for_programs(program_count(150), Differentiable, where_defined(check_hessian));
}

TEST(PropertyTransforms, SeriesAreNestedDerivatives) {
  for_programs(program_count(100), Differentiable, where_defined(check_jet));
}

TEST(PropertyTransforms, VmapIsALoop) {
  for_programs(program_count(200), Differentiable, check_vmap);
}

TEST(PropertyTransforms, CheckpointsChangeNothing) {
  for_programs(program_count(100), Differentiable, where_defined(check_checkpoint));
}

// Control flow in control flow, up to the third order: a letter a transform, the first the inmost;
// the laws add one more.
class PropertyNestedTransforms : public ::testing::TestWithParam<const char*> {};

TEST_P(PropertyNestedTransforms, ObeyTheLaws) {
  for_programs(program_count(60), Nested, [](const Program& given) -> std::string {
    Program p = given;
    for (const char c : std::string_view(GetParam())) {
      if (!says_something(p)) return {};
      switch (c) {
        case 'f': p = forward_of(p); break;
        case 'r': p = reverse_of(p); break;
        default: p = batch_of(p); break;
      }
      verify(p.graph);
    }
    if (std::string wrong = check_adjoint(p); !wrong.empty()) return wrong;
    return check_vmap(p);
  });
}

INSTANTIATE_TEST_SUITE_P(Compositions, PropertyNestedTransforms,
                         ::testing::Values("", "f", "r", "b", "ff", "fr", "fb", "rf", "rr", "rb",
                                           "bf", "br", "bb"),
                         [](const auto& p) {
                           return p.param[0] == 0 ? std::string("none") : std::string(p.param);
                         });

TEST(PropertyNested, HessiansAreSymmetric) {
  for_programs(program_count(200), Nested, check_hessian);
}

TEST(PropertyNested, SeriesAreNestedDerivatives) {
  for_programs(program_count(200), Nested, check_jet);
}

TEST(PropertyNested, CheckpointsChangeNothing) {
  for_programs(program_count(100), Nested, check_checkpoint);
}

}  // namespace
}  // namespace ricci::testing
