// Rows times the matrix each of them picks. Rows are brought together by expert, every expert that
// has rows is one matrix product, and what comes out is put back in the order of the rows. Rows of
// an expert that follow each other already are read and written where they are.
#include <algorithm>
#include <array>
#include <cstring>

#include "backend/cpu/host/indices.h"
#include "backend/cpu/host/kernels.h"
#include "backend/cpu/structured/matmul_copy.h"
#include "backend/cpu/structured/matmul_group.h"

namespace ricci::cpu {
namespace {

// Which products are with which expert. Product r is one of row r / picks.
class Routing {
 public:
  Routing(const HostArguments& call, Scratch& scratch)
      : limit_(call.as<loop::GroupedProduct>().experts),
        same_(count_of(call.operands[1].dims) == 0),
        experts_(same_ ? std::min<std::int64_t>(limit_, 1) : limit_),
        products_(count_of(call.operands[2].dims)),
        picks_(call.as<loop::GroupedProduct>().picks),
        indices_(call, 2, scratch),
        first_(scratch.take<std::int64_t>(experts_ + 1)),
        order_(scratch.take<std::int64_t>(products_)) {}

  /// Sorts the products by expert, those of one in their order.
  void sort() const {
    indices_.read(limit_);
    std::fill_n(first_, experts_ + 1, 0);
    for (std::int64_t r = 0; r < products_; ++r) ++first_[expert_of(r)];
    std::int64_t end = 0;
    for (std::int64_t e = 0; e <= experts_; ++e) first_[e] = end += first_[e];
    for (std::int64_t r = products_; r-- > 0;) order_[--first_[expert_of(r)]] = r;
  }

  [[nodiscard]] std::int64_t experts() const { return experts_; }
  [[nodiscard]] std::int64_t products() const { return products_; }
  [[nodiscard]] std::int64_t picks() const { return picks_; }
  [[nodiscard]] std::int64_t first(std::int64_t expert) const { return first_[expert]; }
  [[nodiscard]] std::int64_t count(std::int64_t expert) const {
    return first_[expert + 1] - first_[expert];
  }
  /// The product at a place of the sorted order.
  [[nodiscard]] std::int64_t product(std::int64_t place) const { return order_[place]; }
  [[nodiscard]] std::int64_t expert(std::int64_t place) const { return expert_of(order_[place]); }
  /// Do the products of an expert follow each other?
  [[nodiscard]] bool adjoin(std::int64_t expert) const {
    const std::int64_t n = count(expert);
    return n > 0 && order_[first_[expert] + n - 1] - order_[first_[expert]] == n - 1;
  }

 private:
  [[nodiscard]] std::int64_t expert_of(std::int64_t product) const {
    return same_ ? 0 : indices_.data()[product];
  }

  std::int64_t limit_;  ///< of indices
  bool same_;           ///< empty matrices are all alike: one stands for all, however many
  std::int64_t experts_;
  std::int64_t products_;
  std::int64_t picks_;
  IndexOperand indices_;
  std::int64_t* first_;
  std::int64_t* order_;
};

// A matrix for a product: its first element and the elements from row to row; columns adjoin.
struct RowsAt {
  const std::byte* data;
  std::int64_t row;
};

// The rows of x, or those of dy, which has one for every product, as experts have them.
class SortedRows {
 public:
  /// `per_row`: products that share a row.
  SortedRows(const ArrayView& from, std::int64_t per_row, const Routing& routing, Scratch& scratch)
      : from_(from),
        routing_(routing),
        per_row_(per_row),
        columns_(from.dims.back()),
        size_(size_of(from.dtype)),
        copied_(!has_rows(from)),
        row_(copied_ ? columns_ : from.strides[from.dims.size() == 3 && from.dims[1] != 1 ? 1 : 0]),
        copy_(copied_ ? scratch.take<std::byte>(count_of(from.dims) * size_) : nullptr),
        sorted_(scratch.take<std::byte>(routing.products() * columns_ * size_)) {}

  /// Brings the rows together.
  void pack(ThreadPool& pool) const {
    if (copied_) copy_strided(OwnedView(copy_, from_.dtype, from_.dims).view(), from_, pool);
    const auto bytes = static_cast<std::size_t>(columns_ * size_);
    parallel_for(pool, columns_ == 0 ? 0 : routing_.products(), grain_for(columns_ * size_ / 16),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t s = begin; s < end; ++s) {
                     if (in_place(routing_.expert(s))) continue;
                     std::memcpy(sorted_ + s * columns_ * size_, source(s), bytes);
                   }
                 });
  }
  [[nodiscard]] RowsAt of(std::int64_t expert) const {
    const std::int64_t first = routing_.first(expert);
    if (in_place(expert)) return {source(first), row_};
    return {sorted_ + first * columns_ * size_, columns_};
  }
  /// Where rows may lie: from one to the next.
  [[nodiscard]] std::array<std::int64_t, 2> row_strides() const { return {columns_, row_}; }

