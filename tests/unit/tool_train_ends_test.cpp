// How runs of `ricci train` end before their last step, and that they go on from there.
#include <cmath>
#include <csignal>
#include <filesystem>
#include <thread>

#include <gtest/gtest.h>

#include "ricci/array.h"
#include "ricci/io/file.h"
#include "ricci/train/checkpoint.h"
#include "ricci/train/report.h"

#include "support/scratch_folder.h"
#include "support/tool.h"
#include "support/tool_child.h"

namespace ricci::testing::tool_train_ends_test {
namespace {

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::vector<std::string> endless_run(const std::string& run) {
  return {"train",
          "gpt",
          "--steps",
          "16000000",
          "--batch",
          "4",
          "--width",
          "8",
          "--heads",
          "2",
          "--layers",
          "1",
          "--context",
          "8",
          "--evaluate-every",
          "0",
          "--sample-every",
          "0",
          "--checkpoint-every",
          "2",
          "--out",
          run};
}

bool has_steps(const std::string& run, std::size_t steps) {
  const std::string log = run + "/log.jsonl";
  if (!std::filesystem::exists(log) || std::filesystem::file_size(log) == 0) return false;
  return read_run_log(log).steps.size() >= steps;
}

TEST(ToolTrainEnds, SignalsFinishTheStep) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    const ScratchFolder folder;
    const std::string run = folder.file("run");
    ToolChild child(endless_run(run), folder.file("out.txt"));
    while (child.running() && !has_steps(run, 3)) std::this_thread::yield();
    ASSERT_TRUE(child.running()) << read_text(folder.file("out.txt"));
    child.signal(number);
    EXPECT_EQ(child.status(), 128 + number);
    const std::string out = read_text(folder.file("out.txt"));
    EXPECT_TRUE(says(out, "ricci train --resume " + run)) << out;
    EXPECT_TRUE(says(read_text(run + "/report.html"), "</svg>"));
    const RunRecord log = read_run_log(run + "/log.jsonl");
    ASSERT_TRUE(log.end);
    EXPECT_EQ(log.end->why, "stopped");
    ASSERT_FALSE(log.checkpoints.empty());
    EXPECT_EQ(log.checkpoints.back(), log.steps.back().step);
    const std::int64_t more = log.end->step + 2;
    const ToolRun on = run_tool("train --resume " + run + " --steps " + std::to_string(more));
    EXPECT_EQ(on.status, 0) << on.err;
    EXPECT_EQ(read_run_log(run + "/log.jsonl").steps.back().step, more);
  }
}

TEST(ToolTrainEnds, ARunThatWasKilledGoesOn) {
  const ScratchFolder folder;
  const std::string run = folder.file("run");
  {
    ToolChild child(endless_run(run), folder.file("out.txt"));
    while (child.running() && !has_steps(run, 5)) std::this_thread::yield();
    ASSERT_TRUE(child.running()) << read_text(folder.file("out.txt"));
    child.signal(SIGKILL);
    (void)child.status();
  }
  const std::int64_t more = read_run_log(run + "/log.jsonl").steps.back().step + 2;
  const ToolRun on = run_tool("train --resume " + run + " --steps " + std::to_string(more));
  EXPECT_EQ(on.status, 0) << on.err;
  const RunRecord log = read_run_log(run + "/log.jsonl");
  ASSERT_EQ(static_cast<std::int64_t>(log.steps.size()), more);
  for (std::int64_t i = 0; i < more; ++i) {
    EXPECT_EQ(log.steps[static_cast<std::size_t>(i)].step, i + 1);
  }
}

// From another folder than it was begun in.
TEST(ToolTrainEnds, RunsGoOnFromAnywhere) {
  const ScratchFolder folder;
  save_npz(folder.file("data.npz"),
           {{"x", normal(Key(1), {40, 8})}, {"y", zeros({40}, {.dtype = int32})}});
  const std::string tool = RICCI_TOOL_PATH;
  const ToolRun begun = run_shell("cd " + folder.path() + " && " + tool +
                                  " train mlp --data data.npz --width 8 --steps 2 --out run");
  ASSERT_EQ(begun.status, 0) << begun.err;
  const std::string run = folder.file("run");
  EXPECT_EQ(run_shell("cd / && " + tool + " eval " + run).status, 0);
  const ToolRun on = run_shell("cd / && " + tool + " train --resume " + run + " --steps 4");
  EXPECT_EQ(on.status, 0) << on.err;
}

