#include "ricci/transform/grad.h"

#include <fmt/format.h>

#include "ricci/build/build.h"

#include "transform/autodiff_errors.h"
#include "transform/codes.h"
#include "transform/names.h"
#include "transform/reverse.h"
#include "transform/tidy.h"

namespace ricci {
namespace {

std::vector<ValueId> resolve(const Graph& graph, const std::vector<ValueRef>& refs) {
  std::vector<ValueId> out;
  for (const ValueRef& r : refs) out.push_back(r.in(graph));
  return out;
}

[[noreturn]] void no_gradient(const Graph& graph, ValueId v, std::string why) {
  const Node& node = graph.node(v.node);
  Diagnostic d{ErrorCode::NoGradient,
               {},
               fmt::format("'{}' gets no gradient: {}", display_name(graph, v), why),
               {},
               {},
               "leave it out, or ask for zeros: GradOptions::training() in C++, --zero-missing on "
               "the command line"};
  if (node.provenance) d.where = node.provenance->where;
  throw AutodiffError(std::move(d));
}

class Gradient {
 public:
  // `seeded` marks the outputs that will get a cotangent.
  Gradient(const Graph& forward, const std::vector<ValueRef>& wrt, const GradOptions& options,
           const std::vector<bool>& seeded)
      : forward_(with_output(forward)),
        wrt_(resolve(forward, wrt)),
        options_(options),
        reverse_(forward, wrt_, seeded, options.scan_saving) {}

  [[nodiscard]] Graph& graph() { return reverse_.graph(); }

  // A new input for the cotangent of an output.
  void seed(std::size_t output, std::string_view name, op::InputRole role) {
    const Type type = type_of_tangent(forward_, forward_.outputs()[output]);
    const std::string chosen = graph().unique_name(name);
    names_[std::string(name)] = chosen;
    reverse_.seed(output, graph().input(chosen, type, role));
  }
  // The cotangent of the first output: a new input, or ones.
  void seed_first() {
    if (options_.internal_seed) {
      reverse_.seed(0, filled(graph(), type_of_tangent(forward_, forward_.outputs()[0]), 1));
    } else {
      seed(0, "d_output", {op::InputRole::Kind::DOutput, 0});
    }
  }

  [[nodiscard]] Transformed finish(bool with_outputs, std::string_view suffix) {
    reverse_.sweep();
    std::vector<Value> outputs;
    if (with_outputs) {
      for (const ValueId v : forward_.outputs()) outputs.push_back(reverse_.value(v));
    }
    for (const ValueId v : wrt_) outputs.push_back(gradient(v));
    Transformed t = reverse_.finish(outputs);
    t.graph.set_name(forward_.name() + std::string(suffix));
    t.names = std::move(names_);
    OutputNames names;
    if (with_outputs) names.keep(forward_);
    for (const ValueId v : wrt_) names.add("gradient of " + display_name(forward_, v));
    t = tidied(std::move(t));
    names.give_to(t.graph);
    return t;
  }

 private:
  static const Graph& with_output(const Graph& forward) {
    if (!forward.outputs().empty()) return forward;
    throw UserError(ErrorCode::Shape,
                    fmt::format("the graph '{}' has no output to differentiate", forward.name()),
                    "return a value from it, or call set_outputs");
  }

  Value gradient(ValueId v) {
    const Value arrived = reverse_.cotangent(v);
    if (arrived.valid()) return arrived;
    if (!options_.zero_missing_wrt) no_gradient(forward_, v, reverse_.why_missing(v));
    return filled(graph(), type_of_tangent(forward_, v), 0);
  }

  const Graph& forward_;
  std::vector<ValueId> wrt_;
  GradOptions options_;
  Reverse reverse_;
  std::map<std::string, std::string, std::less<>> names_;
};

void require_derivative(const Graph& forward) {
  if (forward.outputs().empty()) return;
  const Type& type = forward.type(forward.outputs()[0]);
  if (has_derivative(forward, forward.outputs()[0])) return;
  throw AutodiffError(ErrorCode::NoGradient,
                      fmt::format("the first output of '{}' is {}, which has no derivative",
                                  forward.name(), type.to_string()),
                      "differentiate an output of a floating dtype");
}

}  // namespace

Transformed grad_with_loss_opts(const Graph& forward, const std::vector<ValueRef>& wrt,
                                const GradOptions& options) {
  return with_autodiff_errors([&] {
    require_derivative(forward);
    Gradient g(forward, wrt, options, {true});
    g.seed_first();
    return g.finish(true, "_grad");
  });
}

Transformed grad_with_loss(const Graph& forward, const std::vector<ValueRef>& wrt) {
  return grad_with_loss_opts(forward, wrt, GradOptions::strict());
}

Transformed grad(const Graph& forward, const std::vector<ValueRef>& wrt,
                 const GradOptions& options) {
  return with_autodiff_errors([&] {
    require_derivative(forward);
    GradOptions seeded = options;
    seeded.internal_seed = !options.external_seed;
    Gradient g(forward, wrt, seeded, {true});
    g.seed_first();
    return g.finish(false, "_grad");
  });
}

Transformed value_and_grad(const Graph& forward, const std::vector<ValueRef>& wrt,
                           const GradOptions& options) {
  GradOptions seeded = options;
  seeded.internal_seed = true;
  return grad_with_loss_opts(forward, wrt, seeded);
}

Transformed vjp(const Graph& forward, const std::vector<ValueRef>& wrt,
                const GradOptions& options) {
  return with_autodiff_errors([&] {
    std::vector<bool> seeded;
    for (const ValueId v : forward.outputs()) {
      seeded.push_back(has_derivative(forward, v));
    }
    Gradient g(forward, wrt, options, seeded);
    for (std::size_t i = 0; i < seeded.size(); ++i) {
      if (!seeded[i]) continue;
      const op::InputRole role{op::InputRole::Kind::DOutput, static_cast<std::int64_t>(i)};
      g.seed(i, fmt::format("d_output_{}", i), role);
    }
    return g.finish(true, "_vjp");
  });
}

}  // namespace ricci
