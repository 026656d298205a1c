#include "ricci/op/indexing.h"

#include "op/index_rules.h"

namespace ricci {
namespace {

void require_addable(const InferContext& in, std::string_view label) {
  if (in[0].dtype != DType::Bool) return;
  in.reject(label, "bool values cannot be added", "cast to an integer dtype");
}

void require_size(const InferContext& in, std::string_view label, const Dim& size) {
  if (is_negative(size)) in.reject(label, fmt::format("the size {} is negative", size.to_string()));
}

void require_start(const InferContext& in, std::size_t k) {
  require_indices(in, "c1", k);
  if (in[k].rank() != 0) {
    in.reject("c2", fmt::format("start has shape {}, not []", to_string(in[k].dims)),
              "reshape it to rank 0");
  }
}

// Are the shapes equal, leaving one axis out?
bool agree_but_for(const Dims& a, const Dims& b, Axis axis) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (i != axis.index() && a[i] != b[i]) return false;
  }
  return true;
}

std::string both_shapes(const InferContext& in) {
  return fmt::format("shapes {} and {} disagree", to_string(in[0].dims), to_string(in[1].dims));
}

// Does `dims` have `part` from position `at` on?
bool has_part(const Dims& dims, std::size_t at, const Dims& part) {
  if (at + part.size() > dims.size()) return false;
  for (std::size_t i = 0; i < part.size(); ++i) {
    if (dims[at + i] != part[i]) return false;
  }
  return true;
}

// `dims` with the axes [at, at + count) replaced.
Dims replace_axes(const Dims& dims, std::size_t at, std::size_t count, const Dims& by) {
  Dims out(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(at));
  out.insert(out.end(), by.begin(), by.end());
  out.insert(out.end(), dims.begin() + static_cast<std::ptrdiff_t>(at + count), dims.end());
  return out;
}

}  // namespace

Inferred infer(const op::Gather& op, const InferContext& in) {
  require_indices(in, "c1", 1);
  return in[0].with(replace_axes(in[0].dims, op.axis.index(), 1, in[1].dims));
}

Inferred infer(const op::GatherBackward& op, const InferContext& in) {
  require_indices(in, "c1", 1);
  require_addable(in, "c2");
  if (!has_part(in[0].dims, op.axis.index(), in[1].dims)) {
    in.reject("c3",
              fmt::format("dy {} does not have the axes of indices {} from axis {} on",
                          to_string(in[0].dims), to_string(in[1].dims), op.axis.value),
              "dy has the shape of gather's result");
  }
  require_size(in, "c4", op.axis_size);
  return in[0].with(replace_axes(in[0].dims, op.axis.index(), in[1].rank(), {op.axis_size}));
}

Inferred infer(const op::ScatterAdd& op, const InferContext& in) {
  require_indices(in, "c1", 1);
  require_addable(in, "c2");
  if (in[1].rank() == 0 || !has_part(in[0].dims, 0, in[1].dims)) {
    in.reject("c3",
              fmt::format("updates {} do not begin with the axes of indices {}",
                          to_string(in[0].dims), to_string(in[1].dims)),
              "updates have one slice for every index");
  }
  require_size(in, "c4", op.out_dim);
  return in[0].with(replace_axes(in[0].dims, 0, in[1].rank(), {op.out_dim}));
}

Inferred infer(const op::Scatter& op, const InferContext& in) {
  require_indices(in, "c1", 2);
  const bool ordered = op.kind == ScatterKind::Max || op.kind == ScatterKind::Min;
  const DTypeSet not_bool = dtypes::floats | dtypes::ints | dtypes::complexes;
  const DTypeSet not_complex = dtypes::floats | dtypes::ints | dtypes::booleans;
  require_dtypes(in, "c2", 0, 2,
                 op.kind == ScatterKind::Set ? dtypes::all : (ordered ? not_complex : not_bool));
  if (in[0].rank() == 0) in.reject("c3", "x has no axis, so no rows", "reshape it to rank 1");
  const Dims expected = replace_axes(in[0].dims, 0, 1, in[2].dims);
  if (in[1].dims != expected) {
    in.reject("c4",
              fmt::format("updates are {}, but x {} and indices {} need {}", to_string(in[1].dims),
                          to_string(in[0].dims), to_string(in[2].dims), to_string(expected)),
              "updates have one slice of x for every index");
  }
  return in[0];
}

Inferred infer(const op::TakeAlongAxis& op, const InferContext& in) {
  require_indices(in, "c1", 1);
  if (!agree_but_for(in[0].dims, in[1].dims, op.axis)) {
    in.reject("c2", fmt::format("{} outside axis {}", both_shapes(in), op.axis.value),
              "expand the indices to x's shape first");
  }
  return in[0].with(in[1].dims);
}

Inferred infer(const op::ScatterAddAlongAxis& op, const InferContext& in) {
  require_indices(in, "c1", 1);
  require_addable(in, "c2");
  if (in[0].dims != in[1].dims) in.reject("c3", both_shapes(in), "give one index per element");
  require_size(in, "c4", op.axis_size);
  Type out = in[0];
  out.dims[op.axis.index()] = op.axis_size;
  return out;
}

Inferred infer(const op::DynamicNarrow& op, const InferContext& in) {
  require_start(in, 1);
  const Dim& size = in[0].dims[op.axis.index()];
  if (is_negative(op.len) || is_negative(size - op.len)) {
    in.reject("c3", fmt::format("a slice of {} does not fit axis {} of size {}", op.len.to_string(),
                                op.axis.value, size.to_string()));
  }
  Type out = in[0];
  out.dims[op.axis.index()] = op.len;
  return out;
}

Inferred infer(const op::DynamicUpdate& op, const InferContext& in) {
  require_start(in, 2);
  require_dtypes(in, "c3", 0, 2, dtypes::all);
  if (!agree_but_for(in[0].dims, in[1].dims, op.axis) ||
      is_negative(in[0].dims[op.axis.index()] - in[1].dims[op.axis.index()])) {
    in.reject("c4",
              fmt::format("an update {} does not fit {} along axis {}", to_string(in[1].dims),
                          to_string(in[0].dims), op.axis.value),
              "sizes of all other axes are equal");
  }
  return in[0];
}

}  // namespace ricci
