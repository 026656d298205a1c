// Training: a model, a loss and an optimiser make a function that takes a batch and gives the loss.
//
//   auto loss = [](const Net& net, const Batch& b) { return cross_entropy(net(b.x), b.y); };
//   Trainer train(Net{}, loss, AdamW{.learning_rate = 1e-3});
//   for (…) Array l = train(batch);
//   Net trained = train.model();
//
// The loss is traced once for every type of batch, inside a training scope
// (ricci/nn/training_scope.h) with a key of the step, and compiled with its gradients and the
// optimiser as one program that updates params where they lie (ricci/model/training.h). Leaves of
// the model are its params, named by their fields; buffers follow what the pass gives them. A loss
// may give a pair of it and anything else that is to be known of a step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "ricci/array/callable.h"
#include "ricci/array/random.h"
#include "ricci/array/transform.h"
#include "ricci/array/tree.h"
#include "ricci/io/npy.h"
#include "ricci/model/training.h"
#include "ricci/nn/training_scope.h"
#include "ricci/runtime/device.h"

namespace ricci {

struct TrainerOptions {
  /// What all random masks depend on, with the number of the step.
  std::uint64_t seed = 0;
  /// Which leaves are trained, by their names; absent: all of floating dtype that are no buffers.
  std::function<bool(std::string_view)> trainable = {};
  /// Which leaves the weight decay is for, by their names; absent: all that are trained.
  std::function<bool(std::string_view)> decay = {};
  /// Where it runs; absent: where arrays are computed (`use_device`).
  std::optional<Device> device = {};
  /// Clipping, precision, loss scaling and so on. Its optimiser, params and updates are
  /// set by the trainer.
  TrainingOptions training = {};
};

/// All that training goes on from: what takes the same steps, bit for bit, in a trainer that was
/// made the same way. ricci/train/checkpoint.h keeps it in files.
struct TrainingState {
  std::int64_t step = 0;  ///< times that params moved
  io::NamedTensors model = {};
  /// What optimisers keep, counts, scales, what is accumulated; none before the first step.
  io::NamedTensors kept = {};
  /// What the model is used with in the place of params that are averaged; it follows from `kept`.
  io::NamedTensors averages = {};
  std::uint64_t seed = 0;                    ///< TrainerOptions::seed
  std::optional<double> learning_rate = {};  ///< where it was set
  /// Of the generator of the process: its seed, and how many keys were drawn.
  std::uint64_t generator_seed = 0;
  std::uint64_t generator_count = 0;
};

namespace detail {

/// A model's leaves, and which of them are buffers.
class ModelLeaves final : public NamingVisitor {
 public:
  void array(Array& leaf) override { add(leaf, false); }
  void buffer(Array& leaf) override { add(leaf, true); }

  std::vector<std::string> names;
  std::vector<Array> values;
  std::vector<bool> is_buffer;

 private:
  void add(Array& leaf, bool is_a_buffer);
};

/// All of a trainer that does not depend on the types of model and loss.
class TrainerState {
 public:
  TrainerState(ModelLeaves leaves, Optimizer optimizer, TrainerOptions options,
               std::source_location where);
  ~TrainerState();
  TrainerState(const TrainerState&) = delete;
  TrainerState& operator=(const TrainerState&) = delete;

  struct Program;
  using ProgramPtr = std::shared_ptr<Program>;
  /// A batch as numbers with a dtype, and what its program is found by.
  struct Batch {
    std::vector<Array> leaves;
    std::vector<std::uint64_t> key;
  };
  [[nodiscard]] Batch batch_of(const Flattened& flat, const void* types) const;
  [[nodiscard]] ProgramPtr find(const Batch& batch) const;

  /// Placeholders for the leaves of model and batch, then for the key of the step.
  struct Marks {
    std::vector<Array> leaves;
    Key key;
  };
  [[nodiscard]] Marks marks(Tracing& tracing, const Batch& batch) const;
  /// Compiles what was traced: `results` are the loss and what came with it, `after` the model's
  /// leaves after the pass.
  ProgramPtr add(const Batch& batch, Tracing& tracing, const Marks& marks, bool uses_key,
                 std::span<const Array> results, std::span<const Array> after,
                 std::span<const std::string> names, std::shared_ptr<const void> result);
  /// One step: the loss and what came with it.
  [[nodiscard]] std::vector<Array> step(const ProgramPtr& program, const Batch& batch);
  [[nodiscard]] static const void* result_of(const Program& program);

  [[nodiscard]] std::vector<Array> values() const;
  /// The same with averages where there are such.
  [[nodiscard]] std::vector<Array> averaged() const;
  [[nodiscard]] std::int64_t steps() const;
  [[nodiscard]] std::optional<double> gradient_norm() const;
  void set_learning_rate(double rate);
  void set_profile(Profile* profile);
  [[nodiscard]] std::size_t compiled() const;
  [[nodiscard]] TrainingStep& current() const;
  [[nodiscard]] TrainingState state() const;
  void set_state(const TrainingState& state);
  [[nodiscard]] const std::source_location& where() const;

