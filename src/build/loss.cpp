#include "ricci/build/loss.h"

#include <limits>

#include <fmt/format.h>

#include "ricci/build/reduce.h"

#include "build/composed.h"
#include "type/small_dtype.h"

namespace ricci {

Value softmax_cross_entropy_dense(Value logits, Value targets, std::source_location loc) {
  const ComposedScope scope(logits, "softmax_cross_entropy_dense", loc);
  if (logits.type() != targets.type() || logits.rank() == 0 ||
      !dtypes::floats.has(logits.dtype())) {
    scope.fail(ErrorCode::Shape,
               fmt::format("logits are {} and targets {}", logits.type().to_string(),
                           targets.type().to_string()),
               "both are [.., C], of one floating dtype");
  }
  // Sums over many classes lose what is small in small floats.
  const DType dtype = logits.dtype();
  logits = cast_to(logits, widened(dtype));
  targets = cast_to(targets, widened(dtype));
  const Axes classes{-1};
  const Value largest = stop_gradient(reduce_max(logits, classes, true));
  const Value shift = where(is_finite(largest), largest, scalar_like(largest, 0));
  const Value low = logits - shift;
  const Value log_sum = log(sum(exp(low), classes, true));
  const Value zero = scalar_like(low, 0);
  const Value impossible = logical_and(
      eq(targets, zero), eq(logits, scalar_like(logits, -std::numeric_limits<double>::infinity())));
  const Value each = log_sum - where(impossible, zero, low);
  return cast_to(sum(targets * each, classes), dtype);
}

}  // namespace ricci
