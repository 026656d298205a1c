// What transforms take and give: references to values, and a new graph with a way back to the old.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "ricci/ir/rebuild.h"

namespace ricci {

/// A value of a graph: by handle, by id, an input or param by its name, or any value by the name it
/// has in the text form, `"%h"`.
class ValueRef {
 public:
  ValueRef(const char* name) : ref_(std::string(name)) {}  // NOLINT: a name is a reference
  ValueRef(std::string name) : ref_(std::move(name)) {}    // NOLINT
  ValueRef(ValueId id) : ref_(id) {}                       // NOLINT
  ValueRef(const Value& v) : ref_(v) {}                    // NOLINT
  /// The value in `graph`; UserError(name) when there is none.
  [[nodiscard]] ValueId in(const Graph& graph) const;

 private:
  std::variant<std::string, ValueId, Value> ref_;
};

/// The result of a transform.
struct Transformed {
  Graph graph;
  IdMap map;  ///< values of the caller's graph in the new one; nothing for those that are gone
  /// Names the transform gave to inputs it added, by what they are called by convention:
  /// `d_output` → `d_output_2` when the graph had a `d_output` before.
  std::map<std::string, std::string, std::less<>> names;
};

}  // namespace ricci
