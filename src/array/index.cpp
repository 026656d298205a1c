#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "ricci/array/array.h"
#include "ricci/array/ops.h"
#include "ricci/build/shape.h"
#include "ricci/op/ops.h"
#include "ricci/support/error.h"

#include "array/node.h"

namespace ricci {
namespace {

// An index applied axis by axis: axes that are cut stay until all is done.
class Indexer {
 public:
  Indexer(Array x, Here where) : x_(std::move(x)), where_(where) {}

  Array run(std::span<const Index> indices) {
    const auto taken = static_cast<std::size_t>(std::ranges::count_if(indices, [](const Index& i) {
      return i.kind != Index::Kind::New && i.kind != Index::Kind::Rest;
    }));
    if (taken > x_.rank()) {
      detail::refuse(ErrorCode::Shape, "index",
                     fmt::format("{} indices for {}", taken, x_.type().to_string()), "one an axis",
                     where_);
    }
    bool rest = false;
    for (const Index& i : indices) {
      if (i.kind == Index::Kind::Rest) {
        if (rest)
          detail::refuse(ErrorCode::Attr, "index", "an index has ellipsis twice", "once is enough",
                         where_);
        rest = true;
        const std::size_t whole = x_.rank() - at_ - (taken - done_);
        at_ += whole;
        continue;
      }
      apply_one(i);
    }
    return x_;
  }

 private:
  void apply_one(const Index& i) {
    const auto axis = static_cast<std::int64_t>(at_);
    switch (i.kind) {
      case Index::Kind::Place: pick(i.place); break;
      case Index::Kind::Range: cut(i.range); break;
      case Index::Kind::New:
        x_ = expand_dims(x_, axis, where_);
        ++at_;
        return;
      case Index::Kind::Gather: gather(*i.indices); break;
      default: break;
    }
    ++done_;
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

  void gather(const Array& indices) {
    detail::require_valid(indices, "index", where_);
    if (indices.dtype() == DType::Bool) {
      detail::refuse(ErrorCode::DType, "index", "an array of bools as an index",
                     "how many are true is not known before: where(mask, x, 0.0) keeps the shape",
                     where_);
    }
    x_ = detail::apply(Op(op::Gather{.axis = static_cast<std::int64_t>(at_)}), {x_, indices},
                       where_);
    at_ += indices.rank();
  }

  Array x_;
  Here where_;
  std::size_t at_ = 0;
  std::size_t done_ = 0;
};

}  // namespace

Array Array::operator[](const Index& index) const { return at({&index, 1}); }

Array Array::operator()(const Index& a, const Index& b, const Index& c, const Index& d,
                        const Index& e, const Index& f, const Index& g, const Index& h) const {
  const std::array<Index, 8> all = {a, b, c, d, e, f, g, h};
  std::size_t n = 0;
  while (n < all.size() && all[n].kind != Index::Kind::None) ++n;
  return at(std::span(all).first(n));
}

Array Array::at(std::span<const Index> indices) const {
  const Here where = indices.empty() ? Here() : indices[0].where;
  detail::require_valid(*this, "index", where);
  return Indexer(detail::strengthened(*this, where), where).run(indices);
}

}  // namespace ricci
