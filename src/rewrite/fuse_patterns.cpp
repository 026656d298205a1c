#include <array>

#include "ricci/compiler/rewrite/cleanup.h"
#include "ricci/compiler/rewrite/fuse.h"
#include "ricci/compiler/rewrite/mark_regions.h"
#include "ricci/op/ops.h"

#include "rewrite/changes.h"

namespace ricci {

PassResult fuse_patterns(const Graph& graph, const SupportedOps& supported) {
  struct Pattern {
    OpKind makes;
    PassResult (*run)(const Graph&);
  };
  static constexpr auto Patterns = std::to_array<Pattern>({
      {OpKind::FusedAttentionBlock, [](const Graph& g) { return fuse_attention_block(g); }},
      {OpKind::FusedMatmulBiasAct, fuse_matmul_bias_act},
      {OpKind::FusedResidualLn, fuse_residual_ln},
      {OpKind::FusedResidualRmsNorm, fuse_residual_rms_norm},
      {OpKind::RmsNorm, fuse_rms_norm_reshape},
      {OpKind::FusedSwiglu, fuse_swiglu_dual_matmul},
      {OpKind::Matmul, [](const Graph& g) { return fuse_shared_input_matmul(g); }},
      {OpKind::FusedSwiglu, fuse_swiglu},
      {OpKind::ElementwiseRegion, [](const Graph& g) { return mark_elementwise_regions(g); }},
  });
  Changes changes(graph);
  for (const Pattern& p : Patterns) {
    if (!supported.claims(p.makes)) continue;
    PassResult made = p.run(changes.graph());
    // What was joined would count as a reader of what the next pattern looks at.
    if (made.changed && changes.apply(std::move(made))) {
      changes.apply(drop_dead_code(changes.graph()));
    }
  }
  return or_unchanged(graph, changes.take());
}

}  // namespace ricci
