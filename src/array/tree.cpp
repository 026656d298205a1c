#include "ricci/array/tree.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ricci/array/blocks.h"
#include "ricci/array/create.h"
#include "ricci/array/map_axis.h"
#include "ricci/array/ops.h"
#include "ricci/support/error.h"

#include "array/node.h"

namespace ricci {

std::vector<MapAxis::Axis> MapAxis::axes_in(const std::vector<const Array*>& slots) {
  std::vector<Axis> out;
  for (const Array* x : slots) {
    out.push_back(x == nullptr ? Axis() : Axis(static_cast<std::int64_t>(x->item())));
  }
  return out;
}

std::vector<MapAxis::Axis> MapAxis::for_slots(const std::vector<const Array*>& slots,
                                              std::source_location where) const {
  if (is_tree_ && slots.size() != slots_.size()) {
    detail::refuse(
        ErrorCode::Shape, "vmap",
        fmt::format("the axes of 'vmap' are a tree of {} arrays, what they are of has {}",
                    slots_.size(), slots.size()),
        "give one number for all of it, or a tree of the same structure", where);
  }
  std::vector<Axis> out;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i] != nullptr) out.push_back(is_tree_ ? slots_[i] : one_);
  }
  return out;
}

namespace detail {

Array joined(std::span<const Array> arrays, Here where) {
  std::vector<Array> rows;
  for (const Array& x : arrays) rows.push_back(reshape(strengthened(x, where), {-1}, where));
  return rows.empty() ? zeros({0}, {}, where) : concat(rows, 0, where);
}

std::vector<Array> cut_into(const Array& flat, std::span<const Array> like) {
  require_valid(flat, "unravel", {});
  std::int64_t total = 0;
  for (const Array& x : like) total += x.size();
  if (flat.type().dims != Dims{total}) {
    refuse(ErrorCode::Shape, "unravel",
           fmt::format("a tree of {} elements is made of {}", total, flat.type().to_string()),
           "a vector of as many elements as the tree has", flat.node()->where);
  }
  std::vector<Array> out;
  std::int64_t at = 0;
  for (const Array& x : like) {
    const std::int64_t n = x.size();
    out.push_back(reshape(narrow(flat, 0, at, n), x.shape()));
    at += n;
  }
  return out;
}

std::size_t leaf_number(const std::vector<std::string>& names, std::string_view name) {
  const auto it = std::ranges::find(names, name);
  if (it != names.end()) return static_cast<std::size_t>(it - names.begin());
  throw UserError(ErrorCode::Name, fmt::format("there is no array '{}'", name),
                  fmt::format("there are {}", fmt::join(names, ", ")));
}

std::size_t leaf_in_range(std::size_t number, std::size_t leaves) {
  if (number < leaves) return number;
  throw UserError(ErrorCode::Name,
                  fmt::format("there are {} arrays, none is number {}", leaves, number));
}

void Flattened::text(std::string_view value) {
  words.push_back(value.size());
  while (!value.empty()) {
    std::uint64_t word = 0;
    const std::size_t n = std::min(value.size(), sizeof(word));
    std::memcpy(&word, value.data(), n);
    words.push_back(word);
    value.remove_prefix(n);
  }
}

void NamingVisitor::enter(std::string_view field) {
  ends_.push_back(path_.size());
  if (!path_.empty()) path_ += '.';
  path_ += field;
}

void NamingVisitor::leave() {
  path_.resize(ends_.back());
  ends_.pop_back();
}

}  // namespace detail
}  // namespace ricci
