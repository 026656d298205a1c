// ricci bench --scaling: how the time of a graph falls with the number of threads.
#include <algorithm>

#include <fmt/format.h>

#include "ricci/support/error.h"

#include "commands/bench_run.h"

namespace ricci::tool {
namespace {

// 1, 2, 4, … and the most there may be.
std::vector<int> counts_up_to(int most) {
  std::vector<int> counts;
  for (int n = 1; n < most; n *= 2) counts.push_back(n);
  counts.push_back(most);
  return counts;
}

void require_same_bits(const BenchRun& one, const BenchRun& other) {
  for (std::size_t o = 0; o < one.results().size(); ++o) {
    if (std::ranges::equal(one.results()[o].bytes(), other.results()[o].bytes())) continue;
    throw InternalError(
        fmt::format("output {} has other bits with {} threads than with one", o, other.threads()));
  }
}

std::string gains(std::vector<StepTimes> alone, const std::vector<StepTimes>& together,
                  int threads) {
  struct Gain {
    std::size_t step;
    double before;
    double after;
  };
  std::vector<Gain> steps;
  for (std::size_t s = 0; s < alone.size(); ++s) {
    steps.push_back({s, median(alone[s].ms), median(together[s].ms)});
  }
  // First where most could be gained: what it takes beyond its share.
  const auto waste = [&](const Gain& g) { return g.after - g.before / threads; };
  std::ranges::sort(steps, [&](const Gain& a, const Gain& b) {
    return waste(a) != waste(b) ? waste(a) > waste(b) : a.step < b.step;
  });
  constexpr std::size_t Most = 12;
  if (steps.size() > Most) steps.resize(Most);
  std::string text = fmt::format("{:>6} {:<10}{:>10}{:>10}{:>9}  {}\n", "step", "by", "alone ms",
                                 fmt::format("by {} ms", threads), "speedup", "ops");
  for (const Gain& g : steps) {
    text += fmt::format("{:>6} {:<10}{:>10.4f}{:>10.4f}{:>9.2f}  {}\n", g.step, alone[g.step].by,
                        g.before, g.after, g.before / std::max(g.after, 1e-9), alone[g.step].ops);
  }
  return text;
}

}  // namespace

std::string scaling_text(const Graph& graph, const CheckedFeeds& feeds,
                         const BenchRunOptions& options, std::size_t reps) {
  const int most = Device::named(options.device, options.threads).threads();
  std::vector<std::unique_ptr<BenchRun>> runs;
  for (const int threads : counts_up_to(most)) {
    BenchRunOptions own = options;
    own.threads = threads;
    runs.push_back(std::make_unique<BenchRun>(graph, feeds, own));
    (void)runs.back()->run_ms();
    require_same_bits(*runs.front(), *runs.back());
  }
  std::vector<std::vector<double>> times(runs.size());
  for (std::size_t i = 0; i < reps; ++i) {
    for (std::size_t r = 0; r < runs.size(); ++r) times[r].push_back(runs[r]->run_ms());
  }
  std::string text = fmt::format("@{} on {}: medians of {} runs in turns, the same bits\n",
                                 graph.name(), options.device, reps);
  text += fmt::format("{:>8}{:>12}{:>9}{:>12}\n", "threads", "ms", "speedup", "efficiency");
  const double alone = median(times.front());
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const double speedup = alone / std::max(median(times[r]), 1e-9);
    text += fmt::format("{:>8}{:>12.4f}{:>9.2f}{:>11.0f}%\n", runs[r]->threads(), median(times[r]),
                        speedup, 100 * speedup / runs[r]->threads());
  }
  if (runs.size() > 1) {
    text += "steps that gain least:\n" +
            gains(runs.front()->steps(reps), runs.back()->steps(reps), most);
  }
  return text;
}

}  // namespace ricci::tool
