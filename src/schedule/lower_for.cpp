#include "schedule/lower_for.h"

#include <algorithm>
#include <span>

namespace ricci::schedule {

std::vector<std::int64_t> boundaries_of(const StaticDims& dims, std::int64_t unit) {
  std::vector<std::int64_t> b{unit};
  for (std::size_t i = dims.size(); i-- > 0;) {
    if (dims[i] != 1) b.push_back(b.back() * dims[i]);
  }
  return b;
}

std::optional<std::vector<std::int64_t>> joined(const std::vector<std::int64_t>& a,
                                                const std::vector<std::int64_t>& b) {
  std::vector<std::int64_t> all;
  std::ranges::set_union(a, b, std::back_inserter(all));
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (all[i] % all[i - 1] != 0) return std::nullopt;
  }
  return all;
}

std::optional<std::int64_t> part_of_row(std::int64_t n, std::int64_t least, std::int64_t limit,
                                        const std::vector<std::int64_t>& axes) {
  // Lengths are tried, not how many there are: rows may be as long as sizes can be.
  for (std::int64_t part = std::min(n, limit); part >= least; --part) {
    if (n % part == 0 && joined(axes, {part})) return part;
  }
  return std::nullopt;
}

std::optional<std::int64_t> running_row(const StaticDims& dims, std::size_t axis,
                                        const KernelShape& shape) {
  const std::int64_t columns = loop::element_count(std::span(dims).subspan(axis + 1));
  const std::int64_t above = loop::element_count(std::span(dims).first(axis));
  const bool shared_out = columns <= shape.running_part || above >= shape.enough_rows;
  if (shared_out && columns <= shape.longest_row) return columns;
  // Shorter parts would be walked down with vectors that are mostly empty.
  const std::int64_t shortest = std::min<std::int64_t>(64, shape.running_part);
  const auto part = part_of_row(columns, shortest, shape.running_part, boundaries_of(dims, 1));
  return part || !shared_out ? part : columns;
}

Lowering lower_for(const KernelShape& shape, const Graph& graph, const Node& node) {
  Lowering l = lower_node(graph, node);
  if (l.form == Lowering::Form::Running &&
      !running_row(node.types[0].static_dims(), l.axis, shape)) {
    l.form = Lowering::Form::Call;
  }
  return l;
}

}  // namespace ricci::schedule
