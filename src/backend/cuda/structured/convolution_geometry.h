// What a convolution's taps meet, in numbers and as code. An image and its gradient gather: a
// result's place in a grid says which places of the source its taps meet. For the gradient of an
// image, places of the same remainder by the stride, a class, meet the same taps.
#pragma once

#include <cstdint>
#include <string>

#include "backend/cuda/structured/plan_builder.h"

namespace ricci::cuda {

/// One axis of an image whose results gather: result r·classes + class meets, for every tap k of
/// its class, the source at r·step + row(class) + k·tap_step with the weight first(class) + k·unit.
struct GatherAxis {
  std::int64_t source = 1;
  std::int64_t target = 1;
  std::int64_t classes = 1;
  std::int64_t grid = 1;  ///< places of a class, or fewer
  std::int64_t kernel = 1;
  std::int64_t taps = 1;  ///< of a class, or fewer
  std::int64_t unit = 1;
  std::int64_t step = 1;
  std::int64_t tap_step = 1;
  std::int64_t padding = 0;
  std::int64_t stride = 1;  ///< of the convolution
  std::int64_t dilation = 1;
};

struct Gathering {
  DType dtype = DType::F32;
  bool gradient = false;
  std::int64_t images = 1;
  std::int64_t groups = 1;
  std::int64_t channels = 1;  ///< of the source, in a group
  std::int64_t results = 1;   ///< channels of the target in a group
  GatherAxis y = {};
  GatherAxis x = {};

  [[nodiscard]] std::int64_t classes() const { return y.classes * x.classes; }
  [[nodiscard]] std::int64_t taps() const { return y.taps * x.taps; }
};

[[nodiscard]] Gathering gathering_of(const loop::Convolution& convolution);
[[nodiscard]] std::int64_t area(const loop::HeightAndWidth& size);
/// Has an int room for every place of both images, the edges included, and every number of a
/// result?
[[nodiscard]] bool is_narrow(const loop::Convolution& convolution);

/// Sizes and `taps_of`; and `down` and `across`, the taps of matrix z, which is class z % CLASSES
/// of group z / CLASSES.
[[nodiscard]] std::string gather_constants(const Gathering& gathering);
[[nodiscard]] std::string gather_taps(const Gathering& gathering);
/// The place of the result (z, m) at (image, y, x) of the grid, and whether there is one.
[[nodiscard]] std::string gather_place(const char* image, const char* y, const char* x);
[[nodiscard]] std::string gather_is_real(const char* y, const char* x);
/// Which filter [KERNEL_Y, KERNEL_X] of the weights takes `channel` to the result (z, m).
[[nodiscard]] std::string gather_filter(const Gathering& gathering);
/// Sizes for the gradient of weights.
[[nodiscard]] std::string weight_constants(const loop::Convolution& convolution);

/// Kernels without tiles, for groups of few channels: a thread has a place of the image, or a block
/// the taps of a filter. The cycles that all of a GPU should need; infinite where there is none.
[[nodiscard]] double direct_cycles(const Gathering& gathering);
[[nodiscard]] double direct_cycles(const loop::Convolution& of_weight);
void plan_direct_gathering(PlanBuilder& builder, const Gathering& gathering, bool narrow);
void plan_direct_weights(PlanBuilder& builder, const loop::Convolution& convolution, bool narrow);

}  // namespace ricci::cuda
