#include "io/npy_header.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "ricci/support/checked.h"
#include "ricci/support/text.h"

namespace ricci::io {
namespace {

constexpr std::string_view Magic = "\x93NUMPY";
constexpr std::size_t MaxRank = 64;  // NumPy's own limit

struct DescrRow {
  std::string_view code;  // kind and bytes
  DType dtype;            // what it becomes
  bool written = true;    // whether this row is the dtype's own code
};
constexpr std::array Descrs = {
    DescrRow{"f8", DType::F64},        DescrRow{"f4", DType::F32},
    DescrRow{"f2", DType::F16},        DescrRow{"i8", DType::I64},
    DescrRow{"i4", DType::I32},        DescrRow{"i2", DType::I16},
    DescrRow{"i1", DType::I8},         DescrRow{"u1", DType::U8},
    DescrRow{"u4", DType::U32},        DescrRow{"b1", DType::Bool},
    DescrRow{"c8", DType::C64},        DescrRow{"c16", DType::C128},
    DescrRow{"u2", DType::U32, false}, DescrRow{"u8", DType::I64, false},
};

// Reads the dictionary `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`: a flat walk,
// since none of the three values nests.
class DictReader {
 public:
  DictReader(std::string_view text, std::size_t base) : text_(text), base_(base) {}

  void read(NpyHeader& header) {
    expect('{');
    while (!accept('}')) {
      const std::size_t key_at = offset();
      const std::string_view key = quoted();
      expect(':');
      read_value(key, key_at, header);
      if (accept('}')) break;
      expect(',');
    }
    if (!have_descr_) fail("the header lacks 'descr'");
    if (!have_order_) fail("the header lacks 'fortran_order'");
    if (!have_shape_) fail("the header lacks 'shape'");
    skip_space();
    if (at_ != text_.size()) fail("something follows the header's dictionary");
  }

 private:
  void read_value(std::string_view key, std::size_t key_at, NpyHeader& header) {
    const auto once = [&](bool& have) {
      if (have) {
        file_fault("npy_header", fmt::format("the header gives {} twice", quote(key)), key_at);
      }
      have = true;
    };
    if (key == "descr") {
      once(have_descr_);
      header.element = descr();
    } else if (key == "fortran_order") {
      once(have_order_);
      header.fortran_order = boolean();
    } else if (key == "shape") {
      once(have_shape_);
      header.dims = shape();
    } else {
      file_fault("npy_header",
                 fmt::format("the header has the unknown key {}", quote(key.substr(0, 40))), key_at,
                 "the keys are 'descr', 'fortran_order' and 'shape'");
    }
  }

  NpyElement descr() {
    skip_space();
    if (peek() == '[') {
      fail("structured dtypes are not supported", "save each field as an array of its own");
    }
    const std::size_t at = offset();
    const std::string_view text = quoted();
    if (text == "?") return {.kind = 'b', .size = 1, .big_endian = false, .dtype = DType::Bool};
    const char order = text.empty() ? '\0' : text.front();
    const std::string_view code = text.empty() ? text : text.substr(1);
    const auto* row = std::ranges::find(Descrs, code, &DescrRow::code);
    if (std::string_view("<>=|").find(order) == std::string_view::npos || row == Descrs.end()) {
      file_fault("npy_descr", fmt::format("unsupported element type {}", quote(text.substr(0, 40))),
                 at,
                 "convert the array to a float, integer, bool or complex type of NumPy's first");
    }
    const auto size = static_cast<std::size_t>(code == "c16" ? 16 : code[1] - '0');
    if (order == '|' && size > 1) {
      file_fault("npy_descr", fmt::format("element type {} lacks its byte order", quote(text)), at);
    }
    return {.kind = code[0], .size = size, .big_endian = order == '>', .dtype = row->dtype};
  }

  bool boolean() {
    skip_space();
    for (const auto& [word, value] : {std::pair{"True", true}, std::pair{"False", false}}) {
      if (text_.substr(at_).starts_with(word)) {
        at_ += std::string_view(word).size();
        return value;
      }
    }
    fail("'fortran_order' must be True or False");
  }

  StaticDims shape() {
    StaticDims dims;
    expect('(');
    while (!accept(')')) {
      if (dims.size() == MaxRank) fail(fmt::format("more than {} dimensions", MaxRank));
      dims.push_back(size());
      if (accept(')')) {
        if (dims.size() == 1) fail("'shape' must be a tuple", "one size is written (3,)");
        break;
      }
      expect(',');
    }
    return dims;
  }

