// Two-dimensional convolution and its two gradients, on row-major [N, C, H, W] arrays.
//
//   const ConvPlan plan(geometry);
//   plan.run(pool, x, w, y, scratch);           // scratch: plan.scratch_bytes(), 64-aligned
//
// f32 goes to oneDNN in the layouts it likes best, f64 to products over gathered windows; narrower
// floats are computed in f32 and rounded once. The batch is cut into tiles. Plans are immutable.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>

#include "ricci/compiler/device/thread_pool.h"
#include "ricci/compiler/loop/call.h"
#include "ricci/type/dtype.h"
#include "ricci/type/type.h"

namespace ricci::cpu {

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
  explicit ConvPlan(const loop::Convolution& geometry);

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

/// Products over gathered windows; f32 and f64, any geometry.
[[nodiscard]] std::shared_ptr<const ConvMethod> window_conv(const loop::Convolution& g);

}  // namespace ricci::cpu
