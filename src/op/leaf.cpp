#include "ricci/op/leaf.h"

#include <array>

#include <fmt/format.h>

#include "op/infer_rules.h"

namespace ricci {
namespace {

using RoleKind = op::InputRole::Kind;
constexpr std::array<std::string_view, 5> RoleNames = {"none", "d_output", "primal_output",
                                                       "tangent", "residual"};

template <class T>
Inferred infer_leaf(const T& op, const InferContext& in) {
  if (op.name.empty()) {
    in.reject("c1", fmt::format("'{}' needs a name", T::info.name), "give it one: \"x\"");
  }
  require_non_negative(in, "c2", op.type.dims);
  return op.type;
}

}  // namespace

AttrValue AttrCodec<op::InputRole>::to(const op::InputRole& role) {
  if (role.kind == RoleKind::None) return {};
  Enumerator e{std::string(RoleNames[static_cast<std::size_t>(role.kind)]), {}};
  const bool indexed = role.kind == RoleKind::Tangent || role.kind == RoleKind::Residual;
  if (indexed || role.index != 0) e.args.push_back({role.index});
  return {std::move(e)};
}

op::InputRole AttrCodec<op::InputRole>::from(const AttrValue& v) {
  if (v.absent()) return {};
  const auto* e = v.get<Enumerator>();
  if (e == nullptr || e->args.size() > 1) throw AttrMismatch{describe()};
  for (std::size_t i = 1; i < RoleNames.size(); ++i) {
    if (e->name != RoleNames[i]) continue;
    const std::int64_t index = e->args.empty() ? 0 : from_attr<std::int64_t>(e->args[0]);
    return {static_cast<RoleKind>(i), index};
  }
  throw AttrMismatch{describe()};
}

std::string AttrCodec<op::InputRole>::describe() {
  return "d_output, primal_output, tangent(i) or residual(i)";
}

Inferred infer(const op::Input& op, const InferContext& in) { return infer_leaf(op, in); }
Inferred infer(const op::Param& op, const InferContext& in) { return infer_leaf(op, in); }
Inferred infer(const op::Constant& op, const InferContext&) { return op.value.type(); }

}  // namespace ricci
