#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ricci/build/build.h"
#include "ricci/compiler/rewrite/loops.h"

#include "op/loop_layout.h"
#include "rewrite/replace_nodes.h"
#include "support/phases.h"

namespace ricci {
namespace {

// Rows stacked for a product behind the loop may take so many times what the loop's own rows take.
constexpr std::int64_t MostGrowth = 4;
// Multiplications of a product that is worth it: smaller ones are a few instructions of a loop that
// is written out as one piece of code.
constexpr std::int64_t LeastWork = 1 << 14;

std::int64_t elements(const Type& type) { return type.numel().value(); }

Dims dims_of_rows(const Dim& first, const Dims& dims) {
  Dims out{first};
  out.insert(out.end(), dims.begin(), dims.end());
  return out;
}

// One axis further back.
Axes behind_front(const Axes& axes) {
  Axes out;
  for (const Axis a : axes) out.emplace_back(a.value + 1);
  return out;
}

bool is_view(const Node& node) { return node.op.is<op::Transpose>() || node.op.is<op::Reshape>(); }

// What is done to a scan.
struct Joined {
  struct Before {
    NodeId product;
    ValueId row, same;
  };
  struct After {
    std::size_t output;
    ValueId row, same;
  };
  struct Sum {
    std::size_t carry;
    std::vector<ValueId> terms;
  };
  std::vector<Before> before;
  std::vector<After> after;
  std::vector<Sum> sums;
  std::vector<ValueId> stacked;  // values of the body that become outputs

  [[nodiscard]] bool empty() const { return before.empty() && after.empty() && sums.empty(); }
};

// Finds the products of a body that can be joined.
class Search {
 public:
  Search(const op::Scan& op, const Node& node, const Graph& body)
      : node_(node), body_(body), layout_(op), uses_(body.use_counts()) {
    std::size_t input = 0;
    for (const NodeId id : body.inputs()) input_of_[id] = input++;
    for (NodeId id = 0; id < body.size(); ++id) same_.push_back(is_same(id));
    for (std::size_t r = layout_.carries; r < body.outputs().size(); ++r) {
      if (!node.wanted[r]) continue;
      own_rows_ += elements(body.type(body.outputs()[r]));
      stacked_.insert(body.outputs()[r]);
    }
    for (const auto& [id, k] : input_of_) {
      if (layout_.is_x(k)) own_rows_ += elements(body.nodes()[id].types[0]);
    }
  }

  Joined find() {
    for (NodeId id = 0; id < body_.size(); ++id) find_before(id);
    for (std::size_t r = layout_.carries; r < body_.outputs().size(); ++r) find_after(r);
    // Products first: what they stack is there for the other sums.
    for (const bool products : {true, false}) {
      for (std::size_t k = 0; k < layout_.carries && !layout_.trajectory; ++k)
        find_sum(k, products);
    }
    return std::move(out_);
  }

 private:
  [[nodiscard]] const Node& at(ValueId v) const { return body_.nodes()[v.node]; }
  [[nodiscard]] const Type& type(ValueId v) const { return body_.type(v); }
  [[nodiscard]] bool is_same(NodeId id) const {
    const Node& node = body_.nodes()[id];
    if (node.op.is<op::Input>()) return layout_.is_bcast(input_of_.at(id));
    if (node.op.is<op::Constant>()) return true;
    return is_view(node) && same_[node.operands[0].node];
  }
  [[nodiscard]] bool is_x(ValueId v) const {
    const auto input = input_of_.find(v.node);
    return input != input_of_.end() && layout_.is_x(input->second);
  }
  // Is it a matrix that every step multiplies rows with?
  [[nodiscard]] bool is_shared(ValueId v) const { return same_[v.node] && type(v).rank() == 2; }

  // Elements a step would have to stack for the rows of a value to be there.
  [[nodiscard]] std::int64_t missing(ValueId v) const {
    while (is_view(at(v)) && !stacked_.contains(v)) v = at(v).operands[0];
    const bool there = is_x(v) || same_[v.node] || stacked_.contains(v);
    return there ? 0 : elements(type(v));
  }
  void stack(ValueId v) {
    while (is_view(at(v)) && !stacked_.contains(v)) v = at(v).operands[0];
    if (is_x(v) || same_[v.node] || stacked_.contains(v)) return;
    stacked_.insert(v);
    out_.stacked.push_back(v);
    grown_ += elements(type(v));
  }
  [[nodiscard]] bool fits(std::int64_t more) const {
    return grown_ + more <= MostGrowth * own_rows_;
  }

