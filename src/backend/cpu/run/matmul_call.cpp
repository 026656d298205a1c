#include "backend/cpu/run/matmul_call.h"

#include <algorithm>

#include "backend/cpu/run/tiling.h"
#include "backend/cpu/structured/matmul.h"

namespace ricci::cpu {
namespace {

// `batch`: for every axis of the batch the view's own, or -1 where it repeats.
MatmulLayout layout_of(const BufferView& v, const std::vector<std::int64_t>& batch) {
  const std::vector<std::int64_t>& strides = v.layout.strides;
  MatmulLayout out;
  for (const std::int64_t axis : batch) {
    out.batch.push_back(axis < 0 ? 0 : strides[static_cast<std::size_t>(axis)]);
  }
  out.row = strides[strides.size() - 2];
  out.column = strides[strides.size() - 1];
  return out;
}

MatmulShape shape_of(const loop::MatrixProduct& product, const CallStep& step,
                     const SameBuffers& same) {
  const auto stays = [&](const BufferView& v) {
    const auto buffer = static_cast<std::size_t>(v.buffer);
    return buffer < same.size() && same[buffer];
  };
  std::vector<std::int64_t> own(product.batch.size());
  for (std::size_t i = 0; i < own.size(); ++i) own[i] = static_cast<std::int64_t>(i);
  return {.dtype = step.operands[0].type.dtype,
          .batch = product.batch,
          .m = product.rows,
          .n = product.columns,
          .k = product.depth,
          .a = layout_of(step.operands[0], product.a_batch),
          .b = layout_of(step.operands[1], product.b_batch),
          .c = layout_of(step.results[0], own),
          .same_a = stays(step.operands[0]),
          .same_b = stays(step.operands[1])};
}

std::int64_t rows_of(const BufferView& v) {
  const std::int64_t columns = v.type.static_dims().back();
  return columns == 0 ? 0 : *v.type.numel() / columns;
}

// Can a kernel that goes through an operand or a result run in tiles of whole rows? Batches that
// share one operand are rows or columns to a plan: its tiles may have other rows than the array.
bool fits(const loop::Kernel* kernel, const BufferView& v, const MatmulPlan& plan) {
  return kernel != nullptr && rows_of(v) != 0 && plan.batches() * plan.rows() == rows_of(v) &&
         has_whole_rows(*kernel, v.type.static_dims().back());
}

class MatmulCall final : public CallKernel {
 public:
  MatmulCall(const loop::MatrixProduct& product, const CallStep& step,
             const AttachedKernels& attached, const SameBuffers& same)
      : plan_(shape_of(product, step, same)) {
    if (attached.before == nullptr && attached.after == nullptr) return;
    MatmulShape shape = shape_of(product, step, same);
    shape.whole_rows = true;
    MatmulPlan plan(std::move(shape));
    const BufferView& a = step.operands[0];
    const BufferView& c = step.results[0];
    const bool before = plan.reads_a_in_tiles() && fits(attached.before, a, plan);
    const bool after = fits(attached.after, c, plan);
    if (!before && !after) return;
    // Enough threads must still have work.
    constexpr std::int64_t EnoughTiles = 8;
    std::int64_t wanted = plan_.tiles();
    if (before) wanted = std::max(wanted, tile_count(*attached.before));
    if (after) wanted = std::max(wanted, tile_count(*attached.after));
    if (plan.tiles() < std::min(wanted, EnoughTiles)) return;
    plan_ = std::move(plan);
    if (before) columns_before_ = a.type.static_dims().back();
    if (after) columns_after_ = c.type.static_dims().back();
  }

  void run(const CallArguments& a) const override { run_with(a, {}); }
  void run_with(const CallArguments& a, const RunWith& attached) const override {
    const auto& [before, after] = attached;
    if (before != nullptr && columns_before_ == 0) before->run_all();
    plan_.run(
        a.pool, a.operands[0], a.operands[1], a.results[0], {a.scratch, a.kept, a.kept_is_made},
        [&](std::int64_t t) { run_rows(t, before, columns_before_); },
        [&](std::int64_t t) { run_rows(t, after, columns_after_); });
    if (after != nullptr && columns_after_ == 0) after->run_all();
  }
  [[nodiscard]] std::int64_t scratch_bytes() const override { return plan_.scratch_bytes(); }
  [[nodiscard]] std::int64_t kept_bytes() const override { return plan_.kept_bytes(); }
  [[nodiscard]] std::int64_t thread_bytes() const override { return plan_.thread_bytes(); }
  [[nodiscard]] std::string_view how() const override { return "matmul"; }

 private:
  // What is attached, for the rows of a tile.
  void run_rows(std::int64_t t, const Attached* attached, std::int64_t columns) const {
    if (attached == nullptr || columns == 0) return;
    const MatmulTile tile = plan_.tile(t);
    for (std::int64_t batch = tile.batch0; batch < tile.batch1; ++batch) {
      const std::int64_t first = batch * plan_.rows();
      attached->run((first + tile.row0) * columns, (first + tile.row1) * columns);
    }
  }

  MatmulPlan plan_;
  // Of a row, when tiles are whole rows and what is attached runs in them.
  std::int64_t columns_before_ = 0;
  std::int64_t columns_after_ = 0;
};

}  // namespace

std::unique_ptr<CallKernel> make_matmul_call(const loop::MatrixProduct& product,
                                             const CallStep& step, const AttachedKernels& attached,
                                             const SameBuffers& same) {
  return std::make_unique<MatmulCall>(product, step, attached, same);
}

}  // namespace ricci::cpu
