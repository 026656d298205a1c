// Programs compiled ahead of time as files: an object or a shared library, each with its C header.
//
//   ObjectFile net = compile_object(graph, {.name = "net"});
//   io::write_object(net, "out/net.o");                // and out/net.h
//   io::write_shared_library(net, "out/libnet.so");    // and out/libnet.h
#pragma once

#include <string>

#include "ricci/runtime/ahead_of_time.h"

namespace ricci::io {

/// The header beside a file: its name with the ending `.h`.
[[nodiscard]] std::string header_path(const std::string& path);

/// Writes the object, and its header beside it. UserError(file) when that fails.
void write_object(const ObjectFile& program, const std::string& path);

struct LinkOptions {
  /// The driver that links. Empty: $CXX, or the first there is of c++, g++ and clang++.
  std::string compiler = {};
  /// libricci_runtime.a. Empty: $RICCI_RUNTIME, or the one installed or built with this program,
  /// or where the linker finds it.
  std::string runtime = {};
};

/// Links the object and the runtime into a shared library that exports the program's C functions
/// and nothing else, and writes the header beside it. UserError(file) when there is no compiler;
/// DeviceError with what it said when it fails.
void write_shared_library(const ObjectFile& program, const std::string& path,
                          const LinkOptions& options = {});

}  // namespace ricci::io
