// Files that were changed at random: folders of kernels, stored programs, archives of arrays. The
// same cores as the fuzz harnesses, with seeds in place of a fuzzer.
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/ir/text.h"
#include "ricci/op/table.h"
#include "ricci/support/file.h"

#include "backend/cpu/run/target.h"
#include "fuzz/cache_folder.h"
#include "fuzz/gguf_model.h"
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
      // Loops are written out, and steps with bodies.
      for (const bool fuse : {true, false}) {
        if (!fuse && built.graph.nodes().back().bodies.empty()) continue;
        const Bytes whole =
            schedule::to_bytes(make_program(built.graph, {.fuse = fuse, .target = &cpu::target()}));
        const auto body = schedule::opened(schedule::ProgramSeal, whole);
        if (body.size() <= 8192) bodies.emplace_back(body.begin(), body.end());
      }
    }
  }
  return bodies;
}

// The program a seed of the fuzzer is made of: a text among the parser's seeds, or the first case
// of an op; with `_apart` at its end, without fusion.
Graph seed_graph(std::string name) {
  if (name.ends_with("_apart")) name.resize(name.size() - std::strlen("_apart"));
  const auto text = std::filesystem::path(RICCI_SOURCE_DIR) / "tests/fuzz/corpus/text_parser_fuzz" /
                    (name + ".ric");
  if (std::filesystem::exists(text)) {
    const Bytes bytes = read_file(text.string());
    return parse_graph({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  const auto op = std::ranges::find(
      all_ops(), name, [](const OpDescriptor& d) { return std::string(d.info->name); });
  check_internal(op != all_ops().end(), "no op has the name of this seed");
  for (const Case& c : cases_for(op->kind)) {
    if (!c.rejects.empty()) continue;
    const auto dtype = std::ranges::find_if(AllDTypes, [&](DType t) { return c.dtypes.has(t); });
    BuiltCase built = build_case(c, *dtype);
    if (built.graph.symbols().empty()) return std::move(built.graph);
  }
  throw InternalError("this op has no case to make a seed of");
}

// The roles of a program's calls, bodies included.
void add_roles(const ricci::Program& program, std::set<std::string_view>& roles) {
  for (const Step& step : program.steps) {
    if (const auto* call = std::get_if<CallStep>(&step.what)) {
      roles.insert(loop::role_of(call->call));
    } else if (const auto* control = std::get_if<ControlStep>(&step.what)) {
      for (const auto& [role, body] : control->bodies) add_roles(*body, roles);
    }
  }
}

template <std::size_t... I>
std::set<std::string_view> all_roles(std::index_sequence<I...>) {
  return {loop::role_of(loop::Call(std::in_place_index<I>))...};
}

// What the bytes of a program mean changes with its version, and the seeds with it. An empty file
// under the name of an op becomes its seed.
TEST(PropertyFiles, SeedsAreStoredProgramsOfThisVersion) {
  const std::string folder =
      std::string(RICCI_SOURCE_DIR) + "/tests/fuzz/corpus/program_bytes_fuzz";
  std::set<std::string_view> seen;
  for (const auto& e : std::filesystem::directory_iterator(folder)) {
    const std::string file = e.path().string();
    const std::string name = e.path().stem().string();
    if (std::getenv("RICCI_UPDATE_GOLDEN") != nullptr) {
      const bool fuse = !name.ends_with("_apart");
      const Bytes whole = schedule::to_bytes(
          make_program(seed_graph(name), {.fuse = fuse, .target = &cpu::target()}));
      write_file(file, schedule::opened(schedule::ProgramSeal, whole));
    }
    const Bytes whole = schedule::sealed(schedule::ProgramSeal, read_file(file));
    EXPECT_NO_THROW(add_roles(schedule::program_from_bytes(whole), seen))
        << file << ": RICCI_UPDATE_GOLDEN=1 makes it anew";
  }
  for (const std::string_view role :
       all_roles(std::make_index_sequence<std::variant_size_v<loop::Call>>())) {
    EXPECT_TRUE(seen.contains(role)) << "no seed has a call of the role " << role;
  }
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

TEST(PropertyFiles, ModelsTakeMemoryInProportionToTheirSize) {
  constexpr std::int64_t MostDecoded = 1 << 14;
  const std::vector<Bytes> models = corpus("gguf_fuzz");
  const std::uint64_t count = program_count(20000);
  for (std::uint64_t seed = first_seed(); seed < first_seed() + count; ++seed) {
    Rng rng(seed);
    const Bytes model = mutated(models[rng.below(models.size())], rng);
    const CountedAllocations allocated;
    ASSERT_NO_THROW(read_any_gguf(model, MostDecoded)) << "seed " << seed;
    ASSERT_LE(allocated.peak_bytes(), gguf_room(model.size(), MostDecoded)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace ricci::testing
