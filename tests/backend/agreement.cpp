#include "backend/agreement.h"

#include <algorithm>
#include <cmath>
#include <complex>

#include <fmt/format.h>

#include "ricci/build/build.h"
#include "ricci/ir/text.h"
#include "ricci/op/ops.h"
#include "ricci/schedule/program.h"

#include "property/random.h"
#include "rewrite/exact.h"
#include "rewrite/replace_nodes.h"
#include "support/compare.h"
#include "support/guarded_run.h"

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

double distance(Complex a, Complex b) {
  const auto part = [](double x, double y) {
    if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y) ? 0.0 : INFINITY;
    return x == y ? 0.0 : std::fabs(x - y);
  };
  return std::max(part(a.real(), b.real()), part(a.imag(), b.imag()));
}

// Per output and element, how far rounding moves the reference.
using Spread = std::vector<std::vector<double>>;
Spread spread_of(const Graph& graph, const Feeds& feeds, const std::vector<Tensor>& expected) {
  constexpr std::uint64_t Runs = 8;
  Spread out;
  for (const Tensor& t : expected) out.emplace_back(static_cast<std::size_t>(t.numel()), 0.0);
  for (std::uint64_t seed = 0; seed < Runs; ++seed) {
    Rng rng(seed);
    const Outcome moved = reference_outcome(nudged(graph, rng), feeds);
    const auto* values = std::get_if<std::vector<Tensor>>(&moved);
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (values == nullptr) {  // it may fault as well
        std::ranges::fill(out[i], INFINITY);
        continue;
      }
      const auto a = (*values)[i].numbers<Complex>();
      const auto e = expected[i].numbers<Complex>();
      for (std::size_t k = 0; k < e.size(); ++k) {
        out[i][k] = std::max(out[i][k], distance(a[k], e[k]));
      }
    }
  }
  return out;
}

// Does any value on the way leave the finite numbers? Then 0·inf may be met or not: the reference
// leaves out what has no weight, which a product does not.
bool meets_infinities(const Graph& graph, const Feeds& feeds) {
  bool found = false;
  const auto look = [&](const Tensor& t) {
    if (found || !is_differentiable(t.dtype())) return;
    found = std::ranges::any_of(t.numbers<Complex>(), [](Complex c) {
      return !std::isfinite(c.real()) || !std::isfinite(c.imag());
    });
  };
  for (const auto& [name, value] : feeds) look(value);
  InterpretOptions options;
  options.observer = [&](const Graph&, NodeId, std::span<const Tensor> results) {
    for (const Tensor& t : results) look(t);
  };
  (void)interpret(graph, feeds, options);
  return found;
}

bool is_nan(Complex c) { return std::isnan(c.real()) || std::isnan(c.imag()); }

std::string beyond_spread(const Tensor& actual, const Tensor& expected,
                          const std::vector<double>& spread, bool infinities) {
  constexpr double Margin = 8;  // eight runs find a part of the spread
  const Tolerance t = tolerance(expected.dtype());
  const auto a = actual.numbers<Complex>();
  const auto e = expected.numbers<Complex>();
  for (std::size_t k = 0; k < e.size(); ++k) {
    const double allowed = Margin * spread[k] + t.absolute + t.relative * std::abs(e[k]);
    if (distance(a[k], e[k]) <= allowed) continue;
    if (std::isnan(allowed) || (infinities && (is_nan(a[k]) || is_nan(e[k])))) continue;
    return fmt::format("element {} is {:.17g}{:+.17g}i, expected {:.17g}{:+.17g}i, spread {:g}", k,
                       a[k].real(), a[k].imag(), e[k].real(), e[k].imag(), spread[k]);
  }
  return {};
}

// The name of an input or param; null for other nodes.
const std::string* port_name(const Node& node) {
  if (const auto* input = node.op.as<op::Input>()) return &input->name;
  const auto* param = node.op.as<op::Param>();
  return param == nullptr ? nullptr : &param->name;
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
  CompileOptions options;
  std::vector<bool> donated(graph.size(), false);
  for (std::size_t o = 0; o < graph.outputs().size(); ++o) {
    const Type& type = graph.type(graph.outputs()[o]);
    for (NodeId id = 0; id < graph.size(); ++id) {
      const std::string* name = port_name(graph.node(id));
      if (name == nullptr || donated[id] || graph.type({id, 0}) != type) continue;
      options.donations.push_back({o, *name});
      donated[id] = true;
      break;
    }
  }
  donations += options.donations.size();
  return outcome_of([&] { return run_between_guards(graph, feeds, options); });
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
  Spread spread;
  bool infinities = false;
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
    if (spread.empty()) {
      spread = spread_of(graph, feeds, *e);
      infinities = meets_infinities(graph, feeds);
    }
    ++count.by_spread;
    if (beyond_spread((*a)[i], (*e)[i], spread[i], infinities).empty()) continue;
    // A composite op rounds inside as well.
    const Spread inside = spread_of(prepare_for_device(graph), feeds, *e);
    if (std::string wrong = beyond_spread((*a)[i], (*e)[i], inside[i], infinities);
        !wrong.empty()) {
      return fmt::format("output {}: {}", i, wrong);
    }
  }
  return {};
}

std::string compiled_disagreement(const Graph& graph, const Feeds& feeds, const Outcome& actual,
                                  const Outcome& expected, AgreementCounts* counts) {
  std::string wrong = disagreement(graph, feeds, actual, expected, counts);
  if (wrong.empty() || !std::holds_alternative<ErrorCode>(expected)) return wrong;
  const Graph read = prepare_for_device(graph);
  return disagreement(graph, feeds, actual, reference_outcome(read, feeds), counts);
}

}  // namespace ricci::testing
