#include "ricci/build/attention.h"

#include <fmt/format.h>

#include "ricci/compat/attention.h"

#include "build/aliases.h"

namespace ricci {
namespace {

std::vector<Value> with_mask(std::vector<Value> operands, Value mask) {
  if (mask.valid()) operands.push_back(mask);
  return operands;
}

// The merged op with one result wanted.
Value one_gradient(AttentionWrt wrt, const op::AttentionBackward& attrs,
                   const std::vector<Value>& operands, std::source_location loc) {
  if (wrt == AttentionWrt::Bias && attrs.mask_kind.kind != MaskKind::Kind::Bias) {
    throw UserError(ErrorCode::Attr,
                    fmt::format("there is no bias gradient for mask_kind {}",
                                to_attr(attrs.mask_kind).to_string()),
                    "only mask_kind bias has one");
  }
  const auto results = operands[0].graph().add_node(Op(attrs), operands, {}, loc);
  const auto wanted = static_cast<std::size_t>(wrt);
  for (std::size_t r = 0; r < results.size(); ++r) {
    results[r].graph().set_wanted(results[r].id(), r == wanted);
  }
  return results[wanted];
}

std::vector<Value> build_all(AliasCall& call) {
  require_operands(call, "attention_backward_all", 4, 7);
  std::vector<Value> gradients = as_op<op::AttentionBackward>(call);
  gradients.resize(3);
  return gradients;
}

std::vector<Value> build_wrt(AliasCall& call) {
  require_operands(call, "attention_backward_wrt", 4, 7);
  const auto wrt = take_enum<AttentionWrt>(call, "attention_backward_wrt", "wrt");
  if (!wrt) {
    throw UserError(ErrorCode::Attr, "'attention_backward_wrt' needs the attribute 'wrt'",
                    fmt::format("it is {}", AttrCodec<AttentionWrt>::describe()));
  }
  return {one_gradient(*wrt, alias_attrs<op::AttentionBackward>(call), call.operands,
                       std::source_location::current())};
}

}  // namespace

Value attention_backward_wrt(AttentionWrt wrt, Value q, Value k, Value v, Value dy,
                             std::int64_t heads, std::int64_t head_dim, MaskKind mask_kind,
                             Value mask, std::source_location loc) {
  const op::AttentionBackward attrs{
      .num_heads = heads, .head_dim = head_dim, .mask_kind = mask_kind};
  return one_gradient(wrt, attrs, with_mask({q, k, v, dy}, mask), loc);
}

std::array<Value, 3> attention_backward_all(Value q, Value k, Value v, Value dy, std::int64_t heads,
                                            std::int64_t head_dim, MaskKind mask_kind, Value mask,
                                            std::source_location loc) {
  const op::AttentionBackward attrs{
      .num_heads = heads, .head_dim = head_dim, .mask_kind = mask_kind};
  const auto d = q.graph().add_node(Op(attrs), with_mask({q, k, v, dy}, mask), {}, loc);
  return {d[0], d[1], d[2]};
}

AttentionWithLse attention_with_lse(Value q, Value k, Value v, op::Attention attrs, Value mask,
                                    std::source_location loc) {
  const auto r = q.graph().add_node(Op(std::move(attrs)), with_mask({q, k, v}, mask), {}, loc);
  q.graph().set_wanted(r[1].id(), true);
  return {r[0], r[1]};
}

Value attention_with_value_width(Value q, Value k, Value v, op::Attention attrs,
                                 std::int64_t value_dim, Value mask, std::source_location loc) {
  attrs.value_dim = value_dim;
  return q.graph().add_node(Op(std::move(attrs)), with_mask({q, k, v}, mask), {}, loc)[0];
}

AliasList attention_aliases() {
  return {{"attention_backward_all", {OpKind::AttentionBackward}, build_all},
          {"attention_backward_wrt", {OpKind::AttentionBackward}, build_wrt}};
}

}  // namespace ricci
