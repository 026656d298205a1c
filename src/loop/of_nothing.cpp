#include "loop/of_nothing.h"

#include <limits>

#include "ricci/support/error.h"

namespace ricci::loop {
namespace {

Number whole(DType dtype, std::int64_t n) {
  if (is_float(dtype)) return static_cast<double>(n);
  if (is_complex(dtype)) return std::complex<double>(static_cast<double>(n));
  return n;
}

// What every element is at least, or at most.
Number end_of(DType dtype, bool least) {
  constexpr double Inf = std::numeric_limits<double>::infinity();
  if (is_float(dtype)) return least ? -Inf : Inf;
  check_internal(!is_complex(dtype), "complex numbers have no order");
  if (dtype == DType::Bool) return whole(dtype, least ? 0 : 1);
  return with_element_type(dtype, [&]<class T>() -> Number {
    if constexpr (std::is_integral_v<T>) {
      using Limits = std::numeric_limits<T>;
      return static_cast<std::int64_t>(least ? Limits::min() : Limits::max());
    } else {
      return {};
    }
  });
}

}  // namespace

Number reduction_of_nothing(ReduceKind kind, DType dtype) {
  switch (kind) {
    case ReduceKind::Sum:
    case ReduceKind::Any: return whole(dtype, 0);
    case ReduceKind::Prod:
    case ReduceKind::All: return whole(dtype, 1);
    case ReduceKind::Max: return end_of(dtype, true);
    case ReduceKind::Min: return end_of(dtype, false);
    case ReduceKind::Mean:
    case ReduceKind::LogSumExp: break;
  }
  throw InternalError("a reduction was not rewritten");
}

}  // namespace ricci::loop
