// Rows times a weight in few bits, or times its transpose. A piece of the weight is decoded into a
// thread's own room, multiplied with all rows, and forgotten: the decoded matrix is nowhere.
#pragma once

#include <cstdint>
#include <span>

#include "ricci/compiler/device/thread_pool.h"

#include "backend/cpu/structured/packed_weight.h"

namespace ricci::cpu {

struct PackedShape {
  quant::Scheme scheme;
  std::int64_t rows = 0;  ///< of x and y
  std::int64_t k = 0;
  std::int64_t n = 0;
  bool transposed = false;

  /// Columns of x, and of y.
  [[nodiscard]] std::int64_t depth() const { return transposed ? n : k; }
  [[nodiscard]] std::int64_t columns() const { return transposed ? k : n; }
};

/// T, float or double, is what is multiplied and summed.
template <class T>
class PackedProductPlan {
 public:
  explicit PackedProductPlan(const PackedShape& shape);
  [[nodiscard]] std::int64_t scratch_bytes() const noexcept { return scratch_bytes_; }
  [[nodiscard]] std::int64_t thread_bytes() const noexcept { return thread_bytes_; }
  /// y [rows, columns] = x [rows, depth] · Ŵ, both row-major. `scratch` is 64-aligned.
  void run(ThreadPool& pool, const T* x, const StoredWeight& weight, T* y,
           std::byte* scratch) const;

  /// One of several products, in rooms of their own.
  struct Call {
    PackedProductPlan plan;
    const T* x;
    StoredWeight weight;
    T* y;
    std::byte* scratch;
  };
  /// All of them, with all of their parts side by side.
  static void run_all(ThreadPool& pool, std::span<const Call> calls);

 private:
  struct Tile;
  // Parts of x that are brought into order, and of the product.
  [[nodiscard]] std::int64_t orders() const;
  [[nodiscard]] std::int64_t tiles() const;
  void order(std::int64_t part, const T* x, T* to) const;
  void run_part(std::int64_t tile, const T* x, const StoredWeight& weight, T* y,
                const T* ordered) const;
  [[nodiscard]] bool has_strips(const Tile& t) const;
  void decode_strips(const Tile& t, const StoredWeight& weight, float* piece) const;
  void decode(const Tile& t, const StoredWeight& weight, T* piece) const;
  void run_tile(std::int64_t tile, const T* x, const StoredWeight& weight, T* y,
                const T* packed_x) const;
  void run_direct(std::int64_t tile, const float* x, const StoredWeight& weight, float* y,
                  const float* sums) const;
  void multiply_few(const Tile& t, const T* x, T* y) const;
  void multiply_panels(const Tile& t, const T* packed_x, T* y) const;

  PackedShape shape_;
  bool along_rows_;          ///< sums run along the rows of the stored matrix
  bool panels_;              ///< enough rows for packed products
  bool direct_ = false;      ///< few rows that need no piece of the weight in memory
  std::int64_t width_;       ///< columns of y in a tile
  std::int64_t chunk_;       ///< depth that is decoded at once
  std::int64_t stride_;      ///< from row to row of the piece that is decoded
  std::int64_t piece_;       ///< its elements
  std::int64_t strip_room_;  ///< elements of x, packed, for one block of the depth
  std::int64_t scratch_bytes_ = 0;
  std::int64_t thread_bytes_ = 0;
};

extern template class PackedProductPlan<float>;
extern template class PackedProductPlan<double>;

}  // namespace ricci::cpu
