// Models in several GGUF files: any part gives the whole, and parts that do not fit are refused.
#include <gtest/gtest.h>

#include "ricci/io/gguf.h"
#include "ricci/io/weights.h"
#include "ricci/support/error.h"

#include "support/compare.h"
#include "support/scratch_folder.h"
#include "support/tool.h"

namespace ricci::io_gguf_parts_test {
namespace {

using io::Gguf;
using io::GgufValue;

const std::vector<std::vector<float>> Numbers = {{1, 2}, {3, 4, 5}, {6}, {}};

std::string part_name(int part, int of) {
  return "model-0000" + std::to_string(part) + "-of-0000" + std::to_string(of) + ".gguf";
}

struct Part {
  int number = 1;
  int of = 3;
  std::vector<std::size_t> tensors;  ///< indices of Numbers, by which they are named
  std::int32_t all = 4;
  std::string file = {};  ///< empty: as the number says
};

void write(const testing::ScratchFolder& folder, const Part& part) {
  Gguf out;
  if (part.number == 1) out.metadata.emplace_back("general.name", std::string("whole"));
  out.metadata.emplace_back("key.of." + std::to_string(part.number), std::uint32_t{7});
  out.metadata.emplace_back("split.no", static_cast<std::uint16_t>(part.number - 1));
  out.metadata.emplace_back("split.count", static_cast<std::uint16_t>(part.of));
  out.metadata.emplace_back("split.tensors.count", part.all);
  for (const std::size_t i : part.tensors) {
    out.tensors.push_back({.name = std::string("t") + std::to_string(i),
                           .type = io::StoredType::of(DType::F32),
                           .dims = {static_cast<std::int64_t>(Numbers[i].size())},
                           .bytes = std::as_bytes(std::span(Numbers[i]))});
  }
  const std::string name = part.file.empty() ? part_name(part.number, part.of) : part.file;
  io::write_gguf(folder.file(name), out);
}

void write_all(const testing::ScratchFolder& folder) {
  write(folder, {.number = 1, .tensors = {0}});
  write(folder, {.number = 2, .tensors = {1, 3}});
  write(folder, {.number = 3, .tensors = {2}});
}

std::string message_of(const testing::ScratchFolder& folder, const std::string& name,
                       const io::GgufOptions& options = {}) {
  try {
    (void)io::read_gguf(folder.file(name), options);
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

void expect_says(const std::string& message, const std::string& words, const std::string& file) {
  EXPECT_NE(message.find(words), std::string::npos) << message;
  EXPECT_NE(message.find(file), std::string::npos) << message;
}

TEST(IoGgufParts, AnyPartGivesTheWhole) {
  const testing::ScratchFolder folder;
  write_all(folder);
  for (int part = 1; part <= 3; ++part) {
    const Gguf whole = io::read_gguf(folder.file(part_name(part, 3)));
    ASSERT_EQ(whole.tensors.size(), 4U);
    for (const auto& [index, place] : {std::pair(0, 0), {1, 1}, {3, 2}, {2, 3}}) {
      const io::StoredTensor& t = whole.tensors[static_cast<std::size_t>(place)];
      EXPECT_EQ(t.name, "t" + std::to_string(index));
      const auto& expected = Numbers[static_cast<std::size_t>(index)];
      EXPECT_EQ(io::load(t, whole.owner).elements<float>(), expected);
    }
    std::vector<std::string> keys;
    for (const auto& [key, value] : whole.metadata) keys.push_back(key);
    EXPECT_EQ(keys, (std::vector<std::string>{"general.name", "key.of.1", "key.of.2", "key.of.3"}));
  }
  const io::NamedTensors weights = io::read_weights(folder.file(part_name(1, 3)));
  EXPECT_EQ(weights.size(), 4U);
}

TEST(IoGgufParts, OneAloneWhenAskedFor) {
  const testing::ScratchFolder folder;
  write(folder, {.number = 2, .tensors = {1}});
  const Gguf part = io::read_gguf(folder.file(part_name(2, 3)), {.join_parts = false});
  EXPECT_EQ(part.tensors.size(), 1U);
  EXPECT_NE(part.find("split.no"), nullptr);
}

TEST(IoGgufParts, TensorsKeepTheirFilesWhereTheyAre) {
  const testing::ScratchFolder folder;
  write_all(folder);
  Tensor last;
  {
    const Gguf whole = io::read_gguf(folder.file(part_name(1, 3)));
    last = io::load(*whole.find_tensor("t2"), whole.owner);
  }
  EXPECT_EQ(last.elements<float>(), Numbers[2]);
}

TEST(IoGgufParts, TheWholeIsWrittenAsOneFile) {
  const testing::ScratchFolder folder;
  write_all(folder);
  io::write_gguf(folder.file("whole.gguf"), io::read_gguf(folder.file(part_name(3, 3))));
  EXPECT_EQ(io::read_gguf(folder.file("whole.gguf")).tensors.size(), 4U);
}

TEST(IoGgufParts, PartsThatDoNotFitAreRefused) {
  {
    const testing::ScratchFolder folder;
    write(folder, {.number = 1, .tensors = {0}});
    expect_says(message_of(folder, part_name(1, 3)), "", part_name(2, 3));  // missing
  }
  {
    const testing::ScratchFolder folder;
    write(folder, {.number = 1, .tensors = {0}, .file = "renamed.gguf"});
    expect_says(message_of(folder, "renamed.gguf"), "its name does not say so", "renamed.gguf");
  }
  {
    const testing::ScratchFolder folder;
    write(folder, {.number = 1, .of = 2, .tensors = {0}});
    write(folder, {.number = 1, .of = 2, .tensors = {1}, .file = part_name(2, 2)});
    expect_says(message_of(folder, part_name(1, 2)), "this is not part 2 of 2, but part 1 of 2",
                part_name(2, 2));
  }
  {
    const testing::ScratchFolder folder;
    write(folder, {.number = 1, .of = 2, .tensors = {0, 1}, .all = 3});
    write(folder, {.number = 2, .of = 2, .tensors = {1}, .all = 3});
    expect_says(message_of(folder, part_name(1, 2)), "\"t1\" is in a part before this one too",
                part_name(2, 2));
  }
  {
    const testing::ScratchFolder folder;
    write(folder, {.number = 1, .of = 2, .tensors = {0}, .all = 3});
    write(folder, {.number = 2, .of = 2, .tensors = {1}, .all = 3});
    expect_says(message_of(folder, part_name(1, 2)), "2 tensors together", part_name(1, 2));
  }
}

TEST(IoGgufParts, LimitsAreForAllTogether) {
  const testing::ScratchFolder folder;
  write_all(folder);
  EXPECT_EQ(message_of(folder, part_name(1, 3), {.max_tensors = 4}), "no error");
  expect_says(message_of(folder, part_name(1, 3), {.max_tensors = 3}), "tensors", part_name(3, 3));
}

TEST(IoGgufParts, KeysThatSayNoNumberAreRefused) {
  const testing::ScratchFolder folder;
  for (const GgufValue& odd : {GgufValue(std::int16_t{-1}), GgufValue(true), GgufValue(2.0F)}) {
    io::write_gguf(folder.file("odd.gguf"), {.metadata = {{"split.count", odd}}});
    expect_says(message_of(folder, "odd.gguf"), "split.count is", "odd.gguf");
  }
}

TEST(IoGgufParts, TheToolListsTheWhole) {
  const testing::ScratchFolder folder;
  write_all(folder);
  const auto list = testing::run_tool("inspect " + folder.file(part_name(2, 3)));
  EXPECT_NE(list.out.find("4 keys, 4 tensors of 24 bytes"), std::string::npos) << list.out;
  const auto one = testing::run_tool("inspect " + folder.file(part_name(1, 3)) + " --tensor t1");
  EXPECT_EQ(one.out, "f32[3] : [3.0, 4.0, 5.0]\n") << one.err;
}

}  // namespace
}  // namespace ricci::io_gguf_parts_test
