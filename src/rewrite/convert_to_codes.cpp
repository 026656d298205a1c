// Products of what dequantize gave, as products of codes.
//
// With x = (q_x - z_x)·s_x and w = (q_w - z_w)·s_w, the product is s_x·s_w times the exact sum that
// q_matmul and q_conv2d take. A bias is added to the sum in units of s_x·s_w; relu is the zero
// point as least code.
#include <map>
#include <set>

#include "ricci/build/build.h"
#include "ricci/compiler/rewrite/cleanup.h"
#include "ricci/compiler/rewrite/quantize.h"
#include "ricci/op/ops.h"

#include "rewrite/code_ops.h"
#include "rewrite/replace_nodes.h"

namespace ricci {
namespace {

struct Factor {
  ValueId codes;
  CodeParams params;
};

// A product that codes can do.
struct CodeProduct {
  NodeId id = 0;
  Factor x;
  Factor w;
  bool is_conv = false;
  bool fits_i32 = false;  ///< no sum is too large for 32 bits

  [[nodiscard]] std::size_t channels() const { return w.params.scales.size(); }
  // What a step of the exact sum is worth.
  [[nodiscard]] double unit(std::size_t channel) const {
    return x.params.scales[0].value * w.params.scales[channel].value;
  }
  [[nodiscard]] std::vector<std::int64_t> w_zeros() const {
    if (w.params.zero_points.empty()) return {0};
    return w.params.zero_points;
  }
};

// quantize(relu?(product + bias?))
struct Island {
  CodeProduct product;
  std::optional<ValueId> bias;
  bool relu = false;
};

bool fits_dtype(const Factor& f, const Graph& graph, bool may_be_unsigned) {
  const DType dtype = graph.type(f.codes).dtype;
  const bool whole = !is_floating_code(f.params.to);
  return whole && (dtype == DType::I8 || (may_be_unsigned && dtype == DType::U8));
}

class Islands {
 public:
  explicit Islands(const Graph& graph) : graph_(graph), uses_(graph.use_counts()) {
    for (NodeId id = 0; id < graph.size(); ++id) {
      if (auto product = code_product(id)) products_.emplace(id, *product);
    }
    for (NodeId id = 0; id < graph.size(); ++id) {
      if (auto found = island(graph.nodes()[id])) {
        absorbed_.insert(found->product.id);
        islands_.emplace(id, *found);
      }
    }
  }

  [[nodiscard]] const Island* island_at(NodeId id) const {
    const auto at = islands_.find(id);
    return at == islands_.end() ? nullptr : &at->second;
  }
  // A product whose sums become floats.
  [[nodiscard]] const CodeProduct* product_at(NodeId id) const {
    const auto at = products_.find(id);
    if (at == products_.end() || absorbed_.contains(id)) return nullptr;
    return at->second.fits_i32 ? &at->second : nullptr;
  }

 private:
  [[nodiscard]] std::optional<Factor> factor(ValueId v) const {
    const Node& node = graph_.node(v.node);
    const auto* op = node.op.as<op::Dequantize>();
    if (op == nullptr || op->to != DType::F32) return std::nullopt;
    const auto params = params_of(*op, graph_.type(node.operands[0]).dtype);
    if (!params) return std::nullopt;
    return Factor{node.operands[0], *params};
  }

  [[nodiscard]] std::optional<CodeProduct> code_product(NodeId id) const {
    const Node& node = graph_.nodes()[id];
    const bool is_conv = node.op.is<op::Conv>();
    if (!is_conv && !node.op.is<op::Matmul>()) return std::nullopt;
    const auto x = factor(node.operands[0]);
    const auto w = factor(node.operands[1]);
    if (!x || !w || x->params.axis) return std::nullopt;
    const Type& type = graph_.type(node.operands[1]);
    if (is_conv && type.rank() != 4) return std::nullopt;
    const std::size_t columns = is_conv ? 0 : type.rank() - 1;
    if (w->params.axis && w->params.axis->index() != columns) return std::nullopt;
    if (!fits_dtype(*x, graph_, true) || !fits_dtype(*w, graph_, false)) return std::nullopt;
    return CodeProduct{id, *x, *w, is_conv, sums_fit(type, is_conv)};
  }

  // Products of differences of 8 bits, so many of them.
  [[nodiscard]] static bool sums_fit(const Type& w, bool is_conv) {
    constexpr std::int64_t Longest = std::int64_t{1} << 15;
    const std::span dims(w.dims);
    const Dim depth = is_conv ? product(dims.subspan(1)) : dims[dims.size() - 2];
    return depth.is_static() && depth.value() <= Longest;
  }

  // Is nothing but the next op of an island interested in this one?
  [[nodiscard]] bool is_private(ValueId v) const { return uses_[v.node] == 1; }

  [[nodiscard]] std::optional<Island> island(const Node& end) const {
    const auto* op = end.op.as<op::Quantize>();
    const bool fits = op != nullptr && !op->axis && !op->clip &&
                      (op->to == CodeKind::I8 || op->to == CodeKind::U8);
    if (!fits || !is_private(end.operands[0])) return std::nullopt;
    Island out;
    ValueId at = end.operands[0];
    const auto* unary = graph_.node(at.node).op.as<op::Unary>();
    if (unary != nullptr && unary->kind == UnaryKind::Relu) {
      out.relu = true;
      at = graph_.node(at.node).operands[0];
      if (!is_private(at)) return std::nullopt;
    }
    if (const auto direct = products_.find(at.node); direct != products_.end()) {
      out.product = direct->second;
      return out;
    }
    const Node& sum = graph_.node(at.node);
    const auto* binary = sum.op.as<op::Binary>();
    if (binary == nullptr || binary->kind != BinaryKind::Add) return std::nullopt;
    for (const std::size_t k : {std::size_t{0}, std::size_t{1}}) {
      const auto product = products_.find(sum.operands[k].node);
      if (product == products_.end() || !is_private(sum.operands[k])) continue;
      if (sum.types[0] != graph_.type(sum.operands[k])) continue;
      out.bias = bias_of(product->second, sum.operands[1 - k]);
      if (!out.bias) continue;
      out.product = product->second;
      return out;
    }
    return std::nullopt;
  }

