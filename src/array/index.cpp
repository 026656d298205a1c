#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "ricci/array/array.h"
#include "ricci/array/create.h"
#include "ricci/array/ops.h"
#include "ricci/build/shape.h"
#include "ricci/op/ops.h"
#include "ricci/support/error.h"

#include "array/node.h"

namespace ricci {
namespace {

using Kind = Index::Kind;

bool is_mask(const Index& i) {
  return i.kind == Kind::Gather && i.indices().dtype() == DType::Bool;
}

// Where a mask is true, row by row. A mask that is being traced has no values yet.
Array places_of(const Array& mask, Here where) {
  if (mask.node()->trace) {
    detail::refuse(ErrorCode::Refused, "index",
                   fmt::format("a mask that '{}' traces is an index: how many are true is not "
                               "known, and so the result has no shape",
                               mask.node()->trace->what),
                   "where(mask, x, 0.0) keeps the shape; nonzero(mask, size) gives so many places",
                   where);
  }
  const std::vector<std::int64_t> flags = mask.tensor(where).numbers<std::int64_t>();
  std::vector<std::int64_t> out;
  for (std::size_t i = 0; i < flags.size(); ++i) {
    if (flags[i] != 0) out.push_back(static_cast<std::int64_t>(i));
  }
  return Tensor::of<std::int64_t>({static_cast<std::int64_t>(out.size())}, out);
}

// An index as NumPy reads it. Slices and new axes are applied one after the other; numbers and
// arrays are put together where there is more than one array, or something stands between them:
// arrays are then broadcast against each other, and their axes come first.
class Indexer {
 public:
  Indexer(Array x, std::span<const Index> indices, Here where)
      : x_(std::move(x)), indices_(indices), where_(where) {
    for (const Index& i : indices_) {
      if (i.kind == Kind::Gather) detail::require_valid(i.indices(), "index", where_);
      taken_ += axes_of(i);
    }
    if (taken_ > x_.rank()) {
      detail::refuse(ErrorCode::Shape, "index",
                     fmt::format("{} indices for {}", taken_, x_.type().to_string()), "one an axis",
                     where_);
    }
    together_ = are_together();
  }

  Array run() {
    bool rest = false;
    for (const Index& i : indices_) {
      if (i.kind != Kind::Rest) {
        apply_one(i);
        continue;
      }
      if (rest) {
        detail::refuse(ErrorCode::Attr, "index", "an index has ellipsis twice", "once is enough",
                       where_);
      }
      rest = true;
      at_ += x_.rank() - at_ - (taken_ - done_);
    }
    return together_ ? gather_together() : x_;
  }

 private:
  static std::size_t axes_of(const Index& i) {
    if (i.kind == Kind::New || i.kind == Kind::Rest) return 0;
    return is_mask(i) ? i.indices().rank() : 1;
  }

  [[nodiscard]] bool are_together() const {
    std::size_t arrays = 0;
    std::size_t groups = 0;
    bool inside = false;
    for (const Index& i : indices_) {
      const bool picks = i.kind == Kind::Gather || i.kind == Kind::Place;
      arrays += i.kind == Kind::Gather ? 1 : 0;
      groups += picks && !inside ? 1 : 0;
      inside = picks;
    }
    return arrays > 1 || (arrays == 1 && groups > 1);
  }

  void apply_one(const Index& i) {
    const auto axis = static_cast<std::int64_t>(at_);
    switch (i.kind) {
      case Kind::Place: pick(i.place); break;
      case Kind::Range: cut(i.range); break;
      case Kind::New:
        x_ = expand_dims(x_, axis, where_);
        ++at_;
        return;
      case Kind::Gather: is_mask(i) ? choose(i.indices()) : gather(i.indices()); break;
      default: break;
    }
    done_ += axes_of(i);
  }

  void pick(std::int64_t place) {
    const Dim& size = x_.shape()[at_];
    const auto n = size.try_value();
    const std::int64_t from = place < 0 && n ? place + *n : place;
    if (from < 0 || (n && from >= *n)) {
      detail::refuse(ErrorCode::IndexOutOfRange, "index",
                     fmt::format("index {} of an axis of size {}", place, size.to_string()),
                     "the first is 0, the last -1", where_);
    }
    if (together_) {
      together(Array(Tensor::of<std::int64_t>({}, {from})));
      return;
    }
    const auto axis = static_cast<std::int64_t>(at_);
    x_ = narrow(x_, axis, from, 1, where_);
    Dims shape = x_.shape();
    shape.erase(shape.begin() + axis);
    x_ = reshape(x_, shape, where_);
  }

  void cut(const Slice& r) {
    if (r.start || r.stop || r.step != 1) {
      const auto axis = static_cast<std::int64_t>(at_);
      x_ = detail::lift_one({x_}, where_, [&](auto v) {
        return ricci::slice(
            v[0], SliceRange{.axis = axis, .start = r.start, .stop = r.stop, .step = r.step},
            where_);
      });
    }
    ++at_;
  }

