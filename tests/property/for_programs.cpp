#include "property/for_programs.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/compare.h"
#include "support/guarded_buffer.h"

namespace ricci::testing {
namespace {

// A fault that only values decide: an index out of range, a singular matrix, an integer divided by
// zero or raised below one. Anything else is a program that should not have been built, or should
// have run.
bool is_fault_of_values(const UserError& e) {
  if (e.code() == ErrorCode::IndexOutOfRange || e.code() == ErrorCode::SingularMatrix) return true;
  return e.code() == ErrorCode::Attr && e.diagnostic().message.starts_with("integer ");
}

std::string running_test() {
  const ::testing::TestInfo* test = ::testing::UnitTest::GetInstance()->current_test_info();
  return fmt::format("{}.{}", test->test_suite_name(), test->name());
}

}  // namespace

std::uint64_t first_seed() {
  const char* given = std::getenv("RICCI_PROPERTY_FIRST");
  return given == nullptr ? 0 : std::strtoull(given, nullptr, 10);
}

std::uint64_t program_count(std::uint64_t usual) {
  const char* given = std::getenv("RICCI_PROPERTY_COUNT");
  if (given == nullptr) return usual;
  return std::max<std::uint64_t>(1, std::strtoull(given, nullptr, 10) * usual / 10000);
}

void for_programs(std::uint64_t count, const GeneratorOptions& options, const Check& check) {
  const auto guarded = [&](const Program& p) -> std::string {
    try {
      return check(p);
    } catch (const std::exception& e) {
      return e.what();
    }
  };
  const std::uint64_t first = first_seed();
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const std::string what = fmt::format("{}, seed {}", running_test(), seed);
    const FaultNote note(what.c_str());
    const Program p = generate(seed, options);
    if (guarded(p).empty()) continue;
    const Program small = shrink(p, [&](const Program& q) { return !guarded(q).empty(); });
    FAIL() << "seed " << seed << ": " << guarded(small) << "\n" << describe(small);
  }
}

std::optional<std::vector<Tensor>> outputs_of(const Graph& graph, const Feeds& feeds) {
  try {
    return interpret(graph, feeds);
  } catch (const UserError& e) {
    if (!is_fault_of_values(e)) throw;
    return std::nullopt;
  }
}

std::string difference(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected) {
  if (actual.size() != expected.size()) return "another number of outputs";
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (const auto result = same(actual[i], expected[i]); !result) {
      return fmt::format("output {}: {}", i, result.message());
    }
  }
  return {};
}

}  // namespace ricci::testing
