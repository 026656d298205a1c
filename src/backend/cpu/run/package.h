// What the object of a program compiled ahead of time holds besides its functions, and hands to the
// runtime it is linked with. Written by object_code.cpp, read by
// backend/cpu/run/packaged_program.cpp: the layout is part of the binary interface, and its version
// comes first.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ricci::cpu {

inline constexpr std::uint64_t PackageVersion = 4;

struct Package {
  std::uint64_t version;
  const std::byte* interface_bytes;  ///< see device/packaged_interface.h
  std::uint64_t interface_size;
  const std::byte* program_bytes;  ///< see schedule/program_bytes.h
  std::uint64_t program_size;
  const void* const* functions;  ///< in the order a CodeSource is asked
  std::uint64_t function_count;
  const void* const*
      parts;  ///< those of run/library_parts.h its calls need; naming them links them
  std::uint64_t part_count;
};

}  // namespace ricci::cpu
