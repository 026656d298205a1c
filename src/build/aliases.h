// Each family lists the spellings the parser accepts besides its ops' own names.
#pragma once

#include <string>
#include <vector>

#include "ricci/ir/alias.h"
#include "ricci/op/table.h"

namespace ricci {

struct Alias {
  std::string name;
  std::vector<OpKind> ops;  ///< what it builds and prints as
  AliasBuilder build;
};
using AliasList = std::vector<Alias>;

/// The attributes of a statement as an op's struct.
template <OpStruct T>
[[nodiscard]] T alias_attrs(const AliasCall& call) {
  return *descriptor(kind_of<T>).make(call.attrs).template as<T>();
}
/// Takes an attribute of the alias itself out of a statement, leaving those of the op.
[[nodiscard]] std::optional<AttrValue> take_attr(AliasCall& call, std::string_view name);
/// The same for an enumerator; UserError(attr) when it is another kind of value.
template <NamedEnum E>
[[nodiscard]] std::optional<E> take_enum(AliasCall& call, const char* alias,
                                         std::string_view name) {
  const auto value = take_attr(call, name);
  if (!value) return std::nullopt;
  try {
    return from_attr<E>(*value);
  } catch (const AttrMismatch& mismatch) {
    throw UserError(
        ErrorCode::Attr,
        "attribute '" + std::string(name) + "' of '" + alias + "' cannot be " + value->to_string(),
        "it is " + mismatch.expected);
  }
}
/// Checks the number of operands an alias is given.
void require_operands(const AliasCall& call, const char* alias, std::size_t least,
                      std::size_t most);
/// Builds op T from the call's operands and attributes as they stand.
template <OpStruct T>
std::vector<Value> as_op(AliasCall& call) {
  return call.graph.add_node(descriptor(kind_of<T>).make(call.attrs), call.operands, call.bodies);
}

[[nodiscard]] AliasList control_aliases();
[[nodiscard]] AliasList conv_aliases();
[[nodiscard]] AliasList elementwise_aliases();
[[nodiscard]] AliasList fused_aliases();
[[nodiscard]] AliasList image_aliases();
[[nodiscard]] AliasList norm_aliases();
[[nodiscard]] AliasList reduce_aliases();
[[nodiscard]] AliasList select_aliases();
[[nodiscard]] AliasList region_aliases();
[[nodiscard]] AliasList attention_aliases();
[[nodiscard]] AliasList elementwise_aliases();
[[nodiscard]] AliasList sequence_aliases();

}  // namespace ricci
