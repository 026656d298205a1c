// Files of weights whatever their format: NPZ, safetensors and GGUF are told apart by how they
// begin when they are read, and by the ending of their name when they are written.
//
//   io::NamedTensors weights = io::read_weights("model.safetensors");
//   io::write_weights("model.npz", weights);
#pragma once

#include <string>
#include <string_view>

#include "ricci/io/mapped_file.h"
#include "ricci/io/npy.h"

namespace ricci::io {

enum class WeightFormat { Npz, Safetensors, Gguf };

/// By the ending `.npz`, `.safetensors` or `.gguf`; UserError(file.format) for others.
[[nodiscard]] WeightFormat weight_format(std::string_view path);
/// By the first nine bytes of a file; UserError(file.format) when they are those of no such file.
[[nodiscard]] WeightFormat weight_format_of(std::span<const std::byte> front);

/// All tensors in the order of the file. Those of safetensors and GGUF are mapped where they lie so
/// that they can be used, unless they are to be read, and block formats are decoded to f32.
/// A checkpoint (ricci/train/checkpoint.h) is looked at whole first: UserError(file.checkpoint_sum)
/// when it is damaged.
[[nodiscard]] NamedTensors read_weights(const std::string& path, FileBytes how = FileBytes::Mapped);
/// The file appears when it is complete.
void write_weights(const std::string& path, const NamedTensors& tensors);

}  // namespace ricci::io
