#include "ricci/compiler/schedule/target.h"

namespace ricci::schedule {
namespace {

class PlainTarget final : public Target {
 public:
  [[nodiscard]] bool claims(const loop::Call& /*call*/,
                            std::span<const Type> /*operands*/) const override {
    return false;
  }
};

}  // namespace

bool Target::writes_out(const loop::WrittenLoop& loop) const {
  const KernelShape& shape = kernel_shape();
  return loop::vector_instructions(loop, shape.vector_bytes) <= shape.most_loop_instructions;
}

// How many comparisons take as long as a call does: to find the place of an element, about 8; the
// updates of a row, or the row of an update, 128. One index is no more than filling with zeros;
// rows of several elements are added up in memory, which only few of them are worth.
bool Target::compares_indices(const loop::Scatter& scatter) const {
  constexpr double ForAnElement = 8;
  constexpr double ForASlice = 128;
  if (scatter.added == 1) return true;
  const auto outer = static_cast<double>(scatter.out.outer);
  const auto rows = static_cast<double>(scatter.out.size);
  const auto inner = static_cast<double>(scatter.out.inner);
  const auto added = static_cast<double>(scatter.added);
  if (scatter.each) return rows * added <= ForAnElement * (rows + added);
  if (scatter.out.inner > 1) return outer * rows * inner <= ForASlice;
  return outer * rows * added <= ForASlice * (outer * rows + added);
}

const Target& plain_target() {
  static const PlainTarget target;
  return target;
}

}  // namespace ricci::schedule
