// The C++ of pages that have no example of their own, run as it is shown there: the last test looks
// for every paragraph of these pages' code in this file.
#include <array>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <regex>
#include <span>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "ricci/io/object_file.h"
#include "ricci/model.h"
#include "ricci/ricci.h"
#include "ricci/serve.h"

#include "support/every_device.h"
#include "support/sanitized.h"
#include "support/scratch_folder.h"
#include "support/tool.h"
#include "test_paths.h"

namespace ricci::testing {
namespace {

// Pages name files without folders.
class InScratchFolder {
 public:
  InScratchFolder() : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(folder_.path());
  }
  InScratchFolder(const InScratchFolder&) = delete;
  InScratchFolder& operator=(const InScratchFolder&) = delete;
  ~InScratchFolder() { std::filesystem::current_path(before_); }

 private:
  ScratchFolder folder_;
  std::filesystem::path before_;
};

Tensor numbers(const StaticDims& dims) {
  std::int64_t count = 1;
  for (const std::int64_t d : dims) count *= d;
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>(i % 7) / 7.0F - 0.4F);
  }
  return Tensor::of<float>(dims, values);
}

// mean((x·w + b - y)²)
Graph line_graph() {
  Graph g("line");
  const Value x = g.input("x", f32({8, 4}));
  const Value y = g.input("y", f32({8, 2}));
  const Value w = g.param("w", f32({4, 2}));
  const Value b = g.param("b.bias", f32({2}));
  g.set_outputs({mean(square(matmul(x, w) + b - y))});
  return g;
}
Feeds line_feeds() { return {{"x", numbers({8, 4})}, {"y", numbers({8, 2})}}; }

// clang-format off
TEST(RuntimeDocsCode, Gguf) {
  const InScratchFolder here;
  std::vector<float> weights(16 * 256, 0.25F);
  std::vector<std::byte> packed(static_cast<std::size_t>(*io::stored_bytes(io::StoredType::of(quant::Format::Q4K), {16, 256})));
  quant::encode(quant::Format::Q4K, weights, packed);
  io::Gguf first;
  first.metadata = {{"llama.block_count", std::uint32_t{2}}};
  first.tensors = {{.name = "output.weight", .type = io::StoredType::of(quant::Format::Q4K), .dims = {16, 256}, .bytes = packed}};
  io::write_gguf("model.gguf", first);

io::Gguf model = io::read_gguf("model.gguf");                      // mapped, not read
const auto& layers = std::get<std::uint32_t>(*model.find("llama.block_count"));
Tensor w = io::load(*model.find_tensor("output.weight"), model.owner);

io::Gguf out;
out.metadata = {{"general.name", "tiny"}, {"tokens", io::GgufArray{std::vector<std::string>{"a", "b"}}}};
out.tensors = {{.name = "w", .type = io::StoredType::of(quant::Format::Q4K), .dims = {16, 256}, .bytes = packed}};
io::write_gguf("out.gguf", out);

  EXPECT_EQ(layers, 2U);
  EXPECT_EQ(w.type(), f32({16, 256}));
  EXPECT_EQ(io::read_gguf("out.gguf").metadata.size(), 2U);
}

TEST(RuntimeDocsCode, QuantizationAfterTraining) {
  Graph graph("product");
  graph.set_outputs({matmul(graph.input("x", f32({8, 4})), graph.param("w", f32({4, 2})))});
  const Feeds params = {{"w", numbers({4, 2})}};
  const std::vector<Feeds> batches = {{{"x", numbers({8, 4})}}};

Quantized q = quantize_to_int8(graph, params, batches);           // ricci/model/quantization.h
CompiledGraph program = compile(q.graph);
for (const auto& [name, value] : q.params) program.set_param(name, value);
std::puts(q.report().c_str());

  EXPECT_EQ(program.run(batches[0]).size(), 1U);
}

TEST(RuntimeDocsCode, QuantizationInTraining) {
  Graph g("few_bits");
  const std::int64_t in = 4;
  const std::int64_t out = 2;
  const Value x = g.input("x", f32({8, in}));

Value w = g.param("w", f32({in, out}));
Value s = g.param("w_scale", f32({out}));
Value y = matmul(fake_quantize(x, {.bits = 4, .asymmetric = true}),
                 fake_quantize_lsq(w, s, {.bits = 2, .axis = 1, .grad_scale = true}));

  g.set_outputs({mean(square(y))});
  TrainingStep training = compile_training(g);
  training.set_param("w", numbers({4, 2}));
  training.set_param("w_scale", Tensor::of<float>({2}, std::vector<float>{0.3F, 0.3F}));
  EXPECT_TRUE(std::isfinite(training.step({{"x", numbers({8, 4})}}).loss.numbers<double>()[0]));
}

