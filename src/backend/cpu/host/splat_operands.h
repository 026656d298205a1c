// Operands of the calls about Gaussian splats: scenes, and what was prepared of them. Of an operand
// of rank 2 every image has a row; others are shared by all.
#pragma once

#include <optional>

#include <fmt/format.h>

#include "backend/cpu/host/scratch.h"
#include "loop/splat_math.h"

namespace ricci::cpu {

using SplatIds = std::span<const std::int32_t>;

/// Where the row of an image begins.
[[nodiscard]] inline std::int64_t row_of(const ArrayView& operand, std::int64_t image) {
  return operand.dims.size() == 2 ? image * operand.dims[1] : 0;
}

/// The numbers of one splat in f64, as a scene of its own; also its gradient.
struct OneSplat {
  std::array<double, 3> position{};
  std::array<double, 3> scale{};
  std::array<double, 4> rotation{};
  std::array<double, 1> opacity{};
  std::array<double, 3> color{};
  std::array<double, 3 * loop::splats::MostHarmonics> sh{};

  [[nodiscard]] loop::splats::Scene<double> scene() const {
    return {position.data(), scale.data(), rotation.data(),
            opacity.data(),  color.data(), sh.data()};
  }
  [[nodiscard]] loop::splats::SplatGradient<double> gradient() {
    return {position.data(), scale.data(), rotation.data(),
            opacity.data(),  color.data(), sh.data()};
  }
};

/// Positions, …, sh_coeffs and meta: operands 0 to 6.
template <class N>
class SceneOperands {
 public:
  SceneOperands(const HostArguments& call, Scratch& scratch) : call_(call) {
    for (std::size_t k = 0; k < operands_.size(); ++k) operands_[k].emplace(call, k, scratch);
  }
  void pack() const {
    for (const auto& operand : operands_) operand->pack(call_.pool);
  }

  [[nodiscard]] OneSplat splat(std::int64_t image, std::int64_t i,
                               std::int64_t coefficients) const {
    OneSplat one;
    const auto copy = [&](std::size_t k, double* to, std::int64_t each) {
      std::copy_n(operand(k, image) + i * each, each, to);
    };
    copy(0, one.position.data(), 3);
    copy(1, one.scale.data(), 3);
    copy(2, one.rotation.data(), 4);
    copy(3, one.opacity.data(), 1);
    copy(4, one.color.data(), 3);
    copy(5, one.sh.data(), 3 * coefficients);
    return one;
  }
  [[nodiscard]] loop::splats::Camera<double> camera(std::int64_t image,
                                                    const loop::Splats& s) const {
    std::array<double, SplatLensMetaLength> meta{};
    std::copy_n(operand(6, image), call_.operands[6].dims.back(), meta.begin());
    return {meta.data(), s};
  }

 private:
  [[nodiscard]] const N* operand(std::size_t k, std::int64_t image) const {
    return operands_[k]->data() + row_of(call_.operands[k], image);
  }

  const HostArguments& call_;
  std::array<std::optional<NumberOperand<N>>, 7> operands_;
};

/// What gaussian_splat_prepare gives: seven operands from `first` on.
class PreparedOperands {
 public:
  PreparedOperands(const HostArguments& call, std::size_t first, Scratch& scratch)
      : call_(call), first_(first) {
    for (std::size_t k = 0; k < operands_.size(); ++k) {
      operands_[k].emplace(call, first + k, scratch);
    }
  }
  /// Reads them; the call fails when a list is none.
  void pack(const loop::Splats& s) const {
    for (const auto& operand : operands_) operand->pack(call_.pool);
    for (std::int64_t image = 0; image < s.batch; ++image) {
      parallel_for(call_.pool, s.tiles(), grain_for(100),
                   [&](std::int64_t begin, std::int64_t end) {
                     for (std::int64_t t = begin; t < end; ++t) check_list(image, t, s);
                   });
    }
  }

  [[nodiscard]] loop::splats::Shape<double> shape(std::int64_t image, std::int64_t i,
                                                  double cutoff) const {
    return {numbers<double>(0, image) + 4 * i, numbers<double>(1, image) + 3 * i,
            numbers<double>(2, image) + 3 * i, numbers<double>(3, image) + 4 * i, cutoff};
  }
  [[nodiscard]] SplatIds list(std::int64_t image, std::int64_t tile) const {
    const std::int32_t* range = numbers<std::int32_t>(5, image) + 2 * tile;
    if (range[0] < 0) return {};
    return {numbers<std::int32_t>(4, image) + range[0], numbers<std::int32_t>(4, image) + range[1]};
  }
  [[nodiscard]] const double* rays(std::int64_t image) const { return numbers<double>(6, image); }

 private:
  template <class T>
  [[nodiscard]] const T* numbers(std::size_t k, std::int64_t image) const {
    return operands_[k]->as<T>() + row_of(call_.operands[first_ + k], image);
  }

  void check_list(std::int64_t image, std::int64_t tile, const loop::Splats& s) const {
    const std::int32_t* range = numbers<std::int32_t>(5, image) + 2 * tile;
    const auto [first, last] = std::array{range[0], range[1]};
    if (first < 0 && last == 0) return;
    if (first < 0 || last < first || last > s.entries) {
      call_.fail(
          ErrorCode::IndexOutOfRange,
          fmt::format("the list of a tile is [{}, {}) of {} entries", first, last, s.entries));
    }
    if (last - first > s.count) {
      call_.fail(ErrorCode::IndexOutOfRange,
                 fmt::format("a tile lists {} splats of {}", last - first, s.count));
    }
    for (const std::int32_t i : list(image, tile)) {
      if (i >= 0 && i < s.count) continue;
      call_.fail(ErrorCode::IndexOutOfRange,
                 fmt::format("a tile lists splat {} of {}", i, s.count));
    }
  }

  const HostArguments& call_;
  std::size_t first_;
  std::array<std::optional<DenseOperand>, 7> operands_;
};

}  // namespace ricci::cpu
