// What the commands that transform a graph share: where the graph comes from, which of its values
// are meant, and how the new one is handed over.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ricci/transform/transformed.h"

#include "commands/commands.h"
#include "source.h"

namespace ricci::tool {

struct TransformOptions {
  Source source;
  std::vector<std::string> wrt;  ///< inputs and params by name, other values as %name
  bool locations = false;
  std::string out = "-";

  /// Declares FILE, --graph, --locations and -o.
  void declare(CLI::App& command);
  /// Declares --wrt, with `meaning` as its help.
  void declare_wrt(CLI::App& command, const char* meaning);
  [[nodiscard]] std::vector<ValueRef> refs() const { return {wrt.begin(), wrt.end()}; }
};

/// Reads the graph, transforms it and writes the result. Names the transform gave to new inputs
/// are noted on standard error where they are not the usual ones.
void write_transformed(const TransformOptions& options,
                       const std::function<Transformed(const Graph&)>& transform);

}  // namespace ricci::tool
