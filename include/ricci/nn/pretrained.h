// Models in the layouts of the `transformers` library: a folder with `config.json` and
// `model.safetensors` (or several files with an index), as it writes them.
//
//   nn::Pretrained p = nn::load_pretrained("gpt2");              // a folder, or a .safetensors in
//   one const auto& gpt = std::get<nn::Gpt>(p.model);
//
// Known are `gpt2`, `llama` and `mamba`. A tensor that is missing, that the model has no place for,
// or that has another shape is an error that names it: UserError(file.layout).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ricci/io/mapped_file.h"
#include "ricci/nn/models.h"
#include "ricci/nn/transformer.h"
#include "ricci/type/dtype.h"

namespace ricci::nn {

using LanguageModel = std::variant<Gpt, Llama, MambaModel>;

struct PretrainedOptions {
  /// What floats become; absent: what the table of tokens has in the file.
  std::optional<DType> dtype = DType::F32;
  /// Weights that stay as the file has them are mapped, and a process that uses them ends when
  /// someone cuts the file short; `Read` takes memory, and no such risk.
  io::FileBytes files = io::FileBytes::Mapped;
};

struct Pretrained {
  LanguageModel model;
  std::string kind;                           ///< `gpt2`, `llama` or `mamba`
  std::vector<std::int32_t> end_tokens = {};  ///< those that end a text, as the configuration says
};

/// UserError(file) when files are missing, damaged or do not fit each other, UserError(file.layout)
/// for kinds and settings that are not known.
[[nodiscard]] Pretrained load_pretrained(const std::string& path,
                                         const PretrainedOptions& options = {});

}  // namespace ricci::nn
