// Runs every case of every op through every transform and pair of transforms.
#include "ops/transforms.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/interp/interpreter.h"
#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"
#include "ricci/op/table.h"
#include "ricci/rule/vjp.h"
#include "ricci/transform/check.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/jvp.h"
#include "ricci/transform/vmap.h"

#include "ops/cases.h"
#include "support/compare.h"

namespace ricci::testing {

TransformCounts& transform_counts() {
  static TransformCounts counts;
  return counts;
}

namespace {

using Names = std::vector<std::string>;

// A graph with values for its inputs, and the inputs that can be moved.
struct Program {
  Graph graph;
  Feeds feeds;
  Names fixed = {};  // inputs that only count as what they are: indices held by floats

  [[nodiscard]] bool is_fixed(const std::string& name) const {
    return std::ranges::find(fixed, name) != fixed.end();
  }
  [[nodiscard]] Names differentiable() const {
    Names out;
    for (const NodeId id : graph.inputs()) {
      const auto& in = *graph.node(id).op.as<op::Input>();
      if (has_derivative(in.type.dtype) && !is_fixed(in.name)) out.push_back(in.name);
    }
    return out;
  }
};

bool all_finite(const Tensor& t) {
  if (!has_derivative(t.dtype())) return true;
  return std::ranges::all_of(t.numbers<std::complex<double>>(), [](std::complex<double> v) {
    return std::isfinite(v.real()) && std::isfinite(v.imag());
  });
}

bool all_finite(const Program& p) {
  return std::ranges::all_of(p.feeds, [](const auto& f) { return all_finite(f.second); }) &&
         std::ranges::all_of(interpret(p.graph, p.feeds),
                             [](const Tensor& t) { return all_finite(t); });
}

// The gradient as a program of its own: inputs and cotangents in, gradients out.
Program gradient_of(const Program& p, std::uint64_t seed) {
  const Names names = p.differentiable();
  Transformed g = vjp(p.graph, {names.begin(), names.end()}, GradOptions::training());
  verify(g.graph);
  Program out{std::move(g.graph), p.feeds, p.fixed};
  for (const auto& [conventional, chosen] : g.names) {
    const Type& type = out.graph.node(out.graph.find_or_throw(chosen)).types[0];
    out.feeds.emplace(chosen, random_tensor(seed++, type, -1, 1));
  }
  // The forward outputs are checked already.
  const std::size_t forward = p.graph.outputs().size();
  std::vector<ValueId> outputs(out.graph.outputs().begin() + static_cast<std::ptrdiff_t>(forward),
                               out.graph.outputs().end());
  out.graph.set_outputs(std::move(outputs));
  return out;
}

struct Bounds {
  double adjoint;
  double difference;
  bool differences;
};

class TransformRun {
 public:
  TransformRun(const Case& c, DType dtype) : case_(c), dtype_(dtype) {
    BuiltCase b = build_case(c, dtype);
    program_ = {std::move(b.graph), {b.feeds.begin(), b.feeds.end()}};
    for (const Node& node : program_.graph.nodes()) {
      for (std::size_t k = 0; k < node.operands.size(); ++k) {
        const auto* in = program_.graph.node(node.operands[k].node).op.as<op::Input>();
        if (in == nullptr || !has_derivative(in->type.dtype)) continue;
        if (!carries_derivative(program_.graph.registry(), node, k, in->type)) {
          program_.fixed.push_back(in->name);
        }
      }
    }
  }

  void all() {
    const bool smooth = !straight_through() && !rounds() && !orders_equals();
    const bool differentiable = !program_.differentiable().empty();
    if (differentiable) {
      const double exact = rounds() ? 1e-2 : 1e-12;
      probe(program_, "first order", {exact, 1e-7, smooth});
      const Program gradient = gradient_of(program_, 7);
      probe(gradient, "derivative of the gradient", {10 * exact, 1e-6, smooth});
      if (!case_.op->has(Trait::Random)) check_vmap(gradient, "vmap of the gradient", 2);
    }
    if (case_.op->has(Trait::Random)) return;
    check_vmap(program_, "vmap", 8);
    if (differentiable) {
      const Program batched = batch_of(program_, every_input(program_)).first;
      probe(batched, "gradient of vmap", {rounds() ? 1e-1 : 1e-11, 1e-6, smooth});
    }
  }

