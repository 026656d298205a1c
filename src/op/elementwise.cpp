#include "ricci/op/elementwise.h"

#include <fmt/format.h>

#include "op/infer_rules.h"

namespace ricci {
namespace {

constexpr const char* OfParts = "take real(z), imag(z) or abs(z) where real numbers are meant";

// Families of two operands: one dtype (c1), shapes that broadcast (c2), a dtype the row takes (c3).
Inferred infer_two(const ElementwiseRow& row, const InferContext& in) {
  require_dtypes(in, "c1", 0, 2, dtypes::all);
  Dims dims = require_broadcast(in, "c2", in[0].dims, in[1].dims);
  const DType dtype = in[0].dtype;
  if (!row.dtypes.has(dtype)) {
    in.reject("c3", fmt::format("'{}' is not defined for {}", row.name, name(dtype)),
              is_complex(dtype)      ? OfParts
              : dtype == DType::Bool ? "cast them to a number, or use a logical function"
                                     : "");
  }
  return Type{row.result_dtype(dtype), std::move(dims)};
}

// A cotangent is like the value it belongs to.
Type infer_backward(const InferContext& in, DTypeSet dtypes) {
  require_dtypes(in, "c1", 0, 2, dtypes);
  if (in[0].dims != in[1].dims) {
    in.reject("c2", fmt::format("x is {}, but dy is {}", in[0].to_string(), in[1].to_string()));
  }
  return in[0];
}

}  // namespace

Inferred infer(const op::Unary& op, const InferContext& in) {
  const ElementwiseRow& r = row(op.kind);
  if (!r.dtypes.has(in[0].dtype)) {
    in.reject("c1", fmt::format("'{}' is not defined for {}", r.name, name(in[0].dtype)),
              is_complex(in[0].dtype) ? OfParts : "cast the operand first");
  }
  return in[0].with(r.result_dtype(in[0].dtype));
}

Inferred infer(const op::Binary& op, const InferContext& in) { return infer_two(row(op.kind), in); }
Inferred infer(const op::Compare& op, const InferContext& in) {
  return infer_two(row(op.kind), in);
}

Inferred infer(const op::Where&, const InferContext& in) {
  require_dtypes(in, "c1", 1, 3, dtypes::all);
  const Dims branches = require_broadcast(in, "c2", in[1].dims, in[2].dims);
  return Type{in[1].dtype, require_broadcast(in, "c2", in[0].dims, branches)};
}

Inferred infer(const op::Cast& op, const InferContext& in) { return in[0].with(op.to); }
Inferred infer(const op::StopGradient&, const InferContext& in) { return in[0]; }

Inferred infer(const op::ReluBackward&, const InferContext& in) {
  return infer_backward(in, dtypes::floats);
}

Inferred infer(const op::ActivationBackward& op, const InferContext& in) {
  Type dx = infer_backward(in, dtypes::floats | dtypes::complexes);
  const ElementwiseRow& r = row(op.kind);
  if (!r.dtypes.has(dx.dtype) || r.result_dtype(dx.dtype) != dx.dtype ||
      (op.kind == UnaryKind::Conjugate && is_complex(dx.dtype))) {
    in.reject("c3", fmt::format("'{}' has no derivative for {}", r.name, name(dx.dtype)));
  }
  return dx;
}

}  // namespace ricci
