#include "ricci/compiler/rewrite/pass.h"

#include <algorithm>

#include <fmt/format.h>

#include "ricci/compiler/rewrite/batch_regions.h"
#include "ricci/compiler/rewrite/canonicalize.h"
#include "ricci/compiler/rewrite/cleanup.h"
#include "ricci/compiler/rewrite/control_flow.h"
#include "ricci/compiler/rewrite/fuse.h"
#include "ricci/compiler/rewrite/legalize.h"
#include "ricci/compiler/rewrite/loops.h"
#include "ricci/compiler/rewrite/mark_regions.h"
#include "ricci/compiler/rewrite/precision.h"
#include "ricci/compiler/rewrite/prepare.h"
#include "ricci/compiler/rewrite/quantize.h"
#include "ricci/compiler/rewrite/unfuse.h"
#include "ricci/support/text.h"

namespace ricci {

namespace {

std::vector<Pass> clean_ups() {
  return {
      {"dead_code_elimination", "drops nodes and results no output depends on",
       dead_code_elimination},
      {"common_subexpression_elimination", "computes once what is computed twice",
       common_subexpression_elimination},
      {"constant_folding", "evaluates nodes of constants, where that is exact to the bit",
       [](const Graph& graph) { return constant_folding(graph); }},
      {"canonicalize", "simplifies by the rules of algebra and structure that are exact",
       canonicalize},
      {"peel_scalar_expands", "takes away expands in front of ops that broadcast anyway",
       peel_scalar_expands},
      {"hoist_invariants", "computes before a scan what is the same in all its steps",
       hoist_invariants},
  };
}

// Written out: control flow, then what is fused, then both for differentiation.
std::vector<Pass> lowerings() {
  std::vector<Pass> passes = {
      {"inline_if", "writes out both branches of every if and selects between them", inline_if},
      {"unroll_while", "writes out loops with a bound, trip by trip", unroll_while},
      {"lower_control_flow", "inline_if, then unroll_while", lower_control_flow},
      {"unroll_scans", "writes out every step of every scan",
       [](const Graph& graph) { return unroll_scans(graph); }},
      {"inline_custom_fn_for_autodiff", "inlines custom functions without derivative rules",
       inline_custom_fn_for_autodiff},
      {"materialize_bcasts_for_ad", "repeats what every step of a scan sees whole, row by row",
       materialize_bcasts_for_ad},
      {"convert_scans_for_ad", "makes scans keep the carries of their steps", convert_scans_for_ad},
      {"join_products", "makes one product of those that the steps of a scan make of rows",
       join_products},
      {"decompose_fusion_regions",
       "writes batch regions as regions and a concat, and transform regions step by step",
       decompose_fusion_regions},
      {"unfuse_elementwise_regions", "writes regions as one node per step",
       [](const Graph& graph) { return unfuse_elementwise_regions(graph); }},
      {"legalize_multi_axis_reduce", "reduces one axis at a time", legalize_multi_axis_reduce},
      {"unfuse_fused_for_autodiff", "writes out fused ops and sequence models",
       unfuse_fused_for_autodiff},
      {"write_out_products", "writes fused ops and general products as matrix products",
       write_out_products},
      {"lower_dot_general", "writes general products as matrix products", lower_dot_general},
      {"decompose_backward_ops", "writes out the ops of gradients that have an expansion",
       decompose_backward_ops},
      {"lower_backward_ops", "writes gradients of element-wise functions in primitives",
       lower_backward_ops},
      {"legalize_broadcast", "makes operands that broadcast in the middle of a shape explicit",
       legalize_broadcast},
      {"clip_elementwise_regions", "writes regions over the usual limits as one node per step",
       [](const Graph& graph) { return clip_elementwise_regions(graph, UsualRegionLimits); }},
      {"internalize_d_output", "fixes the cotangents of a gradient graph to ones",
       internalize_d_output},
      {"lower_non_last_axis_reduce", "reduces the last axis only, behind a transpose",
       lower_non_last_axis_reduce},
      {"lower_group_norm", "writes group_norm in primitives", lower_group_norm},
      {"lower_resize_nearest_2x", "writes nearest resizes in moves of elements",
       lower_resize_nearest_2x},
      {"prepare_for_autodiff", "everything a differentiator of primitives needs, to a fixpoint",
       prepare_for_autodiff},
  };
  for (Pass& pass : passes) pass.kind = PassKind::Lowering;
  return passes;
}

// Several nodes become one: for back ends with kernels for these.
std::vector<Pass> fusions() {
  std::vector<Pass> passes = {
      {"mark_batch_slice_regions", "makes regions of a function of slices of a batch",
       mark_batch_slice_regions},
      {"fuse_batch_preprocess", "joins equal regions over slices of a batch",
       fuse_batch_preprocess},
      {"fuse_decomposed_gaussian_splat", "joins the two halves of an image of splats",
       fuse_decomposed_gaussian_splat},
      {"fuse_shared_input_matmul", "makes one product of small ones of a value with several params",
       [](const Graph& graph) { return fuse_shared_input_matmul(graph); }},
      {"fuse_matmul_bias_act", "makes one op of a product, its bias and a function",
       fuse_matmul_bias_act},
      {"fuse_residual_ln", "makes one op of a residual sum and its layer_norm", fuse_residual_ln},
      {"fuse_residual_rms_norm", "makes one op of a residual sum and its rms_norm",
       fuse_residual_rms_norm},
      {"fuse_rms_norm_reshape", "normalises behind the reshape that joins leading axes",
       fuse_rms_norm_reshape},
      {"fuse_swiglu_dual_matmul", "makes one product of a gate and what it gates",
       fuse_swiglu_dual_matmul},
      {"fuse_swiglu", "makes one op of a half times silu of the other", fuse_swiglu},
      {"fuse_attention_block", "makes one op of short attention and its projections",
       [](const Graph& graph) { return fuse_attention_block(graph); }},
      {"mark_elementwise_regions", "makes regions of element-wise nodes",
       [](const Graph& graph) { return mark_elementwise_regions(graph); }},
      {"mark_transform_regions", "makes regions of resizes, crops and flips",
       mark_transform_regions},
      {"fuse_region_prologue", "makes one region of a resize and what reads it",
       fuse_region_prologue},
      {"fuse_patterns", "all fusions of a network's patterns",
       [](const Graph& graph) { return fuse_patterns(graph); }},
  };
  for (Pass& pass : passes) pass.kind = PassKind::Lowering;
  return passes;
}

std::vector<Pass> precisions() {
  std::vector<Pass> passes;
  for (const NamedPolicy& policy : precision_policies().subspan(1)) {
    passes.push_back(
        {std::string(policy.name), std::string(policy.help),
         [make = policy.make](const Graph& graph) { return auto_mixed_precision(graph, make()); },
         PassKind::Precision});
  }
  passes.push_back({"insert_fake_quantize", "rounds what products read to 8 bits, for training",
                    [](const Graph& graph) { return insert_fake_quantize(graph); },
                    PassKind::Precision});
  passes.push_back({"propagate_fake_quantize", "takes away roundings of what is rounded already",
                    [](const Graph& graph) { return propagate_fake_quantize(graph).result; },
                    PassKind::Precision});
  passes.push_back({"propagate_codes", "moves quantize up and dequantize down, and cancels them",
                    propagate_codes, PassKind::Precision});
  passes.push_back({"convert_to_codes",
                    "writes products of what dequantize gave as products of codes",
                    convert_to_codes, PassKind::Precision});
  return passes;
}

}  // namespace

std::span<const Pass> all_passes() {
  static const std::vector<Pass> passes = [] {
    std::vector<Pass> all = clean_ups();
    for (Pass& pass : lowerings()) all.push_back(std::move(pass));
    for (Pass& pass : fusions()) all.push_back(std::move(pass));
    for (Pass& pass : precisions()) all.push_back(std::move(pass));
    return all;
  }();
  return passes;
}

const Pass* find_pass(std::string_view name) {
  const auto found = std::ranges::find(all_passes(), name, &Pass::name);
  return found == all_passes().end() ? nullptr : &*found;
}

std::vector<Pass> passes_named(std::span<const std::string> names) {
  std::vector<Pass> out;
  for (const std::string& name : names) {
    if (const Pass* pass = find_pass(name)) {
      out.push_back(*pass);
      continue;
    }
    std::vector<std::string> known;
    for (const Pass& p : all_passes()) known.push_back(p.name);
    const auto close = nearest(name, known);
    throw UserError(ErrorCode::Name, fmt::format("there is no pass '{}'", name),
                    close ? fmt::format("did you mean '{}'?", *close)
                          : fmt::format("the passes are: {}", join(known, ", ")));
  }
  return out;
}

std::vector<Pass> parse_pipeline(std::string_view list) {
  std::vector<std::string> names;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    std::string_view name = list.substr(0, comma);
    while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
    while (!name.empty() && name.back() == ' ') name.remove_suffix(1);
    names.emplace_back(name);
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return passes_named(names);
}

PassResult unchanged(const Graph& graph) { return {graph, IdMap::identity(graph), false}; }

std::vector<Body> map_bodies(const Node& node, const std::function<PassResult(const Graph&)>& pass,
                             bool& changed) {
  std::vector<Body> bodies = node.bodies;
  for (Body& body : bodies) {
    PassResult inner = pass(*body.graph);
    if (!inner.changed) continue;
    changed = true;
    body.graph = std::make_shared<const Graph>(std::move(inner.graph));
  }
  return bodies;
}

std::size_t count_nodes(const Graph& graph) {
  std::size_t count = graph.size();
  for (const Node& node : graph.nodes()) {
    for (const Body& body : node.bodies) count += count_nodes(*body.graph);
  }
  return count;
}

}  // namespace ricci
