// Runs every case of every op through every transform and pair of transforms.
#include "ops/transforms.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/compiler/rule/vjp.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"
#include "ricci/op/table.h"
#include "ricci/transform/check.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/jvp.h"
#include "ricci/transform/vmap.h"

#include "ops/cases.h"
#include "ops/chosen_cases.h"
#include "ops/transformed_case.h"
#include "support/compare.h"
#include "test_paths.h"

namespace ricci::testing {

namespace {

bool all_finite(const Tensor& t) {
  if (!is_differentiable(t.dtype())) return true;
  return std::ranges::all_of(t.numbers<std::complex<double>>(), [](std::complex<double> v) {
    return std::isfinite(v.real()) && std::isfinite(v.imag());
  });
}

bool all_finite(const CaseProgram& p) {
  return std::ranges::all_of(p.feeds, [](const auto& f) { return all_finite(f.second); }) &&
         std::ranges::all_of(interpret(p.graph, p.feeds),
                             [](const Tensor& t) { return all_finite(t); });
}

CompositionCounts& counts_of(OpKind kind) {
  static std::map<OpKind, CompositionCounts> table;
  return table[kind];
}

std::size_t& cases_run() {
  static std::size_t count = 0;
  return count;
}

struct Bounds {
  double adjoint;
  double difference;
  bool differences;
};

// The inputs of a case that a derivative passes to, and those without elements that it does not.
struct Reached {
  std::string name;
  Op op;
  std::set<std::string> inputs = {};
  std::set<std::string> missed = {};
};

class TransformRun {
 public:
  TransformRun(const Case& c, DType dtype) : case_(c), program_(program_of(c, dtype)) {}

  [[nodiscard]] Reached reached() const {
    Reached out{case_.name, *case_.op};
    if (program_.graph.outputs().empty() || unbounded()) return out;
    for (const std::string& name : program_.differentiable()) {
      const Type& type = program_.graph.type({program_.graph.find_or_throw(name), 0});
      try {
        (void)vjp(program_.graph, {name});
        out.inputs.insert(name);
      } catch (const UserError& e) {
        if (e.code() != ErrorCode::NoGradient) throw;
        if (type.numel() == 0) out.missed.insert(name);
      }
    }
    return out;
  }

  void all() {
    const bool smooth = !straight_through() && !rounds() && !orders_equals();
    const bool differentiable = !program_.differentiable().empty() && !unbounded();
    if (differentiable) {
      const double exact = rounds() ? 1e-2 : has_codes() ? 1e-5 : 1e-12;
      probe(program_, "first order", Composition::Vjp, Composition::Jvp, {exact, 1e-7, smooth});
      check_linearize(program_);
      const CaseProgram gradient = gradient_of(program_, 7);
      probe(gradient, "derivative of the gradient", Composition::VjpOfVjp, Composition::JvpOfVjp,
            {10 * exact, 1e-6, smooth});
      if (!case_.op->has(Trait::Random))
        check_vmap(gradient, "vmap of the gradient", Composition::VmapOfVjp, 2);
    }
    if (case_.op->has(Trait::Random)) return;
    check_vmap(program_, "vmap", Composition::Vmap, 8);
    if (differentiable) {
      const CaseProgram batched = batch_of(case_, program_, program_.inputs(), Batch).first;
      probe(batched, "gradient of vmap", Composition::VjpOfVmap, Composition::VjpOfVmap,
            {rounds()      ? 1e-1
             : has_codes() ? 1e-5
                           : 1e-11,
             1e-6, smooth});
    }
  }

 private:
  // Rules that are not the derivative of what the op computes, on purpose.
  [[nodiscard]] bool straight_through() const {
    const auto* u = case_.op->as<op::Unary>();
    const auto* b = case_.op->as<op::ActivationBackward>();
    const auto* f = case_.op->as<op::CustomFn>();
    const auto* p = case_.op->as<op::DequantMatmul>();
    if (p != nullptr && p->int8_activations) return true;
    return case_.op->has(Trait::StraightThrough) || case_.op->is<op::StopGradient>() ||
           (u != nullptr && u->kind == UnaryKind::Round) ||
           (b != nullptr && b->kind == UnaryKind::Round) ||
           (f != nullptr && !f->no_gradient.empty());
  }

