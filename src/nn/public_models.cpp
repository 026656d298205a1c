// The names and shapes of three kinds of model, as the transformers library has them.
#include <fmt/format.h>

#include "ricci/array/ops.h"
#include "ricci/support/text.h"

#include "nn/public_layout.h"

namespace ricci::nn {
namespace {

Activation activation_named(const std::string& name) {
  if (name == "gelu_new" || name == "gelu_pytorch_tanh") return Activation::GeluTanh;
  if (name == "gelu") return Activation::Gelu;
  if (name == "relu") return Activation::Relu;
  if (name == "silu" || name == "swish") return Activation::Silu;
  layout_fault(fmt::format("the configuration has the activation {}, which is not known",
                           quote(shortened(name))),
               "known are gelu_new, gelu_pytorch_tanh, gelu, relu and silu");
}

void require_silu(const LayoutConfig& config) {
  if (activation_named(config.text("hidden_act", "silu")) == Activation::Silu) return;
  layout_fault("the configuration has another activation than silu");
}

void fill(LayerNorm& norm, LayoutTensors& tensors, const std::string& name, std::int64_t width) {
  norm.w = tensors.take(name + ".weight", {width});
  norm.b = tensors.take(name + ".bias", {width});
}

// [in, out] in the file too.
void fill_conv1d(Linear& map, LayoutTensors& tensors, const std::string& name, std::int64_t in,
                 std::int64_t out) {
  map.w = tensors.take(name + ".weight", {in, out});
  map.b = tensors.take(name + ".bias", {out});
}

void fill_joined(MultiHeadAttention& a, LayoutTensors& tensors, const std::string& name,
                 std::int64_t width) {
  const Array w = tensors.take(name + ".weight", {width, 3 * width});
  const Array b = tensors.take(name + ".bias", {3 * width});
  std::int64_t at = 0;
  for (Linear* map : {&a.q, &a.k, &a.v}) {
    map->w = narrow(w, 1, at, width).eval();
    map->b = narrow(b, 0, at, width).eval();
    at += width;
  }
}

// A rotary base, where nothing else is asked of positions.
double rope_base(const LayoutConfig& config) {
  const io::JsonValue* scaling = config.find("rope_scaling");
  const io::JsonValue* all = config.find("rope_parameters");
  double base = config.number("rope_theta", 10000);
  for (const io::JsonValue* part : {scaling, all}) {
    if (part == nullptr) continue;
    const LayoutConfig inner(*part);
    base = inner.number("rope_theta", base);
    const std::string kind = inner.text("rope_type", inner.text("type", "default"));
    if (kind == "default") continue;
    layout_fault(fmt::format("the configuration scales rotary positions by {}, which is not known",
                             quote(shortened(kind))),
                 "plain rotary positions are");
  }
  return base;
}

void require_divides(std::int64_t part, std::int64_t whole, std::string_view what) {
  if (part > 0 && whole % part == 0) return;
  layout_fault(
      fmt::format("the configuration has {} of {}, which does not divide {}", what, part, whole));
}

}  // namespace

Gpt gpt2_from(const LayoutConfig& config, LayoutTensors& tensors) {
  for (const char* key : {"scale_attn_weights"}) config.require(key, true);
  for (const char* key : {"scale_attn_by_inverse_layer_idx", "add_cross_attention"}) {
    config.require(key, false);
  }
  const std::int64_t width = config.size("n_embd");
  const GptOptions o{.vocabulary = config.size("vocab_size"),
                     .context = config.size("n_positions"),
                     .width = width,
                     .heads = config.size("n_head"),
                     .layers = config.size("n_layer"),
                     .hidden = config.size("n_inner", 4 * width),
                     .activation = activation_named(config.text("activation_function", "gelu_new")),
                     .eps = config.number("layer_norm_epsilon", 1e-5)};
  require_divides(o.heads, width, "a number of heads");
  tensors.use_prefix("transformer.");
  tensors.decide_dtype("wte.weight");
  tensors.require_layers(o.layers);
  Gpt out(o);
  out.tokens.w = tensors.take("wte.weight", {o.vocabulary, width});
  out.places->w = tensors.take("wpe.weight", {o.context, width});
  for (std::size_t i = 0; i < out.blocks.size(); ++i) {
    const std::string at = fmt::format("h.{}.", i);
    DecoderBlock& block = out.blocks[i];
    fill(block.attention_norm, tensors, at + "ln_1", width);
    fill_joined(block.attention, tensors, at + "attn.c_attn", width);
    fill_conv1d(block.attention.out, tensors, at + "attn.c_proj", width, width);
    fill(block.feed_norm, tensors, at + "ln_2", width);
    fill_conv1d(block.feed.in, tensors, at + "mlp.c_fc", width, o.hidden);
    fill_conv1d(block.feed.out, tensors, at + "mlp.c_proj", o.hidden, width);
  }
  fill(out.norm, tensors, "ln_f", width);
  // Masks that older files have, and the table again.
  for (const char* ending : {".attn.bias", ".attn.masked_bias", "lm_head.weight"}) {
    tensors.leave(ending);
  }
  return out;
}

Llama llama_from(const LayoutConfig& config, LayoutTensors& tensors) {
  for (const char* key : {"attention_bias", "mlp_bias"}) config.require(key, false);
  require_silu(config);
  const std::int64_t width = config.size("hidden_size");
  const std::int64_t heads = config.size("num_attention_heads");
  const LlamaOptions o{.vocabulary = config.size("vocab_size"),
                       .context = config.size("max_position_embeddings", 2048),
                       .width = width,
                       .hidden = config.size("intermediate_size"),
                       .heads = heads,
                       .kv_heads = config.size("num_key_value_heads", heads),
                       .layers = config.size("num_hidden_layers"),
                       .rope = rope_base(config),
                       .eps = config.number("rms_norm_eps", 1e-6),
                       .tied = config.flag("tie_word_embeddings", false)};
  require_divides(heads, width, "a number of heads");
  require_divides(o.kv_heads, heads, "a number of heads of keys and values");
  if (config.size("head_dim", width / heads) != width / heads) {
    layout_fault("the configuration has heads of another width than the model's over their number");
  }
  tensors.use_prefix("model.");
  tensors.decide_dtype("embed_tokens.weight");
  tensors.require_layers(o.layers);
  Llama out(o);
  const std::int64_t kv = width / heads * o.kv_heads;
  out.tokens.w = tensors.take("embed_tokens.weight", {o.vocabulary, width});
  for (std::size_t i = 0; i < out.blocks.size(); ++i) {
    const std::string at = fmt::format("layers.{}.", i);
    LlamaBlock& block = out.blocks[i];
    const auto map = [&](Linear& to, const char* name, std::int64_t in, std::int64_t n) {
      to.w = tensors.take_transposed(at + name + ".weight", in, n);
    };
    block.attention_norm.w = tensors.take(at + "input_layernorm.weight", {width});
    map(block.attention.q, "self_attn.q_proj", width, width);
    map(block.attention.k, "self_attn.k_proj", width, kv);
    map(block.attention.v, "self_attn.v_proj", width, kv);
    map(block.attention.out, "self_attn.o_proj", width, width);
    block.feed_norm.w = tensors.take(at + "post_attention_layernorm.weight", {width});
    map(block.feed.gate, "mlp.gate_proj", width, o.hidden);
    map(block.feed.up, "mlp.up_proj", width, o.hidden);
    map(block.feed.down, "mlp.down_proj", o.hidden, width);
  }
  out.norm.w = tensors.take("norm.weight", {width});
  if (!o.tied) out.head.w = tensors.take_transposed("lm_head.weight", width, o.vocabulary);
  for (const char* ending : {".rotary_emb.inv_freq", "lm_head.weight"}) tensors.leave(ending);
  return out;
}

MambaModel mamba_from(const LayoutConfig& config, LayoutTensors& tensors) {
  config.require("use_bias", false);
  config.require("use_conv_bias", true);
  require_silu(config);
  const std::int64_t width = config.size("hidden_size");
  const std::int64_t inner = config.size("intermediate_size", 2 * width);
  require_divides(width, inner, "a width");
  // A rank is a number, or "auto".
  const io::JsonValue* given = config.find("time_step_rank");
  const bool automatic = given != nullptr && given->kind() == io::JsonValue::Kind::String;
  const std::int64_t rank = automatic ? (width + 15) / 16 : config.size("time_step_rank");
  const MambaModelOptions o{.vocabulary = config.size("vocab_size"),
                            .width = width,
                            .layers = config.size("num_hidden_layers"),
                            .block = {.expand = inner / width,
                                      .state = config.size("state_size", 16),
                                      .window = config.size("conv_kernel", 4),
                                      .rank = rank},
                            .eps = config.number("layer_norm_epsilon", 1e-5),
                            .tied = config.flag("tie_word_embeddings", true)};
  const std::int64_t state = o.block.state;
  tensors.use_prefix("backbone.");
  tensors.decide_dtype("embeddings.weight");
  tensors.require_layers(o.layers);
  MambaModel out(o);
  out.tokens.w = tensors.take("embeddings.weight", {o.vocabulary, width});
  for (std::size_t i = 0; i < out.layers.size(); ++i) {
    const std::string at = fmt::format("layers.{}.", i);
    MambaBlock& m = out.layers[i].mixer;
    out.layers[i].norm.w = tensors.take(at + "norm.weight", {width});
    const auto name = [&](const char* part) { return at + "mixer." + part; };
    m.in.w = tensors.take_transposed(name("in_proj.weight"), width, 2 * inner);
    m.conv.w = tensors.take(name("conv1d.weight"), {inner, 1, o.block.window});
    m.conv.b = tensors.take(name("conv1d.bias"), {inner});
    m.select.w = tensors.take_transposed(name("x_proj.weight"), inner, rank + 2 * state);
    m.step.w = tensors.take_transposed(name("dt_proj.weight"), rank, inner);
    m.step.b = tensors.take(name("dt_proj.bias"), {inner});
    m.a_log = tensors.take(name("A_log"), {inner, state});
    m.d = tensors.take(name("D"), {inner});
    m.out.w = tensors.take_transposed(name("out_proj.weight"), inner, width);
  }
  out.norm.w = tensors.take("norm_f.weight", {width});
  if (!o.tied) out.head.w = tensors.take_transposed("lm_head.weight", width, o.vocabulary);
  tensors.leave("lm_head.weight");
  return out;
}

}  // namespace ricci::nn
