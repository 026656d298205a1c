#include <array>

#include <fmt/format.h>

#include "ricci/build/build.h"

#include "rule/tables/expand_rules.h"
#include "support/float_environment.h"
#include "type/small_dtype.h"

namespace ricci {
namespace {

using Expansion = std::vector<Value> (*)(const Op&, const ExpandContext&);

template <class T>
std::vector<Value> run(const Op& op, const ExpandContext& c) {
  return rule::expand(*op.as<T>(), c);
}

constexpr auto Expansions = std::to_array<Expansion>({
#define RICCI_OP(Type, builder) nullptr,
#define RICCI_COMPOSITE(Type, builder) run<op::Type>,
#define RICCI_PRIMITIVE_EXPANDABLE RICCI_COMPOSITE
#define RICCI_STRUCTURED(Type, builder) nullptr,
#define RICCI_STRUCTURED_EXPANDABLE RICCI_COMPOSITE
#define RICCI_CONTROL(Type, builder) nullptr,
#define RICCI_CONTROL_EXPANDABLE RICCI_COMPOSITE
#define RICCI_BLOCK RICCI_COMPOSITE
#include "ricci/op/list.def"
});

}  // namespace

bool has_expansion(OpKind kind) noexcept {
  return Expansions[static_cast<std::size_t>(kind)] != nullptr;
}

std::vector<Value> expand_node(const Node& node, std::vector<Value> operands, Graph& graph) {
  const DefaultFloatEnvironment floats;
  const Expansion expansion = Expansions[static_cast<std::size_t>(node.op.kind())];
  if (expansion == nullptr) {
    throw UserError(ErrorCode::Refused, fmt::format("'{}' has no expansion", node.op.mnemonic()));
  }
  // Bodies are typed: control flow is written out in the dtypes it has.
  const bool has_bodies = !node.bodies.empty();
  for (Value& v : operands) {
    if (!has_bodies && is_small_float(v.dtype())) v = cast(v, {.to = DType::F32});
  }
  std::vector<Value> results = expansion(node.op, ExpandContext{graph, node, operands});
  check_internal(results.size() == node.types.size(), "an expansion gives one value per result");
  for (std::size_t r = 0; r < results.size(); ++r) {
    if (!results[r].valid()) continue;
    results[r] = cast_to(results[r], node.types[r].dtype);
    check_internal(results[r].type() == node.types[r], "an expansion changes a result's type");
  }
  return results;
}

}  // namespace ricci
