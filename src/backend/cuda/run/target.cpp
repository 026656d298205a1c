#include "backend/cuda/run/target.h"

#include "backend/cuda/codegen/shape.h"
#include "backend/cuda/run/memory.h"
#include "backend/cuda/structured/attention_text.h"
#include "backend/cuda/structured/call_plan.h"

namespace ricci::cuda {
namespace {

class GpuTarget final : public schedule::Target {
 public:
  // Whoever walks down a chunk waits for memory at every row: many short chunks are over sooner.
  GpuTarget() : shape_(cuda::kernel_shape()) { shape_.chunk_work = 1 << 12; }

  [[nodiscard]] bool claims(const loop::Call& call, std::span<const Type> operands) const override {
    return serves(call, operands);
  }
  [[nodiscard]] const schedule::KernelShape& kernel_shape() const override { return shape_; }
  [[nodiscard]] std::int64_t alignment() const override { return ArrayAlignment; }
  // Little enough to stay in a GPU's cache together with what else a small program works on.
  [[nodiscard]] std::int64_t unshared_bytes() const override { return std::int64_t{16} << 20; }
  // A pass over all keys, which is as much as the whole forward pass.
  [[nodiscard]] bool wants_attention_means() const override { return true; }
  [[nodiscard]] bool writes_view(const loop::Call& call, std::size_t result, const Type& type,
                                 const loop::Layout& layout) const override {
    const auto* attention = std::get_if<loop::Attention>(&call);
    return attention != nullptr && writes_heads(*attention, result, type, layout);
  }
  // The library adds, and applies functions, before it stores.
  [[nodiscard]] bool runs_kernel_behind(const loop::Call& call) const override {
    return std::holds_alternative<loop::MatrixProduct>(call);
  }
  // The flag has to be copied back before the host can go on, which takes about as long as kernels
  // that go through so many elements.
  [[nodiscard]] std::int64_t short_branch() const override { return 1 << 18; }
  // A launch costs more than what such a kernel does.
  [[nodiscard]] bool gains_company(const loop::Kernel& kernel) const override {
    constexpr std::int64_t FewElements = 1 << 18;
    return kernel.rows() * kernel.row_elements() <= FewElements;
  }

 private:
  schedule::KernelShape shape_;
};

}  // namespace

const schedule::Target& target() {
  static const GpuTarget the;
  return the;
}

}  // namespace ricci::cuda
