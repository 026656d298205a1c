// Collects the batching rules: those written, and those traits and expansions give.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "ricci/build/build.h"
#include "ricci/compiler/rule/expand.h"
#include "ricci/ir/rebuild.h"
#include "ricci/op/table.h"

#include "rule/class_of.h"
#include "rule/rule_fault.h"
#include "rule/tables/batch_rules.h"
#include "support/float_environment.h"

namespace ricci {
namespace {

using Rule = BatchedValues (*)(const Op&, const VmapContext&);

// The op itself: broadcasting does the rest once ranks are aligned.
BatchedValues elementwise(const Op& op, const VmapContext& c) {
  std::size_t rank = 0;
  for (const Type& t : c.node().types) rank = std::max(rank, t.rank());
  std::vector<Value> operands;
  for (std::size_t k = 0; k < c.size(); ++k) operands.push_back(c.aligned(k, rank));
  BatchedValues out = c.emit(op, operands);
  for (std::size_t r = 0; r < out.size(); ++r) {
    Value& v = out[r].value;
    if (!v.valid()) continue;
    // A region's result need not depend on the batched operands; then all examples share it.
    out[r].batched = v.rank() == rank + 1;
    if (out[r].batched) v = reshape_to(v, c.with_batch(c.node().types[r].dims));
  }
  return out;
}

BatchedValues by_expansion(const Op&, const VmapContext& c) {
  return c.through([&](Graph& g, std::span<const Value> operands) {
    return expand_node(c.node(), {operands.begin(), operands.end()}, g);
  });
}

BatchedValues refused(const Op& op, const VmapContext&) {
  throw UserError(ErrorCode::WrongStage,
                  fmt::format("'{}' has to be lowered before it can be batched", op.mnemonic()));
}

template <class T>
constexpr Rule rule_of() {
  constexpr RuleSource source = batch_source(rule::class_of<T>, T::info);
  if constexpr (source == RuleSource::Written) {
    return [](const Op& op, const VmapContext& c) { return rule::batch(*op.as<T>(), c); };
  } else {
    switch (source) {
      case RuleSource::Elementwise: return elementwise;
      case RuleSource::Expansion: return by_expansion;
      default: return refused;
    }
  }
}

constexpr auto Rules = std::to_array<Rule>({
#define RICCI_OP(Type, builder) rule_of<op::Type>(),
#include "ricci/op/list.def"
});

}  // namespace

std::vector<bool> VmapContext::batched() const {
  std::vector<bool> out;
  for (const BatchedValue& v : operands_) out.push_back(v.batched);
  return out;
}

Dims VmapContext::with_batch(const Dims& dims) const {
  Dims out{size_};
  out.insert(out.end(), dims.begin(), dims.end());
  return out;
}

Value repeat_for_batch(Value v, const Dim& size) {
  Dims one{1};
  Dims all{size};
  one.insert(one.end(), v.dims().begin(), v.dims().end());
  all.insert(all.end(), v.dims().begin(), v.dims().end());
  return broadcast_to(reshape_to(v, std::move(one)), std::move(all));
}

Value VmapContext::lifted(std::size_t k) const {
  return batched(k) ? operands_[k].value : repeat_for_batch(operands_[k].value, size_);
}

Value VmapContext::aligned(std::size_t k, std::size_t rank) const {
  const Value v = operands_[k].value;
  if (!batched(k) || types_[k].rank() >= rank) return v;
  Dims dims{size_};
  dims.insert(dims.end(), rank - types_[k].rank(), Dim(1));
  dims.insert(dims.end(), types_[k].dims.begin(), types_[k].dims.end());
  return reshape_to(v, std::move(dims));
}

Value VmapContext::folded(std::size_t k) const {
  Dims dims = types_[k].dims;
  dims.at(0) = size_ * dims.at(0);
  return reshape_to(lifted(k), std::move(dims));
}

Value VmapContext::unfolded(Value v, std::size_t r) const {
  return reshape_to(v, with_batch(node_.types[r].dims));
}

BatchedValues VmapContext::unfolded(BatchedValues results) const {
  for (std::size_t r = 0; r < results.size(); ++r) {
    if (results[r].value.valid()) results[r].value = unfolded(results[r].value, r);
  }
  return results;
}

BatchedValues VmapContext::emit(Op op, std::span<const Value> operands) const {
  NodeSpec spec{.op = std::move(op), .bodies = node_.bodies, .wanted = node_.wanted};
  for (const Value& v : operands) spec.operands.push_back(v.id());
  const NodeId id = graph_.add(std::move(spec));
  BatchedValues out;
  for (std::uint32_t r = 0; r < node_.types.size(); ++r) {
    out.emplace_back(node_.wanted[r] ? graph_.value({id, r}) : Value());
  }
  return out;
}

BatchedValues VmapContext::through(const Rewriting& build) const {
  std::vector<std::size_t> position(node_.types.size());  // 1-based; 0 where there is no result
  const auto body = make_body(
      "rewriting", types_,
      [&](Graph& g, std::span<const Value> inputs) {
        const std::vector<Value> all = build(g, inputs);
        std::vector<Value> outputs;
        for (std::size_t r = 0; r < all.size(); ++r) {
          if (!all[r].valid()) continue;
          outputs.push_back(all[r]);
          position[r] = outputs.size();
        }
        return outputs;
      },
      graph_);
  const BatchedBody over =
      bodies_.batch(*body, batched(), size_, std::vector<bool>(body->outputs().size(), false));
  std::vector<Value> inputs;
  for (const BatchedValue& v : operands_) inputs.push_back(v.value);
  const std::vector<Value> given = inline_subgraph(*over.graph, inputs, graph_);
  BatchedValues out(node_.types.size());
  for (std::size_t r = 0; r < out.size(); ++r) {
    if (position[r] != 0) out[r] = {given[position[r] - 1], over.outputs[position[r] - 1]};
  }
  return out;
}

BatchedValues apply_batch(const VmapContext& c) {
  const DefaultFloatEnvironment floats;
  const Op& op = c.node().op;
  BatchedValues out = Rules[static_cast<std::size_t>(op.kind())](op, c);
  if (out.size() != c.node().types.size()) {
    rule::fail_rule(
        c.node(), fmt::format("the batching rule of {} gives {} values for {} results",
                              rule::name_in_messages(c.node()), out.size(), c.node().types.size()));
  }
  for (std::size_t r = 0; r < out.size(); ++r) {
    if (!out[r].value.valid()) continue;
    rule::require_graph(c.node(), "batching", out[r].value, c.graph());
    const Type& example = c.node().types[r];
    const Dims dims = out[r].batched ? c.with_batch(example.dims) : example.dims;
    if (out[r].value.type() == example.with(dims)) continue;
    rule::fail_rule(c.node(), fmt::format("the batching rule of {} gives {} for an example of {}",
                                          rule::name_in_messages(c.node()),
                                          out[r].value.type().to_string(), example.to_string()));
  }
  return out;
}

}  // namespace ricci
