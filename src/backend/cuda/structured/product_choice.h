// The algorithms that were chosen for products: kept in this process, and what was measured in the
// folder for code, so that the next process has the same bits and need not measure.
#pragma once

#include <optional>
#include <string>

#include "backend/cuda/run/code.h"
#include "backend/cuda/run/gpu.h"

namespace ricci::cuda {

struct KnownChoice {
  MatmulChoice choice{};
  bool is_right = true;  ///< what it applies to results is what it says
  bool of_this_process = false;
};

/// All that a choice depends on.
[[nodiscard]] std::string choice_key(const Gpu& gpu, const std::string& shape);
/// `folder` may be null.
[[nodiscard]] std::optional<KnownChoice> known_choice(const std::string& key,
                                                      const CodeFolder* folder);
void keep_choice(const std::string& key, const KnownChoice& known, const CodeFolder* folder);
/// Those of this process.
void forget_choices();

}  // namespace ricci::cuda
