// The laws of text on seeded random input: files of the corpus with bytes, words and lines changed,
// and pieces repeated many times.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "ricci/op/table.h"
#include "ricci/support/text.h"

#include "fuzz/text_laws.h"
#include "fuzz/text_shapes.h"
#include "property/for_programs.h"
#include "property/random.h"
#include "support/tool.h"
#include "test_paths.h"

namespace ricci::testing {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> texts_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".ric") files.push_back(entry.path());
  }
  std::ranges::sort(files);  // seeds mean the same everywhere
  std::vector<std::string> out;
  for (const fs::path& file : files) out.push_back(read_text(file.string()));
  return out;
}

std::vector<std::string> words() {
  std::vector<std::string> out = {
      "{",     "}",    "[",  "]", "(",     ")",      "=",
      ",",     ":",    "@",  "%", "+",     "-",      "*",
      "\"",    "\n",   "//", "_", "graph", "return", "hex \"",
      "splat", "nan(", "0x", "0", "inf",   "%x",     "9223372036854775807"};
  for (const std::string& name : all_mnemonics()) out.push_back(name);
  for (const OpDescriptor& d : all_ops()) {
    for (const FieldInfo& field : d.fields) out.push_back(field.name + " = ");
  }
  return out;
}

// One to eight changes: a byte, a word put in, a piece left out, doubled or taken from elsewhere.
std::string changed(std::string text, const std::vector<std::string>& texts,
                    const std::vector<std::string>& vocabulary, Rng& random) {
  const auto below = [&](std::size_t n) { return random.below(n); };
  for (std::size_t changes = 1 + below(8); changes > 0 && !text.empty(); --changes) {
    const std::size_t at = below(text.size());
    const std::size_t length = std::min(text.size() - at, 1 + below(40));
    switch (below(6)) {
      case 0: text[at] = static_cast<char>(below(256)); break;
      case 1: text.insert(at, vocabulary[below(vocabulary.size())]); break;
      case 2: text.erase(at, length); break;
      case 3: text.insert(at, text.substr(at, length)); break;
      case 4: text.replace(at, length, vocabulary[below(vocabulary.size())]); break;
      default: {
        const std::string& other = texts[below(texts.size())];
        const std::size_t from = below(other.size());
        text.insert(at, other.substr(from, 1 + below(80)));
      }
    }
  }
  return text;
}

TEST(PropertyText, ChangedFilesAreRefusedOrSurvive) {
  const std::vector<std::string> texts = texts_in(RICCI_SOURCE_DIR "/tests/fuzz/corpus");
  ASSERT_FALSE(texts.empty());
  const std::vector<std::string> vocabulary = words();
  std::size_t accepted = 0;
  for (std::uint64_t seed = 0; seed < program_count(4000); ++seed) {
    Rng random(seed);
    const std::size_t first = random.below(texts.size());
    const std::string text = changed(texts[first], texts, vocabulary, random);
    try {
      accepted += check_text_laws(text) ? 1 : 0;
    } catch (const std::exception& e) {
      FAIL() << "seed " << seed << ": " << e.what() << "\n" << text;
    }
  }
  EXPECT_GT(accepted, 0U) << "some changes do no harm";
}

TEST(PropertyText, RepeatedPiecesAreRefusedOrSurvive) {
  for (std::uint64_t seed = 0; seed < program_count(400); ++seed) {
    Rng random(seed);
    std::vector<std::uint8_t> bytes = {LongMark, 0, 1, 3, 1};  // some get past the first line
    for (std::size_t pairs = 1 + random.below(12); pairs > 0; --pairs) {
      bytes.push_back(static_cast<std::uint8_t>(random.below(256)));
      bytes.push_back(static_cast<std::uint8_t>(random.below(random.below(4) == 0 ? 256 : 4)));
    }
    try {
      (void)check_text_laws(text_of_shapes(bytes, LongestShape));
    } catch (const std::exception& e) {
      FAIL() << "seed " << seed << ": " << e.what();
    }
  }
}

std::string dictionary() {
  std::vector<std::string> entries = {"graph",  "return",     "ricci 1",
                                      "splat",  "hex",        "true",
                                      "false",  "inf",        "nan(",
                                      "0x",     "_",          "//",
                                      "%",      "@",          "{",
                                      "}",      "[",          "]",
                                      "(",      ")",          "=",
                                      ",",      ":",          "+",
                                      "-",      "*",          "\"",
                                      "\\x",    "none",       "as \"",
                                      "body {", "cond {",     "then {",
                                      "else {", "fwd {",      "vjp {",
                                      "jvp {",  "body_vjp {", "forward_body {"};
  for (const std::string& name : all_mnemonics()) entries.push_back(name);
  for (const OpDescriptor& d : all_ops()) {
    for (const FieldInfo& field : d.fields) {
      entries.push_back(field.name + " = ");
      const std::string& type = field.kind;
      if (!type.starts_with("one of ")) continue;
      std::istringstream names(type.substr(7));
      for (std::string name; names >> name;) entries.push_back(name.substr(0, name.find(',')));
    }
  }
  for (const DType t :
       {DType::F64, DType::F32, DType::F16, DType::BF16, DType::I64, DType::I32, DType::I16,
        DType::I8, DType::U8, DType::U32, DType::Bool, DType::C64, DType::C128}) {
    entries.push_back(std::string(name(t)) + "[");
  }
  std::ranges::sort(entries);
  const auto repeated = std::ranges::unique(entries);
  entries.erase(repeated.begin(), repeated.end());
  std::string out = "# Words of the text form, for libFuzzer's -dict=. A test writes this file.\n";
  for (const std::string& e : entries) out += quote(e) + "\n";
  return out;
}

TEST(PropertyText, DictionaryHasAllWords) {
  const std::string file = RICCI_SOURCE_DIR "/tests/fuzz/text_parser.dict";
  const std::string expected = dictionary();
  if (std::getenv("RICCI_UPDATE_GOLDEN") != nullptr) std::ofstream(file) << expected;
  EXPECT_EQ(read_text(file), expected) << "RICCI_UPDATE_GOLDEN=1 writes it again";
}

}  // namespace
}  // namespace ricci::testing
