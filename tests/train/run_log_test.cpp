// The log of a run: what is written is read back, whatever happened in between.
#include "ricci/train/run_log.h"

#include <cmath>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "ricci/support/error.h"

#include "support/scratch_folder.h"

namespace ricci::run_log_test {
namespace {

using testing::ScratchFolder;

void append(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::app) << text;
}

TEST(TrainRunLog, ReadsBackWhatIsWritten) {
  const ScratchFolder folder;
  const std::string path = folder.file("log.jsonl");
  {
    RunLog log(path);
    log.start({.name = "a \"b\"\n<script>",
               .kind = "gpt",
               .device = "cpu",
               .steps = 10,
               .params = 12345,
               .model = "name  type\n",
               .settings = {{"batch", "16"}, {"data", "x\\y"}}});
    log.step({1, 4.25, 1e-3, 0.5, 0.25, 64});
    log.step({2, std::nan(""), 1e-3, {}, 0.5, 64});
    log.evaluation({2, 3.5, {{"accuracy", 0.75}}});
    log.sample({2, "té\xff"});
    log.checkpoint(2);
    log.end({2, "stopped", 0.75});
  }
  const RunRecord run = read_run_log(path);
  EXPECT_EQ(run.start.name, "a \"b\"\n<script>");
  EXPECT_EQ(run.start.kind, "gpt");
  EXPECT_EQ(run.start.steps, 10);
  EXPECT_EQ(run.start.params, 12345);
  ASSERT_EQ(run.start.settings.size(), 2U);
  EXPECT_EQ(run.start.settings[1].second, "x\\y");
  ASSERT_EQ(run.steps.size(), 2U);
  EXPECT_EQ(run.steps[0].loss, 4.25);
  EXPECT_EQ(run.steps[0].gradient_norm, 0.5);
  EXPECT_EQ(run.steps[0].examples, 64);
  EXPECT_TRUE(std::isnan(run.steps[1].loss));
  EXPECT_FALSE(run.steps[1].gradient_norm);
  ASSERT_EQ(run.evaluations.size(), 1U);
  EXPECT_EQ(run.evaluations[0].loss, 3.5);
  EXPECT_EQ(run.evaluations[0].metrics[0].second, 0.75);
  EXPECT_EQ(run.samples.at(0).text, "té\xef\xbf\xbd");
  EXPECT_EQ(run.checkpoints, std::vector<std::int64_t>{2});
  ASSERT_TRUE(run.end);
  EXPECT_EQ(run.end->why, "stopped");
}

// Time that is not known, and numbers JSON has no word for: a line is a line all the same.
TEST(TrainRunLog, NumbersWithoutAValueAreNotTorn) {
  const ScratchFolder folder;
  const std::string path = folder.file("log.jsonl");
  {
    RunLog log(path);
    log.step({1, std::nan(""), HUGE_VAL, -HUGE_VAL, std::nan(""), 64});
    log.evaluation({1, HUGE_VAL, {{"accuracy", std::nan("")}}});
    log.end({1, "diverged", HUGE_VAL});
  }
  const RunRecord run = read_run_log(path);
  EXPECT_EQ(run.torn, 0);
  ASSERT_EQ(run.steps.size(), 1U);
  EXPECT_TRUE(std::isnan(run.steps[0].seconds));
  ASSERT_TRUE(run.end);
  EXPECT_TRUE(std::isnan(run.end->seconds));
}

TEST(TrainRunLog, ATornLineIsPassedOver) {
  const ScratchFolder folder;
  const std::string path = folder.file("log.jsonl");
  {
    RunLog log(path);
    log.start({.name = "a"});
    log.step({1, 4, 0, {}, 0, 0});
  }
  append(path, R"({"event": "step", "step": 2, "lo)");
  EXPECT_EQ(read_run_log(path).torn, 1);
  EXPECT_EQ(read_run_log(path).steps.size(), 1U);
  {
    RunLog log(path);  // begins a line of its own
    log.resume(1);
    log.step({2, 3, 0, {}, 0, 0});
  }
  const RunRecord run = read_run_log(path);
  EXPECT_EQ(run.torn, 1);
  ASSERT_EQ(run.steps.size(), 2U);
  EXPECT_EQ(run.steps[1].loss, 3);
}

TEST(TrainRunLog, AResumptionTakesBackWhatCameAfterIt) {
  const ScratchFolder folder;
  const std::string path = folder.file("log.jsonl");
  RunLog log(path);
  log.start({.name = "a"});
  for (int i = 1; i <= 5; ++i) log.step({i, 10.0 - i, 0, {}, 0, 0});
  log.evaluation({4, 1, {}});
  log.checkpoint(3);
  log.resume(3);
  EXPECT_EQ(read_run_log(path).steps.size(), 3U);
  EXPECT_TRUE(read_run_log(path).evaluations.empty());
  log.step({4, 0.5, 0, {}, 0, 0});
  const RunRecord run = read_run_log(path);
  EXPECT_EQ(run.steps.back().loss, 0.5);
  EXPECT_EQ(run.checkpoints.size(), 1U);
}

TEST(TrainRunLog, OtherMembersAndEventsAreOfLaterVersions) {
  const ScratchFolder folder;
  const std::string path = folder.file("log.jsonl");
  append(path, "{\"event\": \"step\", \"step\": 1, \"loss\": 2, \"later\": [{\"x\": null}]}\n"
               "{\"event\": \"later\"}\n");
  EXPECT_EQ(read_run_log(path).steps.at(0).loss, 2);
}

TEST(TrainRunLog, WhatIsNoLogIsRefused) {
  const ScratchFolder folder;
  EXPECT_THROW((void)read_run_log(folder.file("none.jsonl")), UserError);
  const std::string path = folder.file("log.jsonl");
  append(path, "no log\nat all\n");
  EXPECT_THROW((void)read_run_log(path), UserError);
  EXPECT_THROW(RunLog(folder.file("no/such/folder/log.jsonl")), UserError);
  if (std::filesystem::exists("/dev/full")) {
    RunLog full("/dev/full");
    try {
      full.resume(1);
      FAIL() << "a full disk goes unseen";
    } catch (const UserError& e) {
      EXPECT_NE(std::string(e.what()).find("No space left"), std::string::npos) << e.what();
    }
  }
}

}  // namespace
}  // namespace ricci::run_log_test
