// The seeds of every fuzz harness, fed to it once, and some hundreds of changed ones: what fuzzing
// found stays found, in every build and without a fuzzer.
#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ricci/io/file.h"

#include "fuzz/mutated.h"
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

using Bytes = std::vector<std::byte>;
using Seeds = std::vector<std::pair<std::string, Bytes>>;

// Every harness takes nothing at all; the rest of its seeds are files.
Seeds seeds_of(const std::string& harness) {
  Seeds seeds = {{"nothing", {}}};
  const fs::path folder = fs::path(RICCI_SOURCE_DIR) / "tests/fuzz/corpus" / harness;
  if (!fs::exists(folder)) return seeds;
  for (const auto& entry : fs::directory_iterator(folder)) {
    seeds.emplace_back(entry.path().string(), io::read_file(entry.path().string()));
  }
  std::ranges::sort(seeds, {}, &Seeds::value_type::first);
  return seeds;
}

class FuzzCorpus : public ::testing::TestWithParam<Harness> {
 protected:
  FuzzCorpus() : before_(std::signal(SIGABRT, name_input)) {}
  ~FuzzCorpus() override { std::signal(SIGABRT, before_); }
  FuzzCorpus(const FuzzCorpus&) = delete;
  FuzzCorpus& operator=(const FuzzCorpus&) = delete;

  static void run(const std::string& name, const Bytes& bytes) {
    current_input() = name;
    const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
    EXPECT_EQ(GetParam().run(data, bytes.size()), 0);
  }

 private:
  void (*before_)(int);
};

TEST_P(FuzzCorpus, EverySeedIsTakenOrRefused) {
  for (const auto& [name, bytes] : seeds_of(GetParam().name)) run(name, bytes);
}

TEST_P(FuzzCorpus, ChangedSeedsAreTakenOrRefused) {
  constexpr std::uint64_t Count = 300;
  const Seeds seeds = seeds_of(GetParam().name);
  for (std::uint64_t number = 0; number < Count; ++number) {
    testing::Rng rng(number);
    const auto& [name, bytes] = seeds[rng.below(seeds.size())];
    run(name + ", change " + std::to_string(number), testing::mutated(bytes, rng));
  }
}

INSTANTIATE_TEST_SUITE_P(All, FuzzCorpus, ::testing::ValuesIn(Harnesses),
                         [](const auto& harness) { return std::string(harness.param.name); });

}  // namespace
}  // namespace ricci
