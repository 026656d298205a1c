// What runs learn from: a text as tokens, or images with classes; from files, or what comes with
// the tool.
#pragma once

#include <cstdint>
#include <string>

#include "ricci/data.h"
#include "ricci/nn/models.h"

#include "train/settings.h"

namespace ricci::tool {

template <class Batch>
struct RunData {
  Dataset<Batch> train;
  Dataset<Batch> test;  ///< may be empty
};

/// `tokenizer_file` is where a run keeps its own, if it has one: it is read where it is there. All
/// of the data is for testing where `only_test` is set. UserError for data that is missing, or has
/// another shape.
struct TextData : RunData<TokenBatch> {
  Tokenizer tokenizer;
};
[[nodiscard]] TextData text_data(const RunSettings& settings, const std::string& tokenizer_file,
                                 bool only_test);

struct ImageData : RunData<ImageBatch> {
  nn::ImageOptions image;  ///< of flat examples: channels and heights are 1
};
[[nodiscard]] ImageData image_data(const RunSettings& settings, bool only_test);

/// The text that comes with the tool.
[[nodiscard]] std::string_view bundled_text();

}  // namespace ricci::tool
