// Products with weights in few bits, of one matrix or of the experts that rows pick.
#include "backend/cpu/structured/packed_product.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <type_traits>
#include <vector>

#include "backend/cpu/host/indices.h"
#include "backend/cpu/host/kernels.h"
#include "backend/cpu/structured/int8_product.h"
#include "backend/cpu/structured/thread_scratch.h"
#include "support/align.h"

namespace ricci::cpu {
namespace {

constexpr std::int64_t ActivationBlock = 32;

// x rounded to 8 bits, block by block.
template <class N>
void round_activations(ThreadPool& pool, N* x, std::int64_t rows, std::int64_t columns) {
  parallel_for(pool, rows, grain_for(columns), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      for (std::int64_t first = 0; first < columns; first += ActivationBlock) {
        N* block = x + r * columns + first;
        const std::int64_t count = std::min(ActivationBlock, columns - first);
        N largest = 0;
        for (std::int64_t i = 0; i < count; ++i) {
          const N size = std::fabs(block[i]);
          largest = size > largest || std::isnan(size) ? size : largest;
        }
        const N scale = largest / 127;
        for (std::int64_t i = 0; i < count; ++i) {
          block[i] = scale == 0 ? 0 : std::nearbyint(block[i] / scale) * scale;
        }
      }
    }
  });
}

PackedShape shape_of(const loop::PackedProduct& p, std::int64_t rows) {
  return {
      .scheme = p.scheme, .rows = rows, .k = p.depth, .n = p.columns, .transposed = p.transposed};
}

// The operands in rows of numbers, and a place for the result.
template <class N>
class Rows {
 public:
  Rows(const HostArguments& call, Scratch& scratch)
      : role_(call.as<loop::PackedProduct>()),
        call_(call),
        in_(shape_of(role_, role_.rows).depth()),
        out_(shape_of(role_, role_.rows).columns()),
        products_(role_.rows * role_.picks),
        x_(call, 0, scratch),
        own_x_(role_.int8_activations ? scratch.take<N>(role_.rows * in_) : nullptr),
        own_y_(call.results[0].dtype == dtype_of<N> ? nullptr : scratch.take<N>(products_ * out_)) {
  }

  /// As it was given.
  [[nodiscard]] const N* given_x() const {
    x_.pack(call_.pool);
    return x_.data();
  }
  [[nodiscard]] const N* x() const {
    x_.pack(call_.pool);
    if (own_x_ == nullptr) return x_.data();
    std::memcpy(own_x_, x_.data(), static_cast<std::size_t>(role_.rows * in_) * sizeof(N));
    round_activations(call_.pool, own_x_, role_.rows, in_);
    return own_x_;
  }
  [[nodiscard]] N* y() const { return own_y_ != nullptr ? own_y_ : call_.results[0].as<N>(); }
  void store() const {
    if (own_y_ == nullptr) return;
    parallel_for(call_.pool, products_ * out_, grain_for(1),
                 [&](std::int64_t begin, std::int64_t end) {
                   write_numbers(call_.results[0], begin, end - begin, own_y_ + begin);
                 });
  }
  [[nodiscard]] std::int64_t in() const { return in_; }
  [[nodiscard]] std::int64_t out() const { return out_; }
  [[nodiscard]] std::int64_t products() const { return products_; }

 private:
  const loop::PackedProduct& role_;
  const HostArguments& call_;
  std::int64_t in_;
  std::int64_t out_;
  std::int64_t products_;
  NumberOperand<N> x_;
  N* own_x_;
  N* own_y_;
};

template <class N>
class OneWeight {
 public:
  OneWeight(const HostArguments& call, Scratch& scratch)
      : role_(call.as<loop::PackedProduct>()),
        call_(call),
        rows_(call, scratch),
        codes_(call, 1, scratch),
        plan_(shape_of(role_, role_.rows)),
        room_(scratch.take<std::byte>(plan_.scratch_bytes())) {
    if (call.operands.size() > 2) scales_.emplace(call, 2, scratch);
    if (call.operands.size() > 3) offsets_.emplace(call, 3, scratch);
    const PackedShape shape = shape_of(role_, role_.rows);
    if (std::is_same_v<N, float> && role_.int8_activations && Int8ProductPlan::serves(shape)) {
      integers_.emplace(shape);
      codes_of_x_ = scratch.take<std::byte>(integers_->scratch_bytes());
    }
  }

