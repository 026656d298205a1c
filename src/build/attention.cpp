#include "ricci/build/attention.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "ricci/compat/attention.h"

#include "build/aliases.h"
#include "build/composed.h"

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
  require_operands(call, "attention_backward_all", 4, 6);
  std::vector<Value> gradients = as_op<op::AttentionBackward>(call);
  gradients.resize(3);
  return gradients;
}

std::vector<Value> build_wrt(AliasCall& call) {
  require_operands(call, "attention_backward_wrt", 4, 6);
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
  const ComposedScope scope(q, "attention_with_value_width", loc);
  const std::int64_t width = std::max(attrs.head_dim, value_dim);
  const std::int64_t kv_heads = attrs.num_kv_heads.value_or(attrs.num_heads);
  const AttentionLayout layout = attrs.layout.value_or(AttentionLayout::Fused);
  if (value_dim < 1 || attrs.head_dim < 1) {
    scope.fail(ErrorCode::Attr,
               fmt::format("heads of {} with values of {}", attrs.head_dim, value_dim));
  }
  // Heads with an axis of their own, as wide as all of them.
  const auto heads = [&](Value x, std::int64_t count, std::int64_t own) {
    if (layout == AttentionLayout::Fused) {
      if ((x.rank() != 2 && x.rank() != 3) || !x.dims().back().is(count * own)) {
        scope.fail(ErrorCode::Shape, fmt::format("{} does not hold {} heads of {}",
                                                 x.type().to_string(), count, own));
      }
      const Dim batch = x.rank() == 3 ? x.dims()[0] : Dim(1);
      x = reshape_to(x, {batch, x.dims()[x.rank() - 2], count, own});
    } else if (x.rank() != 4 || !x.dims()[3].is(own)) {
      scope.fail(ErrorCode::Shape,
                 fmt::format("{} does not hold heads of {}", x.type().to_string(), own));
    }
    if (own == width) return x;
    return pad(x, scalar_like(x, 0), {.low = {0, 0, 0, 0}, .high = {0, 0, 0, width - own}});
  };
  Dims out = q.dims();
  out.back() = layout == AttentionLayout::Fused ? attrs.num_heads * value_dim : value_dim;
  op::Attention wide = attrs;
  if (!wide.score_scale) wide.score_scale = 1 / std::sqrt(static_cast<double>(attrs.head_dim));
  wide.head_dim = width;
  wide.layout = layout == AttentionLayout::Fused ? AttentionLayout::Bshd : layout;
  const std::vector<Value> operands =
      with_mask({heads(q, attrs.num_heads, attrs.head_dim), heads(k, kv_heads, attrs.head_dim),
                 heads(v, kv_heads, value_dim)},
                mask);
  const Value all = q.graph().add_node(Op(wide), operands)[0];
  return reshape_to(cut(all, 3, 0, value_dim), out);
}

AliasList attention_aliases() {
  return {{"attention_backward_all", {OpKind::AttentionBackward}, build_all},
          {"attention_backward_wrt", {OpKind::AttentionBackward}, build_wrt}};
}

}  // namespace ricci
