#include "schedule/order_rows.h"

#include <algorithm>
#include <cstdlib>
#include <variant>

namespace ricci::schedule {
namespace {

using loop::Kernel;

// How many loads have their neighbours in memory along this axis, not along the row.
std::int64_t crossed_along(const Kernel& k, std::size_t axis, const KernelShape& shape) {
  return std::ranges::count_if(k.code, [&](const loop::Instr& i) {
    return i.code == loop::Code::Load && i.per_element && i.access.strides[axis] == 1 &&
           std::abs(i.access.strides.back()) > shape.near_stride;
  });
}

// The axis whose rows follow each other.
std::size_t chosen_axis(const Kernel& k, const KernelShape& shape) {
  const std::size_t last = k.kept - 1;
  std::size_t best = last;
  if (k.reductions.empty() && k.outer + 1 == k.extents.size()) {
    for (std::size_t a = last; a-- > 0;) {
      if (crossed_along(k, a, shape) > crossed_along(k, best, shape)) best = a;
    }
  }
  if (best != last || k.row_elements() > shape.short_row || k.extents[last] >= shape.few_rows)
    return best;
  // Rows that are short run side by side, where there are many.
  for (std::size_t a = last; a-- > 0;) {
    if (k.extents[a] >= shape.many_rows && k.extents[a] > k.extents[best]) best = a;
  }
  return best;
}

void order_rows(Kernel& k, const KernelShape& shape) {
  if (!k.accumulators.empty() || k.kept < 2 || k.kept != k.outer) return;
  const std::size_t axis = chosen_axis(k, shape);
  const auto move = [&](std::vector<std::int64_t>& axes) {
    const auto from = axes.begin() + static_cast<std::ptrdiff_t>(axis);
    std::rotate(from, from + 1, axes.begin() + static_cast<std::ptrdiff_t>(k.kept));
  };
  move(k.extents);
  loop::for_each_strides(k, move);
}

}  // namespace

void order_rows(Program& program, const KernelShape& shape) {
  for (const Step& step : program.steps) {
    const auto* kernels = std::get_if<KernelStep>(&step.what);
    if (kernels == nullptr) continue;
    for (const Launch& launch : kernels->launches)
      order_rows(program.kernels[launch.kernel], shape);
  }
}

}  // namespace ricci::schedule
