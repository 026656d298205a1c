#include "ricci/op/leaf.h"

#include <charconv>

#include <fmt/format.h>

#include "op/infer_rules.h"

namespace ricci {
namespace {

using RoleKind = op::InputRole::Kind;

template <class T>
Inferred infer_leaf(const T& op, const InferContext& in) {
  if (op.name.empty()) {
    in.reject("c1", fmt::format("'{}' needs a name", T::info.name), "give it one: \"x\"");
  }
  require_non_negative(in, "c2", op.type.dims);
  return op.type;
}

}  // namespace

namespace op {

InputRole implied_role(std::string_view name) {
  for (std::size_t i = 1; i < enumerator_names(RoleKind{}).size(); ++i) {
    const auto kind = static_cast<RoleKind>(i);
    if (!name.starts_with(name_of(kind))) continue;
    std::string_view rest = name.substr(name_of(kind).size());
    const bool numbered = kind == RoleKind::Tangent || kind == RoleKind::Residual;
    if (rest.empty() && !numbered) return {kind, 0};
    if (!rest.starts_with('_')) continue;
    rest.remove_prefix(1);
    std::int64_t index = 0;
    const auto [stop, error] = std::from_chars(rest.data(), rest.data() + rest.size(), index);
    const bool whole = error == std::errc() && stop == rest.data() + rest.size();
    if (whole && index >= 0) return {kind, index};
  }
  return {};
}

std::string conventional_name(const InputRole& role) {
  return fmt::format("{}_{}", name_of(role.kind), role.index);
}

bool names_imply_roles(std::string_view body_role) {
  return body_role == "vjp" || body_role == "jvp" || body_role == "body_vjp";
}

}  // namespace op

AttrValue AttrCodec<op::InputRole>::to(const op::InputRole& role) {
  if (role.kind == RoleKind::None) return {};
  Enumerator e{std::string(name_of(role.kind)), {}};
  const bool indexed = role.kind == RoleKind::Tangent || role.kind == RoleKind::Residual;
  if (indexed || role.index != 0) e.args.push_back({role.index});
  return {std::move(e)};
}

op::InputRole AttrCodec<op::InputRole>::from(const AttrValue& v) {
  if (v.absent()) return {};
  const auto* e = v.get<Enumerator>();
  if (e == nullptr || e->args.size() > 1) throw AttrMismatch{describe()};
  const auto kind = enum_from_name<RoleKind>(e->name);
  if (!kind || (*kind == RoleKind::None && !e->args.empty())) throw AttrMismatch{describe()};
  return {*kind, e->args.empty() ? 0 : from_attr<std::int64_t>(e->args[0])};
}

std::string AttrCodec<op::InputRole>::describe() {
  return "none, d_output(i), primal_output(i), tangent(i) or residual(i)";
}

Inferred infer(const op::Input& op, const InferContext& in) { return infer_leaf(op, in); }
Inferred infer(const op::Param& op, const InferContext& in) { return infer_leaf(op, in); }
Inferred infer(const op::Constant& op, const InferContext&) { return op.value.type(); }

}  // namespace ricci
