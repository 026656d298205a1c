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
#include <numbers>

#include "ricci/graph.h"
#include "ricci/io/file.h"
#include "ricci/model.h"
#include "ricci/ricci.h"

#include "model.h"
#include "options.h"
#include "progress.h"
#include "report.h"
#include "sampling.h"
#include "text.h"

using namespace ricci;  // NOLINT: an example reads better without prefixes

namespace {

constexpr std::int64_t BatchSize = 16;

// A short warm-up, then down to a tenth along half a wave.
Tensor learning_rate(std::int64_t step, double done) {
  constexpr double Highest = 3e-3;
  constexpr double WarmUpSteps = 50;
  const double rising = std::min(1.0, static_cast<double>(step) / WarmUpSteps);
  const double falling = 0.55 + 0.45 * std::cos(std::numbers::pi * done);
  return Tensor::splat(f32(), Highest * rising * falling);
}

// Loss, gradients and the optimiser as one program, which updates the params where they lie.
TrainingStep make_training(Session& session, const gpt::Sizes& sizes, std::uint64_t seed) {
  const Graph loss = gpt::make_loss(sizes, BatchSize);
  TrainingStep training = compile_training(
      session, GraphModule::from_graph(loss),
      {.optimizer = AdamW{.beta2 = 0.99}, .clip_norm = 1.0, .learning_rate_input = true});
  for (const auto& [name, value] : gpt::initial_params(sizes, seed)) {
    training.set_param(name, value);
  }
  return training;
}

Feeds feeds_of(const gpt::Batch& batch, const Tensor& rate) {
  return {{"ids", batch.ids}, {"labels", batch.labels}, {"learning_rate", rate}};
}

struct Losses {
  double first = 0;
  double last = 0;
};

Losses train(TrainingStep& training, gpt::Batches& batches, const gpt::Options& options) {
  gpt::Progress progress;
  Losses losses;
  double done = 0;
  for (std::int64_t step = 1; done < 1; ++step) {
    const Tensor rate = learning_rate(step, done);
    losses.last = training.step(feeds_of(batches.next(), rate)).loss.item();
    if (step == 1) losses.first = losses.last;
    done = options.steps ? static_cast<double>(step) / static_cast<double>(*options.steps)
                         : std::min(1.0, progress.seconds() / options.seconds);
    progress.update(step, done, losses.last);
  }
  progress.finish();
  return losses;
}

// The loss on text the model was not trained on: the mean of a few batches.
double unseen_loss(Session& session, const gpt::Sizes& sizes, const TrainingStep& training,
                   gpt::Batches& batches) {
  constexpr int Count = 8;
  CompiledGraph loss = session.compile(gpt::make_loss(sizes, BatchSize));
  for (const std::string& name : training.params()) loss.set_param(name, training.param(name));
  double total = 0;
  for (int i = 0; i < Count; ++i) {
    const gpt::Batch batch = batches.next();
    total += loss.run({{"ids", batch.ids}, {"labels", batch.labels}})[0].item();
  }
  return total / Count;
}

void show_sample(const char* when, gpt::Writer& writer, const TrainingStep& training,
                 const gpt::Options& options) {
  constexpr std::size_t Length = 300;
  constexpr double Temperature = 0.7;
  std::mt19937_64 random(options.seed);
  for (const std::string& name : training.params()) writer.set_param(name, training.param(name));
  const std::string text = writer.write(options.prompt, Length, Temperature, random);
  std::printf("\n%s, the model writes:\n----\n%s\n----\n\n", when, text.c_str());
}

// Where the time of a few more steps goes. At a rate of zero they change no param.
void write_trace(TrainingStep& training, gpt::Batches& batches, const std::string& path) {
  constexpr int Steps = 3;
  const Tensor rate = Tensor::splat(f32(), 0.0);
  Profile profile;
  for (int i = 0; i < Steps; ++i) {
    training.step(feeds_of(batches.next(), rate), {.profile = &profile});
  }
  io::write_file(path, profile.chrome_trace());
  std::printf("%sThe trace of %d steps is in %s: open it with ui.perfetto.dev\n",
              gpt::describe(profile).c_str(), Steps, path.c_str());
}

int run(const gpt::Options& options) {
  // The last tenth of the text is kept back.
  const std::string text = gpt::read_text(options.text);
  const gpt::Vocabulary vocabulary(text);
  const std::size_t cut = text.size() * 9 / 10;
  const gpt::Sizes sizes = {.vocabulary = vocabulary.size()};
  gpt::Batches seen(vocabulary.encode(text.substr(0, cut)), BatchSize, sizes.context, options.seed);
  gpt::Batches unseen(vocabulary.encode(text.substr(cut)), BatchSize, sizes.context, options.seed);
  std::printf("%s has %zu characters, %lld different ones.\n", options.text.c_str(), text.size(),
              static_cast<long long>(sizes.vocabulary));

  Session session(Device::cpu(options.threads));
  const auto start = std::chrono::steady_clock::now();
  TrainingStep training = make_training(session, sizes, options.seed);
  const std::chrono::duration<double> compiling = std::chrono::steady_clock::now() - start;
  std::printf("A GPT of %lld layers for %d threads; its training step was compiled in %.2f s:\n%s",
              static_cast<long long>(sizes.layers), session.device().threads(), compiling.count(),
              gpt::describe(training).c_str());

  gpt::Writer writer(session, sizes, vocabulary);
  show_sample("Before training", writer, training, options);
  const Losses losses = train(training, seen, options);
  std::printf("The loss was %.3f at first and is %.3f now; %.3f on text it was not trained on.\n",
              losses.first, losses.last, unseen_loss(session, sizes, training, unseen));
  show_sample("After training", writer, training, options);
  if (!options.trace.empty()) write_trace(training, seen, options.trace);

  const bool learned = options.steps == 1 || losses.last < losses.first;
  if (!learned) std::fprintf(stderr, "the loss did not fall\n");
  return learned ? 0 : 1;
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