 private:
  // Rules that are not the derivative of what the op computes, on purpose.
  [[nodiscard]] bool straight_through() const {
    const auto* u = case_.op->as<op::Unary>();
    const auto* b = case_.op->as<op::ActivationBackward>();
    return (u != nullptr && u->kind == UnaryKind::Round) ||
           (b != nullptr && b->kind == UnaryKind::Round);
  }

  // Equal elements keep their places, so each has a derivative of its own; differences see their
  // mean.
  [[nodiscard]] bool orders_equals() const {
    if (!case_.op->as<op::Sort>() && !case_.op->as<op::TopK>()) return false;
    const std::vector<double>& given = case_.in[0].values;
    return std::set(given.begin(), given.end()).size() < given.size();
  }

  // Differences see the rounding of a narrower dtype.
  [[nodiscard]] bool rounds() const {
    return std::ranges::any_of(program_.graph.nodes(), [](const Node& node) {
      return std::ranges::any_of(node.types, [](const Type& t) {
        return has_derivative(t.dtype) && t.dtype != DType::F64 && t.dtype != DType::C128;
      });
    });
  }

  void probe(const Program& p, const char* what, const Bounds& bounds) {
    SCOPED_TRACE(what);
    const Names names = p.differentiable();
    if (names.empty() || p.graph.outputs().empty()) return;
    const DerivativeProbe d = probe_derivatives(p.graph, names, p.feeds, 11);
    ++transform_counts().checks;
    if (!d.finite()) {
      EXPECT_FALSE(all_finite(p)) << "a derivative of finite values is not finite\n"
                                  << print(p.graph);
      return;
    }
    EXPECT_LE(d.adjoint_gap(), bounds.adjoint)
        << "⟨u, Jt⟩ = " << d.forward << " but ⟨Jᵀu, t⟩ = " << d.reverse << "\n"
        << print(p.graph);
    if (!bounds.differences || !d.smooth) return;
    ++transform_counts().checks;
    EXPECT_LE(d.difference_gap(), bounds.difference)
        << "⟨u, Jt⟩ = " << d.forward << " but differences give " << d.difference << "\n"
        << print(p.graph);
  }

  static Names every_input(const Program& p) {
    Names out;
    for (const NodeId id : p.graph.inputs()) {
      out.push_back(p.graph.node(id).op.as<op::Input>()->name);
    }
    return out;
  }

  // Other values an input may take.
  [[nodiscard]] Tensor another(const Program& p, const std::string& name,
                               std::uint64_t seed) const {
    const Tensor& t = p.feeds.at(name);
    for (std::size_t k = 0; k < case_.in.size(); ++k) {
      if (name != fmt::format("x{}", k)) continue;
      const In& in = case_.in[k];
      if (in.values.empty()) return random_tensor(seed + 31 * k, t.type(), in.low, in.high);
      if (!is_float(t.dtype()) || p.is_fixed(name)) return t;
      auto numbers = t.numbers<double>();
      for (double& v : numbers) v *= 1 + 1e-3 * static_cast<double>(seed);
      return Tensor::from_numbers<double>(t.type(), numbers);
    }
    return random_tensor(seed, t.type(), -1, 1);
  }

  static constexpr std::int64_t Batch = 3;

