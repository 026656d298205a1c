// Samples by number: where they come from, what is made of them, what is refused.
#include <cstring>
#include <map>
#include <optional>
#include <tuple>

#include <gtest/gtest.h>

#include "ricci/data.h"
#include "ricci/io/npy.h"
#include "ricci/support/error.h"

#include "dataset/refusal.h"
#include "support/scratch_folder.h"
#include "test_paths.h"

namespace ricci::dataset_test {
namespace {

using testing::refusal;
using testing::says;
using Numbers = std::vector<double>;

struct Pair {
  Array x, y;
};

Pair rows(std::int64_t n) {
  std::vector<float> x;
  std::vector<std::int32_t> y;
  for (std::int64_t i = 0; i < n; ++i) {
    x.push_back(static_cast<float>(i));
    x.push_back(static_cast<float>(10 * i));
    y.push_back(static_cast<std::int32_t>(i));
  }
  return {array(x, {n, 2}), array(y)};
}

TEST(Dataset, HasTheSlicesOfItsArrays) {
  const Dataset<Pair> data = rows(5);
  EXPECT_EQ(data.size(), 5);
  const Pair one = data[3];
  EXPECT_EQ(one.x.to_vector(), (Numbers{3, 30}));
  EXPECT_EQ(one.x.shape(), (Dims{2}));
  EXPECT_EQ(one.y.rank(), 0U);
  EXPECT_EQ(one.y.item(), 3);
  const Pair some = data.batch({4, 0, 4});
  EXPECT_EQ(some.x.to_vector(), (Numbers{4, 40, 0, 0, 4, 40}));
  EXPECT_EQ(some.y.to_vector(), (Numbers{4, 0, 4}));
  EXPECT_EQ(some.y.dtype(), DType::I32);
  EXPECT_EQ(data.all().y.to_vector(), (Numbers{0, 1, 2, 3, 4}));
}

TEST(Dataset, TakesAnyTree) {
  using Tree = std::tuple<Array, std::map<std::string, Array>, std::optional<Array>>;
  const Tree all{arange(3), {{"a", arange(6).reshape({3, 2})}}, std::nullopt};
  const Dataset<Tree> data = all;
  const Tree one = data[1];
  EXPECT_EQ(std::get<0>(one).item(), 1);
  EXPECT_EQ(std::get<1>(one).at("a").to_vector(), (Numbers{2, 3}));
  EXPECT_FALSE(std::get<2>(one).has_value());
  const Dataset<Array> plain = arange(4);
  EXPECT_EQ(plain.batch({2, 1}).to_vector(), (Numbers{2, 1}));
}

TEST(Dataset, TakesViewsApart) {
  const Dataset<Array> columns = arange(6).reshape({2, 3}).T();
  EXPECT_EQ(columns.batch({2, 0}).to_vector(), (Numbers{2, 5, 0, 3}));
  const Dataset<Array> same = zeros({4, 2});  // one element that is repeated
  EXPECT_EQ(same.batch({3, 1}).to_vector(), (Numbers{0, 0, 0, 0}));
  const Dataset<Array> none = zeros({0, 2});
  EXPECT_EQ(none.all().shape(), (Dims{0, 2}));
  const Dataset<Array> thin = zeros({3, 0});
  EXPECT_EQ(thin.batch({2, 0}).shape(), (Dims{2, 0}));
}

TEST(Dataset, IsTakenApart) {
  const Dataset<Pair> data = rows(10);
  EXPECT_EQ(data.take(3).all().y.to_vector(), (Numbers{0, 1, 2}));
  EXPECT_EQ(data.skip(8).all().y.to_vector(), (Numbers{8, 9}));
  EXPECT_EQ(data.slice(2, 5).skip(1).all().y.to_vector(), (Numbers{3, 4}));
  EXPECT_EQ(data.take(100).size(), 10);
  EXPECT_EQ(data.take(-1).size(), 0);
  EXPECT_EQ(data.slice(7, 3).size(), 0);
  EXPECT_EQ(data.select({9, 0}).all().y.to_vector(), (Numbers{9, 0}));
  const auto [first, rest] = data.split(0.7);
  EXPECT_EQ(first.size(), 7);
  EXPECT_EQ(rest.all().y.to_vector(), (Numbers{7, 8, 9}));
  const auto [a, b] = data.split(0.5, {.shuffle = 3});
  Numbers both = a.all().y.to_vector();
  const Numbers others = b.all().y.to_vector();
  EXPECT_NE(both, (Numbers{0, 1, 2, 3, 4}));
  both.insert(both.end(), others.begin(), others.end());
  std::ranges::sort(both);
  EXPECT_EQ(both, (Numbers{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(Dataset, MapsSamplesAndBatches) {
  const Dataset<Pair> data = rows(4);
  const auto sums = data.map([](const Pair& p) { return std::pair{sum(p.x), p.y}; });
  EXPECT_EQ(sums.batch({3, 1}).first.to_vector(), (Numbers{33, 11}));
  EXPECT_EQ(sums[2].second.item(), 2);
  const auto halves = data.map_batch([](const Pair& p) { return p.x / 2; });
  EXPECT_EQ(halves.batch({2}).to_vector(), (Numbers{1, 10}));
  const auto ragged =
      data.map([](const Pair& p) { return zeros({p.y.tensor().numbers<std::int64_t>()[0]}); });
  EXPECT_TRUE(says(refusal([&] { (void)ragged.batch({1, 2}); }), {"f32[2]", "f32[1]"}));
}

TEST(Dataset, SaysWhatIsWrong) {
  EXPECT_TRUE(says(refusal([] { const Dataset<Pair> d = Pair{zeros({3}), zeros({4})}; }),
                   {"'x' has 3 samples", "'y' has 4", "dataset_test.cpp"}));
  EXPECT_TRUE(says(refusal([] { const Dataset<Pair> d = Pair{zeros({3}), zeros({})}; }),
                   {"'y'", "without an axis"}));
  const Dataset<Pair> data = rows(3);
  EXPECT_TRUE(says(refusal([&] { (void)data[3]; }), {"no sample 3 in a dataset of 3"}));
  EXPECT_TRUE(says(refusal([&] { (void)data.batch({0, -1}); }), {"no sample -1"}));
  EXPECT_TRUE(says(refusal([&] { (void)data.split(1.5); }), {"split at 1.5"}));
}

TEST(Dataset, OrdersArePermutationsAndTakeNoMemory) {
  for (const std::int64_t n : {1, 2, 3, 7, 255, 256, 257, 1000, 70000}) {
    const Permutation order(n, 42);
    std::vector<bool> seen(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t at = order(i);
      ASSERT_TRUE(at >= 0 && at < n) << n;
      ASSERT_FALSE(seen[static_cast<std::size_t>(at)]) << n;
      seen[static_cast<std::size_t>(at)] = true;
    }
  }
  const std::int64_t huge = (std::int64_t{1} << 61) + 12345;
  EXPECT_LT(Permutation(huge, 1)(huge - 1), huge);
  // The same on every machine.
  const Permutation order(10, 7);
  Numbers given;
  for (std::int64_t i = 0; i < 10; ++i) given.push_back(static_cast<double>(order(i)));
  Numbers again;
  for (std::int64_t i = 0; i < 10; ++i) again.push_back(static_cast<double>(Permutation(10, 7)(i)));
  EXPECT_EQ(given, again);
}

// All 24 orders of four come up about equally often.
TEST(Dataset, OrdersAreEquallyLikely) {
  std::map<int, int> counts;
  constexpr int Draws = 24000;
  for (int seed = 0; seed < Draws; ++seed) {
    const Permutation order(4, static_cast<std::uint64_t>(seed));
    int code = 0;
    for (int i = 0; i < 4; ++i) code = code * 4 + static_cast<int>(order(i));
    ++counts[code];
  }
  EXPECT_EQ(counts.size(), 24U);
  double chi2 = 0;
  for (const auto& [code, count] : counts) chi2 += (count - 1000.0) * (count - 1000.0) / 1000.0;
  EXPECT_LT(chi2, 60);  // 23 degrees of freedom: once in 50,000
}

TEST(Dataset, WindowsOfTokensAndWhatComesNext) {
  const testing::ScratchFolder folder;
  std::vector<std::int32_t> tokens;
  for (int i = 0; i < 12; ++i) tokens.push_back(100 * i);
  for (const TokenWidth width : {TokenWidth::U16, TokenWidth::U32}) {
    const std::string file = folder.file("tokens.bin");
    write_tokens(file, tokens, width);
    const Dataset<TokenBatch> data = token_windows(file, {.window = 3, .width = width});
    ASSERT_EQ(data.size(), 3);  // 0..3, 3..6, 6..9; what is left has no token behind it
    EXPECT_EQ(data[1].x.to_vector(), (Numbers{300, 400, 500}));
    EXPECT_EQ(data[1].y.to_vector(), (Numbers{400, 500, 600}));
    EXPECT_EQ(data.all().x.dtype(), DType::I32);
    EXPECT_EQ(data.all().x.shape(), (Dims{3, 3}));
    const auto every = token_windows(file, {.window = 3, .stride = 1, .width = width});
    ASSERT_EQ(every.size(), 9);
    EXPECT_EQ(every[8].y.to_vector(), (Numbers{900, 1000, 1100}));
    const auto skipped = token_windows(file, {.window = 2, .width = width, .skip_bytes = 4});
    EXPECT_EQ(skipped[0].x.to_vector()[0], width == TokenWidth::U16 ? 200 : 100);
    EXPECT_EQ(token_windows(file, {.window = 12, .width = width}).size(), 0);
    EXPECT_EQ(token_windows(file, {.window = 11, .width = width}).size(), 1);
  }
  const auto memory = token_windows(tokens, {.window = 5, .vocabulary = 600});
  EXPECT_EQ(memory[0].y.to_vector(), (Numbers{100, 200, 300, 400, 500}));
  EXPECT_TRUE(says(refusal([&] { (void)memory[1]; }), {"token 6 is 600, more than 599"}));
}

TEST(Dataset, TokenFilesAreLookedAt) {
  const testing::ScratchFolder folder;
  const std::string file = folder.file("odd.bin");
  write_file(file, std::string_view("abc"));
  EXPECT_TRUE(
      says(refusal([&] { (void)token_windows(file, {.window = 1}); }), {"3 bytes", "odd.bin"}));
  EXPECT_TRUE(says(refusal([&] { (void)token_windows(file, {}); }), {"windows of 0"}));
  EXPECT_TRUE(says(refusal([&] { (void)token_windows(file, {.window = 1, .skip_bytes = 9}); }),
                   {"fewer than the 9"}));
  const std::vector<std::int32_t> large = {1, 70000};
  EXPECT_TRUE(says(refusal([&] { write_tokens(file, large); }), {"token 1 is 70000", "U32"}));
  write_file(file, std::string_view(""));
  EXPECT_EQ(token_windows(file, {.window = 1}).size(), 0);
  EXPECT_TRUE(says(refusal([&] { (void)token_windows(folder.file("none"), {.window = 1}); }),
                   {"cannot open"}));
}

TEST(Dataset, NumpyFilesAreMapped) {
  const testing::ScratchFolder folder;
  const Tensor x = Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  io::write_npy(folder.file("x.npy"), x);
  EXPECT_TRUE(map_npy(folder.file("x.npy")).tensor().identical(x));
  io::write_npz(folder.file("a.npz"), {{"x", x}, {"flag", Tensor::of<bool>({2}, {true, false})}});
  const std::map<std::string, Array> all = map_npz(folder.file("a.npz"));
  ASSERT_EQ(all.size(), 2U);
  EXPECT_TRUE(all.at("x").tensor().identical(x));
  EXPECT_EQ(all.at("flag").to_vector(), (Numbers{1, 0}));
  for (const char* name : {"fortran.npy", "u2.npy", "big_endian.npy", "b1.npy", "c16.npy",
                           "empty.npy", "scalar.npy", "f4.npy"}) {
    const std::string file = std::string(RICCI_SOURCE_DIR "/tests/fuzz/corpus/npy_fuzz/") + name;
    EXPECT_TRUE(map_npy(file).tensor().identical(io::read_npy(file))) << name;
  }
  for (const char* name : {"deflated.npz", "stored.npz", "descriptors.npz"}) {
    const std::string file = std::string(RICCI_SOURCE_DIR "/tests/fuzz/corpus/npz_fuzz/") + name;
    const auto mapped = map_npz(file);
    const io::NamedTensors read = io::read_npz(file);
    EXPECT_EQ(mapped.size(), read.size());
    for (const auto& [key, value] : read)
      EXPECT_TRUE(mapped.at(key).tensor().identical(value)) << name << key;
  }
  EXPECT_TRUE(says(refusal([&] { (void)map_npy(folder.file("a.npz")); }), {"a.npz"}));
}

}  // namespace
}  // namespace ricci::dataset_test
