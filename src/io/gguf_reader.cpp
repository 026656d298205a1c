// Layout, all numbers little-endian: magic, version, how many tensors, how many keys; the keys with
// their values; the tensors' names, sizes, types and offsets; then, from the next multiple of the
// alignment on, their bytes. Version 1 has lengths and counts of 32 bits, the others of 64.
#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <unordered_set>

#include <fmt/format.h>

#include "ricci/io/gguf.h"
#include "ricci/support/checked.h"
#include "ricci/support/limits.h"
#include "ricci/support/text.h"

#include "io/fault.h"
#include "io/gguf_layout.h"
#include "io/tensor_directory.h"

namespace ricci::io {
namespace {

constexpr std::int64_t NoLimit = std::numeric_limits<std::int64_t>::max();

// Calls f<T>() with the type of a tag.
template <class F>
auto with_kind(std::uint32_t tag, std::size_t at, F&& f) {
  switch (tag) {
    case 0: return f.template operator()<std::uint8_t>();
    case 1: return f.template operator()<std::int8_t>();
    case 2: return f.template operator()<std::uint16_t>();
    case 3: return f.template operator()<std::int16_t>();
    case 4: return f.template operator()<std::uint32_t>();
    case 5: return f.template operator()<std::int32_t>();
    case 6: return f.template operator()<float>();
    case 7: return f.template operator()<bool>();
    case 8: return f.template operator()<std::string>();
    case GgufArrayTag: return f.template operator()<GgufArray>();
    case 10: return f.template operator()<std::uint64_t>();
    case 11: return f.template operator()<std::int64_t>();
    case 12: return f.template operator()<double>();
    default: break;
  }
  file_fault("gguf_kind", fmt::format("unknown kind of value {}", tag), at,
             "kinds are numbered 0 to 12");
}

class GgufReader {
 public:
  GgufReader(ByteSpan bytes, const GgufOptions& options)
      : bytes_(bytes), in_(bytes, "the GGUF header"), options_(options) {}

  Gguf read() {
    read_version();
    const std::uint64_t tensors = count("tensors", least_tensor(), options_.max_tensors);
    // The keys come before the tensors, but their number comes after that of the tensors.
    const std::uint64_t keys = count("keys", least_key(), options_.max_keys);
    for (std::uint64_t i = 0; i < keys; ++i) read_key();
    set_alignment();
    for (std::uint64_t i = 0; i < tensors; ++i) read_tensor();
    place_tensors();
    check_directory(out_.tensors);
    return std::move(out_);
  }

 private:
  // The fewest bytes that one of them takes.
  [[nodiscard]] std::size_t length_size() const { return out_.version == 1 ? 4 : 8; }
  [[nodiscard]] std::size_t least_key() const { return length_size() + 4 + 1; }
  [[nodiscard]] std::size_t least_tensor() const { return length_size() + 4 + 4 + 8; }

  void read_version() {
    if (in_.left() < 4 || in_.u32() != GgufMagic) {
      file_fault("gguf_magic", "this is not a GGUF file", 0, "GGUF files begin with \"GGUF\"");
    }
    const std::size_t at = in_.offset();
    out_.version = in_.u32();
    if (out_.version >= 1 && out_.version <= 3) return;
    const bool swapped = (out_.version & 0xFFFFU) == 0 && out_.version != 0;
    if (swapped) {
      file_fault("gguf_order", "the file is big-endian", at,
                 "convert it to little-endian, which is what can be read");
    }
    file_fault("gguf_version", fmt::format("unknown GGUF version {}", out_.version), at,
               "versions 1, 2 and 3 are known");
  }

  std::uint64_t length() { return out_.version == 1 ? in_.u32() : in_.u64(); }

  // A number of things of which each takes `least` bytes or more.
  std::uint64_t count(std::string_view what, std::size_t least, std::int64_t most = NoLimit) {
    const std::size_t at = in_.offset();
    const std::uint64_t n = length();
    if (n > in_.left() / least) {
      file_fault("gguf_count",
                 fmt::format("{} {} do not fit in the {} bytes that are left", n, what, in_.left()),
                 at, "the file is cut short or damaged");
    }
    if (std::cmp_greater(n, most)) {
      file_fault("gguf_limit", fmt::format("the file has {} {}, more than {}", n, what, most), at,
                 "raise the limit in GgufOptions if the file is trusted");
    }
    return n;
  }

