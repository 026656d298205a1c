#include "backend/cpu/structured/int8_product.h"

#include <algorithm>
#include <cmath>

#include "support/align.h"

namespace ricci::cpu {
namespace {

constexpr std::int64_t ActivationsInBlock = 32;
// More rows are better off with a weight that is decoded once for all of them.
constexpr std::int64_t MostInt8Rows = 8;
constexpr std::int64_t ColumnsAtOnce = 32;

}  // namespace

bool Int8ProductPlan::serves(const PackedShape& shape) {
  return !shape.transposed && shape.rows > 0 && shape.rows <= MostInt8Rows && shape.k > 0 &&
         StoredWeight::has_int8_dots(shape.scheme);
}

Int8ProductPlan::Int8ProductPlan(const PackedShape& shape) : shape_(shape) {}

// A row: codes, then scales, then sums of 32 and of 16. Blocks divide k.
std::int64_t Int8ProductPlan::scratch_bytes() const noexcept {
  const std::int64_t blocks = shape_.k / ActivationsInBlock;
  return shape_.rows * aligned(shape_.k + blocks * 4 * static_cast<std::int64_t>(sizeof(float)));
}

Int8Row Int8ProductPlan::row(std::int64_t m, std::byte* scratch) const {
  const std::int64_t blocks = shape_.k / ActivationsInBlock;
  std::byte* first = scratch + m * (scratch_bytes() / shape_.rows);
  const auto* floats = reinterpret_cast<const float*>(first + shape_.k);
  return {reinterpret_cast<const std::int8_t*>(first), floats, floats + blocks,
          floats + 2 * blocks};
}

bool Int8ProductPlan::round_row(const float* x, const Int8Row& to) const {
  auto* codes = const_cast<std::int8_t*>(to.codes);
  auto* scales = const_cast<float*>(to.scales);
  auto* sums_of_32 = const_cast<float*>(to.sums_of_32);
  auto* sums_of_16 = const_cast<float*>(to.sums_of_16);
  // Adding and taking away 1.5·2^23 leaves the nearest whole number, ties to even.
  constexpr float Round = 12582912.0F;
  for (std::int64_t b = 0; b < shape_.k / ActivationsInBlock;
       ++b, x += ActivationsInBlock, codes += ActivationsInBlock) {
    float largest = 0;
    bool finite = true;
    for (std::int64_t i = 0; i < ActivationsInBlock; ++i) {
      finite = finite && std::isfinite(x[i]);
      largest = std::max(largest, std::fabs(x[i]));
    }
    if (!finite) return false;
    const float scale = largest / 127;
    scales[b] = scale;
    int half[2] = {0, 0};
    for (std::int64_t i = 0; i < ActivationsInBlock; ++i) {
      const float code = scale == 0 ? 0 : (x[i] / scale + Round) - Round;
      codes[i] = static_cast<std::int8_t>(code);
      half[i / 16] += codes[i];
    }
    sums_of_16[2 * b] = scale * static_cast<float>(half[0]);
    sums_of_16[2 * b + 1] = scale * static_cast<float>(half[1]);
    sums_of_32[b] = scale * static_cast<float>(half[0] + half[1]);
  }
  return true;
}

bool Int8ProductPlan::run(ThreadPool& pool, const float* x, const StoredWeight& weight, float* y,
                          std::byte* scratch) const {
  for (std::int64_t m = 0; m < shape_.rows; ++m) {
    if (!round_row(x + m * shape_.k, row(m, scratch))) return false;
  }
  const std::int64_t tiles = (shape_.n + ColumnsAtOnce - 1) / ColumnsAtOnce;
  pool.run(tiles, [&](std::int64_t tile) {
    const std::int64_t last = std::min(shape_.n, (tile + 1) * ColumnsAtOnce);
    for (std::int64_t j = tile * ColumnsAtOnce; j < last; ++j) {
      for (std::int64_t m = 0; m < shape_.rows; ++m) {
        y[m * shape_.n + j] = weight.dot(j, row(m, scratch));
      }
    }
  });
  return true;
}

}  // namespace ricci::cpu
