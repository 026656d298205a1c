// JSON as values, with places for what is wrong.
#include <string>

#include <gtest/gtest.h>

#include "ricci/support/error.h"

#include "io/json_value.h"

namespace ricci::io::io_json_value_test {
namespace {

template <class F>
std::string refusal(F f) {
  try {
    (void)f();
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

TEST(IoJsonValue, ReadsAllKinds) {
  const JsonValue v =
      parse_json(R"( {"a": [1, -2.5e3, true,false , null], "b": "x\n\u00e9", "c":{}} )");
  const auto& a = v.at("a").array();
  EXPECT_EQ(a[0].integer(), 1);
  EXPECT_EQ(a[1].number(), -2500);
  EXPECT_TRUE(a[2].boolean());
  EXPECT_FALSE(a[3].boolean());
  EXPECT_TRUE(a[4].is_null());
  EXPECT_EQ(v.at("b").string(), "x\n\xC3\xA9");
  EXPECT_TRUE(v.at("c").object().empty());
  EXPECT_EQ(v.find("d"), nullptr);
  EXPECT_EQ(parse_json(" -7").integer(), -7);
  EXPECT_EQ(parse_json("[1]").array()[0].offset(), 1U);
}

TEST(IoJsonValue, SaysWhere) {
  const auto said = [](std::string_view text) { return refusal([&] { return parse_json(text); }); };
  for (const char* text :
       {"", "{", "[1,]", "{\"a\" 1}", "nul", "01", "[1] 2", "\"\\x\"", "{\"a\":1,\"a\":2}"}) {
    EXPECT_NE(said(text).find("error[file.json]"), std::string::npos) << text;
  }
  EXPECT_NE(said("[1, 2, x]").find("byte 7"), std::string::npos) << said("[1, 2, x]");
  EXPECT_NE(said(std::string(100, '[')).find("nests"), std::string::npos);
  const JsonValue v = parse_json(R"({"a": 1.5, "b": "x"})");
  EXPECT_NE(refusal([&] { return v.at("a").integer(); }).find("byte 6"), std::string::npos);
  EXPECT_NE(refusal([&] { return v.at("b").number(); }).find("a number is expected, not a string"),
            std::string::npos);
  EXPECT_NE(refusal([&] { return v.at("c").number(); }).find("there is no \"c\""),
            std::string::npos);
  EXPECT_NE(refusal([&] { return parse_json("1e999").number(); }).find("no number that a double"),
            std::string::npos);
}

TEST(IoJsonValue, WritesWhatIsReadAgain) {
  const std::string odd = "q\"\\\n\x01/\xC3\xA9\xF0\x9F\x98\x80";
  EXPECT_EQ(parse_json(json_string(odd)).string(), odd);
  EXPECT_EQ(parse_json(json_string("a\xFF\xC3z")).string(), "a\xEF\xBF\xBD\xEF\xBF\xBDz");
  for (const double x : {0.1, -1e300, 5e-324, 3.0}) {
    EXPECT_EQ(parse_json(json_number(x)).number(), x);
  }
  EXPECT_EQ(json_number(1.0 / 0.0), "null");
}

}  // namespace
}  // namespace ricci::io::io_json_value_test