TEST(RuntimeDocsCode, QuantizationInFp8) {
  const Graph model = line_graph();

PrecisionPolicy policy = PrecisionPolicy::auto_mixed_fp8();
policy.rules.push_back({"head*", DType::F32});            // by the name of an op, value or label
policy.fp8->operands = CodeKind::E5m2;                    // another recipe

  TrainingStep training = compile_training(model, {.precision = policy});
  training.set_param("w", numbers({4, 2}));
  training.set_param("b.bias", numbers({2}));
  EXPECT_TRUE(std::isfinite(training.step(line_feeds()).loss.numbers<double>()[0]));
}

TEST(RuntimeDocsCode, Runtime) {
  const Graph model = line_graph();
  {
TrainingStep training = compile_training(
    model, {.precision = PrecisionPolicy::auto_mixed_conservative(), .loss_scaling = LossScaling{}});

    training.set_param("w", numbers({4, 2}));
    training.set_param("b.bias", numbers({2}));
    (void)training.step(line_feeds());
    EXPECT_GT(training.loss_scale(), 1);
  }
  const CompiledGraph f = compile(model);
  Feeds feeds = line_feeds();
  feeds["w"] = numbers({4, 2});
  feeds["b.bias"] = numbers({2});

  {
StopSource stop;
Outputs out = f.run(feeds, {.stop = stop.token()});   // or UserError(stopped)
stop.request_stop();                    // from another thread or a signal handler

    EXPECT_EQ(out.size(), 1U);
    EXPECT_THROW((void)f.run(feeds, {.stop = stop.token()}), UserError);
  }
}

TEST(RuntimeDocsCode, Training) {
  const InScratchFolder here;
  Graph model("two_layers");
  const Value x = model.input("x", f32({8, 4}));
  const Value h = tanh(matmul(x, model.param("w", f32({4, 4}))) + model.param("a.bias", f32({4})));
  model.set_outputs({mean(square(h * model.param("norm.g", f32({4}))))});
  const Feeds feeds = {{"x", numbers({8, 4})}};
  const auto fill = [](TrainingStep& step) {
    step.set_param("w", numbers({4, 4}));
    step.set_param("a.bias", numbers({4}));
    step.set_param("norm.g", numbers({4}));
  };

TrainingStep training = compile_training(
    model, {.optimizer = AdamW{.learning_rate = cosine(2e-3, {.warm_up = 50, .steps = 600})},
            .groups = {{.params = {"*.bias", "norm*"}, .weight_decay = 0}},
            .clip_norm = 1.0,
            .accumulate = 4,
            .ema = 0.999});

fill(training);

const Tensor loss = training.step(feeds).loss;
const Tensor mean_of_w = training.averaged("w");          // to evaluate with
training.save("run.npz");        // restore("run.npz") goes on with the same bits

  EXPECT_TRUE(std::filesystem::exists("run.npz"));
}

bool is_vector(const std::string&, const Type& type) { return type.rank() == 1; }

TEST(RuntimeDocsCode, Groups) {
  const TrainingOptions options = {

.groups = {{.params = {"embed*"}, .frozen = true},
           {.chosen = is_vector, .weight_decay = 0},   // bool is_vector(const std::string&, const Type&)
           {.params = {"head.*"}, .learning_rate_factor = 0.1, .optimizer = AdamW{}}}

  };
  Graph g("groups");
  const Value x = g.input("x", f32({2, 3}));
  const Value h = matmul(x, g.param("embed", f32({3, 3}))) + g.param("b", f32({3}));
  g.set_outputs({mean(square(matmul(h, g.param("head.w", f32({3, 2})))))});
  TrainingStep step = compile_training(g, options);
  step.set_param("embed", numbers({3, 3}));
  step.set_param("b", numbers({3}));
  step.set_param("head.w", numbers({3, 2}));
  (void)step.step({{"x", numbers({2, 3})}});
  EXPECT_TRUE(step.param("embed").identical(numbers({3, 3})));
  EXPECT_FALSE(step.param("b").identical(numbers({3})));
}

