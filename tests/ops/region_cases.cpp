#include <cmath>

#include "ops/cases.h"

namespace ricci::testing {
namespace {

RegionOperand in(std::int64_t i) { return RegionOperand::input(i); }
RegionOperand st(std::int64_t j) { return RegionOperand::step(j); }
RegionStep unary(UnaryKind k, RegionOperand x) { return RegionStep::activation(k, x); }
RegionStep binary(BinaryKind k, RegionOperand a, RegionOperand b) {
  return RegionStep::binary(k, a, b);
}

// Shapes and steps every region op is tried on.
const std::vector<RegionStep> TanhPlusOther = {unary(UnaryKind::Tanh, in(0)),
                                               binary(BinaryKind::Add, st(0), in(1))};

std::vector<CaseOf<op::ElementwiseRegion>> good_cases() {
  std::vector<CaseOf<op::ElementwiseRegion>> list;
  for (const Dims& dims : shape_classes()) {
    list.push_back({.name = shape_name("chain", dims),
                    .in = {T(dims), T(dims)},
                    .op = {.chain = TanhPlusOther}});
  }
  list.push_back(
      {.name = "by_hand",
       .in = {T({3}).with({1, -2, 3}), T({3}).with({0.5, 0.5, 2})},
       .op = {.chain = {unary(UnaryKind::Square, in(0)), binary(BinaryKind::Mul, st(0), in(1)),
                        binary(BinaryKind::Sub, st(1), in(0))}},
       .out = {{-0.5, 4, 15}}});
  // [EW-23] [region-broadcast] 4 divides 32, but the operand runs along rows, not elements.
  list.push_back({.name = "column_against_matrix",
                  .in = {T({2, 1}).with({10, 20}), T({2, 4}).with({1, 2, 3, 4, 5, 6, 7, 8})},
                  .op = {.chain = {binary(BinaryKind::Add, in(0), in(1))}},
                  .out = {{11, 12, 13, 14, 25, 26, 27, 28}}});
  list.push_back({.name = "square_row_and_column",
                  .in = {T({3}), T({3, 1}), T({3, 3})},
                  .op = {.chain = {binary(BinaryKind::Mul, in(0), in(1)),
                                   binary(BinaryKind::Max, st(0), in(2))}}});
  list.push_back({.name = "rank_six",
                  .in = {T({1, 2, 1, 3, 1, 2}), T({2, 1, 1, 1, 2, 2}), T({})},
                  .op = {.chain = {binary(BinaryKind::Add, in(0), in(1)),
                                   binary(BinaryKind::Mul, st(0), in(2))}}});
  list.push_back({.name = "symbolic",
                  .in = {T({Dim::symbol("n"), 4}), T({4})},
                  .op = {.chain = TanhPlusOther}});
  // An input nobody reads is harmless, and one may be read often.
  list.push_back({.name = "input_unused",
                  .in = {T({5}), T({7})},
                  .op = {.chain = {binary(BinaryKind::Mul, in(0), in(0))}}});
  list.push_back(
      {.name = "complex",
       .in = {T({5}), T({5})},
       .op = {.chain = {binary(BinaryKind::Mul, in(0), in(1)), unary(UnaryKind::Neg, st(0))}},
       .dtypes = dtypes::complexes});
  list.push_back({.name = "integers",
                  .in = {T({5}), T({5}).between(1, 4)},
                  .op = {.chain = {binary(BinaryKind::Mul, in(0), in(1)),
                                   binary(BinaryKind::Div, st(0), in(1))}},
                  .dtypes = dtypes::ints});
  return list;
}

// [region-dtypes]
std::vector<CaseOf<op::ElementwiseRegion>> typed_cases() {
  return {
      {.name = "compare_and_select",
       .in = {T({4}).with({-1, 0, 2, NaN}), T({4}).with({0, 0, 0, 0})},
       .op = {.chain = {RegionStep::compare(CompareKind::Gt, in(0), in(1)),
                        RegionStep::where(st(0), in(0), in(1))}},
       .out = {{0, 0, 2, 0}}},
      {.name = "mixed_dtypes",
       .in = {Fixed(DType::F16, {5}), Fixed(DType::F32, {5}), Fixed(DType::I32, {5})},
       .op = {.chain = {RegionStep::cast(DType::F32, in(0)), binary(BinaryKind::Add, st(0), in(1)),
                        RegionStep::compare(CompareKind::Lt, st(1), in(1)),
                        RegionStep::where(st(2), in(2), in(2))}},
       .dtypes = {DType::F32}},
      {.name = "f64_stays_f64",  // [EW-25]
       .in = {Fixed(DType::F64, {1}).with({1}), Fixed(DType::F64, {1}).with({1e-12})},
       .op = {.chain = {binary(BinaryKind::Add, in(0), in(1)),
                        binary(BinaryKind::Sub, st(0), in(0))}},
       .dtypes = {DType::F64},
       .out = {{1.000088900582341e-12}}},
      // 1 + 2^-11 is not an f16, but the register holds it until the end.
      {.name = "half_rounds_once",
       .in = {Fixed(DType::F16, {1}).with({1}), Fixed(DType::F16, {1}).with({0x1p-11})},
       .op = {.chain = {binary(BinaryKind::Add, in(0), in(1)),
                        binary(BinaryKind::Sub, st(0), in(0))}},
       .dtypes = {DType::F16},
       .out = {{0x1p-11}}},
      // A cast in the chain rounds where it stands.
      {.name = "cast_rounds",
       .in = {Fixed(DType::F32, {1}).with({1 + 0x1p-11})},
       .op = {.chain = {RegionStep::cast(DType::F16, in(0)), RegionStep::cast(DType::F32, st(0))}},
       .dtypes = {DType::F32},
       .out = {{1}}},
      {.name = "wraps_in_its_dtype",
       .in = {Fixed(DType::I8, {1}).with({100})},
       .op = {.chain = {binary(BinaryKind::Add, in(0), in(0)),
                        RegionStep::cast(DType::I32, st(0))}},
       .dtypes = {DType::I8},
       .out = {{-56}}},
      {.name = "division_by_zero",
       .in = {T({1}).with({1}), T({1}).with({0})},
       .op = {.chain = {binary(BinaryKind::Div, in(0), in(1))}},
       .dtypes = dtypes::ints,
       .fails = ErrorCode::Attr},
  };
}

std::vector<CaseOf<op::ElementwiseRegion>> several_results() {
  const std::vector<std::int64_t> both = {1, 0};
  return {
      {.name = "two_results",
       .in = {T({2, 1}), T({3})},
       .op = {.chain = TanhPlusOther, .outputs = both}},
      {.name = "second_only",
       .in = {T({2}), T({2})},
       .op = {.chain = TanhPlusOther, .outputs = both},
       .wanted = {false, true}},
      {.name = "results_by_hand",
       .in = {T({2}).with({1, 2})},
       .op = {.chain = {unary(UnaryKind::Square, in(0)), unary(UnaryKind::Neg, st(0))},
              .outputs = both},
       .out = {{-1, -4}, {1, 4}}},
      {.name = "earlier_step",
       .in = {T({2}), T({2})},
       .op = {.chain = TanhPlusOther, .outputs = std::vector<std::int64_t>{0}}},
      {.name = "last_step_named",
       .in = {T({2}), T({2})},
       .op = {.chain = TanhPlusOther, .outputs = std::vector<std::int64_t>{1}}},
  };
}

std::vector<CaseOf<op::ElementwiseRegion>> refused_cases() {
  const auto naming = [](std::vector<std::int64_t> steps) {
    return op::ElementwiseRegion{.chain = TanhPlusOther, .outputs = std::move(steps)};
  };
  return {
      {.name = "empty_chain", .in = {T({2})}, .op = {}, .rejects = "c1"},
      {.name = "no_such_input",
       .in = {T({2})},
       .op = {.chain = {unary(UnaryKind::Tanh, in(1))}},
       .rejects = "c2"},
      {.name = "reads_itself",
       .in = {T({2})},
       .op = {.chain = {unary(UnaryKind::Tanh, st(0))}},
       .rejects = "c2"},
      {.name = "negative_reference",
       .in = {T({2})},
       .op = {.chain = {unary(UnaryKind::Tanh, in(-1))}},
       .rejects = "c2"},
      {.name = "function_undefined",
       .in = {T({2})},
       .op = {.chain = {unary(UnaryKind::Tanh, in(0))}},
       .dtypes = dtypes::ints,
       .rejects = "c3"},
      {.name = "dtypes_meet",
       .in = {Fixed(DType::F32, {2}), Fixed(DType::F16, {2})},
       .op = {.chain = {binary(BinaryKind::Add, in(0), in(1))}},
       .dtypes = {DType::F32},
       .rejects = "c3"},
      {.name = "shapes_clash",
       .in = {T({2}), T({3})},
       .op = {.chain = {binary(BinaryKind::Add, in(0), in(1))}},
       .rejects = "c4"},
      {.name = "output_missing", .in = {T({2}), T({2})}, .op = naming({2}), .rejects = "c5"},
      {.name = "output_twice", .in = {T({2}), T({2})}, .op = naming({0, 0}), .rejects = "c5"},
      {.name = "no_outputs", .in = {T({2}), T({2})}, .op = naming({}), .rejects = "c5"},
  };
}

}  // namespace

Cases cases(const op::ElementwiseRegion*) {
  Cases out;
  for (auto list : {good_cases(), typed_cases(), several_results(), refused_cases()}) {
    for (Case& c : cases_of<op::ElementwiseRegion>(std::move(list))) out.push_back(std::move(c));
  }
  return out;
}

Cases cases(const op::BatchElementwiseRegion*) {
  const op::BatchElementwiseRegion op{
      .chain = {unary(UnaryKind::Relu, in(0)), binary(BinaryKind::Mul, st(0), in(0))}};
  const op::BatchElementwiseRegion affine{.chain = {binary(BinaryKind::Add, in(0), in(1))},
                                          .operands_per_plane = 2};
  const Dim n = Dim::symbol("n");
  return cases_of<op::BatchElementwiseRegion>({
      {.name = "by_hand",
       .in = {T({1, 2}).with({1, -2}), T({1, 2}).with({3, -4})},
       .op = op,
       .out = {{1, 0, 9, 0}}},
      {.name = "one_plane", .in = {T({3, 5})}, .op = op},
      {.name = "vectors", .in = {T({67}), T({1}), T({3})}, .op = op},
      {.name = "uneven_first_sizes", .in = {T({2, 3}), T({1, 3}), T({4, 3})}, .op = op},
      {.name = "images", .in = {T({1, 3, 2, 2}), T({1, 3, 2, 2})}, .op = op},
      {.name = "rank_six", .in = {T({1, 2, 1, 3, 2, 2}), T({2, 2, 1, 3, 2, 2})}, .op = op},
      {.name = "empty_rows", .in = {T({2, 0}), T({1, 0})}, .op = op},
      {.name = "integers", .in = {T({2, 3}), T({1, 3})}, .op = op, .dtypes = dtypes::ints},
      {.name = "to_bool",
       .in = {T({2}).with({1, -1}), T({1}).with({NaN})},
       .op = {.chain = {unary(UnaryKind::IsNan, in(0))}},
       .out = {{0, 0, 1}}},
      {.name = "rounds_inside",
       .in = {T({2}), T({3})},
       .op = {.chain = {RegionStep::cast(DType::F16, in(0)),
                        RegionStep::binary(BinaryKind::Add, st(0), st(0)),
                        RegionStep::cast(DType::F32, st(1))}}},
      {.name = "symbolic", .in = {T({n, 4}), T({2, 4})}, .op = op},
      {.name = "affine_by_hand",
       .in = {T({1, 2}).with({1, -2}), T({2}).with({10, 20}), T({1, 2}).with({3, -4}),
              T({2}).with({0, 1})},
       .op = affine,
       .out = {{11, 18, 3, -3}}},
      {.name = "affine_images",
       .in = {T({1, 3, 2, 2}), T({3, 1, 1}), T({2, 3, 2, 2}), T({3, 1, 1})},
       .op = affine},
      {.name = "widened_plane", .in = {T({1, 3}), T({4, 1}), T({2, 3}), T({})}, .op = affine},
      {.name = "two_dtypes",
       .in = {T({2, 3}), Fixed(DType::I32, {3}), T({1, 3}), Fixed(DType::I32, {3})},
       .op = {.chain = {RegionStep::cast(DType::F32, in(0)), RegionStep::cast(DType::F32, in(1)),
                        binary(BinaryKind::Mul, st(0), st(1))},
              .operands_per_plane = 2}},
      {.name = "half_a_plane", .in = {T({2}), T({2}), T({2})}, .op = affine, .rejects = "c6"},
      {.name = "no_operands_each",
       .in = {T({2})},
       .op = {.chain = op.chain, .operands_per_plane = 0},
       .rejects = "c6"},
      {.name = "operands_clash", .in = {T({2, 3}), T({4})}, .op = affine, .rejects = "c4"},
      {.name = "other_operands_differ",
       .in = {T({2, 3}), Fixed(DType::F32, {3}), T({2, 3}), Fixed(DType::F64, {3})},
       .op = {.chain = {unary(UnaryKind::Relu, in(0))}, .operands_per_plane = 2},
       .rejects = "c5"},
      {.name = "empty_chain", .in = {T({2})}, .op = {}, .rejects = "c1"},
      {.name = "second_input",
       .in = {T({2}), T({2})},
       .op = {.chain = {unary(UnaryKind::Tanh, in(1))}},
       .rejects = "c2"},
      {.name = "no_planes", .op = op, .rejects = "c2"},
      {.name = "function_undefined",
       .in = {T({2})},
       .op = {.chain = {unary(UnaryKind::Tanh, in(0))}},
       .dtypes = dtypes::ints,
       .rejects = "c3"},
      {.name = "scalar_plane", .in = {T({})}, .op = op, .rejects = "c4"},
      {.name = "no_rows", .in = {T({2, 3}), T({0, 3})}, .op = op, .rejects = "c4"},
      {.name = "ranks_differ", .in = {T({2, 3}), T({2})}, .op = op, .rejects = "c4"},
      {.name = "widths_differ", .in = {T({2, 3}), T({2, 4})}, .op = op, .rejects = "c4"},
      {.name = "dtypes_differ",
       .in = {Fixed(DType::F32, {2}), Fixed(DType::F64, {2})},
       .op = op,
       .dtypes = {DType::F32},
       .rejects = "c5"},
  });
}

Cases cases(const op::TransformRegion*) {
  const auto resized = [](RegionOperand x, Dims sizes, ResizeMode mode) {
    return TransformStep{Op(op::Resize{.sizes = std::move(sizes), .mode = mode}), {x}};
  };
  const auto flipped = [](RegionOperand x) { return TransformStep{Op(op::Reverse{{-1}}), {x}}; };
  const auto cropped = [](RegionOperand x) {
    return TransformStep{Op(op::Narrow{.axis = 2, .start = 1, .len = 2}), {x}};
  };
  const auto less = [](RegionOperand a, RegionOperand b) {
    return TransformStep{Op(op::Binary{BinaryKind::Sub}), {a, b}};
  };
  const auto turned = [](RegionOperand x) {
    return TransformStep{Op(op::Transpose{{0, 2, 3, 1}}), {x}};
  };
  return cases_of<op::TransformRegion>({
      {.name = "twice_by_hand",
       .in = {T({1, 1, 1, 2}).with({1, 2})},
       .op = {{resized(in(0), {2, 4}, ResizeMode::Nearest), flipped(st(0))}},
       .out = {{2, 2, 1, 1, 2, 2, 1, 1}}},
      // [transform-region-general] crop, flip, resize, normalise with means of channels, another
      // layout
      {.name = "preprocessing",
       .in = {T({2, 3, 4, 5}), T({3, 1, 1})},
       .op = {{cropped(in(0)), flipped(st(0)), resized(st(1), {3, 7}, ResizeMode::Linear),
               less(st(2), in(1)), turned(st(3))}}},
      {.name = "one_step", .in = {T({3, 4})}, .op = {{flipped(in(0))}}},
      {.name = "converts",
       .in = {T({1, 1, 2, 2})},
       .op = {{TransformStep{Op(op::Cast{DType::F32}), {in(0)}},
               resized(st(0), {3, 3}, ResizeMode::Cubic)}},
       .dtypes = {DType::F32, DType::F16, DType::BF16}},
      {.name = "symbolic",
       .in = {T({Symbol, 1, 2, 2})},
       .op = {{resized(in(0), {4, 4}, ResizeMode::Nearest)}}},
      {.name = "no_steps", .in = {T({2})}, .op = {}, .rejects = "c1"},
      {.name = "later_step", .in = {T({2})}, .op = {{flipped(st(0))}}, .rejects = "c2"},
      {.name = "no_such_input", .in = {T({2})}, .op = {{flipped(in(1))}}, .rejects = "c2"},
      {.name = "not_a_transform",
       .in = {T({2, 2})},
       .op = {{TransformStep{Op(op::Softmax{}), {in(0)}}}},
       .rejects = "c3"},
      {.name = "several_results",
       .in = {T({2, 2})},
       .op = {{TransformStep{
           Op(op::ElementwiseRegion{{unary(UnaryKind::Tanh, in(0)), unary(UnaryKind::Exp, in(0))},
                                    {{0, 1}}}),
           {in(0)}}}},
       .rejects = "c3"},
      {.name = "does_not_fit", .in = {T({2, 2})}, .op = {{cropped(in(0))}}, .rejects = "c4"},
      {.name = "too_few_operands",
       .in = {T({2})},
       .op = {{TransformStep{Op(op::Binary{BinaryKind::Sub}), {in(0)}}}},
       .rejects = "c4"},
  });
}

}  // namespace ricci::testing
