// The seeds of every fuzz harness, fed to it once: what fuzzing found stays found, in every build
// and without a fuzzer.
#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ricci/io/file.h"

#include "test_paths.h"

// The build lists the harnesses, and gives their functions names of their own.
extern "C" {
#define RICCI_HARNESS(name) int ricci_replay_##name(const std::uint8_t* data, std::size_t size);
#include "fuzz_harnesses.def"
#undef RICCI_HARNESS
}

namespace ricci {
namespace {

namespace fs = std::filesystem;

struct Harness {
  const char* name;
  int (*run)(const std::uint8_t* data, std::size_t size);
};

constexpr auto Harnesses = std::to_array<Harness>({
#define RICCI_HARNESS(name) {#name, ricci_replay_##name},
#include "fuzz_harnesses.def"
#undef RICCI_HARNESS
});

// A harness ends the process when a promise is broken: the last line says by which input.
std::string& current_input() {
  static std::string path;
  return path;
}
void name_input(int) { std::fprintf(stderr, "\nthe input was '%s'\n", current_input().c_str()); }

class FuzzCorpus : public ::testing::TestWithParam<Harness> {};

TEST_P(FuzzCorpus, EverySeedIsTakenOrRefused) {
  const auto before = std::signal(SIGABRT, name_input);
  const auto run = [](const std::string& name, const std::vector<std::byte>& bytes) {
    current_input() = name;
    EXPECT_EQ(GetParam().run(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()), 0);
  };
  run("nothing", {});
  const fs::path folder = fs::path(RICCI_SOURCE_DIR) / "tests/fuzz/corpus" / GetParam().name;
  std::vector<std::string> seeds;
  if (fs::exists(folder)) {
    for (const auto& entry : fs::directory_iterator(folder)) seeds.push_back(entry.path().string());
  }
  std::ranges::sort(seeds);
  for (const std::string& seed : seeds) run(seed, io::read_file(seed));
  std::signal(SIGABRT, before);
}

INSTANTIATE_TEST_SUITE_P(All, FuzzCorpus, ::testing::ValuesIn(Harnesses),
                         [](const auto& harness) { return std::string(harness.param.name); });

}  // namespace
}  // namespace ricci