TEST(RuntimeDocsCode, Spectra) {
  Graph g("spectra");
  const Value x = g.input("x", f32({2048}));

const Value window = window_of(g, Window::Hann, 512, DType::F32);
const Value z = stft(x, {.frame_len = 512, .hop = 128, .window = window, .centre = true});
const Value loss = sum(psd(z, 512, {.one_sided = true, .sample_rate = 16000}));

  g.set_outputs({loss});
  const Graph slopes = value_and_grad(g, {"x"}).graph;
  EXPECT_EQ(compile(slopes).run({{"x", numbers({2048})}})[1].type(), f32({2048}));
}

TEST(RuntimeDocsCode, Blocks) {
const GraphModule m = GraphModule::define("mlp", [](Graph& g) {
  const Value x = g.input("x", f32({32, 784}));
  return linear(x, g.param("w", f32({784, 10})), g.param("b", f32({10})));
});
const Graph fused = m.lower().module.into_graph();                          // fused_matmul_bias_act
const Graph chain = m.lower(FusionPolicy::Fusable).module.into_graph();     // matmul, add

  const auto uses = [](const Graph& g, std::string_view op) {
    return print(g).find(" " + std::string(op) + " ") != std::string::npos;
  };
  EXPECT_TRUE(uses(fused, "fused_matmul_bias_act"));
  EXPECT_TRUE(uses(chain, "matmul") && uses(chain, "add"));
}

TEST(RuntimeDocsCode, AheadOfTime) {
  if (!has_device("cpu")) GTEST_SKIP() << "objects are made by the back end for CPUs";
  if (SpaceIsTaken) GTEST_SKIP() << "a user's compiler links without the options of a sanitizer";
  const InScratchFolder here;
  const Graph graph = line_graph();
  const GraphModule model = GraphModule::from_graph(line_graph());

ObjectFile net = compile_object(graph, {.name = "net", .target = "avx2"});
io::write_object(net, "net.o");                    // and net.h
io::write_shared_library(net, "libnet.so");        // and libnet.h

ObjectFile step = compile_object(make_training_graph(model, {.optimizer = AdamW{}}), {.name = "step"});

  for (const char* file : {"net.o", "net.h", "libnet.so", "libnet.h"}) {
    EXPECT_TRUE(std::filesystem::exists(file)) << file;
  }
  EXPECT_NE(step.header.find("step_run"), std::string::npos);
}

TEST(RuntimeDocsCode, Serving) {
  const InScratchFolder here;
  std::filesystem::copy(RICCI_SOURCE_DIR "/tests/data/models/gpt2", "gpt2");
  const std::vector<std::int32_t> prompt = {1, 2, 3};

nn::Pretrained p = nn::load_pretrained("gpt2");           // a folder that save_pretrained(…) wrote
const nn::Gpt& gpt = std::get<nn::Gpt>(p.model);
Array logits = gpt(array({{464, 2068, 7586}}));

Generator generate(gpt, {.rows = 4});
Generated g = generate(prompt, {.max_tokens = 50,
                                .sampling = {.temperature = 0.8, .top_k = 40, .seed = 7},
                                .stop_tokens = p.end_tokens});

  EXPECT_EQ(logits.dim(1).value(), 3);
  EXPECT_FALSE(g.tokens.empty());
}

TEST(RuntimeDocsCode, LoopsAndMemory) {
const auto cell = [](const Array& w, const Array& h, const Array& x) { return tanh(matmul(h, w) + x); };
const auto last = [&](const Array& w, const Array& xs) {
  return scan(zeros({4, 8}), xs, [&](Array h, Array x) { return cell(w, h, x); }).last;
};

const auto in_less = [&](const Array& w, const Array& xs) {
  const auto body = [&](Array h, Array x) { return cell(w, h, x); };
  return scan(zeros({4, 8}), xs, body, {.save = Save::recompute()}).last;
};

const auto layer = checkpoint([](Array w, Array x) { return tanh(matmul(tanh(matmul(x, w)), w)); });

  const Array w = 0.3 * normal(Key(1), {8, 8});
  const Array xs = normal(Key(2), {5, 4, 8});
  const Array kept = grad([&](Array v) { return sum(last(v, xs)); })(w);
  EXPECT_TRUE(allclose(grad([&](Array v) { return sum(in_less(v, xs)); })(w), kept));
  EXPECT_EQ(grad([&](Array v) { return sum(layer(v, xs(0))); })(w).shape(), (Dims{8, 8}));
}

