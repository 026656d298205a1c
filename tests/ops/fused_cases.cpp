#include <cmath>

#include "ops/cases.h"

namespace ricci::testing {
namespace {

// Small numbers keep the blocks' many steps within one tolerance.
In small(Dims dims) { return T(std::move(dims)).between(-0.7, 0.7); }

const std::vector<bool> Both = {true, true};

// What both residual norms are tried on and refuse.
template <class O>
std::vector<CaseOf<O>> residual_cases() {
  const In x = small({2, 3, 5});
  const In v = small({5});
  return {
      {.name = "without_bias", .in = {x, x, v, v}, .op = {}},
      {.name = "with_bias", .in = {x, x, v, v, v}, .op = {.has_bias = true, .eps = 0.1}},
      {.name = "sum_too", .in = {x, x, v, v}, .op = {}, .wanted = Both},
      {.name = "biased_sum_too", .in = {x, x, v, v, v}, .op = {.has_bias = true}, .wanted = Both},
      {.name = "sum_only", .in = {x, x, v, v}, .op = {}, .wanted = {false, true}},
      {.name = "vector", .in = {v, v, v, v}, .op = {}, .wanted = Both},
      {.name = "rows_longer_than_a_vector",
       .in = {small({2, 67}), small({2, 67}), small({67}), small({67})},
       .op = {}},
      {.name = "no_rows", .in = {T({0, 5}), T({0, 5}), v, v}, .op = {}, .wanted = Both},
      {.name = "symbolic", .in = {T({Symbol, 5}), T({Symbol, 5}), v, v}, .op = {}},
      {.name = "bias_missing", .in = {x, x, v, v}, .op = {.has_bias = true}, .rejects = "c1"},
      {.name = "bias_not_announced", .in = {x, x, v, v, v}, .op = {}, .rejects = "c1"},
      {.name = "ints", .in = {x, x, v, v}, .op = {}, .dtypes = dtypes::ints, .rejects = "c2"},
      {.name = "residual_broadcast", .in = {x, T({1, 3, 5}), v, v}, .op = {}, .rejects = "c3"},
      {.name = "scalars", .in = {T({}), T({}), v, v}, .op = {}, .rejects = "c3"},
      {.name = "beta_size", .in = {x, x, v, T({3})}, .op = {}, .rejects = "c4"},
      {.name = "bias_size", .in = {x, x, T({3}), v, v}, .op = {.has_bias = true}, .rejects = "c4"},
      {.name = "eps_negative", .in = {x, x, v, v}, .op = {.eps = -1.0}, .rejects = "c5"},
  };
}

}  // namespace

Cases cases(const op::FusedMatmulBiasAct*) {
  return cases_of<op::FusedMatmulBiasAct>({
      {.name = "by_hand",
       .in = {T({1, 2}).with({1, 2}), T({2, 2}).with({1, 2, 3, -4}), T({2}).with({0.5, 1})},
       .op = {.activation = UnaryKind::Relu},
       .out = {{7.5, 0}}},
      {.name = "no_activation",
       .in = {T({1, 2}).with({1, 2}), T({2, 2}).with({1, 2, 3, -4}), T({2}).with({0.5, 1})},
       .op = {},
       .out = {{7.5, -5}}},
      {.name = "gelu",
       .in = {small({3, 5}), small({5, 7}), small({7})},
       .op = {.activation = UnaryKind::Gelu}},
      {.name = "batched",
       .in = {small({2, 1, 3, 4}), small({3, 4, 2}), small({2})},
       .op = {.activation = UnaryKind::Tanh}},
      {.name = "inner_size_zero",
       .in = {T({2, 0}), T({0, 2}), T({2}).with({1, 2})},
       .op = {},
       .out = {{1, 2, 1, 2}}},
      {.name = "no_rows", .in = {T({0, 3}), T({3, 2}), T({2})}, .op = {}},
      {.name = "long", .in = {small({2, 67}), small({67, 3}), small({3})}, .op = {}},
      {.name = "symbolic",
       .in = {T({Symbol, 3}), T({3, 2}), T({2})},
       .op = {.activation = UnaryKind::Silu}},
      {.name = "ints",
       .in = {T({2, 3}), T({3, 2}), T({2})},
       .op = {},
       .dtypes = dtypes::ints,
       .rejects = "c1"},
      {.name = "inner_sizes", .in = {T({2, 3}), T({2, 3}), T({3})}, .op = {}, .rejects = "c2"},
      {.name = "vector", .in = {T({3}), T({3, 2}), T({2})}, .op = {}, .rejects = "c2"},
      // Adding it would broadcast the product instead. [fusion-guards]
      {.name = "bias_wider", .in = {T({4, 3}), T({3, 1}), T({5})}, .op = {}, .rejects = "c3"},
      {.name = "bias_rank", .in = {T({4, 3}), T({3, 2}), T({1, 2})}, .op = {}, .rejects = "c3"},
      {.name = "activation_gives_bool",
       .in = {T({4, 3}), T({3, 2}), T({2})},
       .op = {.activation = UnaryKind::IsNan},
       .rejects = "c4"},
  });
}

Cases cases(const op::FusedResidualLn*) {
  auto list = residual_cases<op::FusedResidualLn>();
  list.push_back({.name = "by_hand",
                  .in = {T({1, 2}).with({1, 0}), T({1, 2}).with({-2, 1}), T({2}).with({1, 1}),
                         T({2}).with({3, 5}), T({2}).with({1, -1})},
                  .op = {.has_bias = true, .eps = 0.0},
                  .wanted = Both,  // [residual-norm-two-outputs]
                  .out = {{-2, 4}, {0, 2}}});
  return cases_of<op::FusedResidualLn>(list);
}

Cases cases(const op::FusedResidualRmsNorm*) {
  auto list = residual_cases<op::FusedResidualRmsNorm>();
  list.push_back({.name = "by_hand",
                  .in = {T({1, 2}).with({1, 0}), T({1, 2}).with({1, -2}), T({2}).with({3, 5}),
                         T({2}).with({1, -1})},
                  .op = {.eps = 0.0},
                  .wanted = Both,  // [residual-norm-two-outputs]
                  .out = {{4, -6}, {2, -2}}});
  return cases_of<op::FusedResidualRmsNorm>(list);
}

Cases cases(const op::FusedSwiglu*) {
  const double half = 1 / (1 + std::exp(-1.0));  // silu(1)
  return cases_of<op::FusedSwiglu>({
      {.name = "by_hand", .in = {T({4}).with({2, 3, 0, 1})}, .op = {}, .out = {{0, 3 * half}}},
      // [swiglu-gate-first]
      {.name = "by_hand_gate_first",
       .in = {T({4}).with({0, 1, 2, 3})},
       .op = {.gate_first = true},
       .out = {{0, 3 * half}}},
      {.name = "rows", .in = {T({3, 2, 10})}, .op = {}},
      {.name = "rows_gate_first", .in = {T({3, 2, 10})}, .op = {.gate_first = true}},
      {.name = "cast_to_f16", .in = {T({3, 6})}, .op = {.cast_to = DType::F16}},
      {.name = "cast_to_f64", .in = {T({3, 6})}, .op = {.cast_to = DType::F64, .gate_first = true}},
      {.name = "long", .in = {T({2, 134})}, .op = {}},
      {.name = "no_columns", .in = {T({2, 0})}, .op = {}},
      {.name = "no_rows", .in = {T({0, 4})}, .op = {}},
      {.name = "rank_six", .in = {T({1, 2, 1, 3, 2, 2})}, .op = {}},
      {.name = "symbolic", .in = {T({Symbol, Symbol * 2})}, .op = {}},
      {.name = "ints", .in = {T({4})}, .op = {}, .dtypes = dtypes::ints, .rejects = "c1"},
      {.name = "odd", .in = {T({5})}, .op = {}, .rejects = "c2"},
      {.name = "scalar", .in = {T({})}, .op = {}, .rejects = "c2"},
      {.name = "perhaps_odd", .in = {T({Symbol})}, .op = {}, .rejects = "c2"},
      {.name = "cast_to_int", .in = {T({4})}, .op = {.cast_to = DType::I32}, .rejects = "c3"},
  });
}

Cases cases(const op::FusedAttentionBlock*) {
  const In hidden = small({2, 3, 5});
  const In qkv_w = small({5, 24});
  const In out_w = small({8, 5});
  const In qkv_b = small({24});
  const In out_b = small({5});
  const In table = small({4, 2});
  const In padding = Fixed(DType::F32, {2, 3}).with({1, 0, 1, 0, 0, 0});
  const auto causal = MaskKind::causal();
  return cases_of<op::FusedAttentionBlock>({
      {.name = "key_padding",
       .in = {hidden, qkv_w, out_w, padding},
       .op = {.num_heads = 2, .head_dim = 4}},
      {.name = "rank_four_mask",
       .in = {hidden, qkv_w, out_w, Fixed(DType::Bool, {2, 1, 3, 3}), qkv_b, out_b},
       .op = {.num_heads = 2, .head_dim = 4, .has_bias = true}},
      {.name = "bias_and_rope",
       .in = {hidden, qkv_w, out_w, padding, qkv_b, out_b, table, table},
       .op = {.num_heads = 2, .head_dim = 4, .has_bias = true, .has_rope = true}},
      {.name = "rope_without_mask",
       .in = {hidden, qkv_w, out_w, table, table},
       .op = {.num_heads = 2, .head_dim = 4, .has_rope = true, .mask_kind = causal}},
      {.name = "score_bias",
       .in = {hidden, qkv_w, out_w, small({1, 2, 3, 3}), qkv_b, out_b},
       .op = {.num_heads = 2, .head_dim = 4, .has_bias = true, .mask_kind = MaskKind::bias()}},
      {.name = "no_mask",
       .in = {hidden, qkv_w, out_w},
       .op = {.num_heads = 4, .head_dim = 2, .mask_kind = MaskKind::none()}},
      {.name = "window_scale_softcap",
       .in = {hidden, qkv_w, out_w},
       .op = {.num_heads = 2,
              .head_dim = 4,
              .mask_kind = MaskKind::sliding_window(1),
              .score_scale = 0.7,
              .attn_logit_softcap = 1.5}},
      {.name = "rank_two_and_another_width",
       .in = {small({3, 5}), qkv_w, small({8, 7})},
       .op = {.num_heads = 2, .head_dim = 4, .mask_kind = causal}},
      // One step attends to itself alone: out = v·out_w, v the last third of hidden·qkv_w.
      {.name = "by_hand",
       .in = {T({1, 1}).with({2}), T({1, 3}).with({5, 7, 3}), T({1, 2}).with({1, -2}),
              T({3}).with({0, 0, 1}), T({2}).with({0.5, 1})},
       .op = {.num_heads = 1, .head_dim = 1, .has_bias = true, .mask_kind = causal},
       .out = {{7.5, -13}}},
      {.name = "symbolic",
       .in = {T({Symbol, Symbol, 5}), qkv_w, out_w},
       .op = {.num_heads = 2, .head_dim = 4, .mask_kind = causal}},
      {.name = "no_heads",
       .in = {hidden, qkv_w, out_w},
       .op = {.num_heads = 0, .head_dim = 4, .mask_kind = causal},
       .rejects = "c1"},
      {.name = "softcap_negative",
       .in = {hidden, qkv_w, out_w},
       .op = {.num_heads = 2, .head_dim = 4, .mask_kind = causal, .attn_logit_softcap = -1.0},
       .rejects = "c1"},
      {.name = "mask_missing",
       .in = {hidden, qkv_w, out_w},
       .op = {.num_heads = 2, .head_dim = 4},
       .rejects = "c2"},
      {.name = "ints",
       .in = {hidden, qkv_w, out_w},
       .op = {.num_heads = 2, .head_dim = 4, .mask_kind = causal},
       .dtypes = dtypes::ints,
       .rejects = "c3"},
      {.name = "weights_of_another_dtype",
       .in = {Fixed(DType::F32, {2, 3, 5}), Fixed(DType::F64, {5, 24}), Fixed(DType::F32, {8, 5})},
       .op = {.num_heads = 2, .head_dim = 4, .mask_kind = causal},
       .rejects = "c3"},
      {.name = "hidden_rank",
       .in = {T({5}), qkv_w, out_w},
       .op = {.num_heads = 2, .head_dim = 4, .mask_kind = causal},
       .rejects = "c4"},
      {.name = "qkv_w_shape",
       .in = {hidden, T({5, 8}), out_w},
       .op = {.num_heads = 2, .head_dim = 4, .mask_kind = causal},
       .rejects = "c4"},
      {.name = "out_w_shape",
       .in = {hidden, qkv_w, T({5, 8})},
       .op = {.num_heads = 2, .head_dim = 4, .mask_kind = causal},
       .rejects = "c4"},
      {.name = "out_b_shape",
       .in = {hidden, qkv_w, out_w, qkv_b, T({8})},
       .op = {.num_heads = 2, .head_dim = 4, .has_bias = true, .mask_kind = causal},
       .rejects = "c5"},
      {.name = "tables_too_short",
       .in = {hidden, qkv_w, out_w, T({2, 2}), T({2, 2})},
       .op = {.num_heads = 2, .head_dim = 4, .has_rope = true, .mask_kind = causal},
       .rejects = "c6"},
      {.name = "odd_heads_do_not_rotate",
       .in = {hidden, T({5, 18}), T({6, 5}), T({4, 1}), T({4, 1})},
       .op = {.num_heads = 2, .head_dim = 3, .has_rope = true, .mask_kind = causal},
       .rejects = "c6"},
      {.name = "mask_shape",
       .in = {hidden, qkv_w, out_w, Fixed(DType::Bool, {2, 4})},
       .op = {.num_heads = 2, .head_dim = 4},
       .rejects = "c7"},
  });
}

Cases cases(const op::FusedTransformerLayer*) {
  using O = op::FusedTransformerLayer;
  const In hidden = small({2, 3, 4});
  const In qkv_w = small({4, 18});
  const In out_w = small({6, 4});
  const In fc1_w = small({4, 5});
  const In fc2_w = small({5, 4});
  const In v = small({4});
  const In gain = T({4}).between(0.5, 1);
  const In mask = Fixed(DType::F32, {2, 3}).with({1, 0, 1, 0, 0, 0});
  const std::vector<In> plain = {hidden, qkv_w, out_w, gain, fc1_w, fc2_w, gain};
  const std::vector<In> biased = {hidden, qkv_w,      small({18}), out_w, v,    gain, v,
                                  fc1_w,  small({5}), fc2_w,       v,     gain, v};
  const auto with = [](std::vector<In> in, In last) {
    in.push_back(std::move(last));
    return in;
  };
  const auto but = [](std::vector<In> in, std::size_t k, In other) {
    in[k] = std::move(other);
    return in;
  };
  const O base{.num_heads = 2,
               .head_dim = 3,
               .intermediate_size = 5,
               .eps1 = 0.1,
               .eps2 = 0.2,
               .activation = UnaryKind::Gelu,
               .mask_kind = MaskKind::causal()};
  const auto changed = [&](auto change) {
    O op = base;
    change(op);
    return op;
  };
  const O masked = changed([](O& op) { op.mask_kind = MaskKind::custom(); });
  const O with_bias = changed([](O& op) { op.has_bias = true; });
  const O everything = changed([](O& op) {
    op.has_bias = true;
    op.mask_kind = MaskKind::bias();
    op.activation = UnaryKind::Relu;
    op.score_scale = 0.7;
    op.attn_logit_softcap = 1.5;
  });
  return cases_of<O>({
      {.name = "without_bias", .in = with(plain, mask), .op = masked},  // [ftl-arity]
      {.name = "without_bias_or_mask", .in = plain, .op = base},        // [ftl-mask]
      {.name = "with_bias", .in = with(biased, mask), .op = changed([](O& op) {
                                                        op.has_bias = true;
                                                        op.mask_kind = MaskKind::custom();
                                                      })},
      {.name = "rank_four_mask", .in = with(plain, Fixed(DType::Bool, {2, 1, 3, 3})), .op = masked},
      {.name = "with_bias_without_mask", .in = biased, .op = with_bias},
      {.name = "everything", .in = with(biased, small({1, 2, 3, 3})), .op = everything},
      {.name = "window", .in = plain, .op = changed([](O& op) {
                                        op.mask_kind = MaskKind::sliding_window(1);
                                      })},
      {.name = "rank_two", .in = but(biased, 0, small({3, 4})), .op = with_bias},
      {.name = "symbolic", .in = but(plain, 0, T({Symbol, Symbol, 4})), .op = base},
      // Zero matrices leave layer_norm(layer_norm(hidden)): ±1 at two points, then once more.
      {.name = "by_hand",
       .in = {T({1, 2}).with({1, 5}), T({2, 3}).between(0, 0), T({1, 2}).between(0, 0),
              T({2}).with({2, 4}), T({2, 1}).between(0, 0), T({1, 2}).between(0, 0),
              T({2}).with({3, 7})},
       .op = {.num_heads = 1,
              .head_dim = 1,
              .intermediate_size = 1,
              .eps1 = 0.0,
              .eps2 = 0.0,
              .activation = UnaryKind::Relu,
              .mask_kind = MaskKind::none()},
       .out = {{-3, 7}}},
      {.name = "no_heads",
       .in = plain,
       .op = changed([](O& op) { op.num_heads = 0; }),
       .rejects = "c1"},
      {.name = "eps_negative",
       .in = plain,
       .op = changed([](O& op) { op.eps2 = -1.0; }),
       .rejects = "c1"},
      {.name = "biases_missing", .in = plain, .op = with_bias, .rejects = "c2"},
      {.name = "mask_not_announced", .in = with(plain, mask), .op = base, .rejects = "c2"},
      {.name = "ints", .in = plain, .op = base, .dtypes = dtypes::ints, .rejects = "c3"},
      {.name = "qkv_w_shape", .in = but(plain, 1, T({4, 6})), .op = base, .rejects = "c4"},
      {.name = "out_w_shape", .in = but(plain, 2, T({6, 5})), .op = base, .rejects = "c4"},
      {.name = "fc1_w_shape", .in = but(plain, 4, T({4, 6})), .op = base, .rejects = "c4"},
      {.name = "ln1_g_shape", .in = but(plain, 3, T({5})), .op = base, .rejects = "c5"},
      {.name = "fc1_b_shape", .in = but(biased, 8, T({4})), .op = with_bias, .rejects = "c5"},
      {.name = "mask_shape",
       .in = with(plain, Fixed(DType::Bool, {2, 4})),
       .op = masked,
       .rejects = "c6"},
      {.name = "activation_gives_bool",
       .in = plain,
       .op = changed([](O& op) { op.activation = UnaryKind::IsFinite; }),
       .rejects = "c7"},
  });
}

}  // namespace ricci::testing