  [[nodiscard]] bool is_joined(NodeId product) const {
    return std::ranges::any_of(out_.before, [&](const auto& b) { return b.product == product; });
  }

  [[nodiscard]] bool is_worth(const Node& product) const {
    return elements(product.types[0]) * type(product.operands[1]).dims.front().value() >= LeastWork;
  }

  void find_before(NodeId id) {
    const Node& node = body_.nodes()[id];
    if (!node.op.is<op::Matmul>() || uses_[id] == 0) return;
    const ValueId row = node.operands[0];
    const ValueId same = node.operands[1];
    if (!is_x(row) || !is_shared(same) || type(row).rank() < 2 || !is_worth(node)) return;
    if (!fits(elements(node.types[0]))) return;
    grown_ += elements(node.types[0]);
    out_.before.push_back({id, row, same});
    stacked_.insert({id, 0});
  }

  void find_after(std::size_t r) {
    const ValueId y = body_.outputs()[r];
    const Node& node = at(y);
    if (!node_.wanted[r] || !node.op.is<op::Matmul>() || uses_[y.node] != 1) return;
    if (is_joined(y.node)) return;
    const ValueId row = node.operands[0];
    const ValueId same = node.operands[1];
    if (!is_shared(same) || same_[row.node] || type(row).rank() < 2 || !is_worth(node)) return;
    if (!fits(missing(row))) return;
    stack(row);
    out_.after.push_back({r, row, same});
  }

  // a + b, neither of them spread.
  [[nodiscard]] bool is_plain_sum(ValueId v) const {
    const auto* binary = at(v).op.as<op::Binary>();
    return binary != nullptr && binary->kind == BinaryKind::Add && uses_[v.node] == 1 &&
           type(at(v).operands[0]) == type(v) && type(at(v).operands[1]) == type(v);
  }

  // c + terms: what is added to a carry that nothing else reads.
  [[nodiscard]] std::optional<std::vector<ValueId>> terms_of(std::size_t carry) const {
    const ValueId next = body_.outputs()[carry];
    const NodeId input = body_.inputs()[carry];
    if (uses_[input] != 1 || next.node == input) return std::nullopt;
    std::vector<ValueId> waiting{next};
    std::vector<ValueId> terms;
    bool met = false;
    while (!waiting.empty()) {
      const ValueId v = waiting.back();
      waiting.pop_back();
      if (v.node == input) {
        met = true;
      } else if (is_plain_sum(v)) {
        waiting.insert(waiting.end(), {at(v).operands[1], at(v).operands[0]});
      } else {
        terms.push_back(v);
      }
    }
    if (!met || terms.empty()) return std::nullopt;
    return terms;
  }

  // The product or sum a term is a view of.
  [[nodiscard]] ValueId core(ValueId term) const {
    while (is_view(at(term)) && uses_[term.node] == 1) term = at(term).operands[0];
    return term;
  }
  [[nodiscard]] bool is_product(ValueId v) const {
    return at(v).op.is<op::Matmul>() && uses_[v.node] == 1 && type(v).rank() == 2 &&
           is_worth(at(v)) && !same_[at(v).operands[0].node] && !same_[at(v).operands[1].node];
  }
  // What is the same in every step has no rows.
  [[nodiscard]] bool is_sum(ValueId v) const {
    const auto* reduce = at(v).op.as<op::Reduce>();
    return reduce != nullptr && reduce->op == ReduceKind::Sum && uses_[v.node] == 1 &&
           !same_[at(v).operands[0].node];
  }

  void find_sum(std::size_t k, bool products) {
    if (!node_.wanted[k]) return;
    const auto terms = terms_of(k);
    if (!terms) return;
    std::int64_t more = 0;
    std::vector<ValueId> rows;
    bool any_product = false;
    for (const ValueId term : *terms) {
      const ValueId v = core(term);
      any_product = any_product || is_product(v);
      if (!is_product(v) && !is_sum(v)) return;
      for (const ValueId operand : at(v).operands) {
        more += missing(operand);
        rows.push_back(operand);
      }
    }
    // Writing rows must not take more than to read and write the carry in every step.
    if (any_product != products || more > elements(type(body_.outputs()[k])) || !fits(more)) return;
    for (const ValueId v : rows) stack(v);
    out_.sums.push_back({k, *terms});
  }

