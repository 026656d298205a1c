// Reading and writing GGUF: what survives, what is written, and mapped files.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "ricci/io/gguf.h"
#include "ricci/io/mapped_file.h"
#include "ricci/support/error.h"
#include "ricci/support/file.h"

#include "support/file_faults.h"
#include "test_paths.h"

namespace ricci::io_gguf_test {
namespace {

using io::Gguf;
using io::GgufArray;
using io::GgufValue;
using io::StoredTensor;
using io::StoredType;
using testing::fault_of;

template <class T>
std::span<const std::byte> raw(const std::vector<T>& v) {
  return std::as_bytes(std::span(v));
}

GgufArray nested(int depth) {
  GgufArray a{std::vector<std::int32_t>{1, 2}};
  for (int i = 1; i < depth; ++i) a = GgufArray{std::vector<GgufArray>{a, a}};
  return a;
}

// A value of every kind, and an array of every kind.
std::vector<std::pair<std::string, GgufValue>> every_kind() {
  return {
      {"u8", std::uint8_t{255}},
      {"i8", std::int8_t{-128}},
      {"u16", std::uint16_t{65535}},
      {"i16", std::int16_t{-32768}},
      {"u32", std::uint32_t{4294967295}},
      {"i32", std::int32_t{-5}},
      {"f32", 0.5F},
      {"yes", true},
      {"no", false},
      {"text", std::string("grün\0 ", 7)},
      {"empty", std::string()},
      {"u64", std::numeric_limits<std::uint64_t>::max()},
      {"i64", std::numeric_limits<std::int64_t>::min()},
      {"f64", -0.0},
      {"a.u8", GgufArray{std::vector<std::uint8_t>{1, 2, 3}}},
      {"a.i8", GgufArray{std::vector<std::int8_t>{-1}}},
      {"a.u16", GgufArray{std::vector<std::uint16_t>{7}}},
      {"a.i16", GgufArray{std::vector<std::int16_t>{-7, 7}}},
      {"a.u32", GgufArray{std::vector<std::uint32_t>{}}},
      {"a.i32", GgufArray{std::vector<std::int32_t>{-1, 0, 1}}},
      {"a.f32", GgufArray{std::vector<float>{0.25F, -1.5F}}},
      {"a.bool", GgufArray{std::vector<bool>{true, false, true}}},
      {"a.string", GgufArray{std::vector<std::string>{"a", "", "ccc"}}},
      {"a.nested", nested(io::MostGgufNesting)},
      {"a.u64", GgufArray{std::vector<std::uint64_t>{1ULL << 63}}},
      {"a.i64", GgufArray{std::vector<std::int64_t>{-1}}},
      {"a.f64", GgufArray{std::vector<double>{1e300}}},
  };
}

std::string texts(const Gguf& gguf) {
  std::string out;
  for (const auto& [key, value] : gguf.metadata) {
    out += key + " " + io::kind_of(value) + " " + io::to_text(value, 10000) + "\n";
  }
  return out;
}

TEST(IoGguf, MetadataOfEveryKindSurvives) {
  const Gguf gguf = {.metadata = every_kind()};
  const std::vector<std::byte> bytes = io::gguf_bytes(gguf);
  const Gguf back = io::parse_gguf(bytes);
  EXPECT_EQ(back.version, 3U);
  EXPECT_EQ(texts(back), texts(gguf));
  for (std::size_t i = 0; i < gguf.metadata.size(); ++i) {
    EXPECT_EQ(back.metadata[i].second.index(), gguf.metadata[i].second.index());
  }
  EXPECT_EQ(std::get<std::string>(*back.find("text")), std::string("grün\0 ", 7));
  EXPECT_TRUE(std::signbit(std::get<double>(*back.find("f64"))));
  EXPECT_EQ(back.find("other"), nullptr);
  EXPECT_EQ(io::gguf_bytes(back), bytes);
}

TEST(IoGguf, ValuesAreShownByKind) {
  EXPECT_EQ(io::kind_of(GgufValue(std::uint32_t{3})), "u32");
  EXPECT_EQ(io::kind_of(GgufArray{std::vector<std::string>{"a", "b"}}), "string[2]");
  EXPECT_EQ(io::kind_of(GgufValue("text")), "string");
  EXPECT_EQ(io::kind_of(nested(2)), "array[2]");
  EXPECT_EQ(io::to_text(nested(2)), "[[1, 2], [1, 2]]");
  EXPECT_EQ(io::to_text(GgufArray{std::vector<std::string>{"a\n", "b"}}), R"(["a\n", "b"])");
  EXPECT_EQ(io::to_text(GgufArray{std::vector<std::int32_t>(1000, 7)}, 10), "[7, 7, 7, …]");
  EXPECT_EQ(io::to_text(GgufArray{std::vector<bool>{true, false}}), "[true, false]");
  EXPECT_LT(io::to_text(GgufValue(std::string(100000, 'x')), 40).size(), 60U);
}

// [gguf-more-types] Tensors of every type that GGUF has, filled with any bytes; what cannot be
// decoded has its size, so that the rest of a file loads.
TEST(IoGguf, TensorsOfEveryTypeSurvive) {
  std::vector<std::vector<std::byte>> storage;
  Gguf gguf;
  for (std::uint32_t number = 0; number < 64; ++number) {
    const auto type = io::gguf_type(number);
    if (!type) continue;
    EXPECT_EQ(io::gguf_number(*type), number);
    StoredTensor t{
        .name = std::string(type->name), .type = *type, .dims = {3, 2 * type->block_length}};
    std::vector<std::byte> bytes(static_cast<std::size_t>(6 * type->block_bytes));
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<std::byte>(7 * i + number);
    storage.push_back(std::move(bytes));
    t.bytes = storage.back();
    gguf.tensors.push_back(std::move(t));
  }
  EXPECT_EQ(gguf.tensors.size(), 34U);
  const std::vector<std::byte> bytes = io::gguf_bytes(gguf);
  const Gguf back = io::parse_gguf(bytes);
  ASSERT_EQ(back.tensors.size(), gguf.tensors.size());
  for (std::size_t i = 0; i < back.tensors.size(); ++i) {
    const StoredTensor& t = back.tensors[i];
    EXPECT_EQ(t.name, gguf.tensors[i].name);
    EXPECT_EQ(t.type, gguf.tensors[i].type);
    EXPECT_EQ(t.dims, gguf.tensors[i].dims);
    EXPECT_EQ(t.offset % 32, 0U);
    EXPECT_TRUE(std::ranges::equal(t.bytes, gguf.tensors[i].bytes)) << t.name;
    if (!t.type.can_be_read()) {
      EXPECT_EQ(fault_of([&] { (void)io::load(t); }), "file.tensor_type");
      continue;
    }
    const Tensor loaded = io::load(t);
    EXPECT_EQ(loaded.dims(), t.dims);
    EXPECT_EQ(loaded.dtype(), t.type.dtype.value_or(DType::F32));
  }
}

// [gguf-more-types] As the public tables have them: elements and bytes of a block.
TEST(IoGguf, TypesThatAreOnlySizedHaveTheirSize) {
  struct Row {
    std::uint32_t number;
    std::string_view name;
    std::int64_t length, bytes;
  };
  for (const Row& row :
       {Row{16, "iq2_xxs", 256, 66}, Row{17, "iq2_xs", 256, 74}, Row{18, "iq3_xxs", 256, 98},
        Row{19, "iq1_s", 256, 50}, Row{20, "iq4_nl", 32, 18}, Row{21, "iq3_s", 256, 110},
        Row{22, "iq2_s", 256, 82}, Row{23, "iq4_xs", 256, 136}, Row{29, "iq1_m", 256, 56},
        Row{34, "tq1_0", 256, 54}, Row{35, "tq2_0", 256, 66}, Row{41, "q1_0", 128, 18}}) {
    const auto type = io::gguf_type(row.number);
    ASSERT_TRUE(type) << row.name;
    EXPECT_EQ(type->name, row.name);
    EXPECT_EQ(type->block_length, row.length) << row.name;
    EXPECT_EQ(type->block_bytes, row.bytes) << row.name;
    EXPECT_FALSE(type->can_be_read());
  }
}

// Files written by a script, see tests/data/make_gguf_fixtures.py.
TEST(IoGguf, ReadsEveryVersion) {
  for (const std::uint32_t version : {1U, 2U, 3U}) {
    SCOPED_TRACE(version);
    const Gguf gguf = io::read_gguf(RICCI_SOURCE_DIR "/tests/data/gguf/version" +
                                    std::to_string(version) + ".gguf");
    EXPECT_EQ(gguf.version, version);
    EXPECT_EQ(texts(gguf), R"(general.name string "tiny"
general.u8 u8 255
general.i8 i8 -1
general.u16 u16 65535
general.i16 i16 -2
general.u32 u32 7
general.i32 i32 -7
general.f32 f32 0.5
general.yes bool true
general.u64 u64 9223372036854775808
general.i64 i64 -9223372036854775808
general.f64 f64 1e-300
tokens string[3] ["a", "", "größe"]
scores f32[2] [0.25, -1.5]
table array[2] [[1, 2], []]
)");
    ASSERT_EQ(gguf.tensors.size(), 6U);
    EXPECT_EQ(io::load(gguf.tensors[0], gguf.owner).to_string(),
              "f32[2, 3] [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]");
    EXPECT_EQ(io::load(gguf.tensors[1], gguf.owner).to_string(), "f16[2] [0.5, -2.0]");
    const std::vector<float> w = io::load(*gguf.find_tensor("w")).elements<float>();
    for (int i = 0; i < 32; ++i) {
      EXPECT_EQ(w[static_cast<std::size_t>(i)], 0.5F * static_cast<float>(i - 16));
    }
    EXPECT_EQ(gguf.tensors[3].type.name, "q4_k");
    EXPECT_FALSE(gguf.tensors[4].type.can_be_read());
    EXPECT_EQ(io::load(gguf.tensors[5], gguf.owner).to_string(),
              Tensor::zeros(i32({0})).to_string());
  }
}

TEST(IoGguf, OddShapesSurvive) {
  const std::vector<float> one = {2.5F};
  const std::vector<std::byte> none;
  Gguf gguf;
  gguf.tensors = {
      {.name = "scalar", .type = StoredType::of(DType::F32), .dims = {}, .bytes = raw(one)},
      {.name = "none", .type = StoredType::of(DType::F32), .dims = {3, 0, 2}, .bytes = none},
      {.name = "no blocks", .type = StoredType::of(quant::Format::Q4K), .dims = {0}, .bytes = none},
      {.name = "",
       .type = StoredType::of(DType::F32),
       .dims = StaticDims(64, 1),
       .bytes = raw(one)},
  };
  const std::vector<std::byte> bytes = io::gguf_bytes(gguf);
  const Gguf back = io::parse_gguf(bytes);
  EXPECT_EQ(io::load(back.tensors[0]).item(), 2.5);
  EXPECT_EQ(io::load(back.tensors[1]).dims(), (StaticDims{3, 0, 2}));
  EXPECT_EQ(io::load(*back.find_tensor("no blocks")).numel(), 0);
  EXPECT_EQ(back.find_tensor("")->dims.size(), 64U);
  EXPECT_EQ(back.find_tensor("x"), nullptr);
  EXPECT_TRUE(io::parse_gguf(io::gguf_bytes({})).tensors.empty());
}

TEST(IoGguf, AlignmentIsWhatTheFileSays) {
  const std::vector<float> x = {1, 2, 3};
  for (const std::uint32_t alignment : {1U, 8U, 32U, 64U, 4096U}) {
    Gguf gguf = {.alignment = alignment};
    for (const char* name : {"a", "b"}) {
      gguf.tensors.push_back(
          {.name = name, .type = StoredType::of(DType::F32), .dims = {3}, .bytes = raw(x)});
    }
    const std::vector<std::byte> bytes = io::gguf_bytes(gguf);
    const Gguf back = io::parse_gguf(bytes);
    EXPECT_EQ(back.alignment, alignment);
    EXPECT_EQ(back.find("general.alignment") != nullptr, alignment != 32);
    for (const StoredTensor& t : back.tensors) {
      EXPECT_EQ(t.offset % alignment, 0U);
      EXPECT_EQ(io::load(t).elements<float>(), x);
    }
  }
}

TEST(IoGguf, WhatCouldNotBeReadBackIsNotWritten) {
  const std::vector<float> x = {1, 2, 3};
  const StoredTensor good = {
      .name = "a", .type = StoredType::of(DType::F32), .dims = {3}, .bytes = raw(x)};
  const auto fault = [](const Gguf& g) { return fault_of([&] { (void)io::gguf_bytes(g); }); };
  const auto with = [&](auto change) {
    StoredTensor t = good;
    change(t);
    Gguf g;
    g.tensors = {t};
    return fault(g);
  };
  EXPECT_EQ(with([](StoredTensor&) {}), "");
  EXPECT_EQ(with([](StoredTensor& t) { t.dims = {4}; }), "file.gguf_size");
  EXPECT_EQ(with([](StoredTensor& t) { t.dims = StaticDims(65, 1); }), "file.gguf_rank");
  EXPECT_EQ(with([](StoredTensor& t) { t.name = "\xFF"; }), "file.gguf_utf8");
  EXPECT_EQ(with([](StoredTensor& t) { t.type = StoredType::of(DType::Bool); }), "file.gguf_type");
  EXPECT_EQ(with([](StoredTensor& t) { t.type = StoredType::of(quant::Format::Fp8E4m3); }),
            "file.gguf_type");
  Gguf twice;
  twice.tensors = {good, good};
  EXPECT_EQ(fault(twice), "file.gguf_key");
  EXPECT_EQ(fault({.metadata = {{"a", 1.0F}, {"a", 2.0F}}}), "file.gguf_key");
  EXPECT_EQ(fault({.metadata = {{"a", nested(io::MostGgufNesting + 1)}}}), "file.gguf_nesting");
  EXPECT_EQ(fault({.alignment = 24}), "file.gguf_alignment");
}

TEST(IoGguf, FilesAreMappedAndTensorsBorrowed) {
  const std::string path = ::testing::TempDir() + "ricci_io_gguf_test.gguf";
  const std::vector<float> x = {1, 2, 3};
  Gguf gguf;
  gguf.tensors = {{.name = "x", .type = StoredType::of(DType::F32), .dims = {3}, .bytes = raw(x)}};
  io::write_gguf(path, gguf);
  Tensor kept;
  {
    const Gguf back = io::read_gguf(path);
    kept = io::load(back.tensors[0], back.owner);
    EXPECT_EQ(kept.data(), back.tensors[0].bytes.data());
    // Without an owner nothing is borrowed.
    EXPECT_NE(io::load(back.tensors[0]).data(), back.tensors[0].bytes.data());
  }
  EXPECT_EQ(kept.elements<float>(), x);  // the mapping lives on
  EXPECT_EQ(fault_of([&] { (void)io::read_gguf(path, {.max_file_bytes = 10}); }), "file.size");
  EXPECT_EQ(fault_of([&] { (void)io::read_gguf(path + ".not"); }), "file.open");
  EXPECT_FALSE(fault_of([&] { (void)io::read_gguf(::testing::TempDir()); }).empty());
  write_file(path, std::string_view());
  EXPECT_EQ(fault_of([&] { (void)io::read_gguf(path); }), "file.gguf_magic");
  write_file(path, std::string_view("GGUX"));
  try {
    (void)io::read_gguf(path);
    FAIL();
  } catch (const UserError& e) {
    EXPECT_EQ(e.diagnostic().where.file, path);
  }
  std::filesystem::remove(path);
}

// What others write into a mapped file may change numbers, but not where a program reads and
// writes.
TEST(IoGguf, IndicesAreCopiedOutOfMappedFiles) {
  const std::string path = ::testing::TempDir() + "ricci_io_gguf_indices.gguf";
  const std::vector<std::int32_t> places = {0, 1, 2};
  Gguf gguf;
  gguf.tensors = {
      {.name = "i", .type = StoredType::of(DType::I32), .dims = {3}, .bytes = raw(places)}};
  io::write_gguf(path, gguf);
  const Gguf back = io::read_gguf(path);
  const Tensor loaded = io::load(back.tensors[0], back.owner);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(back.tensors[0].offset));
  file.write("\x7f\x7f\x7f\x7f", 4);
  file.close();
  EXPECT_EQ(loaded.elements<std::int32_t>(), places);
  std::filesystem::remove(path);
}

// A tensor whose bytes lie askew is copied, never borrowed.
TEST(IoGguf, MisalignedElementsAreCopied) {
  std::vector<std::byte> bytes(13);
  const std::shared_ptr<const void> owner(bytes.data(), [](const void*) {});
  StoredTensor t = {.name = "x", .type = StoredType::of(DType::F32), .dims = {3}};
  t.bytes = std::span(bytes).subspan(1);
  EXPECT_NE(io::load(t, owner).data(), t.bytes.data());
}

}  // namespace
}  // namespace ricci::io_gguf_test
