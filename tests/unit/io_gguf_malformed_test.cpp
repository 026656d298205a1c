// GGUF files made to mislead the reader, each with the error it gets and the byte that is named.
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/io/gguf.h"
#include "ricci/support/error.h"

#include "support/file_faults.h"

namespace ricci::io_gguf_malformed_test {
namespace {

using testing::bytes_of;

std::string number(std::uint64_t v, int size) {
  std::string out;
  for (int i = 0; i < size; ++i) out += static_cast<char>((v >> (8 * i)) & 0xFFU);
  return out;
}
std::string u8(std::uint64_t v) { return number(v, 1); }
std::string u32(std::uint64_t v) { return number(v, 4); }
std::string u64(std::uint64_t v) { return number(v, 8); }
std::string text(const std::string& s) { return u64(s.size()) + s; }

enum Tag : std::uint32_t {
  U8 = 0,
  U32 = 4,
  I32 = 5,
  Bool = 7,
  String = 8,
  Array = 9,
  U64 = 10,
  F64 = 12
};
enum Type : std::uint32_t { F32 = 0, Q4_0 = 2, Q4K = 12, Iq2Xxs = 16, F64Type = 28 };

constexpr std::uint64_t Huge = ~std::uint64_t{0};
constexpr std::uint64_t Half = std::uint64_t{1} << 63;
constexpr std::size_t Front = 24;  // magic, version, two counts

std::string front(std::uint64_t tensors, std::uint64_t keys, std::uint64_t version = 3) {
  return "GGUF" + u32(version) + u64(tensors) + u64(keys);
}
std::string key(const std::string& name, std::uint32_t tag, const std::string& value) {
  return text(name) + u32(tag) + value;
}
std::string array(std::uint32_t tag, std::uint64_t count, const std::string& elements) {
  return u32(tag) + u64(count) + elements;
}
std::string deep(int levels) {
  std::string inner = array(U8, 0, "");
  for (int i = 1; i < levels; ++i) inner = array(Array, 1, inner);
  return inner;
}
// One key, and room behind it, so that its number alone is not what is wrong.
std::string with_key(const std::string& name, std::uint32_t tag, const std::string& value) {
  return front(0, 1) + key(name, tag, value);
}

struct Entry {
  std::string name = "w";
  std::vector<std::uint64_t> dims = {8};
  std::uint32_t type = F32;
  std::uint64_t offset = 0;

