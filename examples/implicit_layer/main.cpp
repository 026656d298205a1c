// An implicit layer: its output is the fixed point of z = tanh(z·w + x), found by a loop that asks,
// and differentiated by the implicit function theorem instead of through the loop.
#include <iostream>

#include "ricci/array.h"

using namespace ricci;  // NOLINT: an example reads better without prefixes

Array f(const Array& w, const Array& x, const Array& z) { return tanh(matmul(z, w) + x); }

Array solve_forward(const auto& g, const Array& start) {
  const std::pair both{start, g(start)};
  return while_loop(
             both, [](std::pair<Array, Array> s) { return norm(s.second - s.first) > 1e-7; },
             [&](std::pair<Array, Array> s) { return std::pair{s.second, g(s.second)}; })
      .second;
}

// At the fixed point dz = (∂f/∂z)·dz + …, so the cotangent u solves u = dy + u·∂f/∂z.
const auto fixed_point = custom_vjp(
    [](Array w, Array x) {
      return solve_forward([&](Array z) { return f(w, x, z); }, zeros_like(x));
    },
    [](Array w, Array x, Array z, Array dy) {
      const auto in_z = vjp([&](Array v) { return f(w, x, v); }, z);
      const Array u = solve_forward([&](Array v) { return dy + in_z.map(v); }, zeros_like(dy));
      return vjp([&](Array a, Array b) { return f(a, b, z); }, w, x).map(u);
    });

int main() {
  const Array w = normal(Key(1), {5, 5}, 0, 0.2, {.dtype = DType::F64});
  const Array x = normal(Key(2), {3, 5}, 0, 1, {.dtype = DType::F64});
  const auto loss = [&](Array v) { return sum(square(fixed_point(v, x))); };
  const auto unrolled = [&](Array v) {
    return sum(square(scan(zeros_like(x), 100, [&](Array z) { return f(v, x, z); }).last));
  };
  const Array implicit = jit(grad(loss))(w);
  const Array through = jit(grad(unrolled))(w);
  std::cout << "gradient\n" << implicit << "\nthrough 100 steps\n" << through << "\n";
  return amax(abs(implicit - through)) < 1e-6 ? 0 : 1;
}
