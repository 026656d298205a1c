#include "backend/cpu/matmul_call.h"

#include <algorithm>
#include <optional>

#include "backend/cpu/matmul.h"

namespace ricci::cpu {
namespace {

MatmulLayout layout_of(const BufferView& v, std::size_t batch_axes) {
  const StaticDims dims = v.type.static_dims();
  const std::size_t rank = dims.size();
  MatmulLayout out;
  for (std::size_t i = 0; i < batch_axes; ++i) {
    // Batch axes are aligned from the right; those that are missing or of size 1 repeat.
    const std::size_t missing = batch_axes + 2 - rank;
    const bool repeats = i < missing || dims[i - missing] == 1;
    out.batch.push_back(repeats ? 0 : v.layout.strides[i - missing]);
  }
  out.row = v.layout.strides[rank - 2];
  out.column = v.layout.strides[rank - 1];
  return out;
}

MatmulShape shape_of(const CallStep& step) {
  const StaticDims a = step.operands[0].type.static_dims();
  const StaticDims c = step.results[0].type.static_dims();
  MatmulShape shape;
  shape.dtype = step.operands[0].type.dtype;
  shape.batch.assign(c.begin(), c.end() - 2);
  shape.m = c[c.size() - 2];
  shape.n = c[c.size() - 1];
  shape.k = a[a.size() - 1];
  shape.a = layout_of(step.operands[0], shape.batch.size());
  shape.b = layout_of(step.operands[1], shape.batch.size());
  shape.c = layout_of(step.results[0], shape.batch.size());
  return shape;
}

// Tiles of whole rows, when what is attached can run in them and enough threads still have work.
std::optional<MatmulPlan> plan_in_rows(const CallStep& step, const loop::Kernel& after,
                                       const MatmulPlan& free) {
  constexpr std::int64_t EnoughTiles = 8;
  MatmulShape shape = shape_of(step);
  const std::int64_t columns = shape.n;
  const std::int64_t rows = columns == 0 ? 0 : *step.results[0].type.numel() / columns;
  shape.whole_rows = true;
  MatmulPlan plan(std::move(shape));
  // Batches that share one a are columns to the plan: no row of its tiles is a row of the result.
  if (rows == 0 || plan.batches() * plan.rows() != rows || !has_whole_rows(after, columns)) {
    return std::nullopt;
  }
  const std::int64_t wanted = std::min(std::max(free.tiles(), after.tiles), EnoughTiles);
  if (plan.tiles() < wanted) return std::nullopt;
  return plan;
}

class MatmulCall final : public CallKernel {
 public:
  MatmulCall(const CallStep& step, const loop::Kernel* after) : plan_(shape_of(step)) {
    if (after == nullptr) return;
    if (auto plan = plan_in_rows(step, *after, plan_)) {
      plan_ = std::move(*plan);
      columns_ = step.results[0].type.static_dims().back();
    }
  }

  void run(const CallArguments& a) const override {
    plan_.run(a.pool, a.operands[0], a.operands[1], a.results[0], a.scratch);
  }
  bool run_with(const CallArguments& a, const Attached& after) const override {
    if (columns_ == 0) {
      run(a);
      return false;
    }
    plan_.run(a.pool, a.operands[0], a.operands[1], a.results[0], a.scratch, [&](std::int64_t t) {
      const MatmulTile tile = plan_.tile(t);
      for (std::int64_t batch = tile.batch0; batch < tile.batch1; ++batch) {
        const std::int64_t first = batch * plan_.rows();
        after.run((first + tile.row0) * columns_, (first + tile.row1) * columns_);
      }
    });
    return true;
  }
  [[nodiscard]] std::int64_t scratch_bytes() const override { return plan_.scratch_bytes(); }
  [[nodiscard]] std::int64_t thread_bytes() const override { return plan_.thread_bytes(); }
  [[nodiscard]] std::string_view how() const override { return "matmul"; }

 private:
  MatmulPlan plan_;
  std::int64_t columns_ = 0;  ///< of a row, when tiles are whole rows
};

}  // namespace

std::unique_ptr<CallKernel> make_matmul_call(const CallStep& step, const loop::Kernel* after) {
  return std::make_unique<MatmulCall>(step, after);
}

}  // namespace ricci::cpu
