#include "ricci/build/everyday.h"

#include <algorithm>
#include <ostream>

#include <fmt/format.h>

#include "ricci/build/elementwise.h"
#include "ricci/build/loss.h"
#include "ricci/build/reduce.h"
#include "ricci/build/select.h"

namespace ricci {
namespace {

HeightWidth both(const Pair& p) { return {p.height, p.width}; }

// The shape with its -1 replaced by what is left of the elements.
Dims completed(const Value& x, Dims shape, std::source_location loc) {
  const auto open = std::ranges::find_if(shape, [](const Dim& d) { return d.is(-1); });
  if (open == shape.end()) return shape;
  *open = 1;
  const auto rest = Dim::divide(product(x.dims()), product(shape));
  if (!rest) {
    throw UserError(Diagnostic{ErrorCode::Shape,
                               "reshape",
                               fmt::format("{} does not fill a shape whose other sizes make {}",
                                           x.type().to_string(), product(shape).to_string()),
                               SourcePosition::from(loc),
                               {},
                               "the size -1 is what is left of the elements"});
  }
  *open = *rest;
  return shape;
}

Value pool_of(ReduceKind kind, Value x, Pair window, const PoolOptions& options,
              std::source_location loc) {
  return pool(x,
              {.kind = kind,
               .kernel_size = both(window),
               .stride = both(options.stride.value_or(window)),
               .padding = both(options.padding)},
              loc);
}

}  // namespace

Value detail::reshape_of(Value x, std::span<const Dim> shape, std::source_location loc) {
  return reshape(x, op::Reshape{.new_shape = completed(x, Dims(shape.begin(), shape.end()), loc)},
                 loc);
}
Value narrow(Value x, Axis axis, const Dim& start, const Dim& len, std::source_location loc) {
  return narrow(x, op::Narrow{.axis = axis, .start = start, .len = len}, loc);
}

Value log_softmax(Value x, Axis axis, std::source_location loc) {
  return sub(x, log_sum_exp(x, {axis}, true, loc), loc);
}
Value argmax(Value x, Axis axis, bool keep_dim, std::source_location loc) {
  return arg_max(x, {.axis = axis, .keep_dim = keep_dim}, loc);
}
Value argmin(Value x, Axis axis, bool keep_dim, std::source_location loc) {
  return arg_min(x, {.axis = axis, .keep_dim = keep_dim}, loc);
}

Value where(Value condition, Value a, double b, std::source_location loc) {
  return where(condition, a, scalar_like(a, b, loc), {}, loc);
}
Value where(Value condition, double a, Value b, std::source_location loc) {
  return where(condition, scalar_like(b, a, loc), b, {}, loc);
}
Value clip(Value x, double low, double high, std::source_location loc) {
  return clamp(x, low, high, loc);
}
Value clip(Value x, Value low, Value high, std::source_location loc) {
  return clamp(x, low, high, loc);
}

Value conv2d(Value x, Value w, const Conv2dOptions& options, std::source_location loc) {
  return conv(x, w,
              {.stride = both(options.stride),
               .padding = both(options.padding),
               .dilation = both(options.dilation),
               .groups = options.groups},
              loc);
}
Value conv2d(Value x, Value w, Value bias, const Conv2dOptions& options, std::source_location loc) {
  return add(conv2d(x, w, options, loc), reshape(bias, {-1, 1, 1}, loc), loc);
}
Value max_pool2d(Value x, Pair window, const PoolOptions& options, std::source_location loc) {
  return pool_of(ReduceKind::Max, x, window, options, loc);
}
Value avg_pool2d(Value x, Pair window, const PoolOptions& options, std::source_location loc) {
  return pool_of(ReduceKind::Mean, x, window, options, loc);
}

Value cross_entropy(Value logits, Value target, std::source_location loc) {
  const bool shares = is_float(target.dtype()) && target.rank() == logits.rank();
  return mean(shares ? softmax_cross_entropy_dense(logits, target, loc)
                     : softmax_cross_entropy_with_logits(logits, target, {}, loc),
              {}, false, loc);
}
Value mse(Value a, Value b, std::source_location loc) {
  const Value gap = sub(a, b, loc);
  return mean(mul(gap, gap, loc), {}, false, loc);
}

#define RICCI_VALUE_COMPARISON(symbol, name)                                            \
  Value operator symbol(Located a, Located b) { return name(a.value, b.value, a.loc); } \
  Value operator symbol(Located a, double b) { return name(a.value, b, a.loc); }        \
  Value operator symbol(double a, Located b) { return name(a, b.value, b.loc); }
RICCI_VALUE_COMPARISON(<, lt)
RICCI_VALUE_COMPARISON(<=, le)
RICCI_VALUE_COMPARISON(>, gt)
RICCI_VALUE_COMPARISON(>=, ge)
#undef RICCI_VALUE_COMPARISON
Value operator&&(Located a, Located b) { return logical_and(a.value, b.value, a.loc); }
Value operator||(Located a, Located b) { return logical_or(a.value, b.value, a.loc); }
Value operator!(Located x) { return logical_not(x.value, x.loc); }

std::ostream& operator<<(std::ostream& out, const Value& x) {
  if (!x.valid()) return out << "no value";
  const Node& node = x.graph().node(x.id().node);
  const std::string* leaf = node.leaf_name();
  const std::string& given = node.names[x.id().result];
  const std::string called = leaf != nullptr  ? *leaf
                             : !given.empty() ? given
                                              : std::string(node.op.mnemonic());
  return out << called << ": " << x.type().to_string();
}

}  // namespace ricci