  const Node& node_;
  const Graph& body_;
  ScanLayout layout_;
  std::vector<std::size_t> uses_;
  std::map<NodeId, std::size_t> input_of_;
  std::vector<bool> same_;     // views of bcasts and constants
  std::set<ValueId> stacked_;  // whose rows are there
  std::int64_t own_rows_ = 0;  // elements of a step's rows
  std::int64_t grown_ = 0;
  Joined out_;
};

// The scan without its products, and the products.
class Rewrite {
 public:
  Rewrite(const NodeVisit& visit, const op::Scan& op, const Joined& joined)
      : visit_(visit),
        op_(op),
        layout_(op),
        body_(*visit.node.body("body")),
        joined_(joined),
        inputs_(body_.inputs()) {}

  std::vector<Value> run() {
    add_scan();
    std::vector<Value> out = results_;
    for (const Joined::After& a : joined_.after) out[a.output] = matmul(rows(a.row), same(a.same));
    for (const Joined::Sum& s : joined_.sums) {
      Value total = visit_.operands[s.carry];
      for (const ValueId term : s.terms) total = add(total, summed(term));
      out[s.carry] = total;
    }
    return out;
  }

 private:
  [[nodiscard]] const Node& at(ValueId v) const { return body_.nodes()[v.node]; }
  [[nodiscard]] bool is_summed(std::size_t carry) const {
    return std::ranges::any_of(joined_.sums, [&](const auto& s) { return s.carry == carry; });
  }
  [[nodiscard]] bool is_after(std::size_t output) const {
    return std::ranges::any_of(joined_.after, [&](const auto& a) { return a.output == output; });
  }

  void add_scan() {
    op::Scan op = op_;
    NodeSpec spec{.op = Op(op_), .operands = {}, .bodies = {}, .wanted = {}};
    for (std::size_t k = 0; k < visit_.operands.size(); ++k) {
      if (k < layout_.carries && is_summed(k)) continue;
      spec.operands.push_back(visit_.operands[k].id());
    }
    for (const Joined::Before& b : joined_.before) {
      const Value product = matmul(rows(b.row), same(b.same));
      rows_[{b.product, 0}] = product;
      spec.operands.push_back(product.id());
    }
    op.num_carry -= static_cast<std::int64_t>(joined_.sums.size());
    op.num_xs += static_cast<std::int64_t>(joined_.before.size());
    spec.op = Op(op);
    std::vector<std::size_t> kept;  // outputs of the old body
    for (std::size_t r = 0; r < body_.outputs().size(); ++r) {
      if (r < layout_.carries ? is_summed(r) : is_after(r)) continue;
      kept.push_back(r);
      spec.wanted.push_back(visit_.node.wanted[r]);
    }
    spec.wanted.resize(kept.size() + joined_.stacked.size(), true);
    spec.bodies = {{"body", remainder(kept)}};
    const NodeId now = visit_.graph().add(std::move(spec));
    results_.resize(body_.outputs().size());
    for (std::uint32_t r = 0; r < kept.size(); ++r) {
      if (!visit_.node.wanted[kept[r]]) continue;
      results_[kept[r]] = visit_.graph().value({now, r});
      if (kept[r] >= layout_.carries) rows_[body_.outputs()[kept[r]]] = results_[kept[r]];
    }
    for (std::size_t i = 0; i < joined_.stacked.size(); ++i) {
      rows_[joined_.stacked[i]] =
          visit_.graph().value({now, static_cast<std::uint32_t>(kept.size() + i)});
    }
  }

  // The body with the products of rows as rows, without the sums.
  [[nodiscard]] std::shared_ptr<const Graph> remainder(std::span<const std::size_t> kept) const {
    std::vector<ValueId> outputs;
    for (const std::size_t r : kept) outputs.push_back(body_.outputs()[r]);
    outputs.insert(outputs.end(), joined_.stacked.begin(), joined_.stacked.end());
    std::vector<bool> given(body_.size(), false);
    std::vector<bool> needed(body_.size(), false);
    for (const Joined::Before& b : joined_.before) given[b.product] = true;
    for (const ValueId v : outputs) needed[v.node] = true;
    for (NodeId id = static_cast<NodeId>(body_.size()); id-- > 0;) {
      if (!needed[id] || given[id]) continue;
      for (const ValueId v : body_.nodes()[id].operands) needed[v.node] = true;
    }
    Rebuilder rebuild(body_);
    for (std::size_t k = 0; k < inputs_.size(); ++k) {
      if (k >= layout_.carries || !is_summed(k)) rebuild.copy(inputs_[k]);
    }
    for (const Joined::Before& b : joined_.before) {
      const Node& node = body_.nodes()[b.product];
      std::string name = rebuild.to().unique_name("product");
      while (body_.find(name)) name += "_";
      rebuild.map({b.product, 0}, rebuild.to().input(name, node.types[0]));
    }
    for (NodeId id = 0; id < body_.size(); ++id) {
      const Node& node = body_.nodes()[id];
      if (needed[id] && !given[id] && !node.op.is<op::Input>()) rebuild.copy(id);
    }
    for (ValueId& v : outputs) v = rebuild(v);
    auto out = std::make_shared<Graph>(std::move(rebuild.to()));
    out->set_outputs(std::move(outputs));
    return out;
  }

