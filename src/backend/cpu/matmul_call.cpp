#include "backend/cpu/matmul_call.h"

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

class MatmulCall final : public CallKernel {
 public:
  explicit MatmulCall(const CallStep& step) : plan_(shape_of(step)) {}

  void run(const CallArguments& a) const override {
    plan_.run(a.pool, a.operands[0], a.operands[1], a.results[0], a.scratch);
  }
  [[nodiscard]] std::int64_t scratch_bytes() const override { return plan_.scratch_bytes(); }
  [[nodiscard]] std::int64_t thread_bytes() const override { return plan_.thread_bytes(); }
  [[nodiscard]] std::string_view how() const override { return "matmul"; }

 private:
  MatmulPlan plan_;
};

}  // namespace

std::unique_ptr<CallKernel> make_matmul_call(const CallStep& step) {
  return std::make_unique<MatmulCall>(step);
}

}  // namespace ricci::cpu
