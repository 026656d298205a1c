// What builders that are compositions share: their nodes all take the place of the one call, and
// what is wrong with it is reported there.
#pragma once

#include <string>
#include <utility>

#include "ricci/build/build.h"

namespace ricci {

/// While alive, nodes of a graph are those of one call of a builder.
class ComposedScope {
 public:
  ComposedScope(Value operand, const char* builder, std::source_location loc)
      : builder_(builder),
        loc_(loc),
        scope_(detail::graph_of(std::array{operand}, builder, loc),
               {{}, SourcePosition::from(loc), {}}) {}

  [[noreturn]] void fail(ErrorCode code, std::string message, std::string help = {}) const {
    throw UserError(Diagnostic{
        code, builder_, std::move(message), SourcePosition::from(loc_), {}, std::move(help)});
  }
  /// The non-negative form of an axis of `rank`.
  [[nodiscard]] std::size_t axis(Axis axis, std::size_t rank) const {
    const auto fixed = normalized_axis(axis.value, rank);
    if (!fixed) {
      fail(ErrorCode::Attr, "axis " + std::to_string(axis.value) + " is not one of the " +
                                std::to_string(rank) + " axes");
    }
    return static_cast<std::size_t>(*fixed);
  }
  /// A size that has to be known.
  [[nodiscard]] std::int64_t known(const Dim& size) const {
    if (const auto n = size.try_value()) return *n;
    fail(ErrorCode::NeedsStaticDim, "the size " + size.to_string() + " has to be known",
         "bind the symbol");
  }

 private:
  const char* builder_;
  std::source_location loc_;
  ProvenanceScope scope_;
};

[[nodiscard]] inline Axis axis_of(std::size_t a) { return {static_cast<std::int64_t>(a)}; }

/// Indices [start, start + len) of an axis.
[[nodiscard]] inline Value cut(Value x, std::size_t axis, std::int64_t start, std::int64_t len) {
  if (start == 0 && x.dims()[axis].is(len)) return x;
  return narrow(x, {.axis = axis_of(axis), .start = start, .len = len});
}

/// `x` alone, or joined with others.
[[nodiscard]] inline Value joined(const std::vector<Value>& parts, std::size_t axis) {
  return parts.size() == 1 ? parts[0] : concat(parts, {.axis = axis_of(axis)});
}

}  // namespace ricci
