// What a caller of a program compiled ahead of time sees of it: the arrays it hands in, in the
// order of the C struct, and what the machine must have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ricci::device {

/// An input, an output, or both: an input that is updated in place.
struct PackagedArray {
  std::string name;          ///< of the field
  std::int32_t input = -1;   ///< which of the program's inputs
  std::int32_t output = -1;  ///< which of its outputs
};

struct PackagedInterface {
  std::string name;
  std::string target;                 ///< what the code was made for: `host`, `avx2`, …
  std::vector<std::string> features;  ///< instruction sets it uses
  std::vector<PackagedArray> arrays;
};

[[nodiscard]] std::vector<std::byte> to_bytes(const PackagedInterface& interface);
/// UserError(file) when the bytes are damaged or of another version.
[[nodiscard]] PackagedInterface interface_from_bytes(std::span<const std::byte> bytes);

}  // namespace ricci::device
