// The ranges all attributes have: no op takes a number that arithmetic on it could not stand.
#include <cmath>
#include <limits>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/op/table.h"

#include "ops/cases.h"

namespace ricci::testing {
namespace {

constexpr std::int64_t Most = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t Least = std::numeric_limits<std::int64_t>::min();

// The text code of the refusal; empty when the case is accepted.
std::string refusal(Case c, const std::vector<NamedAttr>& attrs, DType dtype) {
  try {
    c.op = descriptor(c.op->kind()).make(attrs);
    (void)build_case(c, dtype);
  } catch (const UserError& e) {
    return e.diagnostic().detail;
  }
  return {};
}

DType first_dtype(const Case& c) {
  for (const DType d : AllDTypes) {
    if (c.dtypes.has(d)) return d;
  }
  return DType::F32;
}

// `value`, with every number in it replaced; nothing when it holds none of that kind.
std::optional<AttrValue> replaced(const AttrValue& value, const AttrValue& number) {
  const bool real = number.get<Real>() != nullptr;
  if (real ? value.get<Real>() != nullptr : value.get<std::int64_t>() != nullptr) return number;
  if (const auto* list = value.get<std::vector<AttrValue>>(); list != nullptr && !list->empty()) {
    std::vector<AttrValue> out;
    for (const AttrValue& v : *list) {
      const auto now = replaced(v, number);
      if (!now) return std::nullopt;
      out.push_back(*now);
    }
    return AttrValue{std::move(out)};
  }
  if (const auto* e = value.get<Enumerator>(); e != nullptr && e->args.size() == 1) {
    if (const auto now = replaced(e->args[0], number))
      return AttrValue{Enumerator{e->name, {*now}}};
  }
  return std::nullopt;
}

// Calls `visit(op, field, refusal)` for every number of every attribute of every accepted case,
// with the attribute replaced by `number`.
template <class F>
std::size_t for_each_number(const AttrValue& number, F&& visit) {
  std::size_t count = 0;
  for (const OpDescriptor& d : all_ops()) {
    for (const Case& c : cases_for(d.kind)) {
      if (!c.rejects.empty() || c.dtypes == DTypeSet{}) continue;
      for (std::size_t i = 0; i < d.fields.size(); ++i) {
        std::vector<NamedAttr> attrs = c.op->attrs();
        const auto now = replaced(attrs[i].value, number);
        if (!now || d.fields[i].is_axis) continue;
        attrs[i].value = *now;
        SCOPED_TRACE(fmt::format("{} case '{}', {}", d.info->name, c.name, attrs[i].name));
        visit(d, d.fields[i], refusal(c, attrs, first_dtype(c)));
        ++count;
      }
    }
  }
  return count;
}

TEST(OpRanges, NoIntegerBeyondTheLargestSize) {
  for (const std::int64_t number : {Most, Least, LargestSize + 1, -LargestSize - 1}) {
    const std::size_t tried = for_each_number(
        {number}, [&](const OpDescriptor& d, const FieldInfo& field, const std::string& refused) {
          if (field.range == Range::Any) return;
          EXPECT_FALSE(refused.empty()) << number << " is accepted";
          // Filling in a -1 may overflow before anything else is looked at.
          if (d.kind == OpKind::Reshape && refused == "reshape") return;
          EXPECT_EQ(refused, fmt::format("{}_range", d.info->name));
        });
    EXPECT_GT(tried, 500U);
  }
}

TEST(OpRanges, KeysAndSeedsAreAnyInteger) {
  std::size_t keys = 0;
  for (const std::int64_t number : {Most, Least}) {
    for_each_number({number},
                    [&](const OpDescriptor&, const FieldInfo& field, const std::string& refused) {
                      if (field.name != "key" && field.name != "op_seed" && field.name != "seed")
                        return;
                      EXPECT_EQ(refused, "") << number;
                      ++keys;
                    });
  }
  EXPECT_GT(keys, 10U);
}

TEST(OpRanges, RealsAreFiniteAndNormal) {
  const double odd[] = {std::nan(""), INFINITY, -INFINITY, 5e-324, -1e-310};
  for (const double number : odd) {
    const std::size_t tried = for_each_number(
        {Real(number)}, [&](const OpDescriptor& d, const FieldInfo&, const std::string& refused) {
          EXPECT_EQ(refused, fmt::format("{}_range", d.info->name)) << number;
        });
    EXPECT_GT(tried, 50U);
  }
}

TEST(OpRanges, RealsAreWhatTheOpComputesIn) {
  const auto accepts = [](DType dtype, double eps) {
    Graph g("norm");
    const Value x = g.input("x", {dtype, {2, 3}});
    const Value v = g.input("v", {dtype, {3}});
    try {
      (void)layer_norm(x, v, v, {.eps = eps});
      return true;
    } catch (const UserError& e) {
      EXPECT_EQ(e.diagnostic().detail, "layer_norm_range") << e.what();
      return false;
    }
  };
  EXPECT_TRUE(accepts(DType::F32, 0));
  EXPECT_TRUE(accepts(DType::F32, 1.2e-38));
  EXPECT_FALSE(accepts(DType::F32, 1e-39));
  EXPECT_FALSE(accepts(DType::BF16, 1e39));
  EXPECT_TRUE(accepts(DType::F64, 1e-300));
  EXPECT_TRUE(accepts(DType::F64, 1e300));
}

TEST(OpRanges, SizesOfResults) {
  Graph g("sizes");
  const auto detail = [&](Type type) -> std::string {
    try {
      (void)g.input(g.unique_name("x"), std::move(type));
    } catch (const UserError& e) {
      return e.diagnostic().detail;
    }
    return {};
  };
  EXPECT_EQ(detail(f32({LargestSize})), "");
  EXPECT_EQ(detail(f32({0, LargestSize})), "");
  EXPECT_EQ(detail(f32({LargestSize + 1})), "input_range");
  EXPECT_EQ(detail(f32({0, Most})), "input_range");
  // Strides of what is empty are computed too.
  EXPECT_EQ(detail(f32({0, LargestSize, LargestSize})), "input_size");
  const Value x = g.input("wide", f32({0, LargestSize}));
  try {
    (void)concat(std::array{x, x}, {.axis = 1});
    ADD_FAILURE() << "was accepted";
  } catch (const UserError& e) {
    EXPECT_EQ(e.diagnostic().detail, "concat_size");
  }
}

}  // namespace
}  // namespace ricci::testing
