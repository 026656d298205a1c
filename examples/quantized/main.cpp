// A small network at 8, 4 and 2 bits: quantised after training, and trained for it. Then the same
// network as a program that multiplies integers.
//
//   example_quantized                 # half a minute
//   example_quantized --check         # fewer steps; fails where the numbers are not what they
//   should
//                                     # be
//
// docs/QUANTIZATION.md walks through it.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <string_view>

#include "ricci/graph.h"
#include "ricci/model.h"
#include "ricci/ricci.h"

#include "data.h"

using namespace ricci;  // NOLINT: an example reads better without prefixes
using quantized::Batch;
using quantized::Random;

namespace {

constexpr std::int64_t Hidden = 48;
constexpr std::int64_t BatchSize = 64;
constexpr std::int64_t TestSize = 4000;
constexpr int FullPrecision = 0;

struct Plan {
  int steps = 3000;         // of training in f32
  int tuning_steps = 2000;  // of training at few bits
};

// Weights have a learned scale for every column, activations the range they take.
Value weight(Graph& g, const std::string& name, const Type& type, int bits) {
  const Value w = g.param(name, type);
  if (bits == FullPrecision) return w;
  const Value scale = g.param(name + "_scale", f32({type.dims[1]}));
  return fake_quantize_lsq(w, scale, {.bits = bits, .axis = 1, .grad_scale = true});
}
Value activation(Value x, int bits) {
  return bits == FullPrecision ? x : fake_quantize(x, {.bits = bits, .asymmetric = true});
}

Value logits(Graph& g, Value x, int bits) {
  const Value w1 = weight(g, "w1", f32({quantized::Pixels, Hidden}), bits);
  const Value w2 = weight(g, "w2", f32({Hidden, quantized::Classes}), bits);
  // Images have more to say than two bits can.
  const Value seen = activation(x, bits == FullPrecision ? bits : std::max(bits, 4));
  const Value h = relu(matmul(seen, w1).named("strokes") + g.param("b1", f32({Hidden})));
  return matmul(activation(h, bits), w2).named("digits") + g.param("b2", f32({quantized::Classes}));
}

Graph make_network(std::int64_t count, int bits) {
  Graph g("network");
  g.set_outputs({logits(g, g.input("images", f32({count, quantized::Pixels})), bits)});
  return g;
}

Graph make_loss(int bits) {
  Graph g("loss");
  const Value x = g.input("images", f32({BatchSize, quantized::Pixels}));
  const Value y = g.input("labels", i32({BatchSize}));
  g.set_outputs({mean(softmax_cross_entropy_with_logits(logits(g, x, bits), y))});
  return g;
}

Feeds initial_params() {
  Random random(1);
  const auto normal = [&](std::int64_t in, std::int64_t out) {
    std::vector<float> w(static_cast<std::size_t>(in * out));
    for (float& v : w) v = static_cast<float>(random.normal() / std::sqrt(static_cast<double>(in)));
    return Tensor::of<float>({in, out}, w);
  };
  return {{"w1", normal(quantized::Pixels, Hidden)},
          {"w2", normal(Hidden, quantized::Classes)},
          {"b1", Tensor::splat(f32({Hidden}), 0.0)},
          {"b2", Tensor::splat(f32({quantized::Classes}), 0.0)}};
}

// For every column the scale with the least squared error: what can be done without training.
Tensor best_scales(const Tensor& weight, int bits) {
  const double codes = std::pow(2, bits - 1) - 1;
  const std::vector<double> w = weight.numbers<double>();
  const auto columns = static_cast<std::size_t>(weight.dims()[1]);
  std::vector<float> scales;
  for (std::size_t c = 0; c < columns; ++c) {
    double largest = 0;
    for (std::size_t i = c; i < w.size(); i += columns) largest = std::max(largest, std::abs(w[i]));
    double best = largest / codes;
    double least = HUGE_VAL;
    for (int share = 10; share <= 100; ++share) {
      const double s = largest / codes * share / 100;
      double error = 0;
      for (std::size_t i = c; i < w.size(); i += columns) {
        const double code = std::clamp(std::nearbyint(w[i] / s), -codes, codes);
        error += std::pow(w[i] - code * s, 2);
      }
      if (error < least) {
        least = error;
        best = s;
      }
    }
    scales.push_back(static_cast<float>(best));
  }
  return Tensor::of<float>({weight.dims()[1]}, scales);
}

Feeds with_scales(Feeds params, int bits) {
  for (const char* name : {"w1", "w2"}) {
    params[std::string(name) + "_scale"] = best_scales(params.at(name), bits);
  }
  return params;
}

Feeds train(Session& session, const Feeds& from, int bits, int steps) {
  TrainingStep training = compile_training(session, GraphModule::from_graph(make_loss(bits)),
                                           {.optimizer = Adam{}, .learning_rate_input = true});
  for (const auto& [name, value] : from) training.set_param(name, value);
  Random random(2);
  for (int i = 0; i < steps; ++i) {
    const Batch batch = quantized::make_batch(random, BatchSize);
    const double rate = 4e-3 * (1 - static_cast<double>(i) / steps);
    training.step({{"images", batch.images},
                   {"labels", batch.labels},
                   {"learning_rate", Tensor::splat(f32(), rate)}});
  }
  Feeds out;
  for (const auto& [name, value] : from) out.emplace(name, training.param(name));
  return out;
}

// Percent of the images whose largest number is that of their digit.
double accuracy(Session& session, const Graph& network, const Feeds& params, const Batch& test) {
  Feeds feeds = params;
  feeds.emplace("images", test.images);
  const std::vector<double> y = session.compile(network).run(feeds)[0].numbers<double>();
  const auto labels = test.labels.numbers<std::int64_t>();
  int right = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto first = y.begin() + static_cast<std::ptrdiff_t>(i) * quantized::Classes;
    right += std::max_element(first, first + quantized::Classes) - first == labels[i] ? 1 : 0;
  }
  return 100.0 * right / static_cast<double>(labels.size());
}

