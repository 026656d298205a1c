// The programs that were built: none looks for libraries where it happens to be started, and all
// have the protections that the loader and the compiler offer.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/elf.h"
#include "test_paths.h"

namespace ricci::binaries_test {
namespace {

namespace fs = std::filesystem;

// Executables and shared libraries below a folder, or the file itself.
std::vector<std::string> binaries_in(const fs::path& place) {
  if (!fs::is_directory(place)) return {place.string()};
  std::vector<std::string> found;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(place)) {
    const bool runs = (entry.status().permissions() & fs::perms::owner_exec) != fs::perms::none;
    const bool shared = entry.path().filename().string().find(".so") != std::string::npos;
    if (entry.is_regular_file() && (runs || shared)) found.push_back(entry.path().string());
  }
  return found;
}

TEST(Binaries, ToolAndTestsAreHardened) {
  testing::expect_hardened(fs::canonical("/proc/self/exe").string());
  if (const std::string tool = RICCI_TOOL_PATH; !tool.empty()) testing::expect_hardened(tool);
}

TEST(Binaries, ExamplesAreHardened) {
  const fs::path folder = fs::path(RICCI_BUILD_DIR) / "examples";
  if (!fs::exists(folder)) GTEST_SKIP() << "no examples are built";
  for (const std::string& path : binaries_in(folder)) testing::expect_hardened(path);
}

TEST(Binaries, BenchmarksAreHardened) {
  int found = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(RICCI_BUILD_DIR)) {
    if (!entry.path().filename().string().starts_with("ricci_bench") || !entry.is_regular_file()) {
      continue;
    }
    testing::expect_hardened(entry.path().string());
    ++found;
  }
  if (found == 0) GTEST_SKIP() << "no benchmarks are built";
}

// The test of what is installed names the places.
TEST(Binaries, NamedOnesAreHardened) {
  const char* places = std::getenv("RICCI_CHECKED_BINARIES");
  if (places == nullptr) GTEST_SKIP() << "RICCI_CHECKED_BINARIES names none";
  const std::vector<std::string> found = binaries_in(places);
  EXPECT_FALSE(found.empty()) << places;
  for (const std::string& path : found) testing::expect_hardened(path);
}

TEST(Binaries, TheReaderSeesWhatIsThere) {
  const testing::ElfFacts facts = testing::read_elf(fs::canonical("/proc/self/exe").string());
  const bool loads_the_c_library = std::ranges::any_of(
      facts.needed, [](const std::string& name) { return name.starts_with("libc.so"); });
  EXPECT_EQ(loads_the_c_library, !RICCI_IS_STATIC);
  EXPECT_EQ(facts.needed.empty(), RICCI_IS_STATIC);
  EXPECT_EQ(facts.imports.contains("__libc_start_main"), !RICCI_IS_STATIC);
  EXPECT_THROW((void)testing::read_elf(RICCI_SOURCE_DIR "/README.md"), std::runtime_error);
}

}  // namespace
}  // namespace ricci::binaries_test
