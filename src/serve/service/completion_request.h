// What a client asks for with POST /v1/completions, out of JSON.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ricci/serve/generator.h"

namespace ricci::serve {

/// Texts as tokens and back; without them requests and answers are of tokens.
struct TextCodec {
  std::function<std::vector<std::int32_t>(std::string_view text)> encode = {};
  std::function<std::string(std::int32_t token)> bytes = {};  ///< none for what is not told
};

struct CompletionRequest {
  std::vector<std::int32_t> prompt;
  GenerateOptions options;
  std::vector<std::string> stops;
  bool stream = false;
};

/// UserError(file.json) with the byte for what is no such request, and for keys that are not known;
/// UserError for settings out of their range.
[[nodiscard]] CompletionRequest read_completion(std::string_view body, const TextCodec& codec,
                                                const GenerateOptions& defaults);

}  // namespace ricci::serve
