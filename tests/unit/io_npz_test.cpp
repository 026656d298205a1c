// Reading and writing NPZ, and archives built byte by byte to mislead the reader.
#include <string>

#include <gtest/gtest.h>
#include <zlib.h>

#include "ricci/io/file.h"
#include "ricci/io/npy.h"

#include "io/zip.h"
#include "runtime/counted_allocations.h"
#include "support/file_faults.h"
#include "test_paths.h"

namespace ricci::io_npz_test {
namespace {

using testing::bytes_of;
using testing::fault_of;

std::string fixture(const std::string& file) {
  return std::string(RICCI_SOURCE_DIR) + "/tests/data/npy/" + file;
}

std::string text(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string npz_fault(const std::string& file, const io::NpzOptions& limits = {}) {
  return fault_of([&] { (void)io::parse_npz(bytes_of(file), limits); });
}

std::string little(std::uint64_t v, int size) {
  std::string out;
  for (int i = 0; i < size; ++i) out += static_cast<char>((v >> (8 * i)) & 0xFFU);
  return out;
}

std::string deflated(const std::string& data) {
  std::string out(data.size() + 1024, '\0');
  z_stream s{};
  deflateInit2(&s, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY);
  s.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  s.avail_in = static_cast<uInt>(data.size());
  s.next_out = reinterpret_cast<Bytef*>(out.data());
  s.avail_out = static_cast<uInt>(out.size());
  deflate(&s, Z_FINISH);
  out.resize(s.total_out);
  deflateEnd(&s);
  return out;
}

// One entry whose every field can be made to lie. Unset sizes are the true ones.
struct Forged {
  std::string name = "x.npy";
  std::string data;     // as the archive holds it
  std::string content;  // what it unpacks to
  std::uint64_t method = 0;
  std::uint64_t flags = 0;
  std::int64_t crc = -1;
  std::int64_t packed = -1;
  std::int64_t size = -1;
  std::int64_t offset = -1;
  std::string local_name = {};

  static Forged stored(std::string content) {
    Forged f;
    f.data = content;
    f.content = std::move(content);
    return f;
  }
  static Forged packed_with_deflate(std::string content) {
    Forged f;
    f.data = deflated(content);
    f.content = std::move(content);
    f.method = 8;
    return f;
  }
};

std::string archive(const std::vector<Forged>& entries, const std::string& comment = {}) {
  std::string out;
  std::string directory;
  for (const Forged& e : entries) {
    const auto or_true = [](std::int64_t lie, std::uint64_t truth) {
      return lie < 0 ? truth : static_cast<std::uint64_t>(lie);
    };
    const std::uint64_t sum = crc32(0, reinterpret_cast<const Bytef*>(e.content.data()),
                                    static_cast<uInt>(e.content.size()));
    const std::string shared =
        little(e.flags, 2) + little(e.method, 2) + little(0, 4) + little(or_true(e.crc, sum), 4) +
        little(or_true(e.packed, e.data.size()), 4) + little(or_true(e.size, e.content.size()), 4);
    const std::string local_name = e.local_name.empty() ? e.name : e.local_name;
    directory += little(0x02014b50, 4) + little(20, 2) + little(20, 2) + shared +
                 little(e.name.size(), 2) + little(0, 2) + little(0, 2) + little(0, 8) +
                 little(or_true(e.offset, out.size()), 4) + e.name;
    out += little(0x04034b50, 4) + little(20, 2) + shared + little(local_name.size(), 2) +
           little(0, 2) + local_name + e.data;
  }
  const std::size_t start = out.size();
  out += directory;
  out += little(0x06054b50, 4) + little(0, 4) + little(entries.size(), 2) +
         little(entries.size(), 2) + little(directory.size(), 4) + little(start, 4) +
         little(comment.size(), 2) + comment;
  return out;
}

std::string small_array() { return text(io::npy_bytes(Tensor::of<float>({2}, {1, 2}))); }

TEST(IoNpz, ArraysSurviveARoundTripInOrder) {
  const io::NamedTensors arrays = {
      {"z", Tensor::of<float>({2}, {1, 2})},
      {"a", Tensor::of<bool>({1}, {true})},
      {"../not/a/path", Tensor::of<std::int64_t>({}, {7})},
      {"größe", Tensor::zeros(f64({0}))},
      {"", Tensor()},
  };
  const io::NamedTensors back = io::parse_npz(io::npz_bytes(arrays));
  ASSERT_EQ(back.size(), arrays.size());
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    EXPECT_EQ(back[i].first, arrays[i].first);
    EXPECT_TRUE(back[i].second.identical(arrays[i].second)) << arrays[i].first;
  }
  EXPECT_TRUE(io::parse_npz(io::npz_bytes({})).empty());
  EXPECT_EQ(io::npz_bytes(arrays), io::npz_bytes(arrays));
}

TEST(IoNpz, FilesSurviveARoundTrip) {
  const std::string path = ::testing::TempDir() + "ricci_io_npz_test.npz";
  io::write_npz(path, {{"x", Tensor::of<float>({2}, {1, 2})}});
  const io::NamedTensors back = io::read_npz(path);
  ASSERT_EQ(back.size(), 1U);
  EXPECT_EQ(back[0].second.numbers<double>(), (std::vector<double>{1, 2}));
}

TEST(IoNpz, ReadsWhatNumpyWrites) {
  for (const char* file : {"stored.npz", "deflated.npz"}) {
    const io::NamedTensors arrays = io::read_npz(fixture(file));
    ASSERT_GE(arrays.size(), 2U);
    EXPECT_EQ(arrays[0].first, "x");
    EXPECT_EQ(arrays[0].second.numbers<double>(), (std::vector<double>{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(arrays[1].first, "a/b");
  }
  EXPECT_EQ(io::read_npz(fixture("deflated.npz"))[2].second.numel(), 1000);
  EXPECT_EQ(io::read_npz(fixture("descriptors.npz"))[0].second.dims(), (StaticDims{2, 3}));
}

TEST(IoNpz, Zip64FieldsAreWrittenAndRead) {
  for (const std::uint64_t from : {0, 1, 100, 1000}) {
    std::string out;
    io::ZipWriter zip([&](io::ByteSpan piece) { out += io::as_text(piece); }, from);
    zip.add("a.npy", bytes_of(small_array()));
    zip.add("b.npy", bytes_of(small_array()));
    zip.finish();
    const io::NamedTensors back = io::parse_npz(bytes_of(out));
    ASSERT_EQ(back.size(), 2U) << from;
    EXPECT_EQ(back[1].second.numbers<double>(), (std::vector<double>{1, 2}));
  }
}

TEST(IoNpz, ACommentAndADescriptorFlagAreTolerated) {
  EXPECT_EQ(npz_fault(archive({Forged::stored(small_array())}, "a comment")), "");
  EXPECT_EQ(npz_fault(archive({Forged::packed_with_deflate(small_array())})), "");
}

TEST(IoNpz, EveryTruncationIsAnError) {
  for (const std::string& whole :
       {archive({Forged::packed_with_deflate(small_array())}),
        text(io::npz_bytes({{"x", Tensor()}})), text(io::read_file(fixture("stored.npz")))}) {
    for (std::size_t n = 0; n < whole.size(); ++n) {
      EXPECT_NE(npz_fault(whole.substr(0, n)), "") << n;
    }
  }
}

TEST(IoNpz, EveryChangedByteIsReadOrRefused) {
  for (const std::string& whole : {archive({Forged::packed_with_deflate(small_array())}),
                                   text(io::npz_bytes({{"x", Tensor()}}))}) {
    for (std::size_t i = 0; i < whole.size(); ++i) {
      for (const int flip : {0x01, 0x08, 0x80, 0xFF}) {
        std::string changed = whole;
        changed[i] = static_cast<char>(changed[i] ^ flip);
        (void)npz_fault(changed);  // anything but a crash
      }
    }
  }
}

TEST(IoNpz, ForgedArchivesAreRefused) {
  const std::string array = small_array();
  const auto stored = [&](auto&& change) {
    Forged f = Forged::stored(array);
    change(f);
    return archive({f});
  };
  const auto packed = [&](auto&& change) {
    Forged f = Forged::packed_with_deflate(array);
    change(f);
    return archive({f});
  };
  const auto size = static_cast<std::int64_t>(array.size());
  const Forged plain = Forged::stored(array);
  const struct {
    std::string file;
    std::string code;
  } faults[] = {
      {"", "file.zip_end"},
      {std::string(1000, 'x'), "file.zip_end"},
      {archive({plain}) + "trailing", "file.zip_end"},
      {"PK\x05\x06" + std::string(18, '\xff'), "file.zip_end"},
      {stored([](Forged& f) { f.crc = 1; }), "file.zip_crc"},
      {packed([](Forged& f) { f.crc = 1; }), "file.zip_crc"},
      {stored([](Forged& f) { f.flags = 1; }), "file.zip_encrypted"},
      {stored([](Forged& f) { f.method = 12; }), "file.zip_method"},
      {stored([&](Forged& f) { f.size = size + 1; }), "file.zip_size"},
      {stored([&](Forged& f) { f.packed = f.size = size + 1; }), "file.zip_range"},
      {stored([&](Forged& f) { f.packed = f.size = 0xFFFFFFFE; }), "file.zip_range"},
      {stored([](Forged& f) { f.offset = 1; }), "file.zip_entry"},
      {stored([](Forged& f) { f.offset = 0x7FFFFFFF; }), "file.zip_range"},
      {stored([](Forged& f) { f.offset = 0xFFFFFFFF; }), "file.zip_range"},
      {stored([](Forged& f) { f.local_name = "y.npy"; }), "file.zip_entry"},
      {stored([](Forged& f) { f.name = "x.txt"; }), "file.npz_entry"},
      {stored([](Forged& f) { f.name = "x"; }), "file.npz_entry"},
      {stored([](Forged& f) { f.name = "folder/"; }), "file.npz_entry"},
      {packed([&](Forged& f) { f.size = size + 1; }), "file.npy_size"},
      {packed([&](Forged& f) { f.size = size - 1; }), "file.npy_size"},
      {packed([](Forged& f) { f.size = 0; }), "file.truncated"},
      {packed([](Forged& f) { f.size = 0xFFFFFFFE; }), "file.zip_size"},
      {packed([](Forged& f) { f.data = "\x07 not deflate"; }), "file.zip_deflate"},
      {packed([](Forged& f) { f.data.resize(f.data.size() - 3); }), "file.zip_deflate"},
      {packed([](Forged& f) { f.data += "more"; }), "file.zip_deflate"},
      {archive({plain, plain}), "file.zip_duplicate"},
      {archive({Forged::stored("not an array")}), "file.npy_magic"},
      {archive({Forged::packed_with_deflate("not an array")}), "file.npy_magic"},
      {archive({Forged::stored({})}), "file.truncated"},
  };
  for (std::size_t i = 0; i < std::size(faults); ++i) {
    EXPECT_EQ(npz_fault(faults[i].file), faults[i].code) << "case " << i;
  }
}

TEST(IoNpz, OverlappingEntriesAreRefused) {
  // The first entry's data contains a whole second entry.
  const std::string array = small_array();
  std::string inner = archive({Forged::stored(array)});
  inner.resize(inner.size() - 22 - 46 - 5);  // its local header and data only
  Forged outer = Forged::stored(inner);
  outer.name = "a.npy";
  Forged second = Forged::stored(array);
  second.offset = 30 + 5;
  EXPECT_EQ(npz_fault(archive({outer, second})), "file.zip_overlap");
}

TEST(IoNpz, DirectoryFieldsThatLieAreRefused) {
  const std::string whole = archive({Forged::stored(small_array())});
  const std::size_t end = whole.size() - 22;
  const auto with = [&](std::size_t at, std::uint64_t v, int size) {
    std::string out = whole;
    out.replace(end + at, static_cast<std::size_t>(size), little(v, size));
    return npz_fault(out);
  };
  EXPECT_EQ(with(4, 1, 2), "file.zip_disks");
  EXPECT_EQ(with(8, 0, 2), "file.zip_disks");
  EXPECT_EQ(with(8, 0x00020002, 4), "file.zip_range");  // two entries in the room of one
  EXPECT_EQ(with(8, 0, 4), "file.zip_range");           // none, yet bytes are there
  EXPECT_EQ(with(10, 0xFFFF, 2), "file.zip_end");       // zip64 without its records
  EXPECT_EQ(with(12, 0x7FFFFFFF, 4), "file.zip_range");
  EXPECT_EQ(with(16, 0x7FFFFFFF, 4), "file.zip_range");
  EXPECT_EQ(with(16, 0, 4), "file.zip_entry");
  EXPECT_EQ(with(20, 1, 2), "file.zip_end");
}

// The header of an array of so many bytes.
std::string bytes_header(std::int64_t count) {
  const std::string head = text(io::npy_bytes(Tensor::zeros({DType::U8, {1}})));
  std::string out = head.substr(0, head.size() - 1);
  const std::string shape = "(" + std::to_string(count) + ",), }";
  return out.replace(out.find("(1,)"), shape.size(), shape);
}

TEST(IoNpz, ABombIsRefusedBeforeItUnfolds) {
  // 8 MiB of zeros in 8 KiB: legal, but above the limit given.
  const std::string array = bytes_header(8388608) + std::string(8388608, '\0');
  const std::string bomb = archive({Forged::packed_with_deflate(array)});
  EXPECT_LT(bomb.size(), 100000U);
  EXPECT_EQ(npz_fault(bomb, {.max_total_bytes = 1 << 20}), "file.npz_limit");
  // The header's shape does not justify the declared size: refused from the first bytes.
  Forged lying = Forged::packed_with_deflate(small_array() + std::string(10000000, '\0'));
  EXPECT_EQ(npz_fault(archive({lying})), "file.npy_size");
}

TEST(IoNpz, TheDefaultLimitFollowsTheArchive) {
  constexpr std::int64_t MiB = 1 << 20;
  EXPECT_EQ(io::default_npz_limit(0), 256 * MiB);
  EXPECT_EQ(io::default_npz_limit(3 * MiB), 256 * MiB);
  EXPECT_EQ(io::default_npz_limit(10 * MiB), 640 * MiB);
  EXPECT_EQ(io::default_npz_limit(SIZE_MAX), 65536 * MiB);
  // Deflate may grow a thousandfold; without a word from the caller that is too much.
  constexpr std::int64_t Claimed = 400 * MiB;
  Forged bomb = Forged::packed_with_deflate(bytes_header(Claimed) + std::string(100000, '\0'));
  bomb.data += std::string(500000, 'x');
  bomb.size = static_cast<std::int64_t>(bytes_header(Claimed).size()) + Claimed;
  EXPECT_EQ(npz_fault(archive({bomb})), "file.npz_limit");
  EXPECT_EQ(npz_fault(archive({bomb}), {.max_total_bytes = Claimed}), "file.zip_deflate");
}

// Numbers that are widened count with the bytes they are given.
TEST(IoNpz, TheLimitIsOfWhatIsGiven) {
  std::string array = small_array();
  array.replace(array.find("<f4"), 3, "<u2");
  array.replace(array.find("(2,)"), 4, "(4,)");
  const std::string file = archive({Forged::stored(array)});
  EXPECT_EQ(npz_fault(file, {.max_total_bytes = 16}), "");
  EXPECT_EQ(npz_fault(file, {.max_total_bytes = 15}), "file.npz_limit");
}

TEST(IoNpz, NamesAndTypesAreKnownBeforeAnythingIsUnpacked) {
  // The first array is good, large and unwanted; the last has a name that is none.
  constexpr std::int64_t Large = 8 << 20;
  Forged large = Forged::packed_with_deflate(bytes_header(Large) + std::string(Large, '\0'));
  Forged small = Forged::packed_with_deflate(small_array());
  small.name = "small.npy";
  Forged other = Forged::stored(small_array());
  other.name = "readme.txt";
  const std::string good = archive({large, small});
  const std::string bad = archive({large, small, other});
  {
    const testing::CountedAllocations allocated;
    EXPECT_EQ(npz_fault(bad), "file.npz_entry");
    std::vector<std::string> seen;
    const io::NamedTensors arrays =
        io::parse_npz(bytes_of(good), {.wanted = [&](const std::string& name, const Type& type) {
                        seen.push_back(name + " " + type.to_string());
                        return name == "small";
                      }});
    EXPECT_EQ(seen, (std::vector<std::string>{"x u8[8388608]", "small f32[2]"}));
    ASSERT_EQ(arrays.size(), 1U);
    EXPECT_EQ(arrays[0].second.numbers<double>(), (std::vector<double>{1, 2}));
    EXPECT_LT(allocated.peak_bytes(), Large / 4);
  }
  EXPECT_EQ(fault_of([&] {
              (void)io::parse_npz(bytes_of(good), {.wanted = [](const auto&, const auto&) -> bool {
                                    throw UserError(ErrorCode::Name, "no");
                                  }});
            }),
            "name");
}

TEST(IoNpz, WritingRefusesWhatCannotBeRead) {
  for (const std::size_t rank : {32, 64}) {
    const Tensor t = Tensor::zeros({DType::F32, Dims(rank, 1)});
    EXPECT_TRUE(io::parse_npz(io::npz_bytes({{"x", t}}))[0].second.identical(t)) << rank;
  }
  const Tensor deep = Tensor::zeros({DType::F32, Dims(65, 1)});
  EXPECT_EQ(fault_of([&] { (void)io::npy_bytes(deep); }), "file.npy_rank");
  EXPECT_EQ(fault_of([&] { (void)io::npz_bytes({{"x", deep}}); }), "file.npy_rank");
  // Without elements, sizes may be as large as they like.
  const Tensor empty = Tensor::zeros(f64({0, std::int64_t{1} << 61}));
  EXPECT_TRUE(io::parse_npz(io::npz_bytes({{"x", empty}}))[0].second.identical(empty));
  const std::string longest(65535 - 4, 'n');
  EXPECT_EQ(io::parse_npz(io::npz_bytes({{longest, Tensor()}}))[0].first, longest);
  EXPECT_EQ(fault_of([&] { (void)io::npz_bytes({{longest + "n", Tensor()}}); }), "file");
}

TEST(IoNpz, WritingRefusesEqualNames) {
  EXPECT_EQ(fault_of([] { (void)io::npz_bytes({{"x", Tensor()}, {"x", Tensor()}}); }), "file");
}

}  // namespace
}  // namespace ricci::io_npz_test
