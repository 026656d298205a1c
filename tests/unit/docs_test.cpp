#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "ricci/op/table.h"
#include "ricci/quant/format.h"
#include "ricci/support/limits.h"

#include "support/tool.h"
#include "test_paths.h"

namespace ricci::testing::docs_test {
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
  for (const fs::path& folder :
       {root, root / "docs", root / "docs/adr", root / "docs/howto", root / "docs/tutorials"}) {
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

// Every C++ block of a tutorial is in the sources of its example, or in the test of pages, but for
// the indentation.
void expect_shown_as_it_is(const std::string& tutorial, const std::string& example) {
  std::string sources =
      without_indent(read_text(RICCI_SOURCE_DIR "/tests/runtime/docs_code_test.cpp"));
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

// Sources are formatted, and pages have their own lines.
std::string on_one_line(const std::string& code) {
  return std::regex_replace(code, std::regex("\\s+"), " ");
}

// Every block of C++, or of C, of a page is in one of some examples, which are built and run as
// tests.
void expect_blocks_in(const std::string& page, const std::vector<std::string>& examples,
                      const std::string& language = "cpp") {
  std::string sources;
  for (const std::string& example : examples) {
    sources +=
        on_one_line(read_text(RICCI_SOURCE_DIR "/examples/" + example + "/main." + language));
  }
  const auto shown = blocks(read_text(RICCI_SOURCE_DIR "/" + page), language);
  EXPECT_FALSE(shown.empty()) << page;
  for (const std::string& code : shown) {
    // What belongs together on a page may be apart in the source: paragraphs are looked for.
    std::istringstream paragraphs(std::regex_replace(code, std::regex("\n\n+"), "\f"));
    for (std::string part; std::getline(paragraphs, part, '\f');) {
      const std::string wanted = on_one_line(part);
      const std::size_t begin = wanted.find_first_not_of(' ');
      const std::size_t end = wanted.find_last_not_of(' ');
      EXPECT_NE(sources.find(wanted.substr(begin, end - begin + 1)), std::string::npos)
          << page << ": " << part;
    }
  }
}

TEST(Docs, PagesForNewcomersShowWhatRuns) {
  expect_blocks_in("docs/FROM_JAX.md", {"from_jax"});
  expect_blocks_in("docs/FROM_PYTORCH.md", {"from_pytorch"});
  expect_blocks_in("docs/FROM_MLX.md", {"from_mlx"});
  expect_blocks_in("docs/NN.md", {"layers"});
  expect_blocks_in("docs/TRAIN.md", {"training"});
  expect_blocks_in("docs/tutorials/training.md", {"training"});
  expect_blocks_in("docs/DATA.md", {"data"});
  expect_blocks_in("docs/CHECKPOINTS.md", {"data"});
  expect_blocks_in("README.md", {"newton", "first_program", "gpt", "layers"});
  expect_blocks_in("docs/howto/custom_gradient.md", {"implicit_layer"});
  expect_blocks_in("docs/howto/resuming.md", {"data"});
  expect_blocks_in("docs/howto/embedding.md", {"train_from_c"}, "c");
}

std::string all_sources() {
  std::string out;
  for (const char* root : {"examples", "include", "src", "tests"}) {
    const fs::path folder = fs::path(RICCI_SOURCE_DIR) / root;
    for (const auto& file : fs::recursive_directory_iterator(folder)) {
      const std::string kind = file.path().extension().string();
      if (kind != ".cpp" && kind != ".h" && kind != ".c" && kind != ".def") continue;
      for (const char c : read_text(file.path().string())) {
        const bool space = c == ' ' || c == '\n';
        if (!space || (!out.empty() && out.back() != ' ')) out += space ? ' ' : c;
      }
      out += '\n';
    }
  }
  return out;
}

// The code of all pages, whatever tests hold them one by one: every piece of it, between empty
// lines and what is left out (…), is in a source that is built. The program in C of
// AHEAD_OF_TIME.md is taken from the page, built and run by RuntimeAheadOfTime.TheTutorialWorks.
TEST(Docs, EveryBlockOfCodeIsInASource) {
  const std::string sources = all_sources();
  const fs::path root = RICCI_SOURCE_DIR;
  std::vector<fs::path> pages = {root / "README.md", root / "CONTRIBUTING.md",
                                 root / "ARCHITECTURE.md"};
  for (const auto& file : fs::recursive_directory_iterator(root / "docs")) {
    if (file.path().extension() == ".md") pages.push_back(file.path());
  }
  std::size_t pieces = 0;
  for (const fs::path& page : pages) {
    const std::string text = read_text(page.string());
    EXPECT_EQ(text.find("```c++\n"), std::string::npos) << page << ": it is called cpp elsewhere";
    std::vector<std::string> code = blocks(text, "cpp");
    if (page.filename() != "AHEAD_OF_TIME.md") {
      const std::vector<std::string> in_c = blocks(text, "c");
      code.insert(code.end(), in_c.begin(), in_c.end());
    }
    for (const std::string& block : code) {
      std::istringstream parts(std::regex_replace(block, std::regex("\n\n+|…"), "\f"));
      for (std::string part; std::getline(parts, part, '\f');) {
        const std::string wanted = std::regex_replace(on_one_line(part), std::regex("^ +| +$"), "");
        if (wanted.empty()) continue;
        ++pieces;
        EXPECT_NE(sources.find(wanted), std::string::npos) << page << ": " << part;
      }
    }
  }
  EXPECT_GT(pieces, 100U);
}

std::size_t lines_of(const fs::path& file) {
  std::ifstream in(file);
  std::size_t count = 0;
  for (std::string line; std::getline(in, line);) {
    const std::size_t first = line.find_first_not_of(" \t");
    if (first == std::string::npos) continue;
    const std::string_view text = std::string_view(line).substr(first);
    const bool comment = text.starts_with("//") || text.starts_with("/*") ||
                         text.starts_with("*") ||
                         (text.starts_with("#") && !text.starts_with("#include"));
    count += comment ? 0 : 1;
  }
  return count;
}

// Lines of code, without comments and empty lines, of an example and of its twin elsewhere.
TEST(Docs, ExamplesAreHardlyLongerThanTheirTwins) {  // [FE-12]
  std::size_t twins = 0;
  for (const auto& folder : fs::directory_iterator(RICCI_SOURCE_DIR "/examples")) {
    std::size_t ours = 0;
    std::size_t theirs = 0;
    if (!folder.is_directory()) continue;
    for (const auto& file : fs::directory_iterator(folder)) {
      const std::string kind = file.path().extension().string();
      if (kind == ".py") theirs += lines_of(file);
      if (kind == ".cpp" || kind == ".c" || kind == ".ric" || kind == ".sh") ours += lines_of(file);
    }
    if (theirs == 0) continue;
    ++twins;
    EXPECT_LE(2 * ours, 3 * theirs)
        << folder.path() << ": " << ours << " lines, its twin " << theirs;
  }
  EXPECT_GE(twins, 8U);
}

// `theirs ours libraries` of docs/op_names.txt.
struct OtherName {
  std::string theirs;
  std::string ours;
  std::string libraries;
};
std::vector<OtherName> other_names() {
  std::vector<OtherName> out;
  std::istringstream lines(read_text(RICCI_SOURCE_DIR "/docs/op_names.txt"));
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    OtherName n;
    EXPECT_TRUE(words >> n.theirs >> n.ours >> n.libraries) << line;
    out.push_back(std::move(n));
  }
  std::ranges::sort(out, {}, [](const OtherName& n) { return std::pair(n.theirs, n.ours); });
  return out;
}

// All that the headers of arrays and builders declare as a function.
std::set<std::string> declared_functions() {
  std::set<std::string> out;
  // What it gives, then its name, where a line begins: words in comments are none.
  const std::regex function(
      "\n *(?:\\[\\[nodiscard\\]\\] [A-Za-z][A-Za-z_:0-9<>, *&]*[ *&]|Value |void )"
      "([a-z_][a-z_0-9]*)\\(");
  for (const char* folder : {"array", "build", "compat"}) {
    for (const auto& file :
         fs::directory_iterator(RICCI_SOURCE_DIR "/include/ricci/" + std::string(folder))) {
      const std::string text = read_text(file.path().string());
      for (std::sregex_iterator it(text.begin(), text.end(), function), end; it != end; ++it) {
        out.insert((*it)[1]);
      }
    }
  }
  for (const std::string& name : all_mnemonics()) out.insert(name);
  return out;
}

// Pages that list builders and functions list those there are.
TEST(Docs, PagesOfBuildersNameWhatThereIs) {
  std::set<std::string> known = declared_functions();
  // Those that give several values too.
  const std::string refused = read_text(RICCI_SOURCE_DIR "/include/ricci/build/refused.h");
  const std::regex builder(" ([a-z_][a-z_0-9]*)\\((?:Value|Graph&), \\.\\.\\.");
  for (std::sregex_iterator it(refused.begin(), refused.end(), builder), end; it != end; ++it) {
    known.insert((*it)[1]);
  }
  const auto expect_known = [&](const std::string& page, const std::string& text,
                                const std::string& name_in) {
    const std::regex name(name_in);
    for (std::sregex_iterator it(text.begin(), text.end(), name), end; it != end; ++it) {
      EXPECT_TRUE(known.contains((*it)[1])) << page << ": " << (*it)[1];
    }
    EXPECT_TRUE(std::regex_search(text, name)) << page;
  };
  std::string first_columns;
  std::istringstream lines(read_text(RICCI_SOURCE_DIR "/docs/BUILDERS.md"));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("| ")) first_columns += line.substr(0, line.find(" | ", 2)) + "\n";
  }
  expect_known("BUILDERS.md", first_columns, "`([a-z][a-z_0-9]+)[(` {]");
  expect_known("COMPLEX.md", read_text(RICCI_SOURCE_DIR "/docs/COMPLEX.md"),
               "`([a-z][a-z_0-9]+)\\(");
}

