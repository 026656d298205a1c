// The usual four steps: layers by longest path, stand-ins where an edge passes through a layer,
// order within layers by barycentres, and positions by least squares towards the neighbours.
#include "draw/layout.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

#include "ricci/support/stop.h"

namespace ricci::draw {
namespace {

constexpr double LayerGap = 44;
constexpr double NodeGap = 24;
constexpr double ThroughGap = 12;  // between edges that only pass
constexpr int OrderSweeps = 12;
constexpr int PlaceSweeps = 12;
constexpr std::size_t MostStandIns = 100000;  // beyond it, long edges run straight

struct Link {
  std::size_t other = 0;
  double own_x = 0;    // port on this item, from its centre
  double other_x = 0;  // port on the other
};

// A node, or a stand-in for an edge that passes its layer.
struct Item {
  double width = 0;
  double height = 0;
  std::size_t layer = 0;
  bool stand_in = false;
  double x = 0;  // centre
  double rank = 0;
  std::vector<Link> above;
  std::vector<Link> below;
};

class LayeredLayout {
 public:
  LayeredLayout(std::span<const LayoutNode> nodes, std::span<const LayoutEdge> edges)
      : nodes_(nodes), edges_(edges) {}

  Layout run() {
    assign_layers();
    make_items();
    for (int sweep = 0; sweep < OrderSweeps; ++sweep) order(sweep % 2 == 0);
    place();
    return result();
  }

 private:
  void assign_layers() {
    layer_.assign(nodes_.size(), 0);
    std::vector<std::size_t> first_use(nodes_.size(), std::numeric_limits<std::size_t>::max());
    // Edges point to higher numbers, so edges sorted by target visit nodes in order.
    std::vector<std::size_t> by_target(edges_.size());
    std::iota(by_target.begin(), by_target.end(), std::size_t{0});
    std::ranges::sort(by_target, {}, [&](std::size_t e) { return std::pair(edges_[e].to, e); });
    for (const std::size_t e : by_target) {
      const LayoutEdge& edge = edges_[e];
      layer_[edge.to] = std::max(layer_[edge.to], layer_[edge.from] + 1);
    }
    for (const LayoutEdge& e : edges_)
      first_use[e.from] = std::min(first_use[e.from], layer_[e.to]);
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      const bool used = first_use[n] != std::numeric_limits<std::size_t>::max();
      if (nodes_[n].near_use && used) layer_[n] = first_use[n] - 1;
    }
  }

  void make_items() {
    const std::size_t depth = layer_.empty() ? 0 : 1 + *std::ranges::max_element(layer_);
    layers_.resize(depth);
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      items_.push_back({nodes_[n].width, nodes_[n].height, layer_[n], false, 0, 0, {}, {}});
      layers_[layer_[n]].push_back(n);
    }
    std::size_t stand_ins = 0;
    for (const LayoutEdge& e : edges_) stand_ins += layer_[e.to] - layer_[e.from] - 1;
    const bool through = stand_ins <= MostStandIns;
    for (const LayoutEdge& e : edges_) {
      std::vector<std::size_t>& chain = chains_.emplace_back();
      std::size_t last = e.from;
      double port = e.from_x;
      for (std::size_t l = layer_[e.from] + 1; through && l < layer_[e.to]; ++l) {
        const std::size_t item = items_.size();
        items_.push_back({0, 0, l, true, 0, 0, {}, {}});
        layers_[l].push_back(item);
        link(last, port, item, 0);
        chain.push_back(item);
        last = item;
        port = 0;
      }
      link(last, port, e.to, e.to_x);
    }
  }

  void link(std::size_t upper, double upper_x, std::size_t lower, double lower_x) {
    items_[upper].below.push_back({lower, upper_x, lower_x});
    items_[lower].above.push_back({upper, lower_x, upper_x});
  }

  // Sorts each layer by the mean place of its neighbours in the layer before (or after) it.
  void order(bool downwards) {
    rank_all();
    for (std::size_t i = 1; i < layers_.size(); ++i) {
      throw_if_stopped();
      std::vector<std::size_t>& layer = layers_[downwards ? i : layers_.size() - 1 - i];
      std::vector<std::tuple<double, std::size_t, std::size_t>> keyed;
      for (const std::size_t item : layer) {
        const std::vector<Link>& links = downwards ? items_[item].above : items_[item].below;
        double sum = 0;
        // A port shifts the key a little, so that operands come in their order.
        for (const Link& l : links) sum += items_[l.other].rank + l.other_x * 1e-4;
        keyed.emplace_back(
            links.empty() ? items_[item].rank : sum / static_cast<double>(links.size()),
            keyed.size(), item);
      }
      std::ranges::sort(keyed);  // by key, then by the order so far
      for (std::size_t k = 0; k < keyed.size(); ++k) layer[k] = std::get<2>(keyed[k]);
      rank(layer);
    }
  }

  void rank_all() {
    for (const auto& layer : layers_) rank(layer);
  }
  // Places count from the middle, so that layers of different lengths compare.
  void rank(const std::vector<std::size_t>& layer) {
    for (std::size_t k = 0; k < layer.size(); ++k) {
      items_[layer[k]].rank = static_cast<double>(k) - static_cast<double>(layer.size() - 1) / 2;
    }
  }

