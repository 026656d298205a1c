#include "ricci/model/lbfgs.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>

#include <fmt/format.h>

#include "ricci/ir/verify.h"
#include "ricci/model/autodiff.h"
#include "ricci/op/ops.h"
#include "ricci/support/error.h"

#include "model/line_search.h"
#include "support/float_environment.h"

namespace ricci {
namespace {

using Numbers = std::vector<double>;

double dot(const Numbers& a, const Numbers& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

double largest(const Numbers& x) {
  double out = 0;
  for (const double v : x) out = std::max(out, std::abs(v));
  return out;
}

bool all_finite(const Numbers& x) {
  return std::ranges::all_of(x, [](double v) { return std::isfinite(v); });
}

// a + scale·b
Numbers sum_of(const Numbers& a, double scale, const Numbers& b) {
  Numbers out(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) out[i] = a[i] + scale * b[i];
  return out;
}

// Loss and gradient of a compiled function; params that move are one vector.
class Loss {
 public:
  Loss(CompiledGraph compiled, const Feeds& start, std::vector<std::string> names)
      : compiled_(std::move(compiled)), names_(std::move(names)) {
    for (const Port& p : compiled_.inputs()) {
      if (!p.is_param) continue;
      const auto given = start.find(p.name);
      if (given == start.end()) {
        throw UserError(ErrorCode::Name,
                        fmt::format("there is no value for the param '{}'", p.name),
                        "`start` has the value every param begins with");
      }
      compiled_.set_param(p.name, given->second);
      params_.emplace(p.name, given->second);
    }
    for (const auto& [name, value] : start) {
      if (params_.contains(name)) continue;
      throw UserError(ErrorCode::Name, fmt::format("the model has no param '{}'", name),
                      "inputs belong to the feeds");
    }
    for (const std::string& name : names_) {
      const Numbers numbers = params_.at(name).numbers<double>();
      start_.insert(start_.end(), numbers.begin(), numbers.end());
    }
  }

  struct At {
    Numbers where;
    double value = 0;
    Numbers gradient;
  };
  [[nodiscard]] At at(Numbers where, const Feeds& feeds) {
    ++evaluations;
    place(where);
    const std::vector<Tensor> out = compiled_.run(feeds);
    At found{std::move(where), out[0].item(), {}};
    for (std::size_t i = out.size() - names_.size(); i < out.size(); ++i) {
      const Numbers part = out[i].numbers<double>();
      found.gradient.insert(found.gradient.end(), part.begin(), part.end());
    }
    return found;
  }

  [[nodiscard]] const Numbers& start() const { return start_; }
  [[nodiscard]] Feeds params_at(const Numbers& where) {
    place(where);
    return params_;
  }

  std::int64_t evaluations = 0;

 private:
  void place(const Numbers& where) {
    std::size_t next = 0;
    for (const std::string& name : names_) {
      Tensor& value = params_.at(name);
      const auto count = static_cast<std::size_t>(value.numel());
      value = Tensor::from_numbers<double>(value.type(), std::span(where).subspan(next, count));
      compiled_.set_param(name, value);
      next += count;
    }
  }

  CompiledGraph compiled_;
  std::vector<std::string> names_;
  Feeds params_;
  Numbers start_;
};

// The last steps and what they did to the gradient.
class History {
 public:
  explicit History(std::int64_t limit) : limit_(static_cast<std::size_t>(limit)) {}

  // A pair without curvature along the step would spoil the directions. How large it is beside the
  // two says so whatever the scale of the loss.
  void add(Numbers step, Numbers change) {
    const double curvature = dot(step, change);
    const double lengths = std::sqrt(dot(step, step)) * std::sqrt(dot(change, change));
    if (!(curvature > 1e-10 * lengths) || !std::isfinite(curvature)) return;
    pairs_.push_back({std::move(step), std::move(change), 1 / curvature});
    if (pairs_.size() > limit_) pairs_.pop_front();
  }
  void forget() { pairs_.clear(); }
  [[nodiscard]] bool empty() const { return pairs_.empty(); }

  // -H g by the two loops (Nocedal and Wright, algorithm 7.4).
  [[nodiscard]] Numbers direction(const Numbers& gradient) const {
    Numbers q = sum_of(Numbers(gradient.size()), -1, gradient);
    Numbers factors(pairs_.size());
    for (std::size_t i = pairs_.size(); i-- > 0;) {
      factors[i] = pairs_[i].inverse * dot(pairs_[i].step, q);
      q = sum_of(q, -factors[i], pairs_[i].change);
    }
    if (!pairs_.empty()) {
      const Pair& last = pairs_.back();
      const double scale = 1 / (last.inverse * dot(last.change, last.change));
      for (double& v : q) v *= scale;
    }
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      const double back = pairs_[i].inverse * dot(pairs_[i].change, q);
      q = sum_of(q, factors[i] - back, pairs_[i].step);
    }
    return q;
  }

 private:
  struct Pair {
    Numbers step;
    Numbers change;
    double inverse;  // of their product
  };
  std::size_t limit_;
  std::deque<Pair> pairs_;
};

void require_lbfgs_sense(const LbfgsOptions& o) {
  const auto require = [](bool holds, std::string_view name, double value, std::string_view what) {
    if (holds && std::isfinite(value)) return;
    throw UserError(ErrorCode::Attr, fmt::format("{} is {}, not {}", name, value, what));
  };
  const auto count = [&](std::int64_t value, std::string_view name) {
    require(value >= 1, name, static_cast<double>(value), "a count from 1 on");
  };
  count(o.history, "history");
  count(o.max_iterations, "max_iterations");
  count(o.max_evaluations, "max_evaluations");
  const std::string_view from_zero = "a number from 0 on";
  require(o.gradient_tolerance >= 0, "gradient_tolerance", o.gradient_tolerance, from_zero);
  require(o.loss_tolerance >= 0, "loss_tolerance", o.loss_tolerance, from_zero);
  require(o.decrease > 0 && o.decrease < 1, "decrease", o.decrease, "a number in (0, 1)");
  require(o.curvature > o.decrease && o.curvature < 1, "curvature", o.curvature,
          "a number between `decrease` and 1");
}

std::vector<std::string> params_that_move(const Graph& graph, const LbfgsOptions& options) {
  std::vector<std::string> names = options.params;
  if (names.empty()) {
    for (const NodeId id : graph.params()) names.push_back(graph.node(id).op.as<op::Param>()->name);
  }
  if (names.empty()) {
    throw UserError(ErrorCode::Name, "'" + graph.name() + "' has no params to move",
                    "make what is to be found a param");
  }
  for (const std::string& name : names) {
    const auto* param = graph.node(graph.find_or_throw(name)).op.as<op::Param>();
    if (param == nullptr || !is_float(param->type.dtype)) {
      throw UserError(ErrorCode::DType,
                      fmt::format("'{}' is no param of a real floating dtype", name),
                      "name the params that move in LbfgsOptions::params");
    }
    if (std::ranges::count(names, name) > 1) {
      throw UserError(ErrorCode::Name, "'" + name + "' is named twice among the params that move");
    }
  }
  return names;
}

// The whole search.
class Lbfgs {
 public:
  Lbfgs(Loss& loss, const Feeds& feeds, const LbfgsOptions& options)
      : loss_(loss), feeds_(feeds), options_(options), history_(options.history) {}

