// Inputs of traced functions are found by their position, whatever the fields are called.
#include <set>

#include <gtest/gtest.h>

#include "ricci/array.h"

namespace ricci::input_names_test {
namespace {

struct Alike {
  Array x, tangent_x, d_output, captured;
};
Alike ones_of(double v) { return {array({v}), array({v + 1}), array({v + 2}), array({v + 3})}; }
const auto product = [](const Alike& a) {
  return sum(a.x * a.tangent_x * a.d_output * a.captured);
};

TEST(ArrayInputNames, FieldsMayBeCalledAsDerivativesAre) {
  const auto [value, tangent] = jvp(product, ones_of(1), ones_of(1));
  EXPECT_EQ(value.item(), 24);
  EXPECT_EQ(tangent.item(), 4 * 24);
  const auto pull = vjp(product, ones_of(1));
  EXPECT_EQ(pull.map(Array(1.0F)).tangent_x.item(), 12);
  const auto push = linearize(product, ones_of(1));
  EXPECT_EQ(push.map(ones_of(1)).item(), 4 * 24);
  EXPECT_EQ(jvp(grad(product), ones_of(1), ones_of(0)).second.x.item(), 0 * 24 + 12 + 2 * 8 + 18);
}

TEST(ArrayInputNames, RulesOfOnesOwnFindTheirCaptures) {
  const auto outer = [](const Alike& a) {
    const auto f = custom_vjp([&](const Alike& b) { return product(b) * a.d_output * a.x; },
                              [](const Alike& b, const Array&, const Array& c) {
                                return Alike{b.x * c, b.x * c, b.x * c, b.x * c};
                              });
    return sum(f(a));
  };
  // By captures: 24·(x + d_output) along 1; by the rule 1·1·1·3 each.
  EXPECT_EQ(grad(outer)(ones_of(1)).x.item(), 24 * 3 + 1);
  const auto forward = [](const Alike& a) {
    const auto f =
        custom_jvp([&](const Alike& b) { return product(b) * a.tangent_x; },
                   [](const Alike& b, const Alike& t) { return sum(b.x * t.x, {}, true); });
    return sum(f(a));
  };
  EXPECT_EQ(jvp(forward, ones_of(1), ones_of(1)).second.item(), 24 * 2 + 1);
}

TEST(ArrayInputNames, AreAllDifferent) {
  struct First {
    Array w;
  };
  const std::map<std::string, Array> odd = {{"w", array({2.0})}, {"w.2", array({3.0})}};
  const auto f = [](const First& a, const std::map<std::string, Array>& b, const First& c) {
    return sum(a.w * b.at("w") * b.at("w.2") * c.w);
  };
  const First one{array({1.0})};
  const First four{array({4.0})};
  const Graph g = trace(f, one, odd, four);
  std::set<std::string> names;
  for (const NodeId id : g.leaves()) names.insert(*g.node(id).leaf_name());
  EXPECT_EQ(names.size(), 4U);
  EXPECT_EQ(grad<1>(f)(one, odd, four).at("w.2").item(), 8);
}

}  // namespace
}  // namespace ricci::input_names_test
