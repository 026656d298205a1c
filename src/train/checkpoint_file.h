// How a checkpoint lies in its file: names of metadata and tensors, and its bytes.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ricci/io/safetensors.h"
#include "ricci/train/checkpoint.h"

namespace ricci {

inline constexpr std::string_view ScoreKey = "ricci.score";
inline constexpr std::string_view NotePrefix = "note.";

[[nodiscard]] std::vector<std::byte> checkpoint_bytes(const Checkpoint& checkpoint);
/// UserError(file) for bytes that are none. Tensors stay where the bytes are.
[[nodiscard]] Checkpoint parse_checkpoint(std::shared_ptr<const std::vector<std::byte>> bytes);
[[nodiscard]] std::optional<double> score_of(const io::Safetensors& file);

}  // namespace ricci
