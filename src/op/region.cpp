#include "ricci/op/region.h"

#include <algorithm>

#include <fmt/format.h>

#include "ricci/op/custom.h"
#include "ricci/op/image.h"
#include "ricci/op/table.h"

#include "op/infer_rules.h"
#include "op/region_chain.h"

namespace ricci {
namespace {

std::vector<RegionOperand> operands_from(std::span<const AttrValue> args, std::size_t count) {
  if (args.size() != count) throw AttrMismatch{AttrCodec<RegionStep>::describe()};
  std::vector<RegionOperand> out;
  for (const AttrValue& a : args) out.push_back(from_attr<RegionOperand>(a));
  return out;
}

std::string_view function_name(const RegionStep& step) {
  struct Name {
    std::string_view operator()(UnaryKind k) const { return name_of(k); }
    std::string_view operator()(BinaryKind k) const { return name_of(k); }
    std::string_view operator()(CompareKind k) const { return name_of(k); }
    std::string_view operator()(DType) const { return "cast"; }
    std::string_view operator()(RegionStep::Where) const { return "where"; }
  };
  return std::visit(Name{}, step.function);
}

// c2: inputs exist, steps are earlier ones.
template <class Step>
void check_references(const std::vector<Step>& chain, const InferContext& in, std::size_t inputs) {
  for (std::size_t j = 0; j < chain.size(); ++j) {
    for (const RegionOperand& o : chain[j].operands) {
      const bool is_input = o.from == RegionOperand::From::Input;
      if (o.index >= 0 && std::cmp_less(o.index, is_input ? inputs : j)) continue;
      in.reject("c2",
                is_input
                    ? fmt::format("step {} reads input {}, but there are {}", j, o.index, inputs)
                    : fmt::format("step {} reads step {}, which is not before it", j, o.index));
    }
  }
}

}  // namespace

AttrValue AttrCodec<RegionOperand>::to(const RegionOperand& o) {
  return {Enumerator{o.from == RegionOperand::From::Input ? "input" : "step", {{o.index}}}};
}
RegionOperand AttrCodec<RegionOperand>::from(const AttrValue& v) {
  const auto* e = v.get<Enumerator>();
  if (e != nullptr && e->args.size() == 1 && (e->name == "input" || e->name == "step")) {
    const auto index = from_attr<std::int64_t>(e->args[0]);
    return e->name == "input" ? RegionOperand::input(index) : RegionOperand::step(index);
  }
  throw AttrMismatch{describe()};
}
std::string AttrCodec<RegionOperand>::describe() { return "input(i) or step(j)"; }

AttrValue AttrCodec<RegionStep>::to(const RegionStep& step) {
  Enumerator e{std::string(function_name(step)), {}};
  if (const auto* dtype = std::get_if<DType>(&step.function)) e.args.push_back(to_attr(*dtype));
  for (const RegionOperand& o : step.operands) e.args.push_back(to_attr(o));
  return {std::move(e)};
}

RegionStep AttrCodec<RegionStep>::from(const AttrValue& v) {
  const auto* e = v.get<Enumerator>();
  if (e == nullptr) throw AttrMismatch{describe()};
  const std::span<const AttrValue> args(e->args);
  if (e->name == "cast" && !args.empty()) {
    return {from_attr<DType>(args[0]), operands_from(args.subspan(1), 1)};
  }
  if (e->name == "where") return {RegionStep::Where{}, operands_from(args, 3)};
  if (const auto k = enum_from_name<UnaryKind>(e->name)) return {*k, operands_from(args, 1)};
  if (const auto k = enum_from_name<BinaryKind>(e->name)) return {*k, operands_from(args, 2)};
  if (const auto k = enum_from_name<CompareKind>(e->name)) return {*k, operands_from(args, 2)};
  throw AttrMismatch{describe()};
}
std::string AttrCodec<RegionStep>::describe() {
  return "step such as tanh(input(0)), add(step(0), input(1)), cast(f32, input(0))";
}

AttrValue AttrCodec<TransformStep>::to(const TransformStep& step) {
  Enumerator e{std::string(step.op.mnemonic()), {}};
  for (const RegionOperand& o : step.operands) e.args.push_back(to_attr(o));
  const OpDescriptor& d = descriptor(step.op.kind());
  for (NamedAttr& a : step.op.attrs()) {
    const FieldInfo& field = *d.field(a.name);
    const bool named = !d.family.empty() && a.name == "kind";
    if (named || (field.presence == Presence::Defaulted && field.default_value == a.value))
      continue;
    e.args.push_back({Enumerator{a.name, {std::move(a.value)}}});
  }
  return {std::move(e)};
}

TransformStep AttrCodec<TransformStep>::from(const AttrValue& v) {
  const auto* e = v.get<Enumerator>();
  const auto mnemonic = e == nullptr ? std::nullopt : find_mnemonic(e->name);
  if (!mnemonic) throw AttrMismatch{describe()};
  std::vector<RegionOperand> operands;
  std::vector<NamedAttr> attrs;
  if (mnemonic->family_member)
    attrs.push_back({"kind", {Enumerator{*mnemonic->family_member, {}}}});
  for (const AttrValue& arg : e->args) {
    const auto* named = arg.get<Enumerator>();
    if (named == nullptr || named->args.size() != 1) throw AttrMismatch{describe()};
    if (named->name == "input" || named->name == "step") {
      operands.push_back(from_attr<RegionOperand>(arg));
    } else {
      attrs.push_back({named->name, named->args[0]});
    }
  }
  return {descriptor(mnemonic->kind).make(attrs), std::move(operands)};
}
std::string AttrCodec<TransformStep>::describe() {
  return "step such as reverse(input(0), axes([3])), resize(step(0), sizes([8, 8]))";
}

Op step_op(const RegionStep& step) {
  struct Make {
    Op operator()(UnaryKind k) const { return Op(op::Unary{k}); }
    Op operator()(BinaryKind k) const { return Op(op::Binary{k}); }
    Op operator()(CompareKind k) const { return Op(op::Compare{k}); }
    Op operator()(DType to) const { return Op(op::Cast{to}); }
    Op operator()(RegionStep::Where) const { return Op(op::Where{}); }
  };
  return std::visit(Make{}, step.function);
}

std::vector<std::int64_t> region_outputs(const op::ElementwiseRegion& op) {
  if (op.outputs) return *op.outputs;
  return {static_cast<std::int64_t>(op.chain.size()) - 1};
}

std::vector<Type> infer_chain(const std::vector<RegionStep>& chain, const InferContext& in,
                              std::span<const Type> inputs) {
  if (chain.empty()) in.reject("c1", "the chain has no steps");
  check_references(chain, in, inputs.size());
  std::vector<Type> types;
  for (std::size_t j = 0; j < chain.size(); ++j) {
    std::vector<Type> operands;
    for (const RegionOperand& o : chain[j].operands) {
      const auto at = static_cast<std::size_t>(o.index);
      operands.push_back(o.from == RegionOperand::From::Input ? inputs[at] : types[at]);
    }
    try {
      types.push_back(infer_types(step_op(chain[j]), operands, {}, in.registry).types[0]);
    } catch (const Rejection& r) {
      in.reject(r.code == ErrorCode::Shape ? "c4" : "c3",
                fmt::format("step {} ({}): {}", j, function_name(chain[j]), r.message), r.help);
    }
  }
  return types;
}

Inferred infer(const op::ElementwiseRegion& op, const InferContext& in) {
  const std::vector<Type> steps = infer_chain(op.chain, in, in.operands);
  const std::vector<std::int64_t> outputs = region_outputs(op);
  if (outputs.empty()) in.reject("c5", "outputs names no step");
  std::vector<Type> results;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const std::int64_t j = outputs[k];
    if (j < 0 || std::cmp_greater_equal(j, steps.size())) {
      in.reject("c5", fmt::format("outputs names step {}, but there are {}", j, steps.size()));
    }
    if (std::find(outputs.begin(), outputs.begin() + static_cast<std::ptrdiff_t>(k), j) !=
        outputs.begin() + static_cast<std::ptrdiff_t>(k)) {
      in.reject("c5", fmt::format("outputs names step {} twice", j));
    }
    results.push_back(steps[static_cast<std::size_t>(j)]);
  }
  return results;
}

