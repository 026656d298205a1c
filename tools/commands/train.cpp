// ricci train: trains a model of a usual kind, or goes on with a run.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "ricci/ir/text.h"
#include "ricci/model/optimizer.h"
#include "ricci/support/file.h"
#include "ricci/train/report.h"
#include "ricci/train/training_run.h"

#include "commands/commands.h"
#include "commands/device_option.h"
#include "nn/with_params.h"
#include "stopping.h"
#include "train/tasks.h"

namespace ricci::tool {
namespace {

struct TrainCommand {
  std::string kind;
  std::string config;
  std::string out;
  std::string resume;
  std::string device;
  int threads = 0;
  std::map<const Setting*, std::string> given;
};

// The rate over so many counts: of steps, or of times that weights move.
Schedule schedule_of(const RunSettings& s, std::int64_t each = 1) {
  const double peak = s.learning_rate;
  const std::int64_t steps = std::max<std::int64_t>(s.steps / each, 1);
  const std::int64_t rising = std::min(s.warm_up / each, steps / 5);  // a short run has a short one
  if (s.schedule == "cosine") {
    return cosine(peak, {.warm_up = rising, .steps = steps, .end = peak / 10});
  }
  if (s.schedule == "one_cycle") return one_cycle(peak, {.steps = steps});
  const std::int64_t rest = steps - rising;
  const Schedule after =
      s.schedule == "linear" ? linear(peak, peak / 10, {.steps = rest}) : constant(peak);
  return rising > 0 ? joined({warm_up(peak, rising), after}, {rising}) : after;
}

Optimizer optimizer_of_run(const RunSettings& s) {
  Optimizer optimizer = optimizer_named(s.optimizer);
  std::visit(
      [&](auto& o) {
        o.learning_rate = schedule_of(s, s.accumulate);
        if (s.weight_decay < 0) return;
        if constexpr (requires { o.weight_decay; }) {
          o.weight_decay = s.weight_decay;
        } else {
          throw UserError(ErrorCode::Attr, fmt::format("{} has no weight decay", s.optimizer),
                          "leave out --weight-decay, or take adamw");
        }
      },
      optimizer);
  return optimizer;
}

TrainingOptions training_of(const RunSettings& s) {
  TrainingOptions out{.accumulate = s.accumulate, .precision = precision_of(s.precision)};
  if (s.clip_norm > 0) out.clip_norm = s.clip_norm;
  if (s.clip_value > 0) out.clip_value = s.clip_value;
  if (s.ema > 0) out.ema = s.ema;
  if (s.loss_scaling > 0) out.loss_scaling = LossScaling{.initial = s.loss_scaling};
  return out;
}

// Flags over the file, and either over what the run had.
RunSettings settings_of(const TrainCommand& command) {
  RunSettings s;
  if (!command.resume.empty()) s = RunFolder{command.resume}.settings();
  RunSettings before = s;
  if (!command.kind.empty()) {
    if (!s.kind.empty() && s.kind != command.kind) {
      throw UserError(ErrorCode::Attr, fmt::format("'{}' is a run of {}, not of {}", command.resume,
                                                   s.kind, command.kind));
    }
    s.kind = command.kind;
  }
  if (!command.config.empty()) read_toml(s, command.config);
  if (s.kind.empty()) {
    throw UserError(ErrorCode::Attr, "no kind of model is named",
                    "one of gpt, mamba, cnn, mlp, vit; or `kind` in the file of --config");
  }
  for (const auto& [setting, text] : command.given) {
    if (!setting->is_for(s.kind)) {
      throw UserError(ErrorCode::Attr,
                      fmt::format("{} is no setting of {}", setting->flag(), s.kind),
                      fmt::format("it is one of {}", setting->kinds));
    }
    const std::string fault = set_text(s, *setting, text);
    if (!fault.empty()) throw UserError(ErrorCode::Attr, fault);
  }
  settle(s);
  make_paths_absolute(before);
  make_paths_absolute(s);
  if (!command.resume.empty()) require_same_run(before, s);
  return s;
}

std::vector<std::pair<std::string, std::string>> listed(const RunSettings& s) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const Setting& setting : all_settings()) {
    if (setting.is_for(s.kind)) out.emplace_back(setting.name, plain_value(s, setting));
  }
  return out;
}