 private:
  // One stride from each row to the next, and columns that adjoin.
  static bool has_rows(const ArrayView& v) {
    const bool columns = v.dims.back() <= 1 || v.strides.back() == 1;
    const bool nested = v.dims.size() == 3 && v.dims[0] > 1 && v.dims[1] > 1;
    return columns && (!nested || v.strides[0] == v.dims[1] * v.strides[1]);
  }
  [[nodiscard]] bool in_place(std::int64_t expert) const {
    const std::int64_t n = routing_.count(expert);
    return n == 1 || (per_row_ == 1 && routing_.adjoin(expert));
  }
  [[nodiscard]] const std::byte* source(std::int64_t place) const {
    const std::byte* first = copied_ ? copy_ : from_.data;
    return first + routing_.product(place) / per_row_ * row_ * size_;
  }

  const ArrayView& from_;
  const Routing& routing_;
  std::int64_t per_row_;
  std::int64_t columns_;
  std::int64_t size_;
  bool copied_;
  std::int64_t row_;
  std::byte* copy_;
  std::byte* sorted_;
};

// What products need whose number of rows is known when they run.
class Room {
 public:
  /// `shape_for(count)` is the product of an expert that has so many rows.
  template <class F>
  void provide_for(const Routing& routing, const F& shape_for) {
    const std::int64_t most = routing.products();
    if (most == 0) return;
    // Methods change up to a few rows, and where rows are no longer turned; from there on a product
    // takes the more the larger it is.
    constexpr std::int64_t LastChange = 33;
    include(shape_for(std::min(most, MatmulPlan::TurnedRows)));
    for (std::int64_t n = 1; n <= std::min(most, LastChange); ++n) include(shape_for(n));
    for (std::int64_t n = LastChange; n < most; n *= 2) include(shape_for(n));
    include(shape_for(most));
    const std::int64_t all = largest_ * std::min(most, routing.experts());
    bytes_ = std::max(largest_, std::min(all, Enough));
  }
  /// Enough for any of them, and for all at once unless that is much.
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }
  [[nodiscard]] std::int64_t thread_bytes() const { return thread_bytes_; }

 private:
  static constexpr std::int64_t Enough = 16 << 20;

  void include(MatmulShape shape) {
    const MatmulPlan plan(std::move(shape));
    largest_ = std::max(largest_, plan.scratch_bytes());
    thread_bytes_ = std::max(thread_bytes_, plan.thread_bytes());
  }
  std::int64_t largest_ = 0;
  std::int64_t bytes_ = 0;
  std::int64_t thread_bytes_ = 0;
};

// Sorted rows times the matrix of their expert, or its transpose, put back in the rows' order.
class RowProducts {
 public:
  /// `picks`: products that are added up to one row of the result.
  RowProducts(const SortedRows& rows, const ArrayView& w, bool transposed, const Routing& routing,
              std::int64_t picks, ThreadPool& pool, Scratch& scratch)
      : rows_(rows),
        w_(w),
        routing_(routing),
        pool_(pool),
        depth_(w.dims[transposed ? 2 : 1]),
        columns_(w.dims[transposed ? 1 : 2]),
        w_row_(w.strides[transposed ? 2 : 1]),
        w_column_(w.strides[transposed ? 1 : 2]),
        picks_(picks),
        sum_size_(is_complex(w.dtype) ? size_of(w.dtype) : size_of_arithmetic(w.dtype)),
        sums_(scratch.take<std::byte>(routing.products() * columns_ * sum_size_)),
        place_(picks == 1 ? nullptr : scratch.take<std::int64_t>(routing.products())) {}

  void provide(Room& room) const {
    for (const std::int64_t row : rows_.row_strides()) {
      for (const bool wide : {false, true}) {
        room.provide_for(routing_, [&](std::int64_t n) { return shape(n, row, wide); });
      }
    }
  }

