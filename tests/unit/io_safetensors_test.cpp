// safetensors: what is written is read back, as the format's own library writes it, and files made
// to mislead the reader get the error they deserve.
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/io/safetensors.h"
#include "ricci/io/weights.h"
#include "ricci/support/error.h"

#include "io/json_cursor.h"
#include "support/compare.h"
#include "support/file_faults.h"
#include "test_paths.h"

namespace ricci::io_safetensors_test {
namespace {

using testing::bytes_of;

std::string length_of(std::uint64_t n) {
  std::string out(8, '\0');
  std::memcpy(out.data(), &n, 8);
  return out;
}
std::string file_of(const std::string& header, const std::string& data = {}) {
  return length_of(header.size()) + header + data;
}
// One tensor of two f32.
std::string tensor(const std::string& name = "w", const std::string& dtype = "F32",
                   const std::string& shape = "[2]", const std::string& offsets = "[0,8]") {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":{}}})", name, dtype, shape,
                     offsets);
}
std::string object(const std::string& inside) { return "{" + inside + "}"; }
const std::string Eight(8, 'x');

std::string fault_of(const std::string& file, const io::SafetensorsOptions& options = {}) {
  return testing::fault_of([&] { (void)io::parse_safetensors(bytes_of(file), options); });
}

TEST(Safetensors, DirectoriesAreRead) {
  const std::string header =
      object(R"( "__metadata__" : {"format":"pt","\u00e9\ud83d\ude00":"a\nb"},)" +
             tensor("b", "F16", "[1,2]", "[8,12]") + "," + tensor("a") + ", " +
             tensor("none", "F64", "[0,3]", "[8,8]") + " ") +
      "   ";
  const std::string bytes = file_of(header, Eight + "yyyy");
  const io::Safetensors file = io::parse_safetensors(bytes_of(bytes));
  ASSERT_EQ(file.tensors.size(), 3U);
  EXPECT_EQ(file.tensors[0].name, "a");  // in the order of their bytes
  EXPECT_EQ(file.tensors[1].name, "none");
  EXPECT_EQ(file.tensors[2].name, "b");
  EXPECT_EQ(file.tensors[2].dims, (StaticDims{1, 2}));
  EXPECT_EQ(file.tensors[2].offset, bytes.size() - 4);
  ASSERT_NE(file.find("format"), nullptr);
  EXPECT_EQ(*file.find("format"), "pt");
  ASSERT_NE(file.find("é😀"), nullptr);
  EXPECT_EQ(*file.find("é😀"), "a\nb");
  EXPECT_EQ(file.find("other"), nullptr);
  EXPECT_EQ(file.find_tensor("c"), nullptr);
}

// The file was written by the format's own library: tests/data/make_safetensors_fixtures.py.
TEST(Safetensors, BytesAreThoseOfTheFormatsLibrary) {
  const std::string path =
      std::string(RICCI_SOURCE_DIR) + "/tests/data/safetensors/every_type.safetensors";
  const io::Safetensors file = io::read_safetensors(path);
  ASSERT_EQ(file.tensors.size(), 14U);
  for (const io::StoredTensor& t : file.tensors) {
    if (!t.type.dtype) continue;
    const Tensor loaded = io::load(t, file.owner);
    const std::vector<double> numbers = loaded.numbers<double>();
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      EXPECT_EQ(numbers[i], static_cast<double>(loaded.dtype() == DType::Bool ? i % 2 : i))
          << t.name;
    }
  }
  const std::vector<std::byte> written = io::safetensors_bytes(file);
  const std::vector<std::byte> original = read_file(path);
  EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(written.data()), written.size()),
            std::string_view(reinterpret_cast<const char*>(original.data()), original.size()));
}

