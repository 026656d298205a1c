#include <algorithm>
#include <bit>
#include <functional>
#include <set>

#include <fmt/format.h>

#include "ricci/io/gguf.h"
#include "ricci/support/file.h"
#include "ricci/support/limits.h"
#include "ricci/support/text.h"

#include "io/fault.h"
#include "io/gguf_layout.h"

namespace ricci::io {
namespace {

class GgufWriter {
 public:
  void number(auto v) {
    const auto* raw = reinterpret_cast<const std::byte*>(&v);
    bytes_.insert(bytes_.end(), raw, raw + sizeof v);
  }
  void text(std::string_view s) {
    number(std::uint64_t{s.size()});
    const ByteSpan raw = std::as_bytes(std::span(s));
    bytes_.insert(bytes_.end(), raw.begin(), raw.end());
  }
  void pad_to(std::size_t alignment) {
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment);
  }

  void value(const GgufValue& v) {
    number(static_cast<std::uint32_t>(v.index()));
    std::visit([&](const auto& held) { element(held, 0); }, v);
  }

  [[nodiscard]] std::vector<std::byte>& bytes() { return bytes_; }

 private:
  void element(const std::string& s, int /*depth*/) { text(s); }
  void element(bool b, int /*depth*/) { number(static_cast<std::uint8_t>(b ? 1 : 0)); }
  void element(const GgufArray& a, int depth) {
    if (depth >= MostGgufNesting) {
      unwritable("gguf_nesting", fmt::format("arrays nest more than {} deep", MostGgufNesting));
    }
    number(static_cast<std::uint32_t>(a.elements.index()));
    number(std::uint64_t{a.size()});
    std::visit(
        [&](const auto& elements) {
          using Element = typename std::remove_cvref_t<decltype(elements)>::value_type;
          for (const Element& e : elements) element(e, depth + 1);
        },
        a.elements);
  }
  template <class T>
    requires std::is_arithmetic_v<T>
  void element(T v, int /*depth*/) {
    number(v);
  }

  std::vector<std::byte> bytes_;
};

void check_name(std::string_view what, const std::string& name, std::set<std::string_view>& names) {
  if (valid_utf8_prefix(name) != name.size()) {
    unwritable("gguf_utf8", fmt::format("{} {} is not UTF-8", what, quote(shortened(name))));
  }
  if (!names.insert(name).second) {
    unwritable("gguf_key", fmt::format("{} {} is there twice", what, quote(shortened(name))),
               "names in a GGUF file are unique");
  }
}

// The numbers of the tensors' types, in order.
std::vector<std::uint32_t> checked_types(const Gguf& gguf) {
  std::vector<std::uint32_t> numbers;
  std::set<std::string_view> names;
  for (const StoredTensor& t : gguf.tensors) {
    check_name("the tensor", t.name, names);
    const auto number = gguf_number(t.type);
    if (!number) {
      unwritable("gguf_type",
                 fmt::format("tensor {} has elements of type {}, which GGUF lacks",
                             quote(shortened(t.name)), t.type.name),
                 "convert it to a dtype or block format that GGUF has");
    }
    if (t.dims.size() > MostRank) {
      unwritable("gguf_rank", fmt::format("tensor {} has {} dimensions, more than {}",
                                          quote(shortened(t.name)), t.dims.size(), MostRank));
    }
    const auto size = stored_bytes(t.type, t.dims);
    if (!size || !std::cmp_equal(*size, t.bytes.size())) {
      unwritable("gguf_size", fmt::format("tensor {} has {} bytes, which do not match its sizes",
                                          quote(shortened(t.name)), t.bytes.size()));
    }
    numbers.push_back(*number);
  }
  return numbers;
}

using Metadata = std::vector<std::pair<std::string, GgufValue>>;

// The alignment is what the file has, whatever the key said before.
Metadata checked_metadata(const Gguf& gguf) {
  if (!std::has_single_bit(gguf.alignment)) {
    unwritable("gguf_alignment",
               fmt::format("the alignment {} is no power of two", gguf.alignment));
  }
  Metadata out;
  std::set<std::string_view> keys;
  bool said = false;
  for (const auto& [key, value] : gguf.metadata) {
    check_name("the key", key, keys);
    const bool alignment = key == GgufAlignmentKey;
    out.emplace_back(key, alignment ? GgufValue(gguf.alignment) : value);
    said = said || alignment;
  }
  if (!said && gguf.alignment != UsualGgufAlignment) {
    out.emplace_back(GgufAlignmentKey, gguf.alignment);
  }
  return out;
}

void write_all(const Gguf& gguf, const std::function<void(ByteSpan)>& sink) {
  const std::vector<std::uint32_t> types = checked_types(gguf);
  const Metadata metadata = checked_metadata(gguf);
  GgufWriter out;
  out.number(GgufMagic);
  out.number(std::uint32_t{3});
  out.number(std::uint64_t{gguf.tensors.size()});
  out.number(std::uint64_t{metadata.size()});
  for (const auto& [key, value] : metadata) {
    out.text(key);
    out.value(value);
  }
  const std::uint64_t mask = std::uint64_t{gguf.alignment} - 1;
  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < gguf.tensors.size(); ++i) {
    const StoredTensor& t = gguf.tensors[i];
    out.text(t.name);
    out.number(static_cast<std::uint32_t>(t.dims.size()));
    for (std::size_t d = t.dims.size(); d-- > 0;) out.number(static_cast<std::uint64_t>(t.dims[d]));
    out.number(types[i]);
    out.number(offset);
    offset = (offset + t.bytes.size() + mask) & ~mask;
  }
  if (!gguf.tensors.empty()) out.pad_to(gguf.alignment);
  sink(out.bytes());
  const std::vector<std::byte> zeros(std::min<std::size_t>(gguf.alignment, 1 << 16));
  for (const StoredTensor& t : gguf.tensors) {
    sink(t.bytes);
    for (std::uint64_t left = (0 - t.bytes.size()) & mask; left > 0;) {
      const std::size_t now = std::min<std::size_t>(left, zeros.size());
      sink(ByteSpan(zeros).first(now));
      left -= now;
    }
  }
}

}  // namespace

std::vector<std::byte> gguf_bytes(const Gguf& gguf) {
  std::vector<std::byte> out;
  write_all(gguf, [&](ByteSpan piece) { out.insert(out.end(), piece.begin(), piece.end()); });
  return out;
}

void write_gguf(const std::string& path, const Gguf& gguf) {
  AtomicFile file(path);
  write_all(gguf, [&](ByteSpan piece) { file.write(piece); });
  file.commit();
}

}  // namespace ricci::io
