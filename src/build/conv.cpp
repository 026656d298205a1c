#include "ricci/build/conv.h"

#include <fmt/format.h>

#include "build/aliases.h"
#include "build/composed.h"

namespace ricci {
namespace {

// A list for `axes` spatial axes; an empty one is the default everywhere.
HeightWidth whole_list(const ComposedScope& scope, const char* field, const HeightWidth& given,
                       std::size_t axes, std::int64_t otherwise) {
  if (given.empty()) return HeightWidth(axes, otherwise);
  if (given.size() == axes) return given;
  scope.fail(ErrorCode::Attr,
             fmt::format("'{}' has {} entries for {} spatial axes", field, given.size(), axes));
}

Value transposed(const ComposedScope& scope, Value x, Value w,
                 const ConvTransposeOptions& options) {
  if (x.rank() < 3 || w.rank() != x.rank()) {
    scope.fail(ErrorCode::Shape,
               fmt::format("x is {} and w {}", x.type().to_string(), w.type().to_string()),
               "x is [N, C_in, spatial…], w [C_in, C_out/groups, kernel…]");
  }
  const std::size_t axes = x.rank() - 2;
  const HeightWidth stride = whole_list(scope, "stride", options.stride, axes, 1);
  const HeightWidth padding = whole_list(scope, "padding", options.padding, axes, 0);
  const HeightWidth dilation = whole_list(scope, "dilation", options.dilation, axes, 1);
  const HeightWidth more = whole_list(scope, "output_padding", options.output_padding, axes, 0);
  Dims sizes;
  Dims high(x.rank(), Dim(0));
  bool longer = false;
  for (std::size_t a = 0; a < axes; ++a) {
    if (stride[a] < 1 || dilation[a] < 1 || more[a] < 0 ||
        more[a] >= std::max(stride[a], dilation[a])) {
      scope.fail(ErrorCode::Attr,
                 fmt::format("stride {}, dilation {} and output_padding {}", stride[a], dilation[a],
                             more[a]),
                 "output_padding is less than the stride or the dilation, which are positive");
    }
    const Dim size = (x.dims()[2 + a] - 1) * Dim(stride[a]) - Dim(2) * Dim(padding[a]) +
                     Dim(dilation[a]) * (w.dims()[2 + a] - 1) + (Dim(more[a]) + Dim(1));
    if (size.is_static() && size.value() < 1) {
      scope.fail(ErrorCode::Shape, fmt::format("the result would have size {}", size.to_string()),
                 "use less padding");
    }
    sizes.push_back(size);
    // Places no window of x reaches are windows of zeros.
    high[2 + a] = more[a] / stride[a];
    longer = longer || more[a] >= stride[a];
  }
  if (longer) x = pad(x, scalar_like(x, 0), {.low = Dims(x.rank(), Dim(0)), .high = high});
  return conv2d_backward_input(x, w,
                               {.input_size = sizes,
                                .stride = stride,
                                .padding = padding,
                                .dilation = dilation,
                                .groups = options.groups});
}

template <class T>
void take_into(AliasCall& call, const char* field, T& to) {
  const auto value = take_attr(call, field);
  if (!value) return;
  try {
    to = from_attr<T>(*value);
  } catch (const AttrMismatch& mismatch) {
    throw UserError(
        ErrorCode::Attr,
        fmt::format("attribute '{}' of 'conv_transpose2d' cannot be {}", field, value->to_string()),
        "it is " + mismatch.expected);
  }
}

std::vector<Value> build_conv_transpose(AliasCall& call) {
  require_operands(call, "conv_transpose2d", 2, 2);
  ConvTransposeOptions options;
  std::optional<HeightWidth> kernel;
  take_into(call, "kernel_size", kernel);
  take_into(call, "stride", options.stride);
  take_into(call, "padding", options.padding);
  take_into(call, "dilation", options.dilation);
  take_into(call, "output_padding", options.output_padding);
  take_into(call, "groups", options.groups);
  if (!call.attrs.empty()) {
    throw UserError(ErrorCode::Attr, fmt::format("'conv_transpose2d' has no attribute '{}'",
                                                 call.attrs.front().name));
  }
  const Value w = call.operands[1];
  if (kernel && w.rank() == 4 &&
      Dims(kernel->begin(), kernel->end()) != Dims{w.dims()[2], w.dims()[3]}) {
    throw UserError(ErrorCode::Attr, "kernel_size is not that of 'w' " + w.type().to_string(),
                    "leave kernel_size out: it is the weight's");
  }
  return {conv_transpose2d(call.operands[0], w, options)};
}

}  // namespace

Value conv_transpose(Value x, Value w, const ConvTransposeOptions& options,
                     std::source_location loc) {
  return transposed(ComposedScope(x, "conv_transpose", loc), x, w, options);
}

Value conv_transpose2d(Value x, Value w, const ConvTransposeOptions& options,
                       std::source_location loc) {
  const ComposedScope scope(x, "conv_transpose2d", loc);
  if (x.rank() != 4) {
    scope.fail(ErrorCode::Shape, fmt::format("x is {}", x.type().to_string()),
               "images are [N, C, H, W]");
  }
  return transposed(scope, x, w, options);
}

AliasList conv_aliases() {
  return {{"maxpool2d_backward", {OpKind::MaxPool2dBackward}, as_op<op::MaxPool2dBackward>},
          {"conv_transpose2d", {OpKind::Conv2dBackwardInput}, build_conv_transpose}};
}

}  // namespace ricci
