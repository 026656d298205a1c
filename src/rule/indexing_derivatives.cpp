// Reverse rules of the ops that read and write by index: reading and adding are each other's
// transpose.
#include "rule/derivative_parts.h"
#include "rule/tables/vjp_rules.h"

namespace ricci::rule {

// [SH-08] every index of every axis adds its slice
Cotangents vjp(const op::Gather& op, const VjpContext& c) {
  Cotangents out = c.none();
  const Dim size = c[0].dims()[op.axis.index()];
  if (c.needs(0)) {
    out[0] = gather_backward(c.cotangent(), c[1], {.axis = op.axis, .axis_size = size});
  }
  return out;
}

Cotangents vjp(const op::GatherBackward& op, const VjpContext& c) {
  Cotangents out = c.none();
  if (c.needs(0)) out[0] = gather(c.cotangent(), c[1], {.axis = op.axis});
  return out;
}

Cotangents vjp(const op::ScatterAdd&, const VjpContext& c) {
  Cotangents out = c.none();
  if (c.needs(0)) out[0] = gather(c.cotangent(), c[1], {.axis = 0});
  return out;
}

Cotangents vjp(const op::TakeAlongAxis& op, const VjpContext& c) {
  Cotangents out = c.none();
  const Dim size = c[0].dims()[op.axis.index()];
  if (c.needs(0)) {
    out[0] = scatter_add_along_axis(c.cotangent(), c[1], {.axis = op.axis, .axis_size = size});
  }
  return out;
}

Cotangents vjp(const op::ScatterAddAlongAxis& op, const VjpContext& c) {
  Cotangents out = c.none();
  if (c.needs(0)) out[0] = take_along_axis(c.cotangent(), c[1], {.axis = op.axis});
  return out;
}

Cotangents vjp(const op::DynamicNarrow& op, const VjpContext& c) {
  Cotangents out = c.none();
  if (c.needs(0)) {
    const Value zeros = filled(c.graph(), c[0].type(), 0);
    out[0] = dynamic_update(zeros, c.cotangent(), c[1], {.axis = op.axis});
  }
  return out;
}

// x gets what was not overwritten, update the rest
Cotangents vjp(const op::DynamicUpdate& op, const VjpContext& c) {
  Cotangents out = c.none();
  const Value g = c.cotangent();
  if (c.needs(0)) {
    const Value zeros = filled(c.graph(), c[1].type(), 0);
    out[0] = dynamic_update(g, zeros, c[2], {.axis = op.axis});
  }
  if (c.needs(1)) {
    const Dim len = c[1].dims()[op.axis.index()];
    out[1] = dynamic_narrow(g, c[2], {.axis = op.axis, .len = len});
  }
  return out;
}

}  // namespace ricci::rule