 private:
  struct Impl;
  void use(const ProgramPtr& program);
  std::unique_ptr<Impl> impl_;
};

}  // namespace detail

/// Trains a model. A handle: copies share its state. One step at a time.
template <class Model, class Loss>
class Trainer {
 public:
  Trainer(const Model& model, Loss loss, const Optimizer& optimizer = AdamW{},
          TrainerOptions options = {}, std::source_location where = std::source_location::current())
      : loss_(std::move(loss)), shell_(model) {
    detail::ModelLeaves leaves;
    leaves.visit(model);
    const std::vector<Array> nothing(leaves.values.size(), Array(0));
    shell_ = with_leaves(model, nothing);
    state_ = std::make_shared<detail::TrainerState>(std::move(leaves), optimizer,
                                                    std::move(options), where);
  }

  /// One step with a batch, as the loss takes it behind the model: the loss before the step, and
  /// what the loss gives with it.
  template <class... B>
  auto operator()(const B&... batch) {
    using Args = ArgumentsFor<B...>;
    using R = detail::Result<const Loss, Args>;
    const Args args(shell_, batch...);
    const detail::TrainerState::Batch given = batch_of(args);
    const detail::TrainerState::ProgramPtr program = program_for<R>(args, given);
    R out = *static_cast<const R*>(detail::TrainerState::result_of(*program));
    detail::Refill(state_->step(program, given)).visit(out);
    return out;
  }
  /// Compiles the step for batches of such types without taking one.
  template <class... B>
  void compile(const B&... batch) {
    using Args = ArgumentsFor<B...>;
    const Args args(shell_, batch...);
    (void)program_for<detail::Result<const Loss, Args>>(args, batch_of(args));
  }

  /// The model with the values of now.
  [[nodiscard]] Model model() const { return with_leaves(shell_, state_->values()); }
  /// The model to evaluate and to use: with the averages of params where the optimiser or
  /// TrainingOptions::ema keeps such, otherwise `model()`.
  [[nodiscard]] Model averaged() const { return with_leaves(shell_, state_->averaged()); }
  [[nodiscard]] std::int64_t steps() const { return state_->steps(); }
  /// Of the last step, before clipping, where `clip_norm` was asked for.
  [[nodiscard]] std::optional<double> gradient_norm() const { return state_->gradient_norm(); }
  /// For the steps from now on, where `learning_rate_input` was asked for.
  void set_learning_rate(double rate) { state_->set_learning_rate(rate); }
  /// Steps from now on add to it (ricci/runtime/profile.h); null: to none.
  void profile(Profile* profile) { state_->set_profile(profile); }
  /// How often it has been traced and compiled.
  [[nodiscard]] std::size_t compiled() const { return state_->compiled(); }

  /// The compiled step that was used last: its params, state and program. UserError before the
  /// first step or `compile`.
  [[nodiscard]] TrainingStep& step() const { return state_->current(); }
  /// Its graph: forward, backward and optimiser.
  [[nodiscard]] const TrainingGraph& graph() const { return step().graph(); }

  /// Params, buffers, the optimiser's state, the count of steps and the state of what is random.
  [[nodiscard]] TrainingState state() const { return state_->state(); }
  /// Goes on from there. The generator of the process is set too. UserError, and nothing has
  /// changed, when something is missing or of another type; before the first step what optimisers
  /// keep is looked at by that step.
  void set_state(const TrainingState& state) { state_->set_state(state); }

 private:
  template <class... B>
  using ArgumentsFor = detail::Arguments<Loss, Model, std::decay_t<B>...>;

  template <class Args>
  [[nodiscard]] detail::TrainerState::Batch batch_of(const Args& args) const {
    detail::Flattened flat;
    std::apply([&](const auto&, const auto&... batch) { (flat.visit(batch), ...); }, args);
    return state_->batch_of(flat, &detail::TypeTag<Args>);
  }

  template <class R, class Args>
  detail::TrainerState::ProgramPtr program_for(const Args& args,
                                               const detail::TrainerState::Batch& batch) {
    static_assert(std::same_as<R, Array> || detail::HasAux<R>,
                  "a loss gives an Array, or a pair of an Array and what is to be known besides");
    if (auto known = state_->find(batch)) return known;
    detail::Tracing tracing("Trainer", detail::TraceScope::Jit, state_->where());
    const detail::TrainerState::Marks marks = state_->marks(tracing, batch);
    const Args traced = with_leaves(args, marks.leaves);
    nn::TrainingScope scope(marks.key);
    const R result = std::apply(loss_, traced);
    const std::vector<Array> results = detail::strong(leaves(result), state_->where());
    const std::vector<Array> after = leaves(scope.updated(std::get<0>(traced)));
    const std::vector<Array> nothing(results.size(), Array(0));
    return state_->add(batch, tracing, marks, scope.keys_drawn() > 0, results, after,
                       detail::argument_names(args),
                       std::make_shared<const R>(with_leaves(result, nothing)));
  }

  Loss loss_;
  Model shell_;  // the model's structure; values lie in the state
  std::shared_ptr<detail::TrainerState> state_;
};

namespace detail {
void export_training(const std::string& path, const TrainingGraph& graph, ObjectOptions options);
}  // namespace detail

/// The training step as an object with a C header beside it (docs/AHEAD_OF_TIME.md), for batches
/// like the last one.
template <class Model, class Loss>
void export_c(const std::string& path, const Trainer<Model, Loss>& trainer,
              ObjectOptions options = {}) {
  detail::export_training(path, trainer.graph(), std::move(options));
}

}  // namespace ricci
