#include "ricci/model/training.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "ricci/interp/interpreter.h"
#include "ricci/io/npy.h"
#include "ricci/support/error.h"

namespace ricci {

struct TrainingStep::Impl {
  Impl(TrainingGraph g, CompiledGraph c) : graph(std::move(g)), compiled(std::move(c)) {
    std::set<std::string> own = {graph.count, graph.loss_scale, graph.good_steps,
                                 graph.accumulated_steps};
    own.insert(graph.accumulated.begin(), graph.accumulated.end());
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

  [[nodiscard]] const TrainingGraph::Trained* find_trained(std::string_view param) const {
    const auto trained = std::ranges::find(graph.trained, param, &TrainingGraph::Trained::param);
    return trained == graph.trained.end() ? nullptr : &*trained;
  }

  [[nodiscard]] const std::string& state_of(std::string_view param, std::string_view name) const {
    const TrainingGraph::Trained* trained = find_trained(param);
    if (trained == nullptr) {
      throw UserError(ErrorCode::Name, fmt::format("'{}' is not a param that is trained", param));
    }
    const std::vector<std::string>& names = trained->slots;
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

  // What training keeps a copy of begins anew with the value a param was given.
  void renew_copies(std::string_view name) {
    const TrainingGraph::Trained* trained = find_trained(name);
    if (trained == nullptr || trained->copies.empty()) return;
    const std::vector<double> numbers = compiled.param(name).numbers<double>();
    for (const std::string& copy : trained->copies) {
      const Type type = compiled.param(copy).type();
      compiled.set_param(copy, Tensor::from_numbers<double>(type, numbers));
    }
  }

  // Before the first step there is nothing but the params.
  [[nodiscard]] Tensor averaged(std::string_view name) const {
    const Tensor now = compiled.param(name);
    const TrainingGraph::Trained* trained = find_trained(name);
    if (trained == nullptr || compiled.param(graph.count).item() == 0) return now;
    const auto ema = std::ranges::find(trained->slots, "ema");
    if (ema != trained->slots.end()) {
      const auto at = static_cast<std::size_t>(ema - trained->slots.begin());
      return converted(compiled.param(trained->state[at]), now.type());
    }
    return std::visit([&](const auto& o) { return averaged_by(o, *trained, now); },
                      trained->optimizer);
  }

  [[nodiscard]] bool has_average(std::string_view name) const {
    const TrainingGraph::Trained* trained = find_trained(name);
    if (trained == nullptr) return false;
    if (std::ranges::find(trained->slots, "ema") != trained->slots.end()) return true;
    return std::visit([](const auto& o) { return requires(OptimizerUpdate u) { o.averaged(u); }; },
                      trained->optimizer);
  }

  // The average that an optimiser keeps itself, where it does.
  template <class O>
  [[nodiscard]] Tensor averaged_by(const O& optimizer, const TrainingGraph::Trained& trained,
                                   const Tensor& now) const {
    if constexpr (requires(OptimizerUpdate u) { optimizer.averaged(u); }) {
      Graph g("averaged");
      Feeds feeds = {{"param", now}};
      OptimizerUpdate at{g.input("param", now.type()), {}};
      const Type wide = state_type(now.type());
      at.param = cast_to(at.param, wide.dtype);
      for (std::size_t k = 0; k < trained.state.size(); ++k) {
        const Tensor value = compiled.param(trained.state[k]);
        feeds.insert_or_assign(trained.slots[k], value);
        const Value input = g.input(trained.slots[k], value.type());
        if (trained.slots[k] == "master") at.param = input;
        at.state.push_back(input);
      }
      g.set_outputs({optimizer.averaged(at)});
      return converted(interpret(g, feeds)[0], now.type());
    }
    return now;
  }

  [[nodiscard]] static Tensor converted(const Tensor& value, const Type& type) {
    return Tensor::from_numbers<double>(type, value.numbers<double>());
  }

  [[nodiscard]] std::vector<std::string> everything() const {
    std::vector<std::string> all = params;
    all.insert(all.end(), state.begin(), state.end());
    return all;
  }

  TrainingGraph graph;
  CompiledGraph compiled;
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
  impl_->renew_copies(name);
}

Tensor TrainingStep::averaged(std::string_view name) const {
  impl_->require_param(name);
  return impl_->averaged(name);
}

bool TrainingStep::has_average(std::string_view name) const {
  impl_->require_param(name);
  return impl_->has_average(name);
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
void TrainingStep::save_averaged(const std::string& path) const {
  io::NamedTensors out;
  for (const std::string& name : impl_->params) out.emplace_back(name, impl_->averaged(name));
  io::write_npz(path, out);
}
void TrainingStep::restore(const std::string& path) {
  impl_->take(io::read_npz(path), impl_->everything(), path);
}
void TrainingStep::load_params(const std::string& path) {
  impl_->take(io::read_npz(path), impl_->params, path);
  for (const std::string& name : impl_->params) impl_->renew_copies(name);
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
