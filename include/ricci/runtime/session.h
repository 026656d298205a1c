// A session: a device and the programs compiled for it. Compiling a graph that was compiled before
// costs a look-up.
//
//   Session session;
//   CompiledGraph f = session.compile(graph);
//   CompiledGraph g = session.compile(graph);     // the same program, params of its own
//
// Programs are found by content: graph, options and places in the source (which errors and profiles
// name) must be equal. Machine code of kernels is shared by all programs of a process anyway; with
// a folder for it (`SessionOptions::code_cache`, or RICCI_CACHE_DIR in the environment) it outlives
// the process. Any number of threads may use a session.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "ricci/runtime/compiled_graph.h"
#include "ricci/runtime/device.h"

namespace ricci {

struct SessionOptions {
  std::size_t max_programs = 64;  ///< how many are kept; those not asked for longest go first
  /// A folder for machine code. Absent: RICCI_CACHE_DIR where it is set, otherwise none; a library
  /// writes no files unasked.
  std::optional<std::string> code_cache = std::nullopt;
};

class Session {
 public:
  explicit Session(Device device = Device::standard(), SessionOptions options = {});

  [[nodiscard]] const Device& device() const noexcept;
  /// Every call gives a compiled graph with params of its own. Graphs with ops registered at run
  /// time are compiled each time.
  [[nodiscard]] CompiledGraph compile(const Graph& graph, const CompileOptions& options = {});

  struct CacheStatistics {
    std::size_t hits = 0;
    std::size_t misses = 0;
    std::size_t programs = 0;  ///< kept now
  };
  [[nodiscard]] CacheStatistics cache() const;
  /// Forgets all programs; compiled graphs that use them keep them.
  void clear_cache();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace ricci