  // A loop without a bound has no reverse mode; it says so.
  [[nodiscard]] bool unbounded() const {
    const auto* loop = case_.op->as<op::While>();
    if (loop == nullptr || loop->max_iterations) return false;
    try {
      (void)gradient_of(program_, 7);
      ADD_FAILURE() << "was differentiated";
    } catch (const UserError& e) {
      EXPECT_EQ(e.code(), ErrorCode::UnboundedLoop) << e.what();
    }
    return true;
  }

  // Equal elements keep their places, so each has a derivative of its own; differences see their
  // mean.
  [[nodiscard]] bool orders_equals() const {
    if (!case_.op->as<op::Sort>() && !case_.op->as<op::TopK>()) return false;
    const std::vector<double>& given = case_.in[0].values;
    return std::set(given.begin(), given.end()).size() < given.size();
  }

  // Derivatives of codes are f32.
  [[nodiscard]] bool has_codes() const {
    return std::ranges::any_of(program_.graph.nodes(), [](const Node& node) {
      return !descriptor(node.op.kind()).info->codes.empty();
    });
  }

  // Differences see the rounding of a narrower dtype.
  [[nodiscard]] bool rounds() const {
    return std::ranges::any_of(program_.graph.nodes(), [](const Node& node) {
      return std::ranges::any_of(node.types, [](const Type& t) {
        return is_differentiable(t.dtype) && t.dtype != DType::F64 && t.dtype != DType::C128;
      });
    });
  }

  void count(Composition c) { ++counts_of(case_.op->kind())[static_cast<std::size_t>(c)]; }

  // `reverse` and `forward`: what a probe in each mode says something about.
  void probe(const CaseProgram& p, const char* what, Composition reverse, Composition forward,
             const Bounds& bounds) {
    SCOPED_TRACE(what);
    const Names names = p.differentiable();
    if (names.empty() || p.graph.outputs().empty()) return;
    const DerivativeProbe d = probe_derivatives(p.graph, names, p.feeds, 11);
    if (!d.finite()) {
      EXPECT_FALSE(all_finite(p)) << "a derivative of finite values is not finite\n"
                                  << print(p.graph);
      return;
    }
    count(reverse);
    count(forward);
    EXPECT_LE(d.adjoint_gap(), bounds.adjoint)
        << "⟨u, Jt⟩ = " << d.forward << " but ⟨Jᵀu, t⟩ = " << d.reverse << "\n"
        << print(p.graph);
    if (!bounds.differences || !d.smooth) return;
    count(forward);
    EXPECT_LE(d.difference_gap(), bounds.difference)
        << "⟨u, Jt⟩ = " << d.forward << " but differences give " << d.difference << "\n"
        << print(p.graph);
  }

  // Both halves of a linearisation give what forward mode gives.
  void check_linearize(const CaseProgram& p) {
    SCOPED_TRACE("linearize");
    const Names names = p.differentiable();
    const Transformed whole = jvp(p.graph, {names.begin(), names.end()});
    const Linearized split = linearize(p.graph, {names.begin(), names.end()});
    verify(split.primal.graph);
    verify(split.tangent);
    Feeds feeds = p.feeds;
    Feeds directions;
    for (const auto& [conventional, chosen] : whole.names) {
      const Type& type = whole.graph.type({whole.graph.find_or_throw(chosen), 0});
      directions.emplace(chosen, random_tensor(3, type, -1, 1));
    }
    const auto values = interpret(split.primal.graph, feeds);
    const std::size_t outputs = p.graph.outputs().size();
    feeds.insert(directions.begin(), directions.end());
    for (std::size_t i = 0; i < split.residuals; ++i) {
      directions.emplace(fmt::format("residual_{}", i), values[outputs + i]);
    }
    const auto expected = interpret(whole.graph, feeds);
    const auto tangents = interpret(split.tangent, directions);
    for (std::size_t i = 0; i < outputs; ++i) {
      EXPECT_TRUE(close(values[i], expected[i], {1e-11, 1e-11}));
      EXPECT_TRUE(close(tangents[i], expected[outputs + i], {1e-11, 1e-11}));
      count(Composition::Jvp);
    }
  }

