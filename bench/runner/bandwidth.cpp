#include "runner/bandwidth.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

namespace ricci::bench {

double copy_bandwidth() {
  constexpr std::size_t Bytes = std::size_t{128} << 20U;
  constexpr int Rounds = 15;
  const std::size_t threads = std::max(1U, std::thread::hardware_concurrency());
  const std::size_t share = Bytes / threads;
  const std::vector<char> from(Bytes, 1);
  std::vector<char> to(Bytes, 2);
  std::vector<double> seconds;
  for (int round = 0; round < Rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    {
      std::vector<std::jthread> workers;
      workers.reserve(threads);
      for (std::size_t i = 0; i < threads; ++i) {
        workers.emplace_back(
            [&, i] { std::memcpy(to.data() + i * share, from.data() + i * share, share); });
      }
    }
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::ranges::sort(seconds);
  return 2.0 * static_cast<double>(share * threads) / seconds[seconds.size() / 2];
}

}  // namespace ricci::bench
