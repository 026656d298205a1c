// Line ends, byte-order marks, bytes that are no characters, commas too many: each has one meaning.
#include <gtest/gtest.h>

#include "ricci/ir/text.h"
#include "ricci/support/text.h"

namespace ricci::ir_odd_text_test {
namespace {

std::string error_of(const std::string& text) {
  try {
    (void)parse(text, {.file = "net.ric"});
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

void expect_error(const std::string& text, const std::string& part) {
  const std::string message = error_of(text);
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

const std::string Plain =
    "graph @g {\n  %x = input \"x\" : f32[2]\n  %y = neg %x // why\n  return %y\n}\n";

TEST(OddText, LineEndsAndMarksDoNotMatter) {
  std::string windows;
  for (const char c : Plain) windows += c == '\n' ? std::string("\r\n") : std::string(1, c);
  EXPECT_EQ(parse(windows), parse(Plain));
  EXPECT_EQ(parse("\xEF\xBB\xBF" + Plain), parse(Plain));
  EXPECT_EQ(parse(Plain.substr(0, Plain.size() - 1)), parse(Plain));
  EXPECT_EQ(parse(Plain + "// no line end"), parse(Plain));
  EXPECT_TRUE(parse("").empty());
  EXPECT_TRUE(parse("\n\n// nothing").empty());
}

TEST(OddText, PlacesAreRightWithOddLineEnds) {
  expect_error("graph @g {\r\n  %y = tahn %x\r\n}", "--> net.ric:2:8    %y = tahn %x\n");
}

TEST(OddText, CommasSeparateAndEndNothing) {
  const std::string x = "graph @g { %x = input \"x\" : f32[2]\n";
  expect_error(x + "return %x, }", "expected a value");
  expect_error(x + "%y = add %x, return %x }", "expected a value");
  expect_error(x + "%y, = neg %x return %x }", "expected '%name");
  expect_error(x + "%y = reshape %x {new_shape = [1, 2],} return %x }", "'}' follows a comma");
  expect_error(x + "%y = reshape %x {new_shape = [1, 2,]} return %x }", "']' follows a comma");
  expect_error(x + "%y = neg %x : f32[2,] return %x }", "']' follows a comma");
  expect_error(x + "%y = neg %x : f32[2], return %x }", "'return' is not a dtype");
  expect_error(x + "%y = constant [1, 2,] : f32[2] return %x }", "']' follows a comma");
  expect_error(x + "%y = input \"y\" {role = d_output(0,)} : f32[2] return %x }",
               "')' follows a comma");
  expect_error(x + "%y = reshape %x {, new_shape = [2]} return %x }",
               "expected 'attribute = value'");
  expect_error(x + "%y = reshape %x {new_shape = [,]} return %x }", "expected an attribute value");
}

TEST(OddText, NothingIsGivenTwice) {
  const std::string x = "graph @g { %x = input \"x\" : f32[2]\n";
  expect_error(x + "%y = reshape %x {new_shape = [2], new_shape = [2]} return %y }", "given twice");
  expect_error(x + "%x = neg %x return %x }", "%x is already defined");
  expect_error(x + "%y = input \"x\" : f32[2] return %x }", "already has an input or param 'x'");
  expect_error("graph @g { return } graph @g { return }", "already has a graph @g");
  expect_error("graph @g { return } graph @\"\\x67\" { return }", "already has a graph @g");
}

TEST(OddText, NamesAreNotEmpty) {
  expect_error("graph @g { %x = input \"\" : f32[] return %x }", "'input' needs a name");
  expect_error("graph @g { % = input \"x\" : f32[] return }", "a value name must follow '%'");
  expect_error("graph @ { return }", "a graph needs a name");
  EXPECT_EQ(parse("graph @\"\" { return }")[0].name(), "") << "as Graph(\"\") in C++";
}

TEST(OddText, BytesThatAreNoCharactersAreRefusedWhereTheyStand) {
  expect_error("graph @g {\n  // \xFF\n return }", R"(the byte "\xff" is not UTF-8)");
  expect_error("graph @g {\n  // \xFF\n return }", "--> net.ric:2:6    // ?");
  expect_error("graph @\"\xC3\" { return }", "is not UTF-8");
  for (const char* bad : {"\xC0\xAF", "\xE0\x80\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\x80"}) {
    expect_error(std::string("graph @\"") + bad + "\" { return }", "is not UTF-8");
  }
  EXPECT_EQ(parse("graph @\"\xC3\xA4 \xE2\x82\xAC \xF0\x9F\x98\x80\" { return }")[0].name(),
            "\xC3\xA4 \xE2\x82\xAC \xF0\x9F\x98\x80");
  expect_error(std::string("graph @g { return }\0", 20), R"(the character "\x00" has no meaning)");
  expect_error(std::string("graph @\"a\0b\" { return }", 23), "a string holds a control character");
  expect_error("graph @\"a\rb\" { return }", "a string holds a control character");
}

TEST(OddText, AnyNameSurvivesPrinting) {
  std::string every;
  for (int c = 0; c < 256; ++c) every += static_cast<char>(c);
  for (const std::string& name :
       {every, std::string("\xC3"), std::string("a\xE2\x82"), std::string("\0", 1)}) {
    Graph g(name);
    g.set_outputs({g.input(name, f32())});
    const std::string text = print(g);
    EXPECT_EQ(valid_utf8_prefix(text), text.size());
    const Graph again = parse_graph(text);
    EXPECT_EQ(again, g);
    EXPECT_EQ(again.name(), name);
  }
}

TEST(OddText, NamesAreMeasuredAsTheyAreMeant) {
  const std::string tabs(4096, '\t');  // printed as two characters each
  const Graph g = parse_graph("graph @\"" + tabs + "\" { return }");
  EXPECT_EQ(parse_graph(print(g)), g);
  expect_error("graph @\"" + tabs + "\t\" { return }", "this name has 4097 bytes");
}

TEST(OddText, NumbersBeyondTheirTypesAreRefused) {
  expect_error("ricci 99999999999999999999 graph @g { return }", "not a 64-bit integer");
  expect_error("graph @g { %x = input \"x\" : f32[99999999999999999999] return }",
               "not a 64-bit integer");
  expect_error("graph @g { %x = input \"x\" : f32[0x10] return }", "not a 64-bit integer");
  expect_error("graph @g { %c = constant 1e999 : f64[] return }", "is not a number");
  expect_error("graph @g { %c = constant nan(1) : f32[] return }", "expected bits");
  expect_error("graph @g { %c = constant nan(nan(0x7fc00001)) : f32[] return }", "expected ')'");
  expect_error("graph @g { %c = constant ((1, 2), 3) : c64[] return }", "expected an element");
  expect_error("graph @g { %c = constant (1, 2) : f32[] return }",
               "a complex number is no element of f32");
}

}  // namespace
}  // namespace ricci::ir_odd_text_test