  static constexpr std::int64_t Batch = 3;

  void check_vmap(const CaseProgram& p, const char* what, Composition which, std::size_t most) {
    SCOPED_TRACE(what);
    const Names names = p.inputs();
    if (names.empty()) return;
    const std::size_t subsets = std::size_t{1} << std::min<std::size_t>(names.size(), 20);
    // All of them, and as many other subsets as asked for.
    std::vector<std::size_t> masks{subsets - 1};
    for (std::size_t m = 1; m + 1 < subsets && masks.size() < most; ++m) masks.push_back(m);
    for (const std::size_t mask : masks) {
      Names batched;
      for (std::size_t k = 0; k < names.size() && k < 20; ++k) {
        if ((mask >> k) & 1) batched.push_back(names[k]);
      }
      check_against_loop(p, which, batched);
    }
  }

  // A kernel and its expansion round differently.
  static bool batches_by_expansion(const CaseProgram& p) {
    return std::ranges::any_of(p.graph.nodes(), [](const Node& node) {
      return descriptor(node.op.kind()).batch == RuleSource::Expansion;
    });
  }

  void check_against_loop(const CaseProgram& p, Composition which, const Names& batched) {
    SCOPED_TRACE(fmt::format("batched: {}", fmt::join(batched, ", ")));
    const auto [over, examples] = batch_of(case_, p, batched, Batch);
    const std::vector<Tensor> all = interpret(over.graph, over.feeds);
    for (std::int64_t e = 0; e < Batch; ++e) {
      const auto alone = interpret(p.graph, examples[static_cast<std::size_t>(e)]);
      for (std::size_t i = 0; i < alone.size(); ++i) {
        const Tensor row = all[i].narrowed(0, e, 1).reshaped(alone[i].dims());
        count(which);
        if (batches_by_expansion(p)) {
          EXPECT_TRUE(close(row, alone[i], {1e-12, 1e-12})) << print(over.graph);
        } else {
          EXPECT_TRUE(same(row, alone[i])) << "output " << i << " of example " << e << "\n"
                                           << print(over.graph);
        }
      }
    }
  }

