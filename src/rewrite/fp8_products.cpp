// x·w with x ≈ s_x·c_x and w ≈ s_w·c_w is s_x·s_w·(c_x·c_w): codes c in FP8, and a scale s that
// takes the largest magnitude of a tensor to the largest code. Scales carry no derivative.
#include "rewrite/fp8_products.h"

#include <limits>
#include <map>

#include "ricci/build/build.h"
#include "ricci/op/ops.h"
#include "ricci/quant/tiny_float.h"

#include "rewrite/name_pattern.h"
#include "rewrite/replace_nodes.h"

namespace ricci {
namespace {

double largest_of(CodeKind kind) {
  return kind == CodeKind::E5m2 ? quant::fp8_e5m2_value(0x7B) : quant::fp8_e4m3_value(0x7E);
}

struct Coded {
  Value codes;  // as floats of the dtype that is multiplied
  Value scale;  // of rank 0
};

// Zero is no scale: tensors of zeros, and those without elements, have the least normal number.
Coded coded(Value x, CodeKind kind, DType to) {
  Value most = abs(stop_gradient(x));
  Axes all;
  for (std::size_t i = 0; i < x.rank(); ++i) all.emplace_back(static_cast<std::int64_t>(i));
  if (!all.empty()) most = reduce(most, {.op = ReduceKind::Max, .axes = all});
  const Value scale =
      max(most / largest_of(kind), static_cast<double>(std::numeric_limits<float>::min()));
  const Value codes = quantize(x / scale, {.scales = {1.0}, .to = kind});
  return {dequantize(codes, {.scales = {1.0}, .from = kind, .to = to}), scale};
}

// The value itself; its cotangent is rounded.
Value with_rounded_cotangent(Value y, CodeKind kind) {
  const auto rounded = [kind](Graph&, const VjpInputs& in) {
    const Coded d = coded(in.d_outputs[0], kind, in.d_outputs[0].dtype());
    return std::vector{d.codes * d.scale};
  };
  const auto same = [](Graph&, std::span<const Value> in) {
    return std::vector<Value>(in.begin(), in.end());
  };
  return custom_fn(std::vector{y}, same, {.vjp = rounded});
}

class Fp8Writer {
 public:
  explicit Fp8Writer(const PrecisionPolicy& policy) : policy_(policy), recipe_(*policy.fp8) {}

  NewResults operator()(const NodeVisit& v) {
    if (!concerns(v)) return std::nullopt;
    const Coded a = coded_once(v.operands[0]);
    const Coded b = coded_once(v.operands[1]);
    const Value product = v.graph().add_node(v.node.op, std::vector{a.codes, b.codes})[0];
    const Value y = cast(product, {.to = DType::F32}) * a.scale * b.scale;
    return std::vector{with_rounded_cotangent(y, recipe_.cotangents)};
  }

 private:
  [[nodiscard]] bool concerns(const NodeVisit& v) const {
    const Op& op = v.node.op;
    if (!op.is<op::Matmul>() && !op.is<op::DotGeneral>() && !op.is<op::Conv>()) return false;
    for (const Value& x : v.operands) {
      if (x.dtype() != DType::F32) return false;
      if (v.graph().node(x.id().node).op.is<op::Dequantize>()) return false;
    }
    for (auto rule = policy_.rules.rbegin(); rule != policy_.rules.rend(); ++rule) {
      if (is_meant(rule->pattern, v.node, rule->ops_only)) return rule->dtype == policy_.compute;
    }
    return true;
  }

  // What several products read is rounded once.
  Coded coded_once(Value x) {
    const auto found = known_.find(x.id());
    if (found != known_.end()) return found->second;
    return known_.emplace(x.id(), coded(x, recipe_.operands, policy_.compute)).first->second;
  }

  const PrecisionPolicy& policy_;
  const Fp8Recipe& recipe_;
  std::map<ValueId, Coded> known_;
};

}  // namespace

PassResult fp8_products(const Graph& graph, const PrecisionPolicy& policy) {
  Fp8Writer writer(policy);
  return replace_nodes(
      graph, "fp8_products", [&](const NodeVisit& v) { return writer(v); },
      [&](const Graph& body) { return fp8_products(body, policy); });
}

}  // namespace ricci
