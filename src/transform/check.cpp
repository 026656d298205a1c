#include "ricci/transform/check.h"

#include <algorithm>
#include <cmath>
#include <complex>

#include <fmt/format.h>

#include "ricci/compiler/rule/body_transforms.h"
#include "ricci/op/ops.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/jvp.h"

#include "support/float_environment.h"
#include "support/philox.h"
#include "transform/codes.h"

namespace ricci {
namespace {

using Complex = std::complex<double>;

// Numbers in [-1, 1), a stream per seed.
class Directions {
 public:
  explicit Directions(std::uint64_t seed) : stream_(seed, 0) {}

  [[nodiscard]] Tensor draw(const Type& type) {
    std::vector<Complex> numbers(static_cast<std::size_t>(type.numel().value()));
    for (Complex& n : numbers) {
      const double re = next();
      n = {re, is_complex(type.dtype) ? next() : 0};
    }
    return Tensor::from_numbers<Complex>(type, numbers);
  }

 private:
  double next() { return 2 * stream_.uniform24(position_++) - 1; }

  PhiloxStream stream_;
  std::uint64_t position_ = 0;
};

// Terms that cancel to nothing leave only rounding, which is not measured against itself.
constexpr double LeastScale = 1e-4;

// What rounding leaves to be seen, by the narrowest dtype that has a derivative.
struct Precision {
  double step;     // of the differences
  double slack;    // by which two steps may differ where f is smooth
  double adjoint;  // gaps that are accepted
  double difference;
};
constexpr Precision Wide{2e-4, 1e-4, 1e-11, 1e-6};
constexpr Precision Single{2e-2, 1e-1, 1e-4, 2e-2};
constexpr Precision Half{1e-1, 5e-1, 5e-2, 3e-1};

// Significant bits of the narrowest such dtype in a graph, bodies included.
int narrowest(const Graph& graph) {
  int bits = 53;
  for (const Node& node : graph.nodes()) {
    for (const Type& t : node.types) {
      if (t.dtype == DType::F32 || t.dtype == DType::C64) bits = std::min(bits, 24);
      if (t.dtype == DType::F16 || t.dtype == DType::BF16) bits = std::min(bits, 8);
    }
    for (const Body& b : node.bodies) bits = std::min(bits, narrowest(*b.graph));
  }
  return bits;
}

const Precision& precision_of(const Graph& graph) {
  const int bits = narrowest(graph);
  return bits == 53 ? Wide : (bits == 24 ? Single : Half);
}

struct Pairing {
  double value = 0;
  double scale = 0;
};

// ⟨a, b⟩: Σ a·b for real tensors and 2·Re Σ conj(a)·b for complex ones, whose cotangents stand for
// half the gradient.
void add_pairing(Pairing& total, const Tensor& a, const Tensor& b) {
  if (!is_differentiable(a.dtype())) return;
  const auto x = a.numbers<Complex>();
  const auto y = b.numbers<Complex>();
  const double factor = is_complex(a.dtype()) ? 2 : 1;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double term = factor * (std::conj(x[i]) * y[i]).real();
    total.value += term;
    total.scale += std::fabs(term);
  }
}

Tensor moved(const Tensor& x, const Tensor& t, double by) {
  auto at = x.numbers<Complex>();
  const auto along = t.numbers<Complex>();
  for (std::size_t i = 0; i < at.size(); ++i) at[i] += by * along[i];
  return Tensor::from_numbers<Complex>(x.type(), at);
}

class Probe {
 public:
  Probe(const Graph& graph, const std::vector<std::string>& wrt, const Feeds& feeds,
        std::uint64_t seed, std::int64_t memory_limit = 0)
      : graph_(graph), wrt_(wrt), feeds_(feeds) {
    run_.memory_limit = memory_limit;
    Directions draw(seed);
    for (const std::string& name : wrt) {
      const ValueId leaf{graph.find_or_throw(name), 0};
      tangents_.push_back(
          draw.draw(feeds_.at(name).type().with(type_of_tangent(graph, leaf).dtype)));
      steps_ = steps_ || is_int(graph.type(leaf).dtype);
    }
    outputs_ = interpret(graph, feeds_, run_);
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const Tensor& y = outputs_[i];
      const ValueId output = graph.outputs()[i];
      seeded_.push_back(has_derivative(graph, output));
      steps_ = steps_ || (seeded_[i] && is_int(y.dtype()));
      const Type type = y.type().with(type_of_tangent(graph, output).dtype);
      cotangents_.push_back(seeded_[i] ? draw.draw(type) : y);
    }
  }

