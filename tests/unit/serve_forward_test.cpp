// Calls of a program that wait together, and pictures as inputs of them.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ricci/io/image.h"
#include "ricci/ir/text.h"
#include "ricci/support/error.h"

#include "io/json_value.h"
#include "serve/service/joined_program.h"
#include "serve/service/picture_json.h"

namespace ricci::serve::serve_forward_test {
namespace {

JoinedProgram program(const std::string& text, KeptValues kept = {}) {
  return {parse_graph(text), Session(), std::move(kept)};
}

Tensor row(std::int64_t rows, double first) {
  std::vector<double> out;
  for (std::int64_t i = 0; i < rows * 2; ++i) out.push_back(first + static_cast<double>(i) / 8);
  return Tensor::from_numbers<double>(f32({rows, 2}), out);
}

// A mean over all rows: rows of different calls must not meet.
constexpr const char* Centred = R"(
graph @centred {
  %x = input "x" : f32[calls, 2]
  %s = input "s" : f32[]
  %w = param "w" : f32[2, 3]
  %m = reduce %x {op = mean, axes = [0], keep_dim = true}
  %d = sub %x, %m
  %y = matmul %d, %w
  %z = mul %y, %s
  return %z, %m
})";

TEST(ServeForward, CallsThatRunTogetherGiveWhatTheyGiveAlone) {
  const Tensor w = Tensor::of<float>({2, 3}, {1, -2, 3, 0.5F, 7, -1});
  JoinedProgram joined = program(Centred, {{"w", w}});
  std::vector<Feeds> calls;
  for (int i = 0; i < 4; ++i) {
    calls.push_back({{"x", row(3, i)}, {"s", Tensor::of<float>({}, {static_cast<float>(i)})}});
  }
  std::vector<const Feeds*> together;
  for (const Feeds& call : calls) {
    EXPECT_TRUE(joined.can_join(calls[0], call));
    together.push_back(&call);
  }
  const std::vector<Outputs> all = joined.run(together, {});
  ASSERT_EQ(all.size(), 4U);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const Outputs alone = joined.run({&together[i], 1}, {}).at(0);
    ASSERT_EQ(all[i].size(), alone.size());
    for (std::size_t k = 0; k < alone.size(); ++k) {
      EXPECT_EQ(all[i][k].type(), alone[k].type());
      const std::vector<double> got = all[i][k].numbers<double>();
      const std::vector<double> wanted = alone[k].numbers<double>();
      for (std::size_t j = 0; j < wanted.size(); ++j) EXPECT_NEAR(got[j], wanted[j], 1e-5);
    }
  }
  const Feeds longer{{"x", row(4, 0)}, {"s", Tensor::of<float>({}, {1})}};
  EXPECT_FALSE(joined.can_join(calls[0], longer)) << "other sizes";
  Feeds own = calls[0];
  own.emplace("w", w);
  EXPECT_FALSE(joined.can_join(own, own)) << "weights of its own";
}

TEST(ServeForward, CallsWithDrawsOfTheirOwnRunAlone) {
  JoinedProgram joined = program(R"(
graph @noise {
  %x = input "x" : f32[n, 2]
  %u = rng_uniform %x
  %y = add %x, %u
  return %y
})");
  const Feeds call{{"x", row(1, 0)}};
  EXPECT_FALSE(joined.can_join(call, call));
}

TEST(ServeForward, ReadsBase64AsItIsWritten) {
  EXPECT_EQ(from_base64(""), "");
  EXPECT_EQ(from_base64("Zm9vYmFy"), "foobar");
  EXPECT_EQ(from_base64("Zm9vYg=="), "foob");
  EXPECT_EQ(from_base64("Zm9vYmE="), "fooba");
  EXPECT_EQ(from_base64("Zm9vYmE"), "fooba");
  EXPECT_EQ(from_base64("+/+/"), "\xFB\xFF\xBF");
  for (const char* wrong : {"Z", "Zm9v=", "Zm9vYg=", "Zm9vYg===", "====", "Zm 9", "Zm-_", "=Zm9"}) {
    EXPECT_FALSE(from_base64(wrong)) << wrong;
  }
}

// White, 1 × 1, grey.
constexpr const char* White =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2"
    "FAAAAABJRU5ErkJggg==";

TEST(ServeForward, PicturesAreInputs) {
  if (!io::reads_images()) GTEST_SKIP() << "this build reads no pictures";
  const auto read = [](const std::string& text, const Type& type) {
    io::JsonCursor json(text);
    if (!takes_pictures(type) || !pictures_come(json, text)) return std::string("none");
    try {
      const Tensor t = read_pictures(json, text, type);
      json.end();
      return t.to_string();
    } catch (const UserError& e) {
      return e.diagnostic().message;
    }
  };
  const Type grey = f32({Dim::symbol("n"), 1, 1, 2});
  const std::string one = std::string("\"") + White + "\"";
  EXPECT_EQ(read(one, grey), "f32[1, 1, 1, 2] [[[[1.0, 1.0]]]]");
  EXPECT_EQ(read(" [ " + one + ", " + one + "]", grey),
            "f32[2, 1, 1, 2] [[[[1.0, 1.0]]], [[[1.0, 1.0]]]]");
  EXPECT_EQ(read(one, f32({1, 3, 1, 1})), "f32[1, 3, 1, 1] [[[[1.0]], [[1.0]], [[1.0]]]]");
  EXPECT_EQ(read("[1, 2]", grey), "none");
  EXPECT_EQ(read(one, f32({"n", 2, 1, 1})), "none") << "no picture has two channels";
  EXPECT_EQ(read(one, f32({"n", 4})), "none");
  EXPECT_NE(read(one, f32({2, 1, 1, 1})).find("takes 2 pictures, and here are 1"),
            std::string::npos);
  EXPECT_NE(read("\"a*c\"", grey).find("in base64"), std::string::npos);
  EXPECT_NE(read("\"AAAA\"", grey).find("PNG"), std::string::npos) << read("\"AAAA\"", grey);
  EXPECT_NE(read("[" + one + ", " + one + "]", f32({"n", 1, 2048, 2048})).find("4194304 numbers"),
            std::string::npos);
  EXPECT_NE(read("[" + one + ", 1]", grey).find("\""), std::string::npos);
}

}  // namespace
}  // namespace ricci::serve::serve_forward_test