// What cannot be written as TOML is refused before it is.
// What a power cut may leave of files that nobody waits for.
TEST(ToolTrainEnds, RunsGoOnWithoutTheirLog) {
  const ScratchFolder folder;
  const std::string run = folder.file("run");
  const std::string small = " --batch 4 --width 8 --layers 1 --evaluate-every 0 ";
  ASSERT_EQ(run_tool("train mlp --steps 2" + small + "--out " + run).status, 0);
  int steps = 3;
  for (const std::string& left :
       {std::string(), std::string(700, '\0'), std::string("{\"event\": \"st")}) {
    io::write_file(run + "/log.jsonl", left);
    const ToolRun on = run_tool("train --resume " + run + " --steps " + std::to_string(steps));
    EXPECT_EQ(on.status, 0) << on.err;
    EXPECT_TRUE(says(on.out, "done after " + std::to_string(steps) + " steps")) << on.out;
    EXPECT_EQ(read_run_log(run + "/log.jsonl").steps.size(), 1U);
    ++steps;
  }
  io::write_file(run + "/run.toml", std::string_view());
  const ToolRun nothing = run_tool("train --resume " + run);
  EXPECT_EQ(nothing.status, 1);
  EXPECT_TRUE(says(nothing.err, "run.toml' does not say what kind of run")) << nothing.err;
}

TEST(ToolTrainEnds, TextsThatAreNoUtf8AreRefused) {
  const ScratchFolder folder;
  const std::string run = folder.file("run");
  const std::string odd = "$(printf '\\377\\376')";
  for (const std::string& flag : {"--prompt \"" + odd + "\"", "--data \"" + odd + "\""}) {
    const ToolRun refused = run_tool("train gpt --steps 2 " + flag + " --out " + run);
    EXPECT_EQ(refused.status, 1) << flag;
    EXPECT_TRUE(says(refused.err, "takes a text in UTF-8")) << refused.err;
    EXPECT_TRUE(says(refused.err, R"(\xff\xfe)")) << refused.err;
    EXPECT_FALSE(std::filesystem::exists(run)) << flag;
  }
  ASSERT_EQ(run_tool("train mlp --steps 2 --examples 60 --size 8 --out " + run).status, 0);
  const std::string settings = read_text(run + "/run.toml");
  EXPECT_EQ(run_tool("train --resume " + run + " --data \"" + odd + "\"").status, 1);
  EXPECT_EQ(read_text(run + "/run.toml"), settings);
}

// Our own source is no place where a user could mend anything.
TEST(ToolTrainEnds, MessagesPointAtNoSourceOfTheTool) {
  const ScratchFolder folder;
  const std::string run = folder.file("run");
  save_npz(folder.file("a.npz"),
           {{"x", normal(Key(1), {40, 8})}, {"y", zeros({40}, {.dtype = int32})}});
  save_npz(folder.file("b.npz"),
           {{"x", normal(Key(1), {80, 8})}, {"y", zeros({80}, {.dtype = int32})}});
  const std::string small = "train mlp --width 8 --steps 2 --data " + folder.file("a.npz");
  ASSERT_EQ(run_tool(small + " --out " + run).status, 0);
  const ToolRun other =
      run_tool("train --resume " + run + " --steps 4 --data " + folder.file("b.npz"));
  EXPECT_EQ(other.status, 1);
  EXPECT_TRUE(says(other.err, "resume with the same data")) << other.err;
  EXPECT_FALSE(says(other.err, ".cpp")) << other.err;
}

