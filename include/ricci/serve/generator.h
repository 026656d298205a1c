// Generation: sequences that go on token by token, several at a time, with a past that is kept
// where it lies.
//
//   Generator generate(gpt, {.rows = 4});
//   Generated g = generate(prompt, {.max_tokens = 50, .sampling = {.temperature = 0.8}});
//
// or, for those who serve, sequences that come and go while others are under way:
//
//   SequenceId id = generate.add(prompt, options);
//   for (const TokenEvent& e : generate.step()) …      // one token at most for every sequence
//   generate.remove(id);
//
// A model is nn::Gpt, nn::Llama, nn::MambaModel, or any tree of arrays with their `make_past`,
// `advance`, `context` and `vocabulary`. Programs are compiled when they are needed first, one for
// every number of rows, of new places and of places in the past, each rounded up, so that there are
// few; from then on a token costs a run, and no memory is taken. What a sequence becomes does not
// depend on those beside it, but for the rounding of sums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ricci/array/create.h"
#include "ricci/array/function.h"
#include "ricci/array/tree.h"
#include "ricci/nn/transformer.h"
#include "ricci/runtime/device.h"
#include "ricci/serve/sampling.h"
#include "ricci/support/stop.h"

namespace ricci {

struct GenerateOptions {
  std::int64_t max_tokens = 128;
  Sampling sampling = {};
  std::vector<std::int32_t> stop_tokens = {};  ///< those that end a sequence; they are not given
};

enum class FinishReason : std::uint8_t {
  None,     ///< it goes on
  Stop,     ///< at a stop token
  Length,   ///< it has as many tokens as were asked for
  Context,  ///< the model has no more places
  Failed    ///< no token could be drawn: see TokenEvent::failure
};
[[nodiscard]] std::string_view name(FinishReason reason);

struct Generated {
  std::vector<std::int32_t> tokens;
  FinishReason finished = FinishReason::None;
};

using SequenceId = std::uint64_t;

/// What a step did for one sequence.
struct TokenEvent {
  SequenceId sequence = 0;
  std::optional<std::int32_t> token = {};  ///< none where a stop token was drawn
  FinishReason finished = FinishReason::None;
  std::string failure = {};
};

struct GeneratorOptions {
  std::size_t rows = 1;               ///< sequences at a time, at most
  std::int64_t max_places = 0;        ///< of a sequence, prompt and all; 0: the model's context
  std::int64_t prompt_chunk = 128;    ///< places of a prompt that a step takes, at most
  std::optional<Device> device = {};  ///< absent: where arrays are computed
};

namespace detail {

/// All a generator asks of a model, whatever its type.
struct StepModel {
  std::vector<Tensor> params;
  /// Of the past's leaves, for so many rows and places.
  std::function<std::vector<Type>(std::int64_t rows, std::int64_t places)> past;
  /// Params, tokens, first places, counts and the past to logits and what the past goes on with.
  std::function<Graph(std::int64_t rows, std::int64_t next, std::int64_t places)> trace;
  std::int64_t context = 0;
  std::int64_t vocabulary = 0;
};

template <class Model>
[[nodiscard]] StepModel step_model(const Model& model) {
  const auto kept = std::make_shared<const Model>(model);
  StepModel out;
  for (const Array& leaf : leaves(model)) out.params.push_back(leaf.tensor());
  out.context = model.context();
  out.vocabulary = model.vocabulary();
  out.past = [kept](std::int64_t rows, std::int64_t places) {
    std::vector<Type> types;
    for (const Array& leaf : leaves(kept->make_past(rows, places))) types.push_back(leaf.type());
    return types;
  };
  out.trace = [kept](std::int64_t rows, std::int64_t next, std::int64_t places) {
    const auto step = [](const Model& m, const Array& tokens, const nn::StepPlaces& at,
                         const typename Model::Past& past) { return m.advance(tokens, at, past); };
    const CreateOptions whole{.dtype = DType::I32};
    return ricci::trace(step, *kept, zeros({rows, next}, whole),
                        nn::StepPlaces{zeros({rows}, whole), zeros({rows}, whole)},
                        kept->make_past(rows, places));
  };
  return out;
}

}  // namespace detail

/// Keeps the sequences of one model. One thread at a time.
class Generator {
 public:
  template <class Model>
  explicit Generator(const Model& model, GeneratorOptions options = {})
      : Generator(detail::step_model(model), std::move(options)) {}
  Generator(detail::StepModel model, GeneratorOptions options);
  Generator(Generator&&) noexcept;
  Generator& operator=(Generator&&) noexcept;
  ~Generator();

  /// Goes on with a prompt until it is finished. `on_token` sees every token, and ends it early by
  /// giving false. UserError as `add` and `step` give it.
  [[nodiscard]] Generated operator()(std::span<const std::int32_t> prompt,
                                     const GenerateOptions& options = {},
                                     const std::function<bool(std::int32_t)>& on_token = {});
  /// The same for several prompts of any lengths, as many at a time as there are rows. The
  /// first has the seed, the next one the number above it, and so on.
  [[nodiscard]] std::vector<Generated> operator()(
      std::span<const std::vector<std::int32_t>> prompts, const GenerateOptions& options = {});

  /// Whether another sequence can be added now.
  [[nodiscard]] bool has_room() const;
  /// UserError when it could never be: no token, one that the model has not, or more than it has
  /// places for; UserError(busy) when there is no room now.
  SequenceId add(std::span<const std::int32_t> prompt, const GenerateOptions& options = {});
  /// Takes a piece of every prompt that is not read yet, and draws a token for every other
  /// sequence. Finished ones are gone afterwards. UserError(stopped) leaves all as they were.
  std::vector<TokenEvent> step(const StopToken& stop = {});
  /// Goes on with a model of the same structure, as one that was trained further, without compiling
  /// anew. UserError when it is of another, or while there are sequences.
  template <class Model>
  void set_model(const Model& model) {
    std::vector<Tensor> params;
    for (const Array& leaf : leaves(model)) params.push_back(leaf.tensor());
    set_params(std::move(params));
  }
  void set_params(std::vector<Tensor> params);
  /// Forgets a sequence, if it is there.
  void remove(SequenceId sequence);
  [[nodiscard]] std::size_t active() const;

  /// Compiles what steps with up to so many places will need first.
  void prepare(std::int64_t places = 1);
  /// How many programs there are.
  [[nodiscard]] std::size_t compiled() const;
  /// Of the past that is kept now.
  [[nodiscard]] std::int64_t past_bytes() const;
  /// Of all params.
  [[nodiscard]] std::int64_t param_bytes() const;
  [[nodiscard]] std::int64_t vocabulary() const;
  /// Prompt and continuation together, at most; 0: as many as one likes.
  [[nodiscard]] std::int64_t max_places() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ricci
