// Blocks: model-level ops, legal only before lowering. A fusion policy decides what they become.
#pragma once

#include <optional>

#include "ricci/op/elementwise.h"
#include "ricci/op/fields.h"

namespace ricci::op {

/// A dense layer.   out = act(x · w + bias),  x [.., K], w [K, N], bias [N]
struct Linear {
  std::optional<UnaryKind> activation;

  static constexpr OpInfo info{.name = "linear",
                               .operands = "x, w, bias?",
                               .results = "out",
                               .help = "a dense layer, with optional bias and activation",
                               .formula = "out = act(x · w + bias)",
                               .constraints = "c1 dtype: x, w and bias have one floating dtype\n"
                                              "c2 shape: w is [K, N] and x ends in K\n"
                                              "c3 shape: bias is [N]\n"
                                              "c4 dtype: the activation gives x's dtype from it"};
  static void fields(auto& self, auto&& f) {
    f("activation", self.activation, "function applied last; absent: none");
  }
  bool operator==(const Linear&) const = default;
};

/// A dense layer that stays one op wherever a backend has it, unless it is to be differentiated.
///   out = act(x · w + bias),  x [.., K], w [K, N], bias [N]
struct LinearFused {
  std::optional<UnaryKind> activation;

  static constexpr OpInfo info{.name = "linear_fused",
                               .operands = "x, w, bias",
                               .results = "out",
                               .help = "a dense layer kept as one op unless it is differentiated",
                               .formula = "out = act(x · w + bias)",
                               .constraints = "c1 dtype: x, w and bias have one floating dtype\n"
                                              "c2 shape: w is [K, N] and x ends in K\n"
                                              "c3 shape: bias is [N]\n"
                                              "c4 dtype: the activation gives x's dtype from it"};
  static void fields(auto& self, auto&& f) {
    f("activation", self.activation, "function applied last; absent: none");
  }
  bool operator==(const LinearFused&) const = default;
};

}  // namespace ricci::op
