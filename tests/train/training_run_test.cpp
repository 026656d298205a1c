// A run: what is written down, how it ends, and that going on from any end gives the same bits.
#include "ricci/train/training_run.h"

#include <cmath>
#include <csignal>
#include <filesystem>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "ricci/io/file.h"
#include "ricci/nn.h"
#include "ricci/support/error.h"
#include "ricci/train/report.h"

#include "support/scratch_folder.h"

namespace ricci::training_run_test {
namespace {

using testing::ScratchFolder;

struct RunBatch {
  Array x, y;
};
struct RunNet {
  nn::Linear hidden{3, 8};
  nn::BatchNorm norm{8};
  nn::Dropout drop{0.2};
  nn::Linear out{8, 2};
  Array operator()(const Array& x) const { return out(drop(relu(norm(hidden(x))))); }
};
Array run_loss(const RunNet& net, const RunBatch& b) { return cross_entropy(net(b.x), b.y); }

RunBatch run_data() {
  const Array x = normal(Key(3), {40, 3}).eval();
  return {x, cast(x(ellipsis, 0) > 0, DType::I32).eval()};
}

struct Outcome {
  RunEnd end;
  RunNet net;
};

struct RunSetup {
  TrainingRunOptions options;
  double learning_rate = 1e-2;
  std::function<void(std::int64_t)> on_evaluation = {};
};

Outcome run_with(const RunSetup& setup) {
  nn::seed(9);
  Trainer trainer(RunNet{}, &run_loss, AdamW{.learning_rate = setup.learning_rate},
                  {.seed = 4, .training = {.clip_norm = 1.0}});
  Loader<RunBatch> batches(Dataset<RunBatch>(run_data()),
                           {.batch = 8, .shuffle = 5, .drop_last = true});
  TrainingRun run(trainer, batches, setup.options);
  std::int64_t evaluations = 0;
  run.evaluate = [&](const RunNet& net) {
    if (setup.on_evaluation) setup.on_evaluation(++evaluations);
    const RunBatch all = run_data();
    return RunEvaluation{.loss = run_loss(net, all).item(), .metrics = {{"one", 1}}};
  };
  run.sample = [](const RunNet&) { return std::string("sample"); };
  const RunEnd end = run.go();
  return {end, trainer.model()};
}

TrainingRunOptions options_in(const std::string& folder, std::int64_t steps) {
  return {.folder = folder,
          .kind = "test",
          .steps = steps,
          .evaluate_every = 4,
          .sample_every = 8,
          .checkpoint_every = 4,
          .rate = 1e-2,
          .examples = 8};
}

void expect_same_bits(const RunNet& a, const RunNet& b) {
  const std::vector<Array> x = leaves(a);
  const std::vector<Array> y = leaves(b);
  const std::vector<std::string> names = leaf_names(a);
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(x[i].to_vector<double>(), y[i].to_vector<double>()) << names[i];
  }
}

TEST(TrainRun, WritesWhatHappens) {
  const ScratchFolder folder;
  const Outcome out = run_with({.options = options_in(folder.file("run"), 12)});
  EXPECT_EQ(out.end.why, "done");
  EXPECT_EQ(out.end.step, 12);
  const ReportRun run = read_report_run(folder.file("run"));
  EXPECT_EQ(run.log.steps.size(), 12U);
  EXPECT_EQ(run.log.steps.back().examples, 8);
  EXPECT_NEAR(run.log.steps.back().learning_rate, 1e-2, 1e-12);
  EXPECT_TRUE(run.log.steps[3].gradient_norm);
  EXPECT_EQ(run.log.evaluations.size(), 3U);
  EXPECT_EQ(run.log.evaluations.back().metrics.at(0).first, "one");
  EXPECT_EQ(run.log.samples.size(), 2U);
  EXPECT_EQ(run.log.checkpoints.back(), 12);
  EXPECT_NE(run.log.start.model.find("hidden"), std::string::npos);
  ASSERT_TRUE(run.program);
  EXPECT_GT(run.program->rows.size(), 0U);
  EXPECT_GT(run.program->kept_bytes, 0);
  EXPECT_FALSE(run_report(std::span(&run, 1)).empty());
}

TEST(TrainRun, GoesOnWithTheBitsOfARunThatWasNotInterrupted) {
  const ScratchFolder folder;
  const Outcome whole = run_with({.options = options_in(folder.file("whole"), 14)});
  // Ended by a stop in the middle of an epoch, and then again by its steps.
  const StopSource stop;
  RunSetup first{.options = options_in(folder.file("parts"), 14)};
  first.options.stop = stop.token();
  first.options.evaluate_every = 7;
  first.on_evaluation = [&](std::int64_t) { stop.request_stop(); };
  const Outcome stopped = run_with(first);
  EXPECT_EQ(stopped.end.why, "stopped");
  EXPECT_EQ(stopped.end.step, 7);
  const Outcome second = run_with({.options = options_in(folder.file("parts"), 11)});
  EXPECT_EQ(second.end.step, 11);
  const Outcome third = run_with({.options = options_in(folder.file("parts"), 14)});
  EXPECT_EQ(third.end.why, "done");
  expect_same_bits(whole.net, third.net);
  const RunRecord a = read_run_log(folder.file("whole/log.jsonl"));
  const RunRecord b = read_run_log(folder.file("parts/log.jsonl"));
  ASSERT_EQ(a.steps.size(), b.steps.size());
  for (std::size_t i = 0; i < a.steps.size(); ++i) {
    EXPECT_EQ(a.steps[i].step, b.steps[i].step);
    EXPECT_EQ(a.steps[i].loss, b.steps[i].loss) << i;
    EXPECT_GE(b.steps[i].seconds, i > 0 ? b.steps[i - 1].seconds : 0);
  }
}

// Who stops a run does not wait for what looks at it.
TEST(TrainRun, AStopEndsAnEvaluationThatIsUnderWay) {
  const ScratchFolder folder;
  const StopSource stop;
  RunSetup setup{.options = options_in(folder.file("run"), 100)};
  setup.options.stop = stop.token();
  bool went_on = false;
  setup.on_evaluation = [&](std::int64_t) {
    stop.request_stop();
    throw_if_stopped();
    went_on = true;
  };
  const Outcome out = run_with(setup);
  EXPECT_FALSE(went_on);
  EXPECT_EQ(out.end.why, "stopped");
  EXPECT_EQ(out.end.step, 4);
  const RunRecord log = read_run_log(folder.file("run/log.jsonl"));
  EXPECT_TRUE(log.evaluations.empty());
  EXPECT_EQ(log.checkpoints, std::vector<std::int64_t>{4});
  // Stops of others are no end of a run.
  setup.options = options_in(folder.file("other"), 100);
  setup.on_evaluation = [](std::int64_t) { throw UserError(ErrorCode::Stopped, "of another"); };
  EXPECT_THROW((void)run_with(setup), UserError);
}

// Files of this process have so much room at most, while it lives.
class FileRoom {
 public:
  explicit FileRoom(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  FileRoom(const FileRoom&) = delete;
  FileRoom& operator=(const FileRoom&) = delete;
  ~FileRoom() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_{};
};

TEST(TrainRun, ALogWithoutRoomCostsNoStep) {
  const ScratchFolder folder;
  const std::string run = folder.file("run");
  std::filesystem::create_directory(run);
  // A log that is long already, so that it meets the limit and a checkpoint does not.
  io::write_file(run + "/log.jsonl", std::string(1 << 20, '\n'));
  RunSetup setup{.options = options_in(run, 1000)};
  setup.options.checkpoint_every = 0;
  setup.options.evaluate_every = 0;
  {
    const FileRoom room((1 << 20) + 20000);
    EXPECT_THROW((void)run_with(setup), UserError);
  }
  const auto found = CheckpointFolder(run + "/checkpoints").newest();
  ASSERT_TRUE(found);
  const std::int64_t logged = read_run_log(run + "/log.jsonl").steps.back().step;
  EXPECT_GE(found->checkpoint.info.step, logged);
  EXPECT_GT(logged, 1);
}

// What is evaluated, what has the best score, and what others load is one model.
TEST(TrainRun, AveragesAreWhatIsUsed) {
  for (const bool by_optimizer : {true, false}) {
    const ScratchFolder folder;
    nn::seed(9);
    TrainingOptions training;
    if (!by_optimizer) training.ema = 0.5;
    Trainer trainer(RunNet{}, &run_loss,
                    by_optimizer ? Optimizer(ScheduleFreeAdamW{.learning_rate = 1e-2})
                                 : Optimizer(AdamW{.learning_rate = 1e-2}),
                    {.seed = 4, .training = training});
    Loader<RunBatch> batches(Dataset<RunBatch>(run_data()), {.batch = 8, .drop_last = true});
    TrainingRun run(trainer, batches, options_in(folder.file("run"), 8));
    std::optional<RunNet> evaluated;
    run.evaluate = [&](const RunNet& net) {
      evaluated = net;
      return RunEvaluation{.loss = run_loss(net, run_data()).item()};
    };
    run.sample = [&](const RunNet& net) {
      expect_same_bits(net, trainer.averaged());
      return std::string("sample");
    };
    (void)run.go();
    ASSERT_TRUE(evaluated);
    expect_same_bits(*evaluated, trainer.averaged());
    EXPECT_NE(trainer.averaged().out.w.to_vector<double>(),
              trainer.model().out.w.to_vector<double>());
    const std::string file = CheckpointFolder(folder.file("run/checkpoints")).entries().back().path;
    expect_same_bits(load<RunNet>(file), trainer.averaged());
    // A trainer that goes on from there has both, before its first step and behind it.
    nn::seed(9);
    Trainer again(RunNet{}, &run_loss,
                  by_optimizer ? Optimizer(ScheduleFreeAdamW{.learning_rate = 1e-2})
                               : Optimizer(AdamW{.learning_rate = 1e-2}),
                  {.seed = 4, .training = training});
    (void)restore(file, again);
    expect_same_bits(again.model(), trainer.model());
    expect_same_bits(again.averaged(), trainer.averaged());
    save(folder.file("copy"), again);
    expect_same_bits(load<RunNet>(folder.file("copy")), trainer.averaged());
  }
}

TEST(TrainRun, GoesOnFromTheCheckpointBeforeWhatWasLost) {
  const ScratchFolder folder;
  const Outcome whole = run_with({.options = options_in(folder.file("whole"), 10)});
  // Steps 9 and 10 are behind the last checkpoint that is left.
  (void)run_with({.options = options_in(folder.file("lost"), 10)});
  std::filesystem::remove(CheckpointFolder(folder.file("lost/checkpoints")).entries().back().path);
  const Outcome again = run_with({.options = options_in(folder.file("lost"), 10)});
  expect_same_bits(whole.net, again.net);
  EXPECT_EQ(read_run_log(folder.file("lost/log.jsonl")).steps.size(), 10U);
}

TEST(TrainRun, ARunThatIsDoneIsDone) {
  const ScratchFolder folder;
  const Outcome once = run_with({.options = options_in(folder.file("run"), 5)});
  const Outcome twice = run_with({.options = options_in(folder.file("run"), 5)});
  EXPECT_EQ(twice.end.step, 5);
  expect_same_bits(once.net, twice.net);
}

TEST(TrainRun, TimeEndsIt) {
  const ScratchFolder folder;
  RunSetup setup{.options = options_in(folder.file("run"), 1'000'000)};
  setup.options.seconds = 1e-9;
  const Outcome out = run_with(setup);
  EXPECT_EQ(out.end.why, "time");
  EXPECT_LT(out.end.step, 10);
}

TEST(TrainRun, DivergenceNamesTheStepAndTheValue) {
  const ScratchFolder folder;
  RunSetup setup{.options = options_in(folder.file("run"), 200), .learning_rate = 1e38};
  try {
    (void)run_with(setup);
    FAIL() << "nothing is said";
  } catch (const UserError& e) {
    const std::string what = e.what();
    EXPECT_NE(what.find("diverged at step "), std::string::npos) << what;
    EXPECT_NE(what.find("is not finite: "), std::string::npos) << what;
  }
  const RunRecord log = read_run_log(folder.file("run/log.jsonl"));
  ASSERT_TRUE(log.end);
  EXPECT_EQ(log.end->why, "diverged");
}

TEST(TrainRun, TheFirstValueThatIsNotFiniteIsNamed) {
  const std::vector<std::string> names = {"a", "b"};
  const std::vector<Array> values = {array({1.0, 2.0}), array({{1.0, 2.0}, {3.0, INFINITY}})};
  EXPECT_EQ(detail::first_not_finite(names, values), "b[1, 1] is inf");
  EXPECT_EQ(detail::first_not_finite(names, std::vector<Array>{array({1.0}), array(2.0)}),
            std::nullopt);
}

TEST(TrainRun, ALoaderThatEndsEarlierIsRefused) {
  Trainer trainer(RunNet{}, &run_loss, AdamW{});
  Loader<RunBatch> batches(Dataset<RunBatch>(run_data()), {.batch = 8, .steps = 2});
  TrainingRun run(trainer, batches, {.steps = 30});
  EXPECT_THROW((void)run.go(), UserError);
}

TEST(TrainRun, WithoutAFolderNothingIsWritten) {
  RunSetup setup{.options = options_in("", 3)};
  EXPECT_EQ(run_with(setup).end.why, "done");
}

}  // namespace
}  // namespace ricci::training_run_test