// 36 examples are kept back, which are no whole number of batches of 16.
TEST(ToolTrainEnds, EvaluationsLookAtTheLastBatchToo) {
  const ScratchFolder folder;
  std::vector<std::int64_t> classes(40);
  for (std::size_t i = 0; i < classes.size(); ++i) classes[i] = static_cast<std::int64_t>(i % 2);
  save_npz(folder.file("data.npz"), {{"x", normal(Key(1), {40, 8})}, {"y", array(classes)}});
  const std::string batches[] = {"1", "7", "16", "36"};
  std::string first;
  for (const std::string& batch : batches) {
    const std::string run = folder.file("run" + batch);
    // A rate of nothing leaves every run the same model.
    const ToolRun ran =
        run_tool("train mlp --width 8 --steps 1 --learning-rate 0 --data " +
                 folder.file("data.npz") + " --held-out 0.9 --batch 4 --out " + run);
    ASSERT_EQ(ran.status, 0) << ran.err;
    std::string settings = read_text(run + "/run.toml");
    settings.replace(settings.find("batch = 4"), 9, "batch = " + batch);
    io::write_file(run + "/run.toml", settings);
    const ToolRun eval = run_tool("eval " + run);
    ASSERT_EQ(eval.status, 0) << eval.err;
    EXPECT_TRUE(says(eval.out, "36 examples of what was kept back")) << eval.out;
    // Sums are rounded in another order.
    const std::string found = eval.out.substr(eval.out.find("loss"), 10);
    if (first.empty()) first = found;
    EXPECT_EQ(found, first) << batch;
    EXPECT_EQ(read_run_log(run + "/log.jsonl").evaluations.back().examples, 36);
  }
}

// Behind the places of a model texts go on, with the last of what was written.
TEST(ToolTrainEnds, SamplesAreAsLongAsIsAsked) {
  const ScratchFolder folder;
  for (const std::string kind : {"gpt --heads 2", "mamba --state 4"}) {
    const std::string run = folder.file(kind.substr(0, 3));
    const ToolRun ran = run_tool("train " + kind +
                                 " --steps 2 --batch 4 --width 8 --layers 1 --context 8 "
                                 "--sample-every 1 --sample-length 30 --out " +
                                 run);
    ASSERT_EQ(ran.status, 0) << ran.err;
    // Tokens are bytes.
    for (const std::string how : {"", " --temperature 0", " --top-k 3", " --top-p 0.5"}) {
      const ToolRun sample = run_tool("sample " + run + " --prompt abcdefghijk --length 40" + how);
      ASSERT_EQ(sample.status, 0) << sample.err;
      EXPECT_EQ(sample.out.size(), 11U + 40U + 1U) << kind << how;
    }
    EXPECT_EQ(read_run_log(run + "/log.jsonl").samples.size(), 2U);
    EXPECT_EQ(run_tool("sample " + run + " --threads 1 --device cpu --length 2").status, 0);
    EXPECT_EQ(run_tool("eval " + run + " --threads 1 --device cpu").status, 0);
    EXPECT_EQ(run_tool("sample " + run + " --top-p 2").status, 2);
  }
}

