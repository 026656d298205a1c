// Programs are looked up by hashes of what they do, and compared with it: expressions whose hashes
// happen to be equal have programs of their own.
#include <array>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "ricci/array.h"
#include "ricci/build/build.h"

#include "array/node.h"

namespace ricci::equal_hashes_test {
namespace {

using Numbers = std::vector<double>;

// An expression that waits, with another hash than its own.
Array with_hash(Array x, std::uint64_t hash) {
  x.node()->identity = hash;
  return x;
}

TEST(ArrayEqualHashes, OfOpsAreToldApart) {
  const Array x = array({1.0, 4.0}).eval();
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(with_hash(sqrt(x), 42).to_vector(), (Numbers{1, 2}));
    EXPECT_EQ(with_hash(square(x), 42).to_vector(), (Numbers{1, 16}));
  }
}

TEST(ArrayEqualHashes, OfAttributesAreToldApart) {
  const Array x = array({{1.0, 2.0}, {3.0, 4.0}}).eval();
  EXPECT_EQ(with_hash(sum(x, 0), 43).to_vector(), (Numbers{4, 6}));
  EXPECT_EQ(with_hash(sum(x, 1), 43).to_vector(), (Numbers{3, 7}));
}

TEST(ArrayEqualHashes, OfFunctionsAreToldApart) {
  const auto function = [](bool twice) {
    Graph g("f");
    const Value x = g.input("x", f32({2}));
    g.set_outputs({twice ? x + x : x * x});
    auto callee = std::make_shared<detail::Callee>(std::move(g));
    callee->hash = 44;
    return callee;
  };
  const Array x = array({3.0, 5.0}).eval();
  const auto call = [&](bool twice) {
    return detail::call_node(function(twice), {x}, Here::current())[0].to_vector();
  };
  EXPECT_EQ(call(true), (Numbers{6, 10}));
  EXPECT_EQ(call(false), (Numbers{9, 25}));
}

TEST(ArrayEqualHashes, OfBodiesAreToldApart) {
  const Array x = array({1.0, 2.0}).eval();
  const auto run = [&](double factor) {
    const Array last = fori_loop(0, 3, [&](const Array&, const Array& v) { return v * factor; }, x);
    return with_hash(last, 45).to_vector();
  };
  EXPECT_EQ(run(2), (Numbers{8, 16}));
  EXPECT_EQ(run(3), (Numbers{27, 54}));
}

}  // namespace
}  // namespace ricci::equal_hashes_test
