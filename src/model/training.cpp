#include "ricci/model/training.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "ricci/io/npy.h"
#include "ricci/support/error.h"

namespace ricci {

struct TrainingStep::Impl {
  Impl(TrainingGraph g, CompiledGraph c) : graph(std::move(g)), compiled(std::move(c)) {
    std::set<std::string> own = {graph.count, graph.loss_scale, graph.good_steps};
    for (const auto& t : graph.trained) own.insert(t.state.begin(), t.state.end());
    for (const Port& p : compiled.inputs()) {
      if (!p.is_param) continue;
      if (own.contains(p.name)) {
        compiled.set_param(p.name, Tensor::zeros(p.type));
        state.push_back(p.name);
      } else {
        params.push_back(p.name);
      }
    }
  }

  [[nodiscard]] const std::string& state_of(std::string_view param, std::string_view name) const {
    const auto trained = std::ranges::find(graph.trained, param, &TrainingGraph::Trained::param);
    if (trained == graph.trained.end()) {
      throw UserError(ErrorCode::Name, fmt::format("'{}' is not a param that is trained", param));
    }
    const auto names = state_names(optimizer);
    const auto at = std::ranges::find(names, name);
    if (at == names.end()) {
      throw UserError(ErrorCode::Name,
                      fmt::format("the optimiser keeps no '{}' for '{}'", name, param),
                      fmt::format("it keeps: {}", fmt::join(names, ", ")));
    }
    return trained->state[static_cast<std::size_t>(at - names.begin())];
  }

  void require_param(std::string_view name) const {
    if (std::ranges::find(params, name) == params.end()) {
      throw UserError(ErrorCode::Name, fmt::format("the model has no param '{}'", name));
    }
  }

  [[nodiscard]] io::NamedTensors values(const std::vector<std::string>& names) const {
    io::NamedTensors out;
    for (const std::string& name : names) out.emplace_back(name, compiled.param(name));
    return out;
  }

  // All or nothing: types are checked before the first value is set.
  void take(const io::NamedTensors& given, const std::vector<std::string>& wanted,
            const std::string& path) {
    const auto fail = [&](ErrorCode code, std::string message) {
      throw UserError(Diagnostic{code, "training", std::move(message), {}, {"in " + path}, {}});
    };
    std::map<std::string, Tensor> values;
    for (const auto& [name, value] : given) {
      const auto port = std::ranges::find(compiled.inputs(), name, &Port::name);
      if (std::ranges::find(wanted, name) == wanted.end() || port == compiled.inputs().end()) {
        fail(ErrorCode::Name, fmt::format("the training step has no '{}'", name));
      }
      // NPZ has no bf16: such values were widened when they were written.
      const bool widened = port->type.dtype == DType::BF16 && value.dtype() == DType::F32;
      const Tensor fitting = widened
                                 ? Tensor::from_numbers<double>({DType::BF16, value.type().dims},
                                                                value.numbers<double>())
                                 : value;
      if (fitting.type() != port->type) {
        fail(ErrorCode::Shape, fmt::format("'{}' is {}, but {} is given", name,
                                           port->type.to_string(), value.type().to_string()));
      }
      values.insert_or_assign(name, fitting);
    }
    for (const std::string& name : wanted) {
      if (!values.contains(name)) fail(ErrorCode::Name, fmt::format("there is no '{}'", name));
    }
    for (const auto& [name, value] : values) compiled.set_param(name, value);
  }

  [[nodiscard]] std::vector<std::string> everything() const {
    std::vector<std::string> all = params;
    all.insert(all.end(), state.begin(), state.end());
    return all;
  }

  TrainingGraph graph;
  CompiledGraph compiled;
  Optimizer optimizer;
  double first_scale = 1;
  std::vector<std::string> params;  // the model's
  std::vector<std::string> state;   // the optimiser's, with its count
};

TrainingStep::Result TrainingStep::step(const Feeds& feeds, const RunOptions& options) {
  const TrainingGraph& g = impl_->graph;
  std::vector<Tensor> out = impl_->compiled.update(feeds, options);
  Result result{out[0], {}, std::nullopt};
  const auto aux = out.begin() + 1;
  result.aux.assign(aux, aux + static_cast<std::ptrdiff_t>(g.aux));
  if (g.has_norm) result.gradient_norm = out[1 + g.aux].item();
  return result;
}

Tensor TrainingStep::param(std::string_view name) const {
  impl_->require_param(name);
  return impl_->compiled.param(name);
}

void TrainingStep::set_param(std::string_view name, const Tensor& value) {
  impl_->require_param(name);
  impl_->compiled.set_param(name, value);
}

Tensor TrainingStep::state(std::string_view param, std::string_view name) const {
  return impl_->compiled.param(impl_->state_of(param, name));
}

void TrainingStep::set_state(std::string_view param, std::string_view name, const Tensor& value) {
  impl_->compiled.set_param(impl_->state_of(param, name), value);
}

std::int64_t TrainingStep::steps() const {
  return static_cast<std::int64_t>(impl_->compiled.param(impl_->graph.count).item());
}

double TrainingStep::loss_scale() const {
  if (impl_->graph.loss_scale.empty()) return 1;
  const double scale = impl_->compiled.param(impl_->graph.loss_scale).item();
  return scale == 0 ? impl_->first_scale : scale;
}

const std::vector<std::string>& TrainingStep::params() const noexcept { return impl_->params; }

void TrainingStep::save(const std::string& path) const {
  io::write_npz(path, impl_->values(impl_->everything()));
}
void TrainingStep::save_params(const std::string& path) const {
  io::write_npz(path, impl_->values(impl_->params));
}
void TrainingStep::restore(const std::string& path) {
  impl_->take(io::read_npz(path), impl_->everything(), path);
}
void TrainingStep::load_params(const std::string& path) {
  impl_->take(io::read_npz(path), impl_->params, path);
}

const CompiledGraph& TrainingStep::compiled() const noexcept { return impl_->compiled; }
const TrainingGraph& TrainingStep::graph() const noexcept { return impl_->graph; }

TrainingStep compile_training(Session& session, const GraphModule& module,
                              const TrainingOptions& options) {
  if (!options.compile.donations.empty()) {
    throw UserError(ErrorCode::Refused, "a training step decides itself what it updates in place",
                    "leave TrainingOptions::compile.donations empty");
  }
  TrainingGraph graph = make_training_graph(module, options);
  CompileOptions compile = options.compile;
  compile.donations = graph.donations;
  CompiledGraph compiled = session.compile(graph.graph, compile);
  auto impl = std::make_shared<TrainingStep::Impl>(std::move(graph), std::move(compiled));
  impl->optimizer = options.optimizer;
  if (options.loss_scaling) impl->first_scale = options.loss_scaling->initial;
  return TrainingStep(std::move(impl));
}

TrainingStep compile_training(const GraphModule& module, const TrainingOptions& options) {
  Session session;
  return compile_training(session, module, options);
}

TrainingStep compile_training(const Graph& graph, const TrainingOptions& options) {
  return compile_training(GraphModule::from_graph(graph), options);
}

}  // namespace ricci
