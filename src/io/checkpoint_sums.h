// Sums of a safetensors file in its own metadata, as checkpoints have them: of its tensors, and of
// its directory. And the names in such files that readers of weights look at.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "ricci/io/safetensors.h"

namespace ricci::io {

inline constexpr std::string_view CheckpointKey = "ricci.checkpoint";
inline constexpr std::string_view TensorSumKey = "ricci.tensors_sha256";
inline constexpr std::string_view DirectorySumKey = "ricci.directory_sha256";
/// What stands in the place of a sum until the file is sealed.
inline constexpr std::string_view NoSum =
    "0000000000000000000000000000000000000000000000000000000000000000";
/// Before the names of what training keeps beside the model, and of the averages of its params,
/// which are what the model is used with.
inline constexpr std::string_view KeptPrefix = "training/";
inline constexpr std::string_view AveragePrefix = "training/averaged/";

/// Puts the sums into the directory, whose metadata have a place for them.
void seal_sums(std::span<std::byte> bytes);
/// UserError(file.checkpoint_sum) when they are missing or not those of the bytes.
void require_sums(std::span<const std::byte> bytes);
/// The same for a file whose metadata say that it has sums; others pass.
void require_sums_if_any(const Safetensors& file, std::span<const std::byte> bytes);

}  // namespace ricci::io
