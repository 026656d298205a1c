#include "ricci/nn/trainer.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include <fmt/format.h>

#include "ricci/io/object_file.h"
#include "ricci/support/error.h"

#include "array/generator.h"
#include "array/node.h"
#include "array/program.h"
#include "nn/with_params.h"
#include "support/one_user.h"

namespace ricci::detail {
namespace {

constexpr std::uint64_t Golden = 0x9E3779B97F4A7C15ULL;

}  // namespace

void ModelLeaves::add(Array& leaf, bool is_a_buffer) {
  names.push_back(path());
  values.push_back(leaf);
  is_buffer.push_back(is_a_buffer);
}

struct TrainerState::Program {
  TrainingStep step;
  std::vector<std::string> inputs;  // one a leaf of the batch, then one a draw, then captures
  std::size_t seeds = 0;
  std::vector<Array> captures;
  std::string key_input;  // empty: no key is asked for
  std::size_t results = 1;
  std::shared_ptr<const void> result;
};

struct TrainerState::Impl {
  std::vector<std::string> names;  // of the model's leaves, as params
  std::vector<std::string> paths;  // and in files
  std::vector<Array> initial;      // their values until there is a program
  std::vector<Type> types;
  std::vector<bool> is_buffer;
  TrainerOptions options;
  std::optional<Session> session;
  std::source_location where;
  std::map<std::vector<std::uint64_t>, ProgramPtr> programs;
  ProgramPtr current;
  std::optional<io::NamedTensors> pending;  // what the first program is to keep
  io::NamedTensors averages;                // what follows from it, while there is no program
  std::int64_t step_before = 0;             // of the state that was set, while there is no program
  std::optional<double> gradient_norm;
  std::optional<double> learning_rate;
  Profile* profile = nullptr;
  OneAtATime one_user;

  [[nodiscard]] OneUser enter() {
    return {one_user, "another thread is using this trainer",
            "one thread at a time trains, reads or sets what a trainer trains"};
  }
  [[nodiscard]] std::vector<Array> values() const;

  // What random masks of a step depend on: of batches that are accumulated each has its own.
  [[nodiscard]] std::uint64_t batches_taken(const TrainingStep& step) const {
    std::int64_t count = step.steps() * options.training.accumulate;
    const std::string& partly = step.graph().accumulated_steps;
    if (!partly.empty()) {
      count += static_cast<std::int64_t>(step.compiled().param(partly).item());
    }
    return static_cast<std::uint64_t>(count);
  }

  [[nodiscard]] std::vector<std::string> trained() const {
    std::vector<std::string> out;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (is_buffer[i] || !is_float(types[i].dtype)) continue;
      if (!options.trainable || options.trainable(names[i])) out.push_back(names[i]);
    }
    if (!out.empty()) return out;
    throw UserError(Diagnostic{.code = ErrorCode::Name,
                               .detail = "trainer",
                               .message = "no leaf of the model is trained",
                               .where = SourcePosition::from(where),
                               .notes = {fmt::format("it has {} leaves", names.size())},
                               .help = "give it arrays of floating dtype, and a `trainable` that "
                                       "holds for some of their names"});
  }
};

TrainerState::TrainerState(ModelLeaves leaves, Optimizer optimizer, TrainerOptions options,
                           std::source_location where)
    : impl_(std::make_unique<Impl>()) {
  impl_->paths = leaves.names;
  // As argument 0 of the loss; a model that is an array has no fields.
  for (std::string& name : leaves.names) name.insert(0, name.empty() ? "0" : "0.");
  impl_->names = argument_names(std::move(leaves.names));
  const std::set<std::string> different(impl_->paths.begin(), impl_->paths.end());
  if (different.size() < impl_->paths.size() || different.contains("")) impl_->paths = impl_->names;
  impl_->initial = strong(leaves.values, where);
  for (const Array& x : impl_->initial) impl_->types.push_back(x.type());
  impl_->is_buffer = std::move(leaves.is_buffer);
  impl_->options = std::move(options);
  impl_->options.training.optimizer = std::move(optimizer);
  if (impl_->options.decay) impl_->options.training.decay = impl_->options.decay;
  impl_->session.emplace(impl_->options.device ? *impl_->options.device : current_device());
  impl_->where = where;
  impl_->options.training.params = impl_->trained();
  ricci::eval(impl_->initial, where);
}