  LbfgsResult run() {
    now_ = loss_.at(loss_.start(), feeds_);
    if (!std::isfinite(now_.value) || !all_finite(now_.gradient)) {
      throw UserError(ErrorCode::Refused,
                      fmt::format("where the search starts the loss is {} and its gradient {}",
                                  now_.value, all_finite(now_.gradient) ? "finite" : "not finite"),
                      "start where both are finite");
    }
    LbfgsResult result;
    result.stopped = search(result.iterations);
    result.loss = now_.value;
    result.largest_gradient = largest(now_.gradient);
    result.evaluations = loss_.evaluations;
    result.params = loss_.params_at(now_.where);
    return result;
  }

 private:
  LbfgsStop search(std::int64_t& iterations) {
    while (true) {
      if (largest(now_.gradient) <= options_.gradient_tolerance) return LbfgsStop::SmallGradient;
      if (iterations == options_.max_iterations) return LbfgsStop::MaxIterations;
      const double before = now_.value;
      if (!advance()) return LbfgsStop::LineSearchFailed;
      ++iterations;
      if (options_.observer && !options_.observer(iterations, now_.value, largest(now_.gradient))) {
        return LbfgsStop::Observer;
      }
      const double scale = std::max(1.0, std::abs(before));
      if (std::abs(before - now_.value) < options_.loss_tolerance * scale) {
        return LbfgsStop::SmallChange;
      }
    }
  }