  std::string_view text() {
    const std::size_t at = in_.offset();
    const std::uint64_t n = length();
    if (n > in_.left()) {
      file_fault(
          "gguf_string",
          fmt::format("a string of {} bytes does not fit in the {} that are left", n, in_.left()),
          at, "the file is cut short or damaged");
    }
    return as_text(in_.take(static_cast<std::size_t>(n)));
  }

  std::string name(std::string_view what) {
    const std::size_t at = in_.offset();
    const std::string_view s = text();
    if (std::cmp_greater(s.size(), options_.max_name_bytes)) {
      file_fault(
          "gguf_limit",
          fmt::format("{} has {} bytes, more than {}", what, s.size(), options_.max_name_bytes), at,
          "raise the limit in GgufOptions if the file is trusted");
    }
    if (valid_utf8_prefix(s) != s.size()) {
      file_fault("gguf_utf8", fmt::format("{} {} is not UTF-8", what, quote(shortened(s))), at);
    }
    return std::string(s);
  }

  void read_key() {
    const std::size_t at = in_.offset();
    std::string key = name("a key");
    if (!keys_.insert(key).second) {
      file_fault("gguf_key", fmt::format("the key {} is there twice", quote(shortened(key))), at);
    }
    const std::size_t tag_at = in_.offset();
    GgufValue value = read_value(in_.u32(), tag_at);
    if (key == GgufAlignmentKey) alignment_at_ = tag_at;
    out_.metadata.emplace_back(std::move(key), std::move(value));
  }

  template <class T>
  T scalar() {
    if constexpr (std::is_same_v<T, bool>) {
      const std::size_t at = in_.offset();
      const auto byte = std::to_integer<unsigned>(in_.take(1)[0]);
      if (byte > 1) {
        file_fault("gguf_bool", fmt::format("a bool is the byte {}", byte), at,
                   "bools are stored as 0 or 1");
      }
      return byte == 1;
    } else if constexpr (std::is_same_v<T, std::string>) {
      return std::string(text());
    } else {
      T v{};
      const ByteSpan raw = in_.take(sizeof(T));
      std::memcpy(&v, raw.data(), sizeof v);
      return v;
    }
  }

  GgufValue read_value(std::uint32_t tag, std::size_t tag_at) {
    if (tag == GgufArrayTag) return read_array(1);
    return with_kind(tag, tag_at, [&]<class T>() -> GgufValue {
      if constexpr (std::is_same_v<T, GgufArray>) {
        throw InternalError("arrays are read elsewhere");
      } else {
        return GgufValue(std::in_place_type<T>, scalar<T>());
      }
    });
  }

  GgufArray read_array(int depth) {
    const std::size_t tag_at = in_.offset();
    const std::uint32_t tag = in_.u32();
    if (depth > MostGgufNesting) {
      file_fault("gguf_nesting", fmt::format("arrays nest more than {} deep", MostGgufNesting),
                 tag_at);
    }
    return with_kind(tag, tag_at, [&]<class T>() {
      const std::uint64_t n = count("elements of an array", least_element<T>());
      std::vector<T> elements;
      elements.reserve(static_cast<std::size_t>(n));
      for (std::uint64_t i = 0; i < n; ++i) {
        if constexpr (std::is_same_v<T, GgufArray>) {
          elements.push_back(read_array(depth + 1));
        } else {
          elements.push_back(scalar<T>());
        }
      }
      return GgufArray{std::move(elements)};
    });
  }

  template <class T>
  [[nodiscard]] std::size_t least_element() const {
    if constexpr (std::is_same_v<T, std::string>) return length_size();
    if constexpr (std::is_same_v<T, GgufArray>) return 4 + length_size();
    return sizeof(T);
  }