  // The program over a batch, and the feeds of each example.
  [[nodiscard]] std::pair<Program, std::vector<Feeds>> batch_of(const Program& p,
                                                                const Names& batched) const {
    std::vector<Feeds> examples(Batch, p.feeds);
    std::vector<BatchedInput> inputs;
    for (const std::string& name : batched) {
      inputs.emplace_back(name);
      for (std::int64_t e = 1; e < Batch; ++e) {
        examples[static_cast<std::size_t>(e)][name] =
            another(p, name, static_cast<std::uint64_t>(e));
      }
    }
    Transformed t = vmap(p.graph, inputs, Batch);
    verify(t.graph);
    Program out{std::move(t.graph), p.feeds, p.fixed};
    for (const std::string& name : batched) {
      std::vector<Tensor> rows;
      for (const Feeds& f : examples) rows.push_back(f.at(name));
      out.feeds[name] = stack(rows);
    }
    return {std::move(out), std::move(examples)};
  }

  static Tensor stack(const std::vector<Tensor>& rows) {
    Type type = rows[0].type();
    type.dims.insert(type.dims.begin(), Dim(rows.size()));
    std::vector<std::complex<double>> all;
    for (const Tensor& r : rows) {
      const auto numbers = r.numbers<std::complex<double>>();
      all.insert(all.end(), numbers.begin(), numbers.end());
    }
    if (is_int(type.dtype) || type.dtype == DType::Bool) {
      std::vector<std::int64_t> ints;
      for (const Tensor& r : rows) {
        const auto numbers = r.numbers<std::int64_t>();
        ints.insert(ints.end(), numbers.begin(), numbers.end());
      }
      return Tensor::from_numbers<std::int64_t>(type, ints);
    }
    return Tensor::from_numbers<std::complex<double>>(type, all);
  }

  void check_vmap(const Program& p, const char* what, std::size_t most) {
    SCOPED_TRACE(what);
    const Names names = every_input(p);
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
      check_against_loop(p, batched);
    }
  }

  void check_against_loop(const Program& p, const Names& batched) {
    SCOPED_TRACE(fmt::format("batched: {}", fmt::join(batched, ", ")));
    const auto [over, examples] = batch_of(p, batched);
    const std::vector<Tensor> all = interpret(over.graph, over.feeds);
    for (std::int64_t e = 0; e < Batch; ++e) {
      const auto alone = interpret(p.graph, examples[static_cast<std::size_t>(e)]);
      for (std::size_t i = 0; i < alone.size(); ++i) {
        const Tensor row = all[i].narrowed(0, e, 1).reshaped(alone[i].dims());
        ++transform_counts().checks;
        if (by_expansion_) {
          EXPECT_TRUE(close(row, alone[i], {1e-12, 1e-12})) << print(over.graph);
        } else {
          EXPECT_TRUE(same(row, alone[i])) << "output " << i << " of example " << e << "\n"
                                           << print(over.graph);
        }
      }
    }
  }

  const Case& case_;
  DType dtype_;
  Program program_;
  // A kernel and its expansion round differently.
  bool by_expansion_ = descriptor(case_.op->kind()).batch == RuleSource::Expansion;
};

class OpTransforms : public ::testing::TestWithParam<std::size_t> {};

TEST_P(OpTransforms, Hold) {
  const OpDescriptor& d = all_ops()[GetParam()];
  if (d.vjp == RuleSource::Refused || d.vjp == RuleSource::Leaf) GTEST_SKIP();
  for (const Case& c : cases_for(d.kind)) {
    if (!c.rejects.empty() || c.fails) continue;
    for (const DType dtype : {DType::F64, DType::C128}) {
      if (!c.dtypes.has(dtype)) continue;
      SCOPED_TRACE(fmt::format("{} case '{}' in {}", d.info->name, c.name, name(dtype)));
      try {
        if (!build_case(c, dtype).graph.symbols().empty()) continue;
        TransformRun(c, dtype).all();
        ++transform_counts().cases;
      } catch (const std::exception& e) {
        ADD_FAILURE() << e.what();
      }
      if (HasFailure()) return;  // one case tells enough
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, OpTransforms, ::testing::Range<std::size_t>(0, OpCount),
                         [](const auto& op) {
                           return std::string(all_ops()[op.param].info->name);
                         });

}  // namespace
}  // namespace ricci::testing
