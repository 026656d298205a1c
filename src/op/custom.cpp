#include "ricci/op/custom.h"

#include <algorithm>

#include <fmt/format.h>

#include "ricci/support/text.h"

#include "op/call_custom.h"
#include "op/infer_rules.h"
#include "support/fork.h"

namespace ricci {
namespace {

// A child of fork finds the registry free, whoever looked into it in the parent.
class Locked {
 public:
  explicit Locked(std::mutex& mutex) : lock_(mutex) {}

 private:
  UnforkedWork unforked_;
  std::lock_guard<std::mutex> lock_;
};

}  // namespace

void Registry::add(std::shared_ptr<const CustomOp> op, bool replace) {
  if (op == nullptr) throw UserError(ErrorCode::Name, "no custom op is given to register");
  const std::pair key(op->name(), op->version());
  const Locked lock(mutex_);
  if (!replace && ops_.contains(key)) {
    throw UserError(
        ErrorCode::Name,
        fmt::format("the custom op '{}' version {} is already registered", key.first, key.second),
        "pass replace = true, or give it another version");
  }
  ops_[key].swap(op);  // what is replaced may end, and that is its own code, behind the lock
}

std::shared_ptr<const CustomOp> Registry::find(std::string_view name, std::int64_t version) const {
  const Locked lock(mutex_);
  const auto it = ops_.find(std::pair(std::string(name), version));
  return it == ops_.end() ? nullptr : it->second;
}

std::shared_ptr<const CustomOp> Registry::find_or_throw(std::string_view name,
                                                        std::int64_t version) const {
  if (auto found = find(name, version)) return found;
  std::vector<std::string> versions;
  for (const auto& [other, v] : list()) {
    if (other == name) versions.push_back(std::to_string(v));
  }
  throw UserError(ErrorCode::Name,
                  fmt::format("no custom op '{}' version {} is registered", name, version),
                  versions.empty() ? "register it before building or loading the graph"
                                   : "versions registered: " + join(versions, ", "));
}

std::vector<std::pair<std::string, std::int64_t>> Registry::list() const {
  const Locked lock(mutex_);
  std::vector<std::pair<std::string, std::int64_t>> out;
  out.reserve(ops_.size());
  for (const auto& [key, unused] : ops_) out.push_back(key);
  return out;
}

Registry& global_registry() {
  static Registry registry;
  return registry;
}

const Registry& default_registry() { return global_registry(); }

Inferred infer(const op::Custom& op, const InferContext& in) {
  const auto found = in.registry != nullptr ? in.registry->find(op.name, op.version) : nullptr;
  if (!found) {
    std::string help = "register it before building or loading the graph";
    if (in.registry != nullptr) {
      for (const auto& [name, version] : in.registry->list()) {
        if (name == op.name) help += fmt::format("; version {} is registered", version);
      }
    }
    in.reject("c1", fmt::format("no custom op '{}' version {} is registered", op.name, op.version),
              std::move(help));
  }
  const auto takes = call_custom(op, "the operand count", [&] { return found->num_inputs(); });
  if (takes && *takes != in.operands.size()) {
    in.reject("c2", fmt::format("'{}' takes {} operands, but is given {}", op.name, *takes,
                                in.operands.size()));
  }
  std::vector<Type> results =
      call_custom(op, "the shape rule", [&] { return found->infer(in.operands, op.attrs); });
  if (results.empty()) {
    in.reject("c3", fmt::format("the shape rule of '{}' version {} gives no result", op.name,
                                op.version));
  }
  for (const Type& t : results) {
    const auto negative = [](const Dim& d) { return d.try_value().value_or(0) < 0; };
    if (std::ranges::none_of(t.dims, negative)) continue;
    in.reject("c3",
              fmt::format("the shape rule of '{}' version {} gives {}, which has a negative size",
                          op.name, op.version, t.to_string()));
  }
  return results;
}

}  // namespace ricci
