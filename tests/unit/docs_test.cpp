#include <cstdlib>
#include <filesystem>
#include <regex>
#include <sstream>

#include <gtest/gtest.h>

#include "ricci/op/table.h"
#include "ricci/quant/format.h"
#include "ricci/support/limits.h"

#include "support/every_device.h"
#include "support/tool.h"
#include "test_paths.h"

namespace ricci::testing {
namespace {

namespace fs = std::filesystem;

TEST(Docs, OpReferenceIsWhatTheToolWrites) {
  const ToolRun run = run_tool("doc");
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run.out, read_text(RICCI_SOURCE_DIR "/docs/generated/ops.md"))
      << "run 'make docs' and commit the result";
}

TEST(Docs, EveryOpHasASourceForEveryTransform) {
  std::string page = read_text(RICCI_SOURCE_DIR "/docs/generated/ops.md");
  page = page.substr(page.find("## Transforms"));
  const std::string source =
      " (rule|linear|multilinear|element-wise|expansion|derived|zero|leaf|refused) \\|";
  for (const OpDescriptor& d : all_ops()) {
    const std::string op(d.info->name);
    const std::regex row("\n\\| \\[`" + op + "`\\]\\(#" + op + "\\) \\|(" + source + "){7}\n");
    EXPECT_TRUE(std::regex_search(page, row)) << op;
  }
}

TEST(Docs, LimitsAreTheOnesPublished) {
  const std::string page = read_text(RICCI_SOURCE_DIR "/docs/LANGUAGE.md");
  const std::string security = read_text(RICCI_SOURCE_DIR "/SECURITY.md");
  for (const LimitInfo& limit : all_limits()) {
    const std::string name(limit.name);
    const std::string row = "| `" + name + "` | " + std::to_string(Limits{}.*(limit.value)) +
                            " | " + std::string(limit.help);
    EXPECT_NE(page.find(row), std::string::npos) << row;
    EXPECT_NE(security.find("`--limit " + name + "=…`"), std::string::npos) << name;
  }
  for (const auto& [name, value] : {std::pair{"nesting", std::size_t{MostNesting}},
                                    {"rank", MostRank},
                                    {"nodes", MostNodes},
                                    {"terms", MostDimTerms},
                                    {"degree", MostDimDegree},
                                    {"type", MostTypeBytes}}) {
    const std::string row = std::string("| ") + name + " | " + std::to_string(value) + " |";
    EXPECT_NE(page.find(row), std::string::npos) << row;
  }
}

TEST(Docs, FormatsAreTheOnesPublished) {
  const std::string page = read_text(RICCI_SOURCE_DIR "/docs/GGUF.md");
  for (const quant::FormatInfo& f : quant::all_formats()) {
    const std::string name(f.name);
    const std::string row =
        "| `" + name + "` | " + (f.gguf_type ? std::to_string(*f.gguf_type) : "-") + " | " +
        std::to_string(f.block_length) + " | " + std::to_string(f.block_bytes) + " | ";
    EXPECT_NE(page.find(row), std::string::npos) << row;
    EXPECT_NE(page.find(" | " + std::string(f.help) + " |\n"), std::string::npos) << name;
  }
}

TEST(Docs, RelativeLinksLeadSomewhere) {
  const fs::path root = RICCI_SOURCE_DIR;
  std::vector<fs::path> pages;
  for (const fs::path& folder : {root, root / "docs", root / "docs/adr", root / "docs/tutorials"}) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() == ".md") pages.push_back(entry.path());
    }
  }
  ASSERT_GT(pages.size(), 5U);
  const std::regex link(R"(\]\(([^)#:]+)(#[^)]*)?\))");
  for (const fs::path& page : pages) {
    // Code may look like a link: a lambda does.
    const std::string text =
        std::regex_replace(read_text(page.string()), std::regex("```[^`]*```"), "");
    for (std::sregex_iterator it(text.begin(), text.end(), link), end; it != end; ++it) {
      EXPECT_TRUE(fs::exists(page.parent_path() / (*it)[1].str()))
          << page << " links to " << (*it)[1];
    }
  }
}

// The code blocks of a page that have a language, one after the other.
std::vector<std::string> blocks(const std::string& page, const std::string& language) {
  std::vector<std::string> out;
  const std::string open = "```" + language + "\n";
  for (std::size_t at = page.find(open); at != std::string::npos; at = page.find(open, at)) {
    at += open.size();
    const std::size_t end = page.find("```", at);
    out.push_back(page.substr(at, end - at));
    at = end;
  }
  return out;
}

std::string without_indent(const std::string& code) {
  return std::regex_replace(code, std::regex("(^|\n) +"), "$1");
}

// Every C++ block of a tutorial is in the sources of its example, but for the indentation.
void expect_shown_as_it_is(const std::string& tutorial, const std::string& example) {
  std::string sources;
  for (const auto& entry : fs::directory_iterator(RICCI_SOURCE_DIR "/examples/" + example)) {
    if (entry.path().extension() == ".cpp") {
      sources += without_indent(read_text(entry.path().string()));
    }
  }
  const auto shown = blocks(read_text(RICCI_SOURCE_DIR "/docs/tutorials/" + tutorial), "cpp");
  EXPECT_GE(shown.size(), 6U);
  for (const std::string& code : shown) {
    EXPECT_NE(sources.find(without_indent(code)), std::string::npos) << code;
  }
}

TEST(Docs, TutorialsShowTheExamplesAsTheyAre) {
  expect_shown_as_it_is("gradients.md", "gradients");
  expect_shown_as_it_is("gpt.md", "gpt");
}

void expect_commands_run(const std::string& page) {
  const auto shown = blocks(read_text(RICCI_SOURCE_DIR "/docs/" + page), "sh");
  ASSERT_FALSE(shown.empty()) << page;
  std::istringstream lines(shown[0]);
  for (std::string line; std::getline(lines, line);) {
    line = std::regex_replace(line, std::regex("build/ricci"), RICCI_TOOL_PATH);
    line = std::regex_replace(line, std::regex("examples/"), RICCI_SOURCE_DIR "/examples/");
    const std::string folder = fs::path(scratch("x")).parent_path().string();
    const std::string command =
        "cd '" + folder + "' && bash -o pipefail -c '" + line + "' >commands.out 2>commands.err";
    EXPECT_EQ(std::system(command.c_str()), 0) << line << "\n"
                                               << read_text(scratch("commands.err"));
  }
}

TEST(Docs, CommandsRunAsShown) {
  expect_commands_run("tutorials/gradients.md");
  if (!has_device("cpu")) GTEST_SKIP() << "the other pages show machine code";
  expect_commands_run("COMPILER.md");
  expect_commands_run("AHEAD_OF_TIME.md");
}

}  // namespace
}  // namespace ricci::testing
