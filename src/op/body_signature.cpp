#include "op/body_signature.h"

#include <algorithm>

#include <fmt/format.h>

namespace ricci {

std::string list_types(std::span<const Type> types) {
  std::string out = "(";
  for (const Type& t : types) {
    if (out.size() > 1) out += ", ";
    out += t.to_string();
  }
  return out + ")";
}

void require_inputs(const InferContext& in, std::string_view label, const BodySignature& body,
                    std::span<const Type> expected) {
  if (std::ranges::equal(body.inputs, expected)) return;
  in.reject(label,
            fmt::format("body '{}' takes {}, but is given {}", body.role, list_types(body.inputs),
                        list_types(expected)),
            "a body's inputs, in order, have the operands' types");
}

void require_outputs(const InferContext& in, std::string_view label, const BodySignature& body,
                     std::span<const Type> expected, Extra extra, std::string help) {
  const std::size_t given = body.outputs.size();
  const bool enough = extra == Extra::Allowed ? given >= expected.size() : given == expected.size();
  if (enough && std::ranges::equal(std::span(body.outputs).subspan(0, expected.size()), expected)) {
    return;
  }
  in.reject(label,
            fmt::format("body '{}' gives {}, but {} is expected", body.role,
                        list_types(body.outputs), list_types(expected)),
            std::move(help));
}

RoleInputs::RoleInputs(const InferContext& in, std::string_view label, const BodySignature& body)
    : in_(in), label_(label), role_(body.role) {
  for (std::size_t i = 0; i < body.inputs.size(); ++i) {
    const op::InputRole& role = body.input_roles[i];
    if (role.kind == Kind::None) {
      ordinary_.push_back(body.inputs[i]);
    } else if (!special_.emplace(std::pair(role.kind, role.index), Special{body.inputs[i]})
                    .second) {
      in.reject(label, fmt::format("body '{}' has two inputs with the role {}", role_,
                                   name(role.kind, role.index)));
    }
  }
}

void RoleInputs::require(Kind kind, std::size_t index, const Type& expected) {
  permit(kind, index, expected);
  const auto i = static_cast<std::int64_t>(index);
  if (special_.contains({kind, i})) return;
  in_.reject(
      label_, fmt::format("body '{}' has no input with the role {}", role_, name(kind, i)),
      fmt::format("declare an input of type {} and give it that role", expected.to_string()));
}

void RoleInputs::permit(Kind kind, std::size_t index, const Type& expected) {
  const auto i = static_cast<std::int64_t>(index);
  const auto it = special_.find({kind, i});
  if (it == special_.end()) return;
  it->second.known = true;
  if (it->second.type == expected) return;
  in_.reject(label_, fmt::format("{} of body '{}' is {}, but {} is expected", name(kind, i), role_,
                                 it->second.type.to_string(), expected.to_string()));
}

void RoleInputs::permit_any(Kind kind, std::size_t index) {
  const auto it = special_.find({kind, static_cast<std::int64_t>(index)});
  if (it != special_.end()) it->second.known = true;
}

void RoleInputs::refuse_others() const {
  for (const auto& [key, input] : special_) {
    if (input.known) continue;
    in_.reject(label_, fmt::format("body '{}' has an input with the role {}, which nothing is "
                                   "bound to",
                                   role_, name(key.first, key.second)));
  }
}

std::string RoleInputs::name(Kind kind, std::int64_t index) {
  return fmt::format("{}({})", name_of(kind), index);
}

}  // namespace ricci
