// The forward sweep: mirrors a graph into a new one with tangents alongside.
#pragma once

#include <map>
#include <vector>

#include "ricci/ir/rebuild.h"
#include "ricci/transform/transformed.h"

namespace ricci {

class Forward {
 public:
  explicit Forward(const Graph& graph) : from_(graph), build_(graph) {}

  Forward(const Forward&) = delete;  // values and steps point into it
  Forward& operator=(const Forward&) = delete;

  [[nodiscard]] Graph& graph() noexcept { return build_.to(); }
  /// Copies the leaves, so that tangents can be given before anything else is built.
  void copy_leaves();
  /// The tangent of a value of the old graph; absent means zero.
  void set_tangent(ValueId value, Value tangent) { tangents_[value] = tangent; }
  /// Gives tangents to what depends on a value that has one, and to nothing else.
  void sweep();
  [[nodiscard]] Value value(ValueId old) { return build_.value(old); }
  /// Invalid when it is zero.
  [[nodiscard]] Value tangent(ValueId old) const;
  /// The same with zero written out.
  [[nodiscard]] Value tangent_or_zero(ValueId old);
  [[nodiscard]] Transformed finish(const std::vector<Value>& outputs);

 private:
  const Graph& from_;
  Rebuilder build_;
  std::map<ValueId, Value> tangents_;
};

}  // namespace ricci
