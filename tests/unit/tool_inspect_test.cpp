// `ricci inspect`: what it lists, and tensors it takes out of files.
#include <gtest/gtest.h>

#include "ricci/io/gguf.h"
#include "ricci/io/npy.h"
#include "ricci/io/safetensors.h"
#include "ricci/support/file.h"

#include "support/compare.h"
#include "support/scratch_folder.h"
#include "support/tool.h"
#include "test_paths.h"

namespace ricci::tool_inspect_test {
namespace {

using testing::run_tool;

const std::string Fixture = RICCI_SOURCE_DIR "/tests/data/gguf/version3.gguf";

TEST(ToolInspect, ListsKeysAndTensors) {
  const auto run = run_tool("inspect " + Fixture);
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out, R"(GGUF version 3, alignment 32, 15 keys, 6 tensors of 224 bytes

key           kind       value
general.name  string     "tiny"
general.u8    u8         255
general.i8    i8         -1
general.u16   u16        65535
general.i16   i16        -2
general.u32   u32        7
general.i32   i32        -7
general.f32   f32        0.5
general.yes   bool       true
general.u64   u64        9223372036854775808
general.i64   i64        -9223372036854775808
general.f64   f64        1e-300
tokens        string[3]  ["a", "", "größe"]
scores        f32[2]     [0.25, -1.5]
table         array[2]   [[1, 2], []]

tensor  type    shape    bytes  at
x       f32     [2, 3]   24     736
h       f16     [2]      4      768
w       q8_0    [1, 32]  34     800
k       q4_k    [256]    144    864
i       iq4_nl  [32]     18     1024
n       i32     [0]      0      -
)");
  const auto piped = run_tool("inspect -", testing::read_text(Fixture));
  EXPECT_EQ(piped.out, run.out) << piped.err;
  const auto empty = run_tool("inspect " RICCI_SOURCE_DIR "/tests/data/gguf/empty.gguf");
  EXPECT_EQ(empty.out, "GGUF version 3, alignment 32, 0 keys, 0 tensors of 0 bytes\n");
}

TEST(ToolInspect, TakesATensorOut) {
  const testing::ScratchFolder scratch;
  const auto shown = run_tool("inspect " + Fixture + " --tensor x");
  EXPECT_EQ(shown.out, "f32[2, 3] : [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]\n") << shown.err;
  const auto run = run_tool("inspect " + Fixture + " --tensor w --out " + scratch.file("w.npy"));
  EXPECT_EQ(run.status, 0) << run.err;
  const Tensor w = io::read_npy(scratch.file("w.npy"));
  EXPECT_EQ(w.type(), f32({1, 32}));
  EXPECT_EQ(w.elements<float>().front(), -8.0F);
}

TEST(ToolInspect, KnowsEveryFormatOfWeights) {
  const testing::ScratchFolder scratch;
  const std::string file = scratch.file("w.safetensors");
  ASSERT_EQ(run_tool("convert " + Fixture + " " + file).status, 1);  // its iq4_nl is not known
  io::write_npz(scratch.file("w.npz"), {{"w", Tensor::of<float>({1, 2}, {1, 2})},
                                        {"n", Tensor::of<std::int32_t>({}, {3})}});
  EXPECT_EQ(run_tool("inspect " + scratch.file("w.npz")).out,
            "NPZ, 2 arrays\n\narray  type\nw      f32[1, 2]\nn      i32[]\n");
  const auto made = run_tool("convert " + scratch.file("w.npz") + " " + file + " --elements bf16");
  EXPECT_EQ(made.status, 0) << made.err;
  EXPECT_EQ(run_tool("inspect " + file).out, R"(safetensors, 0 keys, 2 tensors of 8 bytes

tensor  type  shape   bytes  at
n       i32   []      4      120
w       bf16  [1, 2]  4      124
)");
  EXPECT_EQ(run_tool("inspect " + file + " --tensor w").out, "bf16[1, 2] : [[1.0, 2.0]]\n");
  EXPECT_EQ(run_tool("inspect " + scratch.file("w.npz") + " --tensor n").out, "i32[] : 3\n");
  const auto none = run_tool("inspect " + scratch.file("w.npz") + " --tensor nn");
  EXPECT_NE(none.err.find("did you mean \"n\"?"), std::string::npos) << none.err;
}

TEST(ToolInspect, ConvertsToBlocks) {
  const testing::ScratchFolder scratch;
  const Tensor w = testing::random_tensor(1, f32({4, 64}));
  const std::string from = scratch.file("w.npz");
  const std::string to = scratch.file("w.gguf");
  io::write_npz(from, {{"w", w}, {"b", testing::random_tensor(2, f32({4}))}});
  const auto run = run_tool("convert " + from + " " + to + " --elements q8_0");
  EXPECT_EQ(run.status, 0) << run.err;
  const io::Gguf gguf = io::read_gguf(to);
  EXPECT_EQ(gguf.find_tensor("w")->type.name, "q8_0");
  EXPECT_EQ(gguf.find_tensor("b")->type.name, "f32");
  EXPECT_TRUE(testing::close(io::load(*gguf.find_tensor("w"), gguf.owner), w, {.absolute = 0.01}));
  const auto refused =
      run_tool("convert " + from + " " + scratch.file("o.npz") + " --elements q8_0");
  EXPECT_NE(refused.err.find("only GGUF files"), std::string::npos) << refused.err;
  const auto unknown = run_tool("convert " + from + " " + to + " --elements q9");
  EXPECT_NE(unknown.err.find("there are no elements \"q9\""), std::string::npos) << unknown.err;
  const auto ending = run_tool("convert " + from + " " + scratch.file("o.bin"));
  EXPECT_NE(ending.err.find(".npz, .safetensors or .gguf"), std::string::npos) << ending.err;
}

// What a file says of its tensors stays with them where the format has a place for it, and where it
// has none that is said.
TEST(ToolInspect, ConvertsWhatComesWithTensors) {
  const testing::ScratchFolder scratch;
  const Tensor w = testing::random_tensor(1, Type{DType::BF16, {2, 64}});
  const io::StoredTensor stored{"w", io::StoredType::of(w.dtype()), {2, 64}, w.bytes()};
  const std::string from = scratch.file("a.safetensors");
  io::write_safetensors(from, {.metadata = {{"format", "pt"}, {"by", "us"}}, .tensors = {stored}});
  const auto again = run_tool("convert " + from + " " + scratch.file("b.safetensors"));
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(again.err, "");
  EXPECT_EQ(read_file(scratch.file("b.safetensors")), read_file(from));
  const auto npz = run_tool("convert " + from + " " + scratch.file("c.npz"));
  EXPECT_EQ(npz.status, 0);
  EXPECT_NE(npz.err.find("note: 2 keys of metadata are left out"), std::string::npos) << npz.err;
  EXPECT_NE(npz.err.find("NPZ has no bf16: 1 tensor is written as f32"), std::string::npos);
  EXPECT_NE(run_tool("convert " + from + " " + scratch.file("d.gguf")).err.find("left out"),
            std::string::npos);
  EXPECT_EQ(run_tool("convert " + scratch.file("c.npz") + " " + scratch.file("e.gguf")).err, "");

  const std::string gguf = scratch.file("f.gguf");
  io::write_gguf(gguf, {.alignment = 64,
                        .metadata = {{"general.name", std::string("tiny")},
                                     {"general.file_type", std::uint32_t{32}}},
                        .tensors = {stored}});
  ASSERT_EQ(run_tool("convert " + gguf + " " + scratch.file("g.gguf")).status, 0);
  EXPECT_EQ(read_file(scratch.file("g.gguf")), read_file(gguf));
  for (const char* elements : {"q8_0", "f16"}) {
    const std::string to = scratch.file(elements) + ".gguf";
    ASSERT_EQ(run_tool("convert " + gguf + " " + to + " --elements " + elements).status, 0);
    const io::Gguf made = io::read_gguf(to);
    EXPECT_EQ(made.alignment, 64U);
    EXPECT_NE(made.find("general.name"), nullptr);
    EXPECT_EQ(made.find("general.file_type"), nullptr) << "it is of other elements now";
  }
}

TEST(ToolInspect, SaysWhatIsWrong) {
  const auto missing = run_tool("inspect " + Fixture + " --tensor y");
  EXPECT_EQ(missing.status, 1);
  EXPECT_NE(missing.err.find("error[name]: there is no tensor \"y\""), std::string::npos)
      << missing.err;
  const auto unreadable = run_tool("inspect " + Fixture + " --tensor i");
  EXPECT_EQ(unreadable.status, 1);
  EXPECT_NE(unreadable.err.find("error[file.tensor_type]"), std::string::npos) << unreadable.err;
  const auto other = run_tool("inspect " RICCI_SOURCE_DIR "/README.md");
  EXPECT_EQ(other.status, 1);
  EXPECT_NE(other.err.find("this is no file of weights"), std::string::npos) << other.err;
  EXPECT_EQ(run_tool("inspect " + Fixture + " --out x.npy").status, 2);
  EXPECT_EQ(run_tool("inspect " + Fixture + " --max-input-bytes 10").status, 1);
}

// A file's text is shown in a way that cannot move a terminal's cursor.
TEST(ToolInspect, NamesAreEscaped) {
  const testing::ScratchFolder scratch;
  const io::Gguf gguf = {.metadata = {{"\x1b[2J", std::string("\x1b]0;x\a")}, {"", 1.0F}}};
  io::write_gguf(scratch.file("odd.gguf"), gguf);
  const auto run = run_tool("inspect " + scratch.file("odd.gguf"));
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out.find('\x1b'), std::string::npos);
  EXPECT_EQ(run.out.find('\a'), std::string::npos);
}

}  // namespace
}  // namespace ricci::tool_inspect_test