  void run(const ArrayView& result, std::span<std::byte> room) const {
    std::byte* to = result.data;
    const std::int64_t size = size_of(w_.dtype);
    std::vector<GroupedProduct> products;
    products.reserve(static_cast<std::size_t>(std::min(routing_.experts(), routing_.products())));
    for (std::int64_t e = 0; e < routing_.experts(); ++e) {
      if (routing_.count(e) == 0) continue;
      const std::int64_t first = routing_.first(e);
      std::byte* c = in_place(e) ? to + routing_.product(first) * columns_ * size
                                 : sums_ + first * columns_ * sum_size_;
      const RowsAt a = rows_.of(e);
      products.push_back({MatmulPlan(shape(routing_.count(e), a.row, !in_place(e))), a.data,
                          w_.data + e * w_.strides[0] * size, c});
    }
    run_products(pool_, products, room);
    if (columns_ > 0) picks_ == 1 ? put_back(to) : add_up(to, result.dims[0]);
  }

 private:
  [[nodiscard]] MatmulShape shape(std::int64_t count, std::int64_t row, bool wide) const {
    return {.dtype = w_.dtype,
            .m = count,
            .n = columns_,
            .k = depth_,
            .a = {{}, row, 1},
            .b = {{}, w_row_, w_column_},
            .c = {{}, columns_, 1},
            .wide_c = wide};
  }
  [[nodiscard]] bool in_place(std::int64_t expert) const {
    return picks_ == 1 && routing_.adjoin(expert);
  }

  // Sums to elements, rounded once.
  void store(const std::byte* sums, std::byte* to) const {
    if (sum_size_ == size_of(w_.dtype)) {  // nothing to round
      std::memcpy(to, sums, static_cast<std::size_t>(columns_ * sum_size_));
      return;
    }
    with_arithmetic(w_.dtype, [&]<class R>() {
      scatter<R>(w_.dtype, reinterpret_cast<const R*>(sums), columns_, 0, to,
                 {1, columns_, columns_, 1}, false);
    });
  }

  void put_back(std::byte* to) const {
    parallel_for(pool_, routing_.products(), grain_for(columns_),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t s = begin; s < end; ++s) {
                     if (in_place(routing_.expert(s))) continue;
                     store(sums_ + s * columns_ * sum_size_,
                           to + routing_.product(s) * columns_ * size_of(w_.dtype));
                   }
                 });
  }

  // Every row's products are added to its first one, in their order; rows without any are 0.
  void add_up(std::byte* to, std::int64_t rows) const {
    for (std::int64_t s = 0; s < routing_.products(); ++s) place_[routing_.product(s)] = s;
    const std::int64_t row = columns_ * size_of(w_.dtype);
    if (picks_ == 0 && rows > 0) std::memset(to, 0, static_cast<std::size_t>(rows * row));
    parallel_for(pool_, picks_ == 0 ? 0 : rows, grain_for(columns_ * picks_),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t i = begin; i < end; ++i) {
                     std::byte* total = sums_of(i * picks_);
                     for (std::int64_t j = 1; j < picks_; ++j) {
                       add(total, sums_of(i * picks_ + j));
                     }
                     store(total, to + i * row);
                   }
                 });
  }
  [[nodiscard]] std::byte* sums_of(std::int64_t product) const {
    return sums_ + place_[product] * columns_ * sum_size_;
  }
  void add(std::byte* to, const std::byte* from) const {
    with_arithmetic(w_.dtype, [&]<class R>() {
      auto* total = reinterpret_cast<R*>(to);
      const auto* x = reinterpret_cast<const R*>(from);
      const std::int64_t numbers = columns_ * (is_complex(w_.dtype) ? 2 : 1);
      for (std::int64_t n = 0; n < numbers; ++n) total[n] += x[n];
    });
  }

  const SortedRows& rows_;
  const ArrayView& w_;
  const Routing& routing_;
  ThreadPool& pool_;
  std::int64_t depth_;
  std::int64_t columns_;
  std::int64_t w_row_;
  std::int64_t w_column_;
  std::int64_t picks_;
  std::int64_t sum_size_;
  std::byte* sums_;      ///< of the products in sorted order, not rounded yet
  std::int64_t* place_;  ///< of each product in that order
};

// Every expert's rows of x, transposed, times its rows of dy.
class ExpertProducts {
 public:
  ExpertProducts(const SortedRows& x, const SortedRows& dy, const ArrayView& dw,
                 const Routing& routing, ThreadPool& pool)
      : x_(x), dy_(dy), dw_(dw), routing_(routing), pool_(pool) {}

