// The kernels that call LAPACK and BLAS, behind the one name by which they are linked.
#include <variant>

#include "backend/cpu/host/kernels.h"
#include "backend/cpu/run/library_parts.h"

namespace ricci::cpu {
namespace {

HostKernel matrix_function_kernel(loop::MatrixFunction::Of of) noexcept {
  using Of = loop::MatrixFunction::Of;
  switch (of) {
    case Of::Cholesky: return cholesky_kernel();
    case Of::Lu: return lu_kernel();
    case Of::Qr: return qr_kernel();
    case Of::Eigh: return eigh_kernel();
    case Of::Svd: return svd_kernel();
    case Of::Exponential: return exponential_kernel();
    case Of::Adjugate: return adjugate_kernel();
  }
  return {};
}

HostKernel linear_algebra(const loop::Call& call) noexcept {
  if (const auto* f = std::get_if<loop::MatrixFunction>(&call))
    return matrix_function_kernel(f->of);
  if (const auto* solve = std::get_if<loop::Solve>(&call)) {
    return solve->matrix == loop::Solve::Matrix::Dense ? dense_solve_kernel()
                                                       : triangular_solve_kernel();
  }
  return {};
}

}  // namespace
}  // namespace ricci::cpu

ricci::cpu::LinearAlgebra* ricci_cpu_linear_algebra() noexcept {
  return &ricci::cpu::linear_algebra;
}
