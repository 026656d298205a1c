// The values a run is given: from files, or made up from a seed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ricci/interp/interpreter.h"

namespace CLI {
class App;
}

namespace ricci::tool {

struct FeedOptions {
  std::vector<std::string> arrays;           ///< name=file.npy
  std::vector<std::string> archives;         ///< file.npz
  std::vector<std::string> sizes;            ///< symbol=size
  std::optional<std::int64_t> max_bytes;     ///< of the arrays of a file; absent: the defaults
  std::optional<std::uint64_t> random_seed;  ///< fills whatever no file gives

  /// Declares --input, --inputs, --max-input-bytes, --random and --size.
  void declare(CLI::App& command);
  /// The same without --input and --inputs.
  void declare_rest(CLI::App& command);
  /// Was any of them given?
  [[nodiscard]] bool any() const;
};

/// `name=value` split at the first '='; nothing when there is none or a side is empty.
[[nodiscard]] std::optional<std::pair<std::string, std::string>> split_assignment(
    const std::string& text);

/// Declares --size alone, for commands that need shapes but no values.
void declare_sizes(CLI::App& command, std::vector<std::string>& sizes, const char* meaning);
/// What `symbol=size` texts say about a graph; UserError when they do not fit it.
[[nodiscard]] SymbolBindings given_sizes(const Graph& graph, const std::vector<std::string>& sizes);

struct RunValues {
  Feeds feeds;
  SymbolBindings symbols;
};
/// A value for every input and param of `graph` that the options give one for, and the sizes they
/// give. A bf16 leaf takes f32 arrays, since files have no bf16.
[[nodiscard]] RunValues make_values(const Graph& graph, const FeedOptions& options);

/// Numbers that depend on the seed and the name only: floats uniform in [-1, 1), integers 0 to 3.
[[nodiscard]] Tensor random_tensor(const Type& type, std::uint64_t seed, const std::string& name);

}  // namespace ricci::tool