TrainingRunOptions run_options(const RunSettings& s, const RunFolder& folder,
                               const std::string& device, RunProgress& progress) {
  return {.folder = folder.path,
          .name = folder.name(),
          .kind = s.kind,
          .device = device,
          .settings = listed(s),
          .steps = s.steps,
          .seconds = s.seconds,
          .log_every = s.log_every,
          .evaluate_every = s.evaluate_every,
          .sample_every = s.sample_every,
          .checkpoint_every = s.checkpoint_every,
          .checkpoints = {.keep = s.keep},
          .rate = schedule_of(s),
          .stop = signal_token(),
          .progress = &progress};
}

// What a report draws.
template <class Model, class Batch>
void write_graph(const Model& model, const Batch& batch, const RunFolder& folder) {
  const Graph graph = trace(&task_loss<Model, Batch>, model, batch);
  Graph drawn = detail::with_params(graph, leaves(model).size());
  drawn.set_name("loss");
  write_file(folder.file("model.ric"), print(drawn));
}

void write_run_report(const RunFolder& folder) {
  const ReportRun run = read_report_run(folder.path);
  write_file(folder.file("report.html"), run_report(std::span(&run, 1)));
}

void say_end(const RunSettings& s, const RunFolder& folder, const RunEnd& end) {
  const RunRecord log = read_run_log(folder.file("log.jsonl"));
  std::string line =
      fmt::format("\n{} after {} steps and {:.1f} s", end.why, end.step, end.seconds);
  if (!log.steps.empty()) line += fmt::format(": loss {:.4f}", log.steps.back().loss);
  if (!log.evaluations.empty()) {
    line += fmt::format(", {:.4f} on data it has not seen", log.evaluations.back().loss);
  }
  fmt::print("{}\n\n  {}   curves, samples, where the time went\n\nTry next:\n", line,
             folder.file("report.html"));
  if (is_language(s.kind)) fmt::print("  ricci sample {} --prompt \"Once \"\n", folder.path);
  fmt::print("  ricci eval {}\n  ricci train --resume {} --steps {}\n", folder.path, folder.path,
             end.step >= s.steps ? 2 * s.steps : s.steps);
  std::fflush(stdout);
}

template <class TaskOf>
void train_task(const TaskOf& task, const RunSettings& s, const RunFolder& folder,
                const std::string& device, RunProgress& progress) {
  using Model = typename TaskOf::ModelType;
  using Batch = typename TaskOf::BatchType;
  const auto seed = static_cast<std::uint64_t>(s.seed);
  Trainer trainer(task.model, &task_loss<Model, Batch>, optimizer_of_run(s),
                  {.seed = seed, .training = training_of(s)});
  Loader<Batch> batches(task.data.train, {.batch = s.batch, .shuffle = seed, .drop_last = true});
  if (task.is_text) task.tokenizer.save(folder.file("tokenizer.json"));
  write_graph(task.model, task.data.train.take(s.batch).all(), folder);

  TrainingRunOptions run_with = run_options(s, folder, device, progress);
  run_with.examples = task.examples;
  TrainingRun run(trainer, batches, std::move(run_with));
  if (!task.data.test.empty()) run.evaluate = evaluation_of(task, s, s.evaluation_batches);
  run.sample = sampling_of(task, s);
  const RunEnd end = run.go();
  {
    // A run that was stopped has its page too.
    const StopSource unpressed;
    const StopScope scope(unpressed.token());
    write_run_report(folder);
  }
  if (end.why != "stopped") return say_end(s, folder, end);
  fmt::print("stopped after step {} of {}; a checkpoint is written. To go on:\n"
             "  ricci train --resume {}\n",
             end.step, s.steps, folder.path);
  std::fflush(stdout);
  throw UserError(ErrorCode::Stopped, "interrupted");
}

