// Newton's method: a function, its gradient and its Hessian, all compiled into one step.
#include <iostream>

#include "ricci/array.h"

using namespace ricci;  // NOLINT: an example reads better without prefixes

Array rosenbrock(const Array& x) {
  const Array a = x[slice({}, -1)];
  const Array b = x[slice(1, {})];
  return sum(100 * square(b - a * a) + square(1 - a));
}

int main() {
  const auto step = jit([](Array x) {
    const Array g = grad(rosenbrock)(x);
    return std::pair{x - solve(hessian(rosenbrock)(x), g), norm(g)};
  });
  Array x = array({1.3, 0.7, 0.8, 1.9}, {.dtype = DType::F64});
  Array size = 1.0;
  for (int i = 0; size > 1e-9; ++i) {
    std::tie(x, size) = step(x);
    std::cout << i << "  |gradient| " << size << "\n";
  }
  std::cout << "minimum at " << x << ", value " << rosenbrock(x) << "\n";
  return all(abs(x - 1) < 1e-6) ? 0 : 1;
}
