// Picking slices or elements by index.
#include <cstring>

#include "backend/cpu/host/indices.h"
#include "backend/cpu/host/kernels.h"

namespace ricci::cpu {
namespace {

struct SixteenBytes {
  std::uint64_t low;
  std::uint64_t high;
};

// Calls `f.template operator()<E>()` with a type of a dtype's size.
template <class F>
void with_size(DType dtype, const F& f) {
  switch (size_of(dtype)) {
    case 1: return f.template operator()<std::uint8_t>();
    case 2: return f.template operator()<std::uint16_t>();
    case 4: return f.template operator()<std::uint32_t>();
    case 8: return f.template operator()<std::uint64_t>();
    default: return f.template operator()<SixteenBytes>();
  }
}

// Axes that lie in memory like one: their stride, or nothing.
std::optional<std::int64_t> common_stride(std::span<const std::int64_t> dims,
                                          std::span<const std::int64_t> strides) {
  std::int64_t stride = 1;
  std::int64_t run = 0;  // elements so far, 0 before the first axis that is not 1
  for (std::size_t a = dims.size(); a-- > 0;) {
    if (dims[a] == 1) continue;
    if (run == 0) {
      stride = strides[a];
      run = 1;
    } else if (strides[a] != stride * run) {
      return std::nullopt;
    }
    run *= dims[a];
  }
  return stride;
}

// out[o, k, t] = table[o, indices[k], t]. A table whose outer and inner axes each lie like one axis
// is read where it is; others are packed first.
class Gather {
 public:
  Gather(const HostArguments& call, Scratch& scratch)
      : call_(call),
        split_(call.as<loop::Gather>().table),
        picked_(call.as<loop::Gather>().picked),
        indices_(call, 1, scratch) {
    const ArrayView& t = call.operands[0];
    const auto axis = static_cast<std::size_t>(call.as<loop::Gather>().axis);
    const auto outer = common_stride(t.dims.first(axis), t.strides.first(axis));
    const auto inner = common_stride(t.dims.subspan(axis + 1), t.strides.subspan(axis + 1));
    if (outer && inner) {
      strides_ = {*outer, t.strides[axis], *inner};
    } else {
      strides_ = {split_.size * split_.inner, split_.inner, 1};
      packed_.emplace(call, 0, scratch);
    }
  }

  void run() const {
    indices_.read(split_.size);
    if (count_of(call_.results[0].dims) == 0) return;
    if (packed_) packed_->pack(call_.pool);
    with_size(call_.operands[0].dtype, [&]<class E>() { copy_slices<E>(); });
  }

 private:
  template <class E>
  void copy_slices() const {
    const std::byte* first = packed_ ? packed_->data() : call_.operands[0].data;
    const auto* table = reinterpret_cast<const E*>(first);
    E* out = call_.results[0].as<E>();
    const std::int64_t picked = picked_;
    const std::int64_t width = split_.inner;
    const auto [outer, along, inner] = strides_;
    parallel_for(call_.pool, split_.outer * picked, grain_for(width),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t i = begin; i < end; ++i) {
                     const E* from =
                         table + i / picked * outer + indices_.data()[i % picked] * along;
                     E* to = out + i * width;
                     if (width == 1) {
                       *to = *from;
                     } else if (inner == 1) {
                       std::memcpy(to, from, static_cast<std::size_t>(width) * sizeof(E));
                     } else {
                       for (std::int64_t t = 0; t < width; ++t) to[t] = from[t * inner];
                     }
                   }
                 });
  }

  struct Strides {
    std::int64_t outer;
    std::int64_t along;
    std::int64_t inner;
  };
  const HostArguments& call_;
  AxisSplit split_;
  std::int64_t picked_;
  IndexOperand indices_;
  Strides strides_{};
  std::optional<DenseOperand> packed_;
};

// out[o, k, t] = x[o, indices[o, k, t], t]
class GatherEach {
 public:
  GatherEach(const HostArguments& call, Scratch& scratch)
      : call_(call), indices_(call, 1, scratch), x_(call, 0, scratch) {}

  void run() const {
    const AxisSplit from = call_.as<loop::Gather>().table;
    const AxisSplit to{from.outer, call_.as<loop::Gather>().picked, from.inner};
    indices_.read(from.size);
    x_.pack(call_.pool);
    with_size(call_.operands[0].dtype, [&]<class E>() {
      E* out = call_.results[0].as<E>();
      parallel_for(call_.pool, to.outer * to.size, grain_for(to.inner),
                   [&](std::int64_t begin, std::int64_t end) {
                     for (std::int64_t i = begin; i < end; ++i) {
                       const E* slab = x_.as<E>() + i / to.size * from.size * from.inner;
                       const std::int64_t* picked = indices_.data() + i * to.inner;
                       E* row = out + i * to.inner;
                       for (std::int64_t t = 0; t < to.inner; ++t) {
                         row[t] = slab[picked[t] * to.inner + t];
                       }
                     }
                   });
    });
  }

 private:
  const HostArguments& call_;
  IndexOperand indices_;
  DenseOperand x_;
};

}  // namespace

HostKernel gather_kernel() noexcept { return kernel_of<Gather>(); }
HostKernel gather_each_kernel() noexcept { return kernel_of<GatherEach>(); }

}  // namespace ricci::cpu
