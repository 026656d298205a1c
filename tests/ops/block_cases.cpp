#include <cmath>

#include "ops/cases.h"

namespace ricci::testing {
namespace {

template <class Block>
std::vector<CaseOf<Block>> linear_cases() {
  const In x = T({2, 3}).with({1, 2, 3, 4, 5, 6});
  const In w = T({3, 2}).with({1, 0, 0, 1, 1, 1});
  const In b = T({2}).with({-5, 1});
  return {
      {.name = "with_bias", .in = {x, w, b}, .out = {{-1, 6, 5, 12}}},
      {.name = "with_activation", .in = {x, w, b}, .op = {UnaryKind::Relu}, .out = {{0, 6, 5, 12}}},
      {.name = "vector", .in = {T({3}), T({3, 2}), T({2})}},
      {.name = "batched", .in = {T({2, 2, 3}), T({3, 5}), T({5})}, .op = {UnaryKind::Gelu}},
      {.name = "symbolic", .in = {T({Dim::symbol("n"), 3}), T({3, 2}), T({2})}},
      {.name = "ints",
       .in = {T({2, 3}), T({3, 2}), T({2})},
       .dtypes = dtypes::ints,
       .rejects = "c1"},
      {.name = "inner_differs", .in = {T({2, 3}), T({4, 2}), T({2})}, .rejects = "c2"},
      {.name = "activation_of_integers",
       .in = {x, w, b},
       .op = {UnaryKind::BitwiseNot},
       .rejects = "c4"},
      {.name = "bias_length", .in = {T({2, 3}), T({3, 2}), T({3})}, .rejects = "c3"},
  };
}

}  // namespace

Cases cases(const op::Linear*) {
  auto list = linear_cases<op::Linear>();
  list.push_back({.name = "no_bias", .in = {T({2, 3}), T({3, 2})}, .op = {UnaryKind::Tanh}});
  return cases_of<op::Linear>(std::move(list));
}

Cases cases(const op::LinearFused*) {
  return cases_of<op::LinearFused>(linear_cases<op::LinearFused>());
}

namespace {

// Small numbers keep the blocks' many steps within one tolerance.
In block_in(Dims dims) { return T(std::move(dims)).between(-0.7, 0.7); }

// x [B, S, W] with two heads of two, one or two of keys, and three columns inside.
std::vector<In> decoder_in(Dims x, std::int64_t shared, std::int64_t rows) {
  const Dim w = x.back();
  const std::int64_t width = w.value();
  return {block_in(std::move(x)),
          block_in({w}),
          block_in({w}),
          block_in({w, 4}),
          block_in({w, 2 * shared}),
          block_in({w, 2 * shared}),
          block_in({4, w}),
          block_in({w}),
          block_in({w}),
          block_in({w, 3}),
          block_in({w, 3}),
          block_in({3, Dim(width)}),
          block_in({rows, 1}),
          block_in({rows, 1})};
}

std::vector<In> with(std::vector<In> in, std::size_t k, In other) {
  if (k == in.size()) {
    in.push_back(std::move(other));
  } else {
    in[k] = std::move(other);
  }
  return in;
}

// Two heads of four, one of keys, on E = 3, I = 2, V = 5, L = 6.
std::vector<In> mtp_in(std::int64_t batch, std::int64_t steps, std::int64_t shared = 1) {
  const auto norm = [](std::int64_t n) { return block_in({n}); };
  return {block_in({batch, steps, 3}),
          Index({batch, steps}, 5),
          block_in({steps + 1, 2}),
          block_in({steps + 1, 2}),
          Index({batch}, steps),
          block_in({5, 3}),
          norm(3),
          norm(3),
          norm(3),
          norm(3),
          block_in({6, 3}),
          norm(3),
          norm(3),
          block_in({3, 16}),
          block_in({3, 4 * shared}),
          block_in({3, 4 * shared}),
          norm(4),
          norm(4),
          norm(4),
          norm(4),
          block_in({8, 3}),
          norm(3),
          norm(3),
          block_in({3, 2}),
          block_in({3, 2}),
          block_in({2, 3}),
          norm(3),
          norm(3),
          block_in({3, 6})};
}

}  // namespace

Cases cases(const op::SharedLinearPair*) {
  const In x = T({2, 3}).with({1, 2, 3, 4, 5, 6});
  return cases_of<op::SharedLinearPair>({
      {.name = "by_hand",
       .in = {x, T({3, 1}).with({1, 0, 1}), T({3, 2}).with({0, 1, 1, 0, 0, -1})},
       .out = {{4, 10}, {2, -2, 5, -2}}},
      {.name = "batched", .in = {T({2, 2, 3}), T({3, 5}), T({3, 4})}},
      {.name = "one_wanted", .in = {T({2, 3}), T({3, 5}), T({3, 4})}, .wanted = {false, true}},
      {.name = "no_rows", .in = {T({0, 3}), T({3, 2}), T({3, 2})}},
      {.name = "symbolic", .in = {T({Symbol, 3}), T({3, 2}), T({3, 4})}},
      {.name = "ints",
       .in = {T({2, 3}), T({3, 2}), T({3, 2})},
       .dtypes = dtypes::ints,
       .rejects = "c1"},
      {.name = "vector", .in = {T({3}), T({3, 2}), T({3, 2})}, .rejects = "c2"},
      {.name = "rows_differ", .in = {T({2, 3}), T({3, 2}), T({4, 2})}, .rejects = "c3"},
      {.name = "rank_of_a_matrix", .in = {T({2, 3}), T({1, 3, 2}), T({3, 2})}, .rejects = "c3"},
  });
}

Cases cases(const op::Swiglu*) {
  const auto in = [](Dims x) {
    return std::vector<In>{block_in(std::move(x)), block_in({3, 5}), block_in({3, 5}),
                           block_in({5, 2})};
  };
  const double one = 1 / (1 + std::exp(-1.0));  // silu(1)
  return cases_of<op::Swiglu>({
      {.name = "by_hand",
       .in = {T({1, 2}).with({1, 2}), T({2, 1}).with({1, 1}), T({2, 1}).with({1, 0}),
              T({1, 2}).with({1, -2})},
       .out = {{3 * one, -6 * one}}},
      {.name = "rows", .in = in({2, 3})},
      {.name = "batched", .in = in({2, 2, 3})},
      {.name = "no_rows", .in = in({0, 3})},
      {.name = "nothing_inside", .in = {T({2, 3}), T({3, 0}), T({3, 0}), T({0, 2})}},
      {.name = "symbolic", .in = in({Symbol, 3})},
      {.name = "ints", .in = in({2, 3}), .dtypes = dtypes::ints, .rejects = "c1"},
      {.name = "vector", .in = in({3}), .rejects = "c2"},
      {.name = "gate_narrower",
       .in = {T({2, 3}), T({3, 5}), T({3, 4}), T({5, 2})},
       .rejects = "c3"},
      {.name = "down_rows", .in = {T({2, 3}), T({3, 5}), T({3, 5}), T({4, 2})}, .rejects = "c3"},
  });
}

Cases cases(const op::ResidualRmsNorm*) {
  const In x = block_in({2, 3, 5});
  const In v = block_in({5});
  return cases_of<op::ResidualRmsNorm>({
      {.name = "by_hand",
       .in = {T({1, 2}).with({1, 0}), T({1, 2}).with({1, -2}), T({2}).with({3, 5}),
              T({2}).with({1, -1})},
       .op = {.eps = 0.0},
       .wanted = {true, true},
       .out = {{4, -6}, {2, -2}}},
      {.name = "norm_only", .in = {x, x, v, v}},
      {.name = "both", .in = {x, x, v, v}, .wanted = {true, true}},
      {.name = "sum_only", .in = {x, x, v, v}, .wanted = {false, true}},
      {.name = "vector", .in = {v, v, v, v}},
      {.name = "no_rows", .in = {T({0, 5}), T({0, 5}), v, v}},
      {.name = "symbolic", .in = {T({Symbol, 5}), T({Symbol, 5}), v, v}},
      {.name = "ints", .in = {x, x, v, v}, .dtypes = dtypes::ints, .rejects = "c1"},
      {.name = "residual_broadcast", .in = {x, T({1, 3, 5}), v, v}, .rejects = "c2"},
      {.name = "gamma_size", .in = {x, x, T({3}), v}, .rejects = "c3"},
      {.name = "eps_negative", .in = {x, x, v, v}, .op = {.eps = -1.0}, .rejects = "c4"},
  });
}

Cases cases(const op::DepthwiseConv1dCausal*) {
  return cases_of<op::DepthwiseConv1dCausal>({
      {.name = "by_hand",
       .in = {T({1, 3, 2}).with({1, 2, 3, 4, 5, 6}), T({2, 1, 1, 2}).with({10, 1, -1, 1}),
              T({1, 1, 2}).with({7, 8})},
       .out = {{71, -6, 13, 2, 35, 2}}},
      {.name = "nothing_before",
       .in = {T({1, 3, 1}).with({1, 3, 5}), T({1, 1, 1, 2}).with({10, 1})},
       .out = {{1, 13, 35}}},
      {.name = "four_taps", .in = {T({2, 5, 3}), T({3, 1, 1, 4}), T({2, 3, 3})}},
      {.name = "more_taps_than_steps", .in = {T({2, 2, 3}), T({3, 1, 1, 4})}},
      {.name = "one_tap", .in = {T({2, 2, 3}), T({3, 1, 1, 1}), T({2, 0, 3})}},
      {.name = "no_examples", .in = {T({0, 2, 3}), T({3, 1, 1, 2})}},
      {.name = "symbolic", .in = {T({Symbol, 4, 3}), T({3, 1, 1, 2})}},
      {.name = "ints",
       .in = {T({1, 3, 2}), T({2, 1, 1, 2})},
       .dtypes = dtypes::ints,
       .rejects = "c1"},
      {.name = "rank", .in = {T({3, 2}), T({2, 1, 1, 2})}, .rejects = "c2"},
      {.name = "channels", .in = {T({1, 3, 2}), T({3, 1, 1, 2})}, .rejects = "c3"},
      {.name = "no_taps", .in = {T({1, 3, 2}), T({2, 1, 1, 0})}, .rejects = "c3"},
      {.name = "pad_length", .in = {T({1, 3, 2}), T({2, 1, 1, 2}), T({1, 2, 2})}, .rejects = "c4"},
  });
}

Cases cases(const op::LlamaDecoderBlock*) {
  using Block = op::LlamaDecoderBlock;
  const Block two{.num_heads = 2, .head_dim = 2};
  const Block grouped{
      .num_heads = 2, .head_dim = 2, .num_kv_heads = 1, .mask_kind = MaskKind::causal()};
  const Block masked{.num_heads = 2, .head_dim = 2, .mask_kind = MaskKind::custom()};
  const std::vector<In> in = decoder_in({2, 3, 3}, 2, 3);
  const std::vector<In> few = decoder_in({2, 3, 3}, 1, 5);
  return cases_of<Block>({
      {.name = "every_head", .in = in, .op = two},
      {.name = "grouped_causal", .in = few, .op = grouped},
      {.name = "no_batch", .in = decoder_in({3, 3}, 1, 3), .op = grouped},
      {.name = "window_and_softcap",
       .in = in,
       .op = {.num_heads = 2,
              .head_dim = 2,
              .eps = 0.1,
              .mask_kind = MaskKind::sliding_window(1),
              .score_scale = 0.3,
              .attn_logit_softcap = 2.0}},
      {.name = "custom_mask",
       .in = with(in, 14, Fixed(DType::Bool, {2, 3}).with({1, 1, 0, 1, 0, 1})),
       .op = masked},
      {.name = "bias_mask",
       .in = with(in, 14, block_in({2, 2, 3, 3})),
       .op = {.num_heads = 2, .head_dim = 2, .mask_kind = MaskKind::bias()}},
      {.name = "no_rows", .in = decoder_in({0, 3, 3}, 2, 3), .op = two},
      {.name = "symbolic", .in = decoder_in({Symbol, 3, 3}, 1, 3), .op = grouped},
      {.name = "odd_heads", .in = in, .op = {.num_heads = 2, .head_dim = 3}, .rejects = "c1"},
      {.name = "groups",
       .in = in,
       .op = {.num_heads = 3, .head_dim = 2, .num_kv_heads = 2},
       .rejects = "c1"},
      {.name = "eps_negative",
       .in = in,
       .op = {.num_heads = 2, .head_dim = 2, .eps = -1.0},
       .rejects = "c1"},
      {.name = "softcap",
       .in = in,
       .op = {.num_heads = 2, .head_dim = 2, .attn_logit_softcap = 0.0},
       .rejects = "c1"},
      {.name = "ints", .in = in, .op = two, .dtypes = dtypes::ints, .rejects = "c2"},
      {.name = "rank", .in = decoder_in({1, 2, 3, 3}, 2, 3), .op = two, .rejects = "c3"},
      {.name = "projection", .in = with(in, 3, T({3, 6})), .op = two, .rejects = "c4"},
      {.name = "keys_of_fewer_heads", .in = few, .op = two, .rejects = "c4"},
      {.name = "gate", .in = with(in, 9, T({3, 4})), .op = two, .rejects = "c4"},
      {.name = "down", .in = with(in, 11, T({3, 4})), .op = two, .rejects = "c4"},
      {.name = "norm", .in = with(in, 7, T({4})), .op = two, .rejects = "c5"},
      {.name = "tables", .in = decoder_in({2, 3, 3}, 2, 2), .op = two, .rejects = "c6"},
      {.name = "mask_missing", .in = in, .op = masked, .rejects = "c7"},
      {.name = "mask_not_announced", .in = with(in, 14, T({2, 3})), .op = two, .rejects = "c7"},
  });
}

Cases cases(const op::Qwen35MtpHead*) {
  using Head = op::Qwen35MtpHead;
  const Head one{.num_heads = 2, .head_dim = 4, .num_kv_heads = 1};
  const std::vector<In> in = mtp_in(2, 3);
  return cases_of<Head>({
      {.name = "grouped", .in = in, .op = one},
      {.name = "half_turns",
       .in = in,
       .op = {.num_heads = 2, .head_dim = 4, .num_kv_heads = 1, .n_rot = 2, .eps = 0.1}},
      {.name = "every_head", .in = mtp_in(1, 2, 2), .op = {.num_heads = 2, .head_dim = 4}},
      {.name = "one_step", .in = mtp_in(3, 1), .op = one},
      {.name = "no_examples", .in = mtp_in(0, 2), .op = one},
      {.name = "last_out_of_range",
       .in = with(in, 4, Fixed(DType::I32, {2}).with({0, 3})),
       .op = one,
       .fails = OutOfRange},
      {.name = "token_out_of_range",
       .in = with(in, 1, Fixed(DType::I32, {2, 3}).with({0, 1, 2, 3, 4, 5})),
       .op = one,
       .fails = OutOfRange},
      {.name = "turns",
       .in = in,
       .op = {.num_heads = 2, .head_dim = 4, .num_kv_heads = 1, .n_rot = 6},
       .rejects = "c1"},
      {.name = "dtypes_differ",
       .in = with(in, 5, Fixed(DType::I32, {5, 3})),
       .op = one,
       .rejects = "c2"},
      {.name = "ids_of_floats", .in = with(in, 1, T({2, 3})), .op = one, .rejects = "c3"},
      {.name = "hidden_rank", .in = with(in, 0, T({6, 3})), .op = one, .rejects = "c4"},
      {.name = "ids_shape", .in = with(in, 1, Index({2, 2}, 5)), .op = one, .rejects = "c4"},
      {.name = "last_shape", .in = with(in, 4, Index({3}, 3)), .op = one, .rejects = "c4"},
      {.name = "joined", .in = with(in, 10, T({3, 3})), .op = one, .rejects = "c5"},
      {.name = "gates_of_heads", .in = with(in, 13, T({3, 8})), .op = one, .rejects = "c5"},
      {.name = "logits", .in = with(in, 28, T({4, 6})), .op = one, .rejects = "c5"},
      {.name = "norm_of_heads", .in = with(in, 16, T({3})), .op = one, .rejects = "c6"},
      {.name = "norm", .in = with(in, 26, T({4})), .op = one, .rejects = "c6"},
      {.name = "tables", .in = with(in, 2, T({2, 2})), .op = one, .rejects = "c7"},
  });
}

}  // namespace ricci::testing
