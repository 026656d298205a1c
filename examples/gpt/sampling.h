// Writing with a model, one character after the other.
#pragma once

#include <cstddef>
#include <random>
#include <string>

#include "ricci/ricci.h"
#include "ricci/runtime/compiled_graph.h"

#include "model.h"
#include "text.h"

namespace gpt {

class Writer {
 public:
  Writer(const Sizes& sizes, Vocabulary vocabulary, const ricci::Device& device);

  void set_params(const ricci::Feeds& params);
  /// `prompt` and `count` characters more. The lower the temperature, the more the likeliest ones
  /// are preferred.
  [[nodiscard]] std::string write(const std::string& prompt, std::size_t count, double temperature,
                                  std::mt19937_64& random) const;

 private:
  [[nodiscard]] std::size_t next(const Tokens& so_far, double temperature,
                                 std::mt19937_64& random) const;

  Sizes sizes_;
  Vocabulary vocabulary_;
  ricci::CompiledGraph model_;
};

}  // namespace gpt
