// Texts as tokens: those the Python package `tokenizers` makes, any bytes back as they were, and
// files that are damaged or of another kind.
#include "ricci/data/tokenizer.h"

#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "ricci/io/file.h"

#include "dataset/refusal.h"
#include "property/random.h"
#include "support/scratch_folder.h"
#include "test_paths.h"

namespace ricci::tokenizer_test {
namespace {

using testing::refusal;
using testing::says;
using Tokens = std::vector<std::int32_t>;

std::string value_file(const std::string& name) {
  return std::string(RICCI_SOURCE_DIR "/tests/dataset/values/") + name;
}

std::string text_of(const std::string& path) {
  const std::vector<std::byte> bytes = io::read_file(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string from_hex(const std::string& hex) {
  std::string out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return out;
}

class TokenizerAgreement : public ::testing::TestWithParam<const char*> {};

TEST_P(TokenizerAgreement, WithThePythonPackage) {
  const std::string name = GetParam();
  const Tokenizer t = Tokenizer::load(value_file("tokenizer_" + name + ".json"));
  const Tokenizer again = Tokenizer::from_json(t.to_json());
  std::ifstream lines(value_file("tokenizer_" + name + ".txt"));
  std::string line;
  int count = 0;
  while (std::getline(lines, line)) {
    const std::size_t colon = line.find(':');
    const std::string text = from_hex(line.substr(0, colon));
    std::istringstream numbers(line.substr(colon + 1));
    Tokens expected;
    for (std::int32_t id = 0; numbers >> id;) expected.push_back(id);
    EXPECT_EQ(t.encode(text), expected) << text;
    EXPECT_EQ(again.encode(text), expected) << text;
    ++count;
    const std::size_t decoded = line.find(':', colon + 1);
    if (decoded == std::string::npos) continue;
    const std::string shown = from_hex(line.substr(decoded + 1));
    EXPECT_EQ(t.decode(expected), shown) << text;
    EXPECT_EQ(again.decode(expected), shown) << text;
  }
  EXPECT_EQ(count, 67);
}
INSTANTIATE_TEST_SUITE_P(Data, TokenizerAgreement,
                         ::testing::Values("plain", "prefix", "nfc", "lines", "digits", "llama2",
                                           "metaspace", "first", "never"));

TEST(DataTokenizer, TrainsToWhatThePythonPackageTrains) {
  const Tokenizer theirs = Tokenizer::load(value_file("tokenizer_plain.json"));
  const Tokenizer ours = Tokenizer::train(text_of(value_file("tokenizer_corpus.txt")),
                                          {.vocabulary = 480, .special = {"<|end|>"}});
  ASSERT_EQ(ours.size(), theirs.size());
  for (std::int32_t id = 0; id < ours.size(); ++id)
    EXPECT_EQ(ours.bytes(id), theirs.bytes(id)) << id;
  EXPECT_EQ(ours.to_json(), Tokenizer::from_json(theirs.to_json()).to_json());
}

TEST(DataTokenizer, AnyBytesComeBack) {
  const Tokenizer plain;
  const Tokenizer trained = Tokenizer::load(value_file("tokenizer_plain.json"));
  const Tokenizer characters = Tokenizer::load(value_file("tokenizer_llama2.json"));
  EXPECT_EQ(plain.size(), 256);
  std::string all;
  for (int b = 0; b < 256; ++b) all += static_cast<char>(b);
  for (const Tokenizer* t : {&plain, &trained, &characters}) {
    EXPECT_EQ(t->decode(t->encode(all)), all);
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
      testing::Rng rng(seed);
      std::string text;
      for (std::size_t i = rng.below(40); i-- > 0;) {
        text += rng.below(3) == 0 ? all[rng.below(256)]
                                  : std::string(" the\xC3\xA4'sq\n1")[rng.below(11)];
      }
      EXPECT_EQ(t->decode(t->encode(text)), text) << seed;
      EXPECT_EQ(t->decode(t->encode(text, false)), text) << seed;
    }
  }
}

TEST(DataTokenizer, SpecialTokensAreTextWhereTheyAreNotLookedFor) {
  const Tokenizer t = Tokenizer::train("abc abc", {.vocabulary = 260, .special = {"<s>"}});
  EXPECT_EQ(t.encode("<s>")[0], 0);
  EXPECT_EQ(t.encode("<s>").size(), 1U);
  EXPECT_EQ(t.encode("<s>", false).size(), 3U);
  EXPECT_EQ(t.decode(Tokens{0, *t.find("a")}, true), "a");
  EXPECT_EQ(t.find("<s>"), 0);
  EXPECT_FALSE(t.find("zz"));
}

TEST(DataTokenizer, LongWordsTakeTheirTime) {
  const Tokenizer t = Tokenizer::train("aaaa aaaaaaaa", {.vocabulary = 264});
  const std::string text(1 << 20, 'a');
  EXPECT_EQ(t.decode(t.encode(text)), text);
}

// Tokens as a reader sees them one by one, and as they are asked for.
TEST(DataTokenizer, TokensOfCharactersAreBytes) {
  const Tokenizer t = Tokenizer::load(value_file("tokenizer_llama2.json"));
  const Tokens tokens = t.encode(" quick\n\U0001F642 the");
  std::string all;
  for (const std::int32_t id : tokens) {
    all += t.bytes(id);
    EXPECT_EQ(t.find(t.bytes(id)), id) << t.bytes(id);
  }
  EXPECT_EQ(all, "  quick\n\U0001F642 the") << "a text begins with a space of the file's";
  EXPECT_EQ(t.find("<s>"), 1);
  EXPECT_EQ(std::vector<std::int32_t>(t.before().begin(), t.before().end()), Tokens{1});
  // A long text of one word goes quickly, and one of many words as if it were whole.
  std::string text;
  for (int i = 0; i < 20000; ++i) text += i % 7 == 0 ? "  the\n" : " thinking";
  EXPECT_EQ(t.decode(t.encode(text)), text);
}

// Pairs that go on over the mark of a word are joined as well.
TEST(DataTokenizer, TokensMayReachOverSpaces) {
  const std::string json =
      R"({"pre_tokenizer":null,"normalizer":{"type":"Replace","pattern":{"String":" "},
    "content":"_"},"decoder":{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"_"},
    "content":" "},{"type":"Fuse"}]},"model":{"type":"BPE","vocab":{"a":0,"_":1,"b":2,"_b":3,"a_b":4,
    "a_":5},"merges":["_ b","a _b"]}})";
  const Tokenizer t = Tokenizer::from_json(json);
  EXPECT_EQ(t.encode("a b a"), (Tokens{4, 1, 0}));
  EXPECT_EQ(t.decode(t.encode("a b a")), "a b a");
  EXPECT_TRUE(says(refusal([&] { (void)t.encode("a\u00e9"); }), {"bytes 195 169"}));
}

