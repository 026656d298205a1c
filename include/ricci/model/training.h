// Training: a model's loss in, one program out that computes loss and gradients and updates the
// parameters where they lie.
//
//   TrainingStep training = compile_training(
//       model, {.optimizer = AdamW{.learning_rate = cosine(2e-3, {.warm_up = 50, .steps = 600})},
//               .groups = {{.params = {"*.bias"}, .weight_decay = 0}},
//               .clip_norm = 1.0});
//   training.set_param("w", initial);
//   for (…) {
//     auto [loss, aux, norm] = training.step({{"x", batch}, {"y", labels}});
//   }
//   training.save("checkpoint.npz");
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ricci/model/module.h"
#include "ricci/model/optimizer.h"
#include "ricci/op/precision_policy.h"
#include "ricci/runtime/ahead_of_time.h"
#include "ricci/runtime/session.h"

namespace ricci {

/// Small gradients in f16 vanish. The loss is multiplied by a scale before it is differentiated,
/// and the gradients are divided by it in f32. A step whose gradients are not finite is skipped:
/// params, state and count stay as they were, and the scale shrinks; after `interval` steps that
/// were not, it grows.
struct LossScaling {
  double initial = 65536;
  double growth = 2;  ///< 1: the scale stays as it is
  double backoff = 0.5;
  std::int64_t interval = 2000;
};

/// A param that takes the value of one of the model's outputs (not the loss) after each step:
/// running statistics, counters, moving averages.
struct UpdatedParam {
  std::string param;
  std::size_t output = 1;
};

/// Trained params that are treated in their own way. A param belongs to the first group that names
/// it; groups that name none are refused.
struct ParamGroup {
  /// Names, or patterns: '*' stands for any characters and '?' for one.
  std::vector<std::string> params = {};
  /// Names more of them.
  std::function<bool(const std::string& name, const Type& type)> chosen = {};
  double learning_rate_factor = 1;
  std::optional<double> weight_decay = std::nullopt;  ///< in the place of the optimiser's
  bool frozen = false;                                ///< they keep the values they are given
  std::optional<Optimizer> optimizer = std::nullopt;  ///< another one
};

struct TrainingOptions {
  Optimizer optimizer = AdamW{};
  /// The params that are trained; empty means all but those in `updates`. Others keep the value
  /// they are given.
  std::vector<std::string> params = {};
  /// Params that are not trained but follow outputs of the model.
  std::vector<UpdatedParam> updates = {};
  std::vector<ParamGroup> groups = {};
  /// For which params the weight decay is, by their names; absent: for all. A group that has a
  /// decay of its own is not asked about.
  std::function<bool(std::string_view)> decay = {};
  /// Every element of the gradients is kept within ± this, before norms are taken.
  std::optional<double> clip_value = std::nullopt;
  /// The global norm of the gradients is brought down to this.
  std::optional<double> clip_norm = std::nullopt;
  /// Params move once in so many steps, by the mean of their gradients: the same as one batch of so
  /// many times the size, where the loss is a mean over it. A step whose gradients are not finite
  /// (see LossScaling) is none of them.
  std::int64_t accumulate = 1;
  /// Keeps a moving average of every trained param in f32, e ← ema·e + (1 - ema)·p, which begins
  /// with the values the first step finds; TrainingStep::averaged gives it.
  std::optional<double> ema = std::nullopt;
  /// Params in f16 and bf16 have a copy in f32 that is what moves; they are its rounded values. A
  /// small step would otherwise be rounded away.
  bool master_copies = true;
  /// The learning rate is fed with every step, as `learning_rate`, a scalar in f32, instead of the
  /// optimisers' own; groups' factors apply.
  bool learning_rate_input = false;
  /// In which dtypes the model computes; its params, and what optimisers keep, stay as they are.
  PrecisionPolicy precision = PrecisionPolicy::always_f32();
  std::optional<LossScaling> loss_scaling = std::nullopt;
  CompileOptions compile = {};  ///< without donations: a step knows what it updates in place
};

/// The graph of a training step, for those who run it themselves: outputs
/// `[loss, aux…, norm?, count, then for each trained param: it and its state, then updated
/// params, the scale of the loss, and what is accumulated]`.
struct TrainingGraph {
  Graph graph;
  std::vector<Donation> donations;  ///< of the count, params and state
  struct Trained {
    std::string param;
    /// Params of the graph: as state_names lists them for the optimiser, then `master` and `ema`
    /// where there are such.
    std::vector<std::string> state;
    std::vector<std::string> slots = {};   ///< what they are called in state_names
    std::vector<std::string> copies = {};  ///< those of `state` that begin as the param
    Optimizer optimizer = {};
  };
  std::vector<Trained> trained;
  std::vector<std::string> updated;  ///< params that follow outputs
  std::string count;                 ///< the param (i32) that counts steps
  std::string learning_rate;         ///< the input it is fed through; empty when it is fixed
  std::size_t aux = 0;               ///< outputs of the model after the loss
  bool has_norm = false;
  /// Params of the graph where the loss is scaled: the scale (f32; zero before the first step,
  /// which takes the initial one) and how many steps it has been good for (i32). Otherwise empty.
  std::string loss_scale = {};
  std::string good_steps = {};
  /// Params of the graph where gradients are accumulated: how many have been (i32), and sums.
  std::string accumulated_steps = {};
  std::vector<std::string> accumulated = {};
};
/// AutodiffError(wrong_stage) for a module that is a program already. A param the loss does not
/// depend on gets a gradient of zeros.
[[nodiscard]] TrainingGraph make_training_graph(const GraphModule& module,
                                                const TrainingOptions& options = {});

/// The same ahead of time: forward, backward and optimiser in an object of their own, with a C
/// header (see ricci/runtime/ahead_of_time.h). Params, state and count are arrays of the caller,
/// updated in place; the state and the count begin as zeros. `options.donations` and `output_names`
/// are set here.
[[nodiscard]] ObjectFile compile_object(const TrainingGraph& training, ObjectOptions options = {});

/// A compiled training step with the parameters and the optimiser's state. A handle: copies share
/// them. One step at a time.
class TrainingStep {
 public:
  struct Result {
    Tensor loss;
    std::vector<Tensor> aux;  ///< the model's other outputs
    /// Before it was clipped, where that was asked for; of the mean so far where gradients are
    /// accumulated.
    std::optional<double> gradient_norm;
  };
  /// One step with the model's inputs (and the learning rate, where it is one). Parameters need a
  /// value first. UserError leaves them as they were, unless a kernel faults halfway.
  Result step(const Feeds& feeds, const RunOptions& options = {});

