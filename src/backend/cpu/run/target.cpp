#include "backend/cpu/run/target.h"

#include <variant>

#include "backend/cpu/run/tiling.h"
#include "support/align.h"

namespace ricci::cpu {
namespace {

class Processor final : public schedule::Target {
 public:
  // There is a kernel for every role, of attention in f32 alone.
  [[nodiscard]] bool claims(const loop::Call& call, std::span<const Type> operands) const override {
    return !std::holds_alternative<loop::Attention>(call) || operands[0].dtype == DType::F32;
  }

  [[nodiscard]] std::int64_t alignment() const override { return CacheLine; }

  // Their operands and results are large, and what is in the nearest cache is used there.
  [[nodiscard]] bool runs_in_parts(const loop::Call& call) const override {
    const auto* conv = std::get_if<loop::Convolution>(&call);
    const auto* fourier = std::get_if<loop::FourierTransform>(&call);
    return std::holds_alternative<loop::MatrixProduct>(call) ||
           (fourier != nullptr && fourier->inner == 1) ||
           (conv != nullptr && conv->of != loop::Convolution::Of::WeightGradient);
  }

  // An element is added to its row in the time of some comparisons in vectors, to which comes what
  // a call costs. Where the updates do not stay in a cache, comparing reads them for every row.
  [[nodiscard]] bool compares_indices(const loop::Scatter& scatter) const override {
    constexpr double ForAnElement = 24;
    constexpr double ForACall = 16384;
    if (!Target::compares_indices(scatter)) return false;
    if (scatter.each || scatter.out.inner > 1 || scatter.added == 1) return true;
    const auto rows = static_cast<double>(scatter.out.outer * scatter.out.size);
    const auto added = static_cast<double>(scatter.added);
    return rows * added <= ForAnElement * (rows + added) + ForACall;
  }

  // Threads are started and joined once for a step. A kernel of one tile keeps one of them busy,
  // and after a few tiles some wait for the others: together they fill that time.
  [[nodiscard]] bool gains_company(const loop::Kernel& kernel) const override {
    constexpr std::int64_t FewTiles = 16;
    return tile_count(kernel) <= FewTiles;
  }
};

}  // namespace

const schedule::Target& target() {
  static const Processor processor;
  return processor;
}

}  // namespace ricci::cpu