  const Case& case_;
  CaseProgram program_;
};

// Every transform an op takes part in was checked on it.
void expect_no_empty_cell(const OpDescriptor& d) {
  const CompositionCounts& counts = counts_of(d.kind);
  const auto at = [&](Composition c) { return counts[static_cast<std::size_t>(c)]; };
  const bool random = has(d.info->traits, Trait::Random);
  if (!d.operands.empty() && !random) {
    EXPECT_GT(at(Composition::Vmap), 0U) << d.info->name;
  }
  if (d.vjp == RuleSource::Zero) return;
  for (std::size_t c = 0; c < counts.size(); ++c) {
    EXPECT_GT(counts[c], 0U) << d.info->name << ": " << CompositionNames[c];
  }
}

class OpTransforms : public ::testing::TestWithParam<std::size_t> {};

// What holds for every op on every case of its table, and so shows promises about single ops:
// - There is a rule in every mode, and jvp and vjp are transposes and match differences:
//   [total-rules] [numeric-tests] [jvp-rules-correct] [TR-09], of activations [EW-01] [EW-02]
//   [EW-06] [EW-08], with broadcasting [EW-14], on complex numbers [EW-10], of reductions
//   [RD-03] [RD-05] [RD-08], solves [LA-06], norms [NM-03] [NM-06] [NM-09] [NM-10] [NM-11],
//   attention and rotations [AT-09] [AT-12], scatters [SH-12], convolutions [CV-02], losses
//   [LS-01], scans and sequence models [scan-jvp] [ssm-jvp], regions [region-ad] and fused ops
//   [fused-native-backward].
// - Gradients are differentiated again: [BW-01] [BW-06] [EW-09] [conv-backward-second-order]
//   [scan-higher-order].
// - vmap over subsets of the operands is a loop: [TR-15] [TR-04] [TR-13] [TR-14] [EW-22] [EW-24]
//   [NM-04] [NM-07] [AT-11] [AT-15] [SH-05] [SH-10] [CV-03] [scan-vmap], of gradients too [BW-03]
//   [BW-07].

TEST_P(OpTransforms, Hold) {
  const OpDescriptor& d = all_ops()[GetParam()];
  if (!is_chosen(d)) return;
  if (d.vjp == RuleSource::Leaf) return;  // the drivers deal with leaves; every other op has some
  std::vector<Reached> cases;
  for (const Case& c : cases_for(d.kind)) {
    if (!c.rejects.empty() || c.fails) continue;
    for (const DType dtype : {DType::F64, DType::C128}) {
      if (!c.dtypes.has(dtype)) continue;
      SCOPED_TRACE(fmt::format("{} case '{}' in {}", d.info->name, c.name, name(dtype)));
      try {
        if (!build_case(c, dtype).graph.symbols().empty()) continue;
        TransformRun run(c, dtype);
        run.all();
        cases.push_back(run.reached());
        ++cases_run();
      } catch (const std::exception& e) {
        ADD_FAILURE() << e.what();
      }
      if (HasFailure()) return;  // one case tells enough
    }
  }
  // What has no elements is differentiated as any other.
  for (const Reached& a : cases) {
    for (const Reached& b : cases) {
      for (const std::string& input : a.missed) {
        EXPECT_FALSE(a.op == b.op && b.inputs.contains(input))
            << d.info->name << " case '" << a.name << "' gives " << input << " no gradient";
      }
    }
  }
  expect_no_empty_cell(d);
}

INSTANTIATE_TEST_SUITE_P(All, OpTransforms, ::testing::Range<std::size_t>(0, OpCount),
                         [](const auto& op) {
                           return std::string(all_ops()[op.param].info->name);
                         });

// Where the rule of a column comes from; pairs of transforms come from those of the first.
RuleSource source_of(const OpDescriptor& d, std::size_t column) {
  switch (static_cast<Composition>(column)) {
    case Composition::Jvp: return d.jvp;
    case Composition::Vmap: return d.batch;
    default: return d.vjp;
  }
}

// Writes the matrix and the closing summary that `make test` prints.
class TransformMatrix : public ::testing::Environment {
 public:
  void TearDown() override {
    if (cases_run() == 0) return;
    std::size_t checks = 0;
    std::string rows;
    for (const OpDescriptor& d : all_ops()) {
      rows += fmt::format("{:<36}", d.info->name);
      const CompositionCounts& counts = counts_of(d.kind);
      for (std::size_t c = 0; c < counts.size(); ++c) {
        rows += fmt::format("{:>14}", counts[c] > 0 ? std::to_string(counts[c])
                                                    : std::string(name(source_of(d, c))));
        checks += counts[c];
      }
      rows += "\n";
    }
    std::ofstream matrix(RICCI_BUILD_DIR "/transform-matrix.txt");
    matrix << fmt::format("{:<36}", "checks per op");
    for (const std::string_view n : CompositionNames) matrix << fmt::format("{:>14}", n);
    matrix << "\n" << rows;
    std::ofstream summary(RICCI_BUILD_DIR "/test-summary-transforms.txt");
    summary << fmt::format("transforms: {} cases, {} checks; see transform-matrix.txt\n",
                           cases_run(), checks);
  }
};
const ::testing::Environment* const matrix =
    ::testing::AddGlobalTestEnvironment(new TransformMatrix);  // NOLINT: gtest owns it

}  // namespace
}  // namespace ricci::testing
