// A training run: steps, evaluations and samples now and then, a log, checkpoints, and an end that
// can be gone on from, whatever it was.
//
//   Trainer trainer(Net{}, loss, AdamW{.learning_rate = rate});
//   Loader batches(data, {.batch = 64, .shuffle = 1});
//   TrainingRun run(trainer, batches, {.folder = "runs/digits", .steps = 1000, .rate = rate});
//   run.evaluate = [&](const Net& net) { return RunEvaluation{.loss = loss_of(net, test)}; };
//   const RunEnd end = run.go();       // goes on from the newest checkpoint where there is one
//
// In the folder there are `log.jsonl` (ricci/train/run_log.h), `checkpoints/`
// (ricci/train/checkpoint.h), and, once a few steps have been measured, `program.json`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ricci/model/schedule.h"
#include "ricci/nn/summary.h"
#include "ricci/nn/trainer.h"
#include "ricci/support/stop.h"
#include "ricci/train/checkpoint.h"
#include "ricci/train/progress.h"
#include "ricci/train/run_log.h"

namespace ricci {

struct TrainingRunOptions {
  /// Where the log and checkpoints go; empty: nowhere. It is made where there is none.
  std::string folder = {};
  std::string name = {};    ///< in the log; empty: the folder's
  std::string kind = {};    ///< in the log
  std::string device = {};  ///< in the log
  /// What is logged as such, in this order.
  std::vector<std::pair<std::string, std::string>> settings = {};
  std::int64_t steps = 1000;  ///< in all: those before a resumption count
  double seconds = 0;         ///< ends earlier, when this long has gone by; 0: never
  std::int64_t log_every = 1;
  std::int64_t evaluate_every = 100;    ///< and behind the last step; 0: never
  std::int64_t sample_every = 0;        ///< the same
  std::int64_t checkpoint_every = 100;  ///< the same
  CheckpointFolderOptions checkpoints = {};
  /// For the log: what the optimiser was given.
  Schedule rate = 0.0;
  /// How many rows or tokens a step learns from.
  std::int64_t examples = 0;
  /// Steps that are profiled, early in the run, of which the fastest is kept; 0: none.
  std::int64_t profiled = 5;
  /// Pressed, the step that is taken is finished, a checkpoint written, and the run ends.
  StopToken stop = {};
  RunProgress* progress = nullptr;
};

namespace detail {

/// What a run does with its trainer and its data.
struct RunHooks {
  std::function<Array(Profile*)> step;  ///< takes one; its loss
  std::function<std::optional<double>()> gradient_norm;
  std::function<RunEvaluation()> evaluate;  ///< empty: there is none
  std::function<std::string()> sample;      ///< empty: there are none
  std::function<void(std::optional<double> score)> save;
  /// What is not finite in the model: a name, an index and the value; nothing when all of it is.
  std::function<std::optional<std::string>()> not_finite;
  std::function<const CompiledGraph&()> compiled;
};
/// From the step that was taken last to the end.
[[nodiscard]] RunEnd run_training(const TrainingRunOptions& options, const RunStart& start,
                                  const RunHooks& hooks, std::int64_t from);
/// `blocks.0.feed.in.w[3, 7] is nan`
[[nodiscard]] std::optional<std::string> first_not_finite(std::span<const std::string> names,
                                                          std::span<const Array> values);
[[nodiscard]] bool is_number(double x) noexcept;
[[nodiscard]] std::int64_t params_of(std::span<const Array> values);
[[noreturn]] void no_batches(std::source_location where);
[[nodiscard]] std::string checkpoints_in(const std::string& folder);

}  // namespace detail

/// Refers to a trainer and a loader, which must outlive it.
template <class Model, class Loss, class Batch>
class TrainingRun {
 public:
  TrainingRun(Trainer<Model, Loss>& trainer, Loader<Batch>& batches, TrainingRunOptions options,
              std::source_location where = std::source_location::current())
      : trainer_(&trainer), batches_(&batches), options_(std::move(options)), where_(where) {}

  /// How good a model is on data it does not learn from; the step is filled in. The model is the
  /// one to use, Trainer::averaged.
  std::function<RunEvaluation(const Model&)> evaluate = {};
  /// What it makes of a prompt, a test image, ….
  std::function<std::string(const Model&)> sample = {};

  /// Takes the steps that are left. UserError(diverged) when a loss or a gradient is not finite:
  /// it names the step and the first such value, and no checkpoint is written of it.
  RunEnd go() {
    std::optional<CheckpointFolder> folder;
    std::int64_t from = 0;
    if (!options_.folder.empty()) {
      folder.emplace(detail::checkpoints_in(options_.folder), options_.checkpoints);
      if (const auto resumed = folder->restore(*trainer_, *batches_)) {
        if (resumed->info.data) from = resumed->info.data->step;
        for (const std::string& warning : resumed->warnings) say(warning);
      }
    }
    const Model before = trainer_->model();
    RunStart start{.name = options_.name.empty() ? options_.folder : options_.name,
                   .kind = options_.kind,
                   .device = options_.device,
                   .steps = options_.steps,
                   .params = detail::params_of(leaves(before)),
                   .model = nn::summary(before),
                   .settings = options_.settings};
    return detail::run_training(options_, start, hooks(folder), from);
  }

 private:
  // The profile does not outlive the run, as the trainer may.
  struct Profiling {
    Profiling(Trainer<Model, Loss>& t, Profile* profile) : trainer(t) { trainer.profile(profile); }
    Profiling(const Profiling&) = delete;
    Profiling& operator=(const Profiling&) = delete;
    ~Profiling() { trainer.profile(nullptr); }
    Trainer<Model, Loss>& trainer;
  };

  void say(const std::string& line) {
    if (options_.progress != nullptr) options_.progress->say(line);
  }

  [[nodiscard]] Batch next_batch() {
    std::optional<Batch> batch = batches_->next();
    if (!batch) batch = batches_->next();  // the next epoch
    if (!batch) detail::no_batches(where_);
    return std::move(*batch);
  }

  [[nodiscard]] detail::RunHooks hooks(std::optional<CheckpointFolder>& folder) {
    detail::RunHooks out;
    out.step = [this](Profile* profile) -> Array {
      const Profiling profiling(*trainer_, profile);
      const auto result = (*trainer_)(next_batch());
      if constexpr (detail::HasAux<std::decay_t<decltype(result)>>) {
        return result.first;
      } else {
        return result;
      }
    };
    out.gradient_norm = [this]() -> std::optional<double> {
      const std::optional<double> norm = trainer_->gradient_norm();
      // Where the loss is scaled such a step is left out, and the scale shrinks.
      const bool skipped =
          norm && !detail::is_number(*norm) && !trainer_->graph().loss_scale.empty();
      return skipped ? std::nullopt : norm;
    };
    if (evaluate) out.evaluate = [this] { return evaluate(trainer_->averaged()); };
    if (sample) out.sample = [this] { return sample(trainer_->averaged()); };
    if (folder) {
      out.save = [this, &folder](std::optional<double> score) {
        folder->save(*trainer_, *batches_, {.score = score});
      };
    }
    out.not_finite = [this] {
      const Model model = trainer_->model();
      return detail::first_not_finite(leaf_names(model), leaves(model));
    };
    out.compiled = [this]() -> const CompiledGraph& { return trainer_->step().compiled(); };
    return out;
  }

  Trainer<Model, Loss>* trainer_;
  Loader<Batch>* batches_;
  TrainingRunOptions options_;
  std::source_location where_;
};

}  // namespace ricci
