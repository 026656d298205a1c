#include "backend/cuda/structured/plan_builder.h"

#include <algorithm>

#include <fmt/format.h>

#include "backend/cuda/codegen/expression.h"
#include "backend/cuda/codegen/prelude.h"
#include "support/align.h"

namespace ricci::cuda {
namespace {

constexpr const char* Name = "call";
constexpr std::int32_t Threads = 256;
constexpr std::int64_t ScratchAlignment = 256;
// Blocks beyond these go round: a grid has a limit, and threads that stay cost nothing.
constexpr std::int64_t MostBlocks = 1 << 20;

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
  std::string body = "i64 rest = i, at = 0;\n";
  for (std::size_t a = dims.size(); a-- > 0;) {
    if (dims[a] == 1) continue;
    body += fmt::format("  at += rest % {}LL * {}LL;\n  rest /= {}LL;\n", dims[a],
                        view.layout.strides[a], dims[a]);
  }
  body += "  to[i] = from[at];";
  const DType dtype = view.type.dtype;
  for_each(count, std::vector<Parameter>{{operand(k), dtype, "from"}, {copy, dtype, "to", true}},
           body);
  return copy;
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
                         std::string_view before, std::int64_t shared_bytes) {
  if (blocks == 0) return;  // of one of several results that is empty
  CallLaunch out;
  std::string list;
  for (const Parameter& p : parameters) {
    out.places.push_back(p.place);
    if (p.place.in == Place::In::Number) {
      list += fmt::format("i64 {}, ", p.name);
      continue;
    }
    list += fmt::format("{}{}* __restrict__ {}, ", p.written ? "" : "const ", stored_type(p.dtype),
                        p.name);
  }
  out.text = {.name = Name,
              .text = with_prelude(fmt::format(
                  "{}\nextern \"C\" __global__ void __launch_bounds__({}) {}({}void* scratch, "
                  "ricci_fault* fault, unsigned origin) {{\n  {}\n}}\n",
                  before, threads, Name, list, body)),
              .blocks = blocks,
              .threads = threads,
              .shared_bytes = static_cast<std::int32_t>(shared_bytes),
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
