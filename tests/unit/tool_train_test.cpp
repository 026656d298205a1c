// ricci train, eval, sample and report, as people run them.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ricci/array.h"
#include "ricci/io/file.h"
#include "ricci/train/report.h"

#include "support/scratch_folder.h"
#include "support/tool.h"
#include "test_paths.h"

namespace ricci::testing::tool_train_test {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

constexpr const char* Small =
    " --steps 6 --batch 4 --evaluate-every 3 --checkpoint-every 2 --sample-every 0 ";
constexpr const char* SmallText = " --width 8 --heads 2 --layers 1 --context 8 --sample-length 5 ";

TEST(ToolTrain, EveryKindRunsWithoutAFile) {
  const ScratchFolder folder;
  const std::string image = " --width 8 --layers 1 --examples 60 --size 8";
  const std::pair<std::string, std::string> kinds[] = {
      {"gpt", SmallText},
      {"mamba", " --width 8 --layers 1 --state 4 --context 8 --sample-length 5"},
      {"cnn", image},
      {"mlp", image},
      {"vit", image + " --heads 2"}};
  for (const auto& [kind, flags] : kinds) {
    const std::string run = folder.file(kind);
    const ToolRun ran = run_tool("train " + kind + Small + flags + " --out " + run);
    EXPECT_EQ(ran.status, 0) << kind << ran.err << ran.out;
    EXPECT_TRUE(has(ran.out, "done after 6 steps")) << ran.out;
    EXPECT_FALSE(has(ran.out, "\r")) << "a bar in a file";
    for (const char* file : {"run.toml", "log.jsonl", "report.html", "program.json", "model.ric"}) {
      EXPECT_TRUE(std::filesystem::exists(run + "/" + file)) << kind << " " << file;
    }
    EXPECT_EQ(read_run_log(run + "/log.jsonl").steps.size(), 6U);
    const ToolRun eval = run_tool("eval " + run);
    EXPECT_EQ(eval.status, 0) << kind << eval.err;
    EXPECT_TRUE(has(eval.out, kind == "gpt" || kind == "mamba" ? "perplexity" : "accuracy"));
    const ToolRun sample = run_tool("sample " + run + " --prompt ab --length 5");
    EXPECT_EQ(sample.status, kind == "gpt" || kind == "mamba" ? 0 : 1) << kind << sample.err;
    if (sample.status == 0) {
      EXPECT_EQ(sample.out.substr(0, 2), "ab");
      EXPECT_EQ(run_tool("sample " + run + " --prompt ab --length 5").out, sample.out);
    }
  }
}

TEST(ToolTrain, ResumedRunsTakeTheSameSteps) {
  const ScratchFolder folder;
  const std::string flags =
      std::string(
          " --batch 4 --evaluate-every 0 --sample-every 0 --checkpoint-every 3 --dropout 0.1 "
          "--schedule constant --warm-up 0 ") +
      SmallText;
  const std::string whole = folder.file("whole");
  const std::string parts = folder.file("parts");
  ASSERT_EQ(run_tool("train gpt --steps 9" + flags + "--out " + whole).status, 0);
  ASSERT_EQ(run_tool("train gpt --steps 4" + flags + "--out " + parts).status, 0);
  const ToolRun resumed = run_tool("train --resume " + parts + " --steps 9");
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  const RunRecord a = read_run_log(whole + "/log.jsonl");
  const RunRecord b = read_run_log(parts + "/log.jsonl");
  ASSERT_EQ(a.steps.size(), 9U);
  ASSERT_EQ(b.steps.size(), 9U);
  for (std::size_t i = 0; i < 9; ++i) EXPECT_EQ(a.steps[i].loss, b.steps[i].loss) << i;
  const auto digest = [](const std::string& run) { return run_tool("eval " + run).out; };
  EXPECT_EQ(digest(whole).substr(digest(whole).find("loss")),
            digest(parts).substr(digest(parts).find("loss")));
}

TEST(ToolTrain, ConfigurationsAreChecked) {
  const ScratchFolder folder;
  const std::string file = folder.file("run.toml");
  const auto complaint = [&](const std::string& text, const std::string& flags = "gpt") {
    io::write_file(file, text);
    const ToolRun ran =
        run_tool("train " + flags + " --config " + file + " --out " + folder.file("x"));
    EXPECT_EQ(ran.status, 1) << text;
    EXPECT_FALSE(std::filesystem::exists(folder.file("x"))) << text;
    return ran.err;
  };
  const std::string typo = complaint("[training]\nsteps = 5\nlearning_rte = 1e-3\n");
  EXPECT_TRUE(has(typo, "there is no setting 'learning_rte'")) << typo;
  EXPECT_TRUE(has(typo, "run.toml:3")) << typo;
  EXPECT_TRUE(has(typo, "did you mean 'learning_rate'?")) << typo;
  EXPECT_TRUE(has(complaint("[trainig]\nsteps = 5\n"), "did you mean 'training'?"));
  EXPECT_TRUE(has(complaint("[model]\nsteps = 5\n"), "'steps' belongs in [training]"));
  EXPECT_TRUE(has(complaint("[training]\nsteps = \"five\"\n"), "'steps' takes a whole number"));
  EXPECT_TRUE(has(complaint("steps = 5\n[training]\nsteps = 6\n"), "'steps' is given twice"));
  EXPECT_TRUE(has(complaint("[training]\nsteps = 0\n"), "'steps' takes a whole number from 1"));
  EXPECT_TRUE(has(complaint("[training]\nsteps = 2.5\n"), "'steps' takes a whole number"));
  EXPECT_TRUE(has(complaint("[training\n"), "run.toml:1"));
  EXPECT_TRUE(has(complaint("[[&[   s"), "this is no TOML"));  // the parser takes a key for granted
  EXPECT_TRUE(has(complaint("seed = \xCF\xB8GG\n"), "run.toml:1"));  // and knows nothing of phi
  EXPECT_TRUE(has(complaint("patch = 4\n"), "'patch' is no setting of gpt"));
  EXPECT_TRUE(has(complaint("kind = \"cnn\"\n"), "this file is for 'cnn'"));
  EXPECT_TRUE(has(complaint("[training]\nsteps = 5\n", ""), "no kind of model is named"));
  EXPECT_TRUE(has(complaint("[training]\noptimizer = \"adamv\"\n"), "did you mean 'adamw'?"));
}

// Tables nest as deep as a name has dots; a message shows part of a long line.
TEST(ToolTrain, ConfigurationsDoNotNestWithoutEnd) {
  const ScratchFolder folder;
  const std::string file = folder.file("run.toml");
  std::string name = "a";
  for (int i = 0; i < 300000; ++i) name += ".a";
  std::string nested = "1";
  for (int i = 0; i < 200; ++i) nested = "{a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a = " + nested + "}";
  for (const std::string& text :
       {name + " = 1\n", "[" + name + "]\n", "x = {" + name + " = 1}\n",
        "'a'.\"b\" = 1\n" + name + " = 1\n", "prompt = '''\n\"'''\n[[" + name + "]]\n",
        "prompt = \"....................\"\n'" + std::string(500000, 'x') + "' = 1\n",
        "a = " + nested, "a = " + std::string(500000, '[')}) {
    io::write_file(file, text);
    const ToolRun ran = run_tool("train gpt --config " + file + " --out " + folder.file("x"));
    EXPECT_EQ(ran.status, 1) << text.substr(0, 80);
    EXPECT_TRUE(ran.err.starts_with("error[parse")) << ran.err.substr(0, 300);
    EXPECT_LT(ran.err.size(), 2000U) << text.substr(0, 80);
  }
}

// What the system says of a name is said in words of ours, whatever is asked of the name.
TEST(ToolTrain, NamesTheSystemRefusesAreErrors) {
  const ScratchFolder folder;
  std::filesystem::create_symlink("circle", folder.file("circle"));
  for (const std::string& name : {std::string(5000, 'x'), folder.file("circle") + "/run"}) {
    for (const char* command :
         {"train mlp --out ", "train --resume ", "train mlp --data ", "train gpt --data ",
          "train gpt --tokenizer ", "sample ", "eval ", "report ", "serve ", "inspect "}) {
      const ToolRun ran = run_tool(command + name);
      EXPECT_EQ(ran.status, 1) << command;
      EXPECT_TRUE(ran.err.starts_with("error[file")) << command << ran.err.substr(0, 300);
    }
  }
}

// Files of a run that are pipes are refused or passed over; nobody waits for them.
TEST(ToolTrain, PipesInFoldersAreNotWaitedFor) {
  const ScratchFolder folder;
  std::filesystem::create_directories(folder.file("pictures/cats"));
  ASSERT_EQ(::mkfifo(folder.file("pictures/cats/a.png").c_str(), 0600), 0);
  const ToolRun pictures =
      run_tool("train cnn --data " + folder.file("pictures") + " --out " + folder.file("x"));
  EXPECT_TRUE(has(pictures.err, "this is no plain file")) << pictures.err;
  const std::string run = folder.file("run");
  ASSERT_EQ(run_tool("train mlp --steps 4 --examples 60 --size 8 --out " + run).status, 0);
  ASSERT_EQ(::mkfifo((run + "/checkpoints/step-00009999.safetensors").c_str(), 0600), 0);
  EXPECT_EQ(run_tool("eval " + run).status, 0);
  std::filesystem::remove(run + "/log.jsonl");
  ASSERT_EQ(::mkfifo((run + "/log.jsonl").c_str(), 0600), 0);
  const ToolRun resumed = run_tool("train --resume " + run + " --steps 8");
  EXPECT_EQ(resumed.status, 1);
  EXPECT_TRUE(has(resumed.err, "it is no plain file")) << resumed.err;
  EXPECT_TRUE(has(run_tool("report " + run).err, "it is no plain file"));
}

TEST(ToolTrain, FlagsGoBeforeTheFile) {
  const ScratchFolder folder;
  const std::string file = folder.file("run.toml");
  io::write_file(file, std::string_view("kind = \"mlp\"\nsteps = 50\n[model]\nwidth = 8\n"
                                        "[data]\nexamples = 60\nsize = 8\n"));
  const std::string run = folder.file("run");
  const ToolRun ran =
      run_tool("train --config " + file + " --steps 3 --batch 4 --steps 2 --out " + run);
  ASSERT_EQ(ran.status, 0) << ran.err;
  const std::string kept = read_text(run + "/run.toml");
  EXPECT_TRUE(has(kept, "steps = 2\n")) << kept;
  EXPECT_TRUE(has(kept, "width = 8\n")) << kept;
}

TEST(ToolTrain, MistakesAreExplained) {
  const ScratchFolder folder;
  const auto complaint = [&](const std::string& arguments, int status = 1) {
    const ToolRun ran = run_tool(arguments);
    EXPECT_EQ(ran.status, status) << arguments << ran.out;
    return ran.err;
  };
  const std::string out = " --out " + folder.file("run");
  EXPECT_TRUE(has(complaint("train gtp" + out), "did you mean 'gpt'?"));
  EXPECT_TRUE(
      has(complaint("train gpt --data " + folder.file("none.txt") + out), "there is no data"));
  EXPECT_TRUE(has(complaint("train cnn --context 5" + out), "--context is no setting of cnn"));
  EXPECT_TRUE(has(complaint("train gpt --steps many" + out), "'steps' takes a whole number"));
  EXPECT_TRUE(has(complaint("train gpt --width 10 --heads 4" + out), "do not divide"));
  io::write_file(folder.file("short.txt"), std::string_view("abc"));
  EXPECT_TRUE(has(complaint("train gpt --data " + folder.file("short.txt") + out), "too few"));
  EXPECT_TRUE(has(complaint("train cnn --data " + folder.file("short.txt") + out), "no .npz"));
  save_npz(folder.file("wrong.npz"),
           {{"x", zeros({4, 8, 8})}, {"y", zeros({5}, {.dtype = int32})}});
  EXPECT_TRUE(has(complaint("train cnn --data " + folder.file("wrong.npz") + out),
                  "'x' has 4 examples, 'y' 5"));
  save_npz(folder.file("flat.npz"), {{"x", zeros({40, 8})}, {"y", zeros({40}, {.dtype = int32})}});
  EXPECT_TRUE(
      has(complaint("train cnn --data " + folder.file("flat.npz") + out), "looks at images"));
  const auto classes = [&](std::vector<std::int64_t> y) {
    const auto count = std::ssize(y);
    save_npz(folder.file("y.npz"), {{"x", zeros({count, 8})}, {"y", array(y)}});
    return complaint("train mlp --batch 1 --data " + folder.file("y.npz") + out);
  };
  // 2^40 is 0 in 32 bits.
  EXPECT_TRUE(has(classes({0, std::int64_t{1} << 40}), "'y' has a class of 1099511627776"));
  EXPECT_TRUE(has(classes({0, -1}), "'y' has a class of -1"));
  EXPECT_TRUE(has(complaint("train gpt --data " + folder.file("flat.npz") + out), "is no text"));
  EXPECT_TRUE(has(complaint("train mlp --batch 41 --data " + folder.file("flat.npz") + out),
                  "are no batch of 41"));
  EXPECT_FALSE(std::filesystem::exists(folder.file("run"))) << "left behind by a mistake";

  std::filesystem::create_directories(folder.file("taken"));
  io::write_file(folder.file("taken/notes.txt"), std::string_view("mine"));
  const std::string taken = complaint("train mlp --out " + folder.file("taken"));
  EXPECT_TRUE(has(taken, "there is something at")) << taken;
  EXPECT_TRUE(has(taken, "--resume")) << taken;
  EXPECT_TRUE(has(complaint("train --resume " + folder.file("taken")), "is no folder of a run"));
  EXPECT_TRUE(has(complaint("eval " + folder.file("none")), "is no folder of a run"));
  EXPECT_TRUE(has(complaint("report " + folder.file("none")), "is no folder of a run"));
}

TEST(ToolTrain, WhatARunWasMadeWithStays) {
  const ScratchFolder folder;
  const std::string run = folder.file("run");
  const std::string data = folder.file("data.npz");
  save_npz(data, {{"x", normal(Key(1), {40, 8})}, {"y", zeros({40}, {.dtype = int32})}});
  ASSERT_EQ(run_tool("train mlp --width 8 --data " + data + Small + "--out " + run).status, 0);
  const std::string settings = read_text(run + "/run.toml");
  for (const char* flags :
       {"--width 9", "--layers 3", "--optimizer lion", "--batch 5", "--seed 2", "--held-out 0.2"}) {
    const ToolRun changed = run_tool("train --resume " + run + " --steps 8 " + flags);
    EXPECT_EQ(changed.status, 1) << flags;
    EXPECT_TRUE(has(changed.err, "in this run and cannot become")) << changed.err;
    EXPECT_EQ(read_text(run + "/run.toml"), settings) << flags;
  }
  // Other data do not go on where these were: what was asked for is not kept.
  const std::string other = folder.file("other.npz");
  save_npz(other, {{"x", normal(Key(1), {80, 8})}, {"y", zeros({80}, {.dtype = int32})}});
  EXPECT_EQ(run_tool("train --resume " + run + " --steps 8 --data " + other).status, 1);
  EXPECT_EQ(read_text(run + "/run.toml"), settings);
  const ToolRun on = run_tool("train --resume " + run + " --steps 8 --learning-rate 1e-4");
  EXPECT_EQ(on.status, 0) << on.err;
  EXPECT_TRUE(has(read_text(run + "/run.toml"), "steps = 8\n"));
}

TEST(ToolTrain, HowWeightsMoveIsASetting) {
  const ScratchFolder folder;
  const std::string run = folder.file("run");
  const auto train = [&](const std::string& flags) {
    std::filesystem::remove_all(run);
    const ToolRun ran = run_tool("train mlp --width 8 --layers 1 --examples 60 --size 8 --steps 6 "
                                 "--batch 4 --checkpoint-every 3 --evaluate-every 3 " +
                                 flags + " --out " + run);
    EXPECT_EQ(ran.status, 0) << flags << ran.err;
    std::vector<double> losses;
    for (const RunStep& s : read_run_log(run + "/log.jsonl").steps) losses.push_back(s.loss);
    losses.push_back(read_run_log(run + "/log.jsonl").evaluations.back().loss);
    return losses;
  };
  const std::vector<double> usual = train("");
  EXPECT_EQ(train(""), usual);
  for (const char* flags :
       {"--weight-decay 10", "--clip-value 1e-4", "--accumulate 2", "--ema 0.9", "--precision bf16",
        "--precision f16 --loss-scaling 1024", "--precision fp8"}) {
    const std::vector<double> other = train(flags);
    EXPECT_NE(other, usual) << flags;
    EXPECT_NEAR(other[0], usual[0], 0.05) << flags;
    const ToolRun on = run_tool("train --resume " + run + " --steps 8");
    EXPECT_EQ(on.status, 0) << flags << on.err;
    EXPECT_EQ(run_tool("eval " + run).status, 0) << flags;
  }
  // Steps that f16 cannot hold are left out, and the run goes on.
  (void)train("--precision f16 --loss-scaling 1e9");
  const ToolRun odd = run_tool("train mlp --precision bf15 --out " + folder.file("x"));
  EXPECT_TRUE(has(odd.err, "did you mean 'bf16'?")) << odd.err;
  const ToolRun kept = run_tool("train --resume " + run + " --steps 9 --loss-scaling 0");
  EXPECT_TRUE(has(kept.err, "cannot become")) << kept.err;
}

TEST(ToolTrain, DivergedRunsSayWhere) {
  const ScratchFolder folder;
  const ToolRun ran = run_tool("train mlp --steps 200 --batch 8 --width 8 --examples 60 --size 8 "
                               "--optimizer sgd --clip-norm 0 --learning-rate 100000 --warm-up 0 "
                               "--evaluate-every 0 --sample-every 0 --out " +
                               folder.file("run"));
  EXPECT_EQ(ran.status, 1) << ran.out;
  EXPECT_TRUE(has(ran.err, "diverged at step ")) << ran.err;
  EXPECT_TRUE(has(ran.err, "not finite")) << ran.err;
}

TEST(ToolTrain, ReportsCompareRuns) {
  const ScratchFolder folder;
  const std::string flags =
      std::string(Small) + "--width 8 --layers 1 --examples 60 --size 8 --out ";
  const std::string odd = folder.file("<script>alert(1)<");
  ASSERT_EQ(run_tool("train mlp" + flags + "'" + odd + "'").status, 0);
  ASSERT_EQ(run_tool("train mlp --seed 2" + flags + folder.file("b")).status, 0);
  const std::string page = folder.file("page.html");
  const ToolRun ran = run_tool("report '" + odd + "' " + folder.file("b") + " -o " + page);
  ASSERT_EQ(ran.status, 0) << ran.err;
  const std::string text = read_text(page);
  EXPECT_FALSE(has(text, "<script>alert"));
  EXPECT_TRUE(has(text, "&lt;script&gt;alert(1)&lt;"));
  EXPECT_TRUE(has(text, "2 training runs"));
}

}  // namespace
}  // namespace ricci::testing::tool_train_test
