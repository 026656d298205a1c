// What the transforms make of random programs, and views with what reads them, on devices: as `lir`
// runs them and, where there is the back end, compiled for the CPU, they compute what the reference
// does.
#include <array>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/compiler/rewrite/cleanup.h"
#include "ricci/ir/verify.h"
#include "ricci/transform/error.h"

#include "backend/agreement.h"
#include "property/for_programs.h"
#include "property/laws.h"

namespace ricci::testing {
namespace {

// What nobody reads is taken away first: it might fault, and a device does not compute it.
std::string check_on_devices(const Program& p) {
  const Graph graph = dead_code_elimination(p.graph).graph;
  const Outcome expected = reference_outcome(graph, p.feeds);
  const auto wrong = [&](std::string_view where, const Outcome& actual) {
    const std::string what = device_disagreement(graph, p.feeds, actual, expected);
    return what.empty() ? what : fmt::format("{}: {}", where, what);
  };
  for (const MadeFor target : all_made_for()) {
    std::string what = wrong(name(target), lir_outcome(graph, p.feeds, target));
    if (!what.empty()) return what;
  }
  for (const bool fuse : {true, false}) {
    std::string what = wrong(fuse ? "fused" : "op by op", compiled_outcome(graph, p.feeds, fuse));
    if (!what.empty()) return what;
  }
  std::size_t donations = 0;
  return wrong("in place", donated_outcome(graph, p.feeds, donations));
}

// A loop without a bound has no reverse mode, and says so.
std::string check_transformed(const Program& p, std::string_view letters, const DTypeSet& dtypes) {
  try {
    const Program q = transformed(p, letters, dtypes);
    verify(q.graph);
    return check_on_devices(q);
  } catch (const AutodiffError& e) {
    if (e.code() != ErrorCode::UnboundedLoop) throw;
    return {};
  }
}

constexpr std::array<std::string_view, 15> Compositions = {
    "r", "f", "b", "rb", "br", "rf", "fr", "rr", "ff", "fb", "bf", "bb", "rfb", "rrr", "brf"};

Check each_with_another_composition(const DTypeSet& dtypes) {
  return [dtypes](const Program& p) {
    const std::string_view letters = Compositions[p.graph.hash() % Compositions.size()];
    const std::string wrong = check_transformed(p, letters, dtypes);
    return wrong.empty() ? wrong : fmt::format("{} after {}", wrong, letters);
  };
}

TEST(PropertyWoven, ComputesWhatTheReferenceDoes) {
  for_programs(program_count(200), {.nodes = 10, .woven = true}, check_on_devices);
}

TEST(PropertyWoven, InEveryDtype) {
  for (const DType dtype : AllDTypes) {
    SCOPED_TRACE(name(dtype));
    for_programs(program_count(8), {.nodes = 12, .dtypes = {dtype}, .woven = true},
                 check_on_devices);
  }
}

TEST(PropertyWoven, DerivativesAndBatches) {
  const DTypeSet real = {DType::F64, DType::F32, DType::BF16, DType::F16};
  for_programs(program_count(60), {.nodes = 6, .tame = true, .woven = true},
               each_with_another_composition(real));
}

TEST(PropertyDerived, CasesOfAllOps) {
  for_programs(program_count(100),
               {.nodes = 6,
                .dtypes = {DType::F64, DType::F32, DType::BF16},
                .differentiable_only = true,
                .tame = true},
               each_with_another_composition(dtypes::floats));
}

TEST(PropertyDerived, ControlFlowInControlFlow) {
  for_programs(program_count(60), {.nodes = 4, .nested = true},
               each_with_another_composition({DType::F64}));
}

}  // namespace
}  // namespace ricci::testing
