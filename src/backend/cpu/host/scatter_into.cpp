// Slices combined with the rows indices name. Every row of the result belongs to one tile, which
// takes its updates in the order of the operand: the same bits on any number of threads.
#include <cmath>
#include <cstring>

#include "backend/cpu/host/element.h"
#include "backend/cpu/host/indices.h"
#include "backend/cpu/host/kernels.h"
#include "backend/cpu/host/simd.h"

namespace ricci::cpu {
namespace {

template <class N>
bool is_not_a_number(N v) {
  if constexpr (std::is_floating_point_v<N>) {
    return std::isnan(v);
  } else {
    return false;
  }
}

// As the element-wise function of the same name: a NaN stays.
template <ScatterKind Kind, class N>
N combined(N there, N update) {
  if constexpr (Kind == ScatterKind::Add) {
    return add_wrapping(there, update);
  } else if constexpr (Kind == ScatterKind::Mul) {
    return mul_wrapping(there, update);
  } else if constexpr (Kind == ScatterKind::Max || Kind == ScatterKind::Min) {
    if constexpr (ricci::detail::is_complex_type<N>) {
      return there;  // complex numbers have no order: the op refuses them
    } else {
      const bool beats = Kind == ScatterKind::Max ? there > update : there < update;
      return beats || is_not_a_number(there) ? there : update;
    }
  } else {
    return update;
  }
}

class ScatterInto {
 public:
  ScatterInto(const HostArguments& call, Scratch& scratch)
      : call_(call),
        role_(call.as<loop::ScatterInto>()),
        empty_(count_of(call.results[0].dims) == 0),
        x_(call, 0, scratch),
        updates_(call, 1, scratch),
        indices_(call, 2, scratch),
        narrow_(!empty_ && role_.out.inner <= Few),
        starts_(scratch.take<std::int64_t>(empty_ || narrow_ ? 0 : role_.out.size + 1)),
        order_(scratch.take<std::int64_t>(narrow_ ? 0 : role_.updates)),
        numbers_(scratch.take<std::byte>(narrow_ ? wide_bytes() : 0)) {}

  void run() const {
    indices_.read(role_.out.size);
    if (empty_) return;
    x_.pack(call_.pool);
    updates_.pack(call_.pool);
    if (!narrow_) sort_by_row();
    with_element_type(call_.results[0].dtype, [&]<class T>() {
      switch (role_.kind) {
        case ScatterKind::Add: return write<ScatterKind::Add, T>();
        case ScatterKind::Mul: return write<ScatterKind::Mul, T>();
        case ScatterKind::Max: return write<ScatterKind::Max, T>();
        case ScatterKind::Min: return write<ScatterKind::Min, T>();
        case ScatterKind::Set: return write<ScatterKind::Set, T>();
      }
    });
  }

 private:
  // Rows of a few elements: to find what each of them takes costs more than to give it to them, one
  // after the other.
  static constexpr std::int64_t Few = 8;

  // What numbers of a kind are combined in: sums and products in those that are wide enough for any
  // number of updates.
  template <ScatterKind Kind, class T>
  using Combined =
      std::conditional_t<Kind == ScatterKind::Add || Kind == ScatterKind::Mul, Wide<T>, Number<T>>;

  [[nodiscard]] std::int64_t wide_bytes() const {
    return with_element_type(call_.results[0].dtype, [&]<class T>() -> std::int64_t {
      return count_of(call_.results[0].dims) * static_cast<std::int64_t>(sizeof(Wide<T>));
    });
  }

  // order_[starts_[r] … starts_[r + 1]) are the k with indices[k] = r, ascending.
  void sort_by_row() const {
    const std::int64_t* indices = indices_.data();
    const std::int64_t rows = role_.out.size;
    std::fill_n(starts_, rows + 1, 0);
    for (std::int64_t k = 0; k < role_.updates; ++k) ++starts_[indices[k] + 1];
    for (std::int64_t r = 0; r < rows; ++r) starts_[r + 1] += starts_[r];
    for (std::int64_t k = 0; k < role_.updates; ++k) order_[starts_[indices[k]]++] = k;
    for (std::int64_t r = rows; r > 0; --r) starts_[r] = starts_[r - 1];
    starts_[0] = 0;
  }