TrainerState::~TrainerState() = default;

TrainerState::Batch TrainerState::batch_of(const Flattened& flat, const void* types) const {
  Batch out;
  std::vector<Array> given;
  for (const Array* x : flat.leaves) given.push_back(*x);
  out.leaves = strong(given, impl_->where);
  out.key = flat.words;
  out.key.push_back(std::bit_cast<std::uintptr_t>(types));
  for (const Array& x : out.leaves) {
    out.key.push_back(static_cast<std::uint64_t>(x.dtype()) << 32 | x.rank());
    for (const Dim& d : x.shape()) out.key.push_back(static_cast<std::uint64_t>(d.value()));
  }
  return out;
}

TrainerState::ProgramPtr TrainerState::find(const Batch& batch) const {
  const OneUser user = impl_->enter();
  const auto it = impl_->programs.find(batch.key);
  return it == impl_->programs.end() ? nullptr : it->second;
}

TrainerState::Marks TrainerState::marks(Tracing& tracing, const Batch& batch) const {
  Marks out;
  for (const Type& t : impl_->types) out.leaves.push_back(tracing.placeholder(t));
  for (const Array& x : batch.leaves) out.leaves.push_back(tracing.placeholder(x.type()));
  out.key = Key(tracing.placeholder(i64()));
  return out;
}

TrainerState::ProgramPtr TrainerState::add(const Batch& batch, Tracing& tracing, const Marks& marks,
                                           bool uses_key, std::span<const Array> results,
                                           std::span<const Array> after,
                                           std::span<const std::string> names,
                                           std::shared_ptr<const void> result) {
  const OneUser user = impl_->enter();
  const std::size_t model = impl_->names.size();
  TrainingOptions options = impl_->options.training;
  options.updates.clear();
  std::vector<Array> outputs(results.begin(), results.end());
  for (std::size_t i = 0; i < model; ++i) {
    if (after[i].node() == marks.leaves[i].node()) continue;
    options.updates.push_back({impl_->names[i], outputs.size()});
    outputs.push_back(after[i]);
  }
  std::vector<std::string> inputs(names.begin(), names.end());
  inputs.emplace_back("step.key");
  const TracedFunction traced = tracing.finish(outputs, inputs);
  const Graph& graph = graph_of(traced);
  const std::vector<NodeId> ports = graph.leaves();
  const NodeId key_port = ports[names.size()];
  const Graph loss =
      with_params(graph, model, {}, uses_key ? std::nullopt : std::optional<NodeId>(key_port));
  auto program = std::make_shared<Program>(
      Program{.step = compile_training(*impl_->session, GraphModule::from_graph(loss), options),
              .inputs = {},
              .seeds = tracing.seeds().size(),
              .captures = traced.captures,
              .key_input = uses_key ? *graph.node(key_port).leaf_name() : std::string(),
              .results = results.size(),
              .result = std::move(result)});
  for (std::size_t k = model; k < ports.size(); ++k) {
    if (ports[k] != key_port) program->inputs.push_back(*graph.node(ports[k]).leaf_name());
  }
  materialize(program->captures, impl_->where);
  use(program);
  impl_->programs.emplace(batch.key, program);
  return program;
}

