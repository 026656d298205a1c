// Every element-wise function the CPU compiles, measured: docs/ACCURACY.md states the bounds.
//   RICCI_EXHAUSTIVE=1      all 2^32 floats for functions of one operand
//   RICCI_ACCURACY=1        prints the largest errors found, as rows of that table
#include <bit>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "backend/cpu/math/vector_math.h"
#include "rule/tables/eval_rules.h"
#include "support/vector_math_points.h"

namespace ricci::cpu::cpu_vector_math_test {
namespace {

using ricci::testing::binary_rows;
using ricci::testing::sample_points;
using ricci::testing::special_points;
using ricci::testing::ulps;
using ricci::testing::unary_rows;

constexpr std::size_t Points = 200'000;

template <class T>
constexpr DType DTypeOf = sizeof(T) == 4 ? DType::F32 : DType::F64;

template <class T>
using MapFunction = void(const T*, const T*, T*, std::int64_t);

/// The targets that run here, by name.
std::vector<const TargetInfo*> runnable_targets() {
  std::vector<const TargetInfo*> found;
  for (const char* name : {"portable", "avx2", "avx512"}) {
    if (runs_here(target_named(name))) found.push_back(&target_named(name));
  }
  return found;
}

template <class T>
std::vector<T> run_map(std::string_view name, int lanes, const TargetInfo& target,
                       const std::vector<T>& a, const std::vector<T>& b) {
  const std::shared_ptr<JitCode> code =
      jit_map({std::string(name), DTypeOf<T>, lanes}, JitOptions{.target = &target});
  std::vector<T> out(a.size());
  code->function<MapFunction<T>>("map")(a.data(), b.data(), out.data(),
                                        static_cast<std::int64_t>(a.size()));
  return out;
}

/// The bits, with all NaNs the same.
template <class T>
bool same(T a, T b) {
  return (std::isnan(a) && std::isnan(b)) || std::memcmp(&a, &b, sizeof(T)) == 0;
}

/// A value that is a matter of definition and not of accuracy: NaN, infinity or a zero's sign.
template <class T>
bool settled(T x) {
  return std::isnan(x) || std::isinf(x) || x == 0;
}

template <class T>
struct Samples {
  std::vector<T> a;
  std::vector<T> b;
  std::vector<long double> exact;
  std::vector<double> defined;  ///< the reference evaluator's value
};

/// The largest error; says where a bound is broken.
template <class T>
double check(std::string_view name, double bound, const Samples<T>& s, const std::vector<T>& got,
             const std::string& how) {
  double worst = 0;
  int told = 0;
  for (std::size_t i = 0; i < s.a.size() && told < 3; ++i) {
    const T defined = static_cast<T>(s.defined[i]);
    const bool by_definition = settled(s.a[i]) && settled(s.b[i]) && settled(defined);
    double error = 0;
    if (bound == 0 || by_definition) {
      if (!same(got[i], defined)) error = std::numeric_limits<double>::infinity();
    } else {
      error = ulps(got[i], s.exact[i]);
    }
    if (error > worst) worst = error;
    if (error > bound) {
      ++told;
      ADD_FAILURE() << fmt::format("{}({}, {}) = {}, not {}: {} ulp [{}]", name, s.a[i], s.b[i],
                                   got[i], static_cast<double>(s.exact[i]), error, how);
    }
  }
  return worst;
}

/// Scalars and vectors on every target give one result, within the bound.
template <class T>
double check_everywhere(std::string_view name, double bound, const Samples<T>& s) {
  double worst = 0;
  for (const TargetInfo* target : runnable_targets()) {
    std::vector<T> first;
    for (const int lanes : {1, 4, 8, 16}) {
      const std::vector<T> got = run_map(name, lanes, *target, s.a, s.b);
      const std::string how = fmt::format("{} lanes, {}", lanes, target->name);
      if (first.empty()) {
        first = got;
        worst = std::max(worst, check(name, bound, s, got, how));
        continue;
      }
      for (std::size_t i = 0; i < got.size(); ++i) {
        if (same(got[i], first[i])) continue;
        ADD_FAILURE() << fmt::format("{}({}, {}) = {} or {} [{}]", name, s.a[i], s.b[i], got[i],
                                     first[i], how);
        break;
      }
    }
  }
  return worst;
}

void print_row(std::string_view name, double f32, double f64) {
  if (std::getenv("RICCI_ACCURACY") == nullptr) return;
  const auto text = [](double u) {
    return u == 0 ? std::string("exact") : fmt::format("{:.2f}", u);
  };
  fmt::print("| `{}` | {} | {} |\n", name, text(f32), text(f64));
}

template <class T>
double measure(const ricci::testing::UnaryRow& row, double bound) {
  Samples<T> s;
  s.a = sample_points<T>(row.range, Points, 17);
  s.b.assign(s.a.size(), T(0));
  for (const T x : s.a) {
    s.exact.push_back(ricci::testing::exact_unary(row.kind, x));
    s.defined.push_back(rule::eval_unary(row.kind, static_cast<double>(x)));
  }
  return check_everywhere(name_of(row.kind), bound, s);
}

template <class T>
double measure(const ricci::testing::BinaryRow& row, double bound) {
  Samples<T> s;
  // Every special value with every other, then numbers of all sizes, then ordinary ones.
  const auto& special = special_points<T>();
  for (std::size_t i = 0; i < special.size() && i < 120; ++i) {
    for (std::size_t j = 0; j < special.size() && j < 120; ++j) {
      s.a.push_back(special[i]);
      s.b.push_back(special[j]);
    }
  }
  const std::vector<T> left = sample_points<T>(20, Points, 18);
  std::vector<T> right = sample_points<T>(20, Points, 19);
  s.a.insert(s.a.end(), left.begin(), left.end());
  s.b.insert(s.b.end(), right.begin(), right.end());
  while (s.a.size() % 16 != 0) {
    s.a.push_back(T(2));
    s.b.push_back(T(3));
  }
  for (std::size_t i = 0; i < s.a.size(); ++i) {
    s.exact.push_back(ricci::testing::exact_binary(row.kind, s.a[i], s.b[i]));
    s.defined.push_back(
        rule::eval_binary(row.kind, static_cast<double>(s.a[i]), static_cast<double>(s.b[i])));
  }
  return check_everywhere(name_of(row.kind), bound, s);
}

class CpuVectorMathUnary : public ::testing::TestWithParam<ricci::testing::UnaryRow> {};
class CpuVectorMathBinary : public ::testing::TestWithParam<ricci::testing::BinaryRow> {};

TEST_P(CpuVectorMathUnary, IsWithinItsBound) {
  const auto& row = GetParam();
  const double f32 = measure<float>(row, row.bound.f32);
  const double f64 = measure<double>(row, row.bound.f64);
  print_row(name_of(row.kind), f32, f64);
}

TEST_P(CpuVectorMathBinary, IsWithinItsBound) {
  const auto& row = GetParam();
  const double f32 = measure<float>(row, row.bound.f32);
  const double f64 = measure<double>(row, row.bound.f64);
  print_row(name_of(row.kind), f32, f64);
}

// A library call would be an undefined symbol.
void expect_no_library_calls(std::string_view name) {
  for (const char* target : {"portable", "avx2", "avx512"}) {
    for (const DType dtype : {DType::F32, DType::F64}) {
      for (const int lanes : {1, 4, 8, 16}) {
        const auto code = emit_map({std::string(name), dtype, lanes},
                                   JitOptions{.target = &target_named(target)});
        EXPECT_EQ(undefined_symbols(code.object), std::vector<std::string>{})
            << name << " " << target << " " << lanes;
      }
    }
  }
}
TEST_P(CpuVectorMathUnary, CallsNoLibrary) { expect_no_library_calls(name_of(GetParam().kind)); }
TEST_P(CpuVectorMathBinary, CallsNoLibrary) { expect_no_library_calls(name_of(GetParam().kind)); }

// Every float with RICCI_EXHAUSTIVE set; else one in so many, spread over all of them.
TEST_P(CpuVectorMathUnary, IsWithinItsBoundOnAllFloats) {
  const std::uint64_t stride = std::getenv("RICCI_EXHAUSTIVE") == nullptr ? 65537 : 1;
  const auto& row = GetParam();
  const std::string name(name_of(row.kind));
  constexpr std::uint64_t Chunk = 1 << 16;
  double worst = 0;
  for (std::uint64_t from = 0; from < (1ULL << 32) && !HasFailure(); from += Chunk * stride) {
    Samples<float> s;
    for (std::uint64_t k = 0; k < Chunk; ++k) {
      const float x = std::bit_cast<float>(static_cast<std::uint32_t>(from + k * stride));
      s.a.push_back(x);
      s.defined.push_back(rule::eval_unary(row.kind, static_cast<double>(x)));
      // Double is exact enough, but where the reference's own formula is not.
      const bool loose = row.kind == UnaryKind::Gelu || row.kind == UnaryKind::GeluApprox;
      s.exact.push_back(loose ? ricci::testing::exact_unary(row.kind, x) : s.defined.back());
    }
    s.b.assign(Chunk, 0.0F);
    const auto got = run_map(name, 8, host_target(), s.a, s.b);
    worst = std::max(worst, check(name, row.bound.f32, s, got, "all floats"));
  }
  print_row(name, worst, 0);
}

const auto unary_name = [](const auto& info) { return std::string(name_of(info.param.kind)); };
INSTANTIATE_TEST_SUITE_P(All, CpuVectorMathUnary, ::testing::ValuesIn(unary_rows()), unary_name);
INSTANTIATE_TEST_SUITE_P(All, CpuVectorMathBinary, ::testing::ValuesIn(binary_rows()), unary_name);

template <class T>
void expect_one_exp() {
  std::vector<T> x = sample_points<T>(110, Points, 23);
  for (T& v : x) v = -std::abs(v);
  for (const TargetInfo* target : runnable_targets()) {
    for (const int lanes : {1, 4, 8, 16}) {
      const std::vector<T> plain = run_map("exp", lanes, *target, x, x);
      const std::vector<T> shorter = run_map("exp_not_positive", lanes, *target, x, x);
      for (std::size_t i = 0; i < x.size(); ++i) {
        ASSERT_TRUE(same(shorter[i], plain[i])) << "exp(" << x[i] << ") " << lanes;
      }
    }
  }
}

TEST(CpuVectorMath, ExpOfWhatIsNotPositiveHasTheSameBits) {
  expect_one_exp<float>();
  expect_one_exp<double>();
}

template <class T>
void expect_classifies(std::string_view name, bool (*expected)(T)) {
  const std::vector<T> x = sample_points<T>(10, 1024, 3);
  for (const TargetInfo* target : runnable_targets()) {
    for (const int lanes : {1, 4, 8, 16}) {
      const std::shared_ptr<JitCode> code =
          jit_map({std::string(name), DTypeOf<T>, lanes}, {.target = target});
      std::vector<std::uint8_t> out(x.size());
      code->function<void(const T*, const T*, std::uint8_t*, std::int64_t)>("map")(
          x.data(), x.data(), out.data(), static_cast<std::int64_t>(x.size()));
      for (std::size_t i = 0; i < x.size(); ++i) {
        ASSERT_EQ(out[i], expected(x[i]) ? 1 : 0) << name << "(" << x[i] << ") " << lanes;
      }
    }
  }
}

TEST(CpuVectorMath, ClassifiesNumbers) {
  expect_classifies<float>("is_nan", [](float x) { return std::isnan(x); });
  expect_classifies<double>("is_nan", [](double x) { return std::isnan(x); });
  expect_classifies<float>("is_finite", [](float x) { return std::isfinite(x); });
  expect_classifies<double>("is_finite", [](double x) { return std::isfinite(x); });
}

}  // namespace
}  // namespace ricci::cpu::cpu_vector_math_test
