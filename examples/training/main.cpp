// From the first gradient to a run that can be interrupted: the programs of
// docs/tutorials/training.md and docs/TRAIN.md.
#include <cmath>
#include <filesystem>
#include <iostream>

#include <unistd.h>

#include "ricci/io/file.h"
#include "ricci/nn.h"
#include "ricci/train/report.h"
#include "ricci/train/training_run.h"

using namespace ricci;  // NOLINT: an example reads better without prefixes

// 1. A gradient.
bool gradient() {
  const auto f = [](const Array& x) { return sum(square(x) * x); };
  const Array g = grad(f)(array({1.0, 2.0}));  // 3x²: [3, 12]
  return bool(array_equal(g, array({3.0, 12.0})));
}

// 2. A loop.
struct Line {
  Array w, b;
};

bool fitted_line() {
  const auto loss = [](const Line& l, const Array& x, const Array& y) {
    return mse(l.w * x + l.b, y);
  };
  const auto step = jit([&](const Line& l, const Array& x, const Array& y) {
    const Line g = grad(loss)(l, x, y);
    return Line{l.w - 0.1 * g.w, l.b - 0.1 * g.b};
  });

  const Array x = normal(Key(1), {64});
  Line line{zeros({}), zeros({})};
  for (int i = 0; i < 100; ++i) line = step(line, x, 3 * x + 1);
  return std::abs(line.w.item() - 3) < 1e-2 && std::abs(line.b.item() - 1) < 1e-2;
}

// 3. A network, a batch, an optimiser.
struct Net {
  nn::Linear hidden{2, 32}, out{32, 2};
  Array operator()(const Array& x) const { return out(relu(hidden(x))); }
};
struct Batch {
  Array x, y;
};

Array loss(const Net& net, const Batch& b) { return cross_entropy(net(b.x), b.y); }

// Inside of a circle, or not.
Batch points(const Key& key, std::int64_t n) {
  const Array x = normal(key, {n, 2});
  return {x, cast(sum(square(x), 1) < 1.4, DType::I32)};
}
Batch batch(int i) { return points(Key(1).fold_in(i), 64); }
double accuracy_of(const Net& net, const Batch& b) { return mean(argmax(net(b.x)) == b.y).item(); }

double by_hand() {
  nn::seed(1);
  Trainer trainer(Net{}, loss, AdamW{.learning_rate = 1e-2});
  for (int i = 0; i < 200; ++i) trainer(batch(i));
  const Net net = trainer.model();

  return accuracy_of(net, points(Key(2), 500));
}

// 4. A run.
RunEnd as_a_run(const std::string& folder) {
  const Dataset<Batch> train = points(Key(3), 640);
  const Batch test = points(Key(4), 500);
  nn::seed(1);

  const Schedule rate = cosine(1e-2, {.warm_up = 10, .steps = 100});
  Trainer trainer(Net{}, loss, AdamW{.learning_rate = rate});
  Loader<Batch> batches(train, {.batch = 64, .shuffle = 1, .drop_last = true});
  RunProgress progress;
  TrainingRun run(trainer, batches,
                  {.folder = folder, .steps = 100, .rate = rate, .progress = &progress});
  run.evaluate = [&](const Net& net) {
    return RunEvaluation{.loss = loss(net, test).item(),
                         .metrics = {{"accuracy", accuracy_of(net, test)}}};
  };
  const RunEnd end = run.go();  // goes on where there is a checkpoint

  const ReportRun done = read_report_run(folder);
  io::write_file(folder + "/report.html", run_report({&done, 1}));
  return end;
}

int main() {
  const std::string folder =
      std::filesystem::temp_directory_path() / ("ricci_training_" + std::to_string(::getpid()));
  const bool first = gradient() && fitted_line();
  const double accuracy = by_hand();
  const RunEnd end = as_a_run(folder);
  std::cout << "accuracy " << accuracy << ", the run is " << end.why << "\n";
  std::filesystem::remove_all(folder);
  return first && accuracy > 0.9 && end.step == 100 ? 0 : 1;
}
