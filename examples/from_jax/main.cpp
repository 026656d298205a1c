// The blocks of docs/FROM_JAX.md, one after the other, with what they give.
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "ricci/array.h"

using namespace ricci;  // NOLINT: an example reads better without prefixes

namespace {

void expect(const Array& holds, const char* what) {
  if (holds.item() != 0) return;
  std::cerr << "not so: " << what << "\n";
  std::exit(1);
}

void arrays() {
  const Array x = reshape(arange(6, {.dtype = DType::F32}), {2, 3});
  const Array y = matmul(where(x > 2, x, 0), transpose(x));
  std::cout << y[0] << y(slice(), slice(1, {})) << sum(y, 0) << "\n";
  expect(all(y == array({{0.0, 0.0}, {14.0, 50.0}})), "products of rows");
}

Array loss(const Array& w, const Array& x, const Array& y) {
  return mean(square(matmul(x, w) - y));
}

void gradients() {
  const Array x = normal(Key(1), {8, 3});
  const Array w = ones({3});
  const Array y = matmul(x, w) + 1.0;
  const auto [value, g] = value_and_grad(loss)(w, x, y);
  const Array h = hessian(loss)(w, x, y);
  expect(abs(value - 1.0) < 1e-6, "the loss");
  expect(all(abs(g + 2 * mean(x, 0)) < 1e-5), "the gradient");
  expect(all(abs(h - matmul(transpose(x), x) / 4) < 1e-5), "the Hessian");
}

struct Net {  // a plain struct is a tree; its fields are its names
  Array w = ones({3, 2}), b = zeros({2});
  Array operator()(const Array& x) const { return tanh(matmul(x, w) + b); }
};

void trees() {
  const Array x = normal(Key(2), {4, 3});
  Net net;
  const Net g = grad([&](const Net& n) { return sum(n(x)); })(net);
  net = tree_map([](Array p, Array d) { return p - 0.1 * d; }, net, g);
  expect(all(net.b == -0.1 * g.b), "a step");
}

void jit_and_vmap() {
  const auto f = jit(vmap([](Array a, Array b) { return dot(a, b); }, {.in_axes = {0, {}}}));
  const Array y = f(ones({5, 3}), arange(3, {.dtype = DType::F32}));
  expect(all(y == 3.0), "every row");
}

void loops() {
  const Array scale = array(2.0);
  const auto [last, ys] =
      scan(array(0.0), arange(4, {.dtype = DType::F32}), [&](Array carry, Array x) {
        carry = 0.5 * carry + x * scale;
        return carry_and(carry, carry);
      });
  const Array n =
      while_loop(array(1), [](Array i) { return i < 100; }, [](Array i) { return i * 2; });
  const Array y =
      cond(last > 1, [](Array v) { return sin(v); }, [](Array v) { return cos(v); }, last);
  expect(all(ys == array({0.0, 2.0, 5.0, 8.5})), "the trajectory");
  expect(n == 128, "the loop");
  expect(abs(y - sin(last)) < 1e-6, "the branch");
}

void random_numbers() {
  const Key key(7);
  const auto [a, b] = split(key);
  const Array x = normal(a, {3, 4});
  const Array mask = bernoulli(b, 0.3, {3, 4});
  const Array rows = vmap([](Key k) { return normal(k, {4}); })(split(key, 3));
  expect(all(x == normal(a, {3, 4})), "the same key, the same numbers");
  expect(all(rows[1] == normal(split(key, 3)[1], {4})), "a row a key");
  expect(any(mask != bernoulli(a, 0.3, {3, 4})) || all(mask == mask), "a mask");
}

void vjp__jvp_and_custom_rules() {
  const Array x = linspace(0, 1, 5);
  const auto sine = [](Array v) { return sin(v); };
  const auto [y, pull] = vjp(sine, x);
  const Array dx = pull(ones_like(y));
  const auto [again, t] = jvp(sine, x, ones_like(x));
  const auto clipped =
      custom_vjp([](Array v) { return v; }, [](Array, Array, Array d) { return clip(d, -1, 1); });
  expect(all(abs(dx - cos(x)) < 1e-6) && all(dx == t), "the same derivative");
  expect(all(grad([&](Array v) { return sum(5 * clipped(v)); })(x) == 1.0), "kept within 1");
  expect(all(again == y), "the same value");
}

}  // namespace

int main() {
  arrays();
  gradients();
  trees();
  jit_and_vmap();
  loops();
  random_numbers();
  vjp__jvp_and_custom_rules();
  std::cout << "all as in JAX\n";
}
