// How many tokens a second a model of GPT-2's size goes on by, with random weights, and how many
// its memory would allow: every token reads every weight once.
//
//   ricci_bench_decode [--threads N] [--tokens N] [--prompt N] [--layers N] [--rows N] [scheme…]
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "ricci/serve.h"

namespace ricci {
namespace {

using Clock = std::chrono::steady_clock;

struct Settings {
  int threads = 2;
  std::int64_t tokens = 64, prompt = 64, layers = 12, rows = 1;
  std::vector<std::string> schemes;
};

double seconds_since(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

// Bytes a second that so many threads read together, of arrays no cache holds: the best of a few.
double read_bandwidth(int threads) {
  constexpr std::size_t Words = std::size_t{1} << 25;  // 256 MiB each
  std::vector<std::vector<std::uint64_t>> arrays(static_cast<std::size_t>(threads),
                                                 std::vector<std::uint64_t>(Words, 1));
  double best = 0;
  for (int round = 0; round < 5; ++round) {
    std::vector<std::uint64_t> sums(arrays.size());
    const Clock::time_point start = Clock::now();
    std::vector<std::thread> readers;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      readers.emplace_back([&, i] {
        std::uint64_t a = 0, b = 0, c = 0, d = 0;
        for (std::size_t k = 0; k < Words; k += 4) {
          a += arrays[i][k];
          b ^= arrays[i][k + 1];
          c += arrays[i][k + 2];
          d ^= arrays[i][k + 3];
        }
        sums[i] = a + b + c + d;
      });
    }
    for (std::thread& t : readers) t.join();
    const double bytes = static_cast<double>(arrays.size() * Words * sizeof(std::uint64_t));
    if (sums[0] != 0) best = std::max(best, bytes / seconds_since(start));
  }
  return best;
}

// What a token reads: all weights of maps; of tables a row.
double bytes_read(const nn::Gpt& gpt, std::int64_t all) {
  const auto bytes = [](const nn::Embedding& e) {
    return static_cast<double>(e.w.size() * size_of(e.w.dtype()));
  };
  double out = static_cast<double>(all) - bytes(*gpt.places);
  if (gpt.tokens.packed) out -= bytes(gpt.tokens);
  return out;
}

void measure(const nn::Gpt& gpt, const std::string& what, const Settings& s, double bandwidth) {
  const Device device = Device::named("cpu", s.threads);
  Generator g(gpt, {.rows = static_cast<std::size_t>(s.rows), .device = device});
  std::vector<std::int32_t> prompt(static_cast<std::size_t>(s.prompt));
  for (std::size_t i = 0; i < prompt.size(); ++i) {
    prompt[i] = static_cast<std::int32_t>(i * 997 % 50257);
  }
  const GenerateOptions options{.max_tokens = s.tokens + 1, .sampling = {.temperature = 0}};
  const auto start_all = [&] {
    for (std::int64_t r = 0; r < s.rows; ++r) (void)g.add(prompt, options);
  };
  // Once for the programs.
  start_all();
  while (g.active() > 0) (void)g.step();
  start_all();
  const Clock::time_point reading = Clock::now();
  std::size_t first = 0;
  while (first < static_cast<std::size_t>(s.rows)) first += g.step().size();
  const double prompt_seconds = seconds_since(reading);
  std::vector<double> steps;
  while (g.active() > 0) {
    const Clock::time_point start = Clock::now();
    (void)g.step();
    steps.push_back(seconds_since(start));
  }
  std::ranges::sort(steps);
  const double median = steps[steps.size() / 2];
  const double quick = steps[steps.size() / 10];  // where others have the machine for a while
  const double read = bytes_read(gpt, g.param_bytes());
  const double limit = bandwidth / read;
  const auto rows = static_cast<double>(s.rows);
  fmt::print("{:<24} {:>8.0f} MB {:>9.2f} ms {:>9.1f} {:>9.1f} {:>9.1f} {:>7.0f}% {:>10.0f}\n",
             what, read / 1e6, median * 1e3, rows / median, rows / quick, rows * limit,
             100 / median / limit, static_cast<double>(s.rows * s.prompt) / prompt_seconds);
  std::fflush(stdout);
}

void run(const Settings& s) {
  nn::seed(1);
  nn::Gpt gpt({.vocabulary = 50257,
               .context = 1024,
               .width = 768,
               .heads = 12,
               .layers = s.layers,
               .activation = nn::Activation::GeluTanh});
  gpt = tree_map([](const Array& x) { return x.eval(); }, gpt);
  const double bandwidth = read_bandwidth(s.threads);
  fmt::print("{} threads read {:.1f} GB/s; {} tokens behind {}, {} at a time\n", s.threads,
             bandwidth / 1e9, s.tokens, s.prompt, s.rows);
  fmt::print("{:<24} {:>11} {:>12} {:>9} {:>9} {:>9} {:>8} {:>10}\n", "weights", "read", "step",
             "tokens/s", "quick", "limit", "of it", "prompt/s");
  for (const std::string& scheme : s.schemes) {
    if (scheme == "f32") {
      measure(gpt, scheme, s, bandwidth);
      continue;
    }
    const bool rounds = scheme.ends_with("+i8");
    const std::string name = rounds ? scheme.substr(0, scheme.size() - 3) : scheme;
    measure(nn::pack_weights(gpt, name, {.int8_activations = rounds}), scheme, s, bandwidth);
  }
}

Settings read_settings(std::span<char* const> args) {
  Settings s;
  for (std::size_t i = 1; i < args.size(); ++i) {
    const std::string word = args[i];
    const auto number = [&] { return i + 1 < args.size() ? std::atoll(args[++i]) : 0; };
    if (word == "--threads") {
      s.threads = static_cast<int>(number());
    } else if (word == "--tokens") {
      s.tokens = number();
    } else if (word == "--prompt") {
      s.prompt = number();
    } else if (word == "--layers") {
      s.layers = number();
    } else if (word == "--rows") {
      s.rows = number();
    } else {
      s.schemes.push_back(word);
    }
  }
  if (s.schemes.empty()) s.schemes = {"f32", "q8_0", "q8_0+i8", "q4_k", "q4_k+i8"};
  return s;
}

}  // namespace
}  // namespace ricci

int main(int argc, char** argv) {
  try {
    ricci::run(ricci::read_settings(std::span(argv, static_cast<std::size_t>(argc))));
    return 0;
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