namespace {

[[noreturn]] void misfit(ErrorCode code, std::string message) {
  throw UserError(Diagnostic{.code = code,
                             .detail = "trainer",
                             .message = std::move(message),
                             .where = {},
                             .notes = {},
                             .help =
                                 "make the trainer as it was made when this was saved: the same "
                                 "model, optimiser and options"});
}

// A value for every param of `types`, in their order.
std::vector<Tensor> fitting(const std::vector<std::pair<std::string, Type>>& wanted,
                            const io::NamedTensors& given) {
  std::map<std::string_view, const Tensor*> found;
  for (const auto& [name, value] : given) found.emplace(name, &value);
  std::vector<Tensor> out;
  for (const auto& [name, type] : wanted) {
    const auto it = found.find(name);
    if (it == found.end()) misfit(ErrorCode::Name, fmt::format("there is no '{}'", name));
    if (it->second->type() != type) {
      misfit(ErrorCode::Shape, fmt::format("'{}' is {}, but {} is given", name, type.to_string(),
                                           it->second->type().to_string()));
    }
    out.push_back(*it->second);
    found.erase(it);
  }
  if (found.empty()) return out;
  misfit(ErrorCode::Name, fmt::format("the trainer has no '{}'", found.begin()->first));
}

// What a training step keeps besides the model.
std::vector<std::pair<std::string, Type>> kept_by(const CompiledGraph& compiled,
                                                  const std::vector<std::string>& model) {
  std::vector<std::pair<std::string, Type>> out;
  for (const Port& p : compiled.inputs()) {
    if (p.is_param && std::ranges::find(model, p.name) == model.end()) {
      out.emplace_back(p.name, p.type);
    }
  }
  return out;
}

// Nothing given: as before the first step.
io::NamedTensors checked_kept(const CompiledGraph& compiled, const std::vector<std::string>& model,
                              const io::NamedTensors& given) {
  const auto wanted = kept_by(compiled, model);
  std::vector<Tensor> values;
  if (given.empty()) {
    for (const auto& [name, type] : wanted) values.push_back(Tensor::zeros(type));
  } else {
    values = fitting(wanted, given);
  }
  io::NamedTensors out;
  for (std::size_t i = 0; i < wanted.size(); ++i) out.emplace_back(wanted[i].first, values[i]);
  return out;
}

void set_kept(CompiledGraph& compiled, const io::NamedTensors& kept) {
  for (const auto& [name, value] : kept) compiled.set_param(name, value);
}

}  // namespace

// Params, state and count move to the program that is used next.
void TrainerState::use(const ProgramPtr& program) {
  if (impl_->current == program) return;
  if (impl_->current) {
    const CompiledGraph& from = impl_->current->step.compiled();
    CompiledGraph to = program->step.compiled();
    for (const Port& p : from.inputs()) {
      const auto same = std::ranges::find(to.inputs(), p.name, &Port::name);
      if (p.is_param && same != to.inputs().end()) to.set_param(p.name, from.param(p.name));
    }
  } else {
    for (std::size_t i = 0; i < impl_->names.size(); ++i) {
      program->step.set_param(impl_->names[i], impl_->initial[i].tensor());
    }
    if (impl_->pending) {
      CompiledGraph compiled = program->step.compiled();
      set_kept(compiled, checked_kept(compiled, impl_->names, *impl_->pending));
    }
    impl_->pending.reset();
    impl_->averages.clear();
    impl_->initial.clear();
  }
  impl_->current = program;
}

std::vector<Array> TrainerState::step(const ProgramPtr& program, const Batch& batch) {
  const OneUser user = impl_->enter();
  use(program);
  TrainingStep& step = program->step;
  std::vector<Array> given = batch.leaves;
  for (std::size_t i = 0; i < program->seeds; ++i) given.push_back(next_key().words());
  given.insert(given.end(), program->captures.begin(), program->captures.end());
  ricci::eval(given, impl_->where);
  Feeds feeds;
  for (std::size_t i = 0; i < given.size(); ++i) {
    feeds.emplace(program->inputs[i], given[i].tensor());
  }
  if (!program->key_input.empty()) {
    const Key key(impl_->options.seed * Golden + impl_->batches_taken(step));
    feeds.emplace(program->key_input, key.words().tensor());
  }
  if (!step.graph().learning_rate.empty()) {
    const double rate = impl_->learning_rate ? *impl_->learning_rate
                                             : learning_rate(impl_->options.training.optimizer);
    feeds.emplace(step.graph().learning_rate, Tensor::of<float>({}, {static_cast<float>(rate)}));
  }
  const TrainingStep::Result done = step.step(feeds, {.profile = impl_->profile});
  impl_->gradient_norm = done.gradient_norm;
  std::vector<Array> out = {Array(done.loss)};
  for (std::size_t i = 1; i < program->results; ++i) out.emplace_back(done.aux[i - 1]);
  return out;
}

