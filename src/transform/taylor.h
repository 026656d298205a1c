// The sweep of Taylor mode: mirrors a graph into a new one with the series of every value along a
// curve. One coefficient costs a sum over earlier ones, so a derivative of order n costs about n²
// times the graph, where nesting doubles it n times.
//
// How the series of a node follows, for every op alike:
// - Its forward rule says y' = J(x)·x'. Where J does not change along the curve, the rule maps
//   coefficients as it maps tangents: y_k = J·x_k.
// - Products and quotients have their recurrences; control flow carries coefficients through its
//   bodies; what is defined by its parts is taken apart.
// - Otherwise the rule is read into a graph of functions of s (`RuleGraph`), with leaves for x' and
//   for y itself, and k·y_k is coefficient k-1 of what it gives for y'. That needs only earlier
//   coefficients of y, and the functions on the way are treated in the same manner.
#pragma once

#include <deque>
#include <vector>

#include "ricci/compiler/rule/series.h"
#include "ricci/ir/rebuild.h"
#include "ricci/transform/transformed.h"

#include "transform/rule_graph.h"

namespace ricci {

class Taylor {
 public:
  Taylor(const Graph& graph, std::size_t order);

  Taylor(const Taylor&) = delete;  // values and steps point into it
  Taylor& operator=(const Taylor&) = delete;

  [[nodiscard]] Graph& graph() noexcept { return build_.to(); }
  /// Copies the leaves, so that series can be given before anything else is built.
  void copy_leaves();
  /// Coefficients 1, 2, … of a leaf of the old graph; without any it stays where it is.
  void set_series(ValueId leaf, Series series);
  void sweep();
  [[nodiscard]] Value value(ValueId old) { return build_.value(old); }
  /// Coefficients of a value of the old graph without trailing zeros.
  [[nodiscard]] Series series(ValueId old);
  [[nodiscard]] Transformed finish(const std::vector<Value>& outputs);

 private:
  using Results = std::vector<Value>;  // one per result of a node; invalid where zero or unwanted

  // How the coefficients of a node of the rule graph are found.
  enum class Way : std::uint8_t {
    Undecided,
    Constant,  // there are none
    Given,     // by the caller
    RateOf,    // from those of another value, one up
    Parts,     // as what the node is written in
    Joint,     // by its rule for series
    Product,
    Quotient,
    Rate,    // by the forward rule, which is not read yet;
    Linear,  // and maps coefficients as it does tangents,
    Slope,   // or gives y' as a function of s
  };
  struct State {
    Way way = Way::Undecided;
    bool in_rule = false;             // added by a rule: what it is made of may wait for it
    std::vector<Results> known = {};  // per order
    Results derived = {};  // in the rule graph. Slope: y'; Parts: what stands for the results
  };

  void take(NodeId id);
  [[nodiscard]] State& state(NodeId id);
  [[nodiscard]] Way decide(NodeId id);
  void read_rule(NodeId id);
  void take_apart(NodeId id);
  void solve_jointly(NodeId id);

  // Coefficient k of a value of the rule graph, in the graph under construction.
  [[nodiscard]] Value coefficient(ValueId v, std::size_t k);
  [[nodiscard]] Value value_or_zero(ValueId v);
  [[nodiscard]] Results compute(NodeId id, std::size_t k);
  [[nodiscard]] Results evaluate(NodeId id);
  [[nodiscard]] Results apply(const Node& node, const std::vector<Value>& operands);
  [[nodiscard]] Results push(NodeId id, std::size_t k);
  [[nodiscard]] Results product(NodeId id, std::size_t k);
  [[nodiscard]] Value square(NodeId id, std::size_t k);
  [[nodiscard]] Value quotient(NodeId id, std::size_t k);
  [[nodiscard]] Results integrated(NodeId id, std::size_t k);
  [[nodiscard]] SeriesResults joint(NodeId id, std::size_t order);

  const Graph& from_;
  std::size_t order_;
  Rebuilder build_;
  RuleGraph rules_;
  std::vector<ValueId> mirrored_;  // per node of the old graph: its place in the rule graph
  std::deque<State> states_;       // per node of the rule graph
  bool in_rule_ = false;
};

}  // namespace ricci
