// Cases of ops on a device, and their gradients, tangents and batches: the walk that the suites of
// all devices share, and what it counts.
#pragma once

#include <array>
#include <cstddef>
#include <fstream>
#include <span>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/op/table.h"

#include "ops/cases.h"
#include "ops/chosen_cases.h"
#include "ops/transformed_case.h"
#include "test_paths.h"

namespace ricci::testing {

struct CaseRuns {
  std::size_t cases = 0;
  std::size_t gradients = 0;
  std::size_t tangents = 0;
  std::size_t batches = 0;
};

inline std::string to_string(const CaseRuns& r) {
  return fmt::format("{} cases, {} gradients, {} tangents, {} batches", r.cases, r.gradients,
                     r.tangents, r.batches);
}

/// Calls `check(case, dtype, what)` for the chosen cases of an op until one fails.
template <class F>
void for_chosen_cases(const OpDescriptor& d, std::span<const DType> dtypes, F&& check) {
  for (const DType dtype : dtypes) {
    std::size_t place = 0;
    for (const Case& c : cases_for(d.kind)) {
      if (!c.rejects.empty() || !c.dtypes.has(dtype) || !is_chosen(d, place++, c, dtype)) continue;
      const std::string what = fmt::format("{} case '{}' in {}", d.info->name, c.name, name(dtype));
      try {
        check(c, dtype, what);
      } catch (const std::exception& e) {
        ADD_FAILURE() << what << ": " << e.what();
      }
      if (::testing::Test::HasFailure()) return;  // one case tells enough
    }
  }
}

/// Calls `check(graph, feeds, what)` for the chosen cases of an op.
template <class F>
void run_cases(const OpDescriptor& d, CaseRuns& ran, F&& check) {
  if (d.op_class == OpClass::Block) return;
  for_chosen_cases(d, AllDTypes, [&](const Case& c, DType dtype, const std::string& what) {
    // Written out as a loop, the sweep makes as many trips as its tape has rows and no more.
    if (d.kind == OpKind::WhileBackward && c.fails) return;
    const BuiltCase built = build_case(c, dtype);
    if (!built.graph.symbols().empty()) return;
    ++ran.cases;
    check(built.graph, Feeds(built.feeds.begin(), built.feeds.end()), what);
  });
}

/// The same for the gradient, tangent and batch of a case.
template <class F>
void run_transforms(const Case& c, DType dtype, const std::string& what, CaseRuns& ran, F&& check) {
  const CaseProgram p = program_of(c, dtype);
  if (!p.graph.symbols().empty()) return;
  if (!p.differentiable().empty() && !is_unbounded(c)) {
    const CaseProgram gradient = gradient_of(p, 7);
    check(gradient.graph, gradient.feeds, what + ", gradient");
    ++ran.gradients;
  }
  if (!p.differentiable().empty()) {
    const CaseProgram tangent = tangent_of(p, 7);
    check(tangent.graph, tangent.feeds, what + ", tangent");
    ++ran.tangents;
  }
  if (c.op->has(Trait::Random) || p.inputs().empty()) return;
  const CaseProgram batch = batch_of(c, p, p.inputs(), 3).first;
  check(batch.graph, batch.feeds, what + ", batch");
  ++ran.batches;
}

/// The dtypes that are differentiated by.
inline constexpr std::array FieldDTypes = {DType::F64, DType::F32, DType::C64, DType::C128};

inline bool has_transforms(const OpDescriptor& d) {
  return d.vjp != RuleSource::Leaf && d.vjp != RuleSource::Refused;
}

/// The same for those of the chosen cases of an op.
template <class F>
void run_transforms(const OpDescriptor& d, CaseRuns& ran, F&& check) {
  if (!has_transforms(d)) return;
  for_chosen_cases(d, FieldDTypes, [&](const Case& c, DType dtype, const std::string& what) {
    if (!c.fails) run_transforms(c, dtype, what, ran, check);
  });
}

/// Writes a line of the summary that `make test` prints at its end, unless nothing has run.
class CaseSummary : public ::testing::Environment {
 public:
  using Line = std::string (*)(const CaseRuns&);
  CaseSummary(std::string file, const CaseRuns& ran, Line line)
      : file_(std::move(file)), ran_(ran), line_(line) {}
  void TearDown() override {
    if (ran_.cases + ran_.gradients == 0) return;
    std::ofstream out(RICCI_BUILD_DIR "/test-summary-" + file_ + ".txt");
    out << line_(ran_) << '\n';
  }

 private:
  std::string file_;
  const CaseRuns& ran_;
  Line line_;
};

}  // namespace ricci::testing

/// A suite of one test an op.
#define RICCI_FOR_ALL_OPS(Suite)                             \
  INSTANTIATE_TEST_SUITE_P(                                  \
      All, Suite, ::testing::Range<std::size_t>(0, OpCount), \
      [](const auto& op) { return std::string(all_ops()[op.param].info->name); })
