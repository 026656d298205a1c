#include "ricci/train/training_run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include <fmt/format.h>

#include "ricci/support/error.h"
#include "ricci/support/file.h"
#include "ricci/train/program_record.h"

#include "support/float_environment.h"
#include "train/run_log_text.h"

namespace ricci::detail {
namespace {

using Clock = std::chrono::steady_clock;

bool is_due(std::int64_t step, std::int64_t every, bool last) {
  return every > 0 && (last || step % every == 0);
}

// The steps of a run, one after the other, and what is written down of them.
class Running {
 public:
  Running(const TrainingRunOptions& options, const RunHooks& hooks, std::int64_t from)
      : options_(options),
        hooks_(hooks),
        step_(from),
        saved_(from),
        profiled_from_(first_profiled(from)) {
    if (options_.folder.empty()) return;
    const std::string path = options_.folder + "/log.jsonl";
    goes_on_ = is_there(path);
    if (goes_on_ && from > 0) before_ = seconds_until(path, from);
    log_.emplace(path);
  }

  RunEnd run(const RunStart& start) {
    if (log_) {
      log_->start(start);
      if (goes_on_) log_->resume(step_);
    }
    // A stop ends the run between two steps, not in the middle of one.
    const StopSource unpressed;
    const StopScope scope(unpressed.token());
    const char* why = ended();
    try {
      while (why == nullptr) {
        take_step();
        const std::optional<double> score = look(ended() != nullptr);
        why = ended();  // a stop may have been asked for in the meantime
        if (hooks_.save && is_due(step_, options_.checkpoint_every, why != nullptr)) save(score);
      }
    } catch (...) {
      save_what_is_whole();
      throw;
    }
    if (options_.progress != nullptr) options_.progress->finish();
    if (fastest_ != nullptr && !profile_done_) write_profile();  // a short run
    const RunEnd end{step_, why, seconds()};
    if (log_) log_->end(end);
    return end;
  }

 private:
  [[nodiscard]] std::int64_t first_profiled(std::int64_t from) const {
    // The first steps touch their memory for the first time.
    constexpr std::int64_t Warm = 5;
    return std::max<std::int64_t>(from + 1,
                                  std::min(from + Warm, options_.steps - options_.profiled));
  }

