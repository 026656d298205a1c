#include <limits>

#include "ricci/build/build.h"

#include "ops/cases.h"
#include "ops/control_bodies.h"

namespace ricci::testing {
namespace {

// c' = c * 0.5 + x, and c' again as a stacked output when asked for.
std::vector<Body> decay(DType d, bool stacked) {
  return {body("body", {{d, {3}}, {d, {3}}}, [=](Graph&, Inputs in) {
    const Value next = in[0] * 0.5 + in[1];
    return stacked ? std::vector<Value>{next, neg(next)} : std::vector<Value>{next};
  })};
}

std::vector<Body> branches(DType d) {
  return {body("then", {{d, {2}}}, [](Graph&, Inputs in) { return std::vector{in[0] * 2.0}; }),
          body("else", {{d, {2}}}, [](Graph&, Inputs in) { return std::vector{-in[0]}; })};
}

// x is halved and n counts, until n is 3.
std::vector<Body> halving(DType d, const Dims& dims = {2}) {
  const std::vector<Type> carries{{d, dims}, i32()};
  return {body("cond", carries,
               [](Graph&, Inputs in) { return Values{lt(in[1], scalar_like(in[1], 3))}; }),
          body("body", carries, [](Graph&, Inputs in) {
            return Values{in[0] * 0.5, in[1] + scalar_like(in[1], 1)};
          })};
}

// Until an element is 1 or less.
std::vector<Body> all_above_one(DType d) {
  return {body("cond", {{d, {2}}},
               [](Graph&, Inputs in) { return Values{gt(in[0], scalar_like(in[0], 1))}; }),
          body("body", {{d, {2}}}, [](Graph&, Inputs in) { return Values{in[0] * 0.5}; })};
}

}  // namespace

Cases cases(const op::If*) {
  return cases_of<op::If>({
      {.name = "taken",
       .in = {Fixed(DType::Bool, {}).with({1}), T({2}).with({1, 2})},
       .bodies = branches,
       .out = {{2, 4}}},
      {.name = "not_taken",
       .in = {Fixed(DType::F32, {1}).with({0}), T({2}).with({1, 2})},
       .bodies = branches,
       .out = {{-1, -2}}},
      {.name = "wide_predicate",
       .in = {Fixed(DType::Bool, {2}), T({2})},
       .bodies = branches,
       .rejects = "c1"},
      {.name = "capture_type",
       .in = {Fixed(DType::Bool, {}), T({3})},
       .bodies = branches,
       .rejects = "c2"},
      {.name = "branches_differ",
       .in = {Fixed(DType::Bool, {}), T({2})},
       .bodies = [](DType d) -> std::vector<Body> {
         return {branches(d)[0], body("else", {{d, {2}}},
                                      [](Graph&, Inputs in) { return std::vector{sum(in[0])}; })};
       },
       .rejects = "c3"},
  });
}

Cases cases(const op::Scan*) {
  const auto plain = [](DType d) { return decay(d, false); };
  const auto stacked = [](DType d) { return decay(d, true); };
  const std::vector<In> in = {T({3}).with({8, 8, 8}), T({2, 3}).with({1, 1, 1, 2, 2, 2})};
  const std::vector<In> longer = {T({3}), T({5, 3})};
  return cases_of<op::Scan>({
      {.name = "final",
       .in = in,
       .op = {.length = 2, .num_xs = 1},
       .bodies = plain,
       .out = {{4.5, 4.5, 4.5}}},
      {.name = "trajectory",
       .in = in,
       .op = {.length = 2, .num_xs = 1, .save_trajectory = true},
       .bodies = plain,
       .out = {{5, 5, 5, 4.5, 4.5, 4.5}}},
      {.name = "stacked",
       .in = in,
       .op = {.length = 2, .num_xs = 1},
       .bodies = stacked,
       .out = {{4.5, 4.5, 4.5}, {-5, -5, -5, -4.5, -4.5, -4.5}}},
      {.name = "reverse",
       .in = in,
       .op = {.length = 2, .num_xs = 1, .reverse = true},
       .bodies = stacked,
       .out = {{4, 4, 4}, {-4, -4, -4, -6, -6, -6}}},
      {.name = "checkpoints",
       .in = longer,
       .op = {.length = 5, .num_xs = 1, .save_trajectory = true, .num_checkpoints = 2},
       .bodies = plain},
      {.name = "bcast",
       .in = {T({3}), T({3})},
       .op = {.length = 4, .num_bcast = 1},
       .bodies = plain},
      {.name = "no_steps",
       .in = {T({3}).with({1, 2, 3}), T({0, 3})},
       .op = {.length = 0, .num_xs = 1},
       .bodies = stacked,
       .out = {{1, 2, 3}, {}}},
      {.name = "operands_missing",  // [scan-validation]
       .in = {T({3})},
       .op = {.length = 2, .num_xs = 1},
       .bodies = plain,
       .rejects = "c1"},
      {.name = "counts_overflow",
       .in = longer,
       .op = {.length = 5,
              .num_carry = std::numeric_limits<std::int64_t>::max(),
              .num_bcast = std::numeric_limits<std::int64_t>::max(),
              .num_xs = 4},
       .bodies = plain,
       .rejects = "c1"},
      {.name = "length_differs",
       .in = longer,
       .op = {.length = 4, .num_xs = 1},
       .bodies = plain,
       .rejects = "c2"},
      {.name = "body_inputs",
       .in = {T({4}), T({5, 4})},
       .op = {.length = 5, .num_xs = 1},
       .bodies = plain,
       .rejects = "c3"},
      {.name = "carry_changes",
       .in = longer,
       .op = {.length = 5, .num_xs = 1},
       .bodies = [](DType d) -> std::vector<Body> {
         return {body("body", {{d, {3}}, {d, {3}}},
                      [](Graph&, Inputs i) { return std::vector{sum(i[0])}; })};
       },
       .rejects = "c4"},
      {.name = "too_many_checkpoints",
       .in = longer,
       .op = {.length = 5, .num_xs = 1, .num_checkpoints = 6},
       .bodies = plain,
       .rejects = "c5"},
  });
}

Cases cases(const op::While*) {
  const auto plain = [](DType d) { return halving(d); };
  const std::vector<In> from_0 = {T({2}).with({8, 4}), Fixed(DType::I32, {}).with({0})};
  const std::vector<In> from_5 = {T({2}).with({8, 4}), Fixed(DType::I32, {}).with({5})};
  const std::vector<bool> all(5, true);
  return cases_of<op::While>({
      {.name = "early_exit", .in = from_0, .bodies = plain, .out = {{1, 0.5}, {3}}},
      {.name = "no_trip", .in = from_5, .bodies = plain, .out = {{8, 4}, {5}}},
      {.name = "bound_reached",
       .in = from_0,
       .op = {.max_iterations = 2},
       .dtypes = dtypes::floats | dtypes::complexes,
       .bodies = plain,
       .out = {{2, 1}, {2}}},
      {.name = "bound_0",
       .in = from_0,
       .op = {.max_iterations = 0},
       .bodies = plain,
       .wanted = all,
       .out = {{8, 4}, {0}, {0}, {}, {}}},
      {.name = "trip_count",
       .in = from_0,
       .bodies = plain,
       .wanted = {true, false, true},
       .out = {{1, 0.5}, {3}}},
      {.name = "taped",
       .in = from_0,
       .op = {.max_iterations = 4},
       .bodies = plain,
       .wanted = all,
       .out = {{1, 0.5}, {3}, {3}, {8, 4, 4, 2, 2, 1, 0, 0}, {0, 1, 2, 0}}},
      {.name = "taped_no_trip",
       .in = from_5,
       .op = {.max_iterations = 2},
       .bodies = plain,
       .wanted = all,
       .out = {{8, 4}, {5}, {0}, {0, 0, 0, 0}, {0, 0}}},
      {.name = "one_tape",
       .in = from_0,
       .op = {.max_iterations = 3},
       .bodies = plain,
       .wanted = {true, true, false, true, false},
       .out = {{1, 0.5}, {3}, {8, 4, 4, 2, 2, 1}}},
      {.name = "checkpoints",
       .in = from_0,
       .op = {.max_iterations = 4, .num_checkpoints = 2},
       .bodies = plain,
       .wanted = all,
       .out = {{1, 0.5}, {3}, {3}, {8, 4, 2, 1}, {0, 2}}},
      {.name = "checkpoints_uneven",
       .in = from_0,
       .op = {.max_iterations = 5, .num_checkpoints = 3},
       .bodies = plain,
       .wanted = all,
       .out = {{1, 0.5}, {3}, {3}, {8, 4, 2, 1, 0, 0}, {0, 2, 0}}},
      {.name = "wide_condition",
       .in = {T({2}).with({8, 3})},
       .bodies = all_above_one,
       .out = {{2, 0.75}}},
      {.name = "size_0",
       .in = {T({0}), Fixed(DType::I32, {}).with({0})},
       .bodies = [](DType d) { return halving(d, {0}); },
       .out = {{}, {3}}},
      {.name = "symbolic",
       .in = {T({Dim::symbol("n"), 2}), Fixed(DType::I32, {})},
       .op = {.max_iterations = 4, .num_checkpoints = 2},
       .bodies = [](DType d) { return halving(d, {Dim::symbol("n"), 2}); },
       .wanted = all},
      {.name = "no_carry", .in = {}, .bodies = plain, .rejects = "c1"},
      {.name = "carry_type",
       .in = {T({3}), Fixed(DType::I32, {})},
       .bodies = plain,
       .rejects = "c2"},
      {.name = "two_conditions",
       .in = {T({2})},
       .bodies = [](DType d) -> std::vector<Body> {
         return {body("cond", {{d, {2}}}, [](Graph&, Inputs in) { return Values{in[0], in[0]}; }),
                 all_above_one(d)[1]};
       },
       .rejects = "c3"},
      {.name = "carry_changes",
       .in = {T({2})},
       .bodies = [](DType d) -> std::vector<Body> {
         return {all_above_one(d)[0],
                 body("body", {{d, {2}}}, [](Graph&, Inputs in) { return Values{sum(in[0])}; })};
       },
       .rejects = "c4"},
      {.name = "extra_output",
       .in = {T({2})},
       .bodies = [](DType d) -> std::vector<Body> {
         return {all_above_one(d)[0],
                 body("body", {{d, {2}}}, [](Graph&, Inputs in) { return Values{in[0], in[0]}; })};
       },
       .rejects = "c4"},
      {.name = "checkpoints_unbounded",
       .in = from_0,
       .op = {.num_checkpoints = 1},
       .bodies = plain,
       .rejects = "c5"},
      {.name = "too_many_checkpoints",
       .in = from_0,
       .op = {.max_iterations = 2, .num_checkpoints = 3},
       .bodies = plain,
       .rejects = "c5"},
      {.name = "negative_bound",
       .in = from_0,
       .op = {.max_iterations = -1},
       .bodies = plain,
       .rejects = "c5"},
  });
}

}  // namespace ricci::testing
