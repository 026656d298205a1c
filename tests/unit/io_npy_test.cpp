// Reading and writing NPY: every dtype, shape and layout NumPy writes, and files it never would.
#include <complex>
#include <string>

#include <gtest/gtest.h>

#include "ricci/io/file.h"
#include "ricci/io/npy.h"

#include "support/file_faults.h"
#include "test_paths.h"

namespace ricci::io_npy_test {
namespace {

std::string fixture(const std::string& file) {
  return std::string(RICCI_SOURCE_DIR) + "/tests/data/npy/" + file;
}

using testing::bytes_of;
using testing::fault_of;

std::string npy(const std::string& dict, const std::string& data = {}) {
  std::string out = "\x93NUMPY\x01";
  out += '\0';
  out += static_cast<char>(dict.size() & 0xFFU);
  out += static_cast<char>(dict.size() >> 8);
  return out + dict + data;
}

std::string npy_fault(const std::string& file) {
  return fault_of([&] { (void)io::parse_npy(bytes_of(file)); });
}

Tensor counting(DType dtype, StaticDims dims) {
  const Type type{dtype, Dims(dims.begin(), dims.end())};
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(type.numel().value()));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int64_t>(i) % 100;
  return Tensor::from_numbers<std::int64_t>(type, numbers);
}

TEST(IoNpy, EveryDtypeAndShapeSurvivesARoundTrip) {
  for (const DType dtype : AllDTypes) {
    for (const StaticDims& dims :
         {StaticDims{}, {0}, {1}, {2, 3}, {0, 7}, {67}, {1, 2, 1, 3, 2, 1}}) {
      const Tensor t = counting(dtype, dims);
      const Tensor back = io::parse_npy(io::npy_bytes(t));
      if (dtype == DType::BF16) {
        EXPECT_EQ(back.dtype(), DType::F32);
        EXPECT_EQ(back.numbers<double>(), t.numbers<double>());
      } else {
        EXPECT_TRUE(back.identical(t)) << t.type().to_string();
      }
    }
  }
}

TEST(IoNpy, ElementsStartAtAMultipleOf64) {
  for (const StaticDims& dims : {StaticDims{}, {2, 3}, StaticDims(40, 1)}) {
    const Tensor t = counting(DType::F64, dims);
    EXPECT_EQ((io::npy_bytes(t).size() - static_cast<std::size_t>(t.numel()) * 8) % 64, 0U);
  }
}

TEST(IoNpy, SplatsAndTransposedViewsAreWrittenInFull) {
  const Tensor splat = Tensor::splat(f32({2, 2}), 0.5);
  EXPECT_TRUE(io::parse_npy(io::npy_bytes(splat)).identical(splat));
  const std::vector<std::int64_t> perm = {1, 0};
  const Tensor view = counting(DType::I32, {2, 3}).transposed(perm);
  EXPECT_TRUE(io::parse_npy(io::npy_bytes(view)).identical(view));
}

TEST(IoNpy, ReadsWhatNumpyWrites) {
  using V = std::vector<double>;
  for (const char* code : {"f2", "f4", "f8", "i1", "i2", "i4", "i8", "c8", "c16"}) {
    const Tensor t = io::read_npy(fixture(std::string(code) + ".npy"));
    EXPECT_EQ(t.dims(), (StaticDims{2, 3})) << code;
    EXPECT_EQ(t.numbers<double>(), (V{-2, -1, 0, 1, 2, 3})) << code;
  }
  for (const char* code : {"u1", "u2", "u4", "u8"}) {
    EXPECT_EQ(io::read_npy(fixture(std::string(code) + ".npy")).numbers<double>(),
              (V{0, 1, 2, 3, 4, 5}))
        << code;
  }
  EXPECT_EQ(io::read_npy(fixture("u2.npy")).dtype(), DType::U32);
  EXPECT_EQ(io::read_npy(fixture("u8.npy")).dtype(), DType::I64);
  EXPECT_EQ(io::read_npy(fixture("b1.npy")).elements<bool>(),
            (std::vector<bool>{true, false, true, false, true, false}));
}

TEST(IoNpy, ReadsByteOrderFortranOrderAndVersions) {
  using V = std::vector<double>;
  using C = std::complex<double>;
  const V counted = {0, 1, 2, 3, 4, 5};
  EXPECT_EQ(io::read_npy(fixture("big_endian.npy")).numbers<double>(), counted);
  EXPECT_EQ(io::read_npy(fixture("big_endian_complex.npy")).numbers<C>(),
            (std::vector<C>{{0, 3}, {1, 4}, {2, 5}, {3, 0}, {4, 1}, {5, 2}}));
  const Tensor fortran = io::read_npy(fixture("fortran.npy"));
  EXPECT_EQ(fortran.numbers<double>(), counted);
  EXPECT_TRUE(fortran.is_contiguous());
  EXPECT_EQ(io::read_npy(fixture("version2.npy")).numbers<double>(), counted);
  EXPECT_EQ(io::read_npy(fixture("version3.npy")).numbers<double>(), counted);
  EXPECT_EQ(io::read_npy(fixture("scalar.npy")).item(), 2.5);
  EXPECT_EQ(io::read_npy(fixture("empty.npy")).dims(), (StaticDims{0, 3}));
}

TEST(IoNpy, RefusesWhatItCannotHold) {
  EXPECT_EQ(fault_of([] { (void)io::read_npy(fixture("structured.npy")); }), "file.npy_header");
  EXPECT_EQ(fault_of([] { (void)io::read_npy(fixture("absent.npy")); }), "file.open");
  const std::string u64 = "{'descr': '<u8', 'fortran_order': False, 'shape': (1,), }";
  EXPECT_EQ(npy_fault(npy(u64, std::string(8, '\xff'))), "file.npy_range");
}

TEST(IoNpy, ErrorsNameTheFileTheByteAndTheRemedy) {
  try {
    (void)io::read_npy(fixture("structured.npy"));
    FAIL();
  } catch (const UserError& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("structured.npy"), std::string::npos) << text;
    EXPECT_NE(text.find("at byte 20"), std::string::npos) << text;
    EXPECT_NE(text.find("help: "), std::string::npos) << text;
  }
}

