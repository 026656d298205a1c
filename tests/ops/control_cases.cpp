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

// Two float captures and an integer; the branches use different ones and give a float and a count.
std::vector<Body> unlike_branches(DType d) {
  const std::vector<Type> captures{{d, {2}}, {d, {}}, i32()};
  return {body("then", captures,
               [](Graph&, Inputs in) {
                 return Values{sin(in[0]) * in[1], in[2] + scalar_like(in[2], 1), sum(in[0])};
               }),
          body("else", captures, [](Graph& g, Inputs in) {
            return Values{in[0] * in[0], in[2], filled(g, in[1].type(), 3)};
          })};
}

// The logarithm has no value, and no derivative, where it is not taken.
std::vector<Body> log_or_zero(DType d) {
  return {body("then", {{d, {2}}}, [](Graph&, Inputs in) { return Values{log(in[0])}; }),
          body("else", {{d, {2}}}, [](Graph&, Inputs in) { return Values{in[0] * 0.0}; })};
}

// Two carries and a counter, two bcasts, two xs and two stacked outputs.
std::vector<Body> rich_cell(DType d) {
  const std::vector<Type> inputs{{d, {2}}, {d, {}}, i32(), {d, {2, 2}}, {d, {2}}, {d, {2}}, i32()};
  return {body("body", inputs, [d](Graph&, Inputs in) {
    const Value turned = reshape_to(matmul(reshape_to(in[0], {1, 2}), in[3]), {2});
    const Value h = tanh(turned + in[4] * in[5]);
    const Value s = in[1] * 0.5 + sum(h) * cast_to(in[6] + in[2], d);
    return Values{h, s, in[2] + scalar_like(in[2], 1), h * s, in[2]};
  })};
}
std::vector<In> rich_operands(std::int64_t length) {
  return {T({2}), T({}),          Fixed(DType::I32, {}).between(0, 3),      T({2, 2}),
          T({2}), T({length, 2}), Fixed(DType::I32, {length}).between(0, 3)};
}

// No carry at all: a map over rows.
std::vector<Body> row_squares(DType d) {
  return {body("body", {{d, {3}}}, [](Graph&, Inputs in) { return Values{in[0] * in[0]}; })};
}

// c' = sin(c)·w + x
std::vector<Body> sine_cell(DType d) {
  return {body("body", {{d, {2}}, {d, {2}}, {d, {2}}},
               [](Graph&, Inputs in) { return Values{sin(in[0]) * in[1] + in[2]}; })};
}

