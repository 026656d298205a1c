#include "ricci/type/type.h"

#include <algorithm>

#include <fmt/format.h>

#include "ricci/support/checked.h"
#include "ricci/support/hash.h"

namespace ricci {

bool Type::is_static() const noexcept {
  return std::ranges::all_of(dims, [](const Dim& d) { return d.is_static(); });
}

std::optional<std::int64_t> Type::numel() const {
  if (!is_static()) return std::nullopt;
  return product(dims).value();
}

StaticDims Type::static_dims() const {
  StaticDims out;
  out.reserve(dims.size());
  for (const Dim& d : dims) out.push_back(d.value());
  return out;
}

Type Type::bind(const SymbolBindings& bindings) const {
  Type out{dtype, {}};
  for (const Dim& d : dims) out.dims.push_back(d.bind(bindings));
  return out;
}

std::string Type::to_string() const {
  return fmt::format("{}{}", name(dtype), ricci::to_string(dims));
}

std::uint64_t Type::hash() const {
  Hasher h;
  h.add(static_cast<std::uint64_t>(dtype));
  for (const Dim& d : dims) h.add(d.hash());
  return h.value();
}

Dim product(std::span<const Dim> dims) {
  // A zero anywhere makes the product zero even where the rest would overflow.
  if (std::ranges::any_of(dims, [](const Dim& d) { return d.is(0); })) return 0;
  Dim p(1);
  for (const Dim& d : dims) p = p * d;
  return p;
}

std::string to_string(std::span<const Dim> dims) {
  std::string out = "[";
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (i != 0) out += ", ";
    out += dims[i].to_string();
  }
  return out + "]";
}

std::optional<Dims> broadcast(std::span<const Dim> a, std::span<const Dim> b) {
  const std::size_t rank = std::max(a.size(), b.size());
  Dims out(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    const Dim x = i < rank - a.size() ? Dim(1) : a[i - (rank - a.size())];
    const Dim y = i < rank - b.size() ? Dim(1) : b[i - (rank - b.size())];
    if (x == y || y.is(1)) {
      out[i] = x;
    } else if (x.is(1)) {
      out[i] = y;
    } else {
      return std::nullopt;
    }
  }
  return out;
}

std::optional<std::int64_t> normalized_axis(std::int64_t axis, std::size_t rank) {
  const auto r = static_cast<std::int64_t>(rank);
  if (axis < -r || axis >= r) return std::nullopt;
  return axis < 0 ? axis + r : axis;
}

}  // namespace ricci