// Elements of less than a byte lie side by side across rows; none of these can be decoded.
TEST(Safetensors, TypesOfFewBitsAreListed) {
  const auto read = [](const std::string& dtype, const std::string& shape, std::size_t bytes) {
    return fault_of(file_of(object(tensor("w", dtype, shape, fmt::format("[0,{}]", bytes))),
                            std::string(bytes, 'x')));
  };
  for (const auto& [dtype, bits] :
       std::vector<std::pair<std::string, std::size_t>>{{"F4", 4},
                                                        {"F6_E2M3", 6},
                                                        {"F6_E3M2", 6},
                                                        {"F8_E4M3FNUZ", 8},
                                                        {"F8_E5M2FNUZ", 8},
                                                        {"F8_E8M0", 8}}) {
    EXPECT_EQ(read(dtype, "[2,8]", 2 * bits), "") << dtype;
    EXPECT_EQ(read(dtype, "[4,3,2]", 3 * bits), "") << dtype;
    EXPECT_EQ(read(dtype, "[8,0]", 0), "") << dtype;
    EXPECT_EQ(read(dtype, "[2,8]", 2 * bits + 1), "file.safetensors_size") << dtype;
    EXPECT_EQ(read(dtype, "[3]", 2), "file.safetensors_size") << dtype;
    const std::string bytes = file_of(
        object(tensor("w", dtype, "[8]", fmt::format("[0,{}]", bits))), std::string(bits, 'x'));
    const io::Safetensors file = io::parse_safetensors(bytes_of(bytes));
    EXPECT_EQ(testing::fault_of([&] { (void)io::load(file.tensors[0]); }), "file.tensor_type");
    const std::vector<std::byte> again = io::safetensors_bytes(file);
    EXPECT_EQ(io::parse_safetensors(again).tensors[0].type.name, dtype);
  }
}

// As NumPy's are in NPZ.
TEST(Safetensors, NumbersWithoutASignAreWidened) {
  const std::string small("\x01\x00\xff\xff", 4);
  const std::string bytes = file_of(object(tensor("w", "U16", "[2]", "[0,4]")), small);
  const Tensor w = io::load(io::parse_safetensors(bytes_of(bytes)).tensors[0]);
  EXPECT_EQ(w.type(), (Type{DType::U32, {2}}));
  EXPECT_EQ(w.numbers<std::int64_t>(), (std::vector<std::int64_t>{1, 65535}));
  const std::string most("\xff\xff\xff\xff\xff\xff\xff\x7f", 8);
  const std::string large = file_of(object(tensor("w", "U64", "[1]", "[0,8]")), most);
  const Tensor v = io::load(io::parse_safetensors(bytes_of(large)).tensors[0]);
  EXPECT_EQ(v.type(), (Type{DType::I64, {1}}));
  EXPECT_EQ(v.numbers<std::int64_t>()[0], std::numeric_limits<std::int64_t>::max());
  const std::string over =
      file_of(object(tensor("w", "U64", "[1]", "[0,8]")), std::string(8, '\xff'));
  EXPECT_EQ(
      testing::fault_of([&] { (void)io::load(io::parse_safetensors(bytes_of(over)).tensors[0]); }),
      "file.tensor_range");
  EXPECT_EQ(
      io::load(io::parse_safetensors(bytes_of(file_of(object(tensor("w", "U64", "[0]", "[0,0]")))))
                   .tensors[0])
          .numel(),
      0);
}

struct Malformed {
  std::string file;
  const char* code;
};

