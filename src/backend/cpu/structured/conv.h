// Two-dimensional convolution and its two gradients, on row-major [N, C, H, W] arrays.
//
//   const ConvPlan plan(geometry, ConvPlan::Kind::Forward);
//   plan.run(pool, x, w, y, scratch);           // scratch: plan.scratch_bytes(), 64-aligned
//
// f32 goes to oneDNN in the layouts it likes best, f64 to products over gathered windows; narrower
// floats are computed in f32 and rounded once. The batch is cut into tiles. Plans are immutable.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>

#include "ricci/device/thread_pool.h"
#include "ricci/op/conv.h"
#include "ricci/type/dtype.h"
#include "ricci/type/type.h"

namespace ricci::cpu {

struct ConvGeometry {
  DType dtype = DType::F32;
  std::int64_t images = 0;
  std::int64_t channels_in = 0;
  std::int64_t channels_out = 0;
  std::int64_t groups = 1;
  std::array<std::int64_t, 2> size_in{};   ///< H, W
  std::array<std::int64_t, 2> size_out{};  ///< H_out, W_out
  std::array<std::int64_t, 2> kernel{};
  std::array<std::int64_t, 2> stride{1, 1};
  std::array<std::int64_t, 2> padding{0, 0};
  std::array<std::int64_t, 2> dilation{1, 1};

  [[nodiscard]] std::int64_t x_image() const { return channels_in * size_in[0] * size_in[1]; }
  [[nodiscard]] std::int64_t y_image() const { return channels_out * size_out[0] * size_out[1]; }
  [[nodiscard]] std::int64_t taps() const { return channels_in / groups * kernel[0] * kernel[1]; }
  [[nodiscard]] std::int64_t weights() const { return channels_out * taps(); }
};

/// The geometry of conv and of its gradients, from the sizes of x, w and y.
template <class Op>
ConvGeometry conv_geometry(const Op& op, DType dtype, const StaticDims& x, const StaticDims& w,
                           const StaticDims& y) {
  return {.dtype = dtype,
          .images = x[0],
          .channels_in = x[1],
          .channels_out = w[0],
          .groups = op.groups,
          .size_in = {x[2], x[3]},
          .size_out = {y[2], y[3]},
          .kernel = {w[2], w[3]},
          .stride = {op.stride[0], op.stride[1]},
          .padding = {op.padding[0], op.padding[1]},
          .dilation = {op.dilation[0], op.dilation[1]}};
}

/// Called by tiles with images [first, last): of lhs before they read them, and of the result when
/// they have finished them. Either may be empty.
struct ImageHooks {
  using Hook = std::function<void(std::int64_t first, std::int64_t last)>;
  Hook before = {};
  Hook done = {};
};

/// One way of computing: what a plan delegates to.
class ConvMethod {
 public:
  virtual ~ConvMethod() = default;
  [[nodiscard]] virtual std::int64_t scratch_bytes() const = 0;
  /// The gradient of the weights is not made of images: it calls no hooks.
  virtual void run(ThreadPool& pool, const void* lhs, const void* rhs, void* out,
                   std::byte* scratch, const ImageHooks& hooks) const = 0;
};

class ConvPlan {
 public:
  /// Operands and result: x, w, y; dy, w, dx; x, dy, dw.
  enum class Kind : std::uint8_t { Forward, BackwardInput, BackwardWeight };

  ConvPlan(const ConvGeometry& geometry, Kind kind);

  [[nodiscard]] std::int64_t scratch_bytes() const noexcept { return scratch_bytes_; }
  /// Does `run` call hooks?
  [[nodiscard]] bool tells_images() const noexcept { return tells_images_; }
  void run(ThreadPool& pool, const void* lhs, const void* rhs, void* out, void* scratch,
           const ImageHooks& hooks = {}) const;

 private:
  std::shared_ptr<const ConvMethod> method_;
  DType dtype_;
  std::array<std::int64_t, 3> elements_{};  ///< of lhs, rhs and out
  std::array<std::int64_t, 3> offsets_{};   ///< of their f32 copies in scratch, for narrow floats
  std::int64_t method_scratch_ = 0;         ///< where the method's own scratch begins
  std::int64_t scratch_bytes_ = 0;
  bool tells_images_ = false;
};

/// oneDNN's convolution of f32; null when it has none for this geometry.
[[nodiscard]] std::shared_ptr<const ConvMethod> library_conv(const ConvGeometry& g,
                                                             ConvPlan::Kind kind);
/// Products over gathered windows; f32 and f64, any geometry.
[[nodiscard]] std::shared_ptr<const ConvMethod> window_conv(const ConvGeometry& g,
                                                            ConvPlan::Kind kind);

}  // namespace ricci::cpu