// The network in int8, calibrated on a few batches; how well it does.
double show_int8(Session& session, const Feeds& params, const Batch& test) {
  Random random(3);
  std::vector<Feeds> batches;
  for (int i = 0; i < 4; ++i) {
    batches.push_back({{"images", quantized::make_batch(random, TestSize).images}});
  }
  const Quantized q = quantize_to_int8(make_network(TestSize, FullPrecision), params, batches);
  std::printf("\nThe network in int8, layer by layer:\n%s", q.report().c_str());
  return accuracy(session, q.graph, q.params, test);
}

struct Row {
  int bits;
  double after;    // quantised after training
  double trained;  // trained for it
};

int run(const Plan& plan, bool check) {
  Session session;
  Random random(4);
  const Batch test = quantized::make_batch(random, TestSize);
  const Feeds params = train(session, initial_params(), FullPrecision, plan.steps);
  const double full = accuracy(session, make_network(TestSize, FullPrecision), params, test);
  std::vector<Row> rows;
  for (const int bits : {8, 4, 2}) {
    const Graph network = make_network(TestSize, bits);
    const Feeds start = with_scales(params, bits);
    rows.push_back({bits, accuracy(session, network, start, test), 0});
    const Feeds tuned = train(session, start, bits, plan.tuning_steps);
    rows.back().trained = accuracy(session, network, tuned, test);
  }
  const double int8 = show_int8(session, params, test);
  std::printf("\n%-22s %14s %14s\n", "Accuracy", "after training", "in training");
  std::printf("%-22s %13.1f%%\n", "f32", full);
  std::printf("%-22s %13.1f%%\n", "int8, as integers", int8);
  for (const Row& r : rows) {
    const std::string name = std::to_string(r.bits) + " bits, as floats";
    std::printf("%-22s %13.1f%% %13.1f%%\n", name.c_str(), r.after, r.trained);
  }
  if (!check) return 0;
  const bool good = full > 90 && int8 > full - 1 && rows[0].after > full - 1 &&
                    rows[0].trained > full - 1 && rows[2].trained > rows[2].after + 2;
  if (!good) std::puts("These are not the numbers there should be.");
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const bool check = argc > 1 && std::string_view(argv[1]) == "--check";
  try {
    return run(check ? Plan{1500, 500} : Plan{}, check);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
