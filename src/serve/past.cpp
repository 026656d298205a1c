#include "serve/past.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "ricci/support/error.h"

namespace ricci::serve {
namespace {

std::size_t bytes_of(const Type& type) {
  std::size_t n = static_cast<std::size_t>(size_of(type.dtype));
  for (const Dim& d : type.dims) n *= static_cast<std::size_t>(d.value());
  return n;
}

}  // namespace

ZeroedBytes::ZeroedBytes(std::size_t size)
    : data_(static_cast<std::byte*>(std::calloc(std::max<std::size_t>(size, 1), 1))), size_(size) {
  if (data_ == nullptr) throw std::bad_alloc();
}

void ZeroedBytes::Free::operator()(std::byte* p) const noexcept { std::free(p); }

Past::Past(const Types& types) {
  const std::vector<Type> one = types(1, 1);
  const std::vector<Type> two = types(1, 2);
  if (one.size() != two.size()) throw InternalError("the past has other leaves for two places");
  for (std::size_t i = 0; i < one.size(); ++i) {
    Leaf leaf;
    leaf.grows = one[i] != two[i];
    leaf.unit = bytes_of(one[i]);
    if (leaf.grows && bytes_of(two[i]) != 2 * leaf.unit) {
      throw InternalError("the past does not grow by places");
    }
    leaves_.push_back(std::move(leaf));
  }
}

void Past::reserve(std::int64_t rows, std::int64_t places, std::span<const std::int64_t> filled) {
  rows = std::max(rows, rows_);
  places = std::max(places, places_);
  if (rows == rows_ && places == places_) return;
  for (Leaf& leaf : leaves_) {
    const std::size_t old_row = row_bytes(leaf);
    const std::size_t row = leaf.grows ? leaf.unit * static_cast<std::size_t>(places) : leaf.unit;
    ZeroedBytes next(row * static_cast<std::size_t>(rows));
    for (std::size_t r = 0; r < static_cast<std::size_t>(rows_) && r < filled.size(); ++r) {
      const std::size_t used =
          leaf.grows ? leaf.unit * static_cast<std::size_t>(filled[r]) : leaf.unit;
      std::memcpy(next.data() + r * row, leaf.bytes.data() + r * old_row, used);
    }
    leaf.bytes = std::move(next);
  }
  rows_ = rows;
  places_ = places;
}

std::int64_t Past::bytes() const noexcept {
  std::size_t n = 0;
  for (const Leaf& leaf : leaves_) n += leaf.bytes.size();
  return static_cast<std::int64_t>(n);
}

std::byte* Past::data(std::size_t leaf, std::int64_t row) const noexcept {
  return leaves_[leaf].bytes.data() + row_bytes(leaves_[leaf]) * static_cast<std::size_t>(row);
}

std::size_t Past::given_bytes(std::size_t leaf, std::int64_t next) const noexcept {
  const Leaf& l = leaves_[leaf];
  return l.grows ? l.unit * static_cast<std::size_t>(next) : l.unit;
}

void Past::take(std::size_t leaf, std::int64_t row, std::int64_t first, std::int64_t count,
                const std::byte* given) const {
  const Leaf& l = leaves_[leaf];
  const auto at = l.grows ? static_cast<std::size_t>(first) * l.unit : 0;
  std::memcpy(data(leaf, row) + at, given, given_bytes(leaf, count));
}

// Zeros, and not what others left: a NaN there would be one behind a mask too.
void Past::clear(std::int64_t row, std::int64_t filled) const {
  for (std::size_t i = 0; i < leaves_.size(); ++i) {
    const Leaf& leaf = leaves_[i];
    const std::size_t used = leaf.grows ? leaf.unit * static_cast<std::size_t>(filled) : leaf.unit;
    std::memset(data(i, row), 0, used);
  }
}

}  // namespace ricci::serve
