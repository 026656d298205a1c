// Builders of functions with derivative rules of their own, and of registered ops.
#pragma once

#include <functional>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include "ricci/build/control.h"

namespace ricci {

/// What a custom vjp sees. Outputs of integer dtypes have no cotangent: an invalid Value.
struct VjpInputs {
  std::vector<Value> primals;
  std::vector<Value> outputs;
  std::vector<Value> d_outputs;
  std::vector<Value> residuals;
};
/// What a custom jvp sees. Inputs without a derivative have no tangent: an invalid Value.
struct JvpInputs {
  std::vector<Value> primals;
  std::vector<Value> tangents;
  std::vector<Value> outputs;
};
/// Gives one cotangent per input that has a derivative.
using VjpFunction = std::function<std::vector<Value>(Graph& body, const VjpInputs& in)>;
/// Gives one tangent per output of a float or complex dtype.
using JvpFunction = std::function<std::vector<Value>(Graph& body, const JvpInputs& in)>;

/// Derivative rules of a custom function; either may be left out. Ready graphs mark their special
/// inputs by role.
struct CustomFnRules {
  VjpFunction vjp = {};
  JvpFunction jvp = {};
  BodyGraph vjp_body = {};  ///< instead of `vjp`
  BodyGraph jvp_body = {};  ///< instead of `jvp`
  std::int64_t num_residuals = 0;
  std::vector<std::int64_t> no_gradient = {};  ///< float inputs without a derivative
  /// Without a vjp, gradients are the transpose of the jvp, not those of the parts.
  bool transpose_jvp = false;
};

/// One output of `inputs`, computed by `fwd`. UserError when fwd gives more (residuals aside).
Value custom_fn(std::span<const Value> inputs, const BodySource& fwd,
                const CustomFnRules& rules = {},
                std::source_location loc = std::source_location::current());
/// The same from ready graphs.
Value custom_fn(std::span<const Value> inputs, Graph fwd, std::optional<Graph> vjp,
                std::optional<Graph> jvp = {},
                std::source_location loc = std::source_location::current());

/// The outputs of a custom function that has several.
class MultiOutputHandle {
 public:
  explicit MultiOutputHandle(std::vector<Value> outputs) : outputs_(std::move(outputs)) {}
  [[nodiscard]] std::size_t n_outputs() const noexcept { return outputs_.size(); }
  /// Output i; `graph` is the one the function was built in.
  [[nodiscard]] Value output(const Graph& graph, std::size_t i) const;
  [[nodiscard]] std::span<const Value> outputs() const noexcept { return outputs_; }

 private:
  std::vector<Value> outputs_;
};
MultiOutputHandle custom_fn_multi(std::span<const Value> inputs, const BodySource& fwd,
                                  const CustomFnRules& rules = {},
                                  std::source_location loc = std::source_location::current());

/// The results of a registered op; looked up in the registry of the operands' graph.
std::vector<Value> custom_op(std::string name, Bytes attrs, std::span<const Value> inputs,
                             std::int64_t version = 1,
                             std::source_location loc = std::source_location::current());
/// The only result of a registered op; UserError(shape) unless it has the type `out`.
Value custom_op_packed(std::string name, Bytes attrs, std::span<const Value> inputs,
                       const Type& out, std::int64_t version = 1,
                       std::source_location loc = std::source_location::current());

}  // namespace ricci
