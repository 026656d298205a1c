// Rules about ops that move, convert, select and reduce, and about control flow.
#include <algorithm>

#include "ricci/build/build.h"
#include "ricci/ir/rebuild.h"

#include "op/loop_layout.h"
#include "rewrite/exact.h"
#include "rewrite/rule.h"
#include "rewrite/splat.h"

namespace ricci {
namespace {

using Single = std::optional<Value>;

// transpose(transpose(x, p), q) -> transpose(x, p∘q)
Single fuse_transposes(const op::Transpose& outer, Rewriter& r) {
  const auto inner = r.operand_as<op::Transpose>(0);
  if (!inner) return std::nullopt;
  Axes perm;
  for (const Axis a : outer.perm) perm.push_back(inner->op.perm[a.index()]);
  return r.build(op::Transpose{perm}, {inner->x});
}

// transpose(x, [0, 1, …]) -> x
Single drop_identity_transpose(const op::Transpose& op, Rewriter& r) {
  for (std::size_t i = 0; i < op.perm.size(); ++i) {
    if (op.perm[i].index() != i) return std::nullopt;
  }
  return r.operand(0);
}

// transpose(x, p) -> reshape(x) where p leaves the axes that are not of size 1 in their order
Single transpose_of_unit_axes(const op::Transpose& op, Rewriter& r) {
  std::int64_t last = -1;
  for (const Axis a : op.perm) {
    if (r.operand(0).dims()[a.index()].is(1)) continue;
    if (a.value < last) return std::nullopt;
    last = a.value;
  }
  return r.build(op::Reshape{r.type().dims}, {r.operand(0)});
}

// reshape(reshape(x, a), b) -> reshape(x, b)
Single fuse_reshapes(const op::Reshape& outer, Rewriter& r) {
  const auto inner = r.operand_as<op::Reshape>(0);
  if (!inner) return std::nullopt;
  return r.build(outer, {inner->x});
}

// reshape(x, shape of x) -> x
Single drop_identity_reshape(const op::Reshape&, Rewriter& r) {
  if (r.operand(0).type() != r.type()) return std::nullopt;
  return r.operand(0);
}

// expand(expand(x, a), b) -> expand(x, b)
Single fuse_expands(const op::Expand& outer, Rewriter& r) {
  const auto inner = r.operand_as<op::Expand>(0);
  if (!inner) return std::nullopt;
  return r.build(outer, {inner->x});
}

// expand(x, shape of x) -> x
Single drop_identity_expand(const op::Expand&, Rewriter& r) {
  if (r.operand(0).type() != r.type()) return std::nullopt;
  return r.operand(0);
}

// expand(x, [1, …, shape of x]) -> reshape(x)
Single expand_by_unit_axes(const op::Expand&, Rewriter& r) {
  const Dims& from = r.operand(0).dims();
  const Dims& to = r.type().dims;
  const std::size_t added = to.size() - from.size();
  if (added == 0 || !std::equal(from.begin(), from.end(), to.begin() + static_cast<long>(added))) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < added; ++i) {
    if (!to[i].is(1)) return std::nullopt;
  }
  return r.build(op::Reshape{to}, {r.operand(0)});
}

// cast(x, dtype of x) -> x
Single drop_identity_cast(const op::Cast& op, Rewriter& r) {
  if (r.operand(0).dtype() != op.to) return std::nullopt;
  return r.operand(0);
}

// cast(cast(x, a), b) -> cast(x, b) where a holds all values of x
Single fuse_exact_casts(const op::Cast& outer, Rewriter& r) {
  const auto inner = r.operand_as<op::Cast>(0);
  if (!inner || !cast_may_skip(inner->x.dtype(), inner->op.to, outer.to)) return std::nullopt;
  return r.build(outer, {inner->x});
}

// narrow(narrow(x, s, m), t, n) -> narrow(x, s + t, n) along one axis
Single narrow_of_narrow(const op::Narrow& outer, Rewriter& r) {
  const auto inner = r.operand_as<op::Narrow>(0);
  if (!inner || inner->op.axis != outer.axis) return std::nullopt;
  return r.build(op::Narrow{outer.axis, inner->op.start + outer.start, outer.len}, {inner->x});
}

// narrow(x, 0, all) -> x
Single drop_full_narrow(const op::Narrow& op, Rewriter& r) {
  if (!op.start.is(0) || r.operand(0).type() != r.type()) return std::nullopt;
  return r.operand(0);
}

// reshape, transpose, expand or narrow of one repeated element -> that element repeated
Single movement_of_splat(Rewriter& r) {
  const auto element = splat_element(r.constant(r.operand(0)));
  if (!element || !r.type().is_static()) return std::nullopt;
  return r.graph().constant(element->broadcast_to(r.type().static_dims()));
}
Single reshape_of_splat(const op::Reshape&, Rewriter& r) { return movement_of_splat(r); }
Single transpose_of_splat(const op::Transpose&, Rewriter& r) { return movement_of_splat(r); }
Single expand_of_splat(const op::Expand&, Rewriter& r) { return movement_of_splat(r); }
Single narrow_of_splat(const op::Narrow&, Rewriter& r) { return movement_of_splat(r); }

// stop_gradient(stop_gradient(x)) -> stop_gradient(x)
Single fuse_stop_gradients(const op::StopGradient&, Rewriter& r) {
  if (!r.operand_as<op::StopGradient>(0)) return std::nullopt;
  return r.operand(0);
}

// where(true, a, b) -> a; where(false, a, b) -> b
Single where_with_constant_condition(const op::Where&, Rewriter& r) {
  const auto element = splat_element(r.constant(r.operand(0)));
  if (!element) return std::nullopt;
  const bool chosen = element->numbers<std::complex<double>>()[0] != std::complex<double>(0);
  return r.fit(r.operand(chosen ? 1 : 2));
}

// reduce(x) -> reshape(x) over axes of size 1. Sums and means of floats turn -0.0 into 0.0, so they
// stay.
Single reduce_over_unit_axes(const op::Reduce& op, Rewriter& r) {
  const Value x = r.operand(0);
  if (x.dtype() != r.type().dtype) return std::nullopt;
  for (const Axis a : op.axes) {
    if (!x.dims()[a.index()].is(1)) return std::nullopt;
  }
  const bool integer = is_int(x.dtype()) || x.dtype() == DType::Bool;
  const auto keeps_one_element = [&] {
    switch (op.op) {
      case ReduceKind::Max:
      case ReduceKind::Min: return true;
      case ReduceKind::Any:
      case ReduceKind::All: return x.dtype() == DType::Bool;
      case ReduceKind::Prod: return integer || is_float(x.dtype());
      case ReduceKind::Sum: return integer;
      case ReduceKind::Mean:
      case ReduceKind::LogSumExp: break;
    }
    return false;
  };
  if (!keeps_one_element()) return std::nullopt;
  if (x.type() == r.type()) return x;
  return r.build(op::Reshape{r.type().dims}, {x});
}

// if(constant, captures…) -> the body it chooses, written out
Replacement if_with_constant_predicate(const op::If&, Rewriter& r) {
  const Tensor* t = r.constant(r.operand(0));
  if (t == nullptr || t->numel() != 1) return std::nullopt;
  const bool chosen = t->numbers<std::complex<double>>()[0] != std::complex<double>(0);
  return inline_subgraph(*r.root().body(chosen ? "then" : "else"), r.operands().subspan(1),
                         r.graph());
}

// scan of no steps -> its initial carries, and nothing stacked
Replacement scan_of_no_steps(const op::Scan& op, Rewriter& r) {
  if (!op.length.is(0)) return std::nullopt;
  const Node& root = r.root();
  const auto carries = op.save_trajectory ? 0 : ScanLayout(op).carries;
  for (std::size_t k = carries; k < root.types.size(); ++k) {
    if (root.types[k].numel() != 0) return std::nullopt;
  }
  std::vector<Value> out;
  for (std::size_t k = 0; k < root.types.size(); ++k) {
    out.push_back(k < carries ? r.operand(k) : r.graph().constant(Tensor::splat(root.types[k], 0)));
  }
  return out;
}

template <class Function>
struct RuleFunction;
template <class Result, class T>
struct RuleFunction<Result (*)(const T&, Rewriter&)> {
  using Root = T;
};

// A rule from its function: the root op is the function's first parameter.
template <auto Function>
Rule rule_of(std::string_view name, std::string_view identity) {
  using Root = typename RuleFunction<decltype(Function)>::Root;
  return {name, identity, kind_of<Root>, [](Rewriter& r) -> Replacement {
            auto found = Function(*r.root().op.template as<Root>(), r);
            if (!found) return std::nullopt;
            if constexpr (std::is_same_v<decltype(found), Single>) {
              return std::vector{*found};
            } else {
              return found;
            }
          }};
}

}  // namespace

