#include "interp/memory.h"

#include <algorithm>

#include <fmt/format.h>

#include "ricci/op/leaf.h"
#include "ricci/op/table.h"
#include "ricci/support/checked.h"

#include "support/machine_memory.h"

namespace ricci {
namespace {

std::int64_t elements(const Type& type) {
  std::int64_t count = 1;
  for (const Dim& d : type.dims) {
    if (d.is(0)) return 0;
    count = saturating_mul(count, d.value());
  }
  return count;
}

std::int64_t stored(const Type& type) {
  return saturating_mul(elements(type), size_of(type.dtype));
}

// Kernels compute in f64, 64-bit integers or c128.
std::int64_t computed(const Type& type) {
  return saturating_mul(elements(type), is_complex(type.dtype) ? 16 : 8);
}

// Values that are the user's, or the graph's own.
bool is_given(const Node& node) { return node.is_leaf() || node.op.is<op::Constant>(); }

std::int64_t result_bytes(const Node& node) {
  std::int64_t bytes = 0;
  for (std::size_t r = 0; r < node.types.size(); ++r) {
    if (node.wanted[r]) bytes = saturating_add(bytes, stored(node.types[r]));
  }
  return bytes;
}

// Operands and results as the kernel sees them, and what its bodies take.
std::int64_t working_bytes(const Graph& graph, const Node& node) {
  const bool moves = node.op.has(Trait::DataMovement);
  std::int64_t bytes = 0;
  for (const ValueId v : node.operands) {
    const Type& type = graph.type(v);
    // Elements that are moved stay as they are; only a repeated one is written out for it.
    const bool repeated = graph.node(v.node).op.is<op::Constant>();
    if (moves && !repeated) continue;
    bytes = saturating_add(bytes, moves ? stored(type) : computed(type));
  }
  for (std::size_t r = 0; r < node.types.size() && !moves; ++r) {
    if (node.wanted[r]) bytes = saturating_add(bytes, computed(node.types[r]));
  }
  std::int64_t body = 0;
  for (const Body& b : node.bodies) body = std::max(body, peak_memory(*b.graph).bytes);
  return saturating_add(bytes, body);
}

}  // namespace

PeakMemory peak_memory(const Graph& graph) {
  std::vector<std::size_t> uses = graph.use_counts();
  std::vector<std::int64_t> held(graph.size(), 0);
  std::int64_t live = 0;
  PeakMemory peak;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.nodes()[id];
    if (is_given(node)) continue;
    held[id] = result_bytes(node);
    live = saturating_add(live, held[id]);
    const std::int64_t bytes = saturating_add(live, working_bytes(graph, node));
    if (bytes > peak.bytes) peak = {bytes, id};
    for (const ValueId v : node.operands) {
      if (--uses[v.node] != 0) continue;
      // A sum that does not fit stays so: nothing is taken off it.
      if (live != std::numeric_limits<std::int64_t>::max()) live -= held[v.node];
    }
  }
  return peak;
}

void require_memory(const Graph& graph, std::int64_t limit) {
  const PeakMemory peak = peak_memory(graph);
  const std::int64_t most = limit > 0 ? limit : machine_memory();
  if (peak.bytes <= most) return;
  const Node& node = graph.node(peak.node);
  Diagnostic d{
      ErrorCode::OutOfMemory,
      "run",
      fmt::format("'{}' needs {} bytes to run, but may take {}", graph.name(), peak.bytes, most),
      {},
      {},
      "use smaller sizes, or raise the limit: --memory-limit, or "
      "InterpretOptions::memory_limit in C++"};
  if (node.provenance) d.where = node.provenance->where;
  d.notes.push_back(fmt::format("the most is needed for '{}', which gives {}", node.op.mnemonic(),
                                node.types.empty() ? "nothing" : node.types[0].to_string()));
  throw UserError(std::move(d));
}

}  // namespace ricci
