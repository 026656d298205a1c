// Trainers, loaders and generators serve one thread at a time: another gets UserError(busy), and
// what the first is doing goes on undisturbed.
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "ricci/data/loader.h"
#include "ricci/nn.h"
#include "ricci/serve/generator.h"
#include "ricci/support/stop.h"

#include "support/compare.h"

namespace ricci::one_user_test {
namespace {

// Calls `work` from several threads until it has been done so often: how often it was busy.
int busy_calls(int times, const std::function<void()>& work) {
  std::atomic<int> done = 0;
  std::atomic<int> busy = 0;
  const auto go = [&] {
    while (done < times) {
      try {
        work();
        ++done;
      } catch (const UserError& e) {
        EXPECT_EQ(e.code(), ErrorCode::Busy) << e.what();
        ++busy;
        std::this_thread::yield();
      }
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back(go);
  for (std::thread& t : threads) t.join();
  return busy;
}

struct Slope {
  Array w = ones({4});
};
Array slope_loss(const Slope& m, const Array& x) { return mean(square(x * m.w - 1.0)); }

TEST(NnOneUser, TrainersTakeWholeSteps) {
  Trainer shared(Slope{}, slope_loss, Sgd{.learning_rate = 0.1});
  const Array x = ones({2, 4}) * 0.5;
  std::atomic<int> steps = 0;
  (void)busy_calls(60, [&] {
    (void)shared(x);
    ++steps;
    (void)shared.model();
  });
  EXPECT_EQ(shared.steps(), steps);
  Trainer alone(Slope{}, slope_loss, Sgd{.learning_rate = 0.1});
  for (int i = 0; i < steps; ++i) (void)alone(x);
  EXPECT_TRUE(testing::same(shared.model().w.tensor(), alone.model().w.tensor()));
}

TEST(NnOneUser, LoadersGiveEveryBatchOnce) {
  for (const int threads : {0, 2}) {
    // As many batches as an epoch has, and no second one for a thread that comes late.
    Loader loader(Dataset<Array>(arange(300)), {.batch = 1, .steps = 300, .threads = threads});
    std::atomic<std::int64_t> sum = 0;
    std::atomic<int> batches = 0;
    (void)busy_calls(300, [&] {
      if (const auto batch = loader.next()) {
        sum += static_cast<std::int64_t>(batch->item());
        ++batches;
      }
    });
    while (const auto batch = loader.next()) {
      sum += static_cast<std::int64_t>(batch->item());
      ++batches;
    }
    EXPECT_EQ(batches, 300) << threads;
    EXPECT_EQ(sum, 300 * 299 / 2) << threads;
  }
}

nn::Gpt small_gpt() {
  nn::seed(3);
  return nn::Gpt({.vocabulary = 20, .context = 32, .width = 8, .heads = 2, .layers = 1});
}

TEST(NnOneUser, GeneratorsGiveTheTokensTheyWouldAlone) {
  Generator generate(small_gpt());
  const std::vector<std::int32_t> prompt = {1, 2, 3};
  const GenerateOptions options{.max_tokens = 8};
  const std::vector<std::int32_t> expected = generate(prompt, options).tokens;
  (void)busy_calls(20, [&] { EXPECT_EQ(generate(prompt, options).tokens, expected); });
  EXPECT_EQ(generate.active(), 0U);
}

// What ends early leaves its rows to others.
TEST(NnOneUser, GeneratorsForgetWhatEndedEarly) {
  Generator generate(small_gpt());
  const std::vector<std::int32_t> prompt = {1, 2, 3};
  const std::vector<std::int32_t> expected = generate(prompt, {.max_tokens = 8}).tokens;
  const auto is_stopped = [&](const std::function<void()>& work) {
    const StopSource stop;
    stop.request_stop();
    const StopScope scope(stop.token());
    try {
      work();
    } catch (const UserError& e) {
      return e.code() == ErrorCode::Stopped;
    }
    return false;
  };
  EXPECT_TRUE(is_stopped([&] { (void)generate(prompt, {.max_tokens = 8}); }));
  EXPECT_EQ(generate.active(), 0U);
  const std::vector<std::vector<std::int32_t>> prompts = {prompt, {4}};
  EXPECT_TRUE(is_stopped([&] { (void)generate(prompts, {.max_tokens = 8}); }));
  EXPECT_EQ(generate.active(), 0U);
  const auto throws = [](std::int32_t) -> bool { throw std::runtime_error("no more"); };
  EXPECT_THROW((void)generate(prompt, {.max_tokens = 8}, throws), std::runtime_error);
  EXPECT_EQ(generate.active(), 0U);
  EXPECT_EQ(generate(prompt, {.max_tokens = 8}).tokens, expected);
}

}  // namespace
}  // namespace ricci::one_user_test
