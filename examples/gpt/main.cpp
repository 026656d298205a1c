// A character-level GPT, trained from scratch on this machine in about a minute: the model is a
// graph, its gradients and the optimiser are added to it, and all of it is compiled to one program.
//
//   example_gpt                       # a minute on examples/gpt/corpus.txt
//   example_gpt --text my_notes.txt --seconds 600
//
// docs/tutorials/gpt.md walks through it.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>

#include "ricci/ricci.h"

#include "model.h"
#include "options.h"
#include "progress.h"
#include "report.h"
#include "sampling.h"
#include "text.h"
#include "training.h"

using namespace ricci;  // NOLINT: an example reads better without prefixes

namespace {

constexpr std::int64_t BatchSize = 16;
constexpr std::size_t SampleLength = 240;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// A short warm-up, then down to a tenth along a half wave.
double learning_rate(std::int64_t step, double done) {
  constexpr double Highest = 3e-3;
  constexpr double WarmUp = 50;
  const double rising = std::min(1.0, static_cast<double>(step) / WarmUp);
  return Highest * rising * (0.1 + 0.9 * 0.5 * (1 + std::cos(M_PI * done)));
}

struct Losses {
  double first = 0;
  double last = 0;
};

Losses train(gpt::Training& training, gpt::Batches& batches, const gpt::Options& options) {
  gpt::Progress progress;
  Losses losses;
  double done = 0;
  for (std::int64_t step = 1; done < 1; ++step) {
    const double loss = training.step(batches.next(), learning_rate(step, done));
    done = options.steps ? static_cast<double>(step) / static_cast<double>(*options.steps)
                         : std::min(1.0, progress.seconds() / options.seconds);
    if (step == 1) losses.first = loss;
    losses.last = loss;
    progress.update(step, done, loss);
  }
  progress.finish();
  return losses;
}

// The loss on text the model has not seen: the mean of a few batches.
double unseen_loss(const Graph& loss, const Feeds& params, gpt::Batches batches,
                   const Device& device) {
  constexpr int Count = 8;
  CompiledGraph compiled = compile(loss, device);
  for (const auto& [name, value] : params) compiled.set_param(name, value);
  double total = 0;
  for (int i = 0; i < Count; ++i) {
    const gpt::Batch batch = batches.next();
    total += compiled.run({{"ids", batch.ids}, {"labels", batch.labels}})[0].item();
  }
  return total / Count;
}

void show_sample(const char* when, gpt::Writer& writer, const Feeds& params,
                 const gpt::Options& options) {
  std::mt19937_64 random(options.seed);
  writer.set_params(params);
  const std::string text = writer.write(options.prompt, SampleLength, 0.7, random);
  std::printf("\n%s:\n----\n%s\n----\n\n", when, text.c_str());
}

int run(const gpt::Options& options) {
  // The last tenth of the text is kept back.
  const std::string text = gpt::read_text(options.text);
  const gpt::Vocabulary vocabulary(text);
  const std::size_t cut = text.size() * 9 / 10;
  const gpt::Sizes sizes = {.vocabulary = vocabulary.size()};
  gpt::Batches seen(vocabulary.encode(text.substr(0, cut)), BatchSize, sizes.context, options.seed);
  gpt::Batches unseen(vocabulary.encode(text.substr(cut)), BatchSize, sizes.context, options.seed);

  const Device device = Device::cpu(options.threads);
  const Graph loss = gpt::make_loss(sizes, BatchSize);
  const Feeds start = gpt::initial_params(sizes, options.seed);
  std::int64_t weights = 0;
  for (const auto& [name, value] : start) weights += value.numel();
  std::printf(
      "%s: %zu characters, %lld different; a GPT of %lld layers, %lld weights, %d threads\n",
      options.text.c_str(), text.size(), static_cast<long long>(sizes.vocabulary),
      static_cast<long long>(sizes.layers), static_cast<long long>(weights), device.threads());

  const auto compile_start = std::chrono::steady_clock::now();
  gpt::Training training(loss, start, device);
  std::printf("\nThe training step, compiled in %.2f s:\n%s", seconds_since(compile_start),
              gpt::describe(training.compiled()).c_str());

  gpt::Writer writer(sizes, vocabulary, device);
  show_sample("Before training", writer, start, options);

  const Losses losses = train(training, seen, options);
  const Feeds trained = training.params();
  std::printf("loss %.3f at first, %.3f now; %.3f on text it has not seen\n", losses.first,
              losses.last, unseen_loss(loss, trained, unseen, device));
  show_sample("After training", writer, trained, options);
  return losses.last < losses.first ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const gpt::Options options = gpt::read_options(argc, argv);
  try {
    return run(options);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