  void provide(Room& room) const {
    for (const std::int64_t x_row : x_.row_strides()) {
      for (const std::int64_t dy_row : dy_.row_strides()) {
        room.provide_for(routing_, [&](std::int64_t n) { return shape(n, x_row, dy_row); });
      }
    }
  }

  void run(std::span<std::byte> room) const {
    const std::int64_t bytes = dw_.dims[1] * dw_.dims[2] * size_of(dw_.dtype);
    std::vector<GroupedProduct> products;
    products.reserve(static_cast<std::size_t>(std::min(routing_.experts(), routing_.products())));
    for (std::int64_t e = 0; e < routing_.experts(); ++e) {
      if (routing_.count(e) == 0) continue;
      const RowsAt a = x_.of(e);
      const RowsAt b = dy_.of(e);
      products.push_back({MatmulPlan(shape(routing_.count(e), a.row, b.row)), a.data, b.data,
                          dw_.data + e * bytes});
    }
    parallel_for(pool_, bytes == 0 ? 0 : routing_.experts(), grain_for(bytes / 32),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t e = begin; e < end; ++e) {
                     if (routing_.count(e) > 0) continue;
                     std::memset(dw_.data + e * bytes, 0, static_cast<std::size_t>(bytes));
                   }
                 });
    run_products(pool_, products, room);
  }

 private:
  [[nodiscard]] MatmulShape shape(std::int64_t count, std::int64_t x_row,
                                  std::int64_t dy_row) const {
    return {.dtype = dw_.dtype,
            .m = dw_.dims[1],
            .n = dw_.dims[2],
            .k = count,
            .a = {{}, 1, x_row},
            .b = {{}, dy_row, 1},
            .c = {{}, dw_.dims[2], 1}};
  }

  const SortedRows& x_;
  const SortedRows& dy_;
  const ArrayView& dw_;
  const Routing& routing_;
  ThreadPool& pool_;
};

class GroupedMatmul {
 public:
  GroupedMatmul(const HostArguments& call, Scratch& scratch)
      : call_(call),
        routing_(call, scratch),
        x_(call.operands[0], routing_.picks(), routing_, scratch),
        out_(x_, call.operands[1], false, routing_, 1, call.pool, scratch) {}

  [[nodiscard]] Room room() const {
    Room room;
    out_.provide(room);
    return room;
  }
  void run(std::span<std::byte> room) const {
    routing_.sort();
    x_.pack(call_.pool);
    out_.run(call_.results[0], room);
  }

 private:
  const HostArguments& call_;
  Routing routing_;
  SortedRows x_;
  RowProducts out_;
};

class GroupedMatmulBackward {
 public:
  GroupedMatmulBackward(const HostArguments& call, Scratch& scratch)
      : call_(call),
        routing_(call, scratch),
        x_(call.operands[0], routing_.picks(), routing_, scratch),
        dy_(call.operands[3], 1, routing_, scratch),
        dx_(dy_, call.operands[1], true, routing_, routing_.picks(), call.pool, scratch),
        dw_(x_, dy_, call.results[1], routing_, call.pool) {}

  [[nodiscard]] Room room() const {
    Room room;
    dx_.provide(room);
    dw_.provide(room);
    return room;
  }
  void run(std::span<std::byte> room) const {
    routing_.sort();
    dy_.pack(call_.pool);
    if (call_.results[0].data != nullptr) dx_.run(call_.results[0], room);
    if (call_.results[1].data == nullptr) return;
    x_.pack(call_.pool);
    dw_.run(room);
  }

 private:
  const HostArguments& call_;
  Routing routing_;
  SortedRows x_;
  SortedRows dy_;
  RowProducts dx_;
  ExpertProducts dw_;
};

// The room for products is what is left of the scratch.
template <class K>
HostKernel grouped_kernel() noexcept {
  return {.run =
              [](const HostArguments& call) {
                Scratch scratch(call.scratch);
                const K kernel(call, scratch);
                kernel.run(call.scratch.subspan(static_cast<std::size_t>(scratch.used())));
              },
          .scratch =
              [](const HostArguments& call) {
                Scratch scratch;
                const K kernel(call, scratch);
                return scratch.used() + kernel.room().bytes();
              },
          .thread_bytes =
              [](const HostArguments& call) {
                Scratch scratch;
                return K(call, scratch).room().thread_bytes();
              }};
}

}  // namespace

HostKernel grouped_product_kernel() noexcept { return grouped_kernel<GroupedMatmul>(); }
HostKernel grouped_product_backward_kernel() noexcept {
  return grouped_kernel<GroupedMatmulBackward>();
}

}  // namespace ricci::cpu
