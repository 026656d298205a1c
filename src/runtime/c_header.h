// The C header of a program compiled ahead of time.
#pragma once

#include <string>
#include <vector>

#include "ricci/type/type.h"

#include "runtime/packaged_interface.h"

namespace ricci::runtime {

/// An array as the header shows it.
struct DocumentedArray {
  PackagedArray array;
  Type type;
  std::string what;  ///< "input 'x'", "param 'w', updated in place", …
};

/// A name C and C++ accept: what they do not have becomes `_`, and keywords get one.
[[nodiscard]] std::string c_identifier(const std::string& name);

/// `arrays` in the order of `interface.arrays`.
[[nodiscard]] std::string c_header(const PackagedInterface& interface,
                                   const std::vector<DocumentedArray>& arrays);

}  // namespace ricci::runtime