  // A number for each column, or one for all; an expand that repeats it is looked through.
  [[nodiscard]] std::optional<ValueId> bias_of(const CodeProduct& product, ValueId v) const {
    const Dims& out = graph_.nodes()[product.id].types[0].dims;
    while (graph_.node(v.node).op.is<op::Expand>()) v = graph_.node(v.node).operands[0];
    const Dims& dims = graph_.type(v).dims;
    const std::size_t column = product.is_conv ? 1 : out.size() - 1;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      const std::size_t at = out.size() - dims.size() + i;
      if (!dims[i].is(1) && (at != column || dims[i] != out[column])) return std::nullopt;
    }
    return v;
  }

  const Graph& graph_;
  std::vector<std::size_t> uses_;
  std::map<NodeId, CodeProduct> products_;
  std::map<NodeId, Island> islands_;
  std::set<NodeId> absorbed_;
};

// s_x·s_w as a constant that broadcasts along the columns of the product.
Value unit_value(Graph& graph, const CodeProduct& product, std::size_t behind) {
  std::vector<double> units;
  for (std::size_t c = 0; c < product.channels(); ++c) units.push_back(product.unit(c));
  Type type = f32({});
  if (units.size() > 1) {
    type.dims.emplace_back(static_cast<std::int64_t>(units.size()));
    type.dims.insert(type.dims.end(), behind, Dim(1));
  }
  return graph.constant(Tensor::from_numbers<double>(type, units));
}

// rne(bias / (s_x·s_w)), held where i32 and f32 both have numbers.
Value bias_codes(const CodeProduct& product, Value bias, const Dim& columns) {
  constexpr double Most = 2147483520;
  Value flat = bias.type().numel() == 1 ? broadcast_to(reshape_to(bias, {1}), {columns})
                                        : reshape_to(bias, {columns});
  flat = flat / unit_value(bias.graph(), product, 0);
  return cast_to(min(max(round(flat), -Most), Most), DType::I32);
}

template <class Q>
Q attributes(const CodeProduct& product) {
  Q op;
  op.x_zp = zero_point(product.x.params, 0);
  op.w_zp = product.w_zeros();
  return op;
}

Value emit(const NodeVisit& v, const Graph& from, const CodeProduct& product,
           std::optional<Value> bias, const auto& adjust) {
  std::vector<Value> operands = {v.rebuild.value(product.x.codes),
                                 v.rebuild.value(product.w.codes)};
  if (bias) operands.push_back(*bias);
  if (const auto* conv = from.nodes()[product.id].op.as<op::Conv>()) {
    auto op = attributes<op::QConv2d>(product);
    op.stride = conv->stride;
    op.padding = conv->padding;
    op.dilation = conv->dilation;
    op.groups = conv->groups;
    adjust(op);
    return v.graph().add_node(Op(op), operands)[0];
  }
  auto op = attributes<op::QMatmul>(product);
  adjust(op);
  return v.graph().add_node(Op(op), operands)[0];
}

Value emit_island(const NodeVisit& v, const Graph& from, const Island& island) {
  const CodeParams out = params_of(*v.node.op.as<op::Quantize>());
  const CodeProduct& product = island.product;
  std::optional<Value> bias;
  if (island.bias) {
    const Dims& dims = from.nodes()[product.id].types[0].dims;
    const Dim columns = dims[product.is_conv ? 1 : dims.size() - 1];
    const Value given = v.rebuild.value(*island.bias);
    bias = bias_codes(product, given, columns);
    const std::string* leaf = from.node(island.bias->node).leaf_name();
    if (leaf != nullptr) bias->named(*leaf + "_codes");
  }
  return emit(v, from, product, bias, [&](auto& op) {
    op.mult.clear();
    for (std::size_t c = 0; c < product.channels(); ++c) {
      op.mult.emplace_back(product.unit(c) / out.scales[0].value);
    }
    op.out_zp = zero_point(out, 0);
    op.to = code_dtype_of(out.to);
    if (island.relu) op.low = op.out_zp;
  });
}

Value emit_sums(const NodeVisit& v, const Graph& from, const CodeProduct& product) {
  const Value sums = emit(v, from, product, std::nullopt, [](auto& op) { op.to = DType::I32; });
  const Value unit = unit_value(v.graph(), product, product.is_conv ? 2 : 0);
  return cast_to(sums, DType::F32) * unit;
}

PassResult convert_live(const Graph& graph) {
  const Islands islands(graph);
  return replace_nodes(
      graph, "convert_to_codes",
      [&](const NodeVisit& v) -> NewResults {
        if (const Island* island = islands.island_at(v.id)) {
          return std::vector{emit_island(v, graph, *island)};
        }
        const CodeProduct* product = islands.product_at(v.id);
        if (product == nullptr) return std::nullopt;
        return std::vector{emit_sums(v, graph, *product)};
      },
      convert_to_codes);
}

}  // namespace

// What nobody reads would be a reader here; what is converted leaves its floats behind.
PassResult convert_to_codes(const Graph& graph) {
  PassResult live = dead_code_elimination(graph);
  PassResult converted = convert_live(live.graph);
  if (!converted.changed) return unchanged(graph);
  PassResult last = dead_code_elimination(converted.graph);
  return {std::move(last.graph), live.map.then(converted.map).then(last.map), true};
}

}  // namespace ricci