  void set_alignment() {
    const GgufValue* value = out_.find(GgufAlignmentKey);
    if (value == nullptr) return;
    const auto* number = std::get_if<std::uint32_t>(value);
    if (number == nullptr || !std::has_single_bit(*number)) {
      file_fault("gguf_alignment",
                 fmt::format("{} is {} {}", GgufAlignmentKey, kind_of(*value), to_text(*value, 40)),
                 alignment_at_, "it must be a u32 that is a power of two");
    }
    out_.alignment = *number;
  }

  void read_tensor() {
    StoredTensor t;
    const std::size_t at = in_.offset();
    t.name = name("a tensor's name");
    t.dims = read_dims(t.name);
    const std::size_t type_at = in_.offset();
    const std::uint32_t number = in_.u32();
    const auto type = gguf_type(number);
    if (!type) {
      file_fault("gguf_type",
                 fmt::format("tensor {} has the unknown type {}", quote(shortened(t.name)), number),
                 type_at);
    }
    t.type = *type;
    offsets_.push_back({in_.u64(), at});
    out_.tensors.push_back(std::move(t));
  }

  // Innermost first in the file.
  StaticDims read_dims(const std::string& tensor) {
    const std::size_t at = in_.offset();
    const std::uint32_t rank = in_.u32();
    if (rank > MostRank) {
      file_fault("gguf_rank",
                 fmt::format("tensor {} has {} dimensions, more than {}", quote(shortened(tensor)),
                             rank, MostRank),
                 at);
    }
    StaticDims dims(rank);
    for (std::size_t i = rank; i-- > 0;) {
      const std::size_t size_at = in_.offset();
      const std::uint64_t size = length();
      if (!std::in_range<std::int64_t>(size)) {
        file_fault("gguf_size",
                   fmt::format("tensor {} has a size of {}", quote(shortened(tensor)), size),
                   size_at);
      }
      dims[i] = static_cast<std::int64_t>(size);
    }
    return dims;
  }

  void place_tensors() {
    const std::uint64_t mask = std::uint64_t{out_.alignment} - 1;
    const std::uint64_t start = (std::uint64_t{in_.offset()} + mask) & ~mask;
    for (std::size_t i = 0; i < out_.tensors.size(); ++i)
      place(out_.tensors[i], offsets_[i], start);
  }

  struct Offset {
    std::uint64_t value = 0;
    std::size_t at = 0;  // of the tensor's entry
  };

  void place(StoredTensor& t, const Offset& offset, std::uint64_t start) {
    const std::string shown = quote(shortened(t.name));
    const auto size = stored_bytes(t.type, t.dims);
    if (!size) {
      file_fault(
          "gguf_size",
          fmt::format("the sizes of tensor {} do not fit in 64 bits, or its rows are no whole "
                      "number of the {} elements of a block of {}",
                      shown, t.type.block_length, t.type.name),
          offset.at);
    }
    if (offset.value % out_.alignment != 0) {
      file_fault("gguf_alignment",
                 fmt::format("tensor {} has the offset {}, which is no multiple of {}", shown,
                             offset.value, out_.alignment),
                 offset.at);
    }
    const std::uint64_t room = bytes_.size() < start ? 0 : bytes_.size() - start;
    const auto wanted = static_cast<std::uint64_t>(*size);
    if (wanted != 0 && (offset.value > room || wanted > room - offset.value)) {
      file_fault("gguf_range",
                 fmt::format("tensor {} is said to take {} bytes from {} on, but there are {}",
                             shown, wanted, offset.value, room),
                 offset.at, "the file is cut short or damaged");
    }
    if (wanted == 0) return;
    t.offset = static_cast<std::size_t>(start + offset.value);
    t.bytes = bytes_.subspan(t.offset, static_cast<std::size_t>(wanted));
  }

  ByteSpan bytes_;
  ByteCursor in_;
  const GgufOptions& options_;
  Gguf out_;
  std::unordered_set<std::string> keys_;
  std::vector<Offset> offsets_;
  std::size_t alignment_at_ = 0;
};

}  // namespace

Gguf parse_gguf(std::span<const std::byte> bytes, const GgufOptions& options) {
  return GgufReader(bytes, options).read();
}

}  // namespace ricci::io
