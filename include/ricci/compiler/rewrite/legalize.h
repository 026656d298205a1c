// Making a graph fit a backend that does not have every op: finding what it lacks, and writing that
// out in ops it has.
//
//   SupportedOps ops = SupportedOps::only({OpKind::Matmul, OpKind::Binary, OpKind::Reduce});
//   ops.require(OpKind::Reduce, "one axis", [](const Graph&, const Node& n) { return …; });
//   PassResult r = legalize_or_rewrite_for_backend(graph, ops, "toy");
//
// The CPU has every op, so these serve restricted backends.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ricci/compiler/rewrite/pass.h"

namespace ricci {

/// What a backend claims: kinds of ops, and for some of them what a node must be like (its dtypes,
/// ranks, attributes). Inputs, params and constants are always supported.
class SupportedOps {
 public:
  /// Every op; the default.
  SupportedOps() = default;
  [[nodiscard]] static SupportedOps only(std::initializer_list<OpKind> kinds);

  using Condition = std::function<bool(const Graph& graph, const Node& node)>;
  /// Of a kind, only nodes for which `holds`; `what` says so in errors.
  SupportedOps& require(OpKind kind, std::string what, Condition holds);

  /// Are there nodes of a kind that are supported?
  [[nodiscard]] bool claims(OpKind kind) const { return all_ || kinds_.contains(kind); }
  [[nodiscard]] bool claims_all() const noexcept { return all_ && conditions_.empty(); }
  [[nodiscard]] bool supports(const Graph& graph, const Node& node) const;
  /// Why not, for errors: the condition that fails, or nothing when the kind is not claimed at all.
  [[nodiscard]] std::string why_not(const Graph& graph, const Node& node) const;

 private:
  struct Required {
    std::string what;
    Condition holds;
  };
  [[nodiscard]] const Required* failed(const Graph& graph, const Node& node) const;

  bool all_ = true;
  std::set<OpKind> kinds_;
  std::multimap<OpKind, Required> conditions_;
};

/// A node a backend cannot run, possibly inside a body.
struct UnsupportedNode {
  NodeId node = 0;
  OpKind kind{};
  std::string op;      ///< mnemonic, with the name for registered ops
  std::string inside;  ///< the bodies it is in: "scan body"; empty at the top
  std::string reason;  ///< the condition it fails; empty when the kind is not claimed
  SourcePosition where;
};

/// Every node outside what is claimed, bodies included, in order.
[[nodiscard]] std::vector<UnsupportedNode> legalize_for_backend(const Graph& graph,
                                                                const SupportedOps& supported);
/// A sentence with the backend, how many nodes and of which kinds, where the first is, and what can
/// be done about registered ops.
[[nodiscard]] std::string format_legalize_error(std::string_view backend,
                                                const std::vector<UnsupportedNode>& nodes);

/// Which way ops go that a back end may have kernels for and that can be written out in others.
enum class DispatchPolicy : std::uint8_t {
  PreferNative,  ///< written out only where they are not claimed
  ForceNative,   ///< never written out
  ForceCommon,   ///< always written out
};
/// What holds for a kind by name comes before the policy; native before common.
struct KernelDispatch {
  DispatchPolicy policy = DispatchPolicy::PreferNative;
  std::set<OpKind> force_native_kinds = {};
  std::set<OpKind> force_common_kinds = {};
};
/// The kinds this is asked of: `group_norm`, `resize` and `gaussian_splat_render`.
[[nodiscard]] std::span<const OpKind> logical_kernels();
/// Writes out those that are to be.
///   Before: any well-formed graph.
///   After: none is left of a kind that is to be written out.
[[nodiscard]] PassResult lower_logical_kernels(const Graph& graph, const SupportedOps& supported,
                                               const KernelDispatch& dispatch = {});

/// Writes out what is not supported: by its expansion; reductions over several axes one by one;
/// `if` by selection, bounded `while` and scans of known length step by step. Bodies included.
///   Before: any well-formed graph.
///   After: what is left unsupported has no rule. No chain of expansions is longer than there are
///   kinds of ops, so it ends.
[[nodiscard]] PassResult rewrite_for_backend(const Graph& graph, const SupportedOps& supported);

/// The rewritten graph; UserError(unsupported_on_backend) that lists what is left.
[[nodiscard]] PassResult legalize_or_rewrite_for_backend(const Graph& graph,
                                                         const SupportedOps& supported,
                                                         std::string_view backend,
                                                         const KernelDispatch& dispatch = {});

/// Makes broadcasting explicit where it is not trivial: an operand of an element-wise op (binary,
/// compare, where, fma) that is neither of the result's shape, nor one element, nor an exact
/// trailing part of the shape is expanded to it.
///   Before: any well-formed graph.
///   After: such operands are gone; `map` says where values went.
[[nodiscard]] PassResult legalize_broadcast(const Graph& graph);

/// Writes `relu_backward` and `activation_backward` as the derivative times the cotangent, in
/// primitives.
///   Before: any well-formed graph.
///   After: neither op is left.
[[nodiscard]] PassResult lower_backward_ops(const Graph& graph);

/// Params with these names become inputs of the same name, place and type, so that they can be
/// batched or fed. Names of no param are ignored. Node ids stay.
[[nodiscard]] PassResult promote_params_to_inputs(const Graph& graph,
                                                  const std::set<std::string>& names);

}  // namespace ricci
