#include "ricci/op/reduce.h"

#include <algorithm>

#include <fmt/format.h>

#include "op/infer_rules.h"
#include "op/kinds.h"

namespace ricci {
namespace {

DTypeSet allowed(ReduceKind kind) {
  using namespace dtypes;
  switch (kind) {
    case ReduceKind::Sum:
    case ReduceKind::Prod: return floats | ints | complexes;
    case ReduceKind::Mean: return floats | complexes;
    case ReduceKind::Max:
    case ReduceKind::Min: return floats | ints | booleans;
    case ReduceKind::Any:
    case ReduceKind::All: return booleans;
    case ReduceKind::LogSumExp: return floats;
  }
  return {};
}

DTypeSet allowed(CumulativeKind kind) {
  const DTypeSet sortable = dtypes::floats | dtypes::ints;
  return pick_of(kind) != Pick::None ? sortable : sortable | dtypes::complexes;
}

}  // namespace

void op::Reduce::normalize(std::span<const Type>) { std::ranges::sort(axes, {}, &Axis::value); }

Inferred infer(const op::Reduce& op, const InferContext& in) {
  if (!allowed(op.op).has(in[0].dtype)) {
    in.reject("c1", fmt::format("'{}' is not defined for {}", name_of(op.op), name(in[0].dtype)));
  }
  if (std::ranges::adjacent_find(op.axes) != op.axes.end()) {
    in.reject("c2", "an axis is listed twice", "list every axis once");
  }
  Type out{in[0].dtype, {}};
  for (std::size_t i = 0; i < in[0].rank(); ++i) {
    const bool reduced =
        std::ranges::find(op.axes, Axis(static_cast<std::int64_t>(i))) != op.axes.end();
    if (!reduced) {
      out.dims.push_back(in[0].dims[i]);
    } else if (op.keep_dim) {
      out.dims.emplace_back(1);
    }
  }
  return out;
}

Inferred infer(const op::Softmax&, const InferContext& in) {
  require_dtypes(in, "c1", 0, 1, dtypes::floats);
  return in[0];
}

Inferred infer(const op::Cumulative& op, const InferContext& in) {
  if (!allowed(op.kind).has(in[0].dtype)) {
    in.reject("c1", fmt::format("'{}' is not defined for {}", name_of(op.kind), name(in[0].dtype)),
              "cast the operand first");
  }
  return in[0];
}

Inferred infer(const op::CumsumBackward&, const InferContext& in) {
  require_dtypes(in, "c1", 0, 1, allowed(CumulativeKind::Cumsum));
  return in[0];
}

}  // namespace ricci