  // One step; where the history leads nowhere, one down the gradient.
  bool advance() {
    if (step_along(history_.direction(now_.gradient))) return true;
    if (history_.empty()) return false;
    history_.forget();
    return step_along(history_.direction(now_.gradient));
  }

  bool step_along(const Numbers& direction) {
    const LinePoint start{0, now_.value, dot(now_.gradient, direction)};
    if (!(start.slope < 0)) return false;
    std::vector<Loss::At> seen;
    const LineFunction line = [&](double step) -> LinePoint {
      seen.push_back(loss_.at(sum_of(now_.where, step, direction), feeds_));
      return {step, seen.back().value, dot(seen.back().gradient, direction)};
    };
    // Without a history the direction has no scale.
    double sizes = 0;
    for (const double g : now_.gradient) sizes += std::abs(g);
    const double first = history_.empty() ? std::min(1.0, 1 / sizes) : 1;
    const LineSearchSettings settings{options_.decrease, options_.curvature,
                                      options_.max_evaluations};
    const auto found = options_.line_search == LineSearch::StrongWolfe
                           ? strong_wolfe(line, start, first, settings)
                           : backtracking(line, start, first, settings);
    if (!found || !(found->value < start.value)) return false;
    const Numbers target = sum_of(now_.where, found->step, direction);
    const auto next = std::ranges::find(seen, target, &Loss::At::where);
    history_.add(sum_of(next->where, -1, now_.where), sum_of(next->gradient, -1, now_.gradient));
    now_ = std::move(*next);
    return true;
  }

  Loss& loss_;
  const Feeds& feeds_;
  const LbfgsOptions& options_;
  History history_;
  Loss::At now_;
};

}  // namespace

std::string_view name(LbfgsStop stop) {
  switch (stop) {
    case LbfgsStop::SmallGradient: return "small gradient";
    case LbfgsStop::SmallChange: return "small change";
    case LbfgsStop::MaxIterations: return "max iterations";
    case LbfgsStop::LineSearchFailed: return "line search failed";
    case LbfgsStop::Observer: return "observer";
  }
  return "unknown";
}

LbfgsResult minimize(Session& session, const GraphModule& module, const Feeds& start,
                     const Feeds& feeds, const LbfgsOptions& options) {
  const DefaultFloatEnvironment floats;
  require_lbfgs_sense(options);
  verify(module.graph());
  const std::vector<std::string> names = params_that_move(module.graph(), options);
  if (!module.graph().outputs().empty() &&
      module.graph().type(module.graph().outputs()[0]).rank() != 0) {
    throw UserError(ErrorCode::Shape, "the loss, output 0, is not one number",
                    "reduce it, to its mean for example");
  }
  const Graph both = grad_with_loss_module(module, {names.begin(), names.end()},
                                           {.zero_missing_wrt = true, .internal_seed = true})
                         .graph;
  Loss loss(session.compile(both, options.compile), start, names);
  return Lbfgs(loss, feeds, options).run();
}

LbfgsResult minimize(const GraphModule& module, const Feeds& start, const Feeds& feeds,
                     const LbfgsOptions& options) {
  Session session;
  return minimize(session, module, start, feeds, options);
}

LbfgsResult minimize(const Graph& graph, const Feeds& start, const Feeds& feeds,
                     const LbfgsOptions& options) {
  return minimize(GraphModule::from_graph(graph), start, feeds, options);
}

}  // namespace ricci
