#include "ricci/ir/verify.h"

#include <set>

#include <fmt/format.h>

#include "ricci/ir/text.h"
#include "ricci/op/leaf.h"
#include "ricci/op/table.h"
#include "ricci/support/limits.h"
#include "ricci/support/stop.h"

namespace ricci {
namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph) {}

  std::vector<Diagnostic> run() {
    for (NodeId id = 0; id < graph_.size(); ++id) {
      throw_if_stopped();
      if (operands_exist(id)) check_node(id);
    }
    for (const ValueId v : graph_.outputs()) {
      if (!exists(v)) {
        report(ErrorCode::Name, "verify_output",
               fmt::format("the graph '{}' returns result {} of node {}, which does not exist",
                           graph_.name(), v.result, v.node),
               nullptr);
      } else if (!graph_.node(v.node).wanted[v.result]) {
        report(ErrorCode::Name, "verify_unwanted",
               fmt::format("the graph '{}' returns a result that is not computed", graph_.name()),
               &graph_.node(v.node));
      }
    }
    if (untold_ > 0) faults_.back().message = fmt::format("there are {} more faults", untold_);
    return std::move(faults_);
  }

 private:
  [[nodiscard]] bool exists(ValueId v) const {
    if (v.node >= graph_.size()) return false;
    const Node& n = graph_.node(v.node);
    return v.result < n.types.size() && v.result < n.wanted.size();
  }

  void report(ErrorCode code, std::string detail, std::string message, const Node* node,
              std::string help = {}) {
    Diagnostic d{code, std::move(detail), std::move(message), {}, {}, std::move(help)};
    if (node != nullptr && node->provenance) d.where = node->provenance->where;
    if (node != nullptr) {
      for (const ValueId v : node->operands) {
        if (d.notes.size() == MostNotes) break;
        if (exists(v)) {
          d.notes.push_back(fmt::format("operand %{} : {}", v.node, graph_.type(v).to_string()));
        }
      }
    }
    add(std::move(d));
  }

  // Of very many faults the first are told.
  void add(Diagnostic fault) {
    if (faults_.size() < MostFaults) {
      faults_.push_back(std::move(fault));
    } else if (++untold_ == 1) {
      faults_.push_back({ErrorCode::Name, "verify_more", {}, {}, {}, {}});
    }
  }

  bool operands_exist(NodeId id) {
    const Node& node = graph_.node(id);
    bool good = true;
    for (const ValueId v : node.operands) {
      if (!exists(v) || v.node >= id) {
        good = false;
        report(ErrorCode::Name, "verify_order",
               fmt::format("node {} ('{}') reads node {}, which does not come before it", id,
                           node.op.mnemonic(), v.node),
               &node);
      } else if (!graph_.node(v.node).wanted[v.result]) {
        report(ErrorCode::Name, "verify_unwanted",
               fmt::format("node {} ('{}') reads a result of node {} that is not computed", id,
                           node.op.mnemonic(), v.node),
               &node);
      }
    }
    if (node.wanted.size() != node.types.size() || node.names.size() != node.types.size()) {
      good = false;
      report(
          ErrorCode::Name, "verify_results",
          fmt::format("node {} ('{}') has {} types, {} wanted flags and {} names", id,
                      node.op.mnemonic(), node.types.size(), node.wanted.size(), node.names.size()),
          &node);
    }
    return good;
  }

  // Builds the node again and compares.
  void check_node(NodeId id) {
    const Node& node = graph_.node(id);
    for (const Body& b : node.bodies) {
      if (b.graph == nullptr) {
        report(
            ErrorCode::Attr, "verify_body",
            fmt::format("body '{}' of node {} ('{}') is no graph", b.role, id, node.op.mnemonic()),
            &node);
        return;
      }
      for (Diagnostic& d : Verifier(*b.graph).run()) {
        d.notes.push_back(
            fmt::format("inside body '{}' of node {} ('{}')", b.role, id, node.op.mnemonic()));
        add(std::move(d));
      }
    }
    check_leaf_name(node);
    std::vector<Type> operand_types;
    for (const ValueId v : node.operands) operand_types.push_back(graph_.type(v));
    std::vector<BodySignature> signatures;
    for (const Body& b : node.bodies) signatures.push_back(b.graph->signature(b.role));
    try {
      check_signature(node.op, operand_types.size(), signatures);
      if (!(normalize(node.op, operand_types) == node.op)) {
        report(ErrorCode::Attr, "verify_normal",
               fmt::format("node {} ('{}') holds attributes that are not in normal form", id,
                           node.op.mnemonic()),
               &node);
      }
      const Inferred inferred = infer_types(node.op, operand_types, signatures, &graph_.registry());
      if (inferred.types != node.types) {
        report(ErrorCode::Shape, "verify_type",
               fmt::format("node {} ('{}') declares {}, but gives {}", id, node.op.mnemonic(),
                           list(node.types), list(inferred.types)),
               &node);
      }
    } catch (const Rejection& r) {
      report(r.code, r.detail, r.message, &node, r.help);
    } catch (const UserError& e) {
      if (e.code() == ErrorCode::Stopped) throw;
      report(e.code(), e.diagnostic().detail, e.diagnostic().message, &node, e.diagnostic().help);
    }
  }

  void check_leaf_name(const Node& node) {
    const std::string* name = node.leaf_name();
    if (name != nullptr && !name->empty() && !leaf_names_.insert(*name).second) {
      report(ErrorCode::Name, "duplicate",
             fmt::format("two inputs or params are named '{}'", *name), &node);
    }
  }

  static std::string list(const std::vector<Type>& types) {
    std::string out;
    for (const Type& t : types) out += (out.empty() ? "" : ", ") + t.to_string();
    return out;
  }

  const Graph& graph_;
  std::vector<Diagnostic> faults_;
  std::size_t untold_ = 0;
  std::set<std::string> leaf_names_;
};

}  // namespace

std::vector<Diagnostic> find_faults(const Graph& graph) { return Verifier(graph).run(); }

void verify(const Graph& graph) {
  std::vector<Diagnostic> faults = find_faults(graph);
  if (!faults.empty()) throw UserError(std::move(faults));
}

}  // namespace ricci
