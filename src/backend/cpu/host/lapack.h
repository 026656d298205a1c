// LAPACK and BLAS as host kernels call them: one name for every kind of number, matrices column by
// column as Fortran has them, and one call at a time.
#pragma once

#include <complex>
#include <mutex>

#include <cblas.h>

#include "ricci/type/dtype.h"

#include "support/fork.h"

// LAPACK comes without a header of its own.
extern "C" {
// NOLINTBEGIN(bugprone-macro-parentheses): a type takes none.
#define RICCI_LAPACK(prefix, T)                                                                \
  void prefix##getrf_(const blasint* rows, const blasint* columns, T* a, const blasint* lda,   \
                      blasint* pivots, blasint* info);                                         \
  void prefix##getrs_(const char* trans, const blasint* n, const blasint* columns, const T* a, \
                      const blasint* lda, const blasint* pivots, T* b, const blasint* ldb,     \
                      blasint* info);                                                          \
  void prefix##potrf_(const char* uplo, const blasint* n, T* a, const blasint* lda,            \
                      blasint* info);                                                          \
  void prefix##gelqf_(const blasint* rows, const blasint* columns, T* a, const blasint* lda,   \
                      T* tau, T* work, const blasint* lwork, blasint* info)
#define RICCI_LAPACK_REAL(prefix, T)                                                               \
  RICCI_LAPACK(prefix, T);                                                                         \
  void prefix##orglq_(const blasint* rows, const blasint* columns, const blasint* reflectors,      \
                      T* a, const blasint* lda, const T* tau, T* work, const blasint* lwork,       \
                      blasint* info);                                                              \
  void prefix##syevd_(const char* jobz, const char* uplo, const blasint* n, T* a,                  \
                      const blasint* lda, T* w, T* work, const blasint* lwork, blasint* iwork,     \
                      const blasint* liwork, blasint* info);                                       \
  void prefix##sytrd_(const char* uplo, const blasint* n, T* a, const blasint* lda, T* d, T* e,    \
                      T* tau, T* work, const blasint* lwork, blasint* info);                       \
  void prefix##stedc_(const char* compz, const blasint* n, T* d, T* e, T* z, const blasint* ldz,   \
                      T* work, const blasint* lwork, blasint* iwork, const blasint* liwork,        \
                      blasint* info);                                                              \
  void prefix##steqr_(const char* compz, const blasint* n, T* d, T* e, T* z, const blasint* ldz,   \
                      T* work, blasint* info);                                                     \
  void prefix##laed2_(blasint* k, const blasint* n, const blasint* n1, T* d, T* q,                 \
                      const blasint* ldq, blasint* indxq, T* rho, T* z, T* dlamda, T* w, T* q2,    \
                      blasint* indx, blasint* indxc, blasint* indxp, blasint* coltyp,              \
                      blasint* info);                                                              \
  void prefix##laed4_(const blasint* n, const blasint* i, const T* d, const T* z, T* delta,        \
                      const T* rho, T* dlam, blasint* info);                                       \
  void prefix##lamrg_(const blasint* n1, const blasint* n2, const T* a, const blasint* strd1,      \
                      const blasint* strd2, blasint* index);                                       \
  void prefix##gemm_(const char* transa, const char* transb, const blasint* m, const blasint* n,   \
                     const blasint* k, const T* alpha, const T* a, const blasint* lda, const T* b, \
                     const blasint* ldb, const T* beta, T* c, const blasint* ldc);                 \
  void prefix##geqrf_(const blasint* rows, const blasint* columns, T* a, const blasint* lda,       \
                      T* tau, T* work, const blasint* lwork, blasint* info);                       \
  void prefix##gebrd_(const blasint* rows, const blasint* columns, T* a, const blasint* lda, T* d, \
                      T* e, T* tauq, T* taup, T* work, const blasint* lwork, blasint* info);       \
  void prefix##bdsdc_(const char* uplo, const char* compq, const blasint* n, T* d, T* e, T* u,     \
                      const blasint* ldu, T* vt, const blasint* ldvt, T* q, blasint* iq, T* work,  \
                      blasint* iwork, blasint* info);                                              \
  void prefix##gesdd_(const char* jobz, const blasint* rows, const blasint* columns, T* a,         \
                      const blasint* lda, T* s, T* u, const blasint* ldu, T* vt,                   \
                      const blasint* ldvt, T* work, const blasint* lwork, blasint* iwork,          \
                      blasint* info)
#define RICCI_LAPACK_COMPLEX(prefix, T, R)                                                    \
  RICCI_LAPACK(prefix, T);                                                                    \
  void prefix##unglq_(const blasint* rows, const blasint* columns, const blasint* reflectors, \
                      T* a, const blasint* lda, const T* tau, T* work, const blasint* lwork,  \
                      blasint* info);                                                         \
  void prefix##heevd_(const char* jobz, const char* uplo, const blasint* n, T* a,             \
                      const blasint* lda, R* w, T* work, const blasint* lwork, R* rwork,      \
                      const blasint* lrwork, blasint* iwork, const blasint* liwork,           \
                      blasint* info);                                                         \
  void prefix##gesdd_(const char* jobz, const blasint* rows, const blasint* columns, T* a,    \
                      const blasint* lda, R* s, T* u, const blasint* ldu, T* vt,              \
                      const blasint* ldvt, T* work, const blasint* lwork, R* rwork,           \
                      blasint* iwork, blasint* info)
// NOLINTEND(bugprone-macro-parentheses)
RICCI_LAPACK_REAL(s, float);
RICCI_LAPACK_REAL(d, double);
RICCI_LAPACK_COMPLEX(c, std::complex<float>, float);
RICCI_LAPACK_COMPLEX(z, std::complex<double>, double);
#undef RICCI_LAPACK
#undef RICCI_LAPACK_REAL
#undef RICCI_LAPACK_COMPLEX
}

namespace ricci::cpu {

template <class F>
struct RealOf {
  using type = F;
};
template <class R>
struct RealOf<std::complex<R>> {
  using type = R;
};
template <class F>
using RealPart = typename RealOf<F>::type;
template <class F>
inline constexpr bool is_complex_number = !std::is_same_v<F, RealPart<F>>;

/// The serial library keeps buffers of its own and must not run twice at a time: whoever calls it
/// holds this.
[[nodiscard]] std::unique_lock<ForkMutex> alone();

/// A routine by its name without the letter of its numbers.
#define RICCI_BY_NUMBER(F, name)                                   \
  [](auto... arguments) {                                          \
    if constexpr (std::is_same_v<F, float>) {                      \
      s##name##_(arguments...);                                    \
    } else if constexpr (std::is_same_v<F, double>) {              \
      d##name##_(arguments...);                                    \
    } else if constexpr (std::is_same_v<F, std::complex<float>>) { \
      c##name##_(arguments...);                                    \
    } else {                                                       \
      z##name##_(arguments...);                                    \
    }                                                              \
  }

/// What matrices of a call are computed in: small ones in f64 whatever their dtype, because it
/// costs nothing there and gives what the reference gives. Calls `f.template operator()<F>()`.
constexpr std::int64_t SmallMatrix = 64;
template <class F>
decltype(auto) with_field(DType dtype, std::int64_t size, F&& f) {
  const bool narrow = size > SmallMatrix && dtype != DType::F64 && dtype != DType::C128;
  if (is_complex(dtype)) {
    if (narrow) return f.template operator()<std::complex<float>>();
    return f.template operator()<std::complex<double>>();
  }
  if (narrow) return f.template operator()<float>();
  return f.template operator()<double>();
}

}  // namespace ricci::cpu