  [[nodiscard]] double gap(const Item& a, const Item& b) const {
    return (a.width + b.width) / 2 + (a.stand_in || b.stand_in ? ThroughGap : NodeGap);
  }

  void place() {
    for (auto& layer : layers_) {
      double x = 0;
      for (std::size_t k = 0; k < layer.size(); ++k) {
        if (k != 0) x += gap(items_[layer[k - 1]], items_[layer[k]]);
        items_[layer[k]].x = x;
      }
      for (const std::size_t item : layer) items_[item].x -= x / 2;
    }
    for (int sweep = 0; sweep < PlaceSweeps; ++sweep) {
      for (std::size_t i = 0; i < layers_.size(); ++i) {
        throw_if_stopped();
        settle(layers_[sweep % 2 == 0 ? i : layers_.size() - 1 - i], sweep % 2 == 0,
               sweep + 2 >= PlaceSweeps);
      }
    }
  }

  // Moves a layer's items to where their neighbours want them, keeping order and gaps: least
  // squares by pooling neighbours that would overlap.
  void settle(const std::vector<std::size_t>& layer, bool downwards, bool both_sides) {
    struct Block {
      double sum = 0;
      double weight = 0;
      std::size_t count = 0;
      [[nodiscard]] double mean() const { return sum / weight; }
    };
    std::vector<Block> blocks;
    std::vector<double> offset;
    for (std::size_t k = 0; k < layer.size(); ++k) {
      const Item& item = items_[layer[k]];
      offset.push_back(k == 0 ? 0 : offset.back() + gap(items_[layer[k - 1]], item));
      const double weight = item.stand_in ? 4 : 1;
      blocks.push_back({(wanted(item, downwards, both_sides) - offset[k]) * weight, weight, 1});
      while (blocks.size() > 1 && blocks[blocks.size() - 2].mean() > blocks.back().mean()) {
        const Block last = blocks.back();
        blocks.pop_back();
        blocks.back().sum += last.sum;
        blocks.back().weight += last.weight;
        blocks.back().count += last.count;
      }
    }
    std::size_t k = 0;
    for (const Block& b : blocks) {
      for (std::size_t i = 0; i < b.count; ++i, ++k) items_[layer[k]].x = b.mean() + offset[k];
    }
  }

  [[nodiscard]] double wanted(const Item& item, bool downwards, bool both_sides) const {
    double sum = 0;
    std::size_t count = 0;
    const auto pull = [&](const std::vector<Link>& links) {
      for (const Link& l : links) sum += items_[l.other].x + l.other_x - l.own_x;
      count += links.size();
    };
    if (downwards || both_sides) pull(item.above);
    if (!downwards || both_sides) pull(item.below);
    return count == 0 ? item.x : sum / static_cast<double>(count);
  }

  Layout result() {
    double left = std::numeric_limits<double>::infinity();
    double right = -left;
    for (const Item& i : items_) {
      left = std::min(left, i.x - i.width / 2);
      right = std::max(right, i.x + i.width / 2);
    }
    std::vector<double> top(layers_.size() + 1, 0);
    std::vector<double> height(layers_.size(), 0);
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      for (const std::size_t item : layers_[l])
        height[l] = std::max(height[l], items_[item].height);
      top[l + 1] = top[l] + height[l] + LayerGap;
    }
    Layout out;
    if (nodes_.empty()) return out;
    out.width = right - left;
    out.height = top.back() - LayerGap;
    const auto node_top = [&](std::size_t n) {
      return top[layer_[n]] + (height[layer_[n]] - items_[n].height) / 2;
    };
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      out.corners.push_back({items_[n].x - items_[n].width / 2 - left, node_top(n)});
    }
    for (std::size_t e = 0; e < edges_.size(); ++e) {
      const LayoutEdge& edge = edges_[e];
      std::vector<Point>& route = out.routes.emplace_back();
      route.push_back({items_[edge.from].x + edge.from_x - left,
                       node_top(edge.from) + items_[edge.from].height});
      // Straight down beside the boxes of the source's layer, of the layers passed, and of the
      // target's.
      route.push_back({route[0].x, top[layer_[edge.from]] + height[layer_[edge.from]]});
      for (const std::size_t item : chains_[e]) {
        const std::size_t l = items_[item].layer;
        route.push_back({items_[item].x - left, top[l]});
        route.push_back({items_[item].x - left, top[l] + height[l]});
      }
      const double x = items_[edge.to].x + edge.to_x - left;
      route.push_back({x, top[layer_[edge.to]]});
      route.push_back({x, node_top(edge.to)});
    }
    return out;
  }

  std::span<const LayoutNode> nodes_;
  std::span<const LayoutEdge> edges_;
  std::vector<std::size_t> layer_;
  std::vector<Item> items_;  // nodes first, then stand-ins
  std::vector<std::vector<std::size_t>> layers_;
  std::vector<std::vector<std::size_t>> chains_;  // stand-ins of each edge
};

}  // namespace

Layout layered_layout(std::span<const LayoutNode> nodes, std::span<const LayoutEdge> edges) {
  return LayeredLayout(nodes, edges).run();
}

}  // namespace ricci::draw