TrainingState TrainerState::state() const {
  const OneUser user = impl_->enter();
  const GeneratorState random = generator_state();
  TrainingState out{.step = steps(),
                    .seed = impl_->options.seed,
                    .learning_rate = impl_->learning_rate,
                    .generator_seed = random.seed,
                    .generator_count = random.count};
  const std::vector<Array> now = impl_->values();
  for (std::size_t i = 0; i < now.size(); ++i) {
    out.model.emplace_back(impl_->paths[i], now[i].tensor());
  }
  if (!impl_->current) {
    if (impl_->pending) out.kept = *impl_->pending;
    out.averages = impl_->averages;
    return out;
  }
  const CompiledGraph& compiled = impl_->current->step.compiled();
  for (const auto& [name, type] : kept_by(compiled, impl_->names)) {
    out.kept.emplace_back(name, compiled.param(name));
  }
  const TrainingStep& step = impl_->current->step;
  for (std::size_t i = 0; i < impl_->names.size(); ++i) {
    if (!step.has_average(impl_->names[i])) continue;
    out.averages.emplace_back(impl_->paths[i], step.averaged(impl_->names[i]));
  }
  return out;
}

void TrainerState::set_state(const TrainingState& state) {
  const OneUser user = impl_->enter();
  std::vector<std::pair<std::string, Type>> wanted;
  for (std::size_t i = 0; i < impl_->paths.size(); ++i) {
    wanted.emplace_back(impl_->paths[i], impl_->types[i]);
  }
  const std::vector<Tensor> values = fitting(wanted, state.model);
  if (impl_->current) {
    CompiledGraph compiled = impl_->current->step.compiled();
    const io::NamedTensors kept = checked_kept(compiled, impl_->names, state.kept);
    for (std::size_t i = 0; i < values.size(); ++i) compiled.set_param(impl_->names[i], values[i]);
    set_kept(compiled, kept);
  } else {
    impl_->initial.assign(values.begin(), values.end());
    impl_->pending = state.kept;
    impl_->averages = state.averages;
  }
  impl_->step_before = state.step;
  impl_->options.seed = state.seed;
  impl_->learning_rate = state.learning_rate;
  set_generator_state({state.generator_seed, state.generator_count});
}

const void* TrainerState::result_of(const Program& program) { return program.result.get(); }

std::vector<Array> TrainerState::values() const {
  const OneUser user = impl_->enter();
  return impl_->values();
}

std::vector<Array> TrainerState::Impl::values() const {
  if (!current) return initial;
  std::vector<Array> out;
  for (const std::string& name : names) out.emplace_back(current->step.param(name));
  return out;
}

std::vector<Array> TrainerState::averaged() const {
  std::vector<Array> out;
  if (!impl_->current) {
    out = impl_->initial;
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto found = std::ranges::find(impl_->averages, impl_->paths[i],
                                           [](const auto& a) { return a.first; });
      if (found != impl_->averages.end()) out[i] = Array(found->second);
    }
    return out;
  }
  const TrainingStep& step = impl_->current->step;
  for (const std::string& name : impl_->names) out.emplace_back(step.averaged(name));
  return out;
}

std::int64_t TrainerState::steps() const {
  return impl_->current ? current().steps() : impl_->step_before;
}
std::optional<double> TrainerState::gradient_norm() const { return impl_->gradient_norm; }

void TrainerState::set_learning_rate(double rate) {
  if (!impl_->options.training.learning_rate_input) {
    throw UserError(ErrorCode::Refused, "the learning rate of this trainer is compiled in",
                    "set TrainerOptions::training.learning_rate_input");
  }
  impl_->learning_rate = rate;
}

void TrainerState::set_profile(Profile* profile) { impl_->profile = profile; }

std::size_t TrainerState::compiled() const { return impl_->programs.size(); }

TrainingStep& TrainerState::current() const {
  if (impl_->current) return impl_->current->step;
  throw UserError(Diagnostic{.code = ErrorCode::Refused,
                             .detail = "trainer",
                             .message = "nothing has been compiled for this trainer yet",
                             .where = SourcePosition::from(impl_->where),
                             .notes = {},
                             .help = "take a step, or call compile(batch) first"});
}

const std::source_location& TrainerState::where() const { return impl_->where; }

void export_training(const std::string& path, const TrainingGraph& graph, ObjectOptions options) {
  io::write_object(compile_object(graph, std::move(options)), path);
}

}  // namespace ricci::detail
