// What of a kernel its code depends on.
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>

#include "backend/cpu/codegen/kernel_code.h"
#include "backend/cpu/run/tiling.h"

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

bool draws_numbers(const Kernel& kernel) {
  return std::ranges::any_of(kernel.code, [](const Instr& i) { return i.code == Code::Random; });
}

// Elements that are picked by an index each are read one by one in any case; a slice that is picked
// by one is read as it lies.
bool picks_slices(const Kernel& kernel, const Instr& i) {
  return std::ranges::any_of(i.access.terms, [&](const loop::Term& t) {
    return !kernel.code[static_cast<std::size_t>(t.index)].per_element;
  });
}

// Is everything read and stored by vectors where lanes go along `axis`? Elements that are combined
// may be read one by one. `far`: rows may be stored so far from each other.
bool suits_lanes(const Kernel& kernel, std::size_t axis, std::int64_t far) {
  const bool combines = !kernel.reductions.empty();
  for (const Instr& i : kernel.code) {
    if (is_complex(i.dtype) || picks_slices(kernel, i)) return false;
    if (i.code != Code::Load || !i.access.terms.empty()) continue;
    const std::int64_t s = i.access.strides[axis];
    const bool local = kernel.arguments[static_cast<std::size_t>(i.access.argument)].role ==
                       loop::ArgumentRole::Local;
    if (!local && !combines && s != 0 && s != 1 && !is_narrow_stride(s, i.dtype)) return false;
  }
  for (const loop::Stage& stage : kernel.stages) {
    for (const loop::Store& store : stage.stores) {
      const loop::Argument& to = kernel.arguments[static_cast<std::size_t>(store.access.argument)];
      if (to.dtype != kernel.code[static_cast<std::size_t>(store.value)].dtype) return false;
      const std::int64_t s = store.access.strides[axis];
      if (to.role == loop::ArgumentRole::Local || s == 1) continue;
      if (s <= 0 || s > far || is_complex(to.dtype)) return false;
    }
  }
  return true;
}

}  // namespace

bool is_narrow_stride(std::int64_t stride, DType dtype) {
  if (is_complex(dtype)) return false;
  return stride == -1 || (std::abs(stride) >= 2 && std::abs(stride) <= NearStride);
}

bool fits_lanes(const Kernel& kernel, std::int64_t row) {
  return row == 1 ||
         (std::has_single_bit(static_cast<std::uint64_t>(row)) && !draws_numbers(kernel));
}

int short_rows_for(const Kernel& kernel, const TargetInfo& target) {
  constexpr std::int64_t LongestCombined = 8;
  constexpr std::int64_t LongestOfMuchWork = 15;  // longer rows are read one by one, which costs
  constexpr std::int64_t MuchWork = 10;           // for an element
  constexpr std::int64_t LongestMoved = 6;        // sorting the lanes out takes the square of it
  constexpr std::int64_t MostWork = 1024;
  constexpr std::int64_t MuchInRow = 40;  // for an element, with what is done once
  constexpr std::int64_t FarStride = 64;
  if (is_short_kernel(kernel) || !kernel.accumulators.empty() || kernel.kept != kernel.outer ||
      kernel.kept == 0 || draws_numbers(kernel)) {
    return 0;
  }
  const std::int64_t row = kernel.row_elements();
  std::int64_t once = 0;
  std::int64_t each = 0;
  for (const Instr& i : kernel.code) (i.per_element ? each : once) += loop::weight(i);
  const std::int64_t combined = each < MuchWork ? LongestCombined : LongestOfMuchWork;
  if (row < 2 || row > (kernel.reductions.empty() ? LongestMoved : combined)) return 0;
  const std::int64_t work = once + row * each;
  int lanes = target.vector_bits / 32;
  for (const loop::Stage& stage : kernel.stages) {
    lanes = std::min(lanes, lanes_for(kernel, stage, target));
  }
  const std::size_t axis = kernel.kept - 1;
  if (work > MostWork || row >= lanes || 2 * kernel.extents[axis] < lanes) return 0;
  // Functions of a row cost so much more in a lane each than sorting out what is stored.
  const bool much = !kernel.reductions.empty() && work >= row * MuchInRow;
  return suits_lanes(kernel, axis, much ? FarStride : NearStride) ? lanes : 0;
}

Kernel with_rows_in_lanes(const Kernel& kernel) {
  Kernel out = kernel;
  const auto move = [&](std::vector<std::int64_t>& axes) {
    const auto lane = axes.begin() + static_cast<std::ptrdiff_t>(kernel.kept - 1);
    std::rotate(lane, lane + 1, axes.end());
  };
  move(out.extents);
  loop::for_each_strides(out, move);
  out.kept = out.outer = kernel.kept - 1;
  return out;
}

bool reads_squares(const Kernel& kernel, const TargetInfo& target) {
  return lanes_for(kernel, kernel.stages.back(), target) >= 4;
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