// Damage in weights is noticed by all who take them, and those before them take their place.
TEST(ToolTrainEnds, DamagedCheckpointsArePassedOver) {
  const ScratchFolder folder;
  const std::string run = folder.file("run");
  const ToolRun ran = run_tool("train gpt --steps 4 --batch 4 --width 8 --heads 2 --layers 1 "
                               "--context 8 --checkpoint-every 2 --evaluate-every 2 "
                               "--sample-every 0 --out " +
                               run);
  ASSERT_EQ(ran.status, 0) << ran.err;
  const CheckpointFolder checkpoints(run + "/checkpoints");
  const std::vector<CheckpointFolder::Entry> all = checkpoints.entries();
  ASSERT_EQ(all.size(), 2U);
  const auto damage = [](const std::string& path) {
    std::vector<std::byte> bytes = io::read_file(path);
    bytes.back() ^= std::byte{1};
    io::write_file(path, bytes);
  };
  const std::string best = checkpoints.best()->path;
  const std::string other = best == all[0].path ? all[1].path : all[0].path;
  damage(best);
  for (const std::string& command : {"eval " + run, "sample --length 2 " + run}) {
    const ToolRun passed = run_tool(command);
    EXPECT_EQ(passed.status, 0) << passed.err;
    EXPECT_TRUE(says(passed.err, best + " is passed over")) << passed.err;
    const ToolRun named = run_tool(command + " --checkpoint " + best);
    EXPECT_EQ(named.status, 1);
    EXPECT_TRUE(says(named.err, "error[file.checkpoint_sum]")) << named.err;
  }
  EXPECT_TRUE(says(run_tool("eval " + run).out, other));
  damage(other);
  for (const char* which : {"best", "last"}) {
    const std::string choice = std::string(" --checkpoint ") + which + " " + run;
    EXPECT_EQ(run_tool("eval" + choice).status, 1);
    EXPECT_EQ(run_tool("sample" + choice).status, 1);
    EXPECT_EQ(run_tool("serve --port 0" + choice).status, 1);
  }
}

// The names `runs/KIND` are given to several processes at once, each to one.
TEST(ToolTrainEnds, AFolderHasOneRun) {
  const ScratchFolder folder;
  const std::string small = " train mlp --width 8 --steps 2 --examples 60 --size 8";
  const ToolRun many = run_shell("cd " + folder.path() + " && for i in 1 2 3 4; do " +
                                 RICCI_TOOL_PATH + small + " >out$i 2>&1 & done; wait");
  EXPECT_EQ(many.status, 0) << many.err;
  for (const char* name : {"runs/mlp", "runs/mlp-2", "runs/mlp-3", "runs/mlp-4"}) {
    EXPECT_EQ(read_run_log(folder.file(name) + "/log.jsonl").steps.size(), 2U) << name;
  }
  const std::string run = folder.file("run");
  ToolChild child(endless_run(run), folder.file("out.txt"));
  while (child.running() && !has_steps(run, 1)) std::this_thread::yield();
  ASSERT_TRUE(child.running()) << read_text(folder.file("out.txt"));
  const std::string settings = read_text(run + "/run.toml");
  const ToolRun second = run_tool("train --resume " + run + " --steps 20");
  EXPECT_EQ(second.status, 1);
  EXPECT_TRUE(says(second.err, "is written by process " + std::to_string(child.id())))
      << second.err;
  EXPECT_EQ(read_text(run + "/run.toml"), settings);
  EXPECT_EQ(run_tool("eval " + run).status, 0);  // who reads may
}

// A name is free again when nothing came of the run.
TEST(ToolTrainEnds, RunsThatDoNotBeginLeaveNothing) {
  const ScratchFolder folder;
  const std::string run = folder.file("a/run");
  const ToolRun large = run_tool("train gpt --width 200000 --layers 1 --out " + run);
  EXPECT_EQ(large.status, 1);
  EXPECT_FALSE(std::filesystem::exists(run)) << large.err;
  save_npz(folder.file("nan.npz"),
           {{"x", full({40, 8}, NAN)}, {"y", zeros({40}, {.dtype = int32})}});
  const ToolRun odd =
      run_tool("train mlp --steps 4 --data " + folder.file("nan.npz") + " --out " + run);
  EXPECT_EQ(odd.status, 1);
  EXPECT_TRUE(says(odd.err, "diverged at step 1")) << odd.err;
  EXPECT_FALSE(says(odd.err, "the checkpoints in")) << odd.err;
  EXPECT_FALSE(std::filesystem::exists(run));
  // A folder that was there stays, and what is not of the run.
  const std::string there = folder.file("there");
  std::filesystem::create_directory(there);
  EXPECT_EQ(run_tool("train gpt --width 200000 --layers 1 --out " + there).status, 1);
  EXPECT_TRUE(std::filesystem::is_empty(there));
  EXPECT_EQ(run_tool("train mlp --steps 2 --examples 60 --size 8 --out " + there).status, 0);
}

}  // namespace
}  // namespace ricci::testing::tool_train_ends_test