std::string names_page() {
  std::map<std::string, std::string> long_names = {
      {"np", "NumPy"}, {"jax", "JAX"}, {"torch", "PyTorch"}, {"mlx", "MLX"}};
  std::ostringstream out;
  out << "# Ops by the names other libraries use\n\n"
         "Generated from `docs/op_names.txt` and the op table by the test `Docs`; "
         "`RICCI_UPDATE_GOLDEN=1` writes it anew.\n"
         "Functions of arrays are in `ricci/array.h`, builders of graphs in `ricci/graph.h`; "
         "[the op reference](generated/ops.md) says what ops compute.\n\n"
         "| name | where | here |\n| --- | --- | --- |\n";
  std::set<std::string> told;
  for (const OtherName& n : other_names()) {
    std::string where;
    std::istringstream libraries(n.libraries);
    for (std::string l; std::getline(libraries, l, ',');) {
      EXPECT_TRUE(long_names.contains(l)) << l;
      where += (where.empty() ? "" : ", ") + long_names[l];
    }
    out << "| `" << n.theirs << "` | " << where << " | `" << n.ours << "` |\n";
    told.insert(n.ours);
  }
  out << "\n## Other ops\n\nThose of the op table that go by no other name.\n\n"
         "| op | |\n| --- | --- |\n";
  for (const OpDescriptor& d : all_ops()) {
    const std::string name(d.info->name);
    const bool inner = d.op_class == OpClass::Leaf || !d.family.empty() ||
                       name.find("_backward") != std::string::npos;
    if (!inner && !told.contains(name)) {
      out << "| [`" << name << "`](generated/ops.md#" << name << ") | " << d.info->help << " |\n";
    }
  }
  return out.str();
}

