// The C header of a program compiled ahead of time.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ricci/type/type.h"

#include "device/packaged_interface.h"

namespace ricci::runtime {

/// An array as the header shows it.
struct DocumentedArray {
  device::PackagedArray array;
  Type type;
  std::string what;  ///< "input 'x'", "param 'w', updated in place", …
  std::string name;  ///< as the program calls it
};

/// Words of C and C++ that cannot be names, besides those that begin with `__`, or `_` and a
/// capital letter.
[[nodiscard]] std::span<const std::string_view> reserved_words() noexcept;
/// A name C and C++ accept: what they do not have becomes `_`, keywords get one, and names that are
/// kept for compilers begin with `x`.
[[nodiscard]] std::string c_identifier(const std::string& name);

/// `arrays` in the order of `interface.arrays`.
[[nodiscard]] std::string c_header(const device::PackagedInterface& interface,
                                   const std::vector<DocumentedArray>& arrays);

}  // namespace ricci::runtime