TEST(IoNpy, EveryTruncationIsAnError) {
  for (const char* file : {"f4.npy", "scalar.npy", "empty.npy", "version2.npy"}) {
    const std::vector<std::byte> whole = io::read_file(fixture(file));
    for (std::size_t n = 0; n < whole.size(); ++n) {
      EXPECT_NE(fault_of([&] { (void)io::parse_npy(std::span(whole).first(n)); }), "")
          << file << " cut at " << n;
    }
  }
}

TEST(IoNpy, EveryChangedHeaderByteIsReadOrRefused) {
  const std::vector<std::byte> whole = io::read_file(fixture("f4.npy"));
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const unsigned flip : {0x01U, 0x10U, 0x80U, 0xFFU}) {
      std::vector<std::byte> changed = whole;
      changed[i] ^= static_cast<std::byte>(flip);
      (void)fault_of([&] { (void)io::parse_npy(changed); });  // anything but a crash
    }
  }
}

TEST(IoNpy, MalformedHeadersAreRefused) {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }";
  ASSERT_EQ(npy_fault(npy(good, "abcd")), "");
  const auto dict = [](const std::string& descr, const std::string& order,
                       const std::string& shape) {
    return npy("{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + "}",
               "abcd");
  };
  const auto shape = [&](const std::string& s) { return dict("'<f4'", "False", s); };
  const auto descr = [&](const std::string& s) { return dict(s, "False", "(1,)"); };
  const struct {
    std::string file;
    std::string code;
  } faults[] = {
      {"", "file.truncated"},
      {"not an array at all", "file.npy_magic"},
      {"\x93NUMPX\x01" + std::string(1, '\0') + "xx", "file.npy_magic"},
      {std::string("\x93NUMPY\x00\x00\x00\x00", 10), "file.npy_version"},
      {std::string("\x93NUMPY\x04\x00\x00\x00", 10), "file.npy_version"},
      {std::string("\x93NUMPY\x01\x01\x00\x00", 10), "file.npy_version"},
      {std::string("\x93NUMPY\x01\x00\xff\xff", 10), "file.truncated"},
      {std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12), "file.npy_header"},
      {std::string("\x93NUMPY\x02\x00\xff\xff\x00\x00", 12), "file.truncated"},
      {npy(""), "file.npy_header"},
      {npy("{}"), "file.npy_header"},
      {npy("{"), "file.npy_header"},
      {npy("}"), "file.npy_header"},
      {npy(std::string(200, '{')), "file.npy_header"},
      {npy(std::string(200, '\0')), "file.npy_header"},
      {npy("{'descr'}"), "file.npy_header"},
      {npy("{'descr': }"), "file.npy_header"},
      {npy("{'descr: '<f4'}"), "file.npy_header"},
      {npy("{descr: '<f4'}"), "file.npy_header"},
      {npy("{'descr': '<f4', 'fortran_order': False}"), "file.npy_header"},
      {npy("{'descr': '<f4', 'shape': (1,)}"), "file.npy_header"},
      {npy("{'fortran_order': False, 'shape': (1,)}"), "file.npy_header"},
      {npy("{'descr': '<f4', 'descr': '<f4'}"), "file.npy_header"},
      {npy("{'descr': '<f4' 'fortran_order': False}"), "file.npy_header"},
      {npy(good + "x", "abcd"), "file.npy_header"},
      {npy(good + good, "abcd"), "file.npy_header"},
      {npy("{'extra': 1}"), "file.npy_header"},
      {npy("{'descr': {'descr': '<f4'}}"), "file.npy_header"},
      {descr("''"), "file.npy_descr"},
      {descr("'<'"), "file.npy_descr"},
      {descr("'f4'"), "file.npy_descr"},
      {descr("'|f4'"), "file.npy_descr"},
      {descr("'<f3'"), "file.npy_descr"},
      {descr("'<f16'"), "file.npy_descr"},
      {descr("'<V4'"), "file.npy_descr"},
      {descr("'|O'"), "file.npy_descr"},
      {descr("'<U1'"), "file.npy_descr"},
      {descr("'<M8[ns]'"), "file.npy_descr"},
      {descr("'<f4\\''"), "file.npy_header"},
      {descr("['<f4']"), "file.npy_header"},
      {descr("4"), "file.npy_header"},
      {descr("('<f4', (2,))"), "file.npy_header"},
      {dict("'<f4'", "false", "(1,)"), "file.npy_header"},
      {dict("'<f4'", "0", "(1,)"), "file.npy_header"},
      {shape("1"), "file.npy_header"},
      {shape("(1)"), "file.npy_header"},
      {shape("[1]"), "file.npy_header"},
      {shape("(1"), "file.npy_header"},
      {shape("(-1,)"), "file.npy_header"},
      {shape("(+1,)"), "file.npy_header"},
      {shape("(1.0,)"), "file.npy_header"},
      {shape("(1,,)"), "file.npy_header"},
      {shape("(,)"), "file.npy_header"},
      {shape("((1,),)"), "file.npy_header"},
      {shape("(0x1,)"), "file.npy_header"},
      {shape("('1',)"), "file.npy_header"},
      {shape("(99999999999999999999,)"), "file.npy_header"},
      {shape("(9223372036854775807,)"), "file.npy_size"},
      {shape("(4294967296, 4294967296)"), "file.npy_size"},
      {shape("(0, 4294967296, 4294967296)"), "file.npy_size"},
      {shape("(1152921504606846976,)"), "file.npy_size"},
      {shape("(1000000000000,)"), "file.npy_size"},
      {shape("(2,)"), "file.npy_size"},
      {shape("(0,)"), "file.npy_size"},
      {shape("(" +
             [] {
               std::string s;
               for (int i = 0; i < 65; ++i) s += "1,";
               return s;
             }() +
             ")"),
       "file.npy_header"},
      {npy("{'descr': '|b1', 'fortran_order': False, 'shape': (2,)}", "\x01\x02"), "file.npy_bool"},
  };
  for (const auto& f : faults) EXPECT_EQ(npy_fault(f.file), f.code) << f.file;
}

TEST(IoNpy, WritingReplacesTheFileOrLeavesItAlone) {
  const std::string path = ::testing::TempDir() + "ricci_io_npy_test.npy";
  io::write_npy(path, counting(DType::F32, {2, 3}));
  io::write_npy(path, counting(DType::I64, {4}));
  EXPECT_EQ(io::read_npy(path).type(), i64({4}));
  EXPECT_EQ(fault_of([] { io::write_npy("/nowhere/at/all.npy", Tensor()); }), "file.write");
  EXPECT_EQ(fault_of([] { io::write_npy(::testing::TempDir(), Tensor()); }), "file.write");
}

}  // namespace
}  // namespace ricci::io_npy_test