  [[nodiscard]] std::string bytes() const {
    std::string out = text(name) + u32(dims.size());
    for (const std::uint64_t d : dims) out += u64(d);
    return out + u32(type) + u64(offset);
  }
};
std::string padded(std::string file, std::size_t alignment = 32) {
  file.resize((file.size() + alignment - 1) / alignment * alignment);
  return file;
}
std::string with_tensors(const std::vector<Entry>& entries, std::size_t data,
                         const std::string& keys = {}, std::uint64_t key_count = 0) {
  std::string file = front(entries.size(), key_count) + keys;
  for (const Entry& e : entries) file += e.bytes();
  return padded(file) + std::string(data, '\1');
}
std::string aligned_to(std::uint32_t tag, const std::string& value) {
  return with_tensors({{}}, 32, key("general.alignment", tag, value), 1);
}

struct Malformed {
  const char* what;
  std::string file;
  const char* code;
  std::size_t at;  // the byte that is named
};

std::vector<Malformed> malformed_headers() {
  return {
      {"nothing", "", "gguf_magic", 0},
      {"half a magic", "GG", "gguf_magic", 0},
      {"another magic", "GGML" + u32(3) + u64(0) + u64(0), "gguf_magic", 0},
      {"a magic in small letters", "gguf" + u32(3) + u64(0) + u64(0), "gguf_magic", 0},
      {"a magic the wrong way round", "FUGG" + u32(3) + u64(0) + u64(0), "gguf_magic", 0},
      {"no version", "GGUF", "truncated", 4},
      {"half a version", "GGUF" + number(3, 2), "truncated", 4},
      {"version 0", front(0, 0, 0), "gguf_version", 4},
      {"version 4", front(0, 0, 4), "gguf_version", 4},
      {"the largest version", front(0, 0, 0xFFFFFFFF), "gguf_version", 4},
      {"big-endian version 3", front(0, 0, 0x03000000), "gguf_order", 4},
      {"big-endian version 2", front(0, 0, 0x02000000), "gguf_order", 4},
      {"no counts", "GGUF" + u32(3), "truncated", 8},
      {"half a count", "GGUF" + u32(3) + u32(0), "truncated", 8},
      {"no number of keys", "GGUF" + u32(3) + u64(0), "truncated", 16},
      {"all tensors there could be", front(Huge, 0), "gguf_count", 8},
      {"2^63 tensors", front(Half, 0), "gguf_count", 8},
      {"a tensor in no bytes", front(1, 0), "gguf_count", 8},
      {"a tensor too many", front(3, 0) + std::string(48, '\0'), "gguf_count", 8},
      {"all keys there could be", front(0, Huge), "gguf_count", 16},
      {"2^63 keys", front(0, Half), "gguf_count", 16},
      {"a key in no bytes", front(0, 1), "gguf_count", 16},
      {"a key too many", front(0, 3) + std::string(38, '\0'), "gguf_count", 16},
      {"version 1 with all tensors", "GGUF" + u32(1) + u32(0xFFFFFFFF) + u32(0), "gguf_count", 8},
      {"version 1 without keys' number", "GGUF" + u32(1) + u32(0), "truncated", 12},
      {"version 2 with all keys", front(0, Huge, 2), "gguf_count", 16},
  };
}

std::vector<Malformed> malformed_keys() {
  const std::string rest(16, '\0');
  const std::size_t tag = Front + 8 + 1;  // of a key whose name is one letter
  const std::size_t value = tag + 4;
  return {
      {"a name of all bytes", front(0, 1) + u64(Huge) + rest, "gguf_string", Front},
      {"a name longer than the file", front(0, 1) + u64(17) + rest, "gguf_string", Front},
      {"a name above the limit", with_key(std::string(4097, 'k'), U8, u8(0)), "gguf_limit", Front},
      {"a name with a stray byte", with_key("a\xFF", U8, u8(0)), "gguf_utf8", Front},
      {"a name in overlong UTF-8", with_key("\xC0\x80", U8, u8(0)), "gguf_utf8", Front},
      {"a name with a surrogate", with_key("\xED\xA0\x80", U8, u8(0)), "gguf_utf8", Front},
      {"a name cut within a letter", with_key("gr\xC3", U8, u8(0)), "gguf_utf8", Front},
      {"a key twice", front(0, 2) + key("a", U8, u8(1)) + key("a", U32, u32(1)), "gguf_key",
       Front + 14},
      {"no value", front(0, 1) + text("k") + u32(U8), "truncated", value},
      {"half a tag", front(0, 1) + text("kkk") + number(U8, 2), "truncated", tag + 2},
      {"kind 13", with_key("k", 13, rest), "gguf_kind", tag},
      {"the last kind", with_key("k", 0xFFFFFFFF, rest), "gguf_kind", tag},
      {"half a u32", with_key("k", U32, number(0, 2)), "truncated", value},
      {"half a u64", with_key("k", U64, u32(0)), "truncated", value},
      {"half an f64", with_key("k", F64, number(0, 7)), "truncated", value},
      {"a bool of 2", with_key("k", Bool, u8(2)), "gguf_bool", value},
      {"a bool of 255", with_key("k", Bool, u8(255)), "gguf_bool", value},
      {"a string of all bytes", with_key("k", String, u64(Huge) + rest), "gguf_string", value},
      {"a string of 2^63 bytes", with_key("k", String, u64(Half) + rest), "gguf_string", value},
      {"a string one too long", with_key("k", String, u64(17) + rest), "gguf_string", value},
      {"half a length", with_key("k", String, u32(1)), "truncated", value},
  };
}

std::vector<Malformed> malformed_arrays() {
  const std::size_t at = Front + 8 + 1 + 4;  // of the array's own tag
  const auto with = [](const std::string& value) { return with_key("k", Array, value); };
  const std::string rest(16, '\0');
  return {
      {"elements of kind 13", with(array(13, 0, rest)), "gguf_kind", at},
      {"half a tag of elements", with(number(U8, 2)), "truncated", at},
      {"no number of elements", with(u32(U8)), "truncated", at + 4},
      {"all elements there could be", with(array(U8, Huge, rest)), "gguf_count", at + 4},
      {"2^63 elements", with(array(U64, Half, rest)), "gguf_count", at + 4},
      {"a product that wraps", with(array(U64, (Half >> 2) + 1, rest)), "gguf_count", at + 4},
      {"an element too many", with(array(U8, 17, rest)), "gguf_count", at + 4},
      {"a u64 too many", with(array(U64, 3, rest)), "gguf_count", at + 4},
      {"a string too many", with(array(String, 3, rest)), "gguf_count", at + 4},
      {"a string of all bytes", with(array(String, 2, text("ab") + u64(Huge))), "gguf_string",
       at + 12 + 10},
      {"a bool of 2", with(array(Bool, 2, u8(1) + u8(2))), "gguf_bool", at + 13},
      {"nine deep", with(deep(9)), "gguf_nesting", at + 12 * 8},
      {"a hundred deep", with(deep(100)), "gguf_nesting", at + 12 * 8},
      {"arrays too many", with(array(Array, 2, rest)), "gguf_count", at + 4},
      {"an array of kind 99", with(array(Array, 1, array(99, 0, ""))), "gguf_kind", at + 12},
      {"an inner array too long", with(array(Array, 1, array(U32, 5, rest))), "gguf_count",
       at + 16},
      {"a second array cut", with(array(Array, 2, array(U8, 4, u32(0)) + u32(U8) + u32(0))),
       "truncated", at + 12 + 16 + 4},
  };
}

std::vector<Malformed> malformed_alignments() {
  const std::size_t tag = Front + 8 + 17;
  return {
      {"alignment 0", aligned_to(U32, u32(0)), "gguf_alignment", tag},
      {"alignment 3", aligned_to(U32, u32(3)), "gguf_alignment", tag},
      {"alignment 33", aligned_to(U32, u32(33)), "gguf_alignment", tag},
      {"the largest alignment", aligned_to(U32, u32(0xFFFFFFFF)), "gguf_alignment", tag},
      {"alignment as u64", aligned_to(U64, u64(32)), "gguf_alignment", tag},
      {"alignment as i32", aligned_to(I32, u32(32)), "gguf_alignment", tag},
      {"alignment as a string", aligned_to(String, text("32")), "gguf_alignment", tag},
      {"alignment as an array", aligned_to(Array, array(U32, 1, u32(32))), "gguf_alignment", tag},
      {"an alignment behind the file", aligned_to(U32, u32(1U << 31)), "gguf_range", tag + 8},
      {"an offset off an alignment of 64",
       with_tensors({{.offset = 32}}, 128, key("general.alignment", U32, u32(64)), 1),
       "gguf_alignment", tag + 8},
  };
}

std::vector<Malformed> malformed_tensors() {
  const std::size_t rank = Front + 8 + 1;  // of the first tensor, whose name is one letter
  const std::size_t dims = rank + 4;
  const std::size_t entry = 33;  // what one with a name of a letter and one dimension takes
  const auto one = [](const Entry& e, std::size_t data = 256) { return with_tensors({e}, data); };
  const std::string whole = one({});
  return {
      {"a name of all bytes", front(1, 0) + u64(Huge) + std::string(16, '\0'), "gguf_string",
       Front},
      {"a name above the limit", one({.name = std::string(4097, 'n')}), "gguf_limit", Front},
      {"a name that is not UTF-8", one({.name = "\x80"}), "gguf_utf8", Front},
      {"a name twice", with_tensors({{}, {.offset = 32}}, 64), "tensor_duplicate", 128},
      {"65 dimensions", one({.dims = std::vector<std::uint64_t>(65, 1)}), "gguf_rank", rank},
      {"all dimensions there could be", front(1, 0) + text("w") + u32(0xFFFFFFFF) + u64(8) + u32(0),
       "gguf_rank", rank},
      {"dimensions cut", front(1, 0) + text("w") + u32(2) + u64(8) + u32(0), "truncated", dims + 8},
      {"no type", front(1, 0) + text("www") + u32(1) + u64(8) + number(0, 1), "truncated",
       dims + 10},
      {"no offset", front(1, 0) + text("w") + u32(1) + u64(8) + u32(0) + u32(0), "truncated",
       dims + 12},
      {"a size of 2^63", one({.dims = {Half}}), "gguf_size", dims},
      {"a size of all bits", one({.dims = {8, Huge}}), "gguf_size", dims + 8},
      {"sizes that wrap", one({.dims = {1ULL << 32, 1ULL << 32}}), "gguf_size", Front},
      {"sizes that wrap to 8", one({.dims = {(1ULL << 61) + 1, 8}}), "gguf_size", Front},
      {"bytes that wrap", one({.dims = {1ULL << 62}, .type = F64Type}), "gguf_size", Front},
      {"sizes that wrap beside a zero", one({.dims = {0, Half - 1, Half - 1}}), "gguf_size", Front},
      {"the type 4, which is gone", one({.type = 4}), "gguf_type", dims + 8},
      {"the type 33, which is gone", one({.type = 33}), "gguf_type", dims + 8},
      {"a type to come", one({.type = 4242}), "gguf_type", dims + 8},
      {"the last type", one({.type = 0xFFFFFFFF}), "gguf_type", dims + 8},
      {"a row of a block and a bit", one({.dims = {33}, .type = Q4_0}), "gguf_size", Front},
      {"half a block", one({.dims = {128, 2}, .type = Q4K}), "gguf_size", Front},
      {"a scalar in blocks", one({.dims = {}, .type = Q4_0}), "gguf_size", Front},
      {"an odd offset", one({.offset = 1}), "gguf_alignment", Front},
      {"an offset behind the file", one({.offset = 1024}), "gguf_range", Front},
      {"an offset that wraps", one({.offset = Huge - 31}), "gguf_range", Front},
      {"an end that wraps", one({.dims = {1ULL << 40}, .offset = Huge - 31}), "gguf_range", Front},
      {"an end behind the file", one({.dims = {65}}), "gguf_range", Front},
      {"no bytes at all", one({}, 0), "gguf_range", Front},
      {"not even padding", front(1, 0) + Entry{}.bytes(), "gguf_range", Front},
      {"a byte less", whole.substr(0, whole.size() - 225), "gguf_range", Front},
      {"blocks behind the file", one({.dims = {512}, .type = Q4K}), "gguf_range", Front},
      {"unreadable blocks behind it", one({.dims = {1024}, .type = Iq2Xxs}), "gguf_range", Front},
      {"two in one place", with_tensors({{.name = "a"}, {.name = "b"}}, 64), "tensor_overlap", 96},
      {"one into the next",
       with_tensors({{.name = "a", .dims = {9}}, {.name = "b", .offset = 32}}, 64),
       "tensor_overlap", 128},
      {"one within another, named first",
       with_tensors({{.name = "a", .offset = 32}, {.name = "b", .dims = {24}}}, 96),
       "tensor_overlap", 128},
      {"the second entry cut", front(2, 0) + Entry{}.bytes() + text("www") + u32(0), "truncated",
       Front + entry + 15},
  };
}

std::vector<Malformed> all_malformed() {
  std::vector<Malformed> all;
  for (const auto& part : {malformed_headers(), malformed_keys(), malformed_arrays(),
                           malformed_alignments(), malformed_tensors()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

// [gguf-hardened]
TEST(IoGgufMalformed, EveryFileGetsItsErrorAndItsByte) {
  const std::vector<Malformed> all = all_malformed();
  EXPECT_GE(all.size(), 100U);
  for (const Malformed& m : all) {
    SCOPED_TRACE(m.what);
    try {
      (void)io::parse_gguf(bytes_of(m.file));
      ADD_FAILURE() << "it is accepted";
    } catch (const UserError& e) {
      EXPECT_EQ(e.diagnostic().full_code(), std::string("file.") + m.code) << e.what();
      ASSERT_EQ(e.diagnostic().notes.size(), 1U);
      EXPECT_EQ(e.diagnostic().notes[0], fmt::format("at byte {}", m.at)) << e.what();
      EXPECT_LT(std::string(e.what()).size(), 600U);
    }
  }
}

// The file that the cases above damage is fine.
TEST(IoGgufMalformed, TheWholeFileIsAccepted) {
  EXPECT_EQ(io::parse_gguf(bytes_of(with_tensors({{}}, 32))).tensors.size(), 1U);
  EXPECT_EQ(io::parse_gguf(bytes_of(aligned_to(U32, u32(16)))).alignment, 16U);
  EXPECT_EQ(io::parse_gguf(bytes_of(with_key("k", Array, deep(8)))).metadata.size(), 1U);
}

TEST(IoGgufMalformed, NoPartOfAFileIsAFile) {
  const std::string keys = key("a", String, text("hello")) +
                           key("b", Array, array(U32, 2, u64(5))) + key("c", Bool, u8(1)) +
                           key("d", Array, deep(3));
  const std::string file = with_tensors(
      {{.name = "x", .dims = {4, 2}}, {.name = "y", .dims = {32}, .type = Q4_0, .offset = 32}}, 50,
      keys, 4);
  EXPECT_EQ(io::parse_gguf(bytes_of(file)).tensors.size(), 2U);
  for (std::size_t size = 0; size < file.size(); ++size) {
    EXPECT_FALSE(testing::fault_of([&] {
                   (void)io::parse_gguf(bytes_of(std::string_view(file).substr(0, size)));
                 }).empty())
        << size;
  }
}

TEST(IoGgufMalformed, LimitsAreKept) {
  const std::string file = with_tensors({{.name = "x"}, {.name = "y", .offset = 32}}, 64,
                                        key("a", U8, u8(1)) + key("bb", U8, u8(1)), 2);
  const auto fault = [&](const io::GgufOptions& options) {
    return testing::fault_of([&] { (void)io::parse_gguf(bytes_of(file), options); });
  };
  EXPECT_EQ(fault({}), "");
  EXPECT_EQ(fault({.max_keys = 2, .max_tensors = 2, .max_name_bytes = 2}), "");
  EXPECT_EQ(fault({.max_keys = 1}), "file.gguf_limit");
  EXPECT_EQ(fault({.max_tensors = 1}), "file.gguf_limit");
  EXPECT_EQ(fault({.max_name_bytes = 1}), "file.gguf_limit");
}

}  // namespace
}  // namespace ricci::io_gguf_malformed_test
