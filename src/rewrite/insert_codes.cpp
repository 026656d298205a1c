// Pairs of quantize and dequantize behind values.
#include <map>
#include <utility>

#include <fmt/format.h>

#include "ricci/compiler/rewrite/quantize.h"
#include "ricci/support/error.h"

#include "rewrite/changes.h"
#include "rewrite/code_ops.h"

namespace ricci {
namespace {

void require_value(const Graph& graph, ValueId v) {
  if (v.node < graph.size() && v.result < graph.nodes()[v.node].types.size()) return;
  throw UserError(ErrorCode::Name,
                  fmt::format("value {}:{} is to become codes, but '{}' has no such value", v.node,
                              v.result, graph.name()));
}

// What codes of a value are called in text.
std::string codes_name(const Node& node, std::uint32_t result) {
  const std::string* leaf = node.leaf_name();
  const std::string& name = leaf != nullptr ? *leaf : node.names[result];
  return name.empty() ? name : name + "_codes";
}

class PairInserter {
 public:
  PairInserter(const Graph& graph, const QuantRecord& record,
               const std::function<bool(const Node&)>& reads)
      : from_(graph), record_(record), reads_(reads), rebuild_(graph) {}

  PassResult run() {
    for (NodeId id = 0; id < from_.size(); ++id) {
      copy(id);
      const Node& node = from_.nodes()[id];
      for (std::uint32_t r = 0; r < node.types.size(); ++r) insert({id, r});
    }
    if (!reads_) {
      for (const auto& [old, back] : back_) rebuild_.map(old, back);
    }
    return finished(rebuild_);
  }

 private:
  // Readers see what comes back; the value itself stays where the map says it is.
  void copy(NodeId id) {
    const Node& node = from_.nodes()[id];
    std::vector<std::pair<ValueId, ValueId>> before;
    if (!reads_ || reads_(node)) {
      for (const ValueId v : node.operands) {
        const auto back = back_.find(v);
        if (back == back_.end()) continue;
        before.emplace_back(v, rebuild_(v));
        rebuild_.map(v, back->second);
      }
    }
    rebuild_.copy(id);
    for (auto it = before.rbegin(); it != before.rend(); ++it) rebuild_.map(it->first, it->second);
  }

  void insert(ValueId old) {
    const auto entry = record_.find(old);
    if (entry == record_.end()) return;
    const ProvenanceScope scope(rebuild_.to(), {"", {}, "quantisation"});
    const Value x = rebuild_.value(old);
    Graph& to = rebuild_.to();
    Value codes = to.add_node(Op(quantize_op(entry->second)), std::span(&x, 1))[0];
    const std::string name = codes_name(from_.nodes()[old.node], old.result);
    if (!name.empty()) codes.named(name);
    back_[old] =
        to.add_node(Op(dequantize_op(entry->second, x.dtype())), std::span(&codes, 1))[0].id();
  }

  const Graph& from_;
  const QuantRecord& record_;
  const std::function<bool(const Node&)>& reads_;
  Rebuilder rebuild_;
  std::map<ValueId, ValueId> back_;  // from values of the old graph
};

}  // namespace

PassResult insert_q_dq(const Graph& graph, const QuantRecord& record,
                       const std::function<bool(const Node&)>& reads) {
  for (const auto& [value, params] : record) require_value(graph, value);
  if (record.empty()) return unchanged(graph);
  return PairInserter(graph, record, reads).run();
}

}  // namespace ricci
