// The commands that pages show, run one after the other in a folder with the files they name.
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <regex>

#include <gtest/gtest.h>

#include "ricci/array.h"
#include "ricci/io/file.h"
#include "ricci/io/npy.h"
#include "ricci/io/weights.h"

#include "support/compare.h"
#include "support/every_device.h"
#include "support/scratch_folder.h"
#include "support/tool.h"
#include "test_paths.h"

namespace ricci::testing::docs_commands_test {
namespace {

namespace fs = std::filesystem;

// Runs are short, servers listen where there is room and are asked there, and what builds is left
// to those who build. Tokens of GPT-2 are more than those of the small model in its place.
constexpr const char* Prelude = R"(set -e -o pipefail
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
servers=0
cmake() { :; }
make() { :; }
ricci() {
  local word=$1 steps=2 n=$servers
  shift
  case $word in
    train)
      [[ " $* " != *" --resume "* ]] || steps=3
      "$tool" train "$@" --steps $steps --batch 2 --width 16 --layers 1 --evaluation-batches 1 ;;
    serve)
      local to=("${@/8080/0}")
      [[ " $* " == *" --port "* ]] || to+=(--port 0)
      servers=$((n + 1))
      "$tool" serve "${to[@]}" >"server.$n" &
      for _ in $(seq 600); do
        grep -q ' at http' "server.$n" && return 0
        sleep 0.1
      done
      return 1 ;;
    *) "$tool" $word "$@" ;;
  esac
}
curl() {
  local to=() a path port
  for a in "$@"; do
    if [[ $a == localhost:8080/* ]]; then
      path=${a#localhost:8080}
      port=$(sed -n "s,.* at http://127.0.0.1:\([0-9]*\)$path\$,\1,p" server.* | tail -n 1)
      a=127.0.0.1:$port$path
    fi
    to+=("${a/464, 2068, 7586/1, 2, 3}")
  done
  command curl -f "${to[@]}" >answer
  grep -q '"choices"\|"outputs"' answer
}
)";

// The shell of all blocks of a page.
std::string commands_of(const std::string& page) {
  const std::string text = read_text(RICCI_SOURCE_DIR "/" + page);
  std::string out;
  const std::string open = "```sh\n";
  for (std::size_t at = text.find(open); at != std::string::npos; at = text.find(open, at)) {
    at += open.size();
    out += text.substr(at, text.find("```", at) - at);
  }
  EXPECT_FALSE(out.empty()) << page;
  out = std::regex_replace(out, std::regex("build/release/examples/example_gpt"), ":");
  out = std::regex_replace(out, std::regex("build/ricci"), "ricci");
  return std::regex_replace(out, std::regex("examples/"), RICCI_SOURCE_DIR "/examples/");
}

using Prepare = std::function<void(const ScratchFolder&)>;

void expect_commands_run(const std::string& page, const Prepare& prepare = {}) {
  const ScratchFolder folder;
  if (prepare) prepare(folder);
  // Each is shown before it is run, so that the last one is what failed.
  io::write_file(folder.file("commands.sh"),
                 "tool='" + std::string(RICCI_TOOL_PATH) + "'\n" + Prelude + commands_of(page));
  const ToolRun ran = run_shell("cd '" + folder.path() + "' && bash -v commands.sh");
  EXPECT_EQ(ran.status, 0) << page << "\n" << ran.err.substr(ran.err.size() / 2) << ran.out;
}

void write_text(const ScratchFolder& folder) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += "The " + std::to_string(i) + "th line of some notes.\n";
  for (const char* name : {"notes.txt", "my_notes.txt"}) io::write_file(folder.file(name), text);
}

void write_pictures(const ScratchFolder& folder) {
  std::vector<std::int64_t> classes;
  for (std::int64_t i = 0; i < 40; ++i) classes.push_back(i % 3);
  save_npz(folder.file("digits.npz"),
           {{"x", normal(Key(1), {40, 1, 8, 8})}, {"y", array(classes)}});
  io::write_file(folder.file("run.toml"), std::string_view("[training]\nseed = 3\n"));
}

constexpr const char* Net = R"(graph @net {
  %x = input "x" : f32[8, 256]
  %w = param "w" : f32[256, 256]
  %b = param "b" : f32[256]
  %0 = matmul %x, %w
  %1 = add %0, %b
  %2 = reduce %1 {op = mean, axes = [0, 1]}
  return %2
}
)";

void write_layer(const ScratchFolder& folder) {
  io::write_file(folder.file("net.ric"), std::string_view(R"(graph @net {
  %x = input "x" : f32[8, 256]
  %w = param "w" : f32[256, 256]
  %0 = matmul %x, %w
  %1 = relu %0
  return %1
}
)"));
  io::write_npz(folder.file("params.npz"), {{"w", random_tensor(3, f32({256, 256}))}});
  io::write_npz(folder.file("a.npz"), {{"x", random_tensor(4, f32({8, 256}))}});
  io::write_npz(folder.file("b.npz"), {{"x", random_tensor(5, f32({8, 256}))}});
}

class DocsCommands : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_device("cpu")) GTEST_SKIP() << "pages show machine code, and train";
  }
};

TEST(DocsCommandsAnywhere, OfTheTutorialOfGradients) {
  expect_commands_run("docs/tutorials/gradients.md");
}
TEST_F(DocsCommands, OfTheCompiler) { expect_commands_run("docs/COMPILER.md"); }
TEST_F(DocsCommands, OfObjects) { expect_commands_run("docs/AHEAD_OF_TIME.md"); }

TEST_F(DocsCommands, OfTheFrontPage) {
  expect_commands_run("README.md", [](const ScratchFolder& folder) {
    io::write_file(folder.file("net.ric"), std::string_view(Net));
    write_text(folder);
  });
}

TEST_F(DocsCommands, OfBlocks) {
  expect_commands_run("docs/BLOCKS.md", [](const ScratchFolder& folder) {
    io::write_file(folder.file("model.ric"), std::string_view(R"(graph @model {
  %x = input "x" : f32[8, 16]
  %w = param "w" : f32[16, 4]
  %b = param "b" : f32[4]
  %0 = linear %x, %w, %b {activation = relu}
  return %0
}
)"));
  });
}

TEST_F(DocsCommands, OfFilesOfWeights) {
  expect_commands_run("docs/GGUF.md", [](const ScratchFolder& folder) {
    const io::NamedTensors weights = {{"blk.0.attn_q.weight", random_tensor(1, f32({2, 256}))},
                                      {"output.weight", random_tensor(2, f32({2, 256}))}};
    io::write_weights(folder.file("model.gguf"), weights);
    io::write_weights(folder.file("model.safetensors"), weights);
  });
}

TEST_F(DocsCommands, OfTraining) {
  expect_commands_run("docs/TRAIN.md", [](const ScratchFolder& folder) {
    write_text(folder);
    write_pictures(folder);
  });
}
TEST_F(DocsCommands, OfTheTutorialOfTraining) {
  expect_commands_run("docs/tutorials/training.md", write_text);
}

TEST_F(DocsCommands, OfHowToPages) {
  for (const char* page :
       {"custom_gradient", "loops_and_memory", "embedding", "resuming", "profiling"}) {
    expect_commands_run("docs/howto/" + std::string(page) + ".md");
  }
  if (run_tool("serve --help").status != 0) return;  // this build serves nothing
  expect_commands_run("docs/howto/quantising.md", [](const ScratchFolder& folder) {
    write_layer(folder);
    io::write_weights(folder.file("model.safetensors"), {{"w", random_tensor(1, f32({2, 256}))}});
  });
}

TEST_F(DocsCommands, OfServing) {
  if (run_tool("serve --help").status != 0) GTEST_SKIP() << "this build serves nothing";
  expect_commands_run("docs/SERVE.md", [](const ScratchFolder& folder) {
    fs::copy(RICCI_SOURCE_DIR "/tests/data/models/gpt2", folder.file("gpt2"));
    const ToolRun made = run_tool("train gpt --steps 1 --batch 2 --width 16 --layers 1 --out " +
                                  folder.file("runs/gpt"));
    EXPECT_EQ(made.status, 0) << made.err;
    io::write_file(folder.file("net.ric"), std::string_view(R"(graph @net {
  %x = input "x" : f32[n, 2]
  %w = param "w" : f32[2, 3]
  %0 = matmul %x, %w
  return %0
}
)"));
    save_npz(folder.file("weights.npz"), {{"w", ones({2, 3})}});
    fs::copy(RICCI_SOURCE_DIR "/tests/dataset/values/grey.png", folder.file("digit.png"));
  });
}

}  // namespace
}  // namespace ricci::testing::docs_commands_test
