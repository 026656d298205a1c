#include "report.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <set>
#include <variant>

namespace gpt {
namespace {

using namespace ricci;  // NOLINT: examples read better without prefixes

double megabytes(std::int64_t bytes) { return static_cast<double>(bytes) / 1e6; }

std::int64_t bytes_of(std::span<const Port> ports) {
  std::int64_t bytes = 0;
  for (const Port& port : ports)
    bytes += Tensor::splat(port.type, 0).numel() * size_of(port.type.dtype);
  return bytes;
}

}  // namespace

std::string describe(const CompiledGraph& compiled) {
  const Program& program = compiled.program();
  std::size_t kernels = 0;
  std::size_t calls = 0;
  std::set<NodeId> fused;  // ops that share a kernel with others; some are computed in several
  const Step* largest = nullptr;
  for (const Step& step : program.steps) {
    if (!std::holds_alternative<KernelStep>(step.what)) {
      ++calls;
      continue;
    }
    ++kernels;
    if (step.nodes.size() > 1) fused.insert(step.nodes.begin(), step.nodes.end());
    if (largest == nullptr || step.nodes.size() > largest->nodes.size()) largest = &step;
  }

  std::array<char, 1024> text{};
  std::snprintf(text.data(), text.size(),
                "  %zu ops became %zu steps: %zu generated kernels and %zu calls (matrix "
                "products, attention)\n"
                "  %zu ops are fused with others; the largest kernel has %zu\n"
                "  %.1f MB of inputs, params and optimiser state, updated in place\n"
                "  %.1f MB of workspace at the peak (no plan needs less than %.1f MB)\n",
                program.graph->size(), program.steps.size(), kernels, calls, fused.size(),
                largest == nullptr ? 0 : largest->nodes.size(),
                megabytes(bytes_of(compiled.inputs())), megabytes(program.arena_bytes),
                megabytes(program.live_bytes));
  return text.data();
}

}  // namespace gpt
