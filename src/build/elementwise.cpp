// Element-wise functions that are compositions, and other spellings of element-wise ops.
#include "ricci/build/elementwise.h"

#include "ricci/compat/elementwise.h"

#include "build/aliases.h"
#include "build/composed.h"

namespace ricci {
namespace {

// x above 0, a·(e^(x/b) - 1) below. The exponential sees 0 where it is not chosen.
Value exponential_below(Value x, double a, double b) {
  const Value above = gt(x, 0);
  const Value low = where(above, scalar_like(x, 0), x);
  return where(above, x, expm1(b == 1 ? low : low / b) * a);
}

void require_complex(const ComposedScope& scope, Value z, std::string help) {
  if (is_complex(z.dtype())) return;
  scope.fail(ErrorCode::DType, "z is " + z.type().to_string() + ", not complex", std::move(help));
}

}  // namespace

Value clamp(Value x, Value low, Value high, std::source_location loc) {
  return min(max(x, low, loc), high, loc);
}
Value clamp(Value x, double low, double high, std::source_location loc) {
  return min(max(x, low, loc), high, loc);
}

Value elu(Value x, double alpha, std::source_location loc) {
  const ComposedScope scope(x, "elu", loc);
  return exponential_below(x, alpha, 1);
}

Value celu(Value x, double alpha, std::source_location loc) {
  const ComposedScope scope(x, "celu", loc);
  if (alpha == 0) scope.fail(ErrorCode::Attr, "alpha is 0", "relu is the limit");
  return exponential_below(x, alpha, alpha);
}

Value real(Value z, std::source_location loc) { return cast_to(z, real_part_of(z.dtype()), loc); }

Value angle(Value z, std::source_location loc) {
  const ComposedScope scope(z, "angle", loc);
  require_complex(scope, z, "it is 0 of a real value, and π of one below 0");
  return atan2(imag(z), real(z));
}

Value polar(Value r, Value theta, std::source_location loc) {
  const ComposedScope scope(r, "polar", loc);
  return make_complex(r * cos(theta), r * sin(theta));
}

Value complex_norm_sq(Value z, std::source_location loc) {
  const ComposedScope scope(z, "complex_norm_sq", loc);
  require_complex(scope, z, "square takes real values");
  return cast(z * conjugate(z), {.to = real_part_of(z.dtype())});
}

Value complex_norm_sq_backward(Value z, Value g, std::source_location loc) {
  const ComposedScope scope(z, "complex_norm_sq_backward", loc);
  require_complex(scope, z, "square takes real values");
  if (g.dtype() != real_part_of(z.dtype()) || g.dims() != z.dims()) {
    scope.fail(g.dims() == z.dims() ? ErrorCode::DType : ErrorCode::Shape,
               "g is " + g.type().to_string() + ", and z " + z.type().to_string(),
               "g is real, with z's shape and precision");
  }
  return cast(g, {.to = z.dtype()}) * z;
}

AliasList elementwise_aliases() {
  return {{"detach", {OpKind::StopGradient}, as_op<op::StopGradient>},
          {"real",
           {OpKind::Cast},
           [](AliasCall& call) {
             require_operands(call, "real", 1, 1);
             const Value z = call.operands[0];
             return std::vector{cast(z, {.to = real_part_of(z.dtype())})};
           }},
          {"angle",
           {OpKind::Binary},
           [](AliasCall& call) {
             require_operands(call, "angle", 1, 1);
             return std::vector{angle(call.operands[0])};
           }},
          {"polar",
           {OpKind::Binary},
           [](AliasCall& call) {
             require_operands(call, "polar", 2, 2);
             return std::vector{polar(call.operands[0], call.operands[1])};
           }},
          {"complex_norm_sq",
           {OpKind::Cast},
           [](AliasCall& call) {
             require_operands(call, "complex_norm_sq", 1, 1);
             return std::vector{complex_norm_sq(call.operands[0])};
           }},
          {"complex_norm_sq_backward", {OpKind::Binary}, [](AliasCall& call) {
             require_operands(call, "complex_norm_sq_backward", 2, 2);
             return std::vector{complex_norm_sq_backward(call.operands[0], call.operands[1])};
           }}};
}

}  // namespace ricci
