// Models in public layouts give the logits of the library that wrote them
// (tests/data/models/make_models.py), and files that do not fit are told so.
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <regex>
#include <string>

#include <gtest/gtest.h>

#include "ricci/io/file.h"
#include "ricci/io/npy.h"
#include "ricci/io/weights.h"
#include "ricci/serve.h"
#include "ricci/support/error.h"

#include "test_paths.h"

namespace ricci::public_layouts_test {
namespace {

namespace fs = std::filesystem;

fs::path model_folder(const std::string& name) {
  return fs::path(RICCI_SOURCE_DIR) / "tests/data/models" / name;
}

Array expected(const std::string& model, const std::string& what) {
  for (const auto& [name, tensor] : io::read_npz((model_folder(model) / "expected.npz").string())) {
    if (name == what) return tensor;
  }
  throw std::runtime_error("no " + what);
}

class NnPublicLayouts : public ::testing::TestWithParam<std::string> {};

TEST_P(NnPublicLayouts, GiveTheLogitsOfTheLibrary) {
  const nn::Pretrained p = nn::load_pretrained(model_folder(GetParam()).string());
  EXPECT_EQ(p.kind, GetParam());
  EXPECT_EQ(p.end_tokens.size(), 1U);
  const Array logits =
      std::visit([&](const auto& model) { return model(expected(GetParam(), "tokens")); }, p.model);
  EXPECT_TRUE(allclose(logits, expected(GetParam(), "logits"), 2e-4, 2e-4))
      << max(abs(logits - expected(GetParam(), "logits")));
}

TEST_P(NnPublicLayouts, GenerateWhatTheLibraryDoes) {
  const nn::Pretrained p = nn::load_pretrained(model_folder(GetParam()).string());
  const Tensor tokens = expected(GetParam(), "tokens").tensor();
  const Array greedy = expected(GetParam(), "greedy");
  std::vector<std::vector<std::int32_t>> prompts;
  for (std::size_t r = 0; r < 2; ++r) {
    const std::vector<std::int32_t> all = tokens.elements<std::int32_t>();
    const auto row = all.begin() + static_cast<std::ptrdiff_t>(9 * r);
    prompts.emplace_back(row, row + 9);
  }
  Generator generate = std::visit([](const auto& m) { return Generator(m, {.rows = 2}); }, p.model);
  const auto made = generate(prompts, {.max_tokens = 8, .sampling = {.temperature = 0}});
  for (std::size_t r = 0; r < 2; ++r) {
    const std::vector<std::int64_t> wanted =
        greedy[static_cast<std::int64_t>(r)].to_vector<std::int64_t>();
    EXPECT_EQ(std::vector<std::int64_t>(made[r].tokens.begin(), made[r].tokens.end()), wanted);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, NnPublicLayouts, ::testing::Values("gpt2", "llama", "mamba"),
                         [](const auto& test) { return test.param; });

// A copy of a model whose tensors or configuration are changed.
class NnChangedLayout : public ::testing::Test {
 protected:
  using Tensors = std::map<std::string, Tensor>;
  std::string load_changed(const std::string& model, const std::function<void(Tensors&)>& change,
                           const std::string& from = "", const std::string& to = "") {
    const fs::path folder = fs::path(::testing::TempDir()) / ("ricci_layout_" + model);
    fs::create_directories(folder);
    Tensors all;
    for (auto& [name, t] : io::read_weights((model_folder(model) / "model.safetensors").string())) {
      all.emplace(name, t);
    }
    change(all);
    io::write_weights((folder / "model.safetensors").string(), {all.begin(), all.end()});
    std::ifstream in(model_folder(model) / "config.json");
    std::string config((std::istreambuf_iterator<char>(in)), {});
    if (!from.empty()) config = std::regex_replace(config, std::regex(from), to);
    io::write_file((folder / "config.json").string(), config);
    try {
      loaded_ = nn::load_pretrained(folder.string(), options_);
    } catch (const UserError& e) {
      return e.what();
    }
    return "no error";
  }
  nn::Pretrained loaded_;
  nn::PretrainedOptions options_;
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(NnChangedLayout, NamesWhatIsMissingMisshapenOrLeftOver) {
  const std::string said = load_changed("gpt2", [](Tensors& all) {
    all.erase("transformer.h.1.ln_2.bias");
    all["transformer.wpe.weight"] = Tensor::zeros(f32({31, 16}));
    all["transformer.h.2.ln_1.bias"] = Tensor::zeros(f32({16}));
    all["transformer.ln_f.bias"] = Tensor::zeros(i32({16}));
  });
  EXPECT_TRUE(has(said, "error[file.layout]")) << said;
  EXPECT_TRUE(has(said, "transformer.h.1.ln_2.bias is missing: f32[16]")) << said;
  EXPECT_TRUE(has(said, "transformer.wpe.weight is f32[31, 16], and f32[32, 16] is expected"))
      << said;
  EXPECT_TRUE(has(said, "transformer.ln_f.bias is i32[16]")) << said;
  EXPECT_TRUE(has(said, "transformer.h.2.ln_1.bias")) << said;
  EXPECT_TRUE(has(said, "the model has no place for it")) << said;
}

TEST_F(NnChangedLayout, RefusesWhatItDoesNotKnow) {
  const auto as_is = [](Tensors&) {};
  EXPECT_TRUE(has(load_changed("gpt2", as_is, "gelu_new", "mish"), "activation \"mish\""));
  EXPECT_TRUE(has(load_changed("gpt2", as_is, "\"gpt2\"", "\"bert\""), "known are gpt2, llama"));
  EXPECT_TRUE(
      has(load_changed("gpt2", as_is, "\"n_head\": 4", "\"n_head\": 5"), "does not divide"));
  EXPECT_TRUE(has(load_changed("gpt2", as_is, "\"n_layer\": 2", "\"n_layer\": 2000000000"),
                  "2000000000 layers"));
  EXPECT_TRUE(has(load_changed("gpt2", as_is, "\"n_embd\": 16", "\"n_embd\": -1"), "byte"));
  EXPECT_TRUE(has(load_changed("gpt2", as_is, "\"n_embd\": 16,", ""), "there is no \"n_embd\""));
  EXPECT_TRUE(has(load_changed("gpt2", as_is, "\\{", "[{"), "error[file.json]"));
  EXPECT_TRUE(has(load_changed("llama", as_is, "\"default\"", "\"yarn\""), "by \"yarn\""));
  EXPECT_TRUE(
      has(load_changed("llama", as_is, "\"attention_bias\": false", "\"attention_bias\": true"),
          "\"attention_bias\" is true"));
  EXPECT_TRUE(has(load_changed("mamba", as_is, "\"expand\"", "\"use_bias\": true, \"x\""),
                  "the key \"use_bias\" is there twice"));
}

TEST_F(NnChangedLayout, WidensOrKeepsNarrowFloats) {
  const auto narrow = [](Tensors& all) {
    for (auto& [name, t] : all) t = cast(Array(t), DType::BF16).tensor();
  };
  ASSERT_EQ(load_changed("llama", narrow), "no error");
  const auto wide = std::get<nn::Llama>(loaded_.model);
  EXPECT_EQ(wide.blocks[1].feed.up.w.dtype(), DType::F32);
  options_.dtype.reset();
  ASSERT_EQ(load_changed("llama", narrow), "no error");
  const auto kept = std::get<nn::Llama>(loaded_.model);
  EXPECT_EQ(kept.blocks[1].feed.up.w.dtype(), DType::BF16);
  EXPECT_TRUE(array_equal(cast(kept.head.w, DType::F32), wide.head.w));
  const Array tokens = expected("llama", "tokens");
  EXPECT_TRUE(allclose(wide(tokens), expected("llama", "logits"), 0.05, 0.2));
}

// Names without the prefix, and with what older files have besides.
TEST_F(NnChangedLayout, TakesOlderFiles) {
  ASSERT_EQ(load_changed("gpt2",
                         [](Tensors& all) {
                           Tensors plain;
                           for (auto& [name, t] : all) {
                             plain[name.substr(std::string("transformer.").size())] = t;
                           }
                           plain["h.0.attn.bias"] = Tensor::zeros(f32({1, 1, 32, 32}));
                           plain["lm_head.weight"] = plain["wte.weight"];
                           all = plain;
                         }),
            "no error");
  EXPECT_TRUE(allclose(std::get<nn::Gpt>(loaded_.model)(expected("gpt2", "tokens")),
                       expected("gpt2", "logits"), 2e-4, 2e-4));
}

}  // namespace
}  // namespace ricci::public_layouts_test