  [[nodiscard]] Tensor param(std::string_view name) const;
  /// Copies of it that training keeps (`master`, `ema`, …) begin anew with this value.
  void set_param(std::string_view name, const Tensor& value);
  /// What to evaluate a model with: the moving average of a trained param where there is one
  /// (TrainingOptions::ema, ScheduleFreeAdamW), otherwise the param; in the param's dtype.
  [[nodiscard]] Tensor averaged(std::string_view name) const;
  /// Is that something else than the param?
  [[nodiscard]] bool has_average(std::string_view name) const;
  /// The state of a param, by its name in state_names, or `master`, or `ema`; zeros before the
  /// first step.
  [[nodiscard]] Tensor state(std::string_view param, std::string_view name) const;
  void set_state(std::string_view param, std::string_view name, const Tensor& value);
  /// Times that params moved; steps that were skipped or only accumulated do not count.
  [[nodiscard]] std::int64_t steps() const;
  /// The scale the loss of the next step is multiplied by; 1 where it is not scaled.
  [[nodiscard]] double loss_scale() const;
  /// Names of all params of the model, trained or not.
  [[nodiscard]] const std::vector<std::string>& params() const noexcept;

  /// Params, state and count as NPZ: going on from there gives the same bits. The file appears when
  /// it is complete. Params alone: what another model starts from.
  void save(const std::string& path) const;
  void save_params(const std::string& path) const;
  /// The same with what `averaged` gives.
  void save_averaged(const std::string& path) const;
  /// UserError when something is missing, unknown or of another type; then nothing has changed.
  void restore(const std::string& path);
  void load_params(const std::string& path);

  [[nodiscard]] const CompiledGraph& compiled() const noexcept;
  [[nodiscard]] const TrainingGraph& graph() const noexcept;

 private:
  friend TrainingStep compile_training(Session&, const GraphModule&, const TrainingOptions&);
  struct Impl;
  explicit TrainingStep(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

/// Forward, backward and optimiser as one program. The first output of the module is the loss.
[[nodiscard]] TrainingStep compile_training(Session& session, const GraphModule& module,
                                            const TrainingOptions& options = {});
[[nodiscard]] TrainingStep compile_training(const GraphModule& module,
                                            const TrainingOptions& options = {});
[[nodiscard]] TrainingStep compile_training(const Graph& graph,
                                            const TrainingOptions& options = {});

}  // namespace ricci
