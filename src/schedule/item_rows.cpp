#include "schedule/item_rows.h"

#include <algorithm>
#include <vector>

#include "ricci/support/error.h"

#include "loop/guards.h"
#include "schedule/lower_for.h"

namespace ricci::schedule {

using loop::element_count;

namespace {

// How many columns a reduction of rows walks down together. Few rows are not worth chunks, whose
// partial results would be about as large as what they combine: the columns are shared out instead,
// in parts. Where nothing is kept above, kernels are left
// the chance to reduce the columns too, unless they are so many that this is unlikely.
std::int64_t columns_together(const Item& item, std::int64_t columns, const KernelShape& shape) {
  std::int64_t combined = 1;
  for (std::size_t i = 0; i < item.dims.size(); ++i) combined *= item.reduced[i] ? item.dims[i] : 1;
  const bool alone = element_count(item.dims) == columns * combined;
  if (combined >= shape.rows_worth_chunk * shape.most_chunks) return columns;
  if (columns <= (alone ? shape.longest_row : 2 * shape.running_part)) return columns;
  return part_of_row(columns, shape.shortest_columns, shape.running_part,
                     boundaries_of(item.dims, 1))
      .value_or(columns);
}

}  // namespace

std::int64_t natural_row(const Item& item, const KernelShape& shape) {
  std::size_t i = item.dims.size();
  while (i > 0 && item.dims[i - 1] == 1) --i;
  check_internal(i > 0, "a reduction has nothing to combine");
  const bool reduced = item.reduced[i - 1];
  std::int64_t row = 1;
  for (; i > 0 && (item.dims[i - 1] == 1 || item.reduced[i - 1] == reduced); --i) {
    row *= item.dims[i - 1];
  }
  if (!reduced) return columns_together(item, row, shape);
  const std::int64_t rows = element_count(item.dims) / row;
  if (row <= shape.longest_row || rows >= shape.enough_rows) return row;
  return part_of_row(row, shape.shortest_part, shape.longest_row, boundaries_of(item.dims, 1))
      .value_or(row);
}

std::int64_t run_of(const Item& item) {
  std::vector<std::size_t> axes;
  for (std::size_t d = 0; d < item.dims.size(); ++d) {
    if (item.dims[d] != 1) axes.push_back(d);
  }
  if (axes.empty()) return 1;
  const auto strides_of = [&](const loop::Layout& layout) {
    std::vector<std::int64_t> strides;
    for (const std::size_t d : axes) strides.push_back(layout.strides[d]);
    return strides;
  };
  std::vector<std::vector<std::int64_t>> walked;
  std::vector<loop::Guard> guards;
  for (const Seen& seen : item.reads) {
    if (const auto* sequence = std::get_if<Sequence>(&seen)) {
      walked.push_back(strides_of(sequence->layout));
    }
    const auto* stored = std::get_if<Stored>(&seen);
    if (stored == nullptr) continue;
    walked.push_back(strides_of(stored->layout));
    for (const loop::Bound& b : stored->bounds) {
      guards.push_back({b.place.offset, strides_of(b.place), b.limit});
    }
  }
  std::int64_t run = item.dims[axes.back()];
  for (std::size_t a = axes.size() - 1; a > 0; --a) {
    const bool joint =
        std::ranges::all_of(walked, [&](const auto& s) { return s[a - 1] == s[a] * run; }) &&
        std::ranges::all_of(guards, [&](const auto& g) { return loop::joins_axes(g, a, run); });
    if (!joint) break;
    for (auto& s : walked) s[a - 1] = s[a];
    for (loop::Guard& g : guards) {
      loop::write_for_joined(g, a, run);
      g.strides[a - 1] = g.strides[a];
    }
    run *= item.dims[axes[a - 1]];
  }
  return run;
}

}  // namespace ricci::schedule