std::vector<Body> named_sine_cell(DType d) {
  return {body("body", {{d, {2}}, {d, {2}}, {d, {2}}}, [](Graph&, Inputs in) {
    return Values{sin(sin(in[0]).named("wave") * in[1]) + in[2]};
  })};
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

// x ← sin(x)·w, while n counts to 4; w stays.
std::vector<Body> sines(DType d) {
  const std::vector<Type> carries{{d, {2}}, {d, {2}}, i32()};
  return {body("cond", carries,
               [](Graph&, Inputs in) { return Values{lt(in[2], scalar_like(in[2], 4))}; }),
          body("body", carries, [](Graph&, Inputs in) {
            return Values{sin(in[0]) * in[1], in[1], in[2] + scalar_like(in[2], 1)};
          })};
}

// Until an element is 1 or less.
std::vector<Body> all_above_one(DType d) {
  return {body("cond", {{d, {2}}},
               [](Graph&, Inputs in) { return Values{gt(in[0], scalar_like(in[0], 1))}; }),
          body("body", {{d, {2}}}, [](Graph&, Inputs in) { return Values{in[0] * 0.5}; })};
}

// [scan-save-policy] Every policy and what decides between them.
Cases scan_saving() {
  const auto rich = [](ScanSave save, std::int64_t checkpoints = 0, bool rows = false) {
    return op::Scan{.length = 4,
                    .num_carry = 3,
                    .num_bcast = 2,
                    .num_xs = 2,
                    .save_trajectory = rows,
                    .num_checkpoints = checkpoints,
                    .reverse = rows,
                    .save = save};
  };
  op::Scan sine{.length = 5, .num_bcast = 1, .num_xs = 1, .save = ScanSave::Named};
  sine.save_names = {"wave"};
  op::Scan within = sine;
  within.save = ScanSave::Auto;
  within.save_bytes = 60;
  op::Scan nameless = sine;
  nameless.save_names.clear();
  op::Scan named_all = sine;
  named_all.save = ScanSave::All;
  op::Scan negative = within;
  negative.save_bytes = -1;
  op::Scan decided = within;
  decided.num_checkpoints = 2;
  op::Scan recompute{.length = 5, .num_bcast = 1, .num_xs = 1, .save = ScanSave::Recompute};
  const std::vector<In> waves = {T({2}), T({2}), T({5, 2})};
  // The values are those of other cases, which small floats are tried on.
  const DTypeSet wide = {DType::F64, DType::F32};
  return cases_of<op::Scan>({
      {.name = "save_all",
       .in = rich_operands(4),
       .op = rich(ScanSave::All),
       .dtypes = wide,
       .bodies = rich_cell},
      {.name = "save_all_of_trajectory",
       .in = rich_operands(4),
       .op = rich(ScanSave::All, 0, true),
       .dtypes = wide,
       .bodies = rich_cell},
      {.name = "save_all_with_checkpoints",
       .in = rich_operands(4),
       .op = rich(ScanSave::All, 2),
       .dtypes = wide,
       .bodies = rich_cell},
      {.name = "save_matmuls",
       .in = rich_operands(4),
       .op = rich(ScanSave::Matmuls),
       .dtypes = wide,
       .bodies = rich_cell},
      {.name = "save_carries",
       .in = rich_operands(4),
       .op = rich(ScanSave::Carries),
       .dtypes = wide,
       .bodies = rich_cell},
      {.name = "save_named", .in = waves, .op = sine, .dtypes = wide, .bodies = named_sine_cell},
      {.name = "save_within_budget",
       .in = waves,
       .op = within,
       .dtypes = wide,
       .bodies = named_sine_cell},
      {.name = "recompute", .in = waves, .op = recompute, .dtypes = wide, .bodies = sine_cell},
      {.name = "no_names", .in = waves, .op = nameless, .bodies = named_sine_cell, .rejects = "c6"},
      {.name = "needless_names",
       .in = waves,
       .op = named_all,
       .bodies = named_sine_cell,
       .rejects = "c6"},
      {.name = "negative_budget",
       .in = waves,
       .op = negative,
       .bodies = named_sine_cell,
       .rejects = "c6"},
      {.name = "needless_budget",
       .in = waves,
       .op = decided,
       .bodies = named_sine_cell,
       .rejects = "c6"},
  });
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
      {.name = "unlike_taken",
       .in = {Fixed(DType::Bool, {}).with({1}), T({2}), T({}), Fixed(DType::I32, {})},
       .bodies = unlike_branches},
      {.name = "unlike_not_taken",
       .in = {Fixed(DType::Bool, {1}).with({0}), T({2}), T({}), Fixed(DType::I32, {})},
       .bodies = unlike_branches},
      {.name = "some_take_it",
       .in = {Fixed(DType::I32, {1, 1}).between(0, 2), T({2}), T({}), Fixed(DType::I32, {})},
       .bodies = unlike_branches},
      {.name = "not_a_number_untaken",
       .in = {Fixed(DType::Bool, {}).with({0}), T({2}).with({-1, 0})},
       .bodies = log_or_zero,
       .out = {{-0.0, 0}}},
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
  Cases all = cases_of<op::Scan>({
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
      {.name = "rich",
       .in = rich_operands(4),
       .op = {.length = 4, .num_carry = 3, .num_bcast = 2, .num_xs = 2},
       .bodies = rich_cell},
      {.name = "rich_trajectory_reverse",
       .in = rich_operands(3),
       .op = {.length = 3,
              .num_carry = 3,
              .num_bcast = 2,
              .num_xs = 2,
              .save_trajectory = true,
              .reverse = true},
       .bodies = rich_cell},
      {.name = "rich_checkpoints",
       .in = rich_operands(4),
       .op = {.length = 4,
              .num_carry = 3,
              .num_bcast = 2,
              .num_xs = 2,
              .num_checkpoints = 2,
              .reverse = true},
       .bodies = rich_cell},
      {.name = "uneven_checkpoints",
       .in = {T({2}), T({2}), T({5, 2})},
       .op = {.length = 5, .num_bcast = 1, .num_xs = 1, .num_checkpoints = 3},
       .bodies = sine_cell},
      {.name = "checkpoints_of_trajectory",
       .in = {T({2}), T({2}), T({4, 2})},
       .op = {.length = 4,
              .num_bcast = 1,
              .num_xs = 1,
              .save_trajectory = true,
              .num_checkpoints = 2},
       .bodies = sine_cell},
      {.name = "all_checkpoints",
       .in = {T({2}), T({2}), T({3, 2})},
       .op = {.length = 3, .num_bcast = 1, .num_xs = 1, .num_checkpoints = 3},
       .bodies = sine_cell},
      {.name = "no_carry",
       .in = {T({4, 3})},
       .op = {.length = 4, .num_carry = 0, .num_xs = 1},
       .bodies = row_squares},
      {.name = "one_step",
       .in = {T({2}), T({2}), T({1, 2})},
       .op = {.length = 1, .num_bcast = 1, .num_xs = 1},
       .bodies = sine_cell},
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
       .rejects = "range"},
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
  for (Case& c : scan_saving()) all.push_back(std::move(c));
  return all;
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
      {.name = "wide_condition_bounded",
       .in = {T({2}).between(1.5, 9)},
       .op = {.max_iterations = 6},
       .bodies = all_above_one},
      {.name = "own_trips",
       .in = {T({2}), T({2}), Fixed(DType::I32, {}).between(0, 6)},
       .op = {.max_iterations = 5},
       .bodies = sines},
      {.name = "own_trips_taped",
       .in = {T({2}), T({2}), Fixed(DType::I32, {}).between(0, 6)},
       .op = {.max_iterations = 5},
       .bodies = sines,
       .wanted = {true, true, true, true, true, true, true}},
      {.name = "own_trips_checkpoints",
       .in = {T({2}), T({2}), Fixed(DType::I32, {}).between(0, 6)},
       .op = {.max_iterations = 5, .num_checkpoints = 2},
       .bodies = sines,
       .wanted = {true, false, true, true, true, true, false}},
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
