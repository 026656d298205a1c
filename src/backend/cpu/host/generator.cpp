// Values made from attributes alone.
#include "ricci/op/generator.h"

#include <algorithm>

#include "backend/cpu/host/element.h"
#include "backend/cpu/host/kernels.h"
#include "backend/cpu/host/numbers.h"
#include "backend/cpu/host/parallel.h"
#include "backend/cpu/host/view.h"

namespace ricci::cpu {
namespace {

void run_iota(const HostCall& c) {
  const ArrayView& out = c.results[0];
  const AxisSplit s(out.dims, c.op.as<op::Iota>()->axis.index());
  with_element_type(out.dtype, [&]<class T>() {
    parallel_for(c.pool, s.outer * s.size, grain_for(s.inner),
                 [&](std::int64_t begin, std::int64_t end) {
                   while (begin < end) {  // stretches of one outer index
                     const std::int64_t first = begin % s.size;
                     const std::int64_t count = std::min(s.size - first, end - begin);
                     T* to = out.as<T>() + begin * s.inner;
                     if (s.inner == 1) {
                       for (std::int64_t i = 0; i < count; ++i) to[i] = element_cast<T>(first + i);
                     } else {
                       for (std::int64_t i = 0; i < count; ++i) {
                         std::fill_n(to + i * s.inner, s.inner, element_cast<T>(first + i));
                       }
                     }
                     begin += count;
                   }
                 });
  });
}

void run_dim_size(const HostCall& c) {
  const std::int64_t size = c.op.as<op::DimSize>()->dim.value();
  write_numbers(c.results[0], 0, 1, &size);
}

}  // namespace

HostKernel iota_kernel() noexcept { return {run_iota}; }
HostKernel dim_size_kernel() noexcept { return {run_dim_size}; }

}  // namespace ricci::cpu
