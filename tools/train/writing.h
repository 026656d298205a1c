// Texts that a model goes on with, token by token; and what models say of images.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ricci/array.h"
#include "ricci/data/tokenizer.h"

namespace ricci::tool {

struct WritingOptions {
  std::string prompt;
  std::int64_t length = 200;  ///< tokens
  double temperature = 0.8;   ///< 0: the likeliest token
  std::uint64_t seed = 1;
};

/// The number of a token drawn by logits.
[[nodiscard]] std::int32_t drawn_token(std::span<const float> logits, double temperature,
                                       std::mt19937_64& random);

/// One line of what is said, one of what is right, and a share.
[[nodiscard]] std::string answers(const std::vector<std::int64_t>& said,
                                  const std::vector<std::int64_t>& right);

/// Any model of tokens [1, places] to logits [1, places, vocabulary] in which a place sees none
/// behind it. It reads the last `context` tokens each time.
template <class Model>
class Writer {
 public:
  Writer(Tokenizer tokenizer, std::int64_t context)
      : tokenizer_(std::move(tokenizer)), context_(context) {}

  /// The prompt and what comes behind it; `piece` is given each new piece when it is there.
  [[nodiscard]] std::string write(const Model& model, const WritingOptions& options,
                                  const std::function<void(const std::string&)>& piece = {}) const {
    std::vector<std::int32_t> tokens = tokenizer_.encode(options.prompt, false);
    if (tokens.empty()) tokens.push_back(0);
    std::mt19937_64 random(options.seed);
    std::string text = options.prompt;
    for (std::int64_t i = 0; i < options.length; ++i) {
      const std::vector<float> logits = next_logits(model, tokens);
      const std::int32_t token = drawn_token(logits, options.temperature, random);
      tokens.push_back(token);
      const std::string bytes = tokenizer_.bytes(token);
      if (piece) piece(bytes);
      text += bytes;
    }
    return text;
  }

 private:
  [[nodiscard]] std::vector<float> next_logits(const Model& model,
                                               const std::vector<std::int32_t>& tokens) const {
    const std::size_t seen = std::min(tokens.size(), static_cast<std::size_t>(context_));
    std::vector<std::int32_t> window(tokens.end() - static_cast<std::ptrdiff_t>(seen),
                                     tokens.end());
    window.resize(static_cast<std::size_t>(context_));  // places behind the last one change nothing
    const Array logits = logits_(model, array(window, {1, context_}),
                                 Array(static_cast<std::int64_t>(seen) - 1).astype(DType::I32));
    const std::span<const float> values = logits.template data<float>();
    return {values.begin(), values.end()};
  }

  static Array logits_at(const Model& model, const Array& ids, const Array& place) {
    return cast(take(model(ids)(0), reshape(place, {1}), 0), DType::F32);
  }

  Tokenizer tokenizer_;
  std::int64_t context_;
  decltype(jit(&Writer::logits_at)) logits_ = jit(&Writer::logits_at);
};

}  // namespace ricci::tool
