// Graphs compiled ahead of time: an object file with C functions, and the header that declares
// them. Linked with the runtime archive (libricci_runtime.a) it runs without a compiler: no LLVM,
// nothing to compile when the program starts.
//
//   ObjectFile net = compile_object(graph, {.name = "net"});
//   io::write_object(net, "net.o");                   // and net.h, see ricci/io/object_file.h
//
//   net_program* program;                             // C
//   net_create(&program, 0);
//   net_run(program, &(net_arrays){.x = x, .y = y}, 0);
//
// Results are those of `compile`, bit for bit, on a machine of the same target. See
// docs/AHEAD_OF_TIME.md.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ricci/ir/graph.h"
#include "ricci/runtime/compiled_graph.h"

namespace ricci {

struct ObjectOptions {
  /// What the C functions and types begin with; the graph's name when empty. A C identifier.
  std::string name = {};
  std::string device = "cpu";  ///< whose program it is
  /// Whose instructions are used: `host` (this machine), `portable` (any x86-64), `avx2`, `avx512`;
  /// for `cuda` an architecture, `sm_90`.
  std::string target = "host";
  bool fuse = true;  ///< put ops that walk the same elements into one kernel
  /// Outputs computed where inputs lie: one array for both, updated in place.
  std::vector<Donation> donations = {};
  /// Bytes that temporaries may take; see `ProgramOptions::memory_budget`.
  std::int64_t memory_budget = 0;
  /// Of the outputs, in order; where empty or missing, their names in the graph, or `out`.
  std::vector<std::string> output_names = {};
  /// What the header says about an input or param, by its name.
  std::map<std::string, std::string> notes = {};
  bool tf32_products = false;  ///< see `CompileOptions::tf32_products`
};

/// An object for this operating system's linker, and its C header.
struct ObjectFile {
  std::string name;
  std::vector<std::byte> object;
  std::string header;
};

/// UserError when the graph has symbolic dimensions (bind them first) or ops that exist only in
/// this process, and when a name, target or donation cannot be.
[[nodiscard]] ObjectFile compile_object(const Graph& graph, const ObjectOptions& options = {});

/// What the compiler makes of a graph, as text: `report`, for people; `lir`, the program; or its
/// code, as `llvm` or `asm` (cpu), `cuda` or `ptx` (cuda). Another machine's device will do: the
/// report of a GPU and its CUDA C++ need nothing, its PTX needs the library NVRTC and a `target`.
/// UserError as for objects, and for a form that the device does not have.
[[nodiscard]] std::string compile_text(const Graph& graph, std::string_view form,
                                       const ObjectOptions& options = {});

}  // namespace ricci
