// Kernels compiled together: every source costs NVRTC as much as several small kernels do, and
// where sources begin they wait for each other.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "backend/cuda/codegen/kernel_text.h"

namespace ricci::cuda {

struct SourceGroup {
  std::vector<std::size_t> members;  ///< among the texts
  std::vector<std::string> names;    ///< what each is called here
  std::string text;
};

/// One source for these of the texts, each in a namespace of its own.
[[nodiscard]] SourceGroup join_sources(std::span<const KernelText* const> texts,
                                       std::vector<std::size_t> members);
/// All of them in groups that take about as long as each other, at most so many.
[[nodiscard]] std::vector<SourceGroup> group_sources(std::span<const KernelText* const> texts,
                                                     std::size_t most_groups);

}  // namespace ricci::cuda