  // A value of the body that is the same in every step.
  [[nodiscard]] Value same(ValueId v) {
    const Node& node = at(v);
    if (node.op.is<op::Input>()) return visit_.operands[input_index(v.node)];
    NodeSpec spec{.op = node.op, .operands = {}};
    if (!node.operands.empty()) spec.operands.push_back(same(node.operands[0]).id());
    return visit_.graph().value({visit_.graph().add(std::move(spec)), 0});
  }
  // The values of all steps.
  [[nodiscard]] Value rows(ValueId v) {
    if (const auto found = rows_.find(v); found != rows_.end()) return found->second;
    const Node& node = at(v);
    if (node.op.is<op::Input>()) {
      const std::size_t k = input_index(v.node);
      if (layout_.is_x(k)) return visit_.operands[k];
    }
    const Value of = rows(node.operands[0]);
    if (const auto* turned = node.op.as<op::Transpose>()) {
      Axes perm = behind_front(turned->perm);
      perm.insert(perm.begin(), Axis(0));
      return transpose(of, {.perm = perm});
    }
    return reshape_to(of, dims_of_rows(op_.length, node.types[0].dims));
  }

  // A term, summed over the steps.
  [[nodiscard]] Value summed(ValueId v) {
    const Node& node = at(v);
    if (const auto* turned = node.op.as<op::Transpose>()) {
      return transpose(summed(node.operands[0]), *turned);
    }
    if (node.op.is<op::Reshape>()) return reshape_to(summed(node.operands[0]), node.types[0].dims);
    if (const auto* reduce_op = node.op.as<op::Reduce>()) {
      Axes axes = behind_front(reduce_op->axes);
      axes.insert(axes.begin(), Axis(0));
      return reshape_to(reduce(rows(node.operands[0]), {.op = ReduceKind::Sum, .axes = axes}),
                        node.types[0].dims);
    }
    // Σ a_t·b_t, the steps joined with the axis that is contracted.
    const Value a = transpose_last(rows(node.operands[0]));
    const Value b = rows(node.operands[1]);
    const Dim together = op_.length * b.dims()[1];
    const Value all_b = reshape_to(b, {together, b.dims()[2]});
    return matmul(transpose_last(reshape_to(a, {together, a.dims()[2]})), all_b);
  }

  [[nodiscard]] std::size_t input_index(NodeId id) const {
    return static_cast<std::size_t>(std::ranges::find(inputs_, id) - inputs_.begin());
  }

  const NodeVisit& visit_;
  const op::Scan& op_;
  ScanLayout layout_;
  const Graph& body_;
  const Joined& joined_;
  std::vector<NodeId> inputs_;
  std::vector<Value> results_;  // of the old scan, those that the new one gives
  std::map<ValueId, Value> rows_;
};

bool has_static_sizes(const Graph& body) {
  return std::ranges::all_of(body.nodes(), [](const Node& node) {
    return std::ranges::all_of(node.types, [](const Type& t) { return t.is_static(); });
  });
}

NewResults with_joined_products(const NodeVisit& v) {
  const auto* op = v.node.op.as<op::Scan>();
  if (op == nullptr || !op->length.is_static() || op->length.value() < 2) return std::nullopt;
  const Graph& body = *v.node.body("body");
  if (!has_static_sizes(body)) return std::nullopt;
  const Joined joined = Search(*op, v.node, body).find();
  if (joined.empty()) return std::nullopt;
  return Rewrite(v, *op, joined).run();
}

}  // namespace

Change join_loop_products(const Graph& graph) {
  const Phase phase("products of loops");
  const auto is_scan = [](const Graph&, const Node& node) { return node.op.is<op::Scan>(); };
  return replace_where(graph, "join_products", is_scan, with_joined_products);
}

PassResult join_products(const Graph& graph) {
  return or_unchanged(graph, join_loop_products(graph));
}

}  // namespace ricci
