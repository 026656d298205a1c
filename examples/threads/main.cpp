// Four threads serve one compiled function, with parameters that all of them share.
#include <atomic>
#include <iostream>
#include <thread>

#include "ricci/array.h"

using namespace ricci;  // NOLINT: an example reads better without prefixes

int main() {
  const Array w = normal(Key(1), {64, 64}, 0, 0.1);
  const auto serve = jit([&](Array x) { return sum(tanh(matmul(x, w)), 1); });
  std::atomic<int> served = 0;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const Array x = normal(Key(10 + t), {8, 64});
      const Array expected = sum(tanh(matmul(x, w)), 1);
      for (int i = 0; i < 250; ++i, ++served) {
        if (amax(abs(serve(x) - expected)) > 1e-5) ++wrong;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  std::cout << served << " requests, " << wrong << " wrong answers, " << serve.compiled()
            << " program\n";
  return wrong;
}