Inferred infer(const op::BatchElementwiseRegion& op, const InferContext& in) {
  const auto each = static_cast<std::size_t>(std::max<std::int64_t>(op.operands_per_plane, 1));
  if (op.operands_per_plane < 1 || in.operands.size() % each != 0) {
    in.reject("c6", fmt::format("{} operands are no planes of {}", in.operands.size(),
                                op.operands_per_plane));
  }
  // No planes are refused by the chain, which reads an input.
  Type out;
  Dim rows = 0;
  for (std::size_t k = 0; k == 0 || k < in.operands.size(); k += each) {
    const auto operands = in.operands.subspan(k, std::min(each, in.operands.size()));
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].dtype == in[i].dtype) continue;
      in.reject("c5", fmt::format("operand {} is {}, but that of the first plane {}", k + i,
                                  name(operands[i].dtype), name(in[i].dtype)));
    }
    const Type plane = infer_chain(op.chain, in, operands).back();
    if (plane.dims.empty() || (plane.dims[0].is_static() && plane.dims[0].value() < 1)) {
      in.reject("c4", fmt::format("a plane is {}", plane.to_string()),
                "planes need a first size ≥ 1");
    }
    if (k == 0) out = plane;
    if (!std::ranges::equal(plane.dims.begin() + 1, plane.dims.end(), out.dims.begin() + 1,
                            out.dims.end())) {
      in.reject("c4", fmt::format("planes {} and {} differ in more than their first size",
                                  out.to_string(), plane.to_string()));
    }
    rows += plane.dims[0];
  }
  out.dims[0] = rows;
  return out;
}

Inferred infer(const op::TransformRegion& op, const InferContext& in) {
  if (op.steps.empty()) in.reject("c1", "there are no steps");
  check_references(op.steps, in, in.operands.size());
  std::vector<Type> types;
  for (std::size_t j = 0; j < op.steps.size(); ++j) {
    const TransformStep& step = op.steps[j];
    const bool fits = step.op.has(Trait::DataMovement) || step.op.has(Trait::Elementwise) ||
                      step.op.is<op::Resize>() || step.op.is<op::Custom>();
    const auto refuse = [&] {
      in.reject("c3", fmt::format("step {} is '{}'", j, step.op.mnemonic()),
                "steps move elements, work element by element, or resize");
    };
    if (!fits) refuse();
    std::vector<Type> operands;
    for (const RegionOperand& o : step.operands) {
      const auto at = static_cast<std::size_t>(o.index);
      operands.push_back(o.from == RegionOperand::From::Input ? in.operands[at] : types[at]);
    }
    try {
      check_signature(step.op, operands.size(), {});
      const Op whole = normalize(step.op, operands);
      const Inferred result = infer_types(whole, operands, {}, in.registry);
      if (result.types.size() != 1) refuse();
      types.push_back(result.types[0]);
    } catch (const Rejection& r) {
      if (r.detail.starts_with("transform_region")) throw;
      in.reject("c4", fmt::format("step {} ({}): {}", j, step.op.mnemonic(), r.message), r.help);
    }
  }
  return types.back();
}

}  // namespace ricci
