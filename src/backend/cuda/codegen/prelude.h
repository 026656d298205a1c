// What printed kernels are written with beside CUDA's own functions: small floats, complex numbers,
// functions of elements, reductions of teams of threads. A source begins with as much of it as it
// uses.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace ricci::cuda {

/// Declarations that belong together, and the names by which others call them, with spaces between.
struct Snippet {
  std::string_view names;
  std::string_view text;
};

/// In order: each uses only what is before it.
[[nodiscard]] std::span<const Snippet> number_snippets();
[[nodiscard]] std::span<const Snippet> function_snippets();
[[nodiscard]] std::span<const Snippet> complex_snippets();

/// The source with what it uses in front of it.
[[nodiscard]] std::string with_prelude(std::string_view source);

}  // namespace ricci::cuda