  // A log may be lost where checkpoints are not: it is not waited for until it is on the disk.
  static double seconds_until(const std::string& path, std::int64_t step) {
    double out = 0;
    if (!is_plain_file(path)) (void)read_run_log(path);  // which says so
    const std::vector<std::byte> bytes = read_file(path);
    const auto run = parse_run_log({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    if (!run) return out;
    for (const RunStep& s : run->steps) {
      if (s.step <= step) out = s.seconds;
    }
    return out;
  }

  [[nodiscard]] double seconds() const {
    const DefaultFloatEnvironment floats;
    return before_ + std::chrono::duration<double>(Clock::now() - begun_).count();
  }

  // Why there is no next step; null when there is one.
  [[nodiscard]] const char* ended() const {
    if (step_ >= options_.steps) return "done";
    if (options_.stop.stop_requested()) return "stopped";
    if (options_.seconds > 0 && seconds() >= options_.seconds) return "time";
    return nullptr;
  }

  [[nodiscard]] double done() const {
    const DefaultFloatEnvironment floats;
    const double by_steps = static_cast<double>(step_) / static_cast<double>(options_.steps);
    const double by_time = options_.seconds > 0 ? seconds() / options_.seconds : 0;
    return std::min(1.0, std::max(by_steps, by_time));
  }

  void take_step() {
    is_whole_ = false;
    const bool profiles =
        !profile_done_ && log_ && options_.profiled > 0 && step_ + 1 >= profiled_from_;
    std::unique_ptr<Profile> profile = profiles ? std::make_unique<Profile>(0) : nullptr;
    const double rate = options_.rate.at(step_);
    const double loss = hooks_.step(profile.get()).item();
    ++step_;
    const std::optional<double> norm = hooks_.gradient_norm();
    if (!std::isfinite(loss) || (norm && !std::isfinite(*norm))) diverged(loss, norm);
    is_whole_ = true;
    const bool last = step_ >= options_.steps;
    if (log_ && (step_ == 1 || is_due(step_, options_.log_every, last))) {
      log_->step({step_, loss, rate, norm, seconds(), options_.examples});
    }
    if (options_.progress != nullptr) {
      options_.progress->update(step_, options_.steps, done(), loss);
    }
    if (profiles) keep(std::move(profile));
  }

  // The fastest of a few: in others something else had the machine.
  void keep(std::unique_ptr<Profile> profile) {
    if (fastest_ == nullptr || profile->seconds() < fastest_->seconds()) {
      fastest_ = std::move(profile);
    }
    if (++profiled_ >= options_.profiled) write_profile();
  }

  void write_profile() {
    profile_done_ = true;
    write_file(options_.folder + "/program.json",
               to_json(record_program(hooks_.compiled(), *fastest_)));
  }

  // Evaluates and samples where that is due; the loss it found. Who stops a run does not want to
  // wait: what is looked at then is left unfinished.
  std::optional<double> look(bool last) {
    if (options_.stop.stop_requested()) return std::nullopt;
    const StopScope scope(options_.stop);
    std::optional<double> score;
    try {
      if (hooks_.evaluate && is_due(step_, options_.evaluate_every, last)) score = evaluate();
      if (hooks_.sample && is_due(step_, options_.sample_every, last)) {
        const std::string text = hooks_.sample();
        if (log_) log_->sample({step_, text});
      }
    } catch (const UserError& e) {
      if (e.code() != ErrorCode::Stopped || !options_.stop.stop_requested()) throw;
    }
    return score;
  }

  double evaluate() {
    RunEvaluation found = hooks_.evaluate();
    found.step = step_;
    if (log_) log_->evaluation(found);
    std::string line =
        fmt::format("step {}: loss {:.4f} on data it has not seen", step_, found.loss);
    for (const auto& [name, value] : found.metrics) line += fmt::format(", {} {:.4f}", name, value);
    if (options_.progress != nullptr) options_.progress->say(line);
    return found.loss;
  }

  void save(std::optional<double> score) {
    if (score && !std::isfinite(*score)) score.reset();
    hooks_.save(score);
    saved_ = step_;
    if (log_) log_->checkpoint(step_);
  }

  // Something else than a step has failed, as a log for which there is no room: the steps that were
  // taken are kept all the same, if there is a way.
  void save_what_is_whole() noexcept {
    if (!hooks_.save || !is_whole_ || step_ == saved_) return;
    try {
      hooks_.save(std::nullopt);
    } catch (...) {  // what failed first is what is told
    }
  }

  [[noreturn]] void diverged(double loss, std::optional<double> norm) {
    if (log_) {
      log_->step({step_, loss, options_.rate.at(step_ - 1), norm, seconds(), options_.examples});
      log_->end({step_, "diverged", seconds()});
    }
    if (options_.progress != nullptr) options_.progress->finish();
    std::vector<std::string> notes;
    notes.push_back(fmt::format("the loss is {}{}", loss,
                                norm ? fmt::format(", the norm of its gradients {}", *norm) : ""));
    const std::optional<std::string> value = hooks_.not_finite();
    notes.push_back(value
                        ? fmt::format("the first value of the model that is not finite: {}", *value)
                        : "all values of the model are finite");
    if (!options_.folder.empty() && saved_ > 0) {
      notes.push_back(
          fmt::format("the checkpoints in '{}' are of before", checkpoints_in(options_.folder)));
    }
    throw UserError(Diagnostic{.code = ErrorCode::Refused,
                               .detail = "diverged",
                               .message = fmt::format("the run diverged at step {}", step_),
                               .where = {},
                               .notes = std::move(notes),
                               .help = "take a smaller learning rate, a longer warm-up or a "
                                       "smaller clip_norm; check the data for values like these"});
  }

  const TrainingRunOptions& options_;
  const RunHooks& hooks_;
  std::optional<RunLog> log_;
  std::int64_t step_;
  std::int64_t saved_;     // the step of the newest checkpoint
  bool is_whole_ = false;  // is the model that of the last step?
  std::int64_t profiled_from_;
  std::unique_ptr<Profile> fastest_;
  std::int64_t profiled_ = 0;
  bool profile_done_ = false;
  bool goes_on_ = false;
  double before_ = 0;
  Clock::time_point begun_ = Clock::now();
};

// Where an element is: `[3, 7]`.
std::string place_text(std::int64_t element, const Tensor& t) {
  const StaticDims dims = t.type().static_dims();
  std::vector<std::string> parts(dims.size());
  for (std::size_t axis = dims.size(); axis-- > 0;) {
    parts[axis] = std::to_string(element % dims[axis]);
    element /= dims[axis];
  }
  std::string out;
  for (const std::string& p : parts) out += (out.empty() ? "" : ", ") + p;
  return out.empty() ? out : "[" + out + "]";
}

}  // namespace

RunEnd run_training(const TrainingRunOptions& options, const RunStart& start, const RunHooks& hooks,
                    std::int64_t from) {
  return Running(options, hooks, from).run(start);
}

std::optional<std::string> first_not_finite(std::span<const std::string> names,
                                            std::span<const Array> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!is_float(values[i].dtype())) continue;
    const Tensor& t = values[i].tensor();
    const std::vector<double> numbers = t.numbers<double>();
    const auto it = std::ranges::find_if(numbers, [](double v) { return !std::isfinite(v); });
    if (it == numbers.end()) continue;
    return fmt::format("{}{} is {}", names[i], place_text(it - numbers.begin(), t), *it);
  }
  return std::nullopt;
}

bool is_number(double x) noexcept { return std::isfinite(x); }

std::int64_t params_of(std::span<const Array> values) {
  std::int64_t out = 0;
  for (const Array& x : values) out += x.size();
  return out;
}

void no_batches(std::source_location where) {
  throw UserError(Diagnostic{.code = ErrorCode::Refused,
                             .detail = "no_batches",
                             .message = "the loader has no batch left to learn from",
                             .where = SourcePosition::from(where),
                             .notes = {},
                             .help = "leave out LoaderOptions::steps: a run has its own"});
}

std::string checkpoints_in(const std::string& folder) { return folder + "/checkpoints"; }

}  // namespace ricci::detail