  // Axes that a mask lies over become one, of which the true ones are taken.
  void choose(const Array& mask) {
    Dims shape = x_.shape();
    const auto first = shape.begin() + static_cast<std::ptrdiff_t>(at_);
    const auto last = first + static_cast<std::ptrdiff_t>(mask.rank());
    if (!std::equal(first, last, mask.shape().begin(), mask.shape().end())) {
      detail::refuse(
          ErrorCode::Shape, "index",
          fmt::format("a mask {} for {}", mask.type().to_string(), x_.type().to_string()),
          "a mask has the sizes of the axes it chooses from", where_);
    }
    const Dim size = product(mask.shape());
    shape.insert(shape.erase(first, last), size);
    x_ = reshape(x_, shape, where_);
    gather(places_of(mask, where_));
  }

  void gather(const Array& given) {
    const Array indices = detail::from_start(given, x_.shape()[at_], where_);
    if (together_) {
      together(indices);
      return;
    }
    x_ = detail::apply(Op(op::Gather{.axis = static_cast<std::int64_t>(at_)}), {x_, indices},
                       where_);
    at_ += indices.rank();
  }

  void together(Array indices) {
    picked_axes_.push_back(at_);
    picked_.push_back(std::move(indices));
    ++at_;
  }

  // The picked axes first and as one, of which the places that the arrays name are taken.
  Array gather_together() {
    Axes order;
    Dims rest;
    for (const std::size_t a : picked_axes_) order.emplace_back(static_cast<std::int64_t>(a));
    Dim size = 1;
    for (std::size_t a = 0; a < x_.rank(); ++a) {
      if (std::ranges::find(picked_axes_, a) != picked_axes_.end()) {
        size = size * x_.shape()[a];
        continue;
      }
      order.emplace_back(static_cast<std::int64_t>(a));
      rest.push_back(x_.shape()[a]);
    }
    Array place = 0;
    Array inside = true;
    for (std::size_t k = 0; k < picked_.size(); ++k) {
      const std::int64_t n = x_.shape()[picked_axes_[k]].value();
      const Array i = cast(picked_[k], DType::I64, where_);
      place = add(mul(place, n, where_), i, where_);
      inside = logical_and(inside, logical_and(ge(i, 0, where_), lt(i, n, where_), where_), where_);
    }
    // Outside of its axis a place is outside of all: an error, not another element.
    place = ricci::where(inside, place, size.value(), where_);
    Dims flat = rest;
    flat.insert(flat.begin(), size);
    const Array rows = reshape(transpose(x_, order, where_), flat, where_);
    Array out = detail::apply(Op(op::Gather{.axis = 0}), {rows, place}, where_);
    const bool adjacent = picked_axes_.back() - picked_axes_.front() + 1 == picked_axes_.size();
    return adjacent ? moved(out, place.rank(), picked_axes_.front()) : out;
  }

  // The first axes moved behind `before` others.
  [[nodiscard]] Array moved(const Array& x, std::size_t count, std::size_t before) const {
    if (before == 0) return x;
    Axes order;
    for (std::size_t a = 0; a < before; ++a) {
      order.emplace_back(static_cast<std::int64_t>(count + a));
    }
    for (std::size_t a = 0; a < count; ++a) order.emplace_back(static_cast<std::int64_t>(a));
    for (std::size_t a = count + before; a < x.rank(); ++a) {
      order.emplace_back(static_cast<std::int64_t>(a));
    }
    return transpose(x, order, where_);
  }

