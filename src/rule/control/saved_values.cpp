#include "rule/control/saved_values.h"

#include <algorithm>

#include "ricci/build/build.h"

namespace ricci::rule {
namespace {

bool is_product(const Op& op) {
  return op.is<op::Matmul>() || op.is<op::DotGeneral>() || op.is<op::LoraMatmul>() ||
         op.is<op::FusedMatmulBiasAct>() || op.is<op::FusedSwiglu>() ||
         op.is<op::FusedAttentionBlock>() || op.is<op::FusedTransformerLayer>() ||
         op.is<op::Conv>() || op.is<op::Attention>();
}

// The operand's elements in another order or again: no smaller than the operand, and no work.
bool is_view(const Op& op) {
  return op.is<op::Reshape>() || op.is<op::Transpose>() || op.is<op::Expand>();
}

}  // namespace

bool is_saved(Saved what, std::span<const std::string> names, const Node& node,
              std::size_t result) {
  if (!node.wanted[result]) return false;
  switch (what) {
    case Saved::All: return !is_view(node.op);
    case Saved::Matmuls: return is_product(node.op);
    case Saved::Named:
      return !node.names[result].empty() &&
             std::ranges::find(names, node.names[result]) != names.end();
  }
  return false;
}

}  // namespace ricci::rule