  // A tile is copied in one go; then its rows take their updates while they are in the cache.
  template <ScatterKind Kind, class T>
  void write() const {
    if (narrow_) return write_in_order<Kind, T>();
    const std::int64_t width = role_.out.inner;
    T* const out = call_.results[0].as<T>();
    parallel_for(call_.pool, role_.out.size, grain_for(width),
                 [&](std::int64_t begin, std::int64_t end) {
                   copy(out + begin * width, x_.as<T>() + begin * width, (end - begin) * width);
                   for (std::int64_t r = begin; r < end; ++r) {
                     if (starts_[r] < starts_[r + 1]) update_row<Kind, T>(r, out + r * width);
                   }
                 });
  }

  template <ScatterKind Kind, class T>
  void write_in_order() const {
    using N = Combined<Kind, T>;
    auto* const numbers = reinterpret_cast<N*>(numbers_);
    const std::int64_t all = role_.out.size * role_.out.inner;
    parallel_for(call_.pool, all, grain_for(1), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) numbers[i] = element_cast<N>(x_.as<T>()[i]);
    });
    const std::int64_t width = role_.out.inner;
    const T* update = updates_.as<T>();
    for (std::int64_t k = 0; k < role_.updates; ++k) {
      N* const row = numbers + indices_.data()[k] * width;
      for (std::int64_t c = 0; c < width; ++c) {
        row[c] = combined<Kind>(row[c], element_cast<N>(*update++));
      }
    }
    T* const out = call_.results[0].as<T>();
    parallel_for(call_.pool, all, grain_for(1), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) out[i] = element_cast<T>(numbers[i]);
    });
  }

  template <ScatterKind Kind, class T>
  void update_row(std::int64_t r, T* out) const {
    const std::int64_t width = role_.out.inner;
    const std::int64_t first = starts_[r];
    const std::int64_t last = starts_[r + 1];
    const auto update = [&](std::int64_t i) { return updates_.as<T>() + order_[i] * width; };
    if constexpr (Kind == ScatterKind::Set) {
      copy(out, update(last - 1), width);
      return;
    }
    using N = Combined<Kind, T>;
    const auto combine = [&](N* there, std::int64_t at, std::int64_t columns) RICCI_INLINE {
      for (std::int64_t c = 0; c < columns; ++c) there[c] = element_cast<N>(out[at + c]);
      for (std::int64_t i = first; i < last; ++i) {
        const T* from = update(i) + at;
        for (std::int64_t c = 0; c < columns; ++c) {
          there[c] = combined<Kind>(there[c], element_cast<N>(from[c]));
        }
      }
      for (std::int64_t c = 0; c < columns; ++c) out[at + c] = element_cast<T>(there[c]);
    };
    constexpr std::int64_t Columns = 64;
    N numbers[Columns];
    for (std::int64_t at = 0; at < width; at += Columns) {
      vectorised([&]() RICCI_INLINE { combine(numbers, at, std::min(Columns, width - at)); });
    }
  }

  template <class T>
  static void copy(T* to, const T* from, std::int64_t count) {
    if (count == 1) {
      *to = *from;
    } else {
      std::memcpy(static_cast<void*>(to), from, static_cast<std::size_t>(count) * sizeof(T));
    }
  }

  const HostArguments& call_;
  const loop::ScatterInto& role_;
  bool empty_;
  DenseOperand x_;
  DenseOperand updates_;
  IndexOperand indices_;
  bool narrow_;
  std::int64_t* starts_;
  std::int64_t* order_;
  std::byte* numbers_;
};

}  // namespace

HostKernel scatter_into_kernel() noexcept { return kernel_of<ScatterInto>(); }

}  // namespace ricci::cpu
