// Matrix products in plain loops, for dtypes no library takes and as a check on those that do.
#include <algorithm>
#include <array>
#include <vector>

#include "ricci/op/linalg.h"

#include "backend/cpu/host/element.h"
#include "backend/cpu/host/kernels.h"
#include "backend/cpu/host/scratch.h"
#include "backend/cpu/host/simd.h"
#include "op/dot_axes.h"

namespace ricci::cpu {
namespace {

template <class N>
struct Factors {
  const N* a;  // [rows, inner] of a batch
  const N* b;  // [inner, columns]
};

// out[β, m, n] = Σ_k a[β, m, k] · b[β, k, n]; `factors(β)` says where a batch's matrices are.
template <class N, class F>
void multiply(const HostCall& call, std::int64_t batches, std::int64_t rows, std::int64_t inner,
              std::int64_t columns, const F& factors) {
  constexpr std::int64_t Block = 256;
  parallel_for(call.pool, batches * rows, grain_for(inner * columns),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   const Factors<N> f = factors(i / rows);
                   const N* a = f.a + i % rows * inner;
                   for (std::int64_t first = 0; first < columns; first += Block) {
                     const std::int64_t count = std::min(Block, columns - first);
                     std::array<N, Block> sums{};
                     N* totals = sums.data();
                     vectorised([&]() RICCI_INLINE {
                       for (std::int64_t k = 0; k < inner; ++k) {
                         const N* b = f.b + k * columns + first;
                         const N factor = a[k];
                         for (std::int64_t n = 0; n < count; ++n) {
                           totals[n] = add_wrapping(totals[n], mul_wrapping(factor, b[n]));
                         }
                       }
                     });
                     write_numbers(call.results[0], i * columns + first, count, totals);
                   }
                 }
               });
}

template <class N>
class Matmul {
 public:
  Matmul(const HostCall& call, Scratch& scratch)
      : call_(call), a_(call, 0, scratch), b_(call, 1, scratch) {}

  void run() const {
    a_.pack(call_.pool);
    b_.pack(call_.pool);
    const std::span<const std::int64_t> out = call_.results[0].dims;
    const std::span<const std::int64_t> batch = out.first(out.size() - 2);
    const std::int64_t rows = out[out.size() - 2];
    const std::int64_t columns = out.back();
    const std::int64_t inner = call_.operands[0].dims.back();
    multiply<N>(call_, count_of(batch), rows, inner, columns, [&](std::int64_t i) {
      return Factors<N>{a_.data() + matrix(0, batch, i) * rows * inner,
                        b_.data() + matrix(1, batch, i) * inner * columns};
    });
  }

 private:
  // Which of an operand's matrices batch i of the result uses.
  [[nodiscard]] std::int64_t matrix(std::size_t k, std::span<const std::int64_t> batch,
                                    std::int64_t i) const {
    const std::span<const std::int64_t> dims = call_.operands[k].dims;
    std::int64_t at = 0;
    std::int64_t stride = 1;
    for (std::size_t back = 0; back + 2 < dims.size(); ++back) {
      const std::int64_t size = dims[dims.size() - 3 - back];
      const std::int64_t whole = batch[batch.size() - 1 - back];
      if (size != 1) at += i % whole * stride;
      stride *= size;
      i /= whole;
    }
    return at;
  }

  const HostCall& call_;
  NumberOperand<N> a_;
  NumberOperand<N> b_;
};

// An operand with three lists of its axes one after the other.
OwnedView arranged(const ArrayView& v, const Axes& first, const Axes& second, const Axes& third) {
  Axes perm = first;
  perm.insert(perm.end(), second.begin(), second.end());
  perm.insert(perm.end(), third.begin(), third.end());
  return OwnedView(v).permute([&](std::size_t k) { return perm[k].index(); });
}

template <class N>
class DotGeneral {
 public:
  DotGeneral(const HostCall& call, Scratch& scratch)
      : call_(call),
        op_(*call.op.as<op::DotGeneral>()),
        lhs_free_(free_axes(call.operands[0].dims.size(), op_.lhs_contracting, op_.lhs_batch)),
        rhs_free_(free_axes(call.operands[1].dims.size(), op_.rhs_contracting, op_.rhs_batch)),
        lhs_view_(arranged(call.operands[0], op_.lhs_batch, lhs_free_, op_.lhs_contracting)),
        rhs_view_(arranged(call.operands[1], op_.rhs_batch, op_.rhs_contracting, rhs_free_)),
        lhs_(lhs_view_.view(), scratch),
        rhs_(rhs_view_.view(), scratch) {}

  void run() const {
    lhs_.pack(call_.pool);
    rhs_.pack(call_.pool);
    const auto size = [&](std::size_t k, const Axes& axes) {
      std::int64_t count = 1;
      for (const Axis a : axes) count *= call_.operands[k].dims[a.index()];
      return count;
    };
    const std::int64_t rows = size(0, lhs_free_);
    const std::int64_t inner = size(0, op_.lhs_contracting);
    const std::int64_t columns = size(1, rhs_free_);
    multiply<N>(call_, size(0, op_.lhs_batch), rows, inner, columns, [&](std::int64_t i) {
      return Factors<N>{lhs_.data() + i * rows * inner, rhs_.data() + i * inner * columns};
    });
  }

 private:
  const HostCall& call_;
  const op::DotGeneral& op_;
  Axes lhs_free_;
  Axes rhs_free_;
  OwnedView lhs_view_;
  OwnedView rhs_view_;
  NumberOperand<N> lhs_;
  NumberOperand<N> rhs_;
};

}  // namespace

HostKernel matmul_kernel() noexcept { return kernel_of_number_class<Matmul>(); }
HostKernel dot_general_kernel() noexcept { return kernel_of_number_class<DotGeneral>(); }

}  // namespace ricci::cpu
