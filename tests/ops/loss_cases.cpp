
#include "ops/cases.h"

namespace ricci::testing {
namespace {}  // namespace

Cases cases(const op::SoftmaxCrossEntropyWithLogits*) {
  const Dim n = Dim::symbol("n");
  return cases_of<op::SoftmaxCrossEntropyWithLogits>({
      {.name = "by_hand",
       .in = {T({2, 2}).with({0, 0, 2, 0}), Fixed(DType::I32, {2}).with({0, 1})},
       .out = {{0.69314718055994531, 2.1269280110429727}}},
      {.name = "plain", .in = {T({5, 7}), Index({5}, 7)}},
      {.name = "square", .in = {T({4, 4}), Index({4}, 4)}},  // [BW-02]
      {.name = "many_classes", .in = {T({3, 67}), Index({3}, 67, DType::U8)}},
      {.name = "one_row", .in = {T({3}), Index({}, 3)}},  // [LS-01]
      {.name = "rank_three", .in = {T({2, 3, 4}), Index({2, 3}, 4, DType::I64)}},
      {.name = "rank_six", .in = {T({1, 2, 1, 3, 2, 2}), Index({1, 2, 1, 3, 2}, 2, DType::I8)}},
      {.name = "one_class", .in = {T({3, 1}), Index({3}, 1, DType::I16)}, .out = {{0, 0, 0}}},
      {.name = "no_rows", .in = {T({0, 3}), Index({0}, 3)}},
      {.name = "labels_u32", .in = {T({4, 5}), Index({4}, 5, DType::U32)}},
      {.name = "labels_f32", .in = {T({3, 4}), Fixed(DType::F32, {3}).with({0, 3, 2})}},
      {.name = "labels_f64", .in = {T({3, 4}), Fixed(DType::F64, {3}).with({1, 3, 0})}},
      {.name = "impossible_classes",
       .in = {T({2, 3}).with({0, -Inf, 0, -Inf, -Inf, 5}), Fixed(DType::I32, {2}).with({2, 2})},
       .out = {{0.69314718055994531, 0}}},
      {.name = "impossible_label",
       .in = {T({1, 2}).with({0, -Inf}), Fixed(DType::I32, {1}).with({1})},
       .out = {{Inf}}},
      {.name = "not_a_distribution",
       .in = {T({3, 2}).with({-Inf, -Inf, NaN, 0, Inf, 0}), Fixed(DType::I32, {3}).with({0, 1, 1})},
       .out = {{NaN, NaN, NaN}}},
      {.name = "far_apart",
       .in = {T({2, 2}).with({10000, 0, 10000, 0}), Fixed(DType::I32, {2}).with({0, 1})},
       .out = {{0, 10000}}},
      {.name = "symbolic", .in = {T({n, Dim::symbol("c")}), Index({n}, 1)}},
      {.name = "label_too_large",
       .in = {T({2, 3}), Fixed(DType::I32, {2}).with({0, 3})},
       .fails = ErrorCode::IndexOutOfRange},
      {.name = "label_negative",
       .in = {T({2, 3}), Fixed(DType::I64, {2}).with({-1, 0})},
       .fails = ErrorCode::IndexOutOfRange},
      {.name = "label_between",
       .in = {T({2, 3}), Fixed(DType::F32, {2}).with({0.5, 0})},
       .fails = ErrorCode::IndexOutOfRange},
      {.name = "scalar_logits", .in = {T({}), Index({}, 1)}, .rejects = "c1"},
      {.name = "no_classes", .in = {T({2, 0}), Index({2}, 1)}, .rejects = "c1"},
      {.name = "label_count", .in = {T({2, 3}), Index({3}, 3)}, .rejects = "c2"},
      {.name = "label_rank", .in = {T({2, 3}), Index({2, 1}, 3)}, .rejects = "c2"},
      {.name = "int_logits",
       .in = {T({2, 3}), Index({2}, 3)},
       .dtypes = dtypes::ints,
       .rejects = "c3"},
      {.name = "bool_labels", .in = {T({2, 3}), Fixed(DType::Bool, {2})}, .rejects = "c4"},
      {.name = "small_float_labels", .in = {T({2, 3}), Fixed(DType::BF16, {2})}, .rejects = "c4"},
  });
}

Cases cases(const op::SoftmaxCrossEntropyBackward*) {
  const Dim n = Dim::symbol("n");
  return cases_of<op::SoftmaxCrossEntropyBackward>({
      {.name = "by_hand",
       .in = {T({2, 2}).with({0, 0, 2, 0}), Fixed(DType::I32, {2}).with({0, 1}),
              T({2}).with({1, 2})},
       .out = {{-0.5, 0.5, 1.7615941559557649, -1.7615941559557649}}},
      {.name = "plain", .in = {T({5, 7}), Index({5}, 7), T({5})}},
      {.name = "square", .in = {T({4, 4}), Index({4}, 4), T({4})}},  // [BW-02]
      {.name = "one_row", .in = {T({3}), Index({}, 3, DType::U32), T({})}},
      {.name = "rank_three", .in = {T({2, 3, 4}), Index({2, 3}, 4, DType::I64), T({2, 3})}},
      {.name = "one_class", .in = {T({3, 1}), Index({3}, 1), T({3})}, .out = {{0, 0, 0}}},
      {.name = "no_rows", .in = {T({0, 3}), Index({0}, 3), T({0})}},
      {.name = "labels_f32", .in = {T({3, 4}), Fixed(DType::F32, {3}).with({0, 3, 2}), T({3})}},
      {.name = "labels_f64", .in = {T({3, 4}), Fixed(DType::F64, {3}).with({1, 3, 0}), T({3})}},
      {.name = "impossible_classes",
       .in = {T({1, 3}).with({0, -Inf, 0}), Fixed(DType::I32, {1}).with({2}), T({1}).with({2})},
       .out = {{1, 0, -1}}},
      {.name = "symbolic", .in = {T({n, Dim::symbol("c")}), Index({n}, 1), T({n})}},
      {.name = "label_too_large",
       .in = {T({2, 3}), Fixed(DType::I32, {2}).with({0, 3}), T({2})},
       .fails = ErrorCode::IndexOutOfRange},
      {.name = "no_classes", .in = {T({2, 0}), Index({2}, 1), T({2})}, .rejects = "c1"},
      {.name = "label_count", .in = {T({2, 3}), Index({3}, 3), T({2})}, .rejects = "c2"},
      {.name = "int_logits",
       .in = {T({2, 3}), Index({2}, 3), T({2})},
       .dtypes = dtypes::ints,
       .rejects = "c3"},
      {.name = "bool_labels", .in = {T({2, 3}), Fixed(DType::Bool, {2}), T({2})}, .rejects = "c4"},
      {.name = "gradient_shape", .in = {T({2, 3}), Index({2}, 3), T({2, 1})}, .rejects = "c5"},
      {.name = "gradient_dtype",
       .in = {Fixed(DType::F32, {2, 3}), Index({2}, 3), Fixed(DType::F64, {2})},
       .rejects = "c6"},
  });
}

}  // namespace ricci::testing
