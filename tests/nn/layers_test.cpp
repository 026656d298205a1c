// Layers and their gradients against PyTorch's; tests/nn/make_reference.py writes the values.
#include <algorithm>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include "ricci/nn.h"

#include "test_paths.h"

namespace ricci::layers_test {
namespace {

using Values = std::map<std::string, Array>;

Values values_of(const std::string& name) {
  return load_npz(RICCI_SOURCE_DIR "/tests/nn/values/" + name + ".npz");
}

void expect_close(const Array& ours, const Array& theirs, const std::string& what) {
  ASSERT_EQ(ours.shape(), theirs.shape()) << what;
  const std::vector<double> a = ours.to_vector();
  const std::vector<double> b = theirs.to_vector();
  double largest = 0;
  for (const double v : b) largest = std::max(largest, std::abs(v));
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_NEAR(a[i], b[i], 2e-5 * (1 + largest)) << what << " at " << i;
  }
}

// The layer with the params of the file; every one of them must be there.
template <class Layer>
Layer with_values(const Layer& layer, const Values& values) {
  std::vector<Array> arrays;
  const std::vector<std::string> names = leaf_names(layer);
  const std::vector<Array> before = leaves(layer);
  for (std::size_t i = 0; i < names.size(); ++i) {
    arrays.push_back(values.at("param." + names[i]));
    EXPECT_EQ(arrays[i].type(), before[i].type()) << names[i];
  }
  const auto given = std::ranges::count_if(
      values, [](const auto& entry) { return entry.first.starts_with("param."); });
  EXPECT_EQ(static_cast<std::size_t>(given), names.size());
  return with_leaves(layer, arrays);
}

template <class Layer>
struct LayerAndInput {
  Layer layer;
  Array x;
};

// Result and gradients of `forward` are those of the file.
template <class Layer, class Forward>
void expect_reference(const std::string& name, const Layer& layer, Forward forward) {
  SCOPED_TRACE(name);
  const Values values = values_of(name);
  using Both = LayerAndInput<Layer>;
  const Both at{with_values(layer, values), values.at("x")};
  const auto f = [&](const Both& b) {
    const Array y = forward(b.layer, b.x);
    return std::pair{sum(y * values.at("ct")), y};
  };
  const auto [result, gradient] = jit(value_and_grad(f))(at);
  expect_close(result.second, values.at("y"), "y");
  if (values.contains("dx")) expect_close(gradient.x, values.at("dx"), "dx");
  const std::vector<std::string> names = leaf_names(at.layer);
  const std::vector<Array> found = leaves(gradient.layer);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto it = values.find("grad." + names[i]);
    if (it != values.end()) expect_close(found[i], it->second, "gradient of " + names[i]);
  }
}
template <class Layer>
void expect_reference(const std::string& name, const Layer& layer) {
  expect_reference(name, layer, [](const Layer& l, const Array& x) { return l(x); });
}

TEST(NnLayers, LinearAndEmbedding) {
  expect_reference("linear", nn::Linear{4, 5});
  expect_reference("embedding", nn::Embedding{5, 3});
  EXPECT_EQ(leaf_names(nn::Linear{2, 3, {.bias = false}}), (std::vector<std::string>{"w"}));
  const nn::Embedding table{5, 3};
  EXPECT_TRUE(allclose(table.attend(ones({2, 3})), matmul(ones({2, 3}), transpose(table.w))));
}

TEST(NnLayers, Convolutions) {
  expect_reference("conv1d", nn::Conv1d{4, 6, 3, {.stride = 2, .padding = 1, .groups = 2}});
  expect_reference(
      "conv2d",
      nn::Conv2d{4, 6, {3, 2}, {.stride = {2, 1}, .padding = {2, 1}, .dilation = 2, .groups = 2}});
  expect_reference("conv3d",
                   nn::Conv3d{2, 3, {2, 3, 2}, {.stride = {1, 2, 1}, .padding = {0, 1, 1}}});
  expect_reference(
      "conv_transpose2d",
      nn::ConvTranspose2d{
          4, 6, {3, 2}, {.stride = 2, .padding = {1, 0}, .output_padding = {1, 0}, .groups = 2}});
  expect_reference(
      "conv_transpose1d",
      nn::ConvTranspose1d{4, 6, 4, {.stride = 3, .padding = 1, .output_padding = 2, .groups = 2}});
  expect_reference("conv_transpose3d", nn::ConvTranspose3d{2,
                                                           3,
                                                           {2, 1, 3},
                                                           {.stride = {1, 2, 2},
                                                            .padding = {0, 0, 1},
                                                            .output_padding = {0, 1, 0},
                                                            .dilation = {2, 1, 1}}});
}

