// What is known of a training run while it goes on and afterwards: a file of lines, each a JSON
// object, written when it happens (docs/TRAIN.md lists them). A process that is killed leaves at
// most one torn line, which readers pass over.
//
//   RunLog log("runs/gpt/log.jsonl");
//   log.start({.name = "gpt", .kind = "gpt", .steps = 1000});
//   log.step({.step = 1, .loss = 4.2});
//   RunRecord run = read_run_log("runs/gpt/log.jsonl");
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ricci {

/// Where a run starts.
struct RunStart {
  std::string name;        ///< what people call it
  std::string kind;        ///< the kind of model
  std::string device;      ///< what it runs on
  std::int64_t steps = 0;  ///< that it shall have in all
  std::int64_t params = 0;
  std::string model;                                          ///< nn::summary
  std::vector<std::pair<std::string, std::string>> settings;  ///< in the order they are shown
};
/// Numbers without a value are NaN.
struct RunStep {
  std::int64_t step = 0;  ///< counted from 1
  double loss = 0;
  double learning_rate = 0;
  std::optional<double> gradient_norm = {};
  double seconds = 0;  ///< since the run began, without the time between a stop and a resumption
  std::int64_t examples = 0;  ///< rows of the batch, or tokens
};
struct RunEvaluation {
  std::int64_t step = 0;
  double loss = 0;
  std::vector<std::pair<std::string, double>> metrics = {};  ///< accuracy, perplexity
  std::int64_t examples = 0;                                 ///< looked at; 0: not told
};
struct RunSample {
  std::int64_t step = 0;
  std::string text;
};
struct RunEnd {
  std::int64_t step = 0;
  std::string why;  ///< `done`, `stopped`, `time`, `diverged`
  double seconds = 0;
};

/// Writes a log, line by line; each is handed to the system before a call returns. UserError(file)
/// when it cannot be written: no such folder, no room.
class RunLog {
 public:
  /// A new file, or the end of one that is there.
  explicit RunLog(const std::string& path);
  RunLog(const RunLog&) = delete;
  RunLog& operator=(const RunLog&) = delete;
  ~RunLog();

  void start(const RunStart& start);
  /// The run goes on behind this step: what was logged of later ones does not count.
  void resume(std::int64_t step);
  void step(const RunStep& step);
  void evaluation(const RunEvaluation& evaluation);
  void sample(const RunSample& sample);
  void checkpoint(std::int64_t step);
  void end(const RunEnd& end);

 private:
  void line(std::string_view text);

  std::string path_;
  int file_ = -1;
};

/// A run as its log has it.
struct RunRecord {
  RunStart start;
  std::vector<RunStep> steps;  ///< ascending
  std::vector<RunEvaluation> evaluations;
  std::vector<RunSample> samples;
  std::vector<std::int64_t> checkpoints;
  std::optional<RunEnd> end;  ///< absent: it goes on, or was killed
  std::int64_t torn = 0;      ///< lines that could not be read
};
/// UserError(file) when there is no such file or no line of it is of a run.
[[nodiscard]] RunRecord read_run_log(const std::string& path);

}  // namespace ricci
