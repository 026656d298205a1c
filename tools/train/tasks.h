// A kind of model with its data: what is trained, evaluated and asked for samples.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string>

#include "ricci/nn.h"
#include "ricci/train/training_run.h"

#include "train/data.h"
#include "train/run_folder.h"
#include "train/writing.h"

namespace ricci::tool {

template <class Model, class Batch>
struct Task {
  using ModelType = Model;
  using BatchType = Batch;

  Model model;
  RunData<Batch> data;
  bool is_text = false;
  Tokenizer tokenizer = {};
  std::int64_t examples = 0;  ///< tokens or images a step learns from
};

template <class Model, class Batch>
[[nodiscard]] Array task_loss(const Model& model, const Batch& batch) {
  return cross_entropy(model(batch.x), batch.y);
}

/// How good a model is on data, in as many batches at most; the last one may be smaller.
template <class Model, class Batch>
[[nodiscard]] std::function<RunEvaluation(const Model&)> evaluation_of(
    const Task<Model, Batch>& task, const RunSettings& settings, std::int64_t most) {
  const auto measured = jit([](const Model& model, const Batch& batch) {
    const Array logits = model(batch.x);
    return std::pair{cross_entropy(logits, batch.y), mean(argmax(logits) == batch.y)};
  });
  return [measured, data = task.data.test, size = settings.batch, most,
          is_text = task.is_text](const Model& model) {
    const std::int64_t batches = std::min((data.size() + size - 1) / size, most);
    const std::int64_t examples = std::min(data.size(), batches * size);
    double loss = 0;
    double right = 0;
    for (std::int64_t first = 0; first < examples; first += size) {
      const std::int64_t end = std::min(first + size, examples);
      const auto [l, r] = measured(model, data.slice(first, end).all());
      const double share = static_cast<double>(end - first) / static_cast<double>(examples);
      loss += share * l.item();
      right += share * r.item();
    }
    RunEvaluation out{.step = 0, .loss = loss, .examples = examples};
    if (is_text)
      out.metrics.emplace_back("perplexity", std::exp(loss));
    else
      out.metrics.emplace_back("accuracy", right);
    return out;
  };
}

/// What a model makes of data it has not seen, as text.
template <class Model, class Batch>
[[nodiscard]] std::function<std::string(const Model&)> sampling_of(const Task<Model, Batch>& task,
                                                                   const RunSettings& settings) {
  if (task.is_text) {
    if constexpr (std::same_as<Batch, TokenBatch>) {
      const WritingOptions how{.prompt = settings.prompt,
                               .length = settings.sample_length,
                               .sampling = {.temperature = settings.temperature,
                                            .seed = static_cast<std::uint64_t>(settings.seed)}};
      return [writer = Writer(task.tokenizer), how](const Model& model) mutable {
        return writer.write(model, how);
      };
    }
  }
  if (task.data.test.empty()) return {};
  constexpr std::int64_t Shown = 20;
  return [said = jit([](const Model& model, const Array& x) { return argmax(model(x)); }),
          batch = task.data.test.take(Shown).all()](const Model& model) {
    return answers(said(model, batch.x).template to_vector<std::int64_t>(),
                   batch.y.template to_vector<std::int64_t>());
  };
}

/// Calls `f` with the language model of a run's kind, made of the seed.
template <class F>
void with_language_kind(const RunSettings& s, std::int64_t vocabulary, F&& f) {
  nn::seed(static_cast<std::uint64_t>(s.seed));
  if (s.kind == "gpt") {
    return f(nn::Gpt({.vocabulary = vocabulary,
                      .context = s.context,
                      .width = s.width,
                      .heads = s.heads,
                      .layers = s.layers,
                      .dropout = s.dropout}));
  }
  f(nn::MambaLm({.vocabulary = vocabulary,
                 .width = s.width,
                 .layers = s.layers,
                 .state = s.state,
                 .dropout = s.dropout}));
}

/// The same with the weights of a checkpoint, and the run's tokenizer.
template <class F>
void with_language_model(const RunSettings& s, const RunFolder& folder,
                         const std::string& checkpoint, F&& f) {
  const Tokenizer tokenizer = Tokenizer::load(folder.file("tokenizer.json"));
  with_language_kind(s, tokenizer.size(), [&](const auto& model) {
    f(folder.load_model(checkpoint, model).first, tokenizer);
  });
}

/// The same for kinds that look at images.
template <class F>
void with_image_kind(const RunSettings& s, const nn::ImageOptions& image, F&& f) {
  nn::seed(static_cast<std::uint64_t>(s.seed));
  if (s.kind == "cnn") {
    return f(nn::Cnn({.image = image, .width = s.width, .stages = s.layers, .dropout = s.dropout}));
  }
  if (s.kind == "vit") {
    return f(nn::Vit({.image = image,
                      .patch = s.patch,
                      .width = s.width,
                      .heads = s.heads,
                      .layers = s.layers,
                      .dropout = s.dropout}));
  }
  f(nn::Mlp({.inputs = image.channels * image.height * image.width,
             .classes = image.classes,
             .width = s.width,
             .layers = s.layers,
             .dropout = s.dropout}));
}

/// Calls `f` with the task of a run's kind; a run that is there has a tokenizer of its own.
template <class F>
void with_task(const RunSettings& s, const std::optional<RunFolder>& folder, bool only_test,
               F&& f) {
  if (is_language(s.kind)) {
    const std::string own = folder ? folder->file("tokenizer.json") : std::string();
    const TextData data = text_data(s, own, only_test);
    return with_language_kind(s, data.tokenizer.size(), [&](const auto& model) {
      f(Task<std::decay_t<decltype(model)>, TokenBatch>{model, data, true, data.tokenizer,
                                                        s.batch * s.context});
    });
  }
  const ImageData data = image_data(s, only_test);
  with_image_kind(s, data.image, [&](const auto& model) {
    f(Task<std::decay_t<decltype(model)>, ImageBatch>{model, data, false, {}, s.batch});
  });
}

}  // namespace ricci::tool
