#include "ricci/build/image.h"

#include <fmt/format.h>

#include "ricci/support/checked.h"

#include "build/aliases.h"
#include "build/composed.h"

namespace ricci {
namespace {

HeightWidth or_all(const HeightWidth& given, std::size_t axes, std::int64_t value) {
  return given.empty() ? HeightWidth(axes, value) : given;
}

}  // namespace

Value resize_nearest2x(Value x, std::source_location loc) {
  const ComposedScope scope(x, "resize_nearest2x", loc);
  if (x.rank() != 4) {
    scope.fail(ErrorCode::Shape, fmt::format("x is {}", x.type().to_string()),
               "images are [N, C, H, W]");
  }
  return resize(x, {.sizes = {x.dims()[2] * Dim(2), x.dims()[3] * Dim(2)}});
}

Value im2col(Value x, HeightWidth kernel, const WindowOptions& options, std::source_location loc) {
  const ComposedScope scope(x, "im2col", loc);
  const std::size_t axes = kernel.size();
  const HeightWidth stride = or_all(options.stride, axes, 1);
  const HeightWidth padding = or_all(options.padding, axes, 0);
  const HeightWidth dilation = or_all(options.dilation, axes, 1);
  if (axes == 0 || x.rank() != axes + 2 || stride.size() != axes || padding.size() != axes ||
      dilation.size() != axes) {
    scope.fail(ErrorCode::Shape,
               fmt::format("x is {}, and the kernel has {} axes", x.type().to_string(), axes),
               "x is [N, C, spatial…], and lists have one entry a spatial axis");
  }
  Dims around(x.rank(), Dim(0));
  Dims windows;
  std::int64_t taps = 1;
  std::int64_t count = 1;
  for (std::size_t a = 0; a < axes; ++a) {
    constexpr std::int64_t Most = 1 << 14;  // taps, each written out; lists hold less than 2^31
    const auto sane = [](std::int64_t v) { return v < (std::int64_t{1} << 31); };
    const bool positive = kernel[a] > 0 && stride[a] > 0 && dilation[a] > 0 && padding[a] >= 0 &&
                          sane(stride[a]) && sane(dilation[a]) && sane(padding[a]);
    if (kernel[a] > Most / taps) scope.fail(ErrorCode::Refused, "the kernel has too many taps");
    const std::int64_t room = !positive ? -1
                                        : scope.known(x.dims()[2 + a]) + 2 * padding[a] -
                                              dilation[a] * (kernel[a] - 1) - 1;
    if (room < 0) {
      scope.fail(
          ErrorCode::Shape,
          fmt::format("a kernel of {} with dilation {}, stride {} and padding {} does not "
                      "fit into {}",
                      kernel[a], dilation[a], stride[a], padding[a], x.dims()[2 + a].to_string()));
    }
    around[2 + a] = padding[a];
    windows.emplace_back(room / stride[a] + 1);
    taps *= kernel[a];
    count = checked_mul(count, room / stride[a] + 1);
  }
  const Value padded = padding == HeightWidth(axes, 0)
                           ? x
                           : pad(x, scalar_like(x, 0), {.low = around, .high = around});
  std::vector<Value> columns;
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    Value seen = padded;
    std::int64_t rest = tap;
    for (std::size_t a = axes; a-- > 0;) {
      const std::int64_t first = rest % kernel[a] * dilation[a];
      rest /= kernel[a];
      seen = cut(seen, 2 + a, first, (windows[a].value() - 1) * stride[a] + 1);
      if (stride[a] > 1) seen = take_every(seen, {.axis = axis_of(2 + a), .stride = stride[a]});
    }
    columns.push_back(reshape_to(seen, {x.dims()[0], x.dims()[1], 1, count}));
  }
  return reshape_to(joined(columns, 2), {x.dims()[0], x.dims()[1] * Dim(taps), count});
}

AliasList image_aliases() {
  return {{"resize_nearest2x", {OpKind::Resize}, [](AliasCall& call) {
             require_operands(call, "resize_nearest2x", 1, 1);
             return std::vector{resize_nearest2x(call.operands[0])};
           }}};
}

}  // namespace ricci
