#include <optional>
#include <set>

#include "ricci/build/build.h"
#include "ricci/compiler/rewrite/fuse.h"

#include "rewrite/changes.h"

namespace ricci {
namespace {

constexpr std::size_t Parts = 7;  // results of prepare, which rasterize takes in their order

// The prepare whose results a rasterize takes, all of them and alone; nothing when there is none,
// or when the two were not made for each other.
std::optional<NodeId> first_half(const Graph& graph, const Node& node,
                                 const std::vector<std::size_t>& uses) {
  const auto* rasterize = node.op.as<op::GaussianSplatRasterize>();
  if (rasterize == nullptr) return std::nullopt;
  const NodeId id = node.operands[0].node;
  const Node& before = graph.node(id);
  const auto* prepare = before.op.as<op::GaussianSplatPrepare>();
  if (prepare == nullptr || uses[id] != Parts) return std::nullopt;
  for (std::uint32_t r = 0; r < Parts; ++r) {
    if (node.operands[r] != ValueId{id, r}) return std::nullopt;
  }
  // What only the second half finds has to come from it.
  if (node.wanted[1] || node.wanted[2]) return std::nullopt;
  const bool same_camera = node.operands[Parts] == before.operands[Parts - 1];
  const bool same_tiles =
      prepare->alpha_cutoff == rasterize->alpha_cutoff && prepare->width == rasterize->width &&
      prepare->height == rasterize->height && prepare->tile_size == rasterize->tile_size;
  if (!same_camera || !same_tiles) return std::nullopt;
  return id;
}

op::GaussianSplatRender joined(const op::GaussianSplatPrepare& prepare,
                               const op::GaussianSplatRasterize& rasterize) {
  return {.width = rasterize.width,
          .height = rasterize.height,
          .tile_size = rasterize.tile_size,
          .radius_scale = prepare.radius_scale,
          .alpha_cutoff = rasterize.alpha_cutoff,
          .max_splat_steps = rasterize.max_splat_steps,
          .transmittance_threshold = rasterize.transmittance_threshold,
          .max_list_entries = rasterize.max_list_entries,
          .opacity_space = prepare.opacity_space,
          .color_source = prepare.color_source,
          .sh_band = prepare.sh_band,
          .view_from_splat = prepare.view_from_splat,
          .gamma = rasterize.gamma};
}

}  // namespace

PassResult fuse_decomposed_gaussian_splat(const Graph& graph) {
  const std::vector<std::size_t> uses = graph.use_counts();
  std::set<NodeId> first_halves;
  for (const Node& node : graph.nodes()) {
    if (const auto half = first_half(graph, node, uses)) first_halves.insert(*half);
  }
  const ChangedBodies bodies(graph, [](const Graph& body) -> Change {
    PassResult inner = fuse_decomposed_gaussian_splat(body);
    if (!inner.changed) return std::nullopt;
    return inner;
  });
  if (first_halves.empty() && !bodies.any()) return unchanged(graph);
  Rebuilder rebuild(graph);
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (first_halves.contains(id)) continue;
    const auto half = first_half(graph, node, uses);
    if (!half) {
      rebuild.copy(id, bodies.of(id, node));
      continue;
    }
    const ProvenanceScope scope(rebuild.to(), node.provenance ? *node.provenance : Provenance{});
    const Node& before = graph.node(*half);
    const Op op(joined(*before.op.as<op::GaussianSplatPrepare>(),
                       *node.op.as<op::GaussianSplatRasterize>()));
    const Value image = rebuild.to().add_node(op, rebuild.operands(before))[0];
    if (!node.names[0].empty()) image.named(node.names[0]);
    rebuild.map({id, 0}, image);
  }
  return finished(rebuild);
}

}  // namespace ricci
