#include "backend/agreement.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <limits>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/compiler/device/backend.h"
#include "ricci/compiler/schedule/program.h"
#include "ricci/compiler/schedule/target.h"
#include "ricci/ir/text.h"
#include "ricci/op/ops.h"

#include "property/random.h"
#include "rewrite/exact.h"
#include "rewrite/replace_nodes.h"
#include "support/compare.h"
#include "support/cramped_target.h"
#include "support/every_device.h"
#include "support/guarded_run.h"
#include "support/lir_run.h"
#include "support/run_in_place.h"

namespace ricci::testing {
namespace {

using Complex = std::complex<double>;

bool is_whole(const Type& type) { return !is_differentiable(type.dtype); }

std::vector<Type> operand_types(const Graph& graph, const Node& node) {
  std::vector<Type> out;
  for (const ValueId v : node.operands) out.push_back(graph.type(v));
  return out;
}

bool all_exact(const Graph& graph);

// Control flow is as exact as its bodies.
bool node_is_exact(const Graph& graph, const Node& node) {
  const std::vector<Type> types = operand_types(graph, node);
  if (node.op.is<op::If>() || node.op.is<op::Scan>() || node.op.is<op::While>()) {
    return std::ranges::all_of(node.bodies, [](const Body& b) { return all_exact(*b.graph); });
  }
  if (!node.bodies.empty()) return false;
  if (node.operands.empty()) return !node.op.has(Trait::Random);
  if (std::ranges::all_of(types, is_whole) && std::ranges::all_of(node.types, is_whole)) {
    return !node.op.has(Trait::Random);
  }
  return is_exact(node.op, types);
}

bool all_exact(const Graph& graph) {
  return std::ranges::all_of(graph.nodes(),
                             [&](const Node& node) { return node_is_exact(graph, node); });
}

double last_place(DType dtype) {
  switch (dtype) {
    case DType::F64:
    case DType::C128: return 0x1p-52;
    case DType::F32:
    case DType::C64: return 0x1p-23;
    case DType::F16: return 0x1p-10;
    case DType::BF16: return 0x1p-7;
    default: return 0;
  }
}

// The value, each element off by up to two units in the last place.
Value nudged(Value v, Rng& rng) {
  const Type& type = v.type();
  if (!is_differentiable(type.dtype)) return v;
  const double unit = last_place(type.dtype);
  const auto off = [&] { return unit * (static_cast<double>(rng.below(5)) - 2); };
  std::vector<Complex> factors(static_cast<std::size_t>(type.numel().value()));
  for (Complex& f : factors) f = {1 + off(), is_complex(type.dtype) ? off() : 0};
  return mul(v, v.graph().constant(Tensor::from_numbers<Complex>(type, factors)));
}

Graph nudged(const Graph& graph, Rng& rng) {
  const auto rewrite = [&](const NodeVisit& v) -> NewResults {
    const bool control =
        v.node.op.is<op::If>() || v.node.op.is<op::Scan>() || v.node.op.is<op::While>();
    if (control || node_is_exact(v.rebuild.from(), v.node)) return std::nullopt;
    NodeSpec spec{
        .op = v.node.op, .operands = {}, .bodies = v.node.bodies, .wanted = v.node.wanted};
    for (const Value& x : v.operands) spec.operands.push_back(nudged(x, rng).id());
    const NodeId id = v.graph().add(std::move(spec));
    std::vector<Value> results;
    for (std::uint32_t r = 0; r < v.node.types.size(); ++r) {
      results.push_back(v.node.wanted[r] ? nudged(v.graph().value({id, r}), rng) : Value());
    }
    return results;
  };
  return replace_nodes(graph, "nudge", rewrite).graph;
}

// The name of an input or param; null for other nodes.
const std::string* port_name(const Node& node) {
  if (const auto* input = node.op.as<op::Input>()) return &input->name;
  const auto* param = node.op.as<op::Param>();
  return param == nullptr ? nullptr : &param->name;
}

// Outputs in the buffers of inputs wherever one has the type.
std::vector<Donation> all_donations(const Graph& graph) {
  std::vector<Donation> donations;
  std::vector<bool> donated(graph.size(), false);
  for (std::size_t o = 0; o < graph.outputs().size(); ++o) {
    const Type& type = graph.type(graph.outputs()[o]);
    for (NodeId id = 0; id < graph.size(); ++id) {
      const std::string* name = port_name(graph.node(id));
      if (name == nullptr || donated[id] || graph.type({id, 0}) != type) continue;
      donations.push_back({o, *name});
      donated[id] = true;
      break;
    }
  }
  return donations;
}

// What rounding makes of the reference: the outputs themselves, and those of runs in which inexact
// ops are nudged, each made when those before it do not explain a difference. A run that reports a
// fault says nothing about values.
using Runs = std::vector<std::vector<Tensor>>;
class NudgedRuns {
 public:
  NudgedRuns(Graph graph, const Feeds& feeds, const std::vector<Tensor>& expected)
      : graph_(std::move(graph)), feeds_(feeds), runs_{expected} {}