  [[nodiscard]] std::int64_t thread_bytes() const { return plan_.thread_bytes(); }
  void run() const {
    codes_.pack(call_.pool);
    if (scales_) scales_->pack(call_.pool);
    if (offsets_) offsets_->pack(call_.pool);
    StoredWeight::Parts parts{.codes = codes_.as<std::uint8_t>()};
    const bool fp8 = role_.scheme.scale_is_fp8();
    if (scales_ && fp8) parts.fp8_scales = scales_->as<std::uint8_t>();
    if (scales_ && !fp8) parts.scales = scales_->as<float>();
    if (offsets_ && fp8) parts.global = *offsets_->as<float>();
    if (offsets_ && !fp8) parts.zeros = offsets_->as<float>();
    const StoredWeight weight(role_.scheme, role_.depth, role_.columns, parts);
    if (!run_integers(weight)) plan_.run(call_.pool, rows_.x(), weight, rows_.y(), room_);
    rows_.store();
  }

 private:
  bool run_integers(const StoredWeight& weight) const {
    if constexpr (std::is_same_v<N, float>) {
      return integers_ &&
             integers_->run(call_.pool, rows_.given_x(), weight, rows_.y(), codes_of_x_);
    }
    return false;
  }

  const loop::PackedProduct& role_;
  const HostArguments& call_;
  Rows<N> rows_;
  DenseOperand codes_;
  std::optional<Int8ProductPlan> integers_;
  std::byte* codes_of_x_ = nullptr;
  std::optional<DenseOperand> scales_;
  std::optional<DenseOperand> offsets_;
  PackedProductPlan<N> plan_;
  std::byte* room_;
};

// Rows are brought together by expert; each expert that has some is one product.
template <class N>
class Experts {
 public:
  Experts(const HostArguments& call, Scratch& scratch)
      : role_(call.as<loop::PackedProduct>()),
        call_(call),
        rows_(call, scratch),
        codes_(call, 1, scratch),
        indices_(call, 2, scratch),
        order_(scratch.take<std::int64_t>(rows_.products())),
        sorted_(scratch.take<N>(rows_.products() * rows_.in())),
        sums_(scratch.take<N>(rows_.products() * rows_.out())),
        room_bytes_(room_for_all()),
        room_(scratch.take<std::byte>(room_bytes_)) {}

  [[nodiscard]] std::int64_t thread_bytes() const {
    return most([](const Plan& p) { return p.thread_bytes(); });
  }
  void run() const {
    codes_.pack(call_.pool);
    indices_.read(role_.experts);
    const std::int64_t count = rows_.products();
    for (std::int64_t r = 0; r < count; ++r) order_[r] = r;
    const std::int64_t* expert = indices_.data();
    // In place, which a stable sort is not: rows of one expert stay in order by their numbers.
    std::sort(order_, order_ + count, [&](std::int64_t a, std::int64_t b) {
      return expert[a] != expert[b] ? expert[a] < expert[b] : a < b;
    });
    const N* x = rows_.x();
    copy_rows(rows_.in(), [&](std::int64_t place) {
      return std::pair(sorted_ + place * rows_.in(), x + order_[place] / role_.picks * rows_.in());
    });
    multiply_all();
    N* y = rows_.y();
    copy_rows(rows_.out(), [&](std::int64_t place) {
      return std::pair(y + order_[place] * rows_.out(), sums_ + place * rows_.out());
    });
    rows_.store();
  }

 private:
  using Plan = PackedProductPlan<N>;
  // The most that an expert may need: methods change with the number of its rows.
  template <class F>
  [[nodiscard]] std::int64_t most(const F& bytes) const {
    constexpr std::int64_t LastChange = 9;
    std::int64_t out = bytes(Plan(shape_of(role_, rows_.products())));
    for (std::int64_t n = 1; n <= std::min(LastChange, rows_.products()); ++n) {
      out = std::max(out, bytes(Plan(shape_of(role_, n))));
    }
    return out;
  }

