#include "support/open_numbers.h"

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "ricci/build/build.h"
#include "ricci/build/elementwise.h"
#include "ricci/op/ops.h"

#include "rewrite/replace_nodes.h"
#include "support/exact_nodes.h"

namespace ricci::testing {
namespace {

using Parts = std::vector<Value>;  // one, or those of a complex value

Parts parts_of(Value v) {
  if (!is_complex(v.dtype())) return {v};
  return {real(v), imag(v)};
}

Value joined(const Parts& parts) {
  return parts.size() == 1 ? parts[0] : make_complex(parts[0], parts[1]);
}

struct Extremes {
  double tiny;   // the smallest that is normal
  double large;  // with room for a product of two
};
Extremes extremes(DType dtype) {
  switch (dtype) {
    case DType::F64: return {0x1p-1022, 0x1p+400};
    case DType::F16: return {0x1p-14, 0x1p+7};
    default: return {0x1p-126, 0x1p+50};
  }
}

constexpr double NaN = std::numeric_limits<double>::quiet_NaN();
constexpr double Infinity = std::numeric_limits<double>::infinity();

template <class F>
Value by_part(Value v, F&& of) {
  if (!is_differentiable(v.dtype())) return v;
  Parts parts = parts_of(v);
  for (Value& p : parts) p = of(p);
  return joined(parts);
}

// The value with its zeros moved.
Value without_zeros(Value v, double sign) {
  return by_part(v, [&](Value p) {
    return where(eq(p, 0.0), scalar_like(p, sign * extremes(p.dtype()).tiny), p);
  });
}

// With something else for what is not finite.
Value without_infinities(Value v, double other) {
  return by_part(v, [&](Value p) { return where(is_finite(p), p, scalar_like(p, other)); });
}

// With large numbers for infinities, and back; what is NaN stays it.
Value with_large_numbers(Value v) {
  return by_part(v, [&](Value p) {
    const double large = extremes(p.dtype()).large;
    return clamp(p, -large, large);
  });
}
Value with_infinities(Value part) {
  const double large = extremes(part.dtype()).large;
  const Value beyond =
      where(lt(part, 0.0), scalar_like(part, -Infinity), scalar_like(part, Infinity));
  return where(ge(abs(part), std::sqrt(large)), beyond, part);
}

bool transforms(const Op& op) {
  return op.is<op::Fft>() || op.is<op::Rfft>() || op.is<op::Irfft>();
}

// What is beyond 1, in f64, which products are kept in, and ones for the rest.
Value beyond_one(Value v) {
  const Value size = abs(cast_to(v, DType::F64));
  return where(gt(size, 1.0), size, scalar_like(size, 1.0));
}

bool multiplies_floats(const Op& op, DType dtype) {
  const auto* reduce = op.as<op::Reduce>();
  return reduce != nullptr && reduce->op == ReduceKind::Prod && is_float(dtype);
}

// What an op is asked with beside its operands, the first of which is of that dtype.
std::vector<std::function<Value(Value)>> questions(const Op& op, DType dtype, Way way) {
  if (way == Way::MostNaN && multiplies_floats(op, dtype)) return {beyond_one, beyond_one};
  if (way == Way::LargeNumbers) return {with_large_numbers};
  const bool odd = transforms(op);
  const auto above = [odd](Value v) {
    return odd ? without_infinities(v, NaN) : without_zeros(v, 1);
  };
  const auto below = [odd](Value v) {
    return odd ? without_infinities(v, 0) : without_zeros(v, -1);
  };
  if (way == Way::ZerosAbove) return {above};
  if (way == Way::ZerosBelow) return {below};
  return {above, below};
}

// One part of what an op gives, and of what it answers to the questions.
Value chosen(Way way, Value plain, const std::vector<Value>& answers) {
  if (way == Way::LargeNumbers) return where(is_nan(plain), with_infinities(answers[0]), plain);
  if (way != Way::MostNaN) return where(is_nan(plain), answers[0], plain);
  const Value stays =
      where(is_finite(plain), logical_and(is_finite(answers[0]), is_finite(answers[1])),
            logical_not(logical_or(is_nan(answers[0]), is_nan(answers[1]))));
  return where(stays, plain, scalar_like(plain, NaN));
}

std::vector<Value> results_of(const NodeVisit& v, const std::vector<Value>& operands) {
  NodeSpec spec{.op = v.node.op, .operands = {}, .bodies = v.node.bodies, .wanted = v.node.wanted};
  for (const Value& x : operands) spec.operands.push_back(x.id());
  const NodeId id = v.graph().add(std::move(spec));
  std::vector<Value> results;
  for (std::uint32_t r = 0; r < v.node.types.size(); ++r) {
    results.push_back(v.node.wanted[r] ? v.graph().value({id, r}) : Value());
  }
  return results;
}

}  // namespace

Graph going(const Graph& graph, Way way) {
  const auto rewrite = [&](const NodeVisit& v) -> NewResults {
    if (is_loop_or_branch(v.node) || node_is_exact(v.rebuild.from(), v.node)) return std::nullopt;
    std::vector<Value> plain = results_of(v, v.operands);
    std::vector<std::vector<Value>> answers;
    const DType first = v.operands.empty() ? DType::Bool : v.operands[0].dtype();
    for (const auto& question : questions(v.node.op, first, way)) {
      std::vector<Value> operands;
      for (std::size_t k = 0; k < v.operands.size(); ++k) {
        const bool asked = computes_with(v.rebuild.from(), v.node, k);
        operands.push_back(asked ? question(v.operands[k]) : v.operands[k]);
      }
      answers.push_back(results_of(v, operands));
    }
    for (std::size_t r = 0; r < plain.size(); ++r) {
      if (!plain[r].valid() || !is_differentiable(plain[r].dtype())) continue;
      Parts parts = parts_of(plain[r]);
      for (std::size_t k = 0; k < parts.size(); ++k) {
        std::vector<Value> others;
        for (const auto& answer : answers) others.push_back(parts_of(answer[r])[k]);
        parts[k] = chosen(way, parts[k], others);
      }
      plain[r] = joined(parts);
    }
    return plain;
  };
  return replace_nodes(graph, "going", rewrite).graph;
}

}  // namespace ricci::testing