TEST(DataTokenizer, OtherKindsOfCharactersAreNamed) {
  const std::string json = text_of(value_file("tokenizer_llama2.json"));
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string out = json;
    const std::size_t at = out.find(from);
    if (at == std::string::npos) ADD_FAILURE() << from;
    out.replace(at, from.size(), to);
    return refusal([&] { (void)Tokenizer::from_json(out); });
  };
  EXPECT_TRUE(
      says(changed(R"("type":"Prepend")", R"("type":"Strip")"), {"its normalizer is Strip"}));
  const std::string twice = R"({"type":"Replace","pattern":{"String":" "},"content":"        "},)";
  EXPECT_TRUE(says(changed(R"({"type":"Prepend")", twice + twice + twice + R"({"type":"Prepend")"),
                   {"more than 64 times longer"}));
  EXPECT_TRUE(says(changed(R"("content":" ")", R"("content":")" + std::string(300, ' ') + '"'),
                   {"more than 64 times longer"}));
  EXPECT_TRUE(says(changed(R"({"String":" "})", R"({"Regex":" +"})"), {"replaces by a pattern"}));
  EXPECT_TRUE(says(changed(R"({"type":"Fuse"},)", ""), {"its decoder has a Strip"}));
  EXPECT_TRUE(says(changed(R"("stop":0)", R"("stop":1)"), {"strips the end"}));
  EXPECT_TRUE(says(changed(R"("decoder":)", R"("decoder":null,"was":)"), {"it has no decoder"}));
  EXPECT_TRUE(says(changed(R"("decoder":)", R"("decoder":{"type":"ByteLevel"},"was":)"),
                   {"its decoder is ByteLevel and its tokens are of characters"}));
  EXPECT_TRUE(says(changed(R"("pre_tokenizer":null)",
                           R"("pre_tokenizer":{"type":"Metaspace","prepend_scheme":"last"})"),
                   {"its prepend_scheme is last"}));
}

TEST(DataTokenizer, BothSpellingsOfMergesAreRead) {
  std::string json = Tokenizer::train("ab ab ab", {.vocabulary = 258}).to_json();
  const std::string before = R"("a b")";
  ASSERT_NE(json.find(before), std::string::npos);
  json.replace(json.find(before), before.size(), R"(["a","b"])");
  EXPECT_EQ(Tokenizer::from_json(json).encode("ab").size(), 1U);
}