  [[nodiscard]] const Runs& runs() const { return runs_; }
  /// Another one; false: there are enough.
  bool add() {
    constexpr std::uint64_t Count = 8;
    while (seed_ < Count) {
      Rng rng(seed_++);
      Outcome moved = reference_outcome(nudged(graph_, rng), feeds_);
      auto* values = std::get_if<std::vector<Tensor>>(&moved);
      if (values == nullptr) continue;
      runs_.push_back(std::move(*values));
      return true;
    }
    return false;
  }

 private:
  Graph graph_;
  const Feeds& feeds_;
  Runs runs_;
  std::uint64_t seed_ = 0;
};

bool has_infinities(const Tensor& t) {
  if (!is_differentiable(t.dtype())) return false;
  return std::ranges::any_of(t.numbers<Complex>(), [](Complex c) {
    return !std::isfinite(c.real()) || !std::isfinite(c.imag());
  });
}

void collect_bodies(const Graph& graph, std::set<const Graph*>& into) {
  for (const Node& node : graph.nodes()) {
    for (const Body& body : node.bodies) {
      into.insert(body.graph.get());
      collect_bodies(*body.graph, into);
    }
  }
}

// Per output: is it computed from a value that is not finite? Then 0·inf may be met on the way or
// not: the reference leaves out what has no weight, which a product does not.
std::vector<bool> meets_infinities(const Graph& graph, const Feeds& feeds) {
  std::vector<bool> marks(graph.size(), false);
  for (NodeId id = 0; id < graph.size(); ++id) {
    const std::string* name = port_name(graph.node(id));
    marks[id] = name != nullptr && has_infinities(feeds.at(*name));
  }
  std::set<const Graph*> bodies;
  collect_bodies(graph, bodies);
  bool in_body = false;  // of the node whose bodies are being run
  InterpretOptions options;
  options.observer = [&](const Graph& where, NodeId id, std::span<const Tensor> results) {
    const bool found = std::ranges::any_of(results, has_infinities);
    if (bodies.contains(&where)) {
      in_body = in_body || found;
      return;
    }
    marks[id] = marks[id] || found || in_body;
    in_body = false;
  };
  (void)interpret(graph, feeds, options);
  for (NodeId id = 0; id < graph.size(); ++id) {
    for (const ValueId v : graph.node(id).operands) marks[id] = marks[id] || marks[v.node];
  }
  std::vector<bool> out;
  for (const ValueId v : graph.outputs()) out.push_back(marks[v.node]);
  return out;
}

// What a cast to whole numbers makes of NaN and the infinities.
bool is_cast_of_no_number(double v, DType dtype) {
  if (is_differentiable(dtype)) return false;
  constexpr double Infinity = std::numeric_limits<double>::infinity();
  constexpr double None = std::numeric_limits<double>::quiet_NaN();
  const std::array<double, 3> all = {None, Infinity, -Infinity};
  const auto made = Tensor::from_numbers<double>(Type{dtype, {3}}, all).numbers<double>();
  return std::ranges::find(made, v) != made.end();
}

bool same_number(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// One part of one element: `seen` are the reference's, the expected one first.
bool may_be(double actual, std::span<const double> seen, DType dtype, double size,
            bool nan_may_differ) {
  const Tolerance t = tolerance(dtype);
  constexpr double Margin = 8;  // eight runs find a part of the spread
  const double expected = seen[0];
  if (std::ranges::any_of(seen, [&](double v) { return same_number(actual, v); })) return true;
  if (nan_may_differ && (std::isnan(actual) || std::isnan(expected))) return true;
  if (nan_may_differ && is_cast_of_no_number(actual, dtype) &&
      is_cast_of_no_number(expected, dtype)) {
    return true;
  }
  const auto middle = std::ranges::find_if(seen, [](double v) { return std::isfinite(v); });
  if (!std::isfinite(actual) || middle == seen.end()) return false;
  double spread = 0;
  for (const double v : seen) {
    if (std::isfinite(v)) spread = std::max(spread, std::fabs(v - *middle));
  }
  return std::fabs(actual - *middle) <= Margin * spread + t.absolute + t.relative * size;
}

// Products of many complex numbers, which devices multiply in an order of their own: where they
// overflow, which part is infinite, with which sign, and which is NaN, is the order's to say.
bool multiplies_complex_numbers(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [&](const Node& node) {
    const auto* reduce = node.op.as<op::Reduce>();
    const auto* running = node.op.as<op::Cumulative>();
    const bool product = (reduce != nullptr && reduce->op == ReduceKind::Prod) ||
                         (running != nullptr && running->kind == CumulativeKind::Cumprod);
    return (product && is_complex(graph.type(node.operands[0]).dtype)) ||
           std::ranges::any_of(node.bodies, [](const Body& body) {
             return multiplies_complex_numbers(*body.graph);
           });
  });
}

/// What the program itself leaves open.
struct Open {
  bool nan = false;       ///< it may be there or not
  bool overflow = false;  ///< of complex numbers: how it looks
};

bool is_finite(Complex z) { return std::isfinite(z.real()) && std::isfinite(z.imag()); }

std::string beyond_runs(const Tensor& actual, std::size_t output, const Runs& runs, Open open) {
  const auto a = actual.numbers<Complex>();
  std::vector<std::vector<Complex>> seen;
  for (const auto& run : runs) seen.push_back(run[output].numbers<Complex>());
  for (std::size_t k = 0; k < a.size(); ++k) {
    if (open.overflow && !is_finite(a[k]) && !is_finite(seen[0][k])) continue;
    std::vector<double> re;
    std::vector<double> im;
    double size = 0;
    for (const auto& run : seen) {
      re.push_back(run[k].real());
      im.push_back(run[k].imag());
      if (std::isfinite(std::abs(run[k]))) size = std::max(size, std::abs(run[k]));
    }
    if (may_be(a[k].real(), re, actual.dtype(), size, open.nan) &&
        may_be(a[k].imag(), im, actual.dtype(), size, open.nan)) {
      continue;
    }
    const auto [least, most] = std::ranges::minmax(re);
    return fmt::format(
        "element {} is {:.17g}{:+.17g}i, expected {:.17g}{:+.17g}i, from {:.17g} to {:.17g} when "
        "it is rounded otherwise",
        k, a[k].real(), a[k].imag(), re[0], im[0], least, most);
  }
  return {};
}

// The same with as many runs as it takes: more of them never excuse less.
std::string beyond_all_runs(const Tensor& actual, std::size_t output, NudgedRuns& nudged,
                            Open open) {
  std::string wrong = beyond_runs(actual, output, nudged.runs(), open);
  while (!wrong.empty() && nudged.add()) wrong = beyond_runs(actual, output, nudged.runs(), open);
  return wrong;
}

template <class F>
Outcome outcome_of(F&& run) {
  try {
    return run();
  } catch (const UserError& e) {
    return e.code();
  }
}

}  // namespace

Outcome reference_outcome(const Graph& graph, const Feeds& feeds) {
  return outcome_of([&] { return interpret(graph, feeds); });
}

Outcome compiled_outcome(const Graph& graph, const Feeds& feeds, bool fuse) {
  return outcome_of([&] { return run_between_guards(graph, feeds, {.fuse = fuse}); });
}

Outcome donated_outcome(const Graph& graph, const Feeds& feeds, std::size_t& donations) {
  const CompileOptions options{.donations = all_donations(graph)};
  donations += options.donations.size();
  return outcome_of([&] { return run_between_guards(graph, feeds, options); });
}

std::span<const MadeFor> all_made_for() {
  static constexpr std::array All = {MadeFor::Lir, MadeFor::Cramped, MadeFor::Cpu,
                                     MadeFor::CpuOpByOp};
  return std::span(All).first(has_device("cpu") ? All.size() : 2);
}

std::string_view name(MadeFor target) {
  switch (target) {
    case MadeFor::Lir: return "made for lir";
    case MadeFor::Cramped: return "made for a device with little room";
    case MadeFor::Cpu: return "made for the CPU";
    case MadeFor::CpuOpByOp: return "made for the CPU op by op";
  }
  return "?";
}

namespace {

const schedule::Target& target_of(MadeFor target) {
  static const CrampedTarget cramped;
  if (target == MadeFor::Cramped) return cramped;
  return target == MadeFor::Lir ? schedule::plain_target()
                                : Device::default_cpu().backend().target();
}

ProgramOptions options_for(MadeFor target) {
  return {.fuse = target != MadeFor::CpuOpByOp, .target = &target_of(target)};
}

}  // namespace

ricci::Program program_for(const Graph& graph, MadeFor target) {
  return make_program(graph, options_for(target));
}

Graph prepared_for(const Graph& graph, MadeFor target) {
  return prepare_for_device(graph, options_for(target));
}

ricci::Program program_of_prepared_for(Graph prepared, MadeFor target) {
  return program_of_prepared(std::move(prepared), options_for(target));
}

Outcome lir_outcome(const Graph& graph, const Feeds& feeds, MadeFor target) {
  return outcome_of([&] { return run_on_lir(graph, program_for(graph, target), feeds); });
}

Outcome donated_lir_outcome(const Graph& graph, const Feeds& feeds, std::size_t& donations) {
  const CompileOptions options{.donations = all_donations(graph)};
  donations += options.donations.size();
  return outcome_of([&] { return run_in_place(graph, feeds, Device::named("lir"), options); });
}

std::vector<bool> exact_outputs(const Graph& graph) {
  std::vector<bool> exact;
  for (const Node& node : graph.nodes()) {
    exact.push_back(
        node_is_exact(graph, node) &&
        std::ranges::all_of(node.operands, [&](const ValueId v) { return exact[v.node]; }));
  }
  std::vector<bool> out;
  for (const ValueId v : graph.outputs()) out.push_back(exact[v.node]);
  return out;
}

std::string disagreement(const Graph& graph, const Feeds& feeds, const Outcome& actual,
                         const Outcome& expected, AgreementCounts* counts) {
  AgreementCounts unread;
  AgreementCounts& count = counts != nullptr ? *counts : unread;
  const auto* a = std::get_if<std::vector<Tensor>>(&actual);
  const auto* e = std::get_if<std::vector<Tensor>>(&expected);
  const auto said = [](const Outcome& o) {
    const auto* code = std::get_if<ErrorCode>(&o);
    return code == nullptr ? std::string("no fault") : std::string(name(*code));
  };
  if (a == nullptr || e == nullptr) {
    ++count.faults;
    return said(actual) == said(expected)
               ? std::string()
               : fmt::format("{} is reported, expected {}", said(actual), said(expected));
  }
  if (a->size() != e->size()) return "another number of outputs";
  const std::vector<bool> exact = exact_outputs(graph);
  std::optional<NudgedRuns> runs;
  std::optional<NudgedRuns> inside;
  std::vector<bool> infinities;
  for (std::size_t i = 0; i < e->size(); ++i) {
    if (exact[i]) {
      ++count.exactly;
      if (const auto r = same((*a)[i], (*e)[i]); !r) {
        return fmt::format("output {}: {}", i, r.message());
      }
      continue;
    }
    if (close((*a)[i], (*e)[i])) {
      ++count.closely;
      continue;
    }
    if ((*a)[i].type() != (*e)[i].type()) return fmt::format("output {} has another type", i);
    if (!runs) {
      runs.emplace(graph, feeds, *e);
      infinities = meets_infinities(graph, feeds);
    }
    ++count.by_spread;
    const Open open{infinities[i],
                    is_complex((*e)[i].dtype()) && multiplies_complex_numbers(graph)};
    if (beyond_all_runs((*a)[i], i, *runs, open).empty()) continue;
    // A composite op rounds inside as well.
    if (!inside) inside.emplace(prepare_for_device(graph), feeds, *e);
    if (std::string wrong = beyond_all_runs((*a)[i], i, *inside, open); !wrong.empty()) {
      return fmt::format("output {}: {}", i, wrong);
    }
  }
  return {};
}

std::string device_disagreement(const Graph& graph, const Feeds& feeds, const Outcome& actual,
                                const Outcome& expected, AgreementCounts* counts) {
  std::string wrong = disagreement(graph, feeds, actual, expected, counts);
  if (wrong.empty() || !std::holds_alternative<ErrorCode>(expected)) return wrong;
  const Graph read = prepare_for_device(graph);
  return disagreement(graph, feeds, actual, reference_outcome(read, feeds), counts);
}

void expect_agreement_everywhere(const Graph& graph, const Feeds& feeds) {
  const Outcome expected = reference_outcome(graph, feeds);
  for (const bool fuse : {true, false}) {
    EXPECT_EQ(disagreement(graph, feeds, compiled_outcome(graph, feeds, fuse), expected), "")
        << (fuse ? "fused" : "op by op");
  }
  for (const MadeFor target : all_made_for()) {
    EXPECT_EQ(disagreement(graph, feeds, lir_outcome(graph, feeds, target), expected), "")
        << name(target);
  }
}

}  // namespace ricci::testing
