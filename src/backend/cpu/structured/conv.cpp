#include "backend/cpu/structured/conv.h"

#include <algorithm>

#include "ricci/support/checked.h"

#include "backend/cpu/kernels/vector_kernels.h"
#include "backend/cpu/run/library_parts.h"
#include "support/align.h"
#include "type/small_dtype.h"

extern "C" [[gnu::weak]] ricci::cpu::LibraryConvolution* ricci_cpu_convolution() noexcept;

namespace ricci::cpu {
namespace {

constexpr std::int64_t ConvertedAtOnce = 1 << 14;  // elements converted in one tile

template <class Convert, class From, class To>
void convert_all(ThreadPool& pool, Convert convert, const From* from, To* to, std::int64_t count) {
  pool.run((count + ConvertedAtOnce - 1) / ConvertedAtOnce, [&](std::int64_t tile) {
    const std::int64_t first = tile * ConvertedAtOnce;
    convert(from + first, to + first, std::min(ConvertedAtOnce, count - first));
  });
}

}  // namespace

ConvPlan::ConvPlan(const loop::Convolution& geometry) : dtype_(geometry.dtype) {
  using Of = loop::Convolution::Of;
  loop::Convolution g = geometry;
  if (is_small_float(dtype_)) g.dtype = DType::F32;
  if (g.dtype == DType::F32 && ricci_cpu_convolution != nullptr) {
    method_ = ricci_cpu_convolution()(g);
  }
  if (!method_) method_ = window_conv(g);
  const std::int64_t x = checked_mul(g.images, g.x_image());
  const std::int64_t y = checked_mul(g.images, g.y_image());
  switch (g.of) {
    case Of::Image: elements_ = {x, g.weights(), y}; break;
    case Of::ImageGradient: elements_ = {y, g.weights(), x}; break;
    case Of::WeightGradient: elements_ = {x, y, g.weights()}; break;
  }
  for (std::size_t i = 0; is_small_float(dtype_) && i < 3; ++i) {
    offsets_[i] = method_scratch_;
    method_scratch_ += aligned(elements_[i] * 4);
  }
  tells_images_ = !is_small_float(dtype_) && g.of != Of::WeightGradient;
  scratch_bytes_ = checked_add(method_scratch_, method_->scratch_bytes());
}

void ConvPlan::run(ThreadPool& pool, const void* lhs, const void* rhs, void* out, void* scratch,
                   const ImageHooks& hooks) const {
  auto* bytes = static_cast<std::byte*>(scratch);
  if (!is_small_float(dtype_))
    return method_->run(pool, lhs, rhs, out, bytes + method_scratch_, hooks);
  const VectorKernels& k = vector_kernels();
  const bool half = dtype_ == DType::F16;
  std::array<float*, 3> wide{};
  for (std::size_t i = 0; i < 3; ++i) wide[i] = reinterpret_cast<float*>(bytes + offsets_[i]);
  const auto widen = half ? k.widen_f16 : k.widen_bf16;
  convert_all(pool, widen, static_cast<const std::uint16_t*>(lhs), wide[0], elements_[0]);
  convert_all(pool, widen, static_cast<const std::uint16_t*>(rhs), wide[1], elements_[1]);
  method_->run(pool, wide[0], wide[1], wide[2], bytes + method_scratch_, {});
  const auto narrow = half ? k.narrow_f16 : k.narrow_bf16;
  convert_all(pool, narrow, wide[2], static_cast<std::uint16_t*>(out), elements_[2]);
}

}  // namespace ricci::cpu