void require_a_batch(std::int64_t examples, std::int64_t batch) {
  if (examples >= batch) return;
  throw UserError(
      ErrorCode::Shape,
      fmt::format("{} {} to learn from {} no batch of {}", examples,
                  examples == 1 ? "example" : "examples", examples == 1 ? "is" : "are", batch),
      "make --batch smaller, or give it more data");
}

// The settings of a run that begins or goes on. A run that takes no step with them keeps those it
// had.
class WrittenSettings {
 public:
  WrittenSettings(const RunFolder& folder, const RunSettings& s) : path_(folder.file("run.toml")) {
    if (is_there(path_)) before_ = read_file(path_);
    write_file(path_, to_toml(s));
  }
  void take_back() const noexcept {
    const StopSource unpressed;  // it may be a stop that ended the run
    const StopScope scope(unpressed.token());
    try {
      if (before_) write_file(path_, *before_);
    } catch (const std::exception&) {
      // What went wrong first is what is told.
    }
  }

 private:
  std::string path_;
  std::optional<std::vector<std::byte>> before_;
};

void run_train(const TrainCommand& command) {
  require_compiler(command.device);
  const RunSettings s = settings_of(command);
  const Device device = Device::named(command.device, command.threads);
  use_device(device);
  const bool goes_on = !command.resume.empty();
  // Nothing is made before the data is there.
  const std::optional<RunFolder> before =
      goes_on ? std::optional(RunFolder{command.resume}) : std::nullopt;
  with_task(s, before, false, [&](const auto& task) {
    require_a_batch(task.data.train.size(), s.batch);
    const WrittenRun run =
        goes_on ? WrittenRun::resumed(command.resume) : WrittenRun::made(command.out, s.kind);
    const RunFolder& folder = run.folder();
    const WrittenSettings written(folder, s);
    RunProgress progress;
    fmt::print("{}{}", nn::summary(task.model),
               fmt::format("{} in {}\n", goes_on ? "goes on" : "trains", folder.path));
    std::fflush(stdout);
    try {
      train_task(task, s, folder, fmt::format("{}, {} threads", device.name(), device.threads()),
                 progress);
    } catch (const std::exception&) {
      if (!progress.began()) {
        written.take_back();
        run.take_back();
      }
      throw;
    }
  });
}

}  // namespace

void add_train(CLI::App& app, Action& action) {
  auto options = std::make_shared<TrainCommand>();
  CLI::App* command = app.add_subcommand(
      "train", "trains a model: gpt and mamba on text, cnn, mlp and vit on images");
  command->add_option("KIND", options->kind, "gpt, mamba, cnn, mlp or vit");
  command->add_option("--config", options->config, "settings from a TOML file; flags go before it")
      ->type_name("FILE");
  auto* out = command->add_option("--out", options->out, "the run's folder (default runs/KIND)")
                  ->type_name("DIR");
  command->add_option("--resume", options->resume, "goes on with the run in this folder")
      ->type_name("DIR")
      ->excludes(out);
  declare_device(*command, options->device);
  declare_threads(*command, options->threads);
  for (const Setting& setting : all_settings()) {
    const RunSettings usual;
    const std::string value = plain_value(usual, setting);
    std::string help(setting.help);
    if (!setting.kinds.empty()) help += fmt::format(" [{}]", setting.kinds);
    if (!value.empty() && value != "0") help += fmt::format(" (default {})", value);
    command
        ->add_option_function<std::string>(
            setting.flag(),
            [options, &setting](const std::string& text) { options->given[&setting] = text; }, help)
        ->type_name("VALUE")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)  // scripts put theirs first
        ->group(std::string("settings: ") + std::string(setting.table));
  }
  command->callback([options, &action] { action = [options] { run_train(*options); }; });
}

}  // namespace ricci::tool