TEST(DataTokenizer, TokensThatFrameATextAreKnown) {
  const Tokenizer t = Tokenizer::load(value_file("tokenizer_lines.json"));
  const auto all = [](std::span<const std::int32_t> tokens) {
    return Tokens(tokens.begin(), tokens.end());
  };
  EXPECT_EQ(all(t.before()), (Tokens{0}));
  EXPECT_EQ(t.bytes(0), "<|end|>");
  EXPECT_TRUE(t.behind().empty());
  EXPECT_EQ(all(Tokenizer::from_json(t.to_json()).before()), (Tokens{0}));
  EXPECT_TRUE(Tokenizer::load(value_file("tokenizer_nfc.json")).before().empty());
}

// What a file says of the form of texts, any text is brought to.
TEST(DataTokenizer, TextsComeBackInTheFormTheyWereBroughtTo) {
  const Tokenizer t = Tokenizer::load(value_file("tokenizer_digits.json"));
  EXPECT_EQ(t.decode(t.encode("cafe\u0301 e\u0323\u0301")), "caf\u00e9 \u1eb9\u0301");
  EXPECT_EQ(t.decode(t.encode("\u1112\u1161\u11ab \u212b")), "\ud55c \u00c5");
  EXPECT_EQ(t.decode(t.encode("e\u0301\xff\xcc")), "\u00e9\xff\xcc");
  EXPECT_EQ(t.decode(t.encode("a\u0315\u0300")), "\u00e0\u0315");
}

TEST(DataTokenizer, OtherKindsAndDamageAreNamed) {
  const std::string json = Tokenizer::train("ab ab ab", {.vocabulary = 258}).to_json();
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string out = json;
    const std::size_t at = out.find(from);
    if (at == std::string::npos) ADD_FAILURE() << from;
    out.replace(at, from.size(), to);
    return refusal([&] { (void)Tokenizer::from_json(out); });
  };
  EXPECT_EQ(changed("1.0", "2.0"), "no error");
  EXPECT_TRUE(
      says(changed(R"("type":"BPE")", R"("type":"Unigram")"), {"file.tokenizer_kind", "Unigram"}));
  EXPECT_TRUE(says(changed(R"("type":"ByteLevel")", R"("type":"Metaspace")"),
                   {"tokenizer_kind", "ByteLevel and its tokens are of characters"}));
  EXPECT_TRUE(says(changed(R"("normalizer":null)", R"("normalizer":{"type":"NFKC"})"),
                   {"its normalizer is NFKC"}));
  EXPECT_TRUE(
      says(changed(R"("post_processor":null)", R"("post_processor":{"type":"RobertaProcessing"})"),
           {"RobertaProcessing"}));
  const std::string split = R"({"type":"Split","pattern":{"Regex":"a+"},"behavior":"Isolated"})";
  EXPECT_TRUE(says(
      changed(R"("pre_tokenizer":)",
              R"("pre_tokenizer":{"type":"Sequence","pretokenizers":[)" + split + R"(]},"was":)"),
      {"splits by the pattern \"a+\""}));
  EXPECT_TRUE(
      says(changed(R"("pre_tokenizer":)", R"("pre_tokenizer":{"type":7},"was":)"), {"file.json"}));
  EXPECT_TRUE(says(changed(R"("end_of_word_suffix":null)", R"("end_of_word_suffix":"</w>")"),
                   {"end_of_word_suffix"}));
  EXPECT_TRUE(says(changed(R"("a b")", R"("a bq")"), {"which is no token"}));
  EXPECT_TRUE(says(changed(R"("a b")", R"("a c")"), {"joined to what is no token"}));
  EXPECT_TRUE(says(changed(R"("a b")", R"("ab")"), {"a space between"}));
  EXPECT_TRUE(says(changed(R"("!":0)", R"("!":1)"), {"is there twice"}));
  EXPECT_TRUE(says(changed(R"("!":0)", R"("!":-1)"), {"whole number"}));
  EXPECT_TRUE(says(changed(R"("!":0)", R"("!":99999999)"), {"beyond"}));
  EXPECT_TRUE(says(refusal([&] { (void)Tokenizer::from_json(json.substr(0, json.size() / 2)); }),
                   {"file.json"}));
  EXPECT_TRUE(says(refusal([&] { (void)Tokenizer::from_json("{}"); }), {"no model"}));
  EXPECT_TRUE(says(refusal([&] { (void)Tokenizer().decode(Tokens{256}); }), {"no token 256"}));
  EXPECT_TRUE(
      says(refusal([&] { (void)Tokenizer::train("", {.vocabulary = 100}); }), {"100 tokens"}));
  const testing::ScratchFolder folder;
  Tokenizer().save(folder.file("t.json"));
  EXPECT_EQ(Tokenizer::load(folder.file("t.json")).to_json(), Tokenizer().to_json());
}

}  // namespace
}  // namespace ricci::tokenizer_test