std::span<const Rule> structure_rules() {
  static const std::vector<Rule> rules = {
      rule_of<fuse_transposes>("fuse_transposes",
                               "transpose(transpose(x, p), q) -> transpose(x, p∘q)"),
      rule_of<drop_identity_transpose>("drop_identity_transpose", "transpose(x, [0, 1, …]) -> x"),
      rule_of<transpose_of_unit_axes>("transpose_of_unit_axes",
                                      "transpose(x, p) -> reshape(x) where only 1s move"),
      rule_of<fuse_reshapes>("fuse_reshapes", "reshape(reshape(x, a), b) -> reshape(x, b)"),
      rule_of<drop_identity_reshape>("drop_identity_reshape", "reshape(x, shape of x) -> x"),
      rule_of<fuse_expands>("fuse_expands", "expand(expand(x, a), b) -> expand(x, b)"),
      rule_of<drop_identity_expand>("drop_identity_expand", "expand(x, shape of x) -> x"),
      rule_of<expand_by_unit_axes>("expand_by_unit_axes", "expand(x, [1, …]) -> reshape(x)"),
      rule_of<drop_identity_cast>("drop_identity_cast", "cast(x, dtype of x) -> x"),
      rule_of<fuse_exact_casts>("fuse_exact_casts",
                                "cast(cast(x, a), b) -> cast(x, b) where a loses nothing"),
      rule_of<narrow_of_narrow>("narrow_of_narrow",
                                "narrow(narrow(x, s, m), t, n) -> narrow(x, s + t, n)"),
      rule_of<drop_full_narrow>("drop_full_narrow", "narrow(x, 0, all) -> x"),
      rule_of<reshape_of_splat>("reshape_of_splat", "reshape(splat c) -> splat c"),
      rule_of<transpose_of_splat>("transpose_of_splat", "transpose(splat c) -> splat c"),
      rule_of<expand_of_splat>("expand_of_splat", "expand(splat c) -> splat c"),
      rule_of<narrow_of_splat>("narrow_of_splat", "narrow(splat c) -> splat c"),
      rule_of<fuse_stop_gradients>("fuse_stop_gradients",
                                   "stop_gradient(stop_gradient(x)) -> stop_gradient(x)"),
      rule_of<where_with_constant_condition>("where_with_constant_condition",
                                             "where(true, a, b) -> a, where(false, a, b) -> b"),
      rule_of<reduce_over_unit_axes>("reduce_over_unit_axes",
                                     "reduce(x, axes of size 1) -> reshape(x)"),
      rule_of<if_with_constant_predicate>("if_with_constant_predicate",
                                          "if(constant, x…) -> the chosen body of x…"),
      rule_of<scan_of_no_steps>("scan_of_no_steps", "scan of length 0 -> its initial carries"),
  };
  return rules;
}

}  // namespace ricci