TEST(Docs, NamesOfOtherLibrariesLeadToOurs) {
  const std::set<std::string> known = declared_functions();
  for (const char* word : {"pullback", "requires", "sizeof", "current"}) {
    EXPECT_FALSE(known.contains(word)) << word << " is taken for a function";
  }
  std::set<std::pair<std::string, std::string>> seen;
  for (const OtherName& n : other_names()) {
    EXPECT_TRUE(known.contains(n.ours)) << n.ours << " is no function and no op";
    EXPECT_TRUE(seen.emplace(n.theirs, n.ours).second) << n.theirs << " is listed twice";
  }
  const std::string path = RICCI_SOURCE_DIR "/docs/OP_NAMES.md";
  if (std::getenv("RICCI_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << names_page();
  EXPECT_EQ(read_text(path), names_page()) << "RICCI_UPDATE_GOLDEN=1 writes it anew";
}

// Functions that op_list.h has are reached by a name somebody else uses, or are listed themselves.
TEST(Docs, EveryFunctionOfTheOpListIsInTheIndex) {
  const std::string page = read_text(RICCI_SOURCE_DIR "/docs/OP_NAMES.md");
  const std::string list = read_text(RICCI_SOURCE_DIR "/include/ricci/array/op_list.h");
  const std::regex function("\n\\[\\[nodiscard\\]\\] [^(]* ([a-z_0-9]+)\\(");
  std::size_t found = 0;
  for (std::sregex_iterator it(list.begin(), list.end(), function), end; it != end; ++it) {
    EXPECT_NE(page.find("`" + (*it)[1].str() + "`"), std::string::npos) << (*it)[1];
    ++found;
  }
  EXPECT_GT(found, 40U);
}

}  // namespace
}  // namespace ricci::testing::docs_test
