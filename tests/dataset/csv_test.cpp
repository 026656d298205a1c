// Tables of text: what columns are, and where a fault is.
#include "ricci/io/csv.h"

#include <cmath>

#include <gtest/gtest.h>

#include "ricci/io/file.h"

#include "dataset/refusal.h"
#include "support/scratch_folder.h"

namespace ricci::io::csv_test {
namespace {

using ricci::testing::refusal;
using ricci::testing::says;
using Numbers = std::vector<double>;
using Texts = std::vector<std::string>;

std::string fault(const std::string& text, const CsvOptions& options = {}) {
  return refusal([&] { (void)parse_csv(text, options); });
}

TEST(DataCsv, ColumnsHaveTheTypeOfTheirFields) {
  const Csv t = parse_csv("a,b,c,d,e,f\n1,3000000000,1.5,true,x,\n-2,4,nan,false,,2\r\n");
  EXPECT_EQ(t.rows(), 2);
  EXPECT_EQ(t["a"].dtype(), DType::I32);
  EXPECT_EQ(t["a"].numbers<double>(), (Numbers{1, -2}));
  EXPECT_EQ(t["b"].dtype(), DType::I64);
  EXPECT_EQ(t["c"].dtype(), DType::F32);
  EXPECT_TRUE(std::isnan(t["c"].numbers<double>()[1]));
  EXPECT_EQ(t["d"].dtype(), DType::Bool);
  EXPECT_EQ(t.texts("e"), (Texts{"x", ""}));
  EXPECT_EQ(t["f"].dtype(), DType::F32);
  EXPECT_TRUE(std::isnan(t["f"].numbers<double>()[0]));
  EXPECT_EQ(t.matrix({"a", "c"}).type(), f32({2, 2}));
  EXPECT_EQ(t.matrix({"b", "a"}, DType::F64).numbers<double>(), (Numbers{3e9, 1, 4, -2}));
  EXPECT_EQ(t.matrix().dims(), (StaticDims{2, 5}));
}

TEST(DataCsv, QuotesHoldAnything) {
  const Csv t = parse_csv("name,n\n\"a, b\",1\n\"say \"\"hi\"\"\",2\n\"two\nlines\",3\n\"\",4\n");
  EXPECT_EQ(t.texts("name"), (Texts{"a, b", "say \"hi\"", "two\nlines", ""}));
  EXPECT_EQ(t["n"].numbers<double>(), (Numbers{1, 2, 3, 4}));
  const Categories kinds = parse_csv("k\nb\na\nb\n").categories("k");
  EXPECT_EQ(kinds.names, (Texts{"a", "b"}));
  EXPECT_EQ(kinds.codes.numbers<double>(), (Numbers{1, 0, 1}));
}

TEST(DataCsv, TakesWhatProgramsWrite) {
  EXPECT_EQ(parse_csv("\xEF\xBB\xBF"
                      "a\n1")
                .rows(),
            1);
  EXPECT_EQ(parse_csv("a\r1\r2").rows(), 2);
  EXPECT_EQ(parse_csv("a;b\n1;2\n", {.delimiter = ';'})["b"].item(), 2);
  EXPECT_EQ(parse_csv("1,2\n3,4\n", {.header = false})["1"].numbers<double>(), (Numbers{2, 4}));
  EXPECT_EQ(parse_csv("\n\na\n\n5\n\n")["a"].item(), 5);
  EXPECT_EQ(parse_csv("").rows(), 0);
  EXPECT_EQ(parse_csv("a,b\n").rows(), 0);
  EXPECT_EQ(parse_csv("a\n 1 \n+2\n1e400\n")["a"].numbers<double>()[1], 2);
  EXPECT_EQ(parse_csv("a\n1\n", {.types = {{"a", CsvType::Text}}}).texts("a"), (Texts{"1"}));
  EXPECT_EQ(parse_csv("a\n1\n", {.types = {{"a", CsvType::F64}}})["a"].dtype(), DType::F64);
}

TEST(DataCsv, FaultsHaveLineAndColumn) {
  EXPECT_TRUE(
      says(fault("a,b\n1,2\n3\n"), {"file.csv", "has 1 fields, the first one has 2", "3:1"}));
  EXPECT_TRUE(says(fault("a\n\"x\n\ny"), {"never closed", "2:1"}));
  EXPECT_TRUE(says(fault("a,b\n1,x\"y\n"), {"within a field", "2:4"}));
  EXPECT_TRUE(says(fault("a\n\"x\"y\n"), {"goes on behind its quote", "2:4"}));
  EXPECT_TRUE(says(fault("a,a\n"), {"two columns are named", "1:3"}));
  EXPECT_TRUE(says(fault("a,b\n1,2\n\"p\nq\",x\n", {.types = {{"b", CsvType::I32}}}),
                   {"\"x\" is no i32", "4:4"}));
  EXPECT_TRUE(says(fault("a\n", {.types = {{"z", CsvType::I32}}}), {"no column \"z\"", "a"}));
  EXPECT_TRUE(says(fault("a\n1\n", {.delimiter = '"'}), {"delimiter"}));
  EXPECT_TRUE(says(fault("a,b,c\n", {.max_columns = 2}), {"more than 2 fields"}));
  EXPECT_TRUE(says(fault("a\nxxxx\n", {.max_field_bytes = 3}), {"4 bytes, more than 3"}));
  const Csv t = parse_csv("a,b\n1,x\n");
  EXPECT_TRUE(says(refusal([&] { (void)t["c"]; }), {"no column \"c\"", "a, b"}));
  EXPECT_TRUE(says(refusal([&] { (void)t["b"]; }), {"is text"}));
  EXPECT_TRUE(says(refusal([&] { (void)t.texts("a"); }), {"is i32"}));
  const ricci::testing::ScratchFolder folder;
  write_file(folder.file("bad.csv"), std::string_view("a\n\"1"));
  EXPECT_TRUE(says(refusal([&] { (void)read_csv(folder.file("bad.csv")); }), {"bad.csv:2:1"}));
}

}  // namespace
}  // namespace ricci::io::csv_test
