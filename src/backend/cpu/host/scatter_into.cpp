// Slices combined with the rows indices name. Every row of the result belongs to one tile, which
// takes its updates in the order of the operand: the same bits on any number of threads.
#include <array>
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
        starts_(scratch.take<std::int64_t>(empty_ ? 0 : role_.out.size + 1)),
        order_(scratch.take<std::int64_t>(role_.updates)) {}

  void run() const {
    indices_.read(role_.out.size);
    if (empty_) return;
    x_.pack(call_.pool);
    updates_.pack(call_.pool);
    sort_by_row();
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

  template <ScatterKind Kind, class T>
  void write() const {
    parallel_for(call_.pool, role_.out.size, grain_for(role_.out.inner),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t r = begin; r < end; ++r) write_row<Kind, T>(r);
                 });
  }

  template <ScatterKind Kind, class T>
  void write_row(std::int64_t r) const {
    const std::int64_t width = role_.out.inner;
    const std::int64_t first = starts_[r];
    const std::int64_t last = starts_[r + 1];
    T* const out = call_.results[0].as<T>() + r * width;
    const auto update = [&](std::int64_t i) { return updates_.as<T>() + order_[i] * width; };
    const bool replaced = Kind == ScatterKind::Set && first < last;
    const T* const base = replaced ? update(last - 1) : x_.as<T>() + r * width;
    std::memcpy(static_cast<void*>(out), base, static_cast<std::size_t>(width) * sizeof(T));
    if (Kind == ScatterKind::Set || first == last) return;
    // A few columns at a time; sums and products in numbers wide enough for any number of updates.
    constexpr bool Chooses = Kind == ScatterKind::Max || Kind == ScatterKind::Min;
    using N = std::conditional_t<Chooses, Number<T>, Wide<T>>;
    constexpr std::int64_t Columns = 64;
    std::array<N, Columns> numbers{};
    for (std::int64_t at = 0; at < width; at += Columns) {
      const std::int64_t columns = std::min(Columns, width - at);
      for (std::int64_t c = 0; c < columns; ++c) {
        numbers[static_cast<std::size_t>(c)] = element_cast<N>(out[at + c]);
      }
      vectorised([&]() RICCI_INLINE {
        for (std::int64_t i = first; i < last; ++i) {
          const T* from = update(i) + at;
          N* there = numbers.data();
          for (std::int64_t c = 0; c < columns; ++c) {
            there[c] = combined<Kind>(there[c], element_cast<N>(from[c]));
          }
        }
      });
      for (std::int64_t c = 0; c < columns; ++c) {
        out[at + c] = element_cast<T>(numbers[static_cast<std::size_t>(c)]);
      }
    }
  }

  const HostArguments& call_;
  const loop::ScatterInto& role_;
  bool empty_;
  DenseOperand x_;
  DenseOperand updates_;
  IndexOperand indices_;
  std::int64_t* starts_;
  std::int64_t* order_;
};

}  // namespace

HostKernel scatter_into_kernel() noexcept { return kernel_of<ScatterInto>(); }

}  // namespace ricci::cpu
