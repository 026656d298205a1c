// Singular points of ops that look at several elements. The numbers were derived by hand.
#include <cmath>
#include <limits>
#include <numbers>

#include "ricci/build/build.h"
#include "ricci/build/reduce.h"

#include "support/singular_points.h"

namespace ricci::testing {
namespace {

constexpr double Infinity = std::numeric_limits<double>::infinity();
constexpr double NotANumber = std::numeric_limits<double>::quiet_NaN();
constexpr double Third = 1.0 / 3;

using Function = std::function<Value(Value)>;

Function over(ReduceKind kind) {
  return [kind](Value x) { return reduce(x, {.op = kind, .axes = {0}}); };
}
// The same over none of x's elements.
Function over_nothing(ReduceKind kind) {
  return [kind](Value x) {
    return reduce(narrow(x, {.axis = 0, .start = 0, .len = 0}), {.op = kind, .axes = {0}});
  };
}

Value root_of_squares(Value x) { return sqrt(sum(x * x)); }
Value guarded_norm(Value x) {
  const Value squares = sum(x * x);
  const Value some = gt(squares, scalar_like(squares, 0));
  const Value safe = where(some, squares, scalar_like(squares, 1));
  return where(some, sqrt(safe), scalar_like(squares, 0));
}

Function softmax_element(std::int64_t i) {
  return [i](Value x) { return element(softmax(x, {.axis = 0}), i); };
}

Value matrix(Value x, Dims dims) { return reshape_to(x, std::move(dims)); }

// One query of width 2, which is x, and two keys that it may not see.
Value masked_attention(Value x, MaskKind kind, Value mask) {
  const Value keys = matrix(numbers_for(x, {1, 2, 3, 4}), {1, 2, 2});
  return attention(matrix(x, {1, 1, 2}), keys, keys, mask,
                   {.num_heads = 1, .head_dim = 2, .mask_kind = kind});
}
Value masked_by_flags(Value x) {
  return masked_attention(x, MaskKind::custom(),
                          x.graph().constant(Tensor::splat({DType::Bool, {1, 2}}, 0)));
}
Value masked_by_bias(Value x) {
  return masked_attention(x, MaskKind::bias(),
                          matrix(numbers_for(x, {-Infinity, -Infinity}), {1, 1, 1, 2}));
}

Function cross_entropy_of(std::int64_t label) {
  return [label](Value x) {
    const auto count = x.dims()[0];
    const Value labels = x.graph().constant(Tensor::splat({DType::I32, {1}}, label));
    return softmax_cross_entropy_with_logits(matrix(x, {1, count}), labels);
  };
}

Value square_window(Value x) {
  return pool(matrix(x, {1, 1, 2, 2}), {.kind = ReduceKind::Max, .kernel_size = {2, 2}});
}
// 1·first + 2·second + …
Value weighted(Value values, Value x, const std::vector<double>& weights) {
  return values * numbers_for(x, weights);
}
Value sorted(Value x) { return weighted(sort(x, {.axis = 0})[0], x, {1, 2, 3}); }
Value two_largest(Value x) { return weighted(top_k(x, {.k = 2})[0], x, {1, 2}); }

// With weights 1, 2, 3 and an eps of 0.01, so that 1/√eps = 10.
Value layer_norm_row(Value x) {
  return layer_norm(x, numbers_for(x, {1, 2, 3}), numbers_for(x, {0, 0, 0}),
                    {.axis = 0, .eps = 0.01});
}
Value rms_norm_row(Value x) {
  return rms_norm(x, numbers_for(x, {1, 2, 3}), numbers_for(x, {0, 0, 0}),
                  {.axis = 0, .eps = 0.01});
}

SingularSection extremes() {
  const auto largest = over(ReduceKind::Max);
  const auto smallest = over(ReduceKind::Min);
  const std::string shared = "shared equally";
  return {"The largest of many",
          {{"max x", largest, {1, 1}, 1, {0.5, 0.5}, {{0, 0}}, shared},
           {"max x", largest, {3, 1, 3}, 3, {0.5, 0, 0.5}, {{0, 0, 0}}, shared},
           {"max x", largest, {2, 2, 2}, 2, {Third, Third, Third}, {{0, 0, 0}}, shared},
           {"min x", smallest, {1, 2, 1}, 1, {0.5, 0, 0.5}, {{0, 0, 0}}, shared},
           {"max x", largest, {-Infinity, -Infinity}, -Infinity, {0.5, 0.5}, {{0, 0}}, shared},
           {"max x",
            largest,
            {1, NotANumber, 2},
            NotANumber,
            {0, 1, 0},
            {{0, 0, 0}},
            "the NaN was chosen"},
           {"max x",
            largest,
            {NotANumber, NotANumber, 1},
            NotANumber,
            {0.5, 0.5, 0},
            {{0, 0, 0}},
            "shared among the NaNs"},
           {"max pooling",
            square_window,
            {1, 1, 1, 1},
            1,
            {1, 0, 0, 0},
            {{0, 0, 0, 0}},
            "the first index"},
           {"max pooling",
            square_window,
            {0, 2, 2, 1},
            2,
            {0, 1, 0, 0},
            {{0, 0, 0, 0}},
            "the first index"},
           {"Σ i·sort(x)_i",
            sorted,
            {2, 1, 1},
            9,
            {3, 1, 2},
            {{0, 0, 0}},
            "stable: equal keys keep their order"},
           {"Σ i·top_2(x)_i",
            two_largest,
            {1, 3, 3, 3},
            9,
            {0, 1, 2, 0},
            {{0, 0, 0, 0}},
            "the first indices"}}};
}

SingularSection products() {
  const auto product = over(ReduceKind::Prod);
  const auto running = [](Value x) { return cumprod(x, {.axis = 0}); };
  const std::string others = "the product of the others, never y/x";
  return {"Products and norms",
          {{"prod x", product, {2, 0, 3}, 0, {0, 6, 0}, {{3, 5, 2}}, others},
           {"prod x", product, {0, 0, 3}, 0, {0, 0, 0}, {{3, 3, 0}}, others},
           {"prod x", product, {0, 0, 0}, 0, {0, 0, 0}, {{0, 0, 0}}, others},
           {"Σ cumprod x", running, {2, 0, 3}, 2, {1, 8, 0}, {{4, 6, 2}}, others},
           {"Σ cumprod x", running, {0, 0, 3}, 0, {1, 0, 0}, {{4, 4, 0}}, others},
           {"sqrt(Σ x²)", root_of_squares, {0, 0}, 0, {0, 0}, {{0, 0}}, "sqrt's kink"},
           {"sqrt(Σ x²)",
            root_of_squares,
            {3, 4},
            5,
            {0.6, 0.8},
            {{0.032, -0.024}},
            "smooth elsewhere"},
           {"where(Σ x² > 0, sqrt(Σ x²), 0), guarded",
            guarded_norm,
            {0, 0},
            0,
            {0, 0},
            {{0, 0}},
            "agrees with the kink"},
           {"layer_norm x",
            layer_norm_row,
            {2, 2, 2},
            0,
            {-10, 0, 10},
            {{0, 0, 0}},
            "(γ - mean γ)/√eps: eps bounds it"},
           {"rms_norm x",
            rms_norm_row,
            {0, 0, 0},
            0,
            {10, 20, 30},
            {{0, 0, 0}},
            "γ/√eps: eps bounds it"}}};
}

SingularSection exponentials() {
  const auto lse = over(ReduceKind::LogSumExp);
  const std::string shift = "the largest is taken off first";
  return {"Softmax and its relatives",
          {{"softmax(x)_0",
            softmax_element(0),
            {1e4, 1e4, -1e4},
            0.5,
            {0.25, -0.25, 0},
            {{0, 0, 0}},
            shift},
           {"softmax(x)_1",
            softmax_element(1),
            {-Infinity, 0, 0},
            0.5,
            {0, 0.25, -0.25},
            {{0, 0, 0}},
            "-inf has no share"},
           {"softmax(x)_0",
            softmax_element(0),
            {-Infinity, 0},
            0,
            {0, 0},
            {{0, 0}},
            "-inf has no share"},
           {"softmax(x)_0",
            softmax_element(0),
            {-Infinity, -Infinity},
            NotANumber,
            {NotANumber, NotANumber},
            {},
            "0/0: there is nothing to share"},
           {"log_sum_exp x", lse, {1e4, 1e4}, 1e4 + std::numbers::ln2, {0.5, 0.5}, {{0, 0}}, shift},
           {"log_sum_exp x", lse, {-Infinity, 0}, 0, {0, 1}, {{0, 0}}, "-inf has no share"},
           {"log_sum_exp x",
            lse,
            {-Infinity, -Infinity},
            -Infinity,
            {0, 0},
            {{0, 0}},
            "log 0, of nothing that moves it"},
           {"attention, every key masked",
            masked_by_flags,
            {1, 2},
            0,
            {0, 0},
            {{0, 0}},
            "a row without keys is 0"},
           {"attention, every bias -inf",
            masked_by_bias,
            {1, 2},
            0,
            {0, 0},
            {{0, 0}},
            "a row without keys is 0"},
           {"cross entropy, class 1",
            cross_entropy_of(1),
            {1e4, 0, -1e4},
            1e4,
            {1, -1, 0},
            {{0, 0, 0}},
            "softmax - 1 at the class"},
           {"cross entropy, class 0",
            cross_entropy_of(0),
            {1e4, 0, -1e4},
            0,
            {0, 0, 0},
            {{0, 0, 0}},
            "softmax - 1 at the class"},
           {"cross entropy, class 0",
            cross_entropy_of(0),
            {0, -Infinity},
            0,
            {0, 0},
            {{0, 0}},
            "-inf has no share"}}};
}

SingularSection nothing() {
  const std::string none = "no element to move it";
  return {"Over nothing",
          {{"sum of none of x", over_nothing(ReduceKind::Sum), {1, 2}, 0, {0, 0}, {{0, 0}}, none},
           {"prod of none of x", over_nothing(ReduceKind::Prod), {1, 2}, 1, {0, 0}, {{0, 0}}, none},
           {"mean of none of x",
            over_nothing(ReduceKind::Mean),
            {1, 2},
            NotANumber,
            {0, 0},
            {{0, 0}},
            none},
           {"max of none of x",
            over_nothing(ReduceKind::Max),
            {1, 2},
            -Infinity,
            {0, 0},
            {{0, 0}},
            none},
           {"min of none of x",
            over_nothing(ReduceKind::Min),
            {1, 2},
            Infinity,
            {0, 0},
            {{0, 0}},
            none},
           {"log_sum_exp of none of x",
            over_nothing(ReduceKind::LogSumExp),
            {1, 2},
            -Infinity,
            {0, 0},
            {{0, 0}},
            none}}};
}

}  // namespace

std::vector<SingularSection> singular_reductions() {
  return {extremes(), products(), exponentials(), nothing()};
}

}  // namespace ricci::testing