TEST(NnLayers, Norms) {
  expect_reference("layer_norm", nn::LayerNorm{6, {.eps = 1e-4}});
  expect_reference("rms_norm", nn::RMSNorm{6, {.eps = 1e-4}});
  expect_reference("group_norm", nn::GroupNorm{3, 6, {.eps = 1e-4}});
  expect_reference("batch_norm_inference", nn::BatchNorm{3, {.eps = 1e-4, .momentum = 0.3}});
}

TEST(NnLayers, BatchNormInTrainingIsPyTorchs) {
  const nn::BatchNorm layer{3, {.eps = 1e-4, .momentum = 0.3}};
  expect_reference("batch_norm_training", layer, [](const nn::BatchNorm& l, const Array& x) {
    const nn::TrainingScope training(Key(0));
    return l(x);
  });
  const Values values = values_of("batch_norm_training");
  const nn::BatchNorm at = with_values(layer, values);
  nn::TrainingScope training(Key(0));
  (void)at(values.at("x"));
  const nn::BatchNorm after = training.updated(at);
  expect_close(after.mean.value, values.at("after.mean"), "running mean");
  expect_close(after.var.value, values.at("after.var"), "running variance");
}

TEST(NnLayers, Attention) {
  expect_reference("attention", nn::MultiHeadAttention{8, 2});
  expect_reference("attention_grouped",
                   nn::MultiHeadAttention{8, 4, {.kv_heads = 2, .causal = true, .rope = 10000.0}});
  const Array memory = values_of("attention_cross").at("memory");
  expect_reference("attention_cross", nn::MultiHeadAttention{8, 2, {.memory_width = 6}},
                   [&](const auto& l, const Array& x) { return l(x, memory); });
}

TEST(NnLayers, FeedForwardParts) {
  expect_reference("feed_forward", nn::FeedForward{4, 6});
  expect_reference("swiglu", nn::SwiGLU{4, 6});
}

TEST(NnLayers, Blocks) {
  expect_reference("encoder_block", nn::EncoderBlock{8, 2, {.hidden = 12, .dropout = 0.5}});
  const Array memory = values_of("decoder_block").at("memory");
  expect_reference("decoder_block", nn::DecoderBlock{8, 2, {.hidden = 12, .memory_width = 8}},
                   [&](const auto& l, const Array& x) { return l(x, memory); });
  expect_reference("gpt",
                   nn::Gpt{{.vocabulary = 7, .context = 6, .width = 8, .heads = 2, .layers = 2}});
}

TEST(NnLayers, Recurrent) {
  expect_reference("lstm", nn::LSTM{3, 4},
                   [](const nn::LSTM& l, const Array& x) { return l(x).y; });
  expect_reference("gru", nn::GRU{3, 4}, [](const nn::GRU& l, const Array& x) { return l(x).y; });
}

TEST(NnLayers, RecurrentLayersGoOnFromAState) {
  nn::seed(1);
  const nn::LSTM lstm{3, 4};
  const nn::GRU gru{3, 4};
  const Array x = normal(Key(2), {2, 6, 3});
  const Array head = x(slice(), slice(0, 4));
  const Array tail = x(slice(), slice(4, 6));
  const auto whole = lstm(x);
  expect_close(lstm(tail, lstm(head).last).y, whole.y(slice(), slice(4, 6)), "LSTM");
  expect_close(gru(tail, gru(head).last).y, gru(x).y(slice(), slice(4, 6)), "GRU");
}

TEST(NnLayers, Sequences) {
  expect_reference("mamba", nn::MambaBlock{4, {.state = 3, .window = 3, .rank = 2}});
  expect_reference("gated_delta_net",
                   nn::GatedDeltaNet{4, 2, {.key_width = 3, .value_width = 4, .window = 3}});
}

