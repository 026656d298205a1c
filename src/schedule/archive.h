// Values as bytes and back. A struct's fields are described once, by a function `fields(archive,
// value)`; `ArchiveWriter` and `ArchiveReader` both walk it. Integers take as few bytes as they
// need. Nothing that is read is trusted: a length or number that cannot be is UserError(file).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ricci/support/error.h"

namespace ricci::schedule {

/// T or const T: one description of a struct serves writing and reading.
template <class T, class Plain>
concept Either = std::same_as<std::remove_const_t<T>, Plain>;

/// Raw bytes begin at multiples of this, counted from the first byte of the archive.
inline constexpr std::size_t ArchiveAlignment = 64;

class ArchiveWriter {
 public:
  static constexpr bool reading = false;

  template <class... T>
  void operator()(const T&... values) {
    (one(values), ...);
  }
  /// A number in [0, most].
  template <class T>
  void bounded(const T& value, std::int64_t) {
    one(static_cast<std::int64_t>(value));
  }
  void raw(std::span<const std::byte> bytes) {
    while (bytes_.size() % ArchiveAlignment != 0) bytes_.push_back({});
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  [[nodiscard]] std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  template <std::integral T>
  void one(const T& v) {
    // The sign goes to the lowest bit, so that small numbers are short whatever their sign.
    const auto wide = static_cast<std::int64_t>(v);
    number((static_cast<std::uint64_t>(wide) << 1) ^ static_cast<std::uint64_t>(wide >> 63));
  }
  void one(const double& v) {
    const auto bits = std::bit_cast<std::array<std::byte, sizeof v>>(v);
    bytes_.insert(bytes_.end(), bits.begin(), bits.end());
  }
  void one(const std::string& v) {
    number(v.size());
    const auto text = std::as_bytes(std::span(v));
    bytes_.insert(bytes_.end(), text.begin(), text.end());
  }
  template <class T>
  void one(const std::vector<T>& v) {
    number(v.size());
    for (const T& element : v) one(element);
  }
  template <class T, std::size_t N>
  void one(const std::array<T, N>& v) {
    for (const T& element : v) one(element);
  }
  template <class A, class B>
  void one(const std::pair<A, B>& v) {
    one(v.first);
    one(v.second);
  }
  template <class T>
    requires requires(ArchiveWriter& a, const T& v) { fields(a, v); }
  void one(const T& v) {
    fields(*this, v);
  }
  void number(std::uint64_t v) {
    for (; v >= 0x80; v >>= 7) bytes_.push_back(static_cast<std::byte>(v | 0x80));
    bytes_.push_back(static_cast<std::byte>(v));
  }

  std::vector<std::byte> bytes_;
};

class ArchiveReader {
 public:
  static constexpr bool reading = true;

  explicit ArchiveReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class... T>
  void operator()(T&... values) {
    (one(values), ...);
  }
  template <class T>
  void bounded(T& value, std::int64_t most) {
    std::int64_t wide = 0;
    one(wide);
    if (wide < 0 || wide > most) fail("a number is out of range");
    value = static_cast<T>(wide);
  }
  [[nodiscard]] std::span<const std::byte> raw(std::size_t count) {
    (void)next((ArchiveAlignment - at_ % ArchiveAlignment) % ArchiveAlignment);
    return next(count);
  }
  [[nodiscard]] std::size_t left() const noexcept {
    return at_ < bytes_.size() ? bytes_.size() - at_ : 0;
  }
  [[noreturn]] static void fail(std::string what) {
    throw UserError(Diagnostic{ErrorCode::File,
                               "program",
                               "the stored program is damaged: " + std::move(what),
                               {},
                               {},
                               {}});
  }

  /// While alive, one more level of values inside values; too many are not believed.
  class Level {
   public:
    explicit Level(ArchiveReader& reader) : reader_(reader) {
      constexpr int Most = 64;
      if (++reader_.depth_ > Most) fail("it is nested too deeply");
    }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    ~Level() { --reader_.depth_; }

   private:
    ArchiveReader& reader_;
  };

 private:
  template <std::integral T>
  void one(T& v) {
    const std::uint64_t folded = number();
    const auto wide = static_cast<std::int64_t>((folded >> 1) ^ (~(folded & 1) + 1));
    if constexpr (std::same_as<T, bool>) {
      if (wide != 0 && wide != 1) fail("a truth value is neither");
      v = wide != 0;
    } else {
      if (!std::in_range<T>(wide)) fail("a number is out of range");
      v = static_cast<T>(wide);
    }
  }
  void one(double& v) {
    std::array<std::byte, sizeof v> bits{};
    const auto from = next(bits.size());
    std::copy(from.begin(), from.end(), bits.begin());
    v = std::bit_cast<double>(bits);
  }
  void one(std::string& v) {
    const auto text = next(length());
    v.assign(reinterpret_cast<const char*>(text.data()), text.size());
  }
  template <class T>
  void one(std::vector<T>& v) {
    const Level level(*this);
    const std::size_t count = length();
    v.clear();
    for (std::size_t i = 0; i < count; ++i) one(v.emplace_back());
  }
  template <class T, std::size_t N>
  void one(std::array<T, N>& v) {
    for (T& element : v) one(element);
  }
  template <class A, class B>
  void one(std::pair<A, B>& v) {
    one(v.first);
    one(v.second);
  }
  template <class T>
    requires requires(ArchiveReader& a, T& v) { fields(a, v); }
  void one(T& v) {
    fields(*this, v);
  }

  std::uint64_t number() {
    std::uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<std::uint64_t>(next(1)[0]);
      v |= (byte & 0x7F) << shift;
      if (byte < 0x80) return v;
    }
    fail("a number does not end");
  }
  // Of something whose elements take a byte or more each.
  std::size_t length() {
    const std::uint64_t count = number();
    if (count > left()) fail("something is longer than all of it");
    return static_cast<std::size_t>(count);
  }
  std::span<const std::byte> next(std::size_t count) {
    if (count > left()) fail("it ends too soon");
    const auto out = bytes_.subspan(at_, count);
    at_ += count;
    return out;
  }

  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace ricci::schedule
