// What each block becomes under each fusion policy, declared from the list.
#pragma once

#include "ricci/model/module.h"

namespace ricci::model {

/// What a block's lowering is given.
struct LowerContext {
  Graph& graph;
  std::vector<Value> operands;
  FusionPolicy policy;
  std::vector<bool> wanted;  ///< which results
};

#define RICCI_OP(Type, builder)
#define RICCI_BLOCK(Type, builder) \
  std::vector<Value> lower(const op::Type& op, const LowerContext& c);
#include "ricci/op/list.def"

/// Lowers any block; one value per result, invalid for those that are not wanted.
[[nodiscard]] std::vector<Value> lower_block(const Op& op, const LowerContext& c);

}  // namespace ricci::model
