// Arrays and functions that threads share.
#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "ricci/array.h"

namespace ricci::threads_test {
namespace {

void on_threads(int count, const std::function<void(int)>& f) {
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t) threads.emplace_back(f, t);
  for (std::thread& t : threads) t.join();
}

TEST(ArrayThreads, ShareWhatWaits) {
  for (int round = 0; round < 20; ++round) {
    const Array x = normal(Key(static_cast<std::uint64_t>(round)), {16});
    Array h = x;
    for (int i = 0; i < 30; ++i) h = tanh(h * 1.5) + x;
    std::atomic<int> wrong = 0;
    const double expected = sum(x).item();
    on_threads(4, [&](int t) {
      // All of them look at one waiting value, and at others made of it.
      const Array y = sum(h + t) - sum(h);
      if (std::abs(y.item() - 16.0 * t) > 1e-3) ++wrong;
      if (std::abs(sum(x).item() - expected) > 1e-6) ++wrong;
      (void)h.tensor();
    });
    EXPECT_EQ(wrong, 0);
  }
}

TEST(ArrayThreads, CallOneFunction) {
  const auto f = jit([](Array x) { return sum(grad([](Array y) { return sum(y * y * y); })(x)); });
  std::atomic<int> wrong = 0;
  on_threads(4, [&](int t) {
    for (int i = 0; i < 50; ++i) {
      const int n = 1 + (t + i) % 3;
      const double v = t + i;
      if (std::abs(f(full({n}, v)).item() - 3 * v * v * n) > 1e-3 * (1 + v * v)) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_GE(f.compiled(), 3U);
}

TEST(ArrayThreads, TraceSideBySide) {
  std::atomic<int> wrong = 0;
  const Array shared = array({2.0});
  on_threads(4, [&](int t) {
    for (int i = 0; i < 10; ++i) {
      const Array w = array({1.0 + t});
      const Array g = grad([&](Array x) {
        return sum(scan(x, 3, [&](Array c) { return c * w * shared; }).last);
      })(array({1.0}));
      if (std::abs(g.item() - std::pow(2.0 * (1 + t), 3)) > 1e-2) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST(ArrayThreads, CaptureWhatOthersCompute) {
  // One half traces functions that capture waiting values while the other half looks at them; the
  // thread sanitizer sees whether a trace reads what a look lets go of.
  for (int round = 0; round < 20; ++round) {
    std::vector<Array> waiting;
    for (int k = 0; k < 8; ++k) waiting.push_back(full({4}, 1.0 + k) * array({1.0, 2.0, 3.0, 4.0}));
    std::atomic<int> wrong = 0;
    on_threads(4, [&](int t) {
      for (std::size_t k = 0; k < waiting.size(); ++k) {
        const Array& w = waiting[k];
        if (t % 2 == 0) {
          if (sum(w).item() != 10.0 * static_cast<double>(k + 1)) ++wrong;
          continue;
        }
        const Graph g = trace([&](const Array& x) { return x * w; }, array({1.0}));
        if (g.leaves().size() != 2) ++wrong;
      }
    });
    EXPECT_EQ(wrong, 0);
  }
}

}  // namespace
}  // namespace ricci::threads_test
