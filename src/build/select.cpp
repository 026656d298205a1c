// Indices of chosen elements by name.
#include "ricci/build/select.h"

#include "build/aliases.h"

namespace ricci {
namespace {

// The op with only its second result, the indices, wanted.
Value indices_of(Op op, Value x, std::source_location loc) {
  const NodeId id = x.graph().add(
      {.op = std::move(op),
       .operands = {x.id()},
       .bodies = {},
       .wanted = {false, true},
       .names = {},
       .provenance = {.label = {}, .where = SourcePosition::from(loc), .origin = {}}});
  return x.graph().value({id, 1});
}

Value arg_by(ArgKind kind, Value x, ArgOptions o, std::source_location loc) {
  return detail::build<op::ArgReduce>(std::array{x}, {kind, o.axis, o.keep_dim, o.index_dtype},
                                      loc);
}

std::vector<Value> arg_sort_alias(AliasCall& call) {
  require_operands(call, "arg_sort", 1, 1);
  return {arg_sort(call.operands[0], alias_attrs<op::Sort>(call))};
}

std::vector<Value> top_k_indices_alias(AliasCall& call) {
  require_operands(call, "top_k_indices", 1, 1);
  return {top_k_indices(call.operands[0], alias_attrs<op::TopK>(call))};
}

}  // namespace

Value arg_max(Value x, ArgOptions options, std::source_location loc) {
  return arg_by(ArgKind::ArgMax, x, options, loc);
}
Value arg_min(Value x, ArgOptions options, std::source_location loc) {
  return arg_by(ArgKind::ArgMin, x, options, loc);
}

Value arg_sort(Value x, op::Sort attrs, std::source_location loc) {
  return indices_of(Op(attrs), x, loc);
}
Value top_k_indices(Value x, op::TopK attrs, std::source_location loc) {
  return indices_of(Op(std::move(attrs)), x, loc);
}

AliasList select_aliases() {
  return {{"arg_sort", {OpKind::Sort}, arg_sort_alias},
          {"top_k_indices", {OpKind::TopK}, top_k_indices_alias}};
}

}  // namespace ricci