  [[nodiscard]] DerivativeProbe run() {
    DerivativeProbe p;
    const Pairing f = forward();
    const Pairing r = reverse();
    p.forward = f.value;
    p.reverse = r.value;
    p.scale = std::max(f.scale, r.scale);
    if (steps_) {  // codes cannot be moved a little
      p.smooth = false;
      return p;
    }
    // Two steps and an extrapolation: the error is of fourth order where f is smooth.
    const Precision& precision = precision_of(graph_);
    const Rise wide = rise(precision.step);
    const Rise close = rise(precision.step / 2);
    p.difference = (4 * close.slope - wide.slope) / 3;
    p.smooth = std::fabs(close.slope - wide.slope) <=
                   precision.slack * (p.scale + std::fabs(close.slope)) + 1e-12 &&
               !has_kink(wide, close, p.scale);
    return p;
  }

 private:
  [[nodiscard]] std::vector<ValueRef> refs() const { return {wrt_.begin(), wrt_.end()}; }

  Pairing forward() {
    const Transformed j = jvp(graph_, refs());
    Feeds feeds = feeds_;
    for (std::size_t k = 0; k < wrt_.size(); ++k) {
      feeds[j.names.at("tangent_" + wrt_[k])] = tangents_[k];
    }
    const std::vector<Tensor> all = interpret(j.graph, feeds, run_);
    Pairing total;
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      add_pairing(total, cotangents_[i], all[outputs_.size() + i]);
    }
    return total;
  }

  Pairing reverse() {
    const Transformed g = vjp(graph_, refs(), GradOptions::training());
    Feeds feeds = feeds_;
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      if (!seeded_[i]) continue;
      feeds[g.names.at(fmt::format("d_output_{}", i))] = cotangents_[i];
    }
    const std::vector<Tensor> all = interpret(g.graph, feeds, run_);
    Pairing total;
    for (std::size_t k = 0; k < wrt_.size(); ++k) {
      add_pairing(total, all[outputs_.size() + k], tangents_[k]);
    }
    return total;
  }

  // What f does between x - h t and x + h t.
  struct Rise {
    double slope = 0;           // (⟨u, f(x + h t)⟩ - ⟨u, f(x - h t)⟩) / 2h
    std::vector<double> bends;  // per element, |u|·|f(x + h t) - 2 f(x) + f(x - h t)| / h
  };

  // Differences are taken element by element before summing.
  [[nodiscard]] Rise rise(double h) const {
    const auto at = [&](double by) {
      Feeds feeds = feeds_;
      for (std::size_t k = 0; k < wrt_.size(); ++k) {
        feeds[wrt_[k]] = moved(feeds_.at(wrt_[k]), tangents_[k], by);
      }
      return interpret(graph_, feeds, run_);
    };
    const std::vector<Tensor> after = at(h);
    const std::vector<Tensor> before = at(-h);
    Rise out;
    for (std::size_t i = 0; i < after.size(); ++i) {
      if (!is_differentiable(after[i].dtype())) continue;
      const double factor = is_complex(after[i].dtype()) ? 2 : 1;
      const auto u = cotangents_[i].numbers<Complex>();
      const auto high = after[i].numbers<Complex>();
      const auto low = before[i].numbers<Complex>();
      const auto middle = outputs_[i].numbers<Complex>();
      for (std::size_t e = 0; e < u.size(); ++e) {
        out.slope += factor * (std::conj(u[e]) * (high[e] - low[e])).real() / (2 * h);
        out.bends.push_back(std::abs(u[e]) * std::abs(high[e] - 2.0 * middle[e] + low[e]) / h);
      }
    }
    return out;
  }

  // Where f is smooth, half the step bends half as much; at a kink, as much.
  static bool has_kink(const Rise& wide, const Rise& close, double scale) {
    for (std::size_t e = 0; e < close.bends.size(); ++e) {
      const bool bends = close.bends[e] > 1e-5 * std::max(scale, LeastScale);
      if (bends && close.bends[e] > 0.7 * wide.bends[e]) return true;
    }
    return false;
  }

  const Graph& graph_;
  const std::vector<std::string>& wrt_;
  const Feeds& feeds_;
  InterpretOptions run_;
  std::vector<Tensor> tangents_;
  std::vector<Tensor> outputs_;
  std::vector<Tensor> cotangents_;
  std::vector<bool> seeded_;  // outputs with a cotangent
  bool steps_ = false;        // some of these are codes
};

double relative(double a, double b, double scale) {
  return std::fabs(a - b) / std::max(scale, LeastScale);
}

// The inputs and params that have a derivative.
std::vector<std::string> differentiable_leaves(const Graph& graph) {
  std::vector<std::string> out;
  for (const NodeId id : graph.leaves()) {
    const Node& leaf = graph.node(id);
    if (is_differentiable(leaf.types[0].dtype)) out.push_back(*leaf.leaf_name());
  }
  return out;
}

