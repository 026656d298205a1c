// Numbers no program means, given where sizes, places and counts are: each is an error with a
// message before memory is taken, or means what it says.
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "ricci/array.h"
#include "ricci/build/gaussian_splat.h"
#include "ricci/support/error.h"

#include "support/file_faults.h"

namespace ricci::absurd_sizes_test {
namespace {

constexpr std::int64_t Most = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t Least = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t Huge = std::int64_t{1} << 47;

template <class F>
bool is_refused(F&& f) {
  return !testing::fault_of(f).empty();
}

TEST(ArrayAbsurdSizes, OfRowsOfNumbers) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(is_refused([&] { (void)arange(0, infinity); }));
  EXPECT_TRUE(is_refused([&] { (void)arange(0, nan); }));
  EXPECT_TRUE(is_refused([&] { (void)arange(nan, 1); }));
  EXPECT_TRUE(is_refused([&] { (void)arange(0, 1, nan); }));
  EXPECT_TRUE(is_refused([&] { (void)arange(0, 1, infinity); }));
  EXPECT_TRUE(is_refused([] { (void)arange(0, 1, 1e-300); }));
  EXPECT_TRUE(is_refused([] { (void)arange(0, 1e15, 1); }));
  EXPECT_TRUE(is_refused([] { (void)arange(-1e308, 1e308, 1); }));
  EXPECT_EQ(arange(0, -infinity).size(), 0);
  EXPECT_TRUE(is_refused([] { (void)linspace(0, 1, -1); }));
  EXPECT_TRUE(is_refused([] { (void)linspace(0, 1, Huge); }));
  EXPECT_TRUE(is_refused([] { (void)linspace(0, 1, Most); }));
  EXPECT_EQ(linspace(0, 1, 0).size(), 0);
  // Whole numbers beyond i32 are i64.
  EXPECT_EQ(arange(4'000'000'000, 4'000'000'002).to_vector<std::int64_t>(),
            (std::vector<std::int64_t>{4'000'000'000, 4'000'000'001}));
}

TEST(ArrayAbsurdSizes, OfShapes) {
  for (const std::int64_t n : {Most, Least, Huge, std::int64_t{-1}, std::int64_t{-2}}) {
    SCOPED_TRACE(n);
    EXPECT_TRUE(is_refused([&] { (void)zeros({n, n}).tensor(); }));
    EXPECT_TRUE(is_refused([&] { (void)eye(n).tensor(); }));
    EXPECT_TRUE(is_refused([&] { (void)normal(Key(1), {n, n}).tensor(); }));
    EXPECT_TRUE(is_refused([&] { (void)permutation(Key(1), n).tensor(); }));
    EXPECT_TRUE(is_refused([&] { (void)tile(ones({3, 2}), {n}).tensor(); }));
    EXPECT_TRUE(is_refused([&] { (void)repeat(ones({3, 2}), n, 0).tensor(); }));
    EXPECT_TRUE(n == -1 || is_refused([&] { (void)pad(ones({2}), {{n, n}}).tensor(); }));
    EXPECT_TRUE(is_refused([&] { (void)one_hot(array({1, 2}), n).tensor(); }));
    EXPECT_TRUE(is_refused([&] { (void)broadcast_to(ones({1}), {n, n}).tensor(); }));
    EXPECT_TRUE(is_refused([&] { (void)nonzero(ones({3}), n)[0].tensor(); }));
    EXPECT_TRUE(is_refused([&] { (void)bincount(array({1, 2}), n).tensor(); }));
    EXPECT_TRUE(is_refused([&] { (void)narrow(ones({3}), 0, n, n).tensor(); }));
    EXPECT_TRUE(is_refused([&] { (void)reshape(ones({3}), {n, n}).tensor(); }));
    EXPECT_TRUE(is_refused([&] { (void)swapaxes(ones({3, 2}), n, -3); }));
    EXPECT_TRUE(is_refused([&] { (void)top_k(ones({3}), {.k = n}); }));
    EXPECT_TRUE(is_refused([&] { (void)max_pool2d(ones({1, 1, 4, 4}), {n, n}).tensor(); }));
    EXPECT_TRUE(is_refused([&] { (void)dynamic_slice(ones({3}), {0}, {n}).tensor(); }));
    EXPECT_TRUE(is_refused([&] { (void)gaussian_splat_tile_count(n, n, n); }) || n == Most ||
                n == Huge);
  }
  EXPECT_TRUE(is_refused([] { (void)arange(Huge).tensor(); }));
  EXPECT_EQ(arange(Least).size(), 0);
}

TEST(ArrayAbsurdSizes, OfListsOfArrays) {
  const Array nothing = zeros({Huge, 0});
  for (const std::int64_t n : {Most, Least, Huge}) {
    SCOPED_TRACE(n);
    EXPECT_TRUE(is_refused([&] { (void)split(zeros({0}), n); }));
    EXPECT_TRUE(is_refused([&] { (void)split(Key(1), n); }));
  }
  EXPECT_TRUE(is_refused([&] { (void)chunk(nothing, Huge); }));
  EXPECT_TRUE(is_refused([&] { (void)unbind(nothing); }));
  EXPECT_EQ(chunk(ones({5}), Most).size(), 5U);
  EXPECT_EQ(split(Key(1), 0).size(), 0U);
}

TEST(ArrayAbsurdSizes, OfPlaces) {
  const Array x = array({{1.0, 2.0}, {3.0, 4.0}});
  const Array whole = array({0, 1, 2, 3, 4});
  using Numbers = std::vector<double>;
  for (const std::int64_t k : {Most, Huge}) {
    SCOPED_TRACE(k);
    EXPECT_EQ(tril(x, k).to_vector(), x.to_vector());
    EXPECT_EQ(triu(x, -k).to_vector(), x.to_vector());
    EXPECT_EQ(sum(tril(x, -k)).item(), 0);
    EXPECT_EQ(sum(triu(x, k)).item(), 0);
    EXPECT_EQ(diagonal(x, k).size(), 0);
    EXPECT_EQ(diagonal(x, -k).size(), 0);
    EXPECT_TRUE(is_refused([&] { (void)diag(ones({2}), k).tensor(); }));
    EXPECT_TRUE(is_refused([&] { (void)diag(ones({2}), -k).tensor(); }));
    EXPECT_EQ(whole(slice({}, {}, k)).to_vector(), Numbers{0});
    EXPECT_EQ(whole(slice({}, {}, -k)).to_vector(), Numbers{4});
    EXPECT_EQ(whole(slice(-k, k, 2)).to_vector(), (Numbers{0, 2, 4}));
    EXPECT_TRUE(is_refused([&] { (void)whole[k]; }));
    EXPECT_TRUE(is_refused([&] { (void)whole[-k]; }));
  }
  EXPECT_EQ(sum(tril(x, Least)).item(), 0);
  EXPECT_EQ(triu(x, Least).to_vector(), x.to_vector());
  EXPECT_EQ(diagonal(x, Least).size(), 0);
  EXPECT_TRUE(is_refused([&] { (void)diag(ones({2}), Least).tensor(); }));
  EXPECT_EQ(whole(slice({}, {}, Least)).to_vector(), Numbers{4});
  EXPECT_EQ(whole(slice(Least, Most, 4)).to_vector(), (Numbers{0, 4}));
  EXPECT_TRUE(is_refused([&] { (void)whole[Least]; }));
  EXPECT_EQ(roll(whole, Least).size(), 5);
  EXPECT_EQ(rot90(x, Least).to_vector(), x.to_vector());
  // A place far outside is moved to the edge, whatever its dtype.
  const Array far = Tensor::of<std::int64_t>({}, {std::int64_t{1} << 32});
  EXPECT_EQ(dynamic_slice(whole, {far}, {2}).to_vector(), (Numbers{3, 4}));
}

TEST(ArrayAbsurdSizes, OfLoops) {
  const auto same = [](const Array&, const Array& c) { return c; };
  EXPECT_TRUE(is_refused([&] { (void)fori_loop(Least, Most, same, Array(1.0)); }));
  EXPECT_EQ(fori_loop(Most, Least, same, Array(1.0)).item(), 1);
  EXPECT_TRUE(is_refused([] { (void)matrix_power(ones({2, 3}), Most); }));
}

TEST(ArrayAbsurdSizes, OfPackedSplats) {
  EXPECT_TRUE(is_refused([] { (void)gaussian_splat_tile_count(8, 8, 0); }));
  EXPECT_TRUE(is_refused([] { (void)gaussian_splat_tile_count(Most, Most, 1); }));
  EXPECT_EQ(gaussian_splat_tile_count(Most, 1, Most), 1);
  EXPECT_TRUE(is_refused([] { (void)gaussian_splat_packed_grad_length(Most, Most); }));
  EXPECT_TRUE(is_refused([] {
    (void)gaussian_splat_prepare_length({.width = Most, .height = 1, .tile_size = 1}, 1);
  }));
}

TEST(ArrayAbsurdSizes, OfOptionsOfJit) {
  const auto f = [](const Array& x) { return x * 2; };
  const Array x = ones({3});
  EXPECT_TRUE(is_refused([&] { (void)jit(f, {.static_arguments = {7}})(x); }));
  EXPECT_TRUE(is_refused([&] { (void)jit(f, {.symbolic = {{7, {"n"}}}})(x); }));
  EXPECT_TRUE(is_refused([&] { (void)jit(f, {.symbolic = {{0, {Dim("n"), Dim("m")}}}})(x); }));
  EXPECT_TRUE(is_refused([&] { (void)jit(f, {.donate = {7}})(x); }));
}

TEST(ArrayAbsurdSizes, OfRandomNumbers) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Key key(1);
  EXPECT_TRUE(is_refused([&] { (void)randint(key, {2}, Least, Most); }));
  EXPECT_TRUE(is_refused([&] { (void)randint(key, {2}, 3, Least); }));
  EXPECT_TRUE(is_refused([&] { (void)bernoulli(key, nan, {2}); }));
  EXPECT_TRUE(is_refused([&] { (void)dropout(key, ones({2}), 2); }));
  EXPECT_TRUE(is_refused([&] { (void)uniform(key, {2}, nan, 1).tensor(); }));
  EXPECT_TRUE(is_refused([&] { (void)quantile(ones({3}), nan).tensor(); }));
}

}  // namespace
}  // namespace ricci::absurd_sizes_test
