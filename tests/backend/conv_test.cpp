#include "backend/cpu/structured/conv.h"

#include <cmath>
#include <limits>
#include <random>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "ricci/type/tensor.h"

#include "backend/cpu/structured/pooling.h"
#include "support/compare.h"
#include "support/pools.h"

namespace ricci::cpu::conv_test {
namespace {

using Numbers = std::vector<double>;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

template <class T>
std::vector<T> random_elements(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<T> x(at(count));
  for (T& v : x) v = static_cast<T>(static_cast<double>(random() % 129) / 32 - 2);
  return x;
}

template <class T>
double tolerance() {
  if constexpr (std::is_same_v<T, double>) return 1e-14;
  if constexpr (std::is_same_v<T, float>) return 1e-6;
  if constexpr (std::is_same_v<T, Float16>) return 1e-3;
  return 8e-3;
}

// Runs with pools of every size; all must give the same bits.
template <class T, class F>
std::vector<T> same_with_all_pools(std::int64_t count, F&& run) {
  std::vector<T> first;
  for (ThreadPool& pool : testing::pools()) {
    std::vector<T> out(at(count), static_cast<T>(77.0));
    run(pool, out.data());
    if (first.empty()) first = out;
    EXPECT_TRUE(testing::same_bits(first, out)) << pool.threads();
  }
  return first;
}

using Of = loop::Convolution::Of;

// The definition: every product of a tap inside the image, added where it belongs.
void reference(const loop::Convolution& g, const Numbers& l, const Numbers& r, Numbers& out,
               Numbers& size) {
  const std::int64_t inputs = g.channels_in / g.groups;
  const std::int64_t outputs = g.channels_out / g.groups;
  std::int64_t y = 0;
  for (std::int64_t n = 0; n < g.images; ++n) {
    for (std::int64_t o = 0; o < g.channels_out; ++o) {
      for (std::int64_t i = 0; i < g.size_out[0]; ++i) {
        for (std::int64_t j = 0; j < g.size_out[1]; ++j, ++y) {
          std::int64_t w = o * g.taps();
          for (std::int64_t c = 0; c < inputs; ++c) {
            for (std::int64_t u = 0; u < g.kernel[0]; ++u) {
              for (std::int64_t v = 0; v < g.kernel[1]; ++v, ++w) {
                const std::int64_t row = i * g.stride[0] + u * g.dilation[0] - g.padding[0];
                const std::int64_t column = j * g.stride[1] + v * g.dilation[1] - g.padding[1];
                if (row < 0 || row >= g.size_in[0] || column < 0 || column >= g.size_in[1])
                  continue;
                const std::int64_t channel = o / outputs * inputs + c;
                const std::int64_t x =
                    ((n * g.channels_in + channel) * g.size_in[0] + row) * g.size_in[1] + column;
                const std::int64_t from_l = g.of == Of::ImageGradient ? y : x;
                const std::int64_t from_r = g.of == Of::WeightGradient ? y : w;
                const std::int64_t to = g.of == Of::Image ? y : g.of == Of::ImageGradient ? x : w;
                const double product = l[at(from_l)] * r[at(from_r)];
                out[at(to)] += product;
                size[at(to)] += std::abs(product);
              }
            }
          }
        }
      }
    }
  }
}

template <class T>
Numbers widened(const std::vector<T>& x) {
  Numbers n;
  for (const T& v : x) n.push_back(static_cast<double>(v));
  return n;
}

std::vector<loop::Convolution> geometries() {
  std::vector<loop::Convolution> all;
  const auto add = [&](loop::Convolution g) {
    for (std::size_t i = 0; i < 2; ++i) {
      g.size_out[i] =
          (g.size_in[i] + 2 * g.padding[i] - g.dilation[i] * (g.kernel[i] - 1) - 1) / g.stride[i] +
          1;
    }
    all.push_back(g);
  };
  add({.images = 1, .channels_in = 1, .channels_out = 1, .size_in = {1, 1}, .kernel = {1, 1}});
  add({.images = 3, .channels_in = 3, .channels_out = 5, .size_in = {7, 9}, .kernel = {3, 3}});
  add({.images = 19,
       .channels_in = 8,
       .channels_out = 16,
       .size_in = {6, 6},
       .kernel = {3, 3},
       .padding = {1, 1}});
  add({.images = 2,
       .channels_in = 4,
       .channels_out = 6,
       .groups = 2,
       .size_in = {8, 7},
       .kernel = {3, 2},
       .stride = {2, 3},
       .padding = {1, 0}});
  add({.images = 2,
       .channels_in = 8,
       .channels_out = 8,
       .groups = 8,
       .size_in = {9, 9},
       .kernel = {3, 3},
       .stride = {1, 1},
       .padding = {2, 2},
       .dilation = {2, 2}});
  add({.images = 2,
       .channels_in = 16,
       .channels_out = 8,
       .size_in = {10, 5},
       .kernel = {5, 1},
       .stride = {3, 2},
       .padding = {4, 3},
       .dilation = {1, 1}});
  add({.images = 0, .channels_in = 2, .channels_out = 3, .size_in = {4, 4}, .kernel = {3, 3}});
  add({.images = 2, .channels_in = 0, .channels_out = 3, .size_in = {4, 4}, .kernel = {3, 3}});
  add({.images = 2, .channels_in = 2, .channels_out = 0, .size_in = {4, 4}, .kernel = {3, 3}});
  add({.images = 2,
       .channels_in = 2,
       .channels_out = 3,
       .size_in = {0, 4},
       .kernel = {1, 3},
       .padding = {1, 1}});
  return all;
}

template <class T>
class BackendConv : public ::testing::Test {};
using FloatElements = ::testing::Types<float, double, Float16, BFloat16>;
TYPED_TEST_SUITE(BackendConv, FloatElements);

TYPED_TEST(BackendConv, AllThreeKindsAreWhatTheDefinitionSays) {
  using T = TypeParam;
  for (loop::Convolution g : geometries()) {
    g.dtype = dtype_of<T>;
    SCOPED_TRACE(::testing::Message()
                 << g.images << 'x' << g.channels_in << " -> " << g.channels_out);
    const std::int64_t x = g.images * g.x_image();
    const std::int64_t y = g.images * g.y_image();
    const std::int64_t w = g.weights();
    for (const auto& [of, l, r, o] :
         {std::tuple{Of::Image, x, w, y}, std::tuple{Of::ImageGradient, y, w, x},
          std::tuple{Of::WeightGradient, x, y, w}}) {
      g.of = of;
      const ConvPlan plan(g);
      const std::vector<T> lhs = random_elements<T>(l, 1);
      const std::vector<T> rhs = random_elements<T>(r, 2);
      std::vector<std::max_align_t> scratch(at(plan.scratch_bytes()) / sizeof(std::max_align_t) +
                                            8);
      void* aligned = reinterpret_cast<void*>(
          (reinterpret_cast<std::uintptr_t>(scratch.data()) + 63) / 64 * 64);
      const std::vector<T> out = same_with_all_pools<T>(
          o, [&](ThreadPool& pool, T* to) { plan.run(pool, lhs.data(), rhs.data(), to, aligned); });
      Numbers expected(out.size());
      Numbers size(out.size());
      reference(g, widened(lhs), widened(rhs), expected, size);
      for (std::size_t i = 0; i < out.size(); ++i) {
        ASSERT_LE(std::abs(static_cast<double>(out[i]) - expected[i]), tolerance<T>() * size[i])
            << "of " << static_cast<int>(of) << " element " << i;
      }
    }
  }
}

struct PoolCase {
  loop::Pooling g;
  bool count_padding = true;
};

std::vector<PoolCase> pool_cases() {
  std::vector<PoolCase> all;
  const auto add = [&](loop::Pooling g) {
    for (std::size_t i = 0; i < 2; ++i) {
      g.size_out[i] = (g.size_in[i] + 2 * g.padding[i] - g.kernel[i]) / g.stride[i] + 1;
    }
    all.push_back({g, all.size() % 2 == 0});
  };
  add({.planes = 1, .size_in = {1, 1}, .kernel = {1, 1}});
  add({.planes = 6, .size_in = {7, 9}, .kernel = {2, 2}, .stride = {2, 2}});
  // Rows of windows longer than a vector, whose images they cover, and do not.
  add({.planes = 3, .size_in = {38, 70}, .kernel = {2, 2}, .stride = {2, 2}});
  add({.planes = 3, .size_in = {39, 71}, .kernel = {2, 2}, .stride = {2, 2}});
  add({.planes = 5, .size_in = {8, 9}, .kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
  add({.planes = 5, .size_in = {8, 9}, .kernel = {3, 2}, .stride = {1, 3}, .padding = {2, 1}});
  add({.planes = 2, .size_in = {3, 600}, .kernel = {3, 5}, .stride = {1, 1}, .padding = {1, 4}});
  add({.planes = 0, .size_in = {3, 3}, .kernel = {2, 2}});
  return all;
}

// Calls f(window, place) for all places inside each window, row by row.
template <class F>
void for_each_place(const loop::Pooling& g, F&& f) {
  for (std::int64_t p = 0; p < g.planes; ++p) {
    for (std::int64_t i = 0; i < g.size_out[0]; ++i) {
      for (std::int64_t j = 0; j < g.size_out[1]; ++j) {
        for (std::int64_t u = 0; u < g.kernel[0]; ++u) {
          for (std::int64_t v = 0; v < g.kernel[1]; ++v) {
            const std::int64_t row = i * g.stride[0] + u - g.padding[0];
            const std::int64_t column = j * g.stride[1] + v - g.padding[1];
            if (row < 0 || row >= g.size_in[0] || column < 0 || column >= g.size_in[1]) continue;
            f(at((p * g.size_out[0] + i) * g.size_out[1] + j),
              at((p * g.size_in[0] + row) * g.size_in[1] + column));
          }
        }
      }
    }
  }
}

TYPED_TEST(BackendConv, PoolsCombineWindows) {
  using T = TypeParam;
  // Halves near zero do not get closer to each other than 2^-24.
  constexpr double Spacing = std::is_same_v<T, Float16> ? 0x1p-24 : 0;
  for (PoolCase t : pool_cases()) {
    loop::Pooling& g = t.g;
    g.dtype = dtype_of<T>;
    const std::vector<T> x = random_elements<T>(g.planes * g.size_in[0] * g.size_in[1], 3);
    const std::int64_t count = g.planes * g.size_out[0] * g.size_out[1];
    for (const ReduceKind kind :
         {ReduceKind::Sum, ReduceKind::Mean, ReduceKind::Max, ReduceKind::Min, ReduceKind::Prod}) {
      g.kind = kind;
      g.count_padding = t.count_padding;
      const auto out = same_with_all_pools<T>(
          count, [&](ThreadPool& pool, T* y) { pool_forward(pool, g, x.data(), y); });
      std::vector<Numbers> windows(at(count));
      for_each_place(g, [&](std::size_t w, std::size_t p) {
        windows[w].push_back(static_cast<double>(x[p]));
      });
      for (std::size_t w = 0; w < windows.size(); ++w) {
        double total = kind == ReduceKind::Prod ? 1 : 0;
        double size = 0;
        for (std::size_t i = 0; i < windows[w].size(); ++i) {
          const double v = windows[w][i];
          size += std::abs(v);
          if (kind == ReduceKind::Prod) {
            total *= v;
          } else if (kind == ReduceKind::Max) {
            total = i == 0 ? v : std::max(total, v);
          } else if (kind == ReduceKind::Min) {
            total = i == 0 ? v : std::min(total, v);
          } else {
            total += v;
          }
        }
        if (kind == ReduceKind::Mean) {
          total /= t.count_padding ? static_cast<double>(g.kernel[0] * g.kernel[1])
                                   : static_cast<double>(windows[w].size());
        }
        if (kind == ReduceKind::Prod) size = std::abs(total);
        ASSERT_NEAR(static_cast<double>(out[w]), total, tolerance<T>() * size + Spacing);
      }
    }
  }
}

TYPED_TEST(BackendConv, MaxPoolsGradientGoesToTheFirstMaximum) {
  using T = TypeParam;
  for (PoolCase t : pool_cases()) {
    loop::Pooling& g = t.g;
    g.dtype = dtype_of<T>;
    std::vector<T> x = random_elements<T>(g.planes * g.size_in[0] * g.size_in[1], 4);
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<T>(std::round(static_cast<double>(x[i])));  // many ties
      if (i % 13 == 5) x[i] = static_cast<T>(std::numeric_limits<double>::quiet_NaN());
      if (i % 3 == 1) x[i] = static_cast<T>(-std::numeric_limits<double>::infinity());
    }
    const std::int64_t count = g.planes * g.size_out[0] * g.size_out[1];
    const std::vector<T> dy = random_elements<T>(count, 5);
    std::vector<std::int64_t> best(at(count), -1);
    for_each_place(g, [&](std::size_t w, std::size_t p) {
      const double here = static_cast<double>(x[p]);
      if (best[w] >= 0) {
        const double held = static_cast<double>(x[at(best[w])]);
        if (std::isnan(held) || !(std::isnan(here) || here > held)) return;
      }
      best[w] = static_cast<std::int64_t>(p);
    });
    Numbers expected(x.size());
    for (std::size_t w = 0; w < best.size(); ++w)
      expected[at(best[w])] += static_cast<double>(dy[w]);
    const auto dx = same_with_all_pools<T>(
        static_cast<std::int64_t>(x.size()),
        [&](ThreadPool& pool, T* to) { max_pool_backward(pool, g, x.data(), dy.data(), to); });
    for (std::size_t i = 0; i < dx.size(); ++i) {
      ASSERT_NEAR(static_cast<double>(dx[i]), expected[i], 40 * tolerance<T>());
    }
    const std::vector<T> v = random_elements<T>(static_cast<std::int64_t>(x.size()), 6);
    const auto chosen = same_with_all_pools<T>(
        count, [&](ThreadPool& pool, T* to) { max_pool_select(pool, g, x.data(), v.data(), to); });
    for (std::size_t w = 0; w < chosen.size(); ++w) {
      ASSERT_EQ(static_cast<double>(chosen[w]), static_cast<double>(v[at(best[w])]));
    }
  }
}

}  // namespace
}  // namespace ricci::cpu::conv_test
