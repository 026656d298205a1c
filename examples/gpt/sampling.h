// Writing with a model, one character after the other.
#pragma once

#include <cstddef>
#include <random>
#include <string>

#include "ricci/graph.h"
#include "ricci/model.h"
#include "ricci/ricci.h"

#include "model.h"
#include "text.h"

namespace gpt {

class Writer {
 public:
  Writer(ricci::Session& session, const Sizes& sizes, Vocabulary vocabulary);

  void set_param(const std::string& name, const ricci::Tensor& value);
  /// `prompt`, which is not empty, and `count` characters more. The lower the temperature, the more
  /// the likeliest ones are preferred.
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