TEST(NnLayers, MixtureOfExperts) {
  expect_reference("mixture_of_experts", nn::MixtureOfExperts{4, 6, 5});
  const Values values = values_of("mixture_of_experts");
  const auto layer = with_values(nn::MixtureOfExperts{4, 6, 5}, values);
  expect_close(layer.route(values.at("x")).balance, values.at("balance"), "balance");
  // A router that always picks the same expert is as far from balance as can be.
  nn::MixtureOfExperts lazy{2, 3, 4, {.picks = 1}};
  lazy.router.w = array({{50.0, 0.0, 0.0, 0.0}, {50.0, 0.0, 0.0, 0.0}});
  EXPECT_NEAR(lazy.route(ones({5, 2})).balance.item(), 4, 1e-5);
}

using NoParams = std::tuple<>;

TEST(NnLayers, Losses) {
  const auto expect_loss = [](const std::string& name, auto loss) {
    const Values values = values_of(name);
    expect_reference(name, NoParams{},
                     [&](const NoParams&, const Array& x) { return loss(x, values); });
  };
  expect_loss("loss_cross_entropy", [](const Array& x, const Values& v) {
    return nn::cross_entropy(x, v.at("target"), {.label_smoothing = 0.1, .ignored = -1});
  });
  expect_loss("loss_focal",
              [](const Array& x, const Values& v) { return nn::focal_loss(x, v.at("target")); });
  expect_loss("loss_triplet", [](const Array& x, const Values& v) {
    return nn::triplet_loss(x, v.at("positive"), v.at("negative"), 2);
  });
  expect_loss("loss_hinge",
              [](const Array& x, const Values& v) { return nn::hinge_loss(x, v.at("target")); });
  expect_loss("loss_gaussian", [](const Array& x, const Values& v) {
    return nn::gaussian_nll_loss(x, v.at("target"), v.at("var"));
  });
  expect_loss("loss_poisson", [](const Array& x, const Values& v) {
    return nn::poisson_nll_loss(x, v.at("target"));
  });
  expect_loss("loss_contrastive", [](const Array& x, const Values& v) {
    return nn::contrastive_loss(x, v.at("pair"), 0.5);
  });
}

nn::Linear adapted(const nn::AdapterKind& kind) { return nn::adapt(nn::Linear{4, 5}, "*", kind); }

TEST(NnLayers, Adapters) {
  const auto keep = [](const nn::Linear& l, const Array& x) { return l(x); };
  expect_reference("lora", adapted(nn::LoRA{.rank = 2, .alpha = 3}), keep);
  expect_reference("dora", adapted(nn::DoRA{.rank = 2, .alpha = 3}), keep);
  expect_reference("ia3", adapted(nn::IA3{}), keep);
}

// In pieces of any length, rows of different lengths side by side, padding behind them.
TEST(NnLayers, GatedDeltaNetsGoOnFromAState) {
  nn::seed(3);
  for (const std::int64_t window : {1, 3}) {
    const nn::GatedDeltaNet net(4, 2, {.key_width = 3, .value_width = 4, .window = window});
    const Array x = normal(Key(7), {2, 9, 4}).eval();
    const Array whole = net(x).eval();
    nn::GatedDeltaState state = net.make_state(2);
    std::vector<std::int32_t> seen = {0, 0};
    const std::vector<std::vector<std::int32_t>> pieces = {{3, 1}, {1, 0}, {4, 4}, {1, 4}};
    for (const std::vector<std::int32_t>& counts : pieces) {
      std::vector<Array> rows;
      for (std::size_t r = 0; r < 2; ++r) {
        const Array row = narrow(x(static_cast<std::int64_t>(r)), 0, seen[r], counts[r]);
        rows.push_back(concat({row, full({4 - counts[r], 4}, 100.0F)}, 0));
      }
      const auto [y, next] = net.advance(stack(rows), state, {array(seen), array(counts)});
      for (std::size_t r = 0; r < 2; ++r) {
        const auto row = static_cast<std::int64_t>(r);
        EXPECT_TRUE(allclose(narrow(y(row), 0, 0, counts[r]),
                             narrow(whole(row), 0, seen[r], counts[r]), 1e-5, 1e-5))
            << window << " row " << r << " from " << seen[r];
        seen[r] += counts[r];
      }
      state = next;
    }
    EXPECT_EQ(seen, (std::vector<std::int32_t>{9, 9}));
  }
}

}  // namespace
}  // namespace ricci::layers_test
