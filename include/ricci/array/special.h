// Functions of statistics: gamma functions, the normal distribution and its inverse. They are
// computed in f64 and rounded once, and have derivatives like all others.
#pragma once

#include <cstdint>
#include <source_location>

#include "ricci/array/math.h"

namespace ricci {

/// The inverse of erf, on (-1, 1).
[[nodiscard]] Array erfinv(const Array& x, Here where = Here::current());
/// log |Γ(x)|
[[nodiscard]] Array lgamma(const Array& x, Here where = Here::current());
[[nodiscard]] Array gammaln(const Array& x, Here where = Here::current());
/// The derivative of log Γ.
[[nodiscard]] Array digamma(const Array& x, Here where = Here::current());
/// log B(a, b)
[[nodiscard]] Array betaln(const Array& a, const Array& b, Here where = Here::current());
/// The share of standard normal numbers below x, and its inverse on (0, 1).
[[nodiscard]] Array ndtr(const Array& x, Here where = Here::current());
[[nodiscard]] Array ndtri(const Array& p, Here where = Here::current());
/// The logarithm of the normal density.
[[nodiscard]] Array normal_logpdf(const Array& x, const Array& mean = 0.0, const Array& scale = 1.0,
                                  Here where = Here::current());
/// -x·log(x), 0 at 0.
[[nodiscard]] Array entr(const Array& x, Here where = Here::current());
/// x·log1p(y), 0 where x is 0.
[[nodiscard]] Array xlog1py(const Array& x, const Array& y, Here where = Here::current());
/// log of the running sum of eˣ.
[[nodiscard]] Array cumlogsumexp(const Array& x, std::int64_t axis = 0,
                                 Here where = Here::current());

}  // namespace ricci
