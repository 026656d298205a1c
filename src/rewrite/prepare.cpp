#include "ricci/compiler/rewrite/prepare.h"

#include "ricci/compiler/rewrite/control_flow.h"
#include "ricci/compiler/rewrite/fuse.h"
#include "ricci/compiler/rewrite/unfuse.h"

#include "rewrite/replace_nodes.h"

namespace ricci {

// [prepare-fixpoint] Branches, loops and functions that are written out may hold what the passes
// before them take apart; so all run again until none finds work.
PassResult prepare_for_autodiff(const Graph& graph) {
  return to_fixpoint(
      graph,
      {decompose_fusion_regions, [](const Graph& g) { return unfuse_elementwise_regions(g); },
       legalize_multi_axis_reduce, unfuse_fused_for_autodiff, lower_dot_general, inline_if,
       unroll_while, inline_custom_fn_for_autodiff, convert_scans_for_ad,
       fuse_decomposed_gaussian_splat});
}

}  // namespace ricci
