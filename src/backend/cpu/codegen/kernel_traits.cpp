// What of a kernel its code depends on.
#include <algorithm>
#include <limits>

#include "backend/cpu/codegen/kernel_code.h"

namespace ricci::cpu {
namespace {

using loop::Code;
using loop::Instr;
using loop::Kernel;
using loop::Reg;

// One integer for all elements, such as the seed of random numbers, takes no lanes.
bool is_lone_integer(const Instr& i) {
  return i.code == Code::Load && is_int(i.dtype) && i.access.terms.empty() &&
         i.access.guards.empty() &&
         std::ranges::all_of(i.access.strides, [](std::int64_t s) { return s == 0; });
}

}  // namespace

bool is_short_kernel(const Kernel& kernel) {
  constexpr std::int64_t FewElements = 4096;
  return kernel.rows() * kernel.row_elements() <= FewElements;
}

// How many lanes suit a stage: as many as fill a register with its widest floats.
int lanes_for(const Kernel& kernel, const loop::Stage& stage, const TargetInfo& target) {
  std::int64_t widest = 0;
  std::int64_t widest_int = 1;
  const auto count = [&](DType d) {
    if (is_differentiable(d)) widest = std::max({widest, size_of(d), std::int64_t{4}});
    widest_int = std::max(widest_int, size_of(d));
  };
  for (const Reg r : stage.code) {
    const Instr& i = kernel.code[static_cast<std::size_t>(r)];
    if (!is_lone_integer(i)) count(i.dtype);
  }
  for (const loop::Store& s : stage.stores) {
    count(kernel.arguments[static_cast<std::size_t>(s.access.argument)].dtype);
  }
  for (const std::int32_t m : stage.reductions) {
    count(kernel.reductions[static_cast<std::size_t>(m)].dtype);
  }
  for (const std::int32_t m : stage.accumulators) {
    count(kernel.accumulators[static_cast<std::size_t>(m)].dtype);
  }
  if (widest == 0) widest = std::max<std::int64_t>(widest_int, 4);
  return std::max(target.vector_bits / static_cast<int>(8 * widest), 1);
}

// Vectors handled together: reductions need several to hide the latency of adding; everything
// else is kept busy by the processor itself. Fewer compile sooner.
int unroll_for(const Kernel& kernel, const loop::Stage& stage) {
  if (is_short_kernel(kernel)) return 1;
  std::int64_t total = 0;
  for (const Reg r : stage.code) total += loop::weight(kernel.code[static_cast<std::size_t>(r)]);
  if (stage.reductions.empty()) return total > 8 ? 1 : 2;
  if (total > 24) return 1;
  return total > 8 ? 2 : 4;
}

StartedKernel from_first_places(const Kernel& kernel) {
  StartedKernel out{kernel, {}};
  constexpr std::int64_t None = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> first(kernel.arguments.size(), None);
  const auto for_accesses = [&](auto&& f) {
    for (Instr& i : out.kernel.code) {
      if (i.code == Code::Load) f(i.access);
    }
    for (loop::Stage& stage : out.kernel.stages) {
      for (loop::Store& s : stage.stores) f(s.access);
    }
  };
  for_accesses([&](loop::Access& a) {
    // A guarded access may be told to begin before the array: it never does.
    if (!a.guards.empty()) return;
    std::int64_t& least = first[static_cast<std::size_t>(a.argument)];
    least = std::min(least, a.offset);
  });
  for (std::size_t i = 0; i < first.size(); ++i) {
    const bool local = kernel.arguments[i].role == loop::ArgumentRole::Local;
    if (local || first[i] == None) first[i] = 0;
  }
  if (std::ranges::all_of(first, [](std::int64_t n) { return n == 0; })) return out;
  for_accesses([&](loop::Access& a) { a.offset -= first[static_cast<std::size_t>(a.argument)]; });
  for (std::size_t i = 0; i < first.size(); ++i) {
    out.starts.push_back(first[i] * size_of(kernel.arguments[i].dtype));
  }
  return out;
}

std::string code_key(const Kernel& kernel) {
  Kernel plain = kernel;
  const bool is_short = is_short_kernel(kernel);
  plain.name = "k";
  // Chunks stay: they say where accumulated results go.
  const bool is_flat = kernel.flat;  // then its size is part of what a tile is given
  if (is_flat) plain.extents = {0};
  return (is_short ? "short " : "") + std::string(is_flat ? "flat " : "") + loop::to_string(plain);
}

}  // namespace ricci::cpu
