// Texts that a model goes on with, token by token; and what models say of images.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ricci/data/tokenizer.h"
#include "ricci/nn/models.h"
#include "ricci/serve/generator.h"

namespace ricci::tool {

struct WritingOptions {
  std::string prompt;
  std::int64_t length = 200;  ///< tokens
  Sampling sampling = {.temperature = 0.8, .seed = 1};
};

/// One line of what is said, one of what is right, and a share.
[[nodiscard]] std::string answers(const std::vector<std::int64_t>& said,
                                  const std::vector<std::int64_t>& right);

/// What is trained, as what goes on token by token.
[[nodiscard]] inline const nn::Gpt& stepping(const nn::Gpt& model) { return model; }
[[nodiscard]] nn::MambaModel stepping(const nn::MambaLm& trained);

/// Writes with models of one kind, which may be trained further in between.
class Writer {
 public:
  explicit Writer(Tokenizer tokenizer) : tokenizer_(std::move(tokenizer)) {}

  /// The prompt and what comes behind it; `piece` is given each new piece when it is there. Behind
  /// the places of the model it goes on from the last half of them.
  template <class Model>
  std::string write(const Model& model, const WritingOptions& options,
                    const std::function<void(const std::string&)>& piece = {}) {
    if (generator_ == nullptr) {
      generator_ = std::make_shared<Generator>(stepping(model));
    } else {
      generator_->set_model(stepping(model));
    }
    return write_on(options, piece);
  }

 private:
  std::string write_on(const WritingOptions& options,
                       const std::function<void(const std::string&)>& piece);

  Tokenizer tokenizer_;
  std::shared_ptr<Generator> generator_;  // compiled once for all samples of a run
};

}  // namespace ricci::tool
