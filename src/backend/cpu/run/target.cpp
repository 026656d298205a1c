#include "backend/cpu/run/target.h"

#include <cstdint>
#include <limits>
#include <variant>

#include "backend/cpu/run/tiling.h"
#include "support/align.h"

namespace ricci::cpu {
namespace {

// A row of f32 and what is made of it stay in the second cache, totals and parts of rows in the
// first; chunks are enough for as many threads as machines have, each some tens of microseconds.
// Code for more instructions takes longer to compile than it saves, and loops that are written out
// take vectors as the widest machines have them: a program does not depend on where it was made.
constexpr schedule::KernelShape Shape{
    .longest_row = 16384,
    .shortest_part = 256,
    .enough_rows = 8,
    .chunk_work = 1 << 17,
    .most_chunks = 16,
    .running_part = 512,
    .most_parts = 64,
    .most_instructions = 256,
    .most_work = 4096,
    .rows_wait_in_outputs = true,
    .largest_row_buffer = std::numeric_limits<std::int64_t>::max(),
    .longest_summed_row = std::numeric_limits<std::int64_t>::max(),
    .short_row = 8,
    .few_rows = 8,
    .many_rows = 64,
    .near_stride = NearStride,
    .few_columns = 16,
    .shortest_wide_row = 32,
    .longest_wide_row = 512,
    .least_wide_rows = 64,
    .shortest_columns = 64,
    .rows_worth_chunk = 16,
    .few_elements = 4096,
    .small_group = 1 << 16,
    .vector_bytes = 64,
    .most_loop_instructions = 900,
};

// Threads are started and joined for every step, and wait for memory longer than for a few
// instructions. Arrays of a few pages stay in a cache anyway.
constexpr schedule::Costs Prices{
    .byte = 4,
    .step = 20000,
    .much_smaller = 8,
    .light_work = 8,
    .least_elements = 4096,
    .early_work = 8,
    .row_work = 48,
};

class Processor final : public schedule::Target {
 public:
  // There is a kernel for every role, of attention in f32 alone.
  [[nodiscard]] bool claims(const loop::Call& call, std::span<const Type> operands) const override {
    return !std::holds_alternative<loop::Attention>(call) || operands[0].dtype == DType::F32;
  }

  [[nodiscard]] const schedule::KernelShape& kernel_shape() const override { return Shape; }
  [[nodiscard]] const schedule::Costs& costs() const override { return Prices; }
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
