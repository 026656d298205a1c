// Files that were changed at random: folders of kernels, stored programs, archives of arrays. The
// same cores as the fuzz harnesses, with seeds in place of a fuzzer.
#include <filesystem>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/op/table.h"
#include "ricci/support/file.h"

#include "backend/cpu/run/target.h"
#include "fuzz/cache_folder.h"
#include "fuzz/mutated.h"
#include "fuzz/npz_archive.h"
#include "fuzz/stored_program.h"
#include "ops/cases.h"
#include "property/for_programs.h"
#include "property/random.h"
#include "runtime/counted_allocations.h"
#include "test_paths.h"

namespace ricci::testing {
namespace {

using Bytes = std::vector<std::byte>;

std::vector<Bytes> corpus(const std::string& name) {
  std::vector<Bytes> out;
  const std::string folder = std::string(RICCI_SOURCE_DIR) + "/tests/fuzz/corpus/" + name;
  for (const auto& e : std::filesystem::directory_iterator(folder)) {
    out.push_back(read_file(e.path().string()));
  }
  return out;
}

TEST(PropertyFiles, CacheFoldersGiveWhatWasStored) {
  CacheFolderAttack attack;
  const std::uint64_t count = program_count(1000);
  for (std::uint64_t seed = first_seed(); seed < first_seed() + count; ++seed) {
    Rng rng(seed);
    std::vector<std::uint8_t> script(rng.below(24) + 4);
    for (std::uint8_t& byte : script) byte = static_cast<std::uint8_t>(rng.next());
    ASSERT_NO_THROW(attack.run(script)) << "seed " << seed;
  }
}

// Programs of every op, without the head that has their sum.
std::vector<Bytes> program_bodies() {
  std::vector<Bytes> bodies = corpus("program_bytes_fuzz");
  for (const OpDescriptor& d : all_ops()) {
    if (d.op_class == OpClass::Custom || d.op_class == OpClass::Block) continue;
    for (const Case& c : cases_for(d.kind)) {
      if (!c.rejects.empty()) continue;
      const auto dtype = std::ranges::find_if(AllDTypes, [&](DType t) { return c.dtypes.has(t); });
      const BuiltCase built = build_case(c, *dtype);
      if (!built.graph.symbols().empty()) continue;
      const Bytes whole =
          schedule::to_bytes(make_program(built.graph, {.fuse = true, .target = &cpu::target()}));
      const auto body = schedule::opened(schedule::ProgramSeal, whole);
      if (body.size() <= 8192) bodies.emplace_back(body.begin(), body.end());
    }
  }
  return bodies;
}

TEST(PropertyFiles, StoredProgramsTouchOnlyTheirOwnMemory) {
  const std::vector<Bytes> bodies = program_bodies();
  std::map<StoredRun, std::uint64_t> ended;
  for (const Bytes& body : bodies) {
    ++ended[run_stored_program(schedule::sealed(schedule::ProgramSeal, body))];
  }
  EXPECT_EQ(ended[StoredRun::Refused], 0U);
  EXPECT_GT(ended[StoredRun::Ran], bodies.size() / 2);
  const std::uint64_t count = program_count(20000);
  ended.clear();
  for (std::uint64_t seed = first_seed(); seed < first_seed() + count; ++seed) {
    Rng rng(seed);
    const Bytes body = mutated(bodies[rng.below(bodies.size())], rng);
    const std::string label = fmt::format("stored program, seed {}", seed);
    const FaultNote note(label.c_str());
    ASSERT_NO_THROW(++ended[run_stored_program(schedule::sealed(schedule::ProgramSeal, body))])
        << label;
  }
  EXPECT_GT(ended[StoredRun::Ran], count / 50);
  RecordProperty("refused", std::to_string(ended[StoredRun::Refused]));
  RecordProperty("large", std::to_string(ended[StoredRun::Large]));
  RecordProperty("faulted", std::to_string(ended[StoredRun::Faulted]));
  RecordProperty("ran", std::to_string(ended[StoredRun::Ran]));
}

TEST(PropertyFiles, ArchivesTakeNoMoreThanTheirLimit) {
  constexpr std::int64_t Limit = 1 << 20;
  const std::vector<Bytes> archives = corpus("npz_fuzz");
  const std::uint64_t count = program_count(5000);
  for (std::uint64_t seed = first_seed(); seed < first_seed() + count; ++seed) {
    Rng rng(seed);
    const Bytes archive = mutated(archives[rng.below(archives.size())], rng);
    const CountedAllocations allocated;
    ASSERT_NO_THROW(read_any_npz(archive, Limit)) << "seed " << seed;
    ASSERT_LE(allocated.peak_bytes(), npz_room(archive.size(), Limit)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace ricci::testing
