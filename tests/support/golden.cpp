#include "support/golden.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"

#include "support/every_device.h"
#include "support/golden_stages.h"
#include "test_paths.h"

namespace ricci::testing {
namespace {

namespace fs = std::filesystem;

const fs::path Root = fs::path(RICCI_SOURCE_DIR) / "tests" / "ir";
constexpr std::string_view RunMark = "// RUN: ";
constexpr std::string_view ExpectMark = "// EXPECT:\n";

std::vector<std::string> files_where(bool in_errors) {
  std::vector<std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(Root)) {
    if (entry.path().extension() != ".ric") continue;
    const std::string relative = fs::relative(entry.path(), Root).generic_string();
    if (relative.starts_with("errors/") == in_errors) out.push_back(relative);
  }
  std::ranges::sort(out);
  return out;
}

struct GoldenFile {
  std::string name;
  std::vector<Stage> stages;
  bool fails = false;  // the error is what is compared
  std::string input;
  std::string expected;
};

GoldenFile read_golden(const std::string& file) {
  std::ifstream in(Root / file);
  std::stringstream all;
  all << in.rdbuf();
  const std::string text = all.str();
  GoldenFile g;
  g.name = file;
  const std::size_t split = text.find(ExpectMark);
  g.input = text.substr(0, split);
  if (split != std::string::npos) g.expected = text.substr(split + ExpectMark.size());
  const std::size_t run = text.find(RunMark);
  if (run == std::string::npos) throw std::runtime_error(file + " has no RUN line");
  std::istringstream line(
      text.substr(run + RunMark.size(), text.find('\n', run) - run - RunMark.size()));
  std::vector<std::string> words;
  for (std::string word; line >> word;) words.push_back(word);
  g.fails = !words.empty() && words[0] == "error";
  if (g.fails) words.erase(words.begin());
  g.stages = parse_stages(words);
  return g;
}

std::vector<Graph> parse_input(const GoldenFile& g) {
  std::vector<Graph> graphs = parse(g.input, {.file = fs::path(g.name).filename().string()});
  for (const Graph& graph : graphs) verify(graph);
  return graphs;
}

std::string print_all(std::span<const Graph> graphs) {
  std::string out;
  for (const Graph& graph : graphs) out += (out.empty() ? "" : "\n") + print(graph);
  return out;
}

std::string run(const GoldenFile& g) {
  std::vector<Graph> graphs = parse_input(g);
  std::string programs;
  for (Graph& graph : graphs) {
    for (const Stage& stage : g.stages) {
      if (is_compile(stage)) {
        programs += compiled_text(stage, graph);
        break;
      }
      graph = apply(stage, graph);
      verify(graph);
    }
  }
  return programs.empty() ? print_all(graphs) : programs;
}

std::string outcome(const GoldenFile& g) {
  if (!g.fails) return run(g);
  try {
    return "no error:\n" + run(g);
  } catch (const UserError& e) {
    return std::string(e.what()) + "\n";
  }
}

}  // namespace

std::vector<std::string> golden_files() { return files_where(false); }
std::vector<std::string> error_files() { return files_where(true); }

std::string test_name(const std::string& file) {
  std::string out = file.substr(0, file.rfind('.'));
  for (char& c : out) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return out;
}

void check_golden(const std::string& file) {
  const GoldenFile g = read_golden(file);
  if (std::ranges::any_of(g.stages, is_compile) && !has_device("cpu")) {
    GTEST_SKIP() << "the program is one for the CPU";
  }
  const std::string actual = outcome(g);
  if (std::getenv("RICCI_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(Root / file) << g.input << ExpectMark << actual;
    return;
  }
  EXPECT_EQ(actual, g.expected) << file << ": RICCI_UPDATE_GOLDEN=1 accepts the new text";
}

}  // namespace ricci::testing
