// A training process that is killed at random moments, again and again: there is always a
// checkpoint that is whole, and the run ends with the bits of one that was never interrupted.
// RICCI_KILLS says how often; 200 before a release.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ricci/nn.h"

#include "property/random.h"
#include "support/child.h"
#include "support/scratch_folder.h"

namespace ricci::killed_test {
namespace {

struct Batch {
  Array x, y;
};
struct Net {
  nn::Linear hidden{4, 64};
  nn::Dropout drop{0.2};
  nn::Linear out{64, 1};
  Array operator()(const Array& x) const { return out(drop(tanh(hidden(x)))); }
};
Array squared_error(const Net& net, const Batch& b) { return mse(net(b.x), b.y); }

struct KilledRun {
  KilledRun()
      : train((nn::seed(1), Net{}), &squared_error, AdamW{.learning_rate = 1e-2}, {.seed = 2}) {}
  static Dataset<Batch> samples() {
    const Array x = normal(Key(3), {40, 4});
    return Batch{x, sum(x, 1, true)};
  }
  Trainer<Net, decltype(&squared_error)> train;
  Loader<Batch> data{samples(), {.batch = 8, .shuffle = 5, .steps = 1'000'000, .threads = 2}};
};

// Goes on from what there is, and keeps every step, until it is killed.
[[noreturn]] void train_until_killed(const std::string& path) {
  try {
    ::alarm(600);
    const CheckpointFolder folder(path);
    KilledRun run;
    folder.restore(run.train, run.data);
    for (const Batch& b : run.data) {
      (void)run.train(b);
      folder.save(run.train, run.data, {.score = 1.0});
    }
  } catch (...) {
    ::_exit(1);
  }
  ::_exit(2);
}

int kills() {
  const char* text = std::getenv("RICCI_KILLS");
  return text == nullptr ? 6 : std::atoi(text);
}

TEST(CheckpointKilled, TheNewestOrTheOneBeforeLoadsAndGoesOn) {
  if (!testing::CanFork) GTEST_SKIP();
  const testing::ScratchFolder scratch;
  const std::string path = scratch.file("run");
  const CheckpointFolder folder(path);
  std::int64_t newest = 0;
  testing::Rng rng(17);
  // How long a child takes until it has compiled its step is not known: begin when it has written.
  for (int kill = 0; kill < kills(); ++kill) {
    const pid_t child = ::fork();
    if (child == 0) train_until_killed(path);
    ASSERT_GT(child, 0);
    const auto moved = [&] {
      const auto entries = folder.entries();
      return !entries.empty() && entries.back().step > newest;
    };
    int status = 0;
    while (!moved()) {
      ASSERT_EQ(::waitpid(child, &status, WNOHANG), 0) << "the child ended with " << status;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(rng.below(20000)));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    const auto found = folder.newest();
    ASSERT_TRUE(found) << kill;
    EXPECT_TRUE(found->warnings.empty()) << found->warnings[0];
    EXPECT_GT(found->checkpoint.info.step, newest);
    newest = found->checkpoint.info.step;
  }
  // The same number of steps in one go.
  KilledRun whole;
  while (whole.train.steps() < newest) (void)whole.train(*whole.data.next());
  const TrainingState expected = whole.train.state();
  const TrainingState got = folder.newest()->checkpoint.state;
  ASSERT_EQ(got.model.size(), expected.model.size());
  for (const auto& [name, value] : expected.model) {
    const auto it = std::ranges::find(got.model, name, [](const auto& p) { return p.first; });
    ASSERT_NE(it, got.model.end());
    EXPECT_TRUE(it->second.identical(value)) << name;
  }
}

}  // namespace
}  // namespace ricci::killed_test
