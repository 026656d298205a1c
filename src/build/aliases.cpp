// Spellings the parser accepts besides the ops' own names, collected from the families.
#include "build/aliases.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace ricci {
namespace {

const std::map<std::string, Alias, std::less<>>& aliases() {
  static const auto table = [] {
    std::map<std::string, Alias, std::less<>> all;
    for (const AliasList& family : {
             attention_aliases(),
             control_aliases(),
             conv_aliases(),
             elementwise_aliases(),
             fused_aliases(),
             image_aliases(),
             norm_aliases(),
             reduce_aliases(),
             region_aliases(),
             select_aliases(),
             sequence_aliases(),
         }) {
      for (const Alias& a : family) {
        check_internal(all.emplace(a.name, a).second, "two families claim one alias");
      }
    }
    return all;
  }();
  return table;
}

}  // namespace

AliasBuilder find_alias(std::string_view name) {
  const auto it = aliases().find(name);
  return it == aliases().end() ? nullptr : it->second.build;
}

std::vector<std::string> all_aliases() {
  std::vector<std::string> out;
  for (const auto& [name, unused] : aliases()) out.push_back(name);
  return out;
}

std::vector<OpKind> alias_ops(std::string_view name) {
  const auto it = aliases().find(name);
  return it == aliases().end() ? std::vector<OpKind>() : it->second.ops;
}

std::optional<AttrValue> take_attr(AliasCall& call, std::string_view name) {
  const auto it = std::ranges::find(call.attrs, name, &NamedAttr::name);
  if (it == call.attrs.end()) return std::nullopt;
  AttrValue value = std::move(it->value);
  call.attrs.erase(it);
  return value;
}

void require_operands(const AliasCall& call, const char* alias, std::size_t least,
                      std::size_t most) {
  const std::size_t given = call.operands.size();
  if (given >= least && given <= most) return;
  throw UserError(ErrorCode::Attr, fmt::format("'{}' takes {} to {} operands, but is given {}",
                                               alias, least, most, given));
}

}  // namespace ricci
