#include "backend/cuda/run/ordered_capture.h"

#include <algorithm>

namespace ricci::cuda {

// What the next node waits for is the stream's to say until it is told otherwise.
void OrderedCapture::wait_for(std::span<const std::size_t> earlier) {
  std::vector<GraphNode> nodes;
  for (const std::size_t e : earlier) nodes.insert(nodes.end(), last_[e].begin(), last_[e].end());
  std::ranges::sort(nodes);
  const auto rest = std::ranges::unique(nodes);
  nodes.erase(rest.begin(), rest.end());
  driver_.check(driver_.capture_wait_for(stream_, nodes.data(), nodes.size(), CaptureSetWaits),
                "order a graph");
}

void OrderedCapture::note() {
  int status = 0;
  std::uint64_t id = 0;
  Graph_ graph = nullptr;
  const GraphNode* nodes = nullptr;
  std::size_t count = 0;
  driver_.check(driver_.capture_info(stream_, &status, &id, &graph, &nodes, &count),
                "tell of a graph");
  last_.emplace_back(nodes, nodes + count);
}

}  // namespace ricci::cuda