TEST(Safetensors, MalformedFilesAreRefused) {
  const std::string huge = std::to_string(std::uint64_t{1} << 62);
  const auto one = [](const std::string& entry) { return file_of(object(entry), Eight); };
  const std::string field = R"("w":{"dtype":"F32","shape":[2],)";
  const std::vector<Malformed> all = {
      {"", "file.truncated"},
      {"1234567", "file.truncated"},
      {length_of(0), "file.safetensors_header"},
      {length_of(5) + "{}", "file.truncated"},
      {length_of(~std::uint64_t{0}) + "{}", "file.safetensors_header"},
      {length_of(std::uint64_t{1} << 63) + "{}", "file.safetensors_header"},
      {length_of(100'000'001) + "{}", "file.safetensors_header"},
      {file_of("[]"), "file.safetensors_header"},
      {file_of(" {}"), "file.safetensors_header"},
      {file_of("{"), "file.json"},
      {file_of("{}x"), "file.json"},
      {file_of("{}", "x"), "file.safetensors_gap"},
      {file_of("{}" + std::string(2, '\0')), "file.json"},
      {file_of("{,}"), "file.json"},
      {file_of("{\"a\"}"), "file.json"},
      {file_of("{\"a\":}"), "file.json"},
      {file_of("{\"a\":1}"), "file.json"},
      {file_of("{\"a\":null}"), "file.json"},
      {file_of("{\"a\":{}}"), "file.safetensors_tensor"},
      {file_of("{a:{}}"), "file.json"},
      {one(tensor() + ","), "file.json"},
      {one(tensor() + "," + tensor()), "file.json"},
      {one(tensor("w\\u0022") + "," + tensor("w\\\"")), "file.json"},
      {one(tensor("a") + "," + tensor("b")), "file.tensor_overlap"},
      {one(tensor("a", "F32", "[1]", "[0,4]")), "file.safetensors_gap"},
      {one(tensor("a", "F32", "[1]", "[4,8]")), "file.safetensors_gap"},
      {one(tensor("w", "F33")), "file.safetensors_type"},
      {one(tensor("w", "f32")), "file.safetensors_type"},
      {one(tensor("w", "")), "file.safetensors_type"},
      {one(tensor("w", "F64")), "file.safetensors_size"},
      {one(tensor("w", "F32", "[3]")), "file.safetensors_size"},
      {one(tensor("w", "F32", "[-2]")), "file.json"},
      {one(tensor("w", "F32", "[2.0]")), "file.json"},
      {one(tensor("w", "F32", "[2e0]")), "file.json"},
      {one(tensor("w", "F32", "[02]")), "file.json"},
      {one(tensor("w", "F32", "[\"2\"]")), "file.json"},
      {one(tensor("w", "F32", "[2,]")), "file.json"},
      {one(tensor("w", "F32", "2")), "file.json"},
      {one(tensor("w", "F32", "null")), "file.json"},
      {one(tensor("w", "F32", "[" + huge + ",4]")), "file.safetensors_size"},
      {one(tensor("w", "F32", "[" + huge + "," + huge + "]")), "file.safetensors_size"},
      {one(tensor("w", "F32", "[" + huge + "0]")), "file.json"},
      {one(tensor("w", "F32", "[0," + huge + "," + huge + "]")), "file.safetensors_size"},
      {one(tensor("w", "F32", "[2]", "[0,9]")), "file.safetensors_offset"},
      {one(tensor("w", "F32", "[2]", "[8,0]")), "file.safetensors_offset"},
      {one(tensor("w", "F32", "[2]", "[0," + huge + "]")), "file.safetensors_offset"},
      {one(tensor("w", "F32", "[2]", "[" + huge + "," + huge + "]")), "file.safetensors_offset"},
      {one(tensor("w", "F32", "[2]", "[0]")), "file.safetensors_tensor"},
      {one(tensor("w", "F32", "[2]", "[0,4,8]")), "file.json"},
      {one(tensor("w", "F32", "[2]", "[]")), "file.safetensors_tensor"},
      {one(field + R"("data_offsets":[0,8],"extra":1})"), "file.json"},
      {one(field + R"("shape":[2],"data_offsets":[0,8]})"), "file.json"},
      {one(R"("w":{"shape":[2],"data_offsets":[0,8]})"), "file.safetensors_tensor"},
      {one(R"("w":{"dtype":"F32","data_offsets":[0,8]})"), "file.safetensors_tensor"},
      {one(R"("w":{"dtype":"F32","shape":[2]})"), "file.safetensors_tensor"},
      {one(R"("w":[])"), "file.json"},
      {one(tensor() + R"(,"__metadata__":[])"), "file.json"},
      {one(tensor() + R"(,"__metadata__":{"a":1})"), "file.json"},
      {one(tensor() + R"(,"__metadata__":{"a":"1","a":"2"})"), "file.json"},
      {one(tensor("w\n")), "file.json"},
      {one(tensor("w\\x")), "file.json"},
      {one(tensor("\\ud800")), "file.json"},
      {one(tensor("\\udc00")), "file.json"},
      {one(tensor("\\ud800\\u0041")), "file.json"},
      {one(tensor("\\u12g4")), "file.json"},
      {one(tensor("\xff")), "file.json"},
      {one(tensor("\xc0\x80")), "file.json"},
      {one("\"w"), "file.json"},
      {one("\"w\\"), "file.json"},
      {one(tensor(std::string(5000, 'n'))), "file.safetensors_name"},
      {one(tensor("w", "F32", "[" + std::string(200, '[') + "]")), "file.json"},
  };
  for (const Malformed& m : all) EXPECT_EQ(fault_of(m.file), m.code) << m.file.substr(0, 200);
  EXPECT_EQ(fault_of(one(tensor()), {.max_tensors = 0}), "file.safetensors_count");
  EXPECT_EQ(fault_of(file_of(R"({"__metadata__":{"a":"1","b":"2"}})"), {.max_keys = 1}),
            "file.safetensors_count");
  std::string axes = "1";
  for (int i = 0; i < 64; ++i) axes += ",1";
  EXPECT_EQ(fault_of(one(tensor("w", "F64", "[" + axes + "]"))), "file.json");
}

