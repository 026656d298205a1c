#include "op/loop_layout.h"

#include <algorithm>

namespace ricci {
namespace {

// Fills in the flags an empty list stands for: carries that can have a cotangent, and whatever
// else is given.
std::optional<LoopLayout> with_flags(LoopLayout layout, const std::vector<bool>& flags,
                                     std::span<const Type> operands) {
  // Counts from text may be of any size: beyond the operands they would overflow below.
  for (const std::size_t n : {layout.carries, layout.bcasts, layout.xs, layout.saved}) {
    if (n > operands.size()) return std::nullopt;
  }
  const std::size_t others = layout.operands();  // no upstream is present yet
  if (operands.size() < others) return std::nullopt;
  layout.present = flags;
  if (flags.empty()) {
    for (std::size_t k = 0; k < layout.carries; ++k) {
      layout.present.push_back(is_differentiable(operands[k].dtype));
    }
    const std::size_t of_carries = layout.upstreams();
    const std::size_t given = operands.size() - others;
    if (given < of_carries) return std::nullopt;
    layout.present.resize(layout.carries + given - of_carries, true);
  }
  if (layout.present.size() < layout.carries || layout.operands() != operands.size()) {
    return std::nullopt;
  }
  return layout;
}

}  // namespace

std::optional<std::size_t> LoopLayout::upstream(std::size_t output) const {
  if (output >= present.size() || !present[output]) return std::nullopt;
  const auto first = present.begin();
  const auto before = std::count(first, first + static_cast<std::ptrdiff_t>(output), true);
  return 2 * carries + counts + static_cast<std::size_t>(before);
}

std::size_t LoopLayout::upstreams() const {
  return static_cast<std::size_t>(std::count(present.begin(), present.end(), true));
}

std::optional<LoopLayout> layout_of(const op::ScanBackward& op, std::span<const Type> operands) {
  return with_flags({.carries = static_cast<std::size_t>(op.num_carry),
                     .bcasts = static_cast<std::size_t>(op.num_bcast),
                     .xs = static_cast<std::size_t>(op.num_xs),
                     .saved = static_cast<std::size_t>(op.num_saved),
                     .counts = 0,
                     .present = {}},
                    op.upstream_present, operands);
}

std::optional<LoopLayout> layout_of(const op::WhileBackward& op, std::span<const Type> operands) {
  auto layout = with_flags({.carries = static_cast<std::size_t>(op.num_carry),
                            .bcasts = 0,
                            .xs = 0,
                            .saved = 0,
                            .counts = 1,
                            .present = {}},
                           op.upstream_present, operands);
  if (layout && layout->present.size() != layout->carries) return std::nullopt;
  return layout;
}

}  // namespace ricci
