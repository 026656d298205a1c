#include <filesystem>
#include <regex>

#include <gtest/gtest.h>

#include "support/tool.h"

namespace ricci::testing {
namespace {

namespace fs = std::filesystem;

TEST(Docs, OpReferenceIsWhatTheToolWrites) {
  const ToolRun run = run_tool("doc");
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run.out, read_text(RICCI_SOURCE_DIR "/docs/generated/ops.md"))
      << "run 'make docs' and commit the result";
}

TEST(Docs, RelativeLinksLeadSomewhere) {
  const fs::path root = RICCI_SOURCE_DIR;
  std::vector<fs::path> pages;
  for (const fs::path& folder : {root, root / "docs", root / "docs/adr"}) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() == ".md") pages.push_back(entry.path());
    }
  }
  ASSERT_GT(pages.size(), 5U);
  const std::regex link(R"(\]\(([^)#:]+)(#[^)]*)?\))");
  for (const fs::path& page : pages) {
    const std::string text = read_text(page.string());
    for (std::sregex_iterator it(text.begin(), text.end(), link), end; it != end; ++it) {
      EXPECT_TRUE(fs::exists(page.parent_path() / (*it)[1].str()))
          << page << " links to " << (*it)[1];
    }
  }
}

}  // namespace
}  // namespace ricci::testing
