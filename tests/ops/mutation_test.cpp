// A test of the tests: changes one derivative rule at a time and sees whether the checks notice.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/op/table.h"
#include "ricci/transform/check.h"

#include "ops/cases.h"
#include "rule/perturb.h"
#include "test_paths.h"

namespace ricci::testing {
namespace {

// What can be wrong with a rule.
enum class Mutation : std::uint8_t {
  Sign,
  Factor,
  Dropped,          // the contribution is missing
  DroppedTerm,      // its first element is missing
  Transposed,       // its elements are in another order
  MissingReduction  // every element is the first one
};
constexpr std::array Mutations = {Mutation::Sign,       Mutation::Factor,
                                  Mutation::Dropped,    Mutation::DroppedTerm,
                                  Mutation::Transposed, Mutation::MissingReduction};
constexpr std::array<std::string_view, 6> MutationNames = {
    "sign", "factor", "dropped", "dropped term", "transposed", "missing reduction"};

// Which rule: reverse or forward mode, the op, the operand or result.
struct Target {
  bool reverse = true;
  std::string op;
  std::size_t index = 0;
  auto operator<=>(const Target&) const = default;
};

Value first_element(Value v) {
  Value flat = reshape_to(v, {v.type().numel().value()});
  return reshape_to(narrow(flat, {.axis = 0, .start = 0, .len = 1}), {});
}

// Nothing where a mutation cannot change a value of this shape.
std::optional<Value> mutated(Mutation m, Value v) {
  const auto count = v.type().numel();
  if (!count || *count == 0) return std::nullopt;
  const auto flat = [&] { return reshape_to(v, {*count}); };
  switch (m) {
    case Mutation::Sign: return -v;
    case Mutation::Factor: return v * 1.25;
    case Mutation::Dropped: return Value();
    case Mutation::DroppedTerm: {
      const Value index = iota(v.graph(), {.shape = {*count}, .axis = 0});
      const Value kept = where(ne(index, scalar_like(index, 0)), flat(), scalar_like(v, 0));
      return reshape_to(kept, v.dims());
    }
    case Mutation::Transposed:
      if (*count < 2) return std::nullopt;
      return reshape_to(reverse(flat(), {.axes = {0}}), v.dims());
    case Mutation::MissingReduction:
      if (*count < 2) return std::nullopt;
      return broadcast_to(first_element(v), v.dims());
  }
  return std::nullopt;
}

struct Hooks {
  ~Hooks() { rule::perturbations() = {}; }
};

// Calls `visit(target, value)` for everything rules give.
void install(const std::function<void(const Target&, Value&)>& visit) {
  rule::perturbations().vjp = [visit](const VjpContext& c, Cotangents& given) {
    for (std::size_t k = 0; k < given.size(); ++k) {
      if (given[k].valid() && c.needs(k)) {
        visit({true, std::string(c.node().op.mnemonic()), k}, given[k]);
      }
    }
  };
  rule::perturbations().jvp = [visit](const Node& node, std::vector<Value>& given) {
    for (std::size_t r = 0; r < given.size(); ++r) {
      if (given[r].valid()) visit({false, std::string(node.op.mnemonic()), r}, given[r]);
    }
  };
}

struct Subject {
  std::string name;
  Graph graph;
  Feeds feeds;
  std::vector<std::string> wrt;
};

DerivativeProbe probe(const Subject& s) { return probe_derivatives(s.graph, s.wrt, s.feeds, 3); }

bool passes(const DerivativeProbe& d) {
  return d.finite() && d.adjoint_gap() <= 1e-11 && (!d.smooth || d.difference_gap() <= 1e-6);
}

bool notices(const Subject& s) {
  try {
    return !passes(probe(s));
  } catch (const std::exception&) {
    return true;
  }
}

// The cases on which all is well, with the rules each of them uses.
struct Suite {
  std::vector<Subject> subjects;
  std::map<Target, std::vector<std::size_t>> users;
};

Suite build_suite() {
  Suite suite;
  for (const OpDescriptor& d : all_ops()) {
    for (const Case& c : cases_for(d.kind)) {
      if (!c.rejects.empty() || c.fails || !c.dtypes.has(DType::F64)) continue;
      BuiltCase built = build_case(c, DType::F64);
      if (!built.graph.symbols().empty()) continue;
      Subject s{fmt::format("{}/{}", d.info->name, c.name), std::move(built.graph), {}, {}};
      for (auto& [name, value] : built.feeds) {
        if (value.dtype() == DType::F64 && value.numel() > 0) s.wrt.push_back(name);
        s.feeds.emplace(name, std::move(value));
      }
      if (s.wrt.empty()) continue;
      std::set<Target> seen;
      {
        const Hooks guard;
        install([&](const Target& t, Value&) { seen.insert(t); });
        if (seen.clear(), notices(s)) continue;  // not finite, or narrower inside
      }
      for (const Target& t : seen) suite.users[t].push_back(suite.subjects.size());
      suite.subjects.push_back(std::move(s));
    }
  }
  return suite;
}

// Does some case notice the mutant? Nothing when it changes no value anywhere.
std::optional<bool> caught(const Suite& suite, const Target& target, Mutation m,
                           const std::vector<std::size_t>& users) {
  bool applied = false;
  const Hooks guard;
  install([&](const Target& t, Value& v) {
    if (t != target) return;
    if (const auto now = mutated(m, v)) {
      v = *now;
      applied = true;
    }
  });
  for (const std::size_t i : users) {
    if (notices(suite.subjects[i])) return true;
  }
  if (!applied) return std::nullopt;
  return false;
}

TEST(OpMutations, AreNoticed) {
  const Suite suite = build_suite();
  std::size_t total = 0;
  std::vector<std::string> survivors;
  for (const auto& [target, users] : suite.users) {
    for (const Mutation m : Mutations) {
      const auto result = caught(suite, target, m, users);
      if (!result) continue;
      ++total;
      if (*result) continue;
      survivors.push_back(fmt::format("{} of {} {}: {}", target.reverse ? "vjp" : "jvp", target.op,
                                      target.index, MutationNames[static_cast<std::size_t>(m)]));
    }
  }
  std::ofstream report(RICCI_BUILD_DIR "/test-summary-mutations.txt");
  report << fmt::format("mutants of derivative rules: {}, noticed {}, not noticed {}\n", total,
                        total - survivors.size(), survivors.size());
  for (const std::string& s : survivors) report << "  " << s << "\n";
  EXPECT_GE(total, 1000U);
  EXPECT_LE(100 * survivors.size(), total) << fmt::format("{}", fmt::join(survivors, "\n"));
}

}  // namespace
}  // namespace ricci::testing
