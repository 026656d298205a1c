// A small GPT: a decoder of pre-norm blocks with causal attention and learned positions.
#pragma once

#include <cstdint>

#include "ricci/graph.h"
#include "ricci/model.h"
#include "ricci/ricci.h"

namespace gpt {

struct Sizes {
  std::int64_t vocabulary = 0;
  std::int64_t context = 64;  ///< how many characters the model sees
  std::int64_t width = 128;
  std::int64_t layers = 4;
  std::int64_t heads = 4;
};

/// From `ids`, i32[batch, context], to what may come after each of them: f32[batch, context,
/// vocabulary], logarithms of probabilities up to a constant.
[[nodiscard]] ricci::Graph make_model(const Sizes& sizes, std::int64_t batch);

/// The same with `labels`, i32[batch, context], and one number: the mean cross entropy, in nats per
/// character. It is log(vocabulary) for a model that knows nothing.
[[nodiscard]] ricci::Graph make_loss(const Sizes& sizes, std::int64_t batch);

/// Values for all params to start from; both graphs have the same.
[[nodiscard]] ricci::Feeds initial_params(const Sizes& sizes, std::uint64_t seed);

}  // namespace gpt