// Does some op's derivative differ from its function by what it is: stop_gradient, and rounding,
// whose derivative is that of what is rounded? Functions and registered ops with rules of their own
// claim to be the derivative, and are held to it.
bool has_own_rules(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const Node& node) {
    if (node.op.is<op::StopGradient>() || node.op.has(Trait::StraightThrough)) return true;
    const auto* packed = node.op.as<op::DequantMatmul>();
    if (packed != nullptr && packed->int8_activations) return true;
    const auto* unary = node.op.as<op::Unary>();
    if (unary != nullptr && unary->kind == UnaryKind::Round) return true;
    const bool is_function = node.op.is<op::CustomFn>();
    return std::ranges::any_of(node.bodies, [&](const Body& b) {
      return (!is_function || b.role == "fwd") && has_own_rules(*b.graph);
    });
  });
}

}  // namespace

bool DerivativeProbe::finite() const {
  return std::isfinite(forward) && std::isfinite(reverse) && std::isfinite(scale);
}
double DerivativeProbe::adjoint_gap() const { return relative(forward, reverse, scale); }
double DerivativeProbe::difference_gap() const {
  return relative(difference, forward, std::max(scale, std::fabs(difference)));
}

DerivativeProbe probe_derivatives(const Graph& graph, const std::vector<std::string>& wrt,
                                  const Feeds& feeds, std::uint64_t seed) {
  const DefaultFloatEnvironment floats;
  return Probe(graph, wrt, feeds, seed).run();
}

bool DerivativeReport::ok(const DerivativeProbe& p) const {
  if (!p.finite()) return false;
  if (!(p.adjoint_gap() <= adjoint_tolerance)) return false;
  return by_definition || !p.smooth || p.difference_gap() <= difference_tolerance;
}

bool DerivativeReport::ok() const {
  return std::ranges::all_of(probes, [&](const DerivativeProbe& p) { return ok(p); });
}

std::string DerivativeReport::to_string() const {
  std::string out = fmt::format("{:<16} {:>5} {:>14} {:>14} {:>14} {:>9} {:>9}\n", "value", "order",
                                "forward", "reverse", "difference", "gap", "");
  for (const DerivativeProbe& p : probes) {
    const std::string gap =
        !p.finite() ? "-"
        : p.smooth  ? fmt::format("{:.1e}", std::max(p.adjoint_gap(), p.difference_gap()))
                    : fmt::format("{:.1e}", p.adjoint_gap());
    const bool agrees = p.difference_gap() <= difference_tolerance;
    const char* verdict = !ok(p) ? "WRONG" : !p.smooth ? "ok (kink)" : agrees ? "ok" : "own rule";
    out += fmt::format("{:<16} {:>5} {:>14.7g} {:>14.7g} {:>14.7g} {:>9} {:>9}\n", p.wrt, p.order,
                       p.forward, p.reverse, p.difference, gap, verdict);
  }
  return out;
}

DerivativeReport check_derivatives(const Graph& graph, std::vector<std::string> wrt,
                                   const Feeds& feeds, const CheckOptions& options) {
  const DefaultFloatEnvironment floats;
  if (wrt.empty()) wrt = differentiable_leaves(graph);
  for (const std::string& name : wrt) {
    (void)graph.find_or_throw(name);
    if (!feeds.contains(name)) {
      throw UserError(ErrorCode::Name, fmt::format("no value is given for '{}'", name));
    }
  }
  const Precision& precision = precision_of(graph);
  DerivativeReport report;
  report.by_definition = has_own_rules(graph);
  report.adjoint_tolerance =
      options.adjoint_tolerance > 0 ? options.adjoint_tolerance : precision.adjoint;
  report.difference_tolerance =
      options.difference_tolerance > 0 ? options.difference_tolerance : precision.difference;
  std::vector<std::vector<std::string>> groups;
  for (const std::string& name : wrt) groups.push_back({name});
  if (wrt.size() > 1) groups.push_back(wrt);
  std::uint64_t seed = options.seed;
  for (const std::vector<std::string>& group : groups) {
    for (int i = 0; i < options.directions; ++i) {
      DerivativeProbe p = Probe(graph, group, feeds, seed++, options.memory_limit).run();
      p.wrt = group.size() > 1 ? "all" : group[0];
      report.probes.push_back(std::move(p));
    }
    if (options.order < 2) continue;
    const Transformed gradient =
        value_and_grad(graph, {group.begin(), group.end()}, GradOptions::training());
    DerivativeProbe p = Probe(gradient.graph, group, feeds, seed++, options.memory_limit).run();
    p.wrt = group.size() > 1 ? "all" : group[0];
    p.order = 2;
    report.probes.push_back(std::move(p));
  }
  return report;
}

}  // namespace ricci