  template <class F>
  void copy_rows(std::int64_t columns, const F& places) const {
    const auto bytes = static_cast<std::size_t>(columns) * sizeof(N);
    parallel_for(call_.pool, columns == 0 ? 0 : rows_.products(), grain_for(columns),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t p = begin; p < end; ++p) {
                     const auto [to, from] = places(p);
                     std::memcpy(to, from, bytes);
                   }
                 });
  }
  // Enough for the largest product, and for all of them at once unless that is much.
  [[nodiscard]] std::int64_t room_for_all() const {
    constexpr std::int64_t Enough = 16 << 20;
    constexpr std::int64_t Few = 9;  // an expert's rows, rounded up to what is packed together
    const std::int64_t largest = most([](const Plan& p) { return p.scratch_bytes(); });
    const std::int64_t parts = std::min(role_.experts, rows_.products());
    const std::int64_t each = aligned(Plan(shape_of(role_, Few)).scratch_bytes());
    if (each > 0 && parts > Enough / each) return std::max(largest, Enough);
    return std::max(largest, std::min(aligned(largest) + parts * each, Enough));
  }

  // Products run together, as many at a time as there is room for.
  void multiply_all() const {
    std::vector<typename Plan::Call> calls;
    std::int64_t used = 0;
    const std::int64_t count = rows_.products();
    const std::int64_t* expert = indices_.data();
    for (std::int64_t first = 0, last = 0; first < count; first = last) {
      while (last < count && expert[order_[last]] == expert[order_[first]]) ++last;
      const Plan plan(shape_of(role_, last - first));
      const std::int64_t bytes = aligned(plan.scratch_bytes());
      if (used + plan.scratch_bytes() > room_bytes_) {
        Plan::run_all(call_.pool, calls);
        calls.clear();
        used = 0;
      }
      calls.push_back({plan, sorted_ + first * rows_.in(), weight_of(expert[order_[first]]),
                       sums_ + first * rows_.out(), room_ + used});
      used += bytes;
    }
    Plan::run_all(call_.pool, calls);
  }
  [[nodiscard]] StoredWeight weight_of(std::int64_t expert) const {
    const quant::FormatInfo& format = quant::info(role_.scheme.format);
    const std::int64_t bytes =
        role_.depth / format.block_length * format.block_bytes * role_.columns;
    return {role_.scheme,
            role_.depth,
            role_.columns,
            {.codes = codes_.as<std::uint8_t>() + expert * bytes}};
  }

  const loop::PackedProduct& role_;
  const HostArguments& call_;
  Rows<N> rows_;
  DenseOperand codes_;
  IndexOperand indices_;
  std::int64_t* order_;
  N* sorted_;
  N* sums_;
  std::int64_t room_bytes_;
  std::byte* room_;
};

// Matrices written out: blocks are along their columns, so that a tile of rows is decoded and
// turned.
class Decoding {
 public:
  Decoding(const HostArguments& call, Scratch& scratch)
      : role_(call.as<loop::PackedDecoding>()), call_(call), codes_(call, 0, scratch) {}

  [[nodiscard]] std::int64_t thread_bytes() const {
    return RowsAtOnce * role_.depth * static_cast<std::int64_t>(sizeof(float));
  }
  void run() const {
    codes_.pack(call_.pool);
    const quant::FormatInfo& format = quant::info(role_.scheme.format);
    const std::int64_t bytes =
        role_.depth / format.block_length * format.block_bytes * role_.columns;
    const std::int64_t tiles = (role_.columns + RowsAtOnce - 1) / RowsAtOnce;
    call_.pool.run(role_.matrices * tiles, [&](std::int64_t i) {
      const std::int64_t e = i / tiles;
      const StoredWeight weight(role_.scheme, role_.depth, role_.columns,
                                {.codes = codes_.as<std::uint8_t>() + e * bytes});
      const std::int64_t first = i % tiles * RowsAtOnce;
      const std::int64_t rows = std::min(RowsAtOnce, role_.columns - first);
      auto* piece = reinterpret_cast<float*>(thread_scratch(thread_bytes()));
      weight.decode(first, first + rows, 0, role_.depth, piece, role_.depth);
      float* out = call_.results[0].as<float>() + e * role_.depth * role_.columns + first;
      for (std::int64_t p = 0; p < role_.depth; ++p, out += role_.columns) {
        for (std::int64_t j = 0; j < rows; ++j) out[j] = piece[j * role_.depth + p];
      }
    });
  }

 private:
  static constexpr std::int64_t RowsAtOnce = 16;  // a line of the cache in the result
  const loop::PackedDecoding& role_;
  const HostArguments& call_;
  DenseOperand codes_;
};

}  // namespace

HostKernel packed_decoding_kernel() noexcept { return kernel_of<Decoding>(); }
HostKernel packed_product_kernel() noexcept { return kernel_of_float<OneWeight>(); }
HostKernel packed_experts_kernel() noexcept { return kernel_of_float<Experts>(); }

}  // namespace ricci::cpu