  std::int64_t size() {
    skip_space();
    if (peek() == '-') fail("a size is negative");
    if (peek() < '0' || peek() > '9') fail("expected a size");
    std::int64_t value = 0;
    while (peek() >= '0' && peek() <= '9') {
      const auto shifted = try_mul(value, 10);
      const auto next = shifted ? try_add(*shifted, peek() - '0') : std::nullopt;
      if (!next) fail("a size does not fit in 64 bits");
      value = *next;
      ++at_;
    }
    if (peek() == 'L') ++at_;  // Python 2 wrote long integers so
    return value;
  }

  std::string_view quoted() {
    skip_space();
    const char mark = peek();
    if (mark != '\'' && mark != '"') fail("expected a quoted string");
    const std::size_t end = text_.find(mark, at_ + 1);
    if (end == std::string_view::npos) fail("a quoted string does not end");
    const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
    if (inside.find('\\') != std::string_view::npos) fail("escapes are not used in NPY headers");
    at_ = end + 1;
    return inside;
  }

  void expect(char wanted) {
    if (!accept(wanted)) fail(fmt::format("expected '{}' in the header", wanted));
  }
  bool accept(char wanted) {
    skip_space();
    if (peek() != wanted) return false;
    ++at_;
    return true;
  }
  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string::npos)
      ++at_;
  }
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  [[nodiscard]] std::size_t offset() const { return base_ + at_; }
  [[noreturn]] void fail(std::string message, std::string help = {}) const {
    file_fault("npy_header", std::move(message), offset(), std::move(help));
  }

  std::string_view text_;
  std::size_t base_;
  std::size_t at_ = 0;
  bool have_descr_ = false;
  bool have_order_ = false;
  bool have_shape_ = false;
};

// Bytes that all elements take. Zero sizes count as one on the way, so that strides cannot overflow
// either.
std::size_t data_size(const NpyHeader& header, std::size_t offset) {
  const auto widest =
      std::max(static_cast<std::int64_t>(header.element.size), size_of(header.element.dtype));
  std::optional<std::int64_t> count = 1;
  bool empty = false;
  for (const std::int64_t d : header.dims) {
    empty = empty || d == 0;
    if (count) count = try_mul(*count, std::max<std::int64_t>(d, 1));
  }
  if (!count || (!empty && !try_mul(*count, widest))) {
    file_fault("npy_size", "the array's size in bytes does not fit in 64 bits", offset,
               "the 'shape' in the header is damaged");
  }
  return empty ? 0 : static_cast<std::size_t>(*count) * header.element.size;
}

}  // namespace

NpyHeader parse_npy_header(ByteSpan bytes) {
  ByteCursor in(bytes, "the NPY header");
  if (as_text(in.take(Magic.size())) != Magic) {
    file_fault("npy_magic", "this is not an NPY file", 0, "NPY files begin with \\x93NUMPY");
  }
  const unsigned version = in.u16();
  const unsigned major = version & 0xFFU;
  if (major < 1 || major > 3 || version >> 8 != 0) {
    file_fault("npy_version", fmt::format("unknown NPY version {}.{}", major, version >> 8), 6,
               "versions 1.0, 2.0 and 3.0 are known");
  }
  const std::size_t length = major == 1 ? in.u16() : in.u32();
  if (length > MaxNpyHeader - 12) {
    file_fault("npy_header", fmt::format("a header of {} bytes is too long", length), 8);
  }
  NpyHeader header;
  const std::size_t text_at = in.offset();
  DictReader(as_text(in.take(length)), text_at).read(header);
  header.data_offset = in.offset();
  header.data_size = data_size(header, text_at);
  return header;
}

std::string npy_header(const Type& type) {
  const auto* row = std::ranges::find_if(
      Descrs, [&](const DescrRow& r) { return r.dtype == type.dtype && r.written; });
  check_internal(row != Descrs.end(), "bf16 is widened before it is written");
  if (type.rank() > MaxRank) {
    throw UserError(Diagnostic{
        .code = ErrorCode::File,
        .detail = "npy_rank",
        .message = fmt::format("an array of {} dimensions cannot be written", type.rank()),
        .where = {},
        .notes = {},
        .help = fmt::format("NPY files have {} at most; reshape it first", MaxRank)});
  }
  std::string shape;
  for (const std::int64_t d : type.static_dims()) shape += fmt::format("{}, ", d);
  if (type.rank() > 1) shape.resize(shape.size() - 2);
  if (type.rank() == 1) shape.resize(shape.size() - 1);
  std::string text = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                 size_of(type.dtype) == 1 ? '|' : '<', row->code, shape);
  // Elements start at a multiple of 64, so that the file can be mapped.
  const std::size_t fixed = Magic.size() + 4;
  text.append(63 - (fixed + text.size()) % 64, ' ');
  text += '\n';
  std::string out(Magic);
  out += '\x01';
  out += '\0';
  out += static_cast<char>(text.size() & 0xFFU);
  out += static_cast<char>(text.size() >> 8);
  return out + text;
}

}  // namespace ricci::io
