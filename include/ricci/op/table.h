// The op table: every op's description as data, for printers, parsers, documentation and tests.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ricci/op/fields.h"
#include "ricci/op/infer.h"
#include "ricci/op/op.h"

namespace ricci {

/// An operand, result or body in an op's signature.
struct Parameter {
  std::string name;
  bool optional = false;
  bool variadic = false;
};

struct FieldInfo {
  std::string name;
  std::string help;
  std::string kind;  ///< "integer", "list of axis", …
  Presence presence = Presence::Defaulted;
  AttrValue default_value;
  bool is_axis = false;
  Range range = Range::Usual;
};

/// `c2 shape: a and b broadcast together`
struct Constraint {
  std::string label;
  ErrorCode code = ErrorCode::Attr;
  std::string text;
};

struct OpDescriptor {
  OpKind kind{};
  OpClass op_class{};
  const OpInfo* info = nullptr;
  std::vector<Parameter> operands;
  std::vector<Parameter> results;
  std::vector<Parameter> bodies;
  std::vector<FieldInfo> fields;
  std::vector<Constraint> constraints;
  std::vector<std::string> family;  ///< kinds' names, for families
  RuleSource vjp{};                 ///< where the rules of the transforms come from
  RuleSource jvp{};
  RuleSource batch{};

  Op (*make)(std::span<const NamedAttr> attrs) = nullptr;
  std::vector<NamedAttr> (*attrs)(const Op& op) = nullptr;
  bool (*equal)(const Op& a, const Op& b) = nullptr;
  Op (*normalize)(const Op& op, std::span<const Type> operands) = nullptr;
  /// Rejects attributes outside their fields' ranges.
  void (*check_ranges)(const Op& op, std::span<const Type> operands) = nullptr;
  Inferred (*infer)(const Op& op, const InferContext& context) = nullptr;

  [[nodiscard]] const Constraint* constraint(std::string_view label) const;
  [[nodiscard]] const FieldInfo* field(std::string_view name) const;
};

[[nodiscard]] const OpDescriptor& descriptor(OpKind kind);
/// All ops, in the list's order.
[[nodiscard]] std::span<const OpDescriptor> all_ops();

/// What a name in text stands for: an op, with the kind for members of families.
struct Mnemonic {
  OpKind kind{};
  std::optional<std::string> family_member;
};
[[nodiscard]] std::optional<Mnemonic> find_mnemonic(std::string_view name);
/// Every name the parser knows, for "did you mean".
[[nodiscard]] const std::vector<std::string>& all_mnemonics();

/// The names of a node's operands (or results) as its signature has them: `inputs[2]`, `gamma`.
[[nodiscard]] std::string parameter_name(std::span<const Parameter> signature, std::size_t index,
                                         std::size_t count);

}  // namespace ricci
