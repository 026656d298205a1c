#include "nn/layer.h"

#include <string>

#include <fmt/format.h>

#include "ricci/array/create.h"
#include "ricci/array/math.h"
#include "ricci/array/shape.h"
#include "ricci/support/error.h"

namespace ricci::nn {

Array drawn_weight(std::string_view layer, const Initializer& init, const Dims& shape,
                   DType dtype) {
  for (const Dim& d : shape) {
    if (d.is_static() && d.value() > 0) continue;
    throw UserError(
        ErrorCode::Shape,
        fmt::format("a weight of '{}' would be {}", layer, Type{dtype, shape}.to_string()),
        "every size of a layer is a positive number");
  }
  const Array w = init(next_key(), shape);
  if (w.shape() != shape) {
    throw UserError(ErrorCode::Shape,
                    fmt::format("the initialiser of '{}' gives {}, its weight is {}", layer,
                                w.type().to_string(), Type{dtype, shape}.to_string()));
  }
  return w.dtype() == dtype ? w : cast(w, dtype);
}

void require_setting(bool holds, std::string_view layer, std::string_view what) {
  if (holds) return;
  throw UserError(ErrorCode::Attr, fmt::format("'{}': {}", layer, what));
}

Array last_counted(const Array& x, const Array& count, Here where) {
  const std::int64_t rows = x.dim(0).value();
  const std::int64_t places = x.dim(1).value();
  const std::int64_t width = x.dim(2).value();
  if (places == 1) return reshape(x, {rows, width}, where);
  const Array last = maximum(sub(count, 1, where), 0, where);
  const Array row = add(mul(arange(rows), places, where), last, where);
  return take(reshape(x, {rows * places, width}, where), row, 0, where);
}

}  // namespace ricci::nn