TEST(RuntimeDocsCode, Profiling) {
  Graph g("doubled");
  const Value x = g.input("x", f32({64, 64}));
  g.set_outputs({matmul(x, x)});
  const CompiledGraph program = compile(g);
  const Feeds feeds = {{"x", numbers({64, 64})}};

Profile profile;
for (int i = 0; i < 10; ++i) (void)program.run(feeds, {.profile = &profile});
print("{}", profile.to_string());

  EXPECT_EQ(profile.runs(), 10);
}

TEST(RuntimeDocsCode, Complex) {
Graph g("length");
const Value z = g.input("z", {DType::C128, {2}});
g.set_outputs({sum(complex_norm_sq(z))});     // L = Σ |z|²
const Transformed d = value_and_grad(g, {"z"});  // its gradient ∂L/∂z̄ is z itself

  const std::vector<std::complex<double>> numbers = {{1, 2}, {-3, 0.5}};
  const Outputs out = compile(d.graph).run({{"z", Tensor::of<std::complex<double>>({2}, numbers)}});
  EXPECT_EQ(out[0].numbers<double>()[0], 14.25);
  EXPECT_EQ(out[1].numbers<std::complex<double>>(), numbers);
}

TEST(RuntimeDocsCode, WhatScansKeep) {
  Graph g("cells");
  const Value h0 = g.input("h0", f32({2, 3}));
  const Value w = g.input("w", f32({3, 3}));
  const Value xs = g.input("xs", f32({4, 2, 3}));
  const auto cell = [](Graph&, std::span<const Value> in) {
    return std::vector<Value>{tanh(matmul(in[0], in[1]) + in[2])};
  };

const ScanSaving room = {.bytes = 64 << 20};                           // 64 MiB for this scan
const std::vector<Value> last = scan(std::array{h0}, {.bcasts = {w}, .xs = {xs}, .saving = room}, cell);
g.set_outputs({sum(last[0])});
const Transformed slopes = value_and_grad(g, {"w"}, {.scan_saving = {.policy = ScanSave::All}});

  const Outputs out = compile(slopes.graph).run(
      {{"h0", numbers({2, 3})}, {"w", numbers({3, 3})}, {"xs", numbers({4, 2, 3})}});
  EXPECT_EQ(out[1].type(), f32({3, 3}));
}

TEST(RuntimeDocsCode, Lbfgs) {
  Graph graph("bowl");
  const Value w = graph.param("w", f32({3}));
  graph.set_outputs({sum(square(w - graph.input("x", f32({3}))))});
  const Tensor data = numbers({3});
  const Tensor start = Tensor::splat(f32({3}), 1);

LbfgsResult found = minimize(graph, {{"w", start}}, {{"x", data}}, {.gradient_tolerance = 1e-8});

  EXPECT_LT(found.loss, 1e-10);
}
// clang-format on

// Sources are formatted, and pages have their own lines.
std::string on_one_line(const std::string& code) {
  const std::string line = std::regex_replace(code, std::regex("\\s+"), " ");
  const std::size_t begin = line.find_first_not_of(' ');
  return begin == std::string::npos ? ""
                                    : line.substr(begin, line.find_last_not_of(' ') + 1 - begin);
}

TEST(RuntimeDocsCode, PagesShowWhatRunsHere) {
  const std::string here =
      on_one_line(read_text(RICCI_SOURCE_DIR "/tests/runtime/docs_code_test.cpp"));
  for (const char* page :
       {"AHEAD_OF_TIME.md", "BLOCKS.md", "COMPLEX.md", "GGUF.md", "QUANTIZATION.md", "RUNTIME.md",
        "SERVE.md", "TRAINING.md", "howto/loops_and_memory.md", "howto/profiling.md",
        "tutorials/spectra.md"}) {
    const std::string text = read_text(std::string(RICCI_SOURCE_DIR "/docs/") + page);
    std::size_t paragraphs = 0;
    for (std::size_t at = text.find("```cpp\n"); at != std::string::npos;
         at = text.find("```cpp\n", at)) {
      at += 7;
      const std::string code = text.substr(at, text.find("```", at) - at);
      std::istringstream parts(std::regex_replace(code, std::regex("\n\n+"), "\f"));
      for (std::string part; std::getline(parts, part, '\f'); ++paragraphs) {
        EXPECT_NE(here.find(on_one_line(part)), std::string::npos) << page << ": " << part;
      }
    }
    EXPECT_GT(paragraphs, 0U) << page;
  }
}

}  // namespace
}  // namespace ricci::testing
