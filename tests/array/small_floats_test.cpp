// Functions that are compositions, on small floats: as in f64 on the same numbers, rounded once.
#include <cmath>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "ricci/array.h"

namespace ricci::testing::small_floats_test {
namespace {

using Numbers = std::vector<double>;

struct Composed {
  const char* name;
  std::function<Array(const Array&, const Array&)> f;
};

// Of columns of numbers near 300, whose squares leave the range of f16, and of small differences.
const std::vector<Composed> composed_functions = {
    {"mean", [](const Array& a, const Array&) { return mean(a, {0}); }},
    {"nanmean", [](const Array& a, const Array&) { return nanmean(a, {0}); }},
    {"nanstd", [](const Array& a, const Array&) { return nanstd(a, {0}); }},
    {"var", [](const Array& a, const Array&) { return var(a - 280.0, {0}); }},
    {"stddev", [](const Array& a, const Array&) { return stddev(a, {0}); }},
    {"norm", [](const Array& a, const Array&) { return norm(a, {1}); }},
    {"normalize", [](const Array& a, const Array&) { return normalize(a); }},
    {"average", [](const Array& a, const Array& b) { return average(a, abs(b), 0); }},
    {"cosine_similarity", [](const Array& a, const Array& b) { return cosine_similarity(a, b); }},
    {"corrcoef", [](const Array& a, const Array&) { return corrcoef(transpose(a)); }},
    {"standardize", [](const Array& a, const Array&) { return standardize(a, 0, 1e-5); }},
    {"mse", [](const Array& a, const Array& b) { return mse(a, b) / 8.0; }},
    {"cdist", [](const Array& a, const Array& b) { return cdist(a[slice(0, 5)], b[slice(0, 5)]); }},
    {"log_softmax", [](const Array& a, const Array&) { return log_softmax(a / 64.0, 0); }},
    {"logmeanexp", [](const Array& a, const Array&) { return logmeanexp(a / 64.0, {0}); }},
    {"segment_mean",
     [](const Array& a, const Array&) {
       const Array rows = zeros({a.dim(0).value()}, {.dtype = DType::I32});
       return segment_mean(a, rows, 1);
     }},
};

Array numbers_of(std::int64_t rows, std::int64_t step, DType dtype) {
  Numbers v;
  for (std::int64_t i = 0; i < 3 * rows; ++i) {
    v.push_back(280 + static_cast<double>(i * step % 97) * 0.25);
  }
  return cast(reshape(array(v), {rows, 3}), dtype);
}

void expect_rounded_once(const Composed& c, std::int64_t rows, DType dtype) {
  SCOPED_TRACE(std::string(c.name) + " of " + std::string(name(dtype)));
  const Array a = numbers_of(rows, 5, dtype);
  const Array b = numbers_of(rows, 11, dtype);
  const Array found = c.f(a, b);
  EXPECT_EQ(found.dtype(), dtype);
  const Numbers want = c.f(cast(a, DType::F64), cast(b, DType::F64)).tensor().numbers<double>();
  const Numbers have = found.tensor().numbers<double>();
  const double unit = dtype == DType::F16 ? 0x1p-10 : 0x1p-7;
  for (std::size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(have[i], want[i], 1.5 * unit * std::max(std::abs(want[i]), unit)) << i;
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(ArraySmallFloats, AreRoundedOnce) {
  for (const Composed& c : composed_functions) {
    for (const DType dtype : {DType::F16, DType::BF16}) expect_rounded_once(c, 700, dtype);
  }
}

// Counts that f16 does not have.
TEST(ArraySmallFloats, AreCounted) {
  const Array ones_of_many = ones({140000}, {.dtype = DType::F16});
  EXPECT_EQ(nanmean(ones_of_many).item(), 1);
  const Array rows = zeros({140000}, {.dtype = DType::I32});
  EXPECT_EQ(segment_mean(ones_of_many, rows, 1)[0].item(), 1);
}

}  // namespace
}  // namespace ricci::testing::small_floats_test
