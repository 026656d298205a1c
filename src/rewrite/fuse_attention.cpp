// Attention between its projections as one op.
#include <array>
#include <optional>

#include "ricci/build/build.h"
#include "ricci/compiler/rewrite/fuse.h"

#include "rewrite/fusions.h"

namespace ricci {
namespace {

// A product with a matrix, and the bias behind it if there is one.
struct Projection {
  ValueId x;
  ValueId w;
  std::optional<ValueId> bias;
};

std::optional<Projection> projection(const Uses& uses, ValueId v) {
  const Node& node = uses.node(v);
  std::optional<ValueId> bias;
  ValueId product = v;
  if (is_binary_node(node, BinaryKind::Add)) {
    const bool second = uses.as<op::Matmul>(node.operands[0]) == nullptr;
    product = node.operands[second ? 1 : 0];
    bias = node.operands[second ? 0 : 1];
    if (uses.as<op::Matmul>(product) == nullptr) return std::nullopt;
    const Type& type = node.types[0];
    if (!uses.once(product) || uses.type(product) != type ||
        uses.type(*bias) != Type{type.dtype, {type.dims.back()}}) {
      return std::nullopt;
    }
  }
  if (uses.as<op::Matmul>(product) == nullptr) return std::nullopt;
  const Node& matmul = uses.node(product);
  if (uses.type(matmul.operands[1]).rank() != 2) return std::nullopt;
  return Projection{matmul.operands[0], matmul.operands[1], bias};
}

// A third of the queries, keys and values side by side, rotated or not.
struct Third {
  ValueId packed;
  std::optional<std::array<ValueId, 2>> tables;
};
std::optional<Third> third(const Uses& uses, ValueId v, const op::Attention& op, std::int64_t k) {
  Third out;
  if (!uses.once(v)) return std::nullopt;
  if (const auto* rope = uses.as<op::Rope>(v)) {
    if (rope->head_dim != op.head_dim || rope->n_rot || rope->style != RopeStyle::Neox) {
      return std::nullopt;
    }
    out.tables = {uses.node(v).operands[1], uses.node(v).operands[2]};
    v = uses.node(v).operands[0];
    if (!uses.once(v)) return std::nullopt;
  }
  const auto* slice = uses.as<op::Narrow>(v);
  const std::int64_t width = op.num_heads * op.head_dim;
  if (slice == nullptr || !is_last_axis(slice->axis, uses.type(v)) || !slice->len.is(width) ||
      !slice->start.is(k * width)) {
    return std::nullopt;
  }
  out.packed = uses.node(v).operands[0];
  return out;
}

bool is_plain(const op::Attention& op) {
  return op.num_kv_heads.value_or(op.num_heads) == op.num_heads && !op.value_dim &&
         op.layout.value_or(AttentionLayout::Fused) == AttentionLayout::Fused;
}

std::optional<Fusion> attention_block(const Uses& uses, NodeId id, std::int64_t most_rows) {
  const auto out = projection(uses, {id, 0});
  if (!out || !uses.once(out->x)) return std::nullopt;
  const Node& inner = uses.node(out->x);
  const auto* op = inner.op.as<op::Attention>();
  if (op == nullptr || !is_plain(*op) || inner.wanted[1]) return std::nullopt;
  const auto q = third(uses, inner.operands[0], *op, 0);
  const auto k = third(uses, inner.operands[1], *op, 1);
  const auto v = third(uses, inner.operands[2], *op, 2);
  if (!q || !k || !v || q->packed != k->packed || q->packed != v->packed ||
      q->tables != k->tables || v->tables) {
    return std::nullopt;
  }
  const auto in = projection(uses, q->packed);
  if (!in || in->bias.has_value() != out->bias.has_value()) return std::nullopt;
  const Type& hidden = uses.type(in->x);
  const std::int64_t columns = 3 * op->num_heads * op->head_dim;
  if (hidden.rank() < 2 || hidden.rank() > 3 || !uses.type(in->w).dims[1].is(columns)) {
    return std::nullopt;
  }
  const Dim rows = hidden.rank() == 3 ? hidden.dims[0] * hidden.dims[1] : hidden.dims[0];
  const auto count = rows.try_value();
  if (!count || *count > most_rows) return std::nullopt;

  std::vector<ValueId> operands = {in->x, in->w, out->w};
  if (op->mask_kind.has_operand()) operands.push_back(inner.operands[3]);
  if (in->bias) operands.insert(operands.end(), {*in->bias, *out->bias});
  if (q->tables) operands.insert(operands.end(), q->tables->begin(), q->tables->end());
  const op::FusedAttentionBlock block{.num_heads = op->num_heads,
                                      .head_dim = op->head_dim,
                                      .has_bias = in->bias.has_value(),
                                      .has_rope = q->tables.has_value(),
                                      .mask_kind = op->mask_kind,
                                      .score_scale = op->score_scale,
                                      .attn_logit_softcap = op->attn_logit_softcap};
  return Fusion{id, {{id, 0}}, [=](Rebuilder& r) {
                  std::vector<Value> values;
                  for (const ValueId x : operands) values.push_back(r.value(x));
                  return std::vector{fused_attention_block(values, block)};
                }};
}

}  // namespace

PassResult fuse_attention_block(const Graph& graph, const AttentionBlockOptions& options) {
  return make_fusions(graph, "fuse_attention_block", [&](const Graph& g) {
    const Uses uses(g);
    std::vector<Fusion> found;
    std::vector<bool> taken(g.size(), false);
    // From the end: the sum with a bias before the product in it.
    for (auto id = static_cast<NodeId>(g.size()); id-- > 0;) {
      if (taken[id]) continue;
      auto block = attention_block(uses, id, options.most_rows);
      if (!block) continue;
      for (const ValueId v : g.node(id).operands) taken[v.node] = true;
      found.push_back(std::move(*block));
    }
    return found;
  });
}

}  // namespace ricci