TEST(Safetensors, JsonIsReadWithinBounds) {
  const auto skipped = [](const std::string& text) {
    return testing::fault_of([&] {
      io::JsonCursor json(text);
      json.skip();
      json.end();
    });
  };
  for (const char* good : {"null", "true", " false ", "0", "-1", "1.5e-3", "1E5", R"("\u0041\/")",
                           R"({"a":[1,{"b":[]}],"c":{}})", "[[],[[]]]"}) {
    EXPECT_EQ(skipped(good), "") << good;
  }
  for (const char* bad : {"", "nul", "+1", "01", "1.", ".5", "1e", "-", "[1,]", "{\"a\":1,}",
                          "[1 2]", "NaN", "'a'", "\"\t\"", "1 1", "{\"a\":1 \"b\":2}", "]"}) {
    EXPECT_EQ(skipped(bad), "file.json") << bad;
  }
  EXPECT_EQ(skipped(std::string(64, '[') + std::string(64, ']')), "");
  EXPECT_EQ(skipped(std::string(100000, '[')), "file.json");
}

TEST(Safetensors, WhatCannotBeReadBackIsNotWritten) {
  const Tensor x = Tensor::of<float>({2}, {1, 2});
  const auto stored = [&](std::string name, DType dtype = DType::F32) {
    return io::StoredTensor{std::move(name), io::StoredType::of(dtype), {2}, x.bytes()};
  };
  const auto fault = [](const io::Safetensors& file) {
    return testing::fault_of([&] { (void)io::safetensors_bytes(file); });
  };
  EXPECT_EQ(fault({.tensors = {stored("a"), stored("a")}}), "file.safetensors_name");
  EXPECT_EQ(fault({.tensors = {stored("__metadata__")}}), "file.safetensors_name");
  EXPECT_EQ(fault({.tensors = {stored("\xff")}}), "file.safetensors_utf8");
  EXPECT_EQ(fault({.tensors = {stored("a", DType::F64)}}), "file.safetensors_size");
  EXPECT_EQ(fault({.tensors = {stored("a", DType::C128)}}), "file.safetensors_type");
  EXPECT_EQ(fault({.metadata = {{"a", "1"}, {"a", "2"}}}), "file.safetensors_name");
  EXPECT_EQ(fault({.metadata = {{"a", "\xff"}}}), "file.safetensors_utf8");
  EXPECT_EQ(fault({}), "");
}

// One interface for all formats: what each can hold comes back.
TEST(Safetensors, WeightsAreReadWhateverTheirFormat) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("ricci_weights_{}", ::getpid());
  std::filesystem::create_directories(folder);
  const io::NamedTensors weights = {{"layer.w", testing::random_tensor(1, f32({3, 5}))},
                                    {"layer.b", testing::random_tensor(2, f32({5}))},
                                    {"steps", Tensor::of<std::int32_t>({}, {7})}};
  for (const char* ending : {".npz", ".safetensors", ".gguf"}) {
    SCOPED_TRACE(ending);
    const std::string path = folder / ("w" + std::string(ending));
    io::write_weights(path, weights);
    const io::NamedTensors again = io::read_weights(path);
    ASSERT_EQ(again.size(), weights.size());
    for (const auto& [name, value] : weights) {
      const auto found = std::ranges::find(again, name, [](const auto& w) { return w.first; });
      ASSERT_NE(found, again.end()) << name;
      if (std::string_view(ending) != ".gguf" || value.type().rank() > 0) {
        EXPECT_TRUE(found->second.identical(value)) << name;
      }
    }
  }
  EXPECT_EQ(testing::fault_of([&] { io::write_weights(folder / "w.bin", weights); }),
            "file.format");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace ricci::io_safetensors_test
