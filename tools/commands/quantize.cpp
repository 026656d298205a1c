// ricci quantize: a graph in floats as one that multiplies codes, calibrated on samples.
#include <cstdio>
#include <memory>

#include <fmt/format.h>

#include "ricci/io/npy.h"
#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"
#include "ricci/model/quantization.h"
#include "ricci/op/leaf.h"
#include "ricci/support/text.h"

#include "commands/commands.h"
#include "commands/device_option.h"
#include "feeds.h"
#include "source.h"

namespace ricci::tool {
namespace {

struct QuantizeOptions {
  Source source;
  std::string params;
  std::vector<std::string> batches;
  FeedOptions feeds;  ///< what batches share: sizes, limits, a seed
  std::string method = "minmax";
  double percentile = RangeOptions{}.percentile;
  bool symmetric = false;
  bool per_tensor = false;
  bool activation_products = false;
  std::vector<std::string> only;
  std::vector<std::string> skip;
  std::string scheme;
  std::int64_t training_bits = 0;
  std::int64_t training_activations = TrainingBits{}.activations;
  std::string weights;
  std::string device;
  bool report = false;
  std::string out = "-";
};

RangeMethod method_named(const std::string& name) {
  constexpr auto Names = enumerator_names(RangeMethod{});
  for (std::size_t i = 0; i < Names.size(); ++i) {
    if (Names[i] == name) return static_cast<RangeMethod>(i);
  }
  throw InternalError("the parser lets no other method pass");
}

quant::Scheme scheme_named(const std::string& name) {
  if (const auto scheme = quant::scheme_from_name(name)) return *scheme;
  std::vector<std::string> names = {"int8_block_32", "int8_block_asym_32", "int4_block_32",
                                    "nvfp4_block"};
  for (const quant::FormatInfo& f : quant::all_formats()) names.emplace_back(f.name);
  const auto close = nearest(name, names);
  throw UserError(ErrorCode::Name, fmt::format("no weights are stored as '{}'", name),
                  close ? fmt::format("did you mean '{}'?", *close)
                        : fmt::format("the schemes are: {}", join(names, ", ")));
}

QuantizationPolicy policy_of(const QuantizeOptions& options) {
  QuantizationPolicy policy;
  policy.activations.method = method_named(options.method);
  policy.activations.percentile = options.percentile;
  policy.activations.symmetric = options.symmetric;
  policy.per_channel = !options.per_tensor;
  policy.activation_products = options.activation_products;
  policy.store_codes = !options.weights.empty();
  if (!options.only.empty()) policy.rules.push_back({"*", false});
  for (const std::string& pattern : options.only) policy.rules.push_back({pattern, true});
  for (const std::string& pattern : options.skip) policy.rules.push_back({pattern, false});
  return policy;
}

struct Samples {
  Feeds params;
  std::vector<Feeds> batches;
};

// Every batch has a file of its own; params come with --params, or with the first batch.
Samples read_samples(const Graph& graph, const QuantizeOptions& options) {
  Samples out;
  const auto read = [&](const std::string& batch) {
    FeedOptions feeds = options.feeds;
    if (!options.params.empty()) feeds.archives.push_back(options.params);
    if (!batch.empty()) feeds.archives.push_back(batch);
    return make_values(graph, feeds).feeds;
  };
  for (const std::string& batch : options.batches) out.batches.push_back(read(batch));
  Feeds rest;
  if (options.batches.empty()) rest = read("");
  const Feeds& first = out.batches.empty() ? rest : out.batches.front();
  for (const NodeId id : graph.params()) {
    const std::string& name = *graph.node(id).leaf_name();
    const auto given = first.find(name);
    if (given == first.end()) {
      throw UserError(ErrorCode::Name, fmt::format("the param '{}' has no value", name),
                      "give the trained params with --params FILE.npz");
    }
    out.params.insert(*given);
  }
  if (options.batches.empty() && options.feeds.random_seed) out.batches.push_back(rest);
  return out;
}

Quantized quantized(const Graph& graph, const Samples& samples, const QuantizeOptions& options) {
  std::optional<Device> device;
  if (options.device != "reference") device = Device::named(options.device);
  const QuantizationPolicy policy = policy_of(options);
  const SymbolBindings symbols = given_sizes(graph, options.feeds.sizes);
  if (!options.scheme.empty()) {
    return quantize_weights(graph, samples.params, scheme_named(options.scheme), policy,
                            samples.batches, device, symbols);
  }
  if (samples.batches.empty()) {
    throw UserError(ErrorCode::Attr, "there are no inputs to calibrate on",
                    "give some with --inputs FILE.npz, once for every batch; --weights-only "
                    "needs none");
  }
  return quantize_to_int8(graph, samples.params, samples.batches, policy, device, symbols);
}

void quantize(const QuantizeOptions& options) {
  require_device(options.device);
  if (!options.scheme.empty()) (void)scheme_named(options.scheme);
  if (!options.scheme.empty() && options.weights.empty()) {
    throw UserError(ErrorCode::Attr, "weights in few bits need a file",
                    "name one with --weights FILE.npz");
  }
  const Graph graph = options.source.load();
  verify(graph);
  if (options.training_bits != 0) {
    const TrainingBits bits{options.training_bits, options.training_activations};
    return write_text(options.out, print(quantize_for_training(graph, bits, policy_of(options))));
  }
  const Samples samples = read_samples(graph, options);
  const Quantized result = quantized(graph, samples, options);
  verify(result.graph);
  if (!options.weights.empty()) {
    io::NamedTensors arrays;
    for (const NodeId id : result.graph.params()) {
      const std::string& name = *result.graph.node(id).leaf_name();
      const auto value = result.params.find(name);
      if (value != result.params.end()) arrays.emplace_back(name, value->second);
    }
    io::write_npz(options.weights, arrays);
  }
  write_text(options.out, print(result.graph));
  if (!options.report) return;
  // Where the program goes to standard output, the report goes beside it.
  std::fputs(result.report().c_str(), options.out == "-" ? stderr : stdout);
}

void declare_ranges(CLI::App& command, QuantizeOptions& options) {
  command
      .add_option("--method", options.method,
                  "how ranges are chosen: minmax, percentile, mse or entropy (default minmax)")
      ->type_name("NAME")
      ->check(CLI::IsMember({"minmax", "percentile", "mse", "entropy"}).description(""));
  command
      .add_option("--percentile", options.percentile,
                  "of the numbers that --method percentile keeps (default 99.99)")
      ->type_name("P")
      ->check(CLI::Range(50.0, 100.0).description(""));
  command.add_flag("--symmetric", options.symmetric, "activations without a zero point");
  command.add_flag("--per-tensor", options.per_tensor, "one scale a weight, not one a column");
  command.add_flag("--activation-products", options.activation_products,
                   "products of two activations too");
  command
      .add_option("--only", options.only,
                  "only products with such an op, name, label or param (repeatable; * and ?)")
      ->type_name("PATTERN")
      ->allow_extra_args(false);
  command.add_option("--skip", options.skip, "no product with such a one (repeatable; * and ?)")
      ->type_name("PATTERN")
      ->allow_extra_args(false);
}

// The program to train instead: it needs no values.
void declare_training(CLI::App& command, QuantizeOptions& options) {
  auto* bits = command.add_option("--for-training", options.training_bits,
                                  "round weights to so many bits (2 to 16), for training, instead "
                                  "of making codes");
  bits->type_name("BITS")->check(CLI::Range(2, 16).description(""));
  command
      .add_option("--activation-bits", options.training_activations,
                  "the same for what they are multiplied with; 0: not (default 8)")
      ->type_name("BITS")
      ->check(CLI::Range(0, 16).description(""))
      ->needs(bits);
  for (const char* other : {"--weights-only", "--weights", "--report", "--inputs", "--params"}) {
    bits->excludes(command.get_option(other));
  }
}

}  // namespace

void add_quantize(CLI::App& app, Action& action) {
  auto options = std::make_shared<QuantizeOptions>();
  CLI::App* command = app.add_subcommand("quantize", "makes a program multiply codes of few bits");
  options->source.declare_one(*command);
  command->add_option("--params", options->params, "values of the params")->type_name("FILE.npz");
  command->add_option("--inputs", options->batches, "a batch to calibrate on (repeatable)")
      ->type_name("FILE.npz")
      ->allow_extra_args(false);
  options->feeds.declare_rest(*command);
  declare_ranges(*command, *options);
  command
      ->add_option("--weights-only", options->scheme,
                   "weights as q4_k, int8_block_32, …; activations stay floats")
      ->type_name("SCHEME");
  command
      ->add_option("--weights", options->weights,
                   "write the new params here; without it int8 programs keep theirs")
      ->type_name("FILE.npz");
  declare_device(*command, options->device);
  command->add_flag("--report", options->report, "say what each layer lost");
  command->add_option("-o,--out", options->out, "where to write (default: standard output)")
      ->type_name("FILE");
  declare_training(*command, *options);
  command->footer(
      "The report has, for every product: what it became, signal to error of its weight and of "
      "its\n"
      "result, the largest error of the result, and the share of its input outside of the codes.");
  command->callback([options, &action] { action = [options] { quantize(*options); }; });
}

}  // namespace ricci::tool
