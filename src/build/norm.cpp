#include "ricci/build/norm.h"

#include <algorithm>
#include <utility>

#include "ricci/compat/norm.h"

#include "build/aliases.h"
#include "build/composed.h"
#include "type/small_dtype.h"

namespace ricci {
namespace {

enum Gradient : std::uint32_t { Input, Gamma, Beta };

// The backward op, of which one result is wanted.
template <OpStruct T>
Value one_gradient(Gradient which, std::initializer_list<Value> operands, T attrs,
                   std::source_location loc) {
  Graph& graph = operands.begin()->graph();
  const std::vector<Value> results =
      graph.add_node(Op(std::move(attrs)), std::span(operands.begin(), operands.size()), {}, loc);
  for (const Value& r : results) graph.set_wanted(r.id(), r.id().result == which);
  return results[which];
}

// Ones along an axis of x, for a gradient that does not read gamma. An axis x does not have is left
// to the op's own check.
Value ones_along(Value x, Axis axis, std::source_location loc) {
  const auto fixed = normalized_axis(axis.value, x.rank());
  const Dim size = fixed ? x.dims()[static_cast<std::size_t>(*fixed)] : Dim(1);
  return filled(x.graph(), {x.dtype(), {size}}, 1, loc);
}

}  // namespace

Value layer_norm_backward_input(Value x, Value gamma, Value dy, op::LayerNormBackward attrs,
                                std::source_location loc) {
  return one_gradient(Input, {x, gamma, dy}, attrs, loc);
}
Value layer_norm_backward_gamma(Value x, Value dy, op::LayerNormBackward attrs,
                                std::source_location loc) {
  return one_gradient(Gamma, {x, ones_along(x, attrs.axis, loc), dy}, attrs, loc);
}

Value rms_norm_backward_input(Value x, Value gamma, Value, Value dy, op::RmsNormBackward attrs,
                              std::source_location loc) {
  return one_gradient(Input, {x, gamma, dy}, attrs, loc);
}
Value rms_norm_backward_gamma(Value x, Value gamma, Value, Value dy, op::RmsNormBackward attrs,
                              std::source_location loc) {
  return one_gradient(Gamma, {x, gamma, dy}, attrs, loc);
}
Value rms_norm_backward_beta(Value x, Value gamma, Value, Value dy, op::RmsNormBackward attrs,
                             std::source_location loc) {
  return one_gradient(Beta, {x, gamma, dy}, attrs, loc);
}

Value group_norm_backward_input(Value x, Value gamma, Value, Value dy, op::GroupNormBackward attrs,
                                std::source_location loc) {
  return one_gradient(Input, {x, gamma, dy}, attrs, loc);
}
Value group_norm_backward_gamma(Value x, Value dy, op::GroupNormBackward attrs,
                                std::source_location loc) {
  return one_gradient(Gamma, {x, ones_along(x, 1, loc), dy}, attrs, loc);
}
Value group_norm_backward_beta(Value x, Value dy, op::GroupNormBackward attrs,
                               std::source_location loc) {
  return one_gradient(Beta, {x, ones_along(x, 1, loc), dy}, attrs, loc);
}

Value batch_norm_inference_backward_input(Value x, Value gamma, Value mean, Value var, Value dy,
                                          op::BatchNormInferenceBackward attrs,
                                          std::source_location loc) {
  return one_gradient(Input, {x, gamma, mean, var, dy}, attrs, loc);
}
Value batch_norm_inference_backward_gamma(Value x, Value mean, Value var, Value dy,
                                          op::BatchNormInferenceBackward attrs,
                                          std::source_location loc) {
  return one_gradient(Gamma, {x, ones_along(x, attrs.axis, loc), mean, var, dy}, attrs, loc);
}
// Only dy is read, and it has x's shape.
Value batch_norm_inference_backward_beta(Value dy, op::BatchNormInferenceBackward attrs,
                                         std::source_location loc) {
  const Value ones = ones_along(dy, attrs.axis, loc);
  return one_gradient(Beta, {dy, ones, ones, ones, dy}, attrs, loc);
}

Value layer_norm2d(Value x, Value gamma, Value beta, Real eps, std::source_location loc) {
  const ComposedScope scope(x, "layer_norm2d", loc);
  if (x.rank() != 4) {
    scope.fail(ErrorCode::Shape, "x is " + x.type().to_string(), "images are [N, C, H, W]");
  }
  return layer_norm(x, gamma, beta, {.axis = 1, .eps = eps});
}

BatchNormResult batch_norm_training(Value x, Value gamma, Value beta, Value running_mean,
                                    Value running_var, BatchNormOptions options,
                                    std::source_location loc) {
  const ComposedScope scope(x, "batch_norm_training", loc);
  const std::size_t channels = scope.axis(options.axis, x.rank());
  Axes others;
  Dim count = 1;
  for (std::size_t a = 0; a < x.rank(); ++a) {
    if (a == channels) continue;
    others.push_back(axis_of(a));
    count = count * x.dims()[a];
  }
  // Squares and counts leave the range of small floats: all is computed in f32, and rounded once.
  const DType dtype = x.dtype();
  const auto wide = [&](Value v) { return cast_to(v, widened(v.dtype())); };
  const auto over_others = [&](Value v, bool keep) {
    return others.empty() ? v : mean(v, others, keep);
  };
  const Value all = wide(x);
  const Value centred = all - over_others(all, true);
  const Value batch_mean = reshape_to(over_others(all, true), {x.dims()[channels]});
  const Value batch_var = over_others(centred * centred, false);
  const Value out = batch_norm_inference(all, wide(gamma), wide(beta), batch_mean, batch_var,
                                         {.axis = axis_of(channels), .eps = options.eps});
  const Value n = dim_size(x.graph(), {.dim = count, .dtype = all.dtype()});
  const Value unbiased = batch_var * (n / max(n - 1.0, 1.0));
  const auto moved = [&](Value running, Value now) {
    const Value next = wide(running) * (1 - options.momentum) + now * options.momentum;
    return stop_gradient(cast_to(next, running.dtype()));
  };
  return {cast_to(out, dtype), cast_to(batch_mean, dtype), cast_to(batch_var, dtype),
          moved(running_mean, batch_mean), moved(running_var, unbiased)};
}

namespace {

// A name as a template argument, so that the alias's function knows what it is called.
template <std::size_t N>
struct AliasName {
  char text[N];
  constexpr AliasName(const char (&name)[N]) { std::ranges::copy(name, text); }  // NOLINT
};

// Takes the operands of a builder, and the attributes of the op it builds.
template <AliasName Name, OpStruct T, std::size_t Count, auto Builder>
Alias alias_of_builder() {
  return {Name.text, {kind_of<T>}, [](AliasCall& call) {
            require_operands(call, Name.text, Count, Count);
            const auto build = [&]<std::size_t... I>(std::index_sequence<I...>) {
              return Builder(call.operands[I]..., alias_attrs<T>(call),
                             std::source_location::current());
            };
            return std::vector<Value>{build(std::make_index_sequence<Count>())};
          }};
}

}  // namespace

AliasList norm_aliases() {
  using op::BatchNormInferenceBackward;
  using op::GroupNormBackward;
  using op::LayerNormBackward;
  using op::RmsNormBackward;
  return {
      {"layer_norm2d",
       {OpKind::LayerNorm},
       [](AliasCall& call) {
         require_operands(call, "layer_norm2d", 3, 3);
         const auto eps = alias_attrs<op::LayerNorm>(call).eps;
         return std::vector{
             layer_norm2d(call.operands[0], call.operands[1], call.operands[2], eps)};
       }},
      alias_of_builder<"layer_norm_backward_input", LayerNormBackward, 3,
                       layer_norm_backward_input>(),
      alias_of_builder<"layer_norm_backward_gamma", LayerNormBackward, 2,
                       layer_norm_backward_gamma>(),
      alias_of_builder<"rms_norm_backward_input", RmsNormBackward, 4, rms_norm_backward_input>(),
      alias_of_builder<"rms_norm_backward_gamma", RmsNormBackward, 4, rms_norm_backward_gamma>(),
      alias_of_builder<"rms_norm_backward_beta", RmsNormBackward, 4, rms_norm_backward_beta>(),
      alias_of_builder<"group_norm_backward_input", GroupNormBackward, 4,
                       group_norm_backward_input>(),
      alias_of_builder<"group_norm_backward_gamma", GroupNormBackward, 2,
                       group_norm_backward_gamma>(),
      alias_of_builder<"group_norm_backward_beta", GroupNormBackward, 2,
                       group_norm_backward_beta>(),
      alias_of_builder<"batch_norm_inference_backward_input", BatchNormInferenceBackward, 5,
                       batch_norm_inference_backward_input>(),
      alias_of_builder<"batch_norm_inference_backward_gamma", BatchNormInferenceBackward, 4,
                       batch_norm_inference_backward_gamma>(),
      alias_of_builder<"batch_norm_inference_backward_beta", BatchNormInferenceBackward, 1,
                       batch_norm_inference_backward_beta>(),
  };
}

}  // namespace ricci
