// What an ELF file tells the loader: where it looks for libraries, and what it protects. Read from
// the file itself, so that no test depends on a tool being installed.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace ricci::testing {

struct ElfFacts {
  std::vector<std::string> run_paths;  ///< entries of RUNPATH and RPATH, as they stand
  std::vector<std::string> needed;     ///< libraries by name
  std::set<std::string> imports;       ///< symbols it takes from them
  bool independent = false;            ///< of its position: a shared library or a PIE
  bool bind_now = false;               ///< all symbols are bound before anything runs
  bool relro = false;                  ///< relocated data is read-only afterwards
  bool executable_stack = true;
};

/// Throws std::runtime_error when `path` is no 64-bit ELF file of this machine's byte order.
[[nodiscard]] ElfFacts read_elf(const std::string& path);

/// Fails the test where a file looks for libraries in the current directory or leaves out one of
/// the protections: the loader's, and where it takes what they need from a library, the compiler's.
void expect_hardened(const std::string& path);

}  // namespace ricci::testing
