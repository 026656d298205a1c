#include "backend/cuda/structured/plan_builder.h"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include "backend/cuda/codegen/expression.h"
#include "backend/cuda/codegen/prelude.h"
#include "loop/reach.h"
#include "support/align.h"

namespace ricci::cuda {
namespace {

constexpr const char* Name = "call";
constexpr std::int32_t Threads = 256;
constexpr std::int64_t ScratchAlignment = 256;
// Blocks beyond these go round: a grid has a limit, and threads that stay cost nothing.
constexpr std::int64_t MostBlocks = 1 << 20;

// The axes of a view that have more than one element; those that lie as one are one.
struct Axes {
  StaticDims dims;
  std::vector<std::int64_t> strides;
};

Axes axes_of(const BufferView& view) {
  Axes axes;
  const StaticDims dims = view.type.static_dims();
  for (std::size_t a = 0; a < dims.size(); ++a) {
    const std::int64_t stride = view.layout.strides[a];
    if (dims[a] == 1) continue;
    if (!axes.dims.empty() && axes.strides.back() == dims[a] * stride) {
      axes.dims.back() *= dims[a];
      axes.strides.back() = stride;
    } else {
      axes.dims.push_back(dims[a]);
      axes.strides.push_back(stride);
    }
  }
  return axes;
}

// How many elements can be moved at once that begin at multiples of `steps`.
int lanes_of(DType dtype, std::span<const std::int64_t> steps) {
  auto lanes = static_cast<int>(std::max<std::int64_t>(VectorBytes / size_of(dtype), 1));
  while (std::ranges::any_of(steps, [&](std::int64_t s) { return s % lanes != 0; })) lanes /= 2;
  return lanes;
}

// Do places fit in 32 bits?
bool is_short(const Axes& axes) {
  constexpr std::int64_t Most = std::numeric_limits<std::int32_t>::max();
  loop::Reach reach(0);
  std::int64_t count = 1;
  for (std::size_t a = 0; a < axes.dims.size(); ++a) {
    reach.add(axes.strides[a], axes.dims[a]);
    count *= axes.dims[a];
  }
  return count <= Most && reach.is_known() && reach.low() >= -Most && reach.high() <= Most;
}

}  // namespace

std::int64_t bytes_of(const BufferView& view) {
  return *view.type.numel() * size_of(view.type.dtype);
}

Place PlanBuilder::reserve(std::int64_t bytes) {
  const Place place = scratch(plan.scratch_bytes);
  plan.scratch_bytes += aligned(std::max<std::int64_t>(bytes, 1), ScratchAlignment);
  return place;
}

Place PlanBuilder::row_major(std::size_t k) {
  const BufferView& view = step_.operands[k];
  const StaticDims dims = view.type.static_dims();
  const std::int64_t count = *view.type.numel();
  // A view begins at its offset: see first_element of the runner.
  if (count == 0 || loop::is_contiguous({0, view.layout.strides}, dims)) return operand(k);
  const Place copy = reserve(bytes_of(view));
  const DType dtype = view.type.dtype;
  Axes axes = axes_of(view);
  int lanes = 1;
  if (axes.strides.back() == 1) {
    std::vector<std::int64_t> steps(axes.strides.begin(), axes.strides.end() - 1);
    steps.push_back(axes.dims.back());
    steps.push_back(view.layout.offset);
    lanes = lanes_of(dtype, steps);
  }
  const bool is_wide = !is_short(axes);
  axes.dims.back() /= lanes;
  axes.strides.back() *= lanes;
  std::string body =
      is_wide ? "u64 rest = i;\n  i64 at = 0;\n" : "unsigned rest = i;\n  int at = 0;\n";
  for (std::size_t a = axes.dims.size(); a-- > 0;) {
    body += fmt::format("  at += {}(rest % {}u) * {};\n  rest /= {}u;\n", is_wide ? "i64" : "int",
                        axes.dims[a], integer_text(axes.strides[a]), axes.dims[a]);
  }
  const std::string pack = fmt::format("Pack<{}, {}>", stored_type(dtype), lanes);
  body += fmt::format("  (({0}*)to)[i] = *(const {0}*)(from + at);", pack);
  for_each(count / lanes,
           std::vector<Parameter>{{operand(k), dtype, "from"}, {copy, dtype, "to", true}}, body);
  return copy;
}

int PlanBuilder::lanes(std::size_t k, std::int64_t run) const {
  const BufferView& view = step_.operands[k];
  const bool copied = !loop::is_contiguous({0, view.layout.strides}, view.type.static_dims());
  return lanes_of(view.type.dtype,
                  std::array{run, copied ? 0 : view.layout.offset, step_.results[0].layout.offset});
}

void PlanBuilder::for_each(std::int64_t count, std::span<const Parameter> parameters,
                           std::string_view body, std::string_view before) {
  if (count == 0) return;
  const std::int64_t blocks = std::min((count + Threads - 1) / Threads, MostBlocks);
  launch(blocks, Threads, parameters,
         fmt::format("for (i64 i = i64(blockIdx.x) * {0} + threadIdx.x; i < {1}LL;\n"
                     "       i += i64(gridDim.x) * {0}) {{\n  {2}\n  }}",
                     Threads, count, body),
         before);
}

void PlanBuilder::launch(std::int64_t blocks, std::int32_t threads,
                         std::span<const Parameter> parameters, std::string_view body,
                         std::string_view before, BlockRoom room) {
  if (blocks == 0) return;  // of one of several results that is empty
  CallLaunch out;
  std::string list;
  for (const Parameter& p : parameters) {
    out.places.push_back(p.place);
    if (p.place.in == Place::In::Number) {
      list += fmt::format("i64 {}, ", p.name);
      continue;
    }
    list += fmt::format("{}{}*{} {}, ", p.written ? "" : "const ", stored_type(p.dtype),
                        p.shared ? "" : " __restrict__", p.name);
  }
  const std::string bounds =
      room.at_once > 1 ? fmt::format("{}, {}", threads, room.at_once) : fmt::format("{}", threads);
  out.text = {.name = Name,
              .text = with_prelude(fmt::format(
                  "{}\nextern \"C\" __global__ void __launch_bounds__({}) {}({}void* scratch, "
                  "ricci_fault* fault, unsigned origin) {{\n  {}\n}}\n",
                  before, bounds, Name, list, body)),
              .blocks = blocks,
              .threads = threads,
              .shared_bytes = static_cast<std::int32_t>(room.shared_bytes),
              .pointers = parameters.size()};
  plan.parts.emplace_back(std::move(out));
}

void PlanBuilder::zeros(Place at, std::int64_t bytes) {
  if (bytes > 0) plan.parts.emplace_back(Zeros{at, bytes});
}

void PlanBuilder::copy(Place to, Place from, std::int64_t bytes) {
  if (bytes > 0) plan.parts.emplace_back(PlainCopy{to, from, bytes});
}

}  // namespace ricci::cuda
