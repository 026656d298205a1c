#include "report.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <set>
#include <variant>

#include "ricci/compiler/schedule/program.h"

namespace gpt {
namespace {

using namespace ricci;  // NOLINT: examples read better without prefixes

double megabytes(std::int64_t bytes) { return static_cast<double>(bytes) / 1e6; }

std::int64_t bytes_of(std::span<const Port> ports) {
  std::int64_t bytes = 0;
  for (const Port& port : ports) {
    bytes += Tensor::splat(port.type, 0).numel() * size_of(port.type.dtype);
  }
  return bytes;
}

}  // namespace

std::string describe(const TrainingStep& training) {
  const Program& program = training.compiled().program();
  std::size_t kernels = 0;
  std::size_t calls = 0;
  std::size_t largest = 0;
  std::set<NodeId> fused;  // ops that share a kernel with others; some are computed in several
  for (const Step& step : program.steps) {
    const auto* step_kernels = std::get_if<KernelStep>(&step.what);
    if (step_kernels == nullptr) {
      ++calls;
      continue;
    }
    for (const Launch& launch : step_kernels->launches) {
      ++kernels;
      const std::vector<NodeId>& nodes = launch.from.nodes;
      largest = std::max(largest, nodes.size());
      if (nodes.size() > 1) fused.insert(nodes.begin(), nodes.end());
    }
  }

  std::array<char, 512> text{};
  std::snprintf(text.data(), text.size(),
                "  %zu ops became %zu steps: %zu generated kernels, %zu calls of matrix products "
                "and the like\n"
                "  %zu ops share a kernel with others; the largest has %zu\n"
                "  memory: %.1f MB of params, optimiser state and inputs, updated in place;\n"
                "  %.1f MB for everything else at the peak (it cannot be less than %.1f MB)\n",
                program.graph->size(), program.steps.size(), kernels, calls, fused.size(), largest,
                megabytes(bytes_of(training.compiled().inputs())), megabytes(program.arena_bytes),
                megabytes(program.live_bytes));
  return text.data();
}

std::string describe(const Profile& profile) {
  std::map<std::string, double> seconds;
  double total = 0;
  for (const ProfileRow& row : profile.rows()) {
    if (row.depth > 0) continue;  // counted with the step that runs it
    seconds[row.kind] += row.seconds;
    total += row.seconds;
  }
  std::vector<std::pair<std::string, double>> shares(seconds.begin(), seconds.end());
  std::ranges::sort(shares, std::greater{}, &std::pair<std::string, double>::second);

  std::string text = "Time by kind of step:";
  for (const auto& [kind, time] : shares) {
    std::array<char, 96> share{};
    std::snprintf(share.data(), share.size(), " %s %.0f %%", kind.c_str(), 100 * time / total);
    text += share.data();
    text += kind == shares.back().first ? "\n" : ",";
  }
  return text;
}

}  // namespace gpt