  Array x_;
  std::span<const Index> indices_;
  Here where_;
  std::size_t taken_ = 0;
  std::size_t at_ = 0;
  std::size_t done_ = 0;
  bool together_ = false;
  std::vector<std::size_t> picked_axes_;
  std::vector<Array> picked_;
};

std::span<const Index> given_of(const std::array<Index, 8>& all) {
  std::size_t n = 0;
  while (n < all.size() && all[n].kind != Kind::None) ++n;
  return std::span(all).first(n);
}

Array indexed(const Array& x, std::span<const Index> indices) {
  const Here where = indices.empty() ? Here() : indices[0].where;
  detail::require_valid(x, "index", where);
  return Indexer(detail::strengthened(x, where), indices, where).run();
}

}  // namespace

Array detail::from_start(const Array& indices, const Dim& size, std::source_location where) {
  const DType dtype = indices.dtype();
  if (!is_int(dtype)) {
    detail::refuse(ErrorCode::DType, "index",
                   fmt::format("an array of {} as an index", name(dtype)),
                   "indices are integers: cast(x, DType::I32)", where);
  }
  const auto n = size.try_value();
  if (dtype == DType::U8 || dtype == DType::U32 || !n) return indices;
  const Array i = dtype == DType::I64 ? indices : cast(indices, DType::I32, where);
  return ricci::where(lt(i, 0, where), add(i, *n, where), i, where);
}

Array Array::operator[](const Index& index) const { return indexed(*this, {&index, 1}); }

Array Array::operator()(const Index& a, const Index& b, const Index& c, const Index& d,
                        const Index& e, const Index& f, const Index& g, const Index& h) const {
  const std::array<Index, 8> all = {a, b, c, d, e, f, g, h};
  return indexed(*this, given_of(all));
}

ArrayAt Array::at(const Index& a, const Index& b, const Index& c, const Index& d, const Index& e,
                  const Index& f, const Index& g, const Index& h) const {
  const std::array<Index, 8> all = {a, b, c, d, e, f, g, h};
  return ArrayAt(*this, given_of(all));
}

ArrayAt::ArrayAt(Array x, std::span<const Index> indices)
    : x_(std::move(x)), indices_(indices.begin(), indices.end()) {}

Array ArrayAt::get() const { return indexed(x_, indices_); }

namespace {

// An array and what is put into it, of one dtype: the array's.
std::pair<Array, Array> matched(const Array& array, const Array& given, Here where) {
  detail::require_valid(array, "at", where);
  detail::require_valid(given, "at", where);
  Array x = detail::strengthened(array, where);
  Array v = given;
  if (v.node()->weak) v = detail::strengthened(v, x.dtype(), where);
  if (v.dtype() != x.dtype()) {
    detail::refuse(ErrorCode::DType, "index",
                   fmt::format("{} is put into {}", v.type().to_string(), x.type().to_string()),
                   "cast it to the dtype of the array", where);
  }
  return {std::move(x), std::move(v)};
}

}  // namespace

Array ArrayAt::combined(ScatterKind kind, const Array& given, Here where) const {
  const auto [x, v] = matched(x_, given, where);
  // Places as the same index finds them in an array of all places.
  const bool wide = x.size() > std::numeric_limits<std::int32_t>::max();
  const Array all =
      reshape(arange(x.size(), {.dtype = wide ? DType::I64 : DType::I32}, where), x.shape(), where);
  const Array places = indexed(all, indices_);
  const Array updates = reshape(broadcast_to(v, places.shape(), where), {-1}, where);
  const Array flat = reshape(x, {-1}, where);
  return reshape(detail::apply(Op(op::Scatter{.kind = kind}),
                               {flat, updates, reshape(places, {-1}, where)}, where),
                 x.shape(), where);
}

namespace {

// A mask over all of an array chooses without anybody knowing how many: it may be traced.
std::optional<Array> mask_of(const Array& x, const std::vector<Index>& indices) {
  if (indices.size() != 1 || !is_mask(indices[0])) return std::nullopt;
  Array mask = indices[0].indices();
  return mask.shape() == x.shape() ? std::optional(std::move(mask)) : std::nullopt;
}

}  // namespace

Array ArrayAt::set(const Array& given, Here where) const {
  const auto mask = mask_of(x_, indices_);
  if (!mask || given.rank() != 0) return combined(ScatterKind::Set, given, where);
  const auto [x, v] = matched(x_, given, where);
  return ricci::where(*mask, v, x, where);
}
Array ArrayAt::add(const Array& given, Here where) const {
  const auto mask = mask_of(x_, indices_);
  if (!mask || given.rank() != 0) return combined(ScatterKind::Add, given, where);
  const auto [x, v] = matched(x_, given, where);
  return ricci::where(*mask, ricci::add(x, v, where), x, where);
}
Array ArrayAt::subtract(const Array& given, Here where) const {
  return add(neg(given, where), where);
}
Array ArrayAt::factors(const Array& v, Here where) const {
  return ArrayAt(ones_like(detail::strengthened(x_, where), where), indices_).multiply(v, where);
}
Array ArrayAt::divide(const Array& v, Here where) const {
  return ricci::divide(x_, factors(v, where), where);
}
Array ArrayAt::power(const Array& v, Here where) const {
  return ricci::pow(x_, factors(v, where), where);
}
Array ArrayAt::multiply(const Array& given, Here where) const {
  const auto mask = mask_of(x_, indices_);
  if (!mask || given.rank() != 0) return combined(ScatterKind::Mul, given, where);
  const auto [x, v] = matched(x_, given, where);
  return ricci::where(*mask, ricci::mul(x, v, where), x, where);
}
Array ArrayAt::min(const Array& v, Here where) const {
  return combined(ScatterKind::Min, v, where);
}
Array ArrayAt::max(const Array& v, Here where) const {
  return combined(ScatterKind::Max, v, where);
}

}  // namespace ricci
