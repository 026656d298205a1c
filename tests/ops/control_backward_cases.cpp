#include <cmath>
#include <limits>

#include "ops/cases.h"
#include "ops/control_bodies.h"

namespace ricci::testing {
namespace {

// The body is c' = c·w + x; its cotangents are dc = d·w, dw = d·c, dx = d.
Values affine_cotangents(Inputs in, Value d) { return {d * in[1], d * in[0], d}; }

Body affine_vjp(DType d) {
  return rule_body("body_vjp", {vec(d), vec(d), vec(d)}, {d_output(0, vec(d))},
                   [](Graph&, Inputs in) { return affine_cotangents(in, in[3]); });
}
// The same with -c' as a stacked output.
Body stacking_vjp(DType d) {
  return rule_body("body_vjp", {vec(d), vec(d), vec(d)}, {d_output(0, vec(d)), d_output(1, vec(d))},
                   [](Graph&, Inputs in) { return affine_cotangents(in, in[3] - in[4]); });
}
Body affine(DType d) {
  return body("forward_body", {vec(d), vec(d), vec(d)},
              [](Graph&, Inputs in) { return Values{in[0] * in[1] + in[2]}; });
}
std::vector<Body> plain(DType d) { return {affine_vjp(d)}; }
std::vector<Body> stacking(DType d) { return {stacking_vjp(d)}; }
std::vector<Body> recomputing(DType d) { return {affine_vjp(d), affine(d)}; }

// c' = sin(c)·w + x with sin(c) and an integer saved: dc = d·w·cos(c), dw = d·sin(c), dx = d.
std::vector<Body> saving(DType d) {
  return {rule_body(
      "body_vjp", {vec(d), vec(d), vec(d), vec(d), i32()}, {d_output(0, vec(d))},
      [](Graph&, Inputs in) { return Values{in[5] * in[1] * cos(in[0]), in[5] * in[3], in[5]}; })};
}
std::vector<Body> saving_some(DType d) {
  std::vector<Body> out = saving(d);
  out.push_back(body("forward_body", {vec(d), vec(d), vec(d)},
                     [](Graph&, Inputs in) { return Values{sin(in[0]) * in[1] + in[2]}; }));
  return out;
}

// A float carry c' = c·2 beside an integer counter, and an integer xs that is not used.
std::vector<Body> counting(DType d) {
  return {rule_body("body_vjp", {vec(d), i32(), i32()}, {d_output(0, vec(d))},
                    [](Graph&, Inputs in) { return Values{in[3] * 2.0}; })};
}

// Numbers: c0 = 1, w = 2, x = 1, 2, so c1 = 3 and c2 = 8.
In init() { return T({2}).with({1, 1}); }
In weight() { return T({2}).with({2, 2}); }
In rows() { return T({2, 2}).with({1, 1, 2, 2}); }
In trajectory() { return T({2, 2}).with({3, 3, 8, 8}); }
In ones() { return T({2}).with({1, 1}); }

Cases scan_values() {
  const std::vector<In> final_upstream = {init(), trajectory(), ones(), weight(), rows()};
  const std::vector<In> row_upstream = {init(), trajectory(), T({2, 2}).with({1, 1, 1, 1}),
                                        weight(), rows()};
  const std::vector<std::vector<double>> once = {{4, 4}, {5, 5}, {2, 2, 1, 1}};
  return cases_of<op::ScanBackward>({
      {.name = "final",
       .in = final_upstream,
       .op = {.length = 2, .num_bcast = 1, .num_xs = 1},
       .dtypes = dtypes::floats | dtypes::complexes,
       .bodies = plain,
       .out = once},
      {.name = "one_gradient",
       .in = final_upstream,
       .op = {.length = 2, .num_bcast = 1, .num_xs = 1},
       .bodies = plain,
       .wanted = {false, true, false},
       .out = {{5, 5}}},
      {.name = "trajectory",
       .in = row_upstream,
       .op = {.length = 2, .num_bcast = 1, .num_xs = 1, .save_trajectory = true},
       .bodies = plain,
       .out = {{6, 6}, {6, 6}, {3, 3, 1, 1}}},
      // Only c2 is kept, so the upstream has one row, which enters at the last step.
      {.name = "one_checkpoint",
       .in = {init(), T({1, 2}).with({8, 8}), T({1, 2}).with({1, 1}), weight(), rows()},
       .op = {.length = 2,
              .num_bcast = 1,
              .num_xs = 1,
              .save_trajectory = true,
              .num_checkpoints = 1},
       .bodies = recomputing,
       .out = once},
      {.name = "checkpoints",
       .in = {init(), T({2, 2}), ones(), weight(), T({4, 2})},
       .op = {.length = 4, .num_bcast = 1, .num_xs = 1, .num_checkpoints = 2},
       .bodies = recomputing},
      {.name = "uneven_checkpoints_reverse",
       .in = {init(), T({2, 2}), T({2, 2}), weight(), T({5, 2})},
       .op = {.length = 5,
              .num_bcast = 1,
              .num_xs = 1,
              .save_trajectory = true,
              .num_checkpoints = 2,
              .reverse = true},
       .bodies = recomputing},
      {.name = "every_step_kept",
       .in = final_upstream,
       .op = {.length = 2, .num_bcast = 1, .num_xs = 1, .num_checkpoints = 2},
       .bodies = plain,
       .out = once},
      // Rows are visited last to first: c(x1) = 1·2 + 2 = 4, c(x0) = 4·2 + 1 = 9.
      {.name = "reverse",
       .in = {init(), T({2, 2}).with({9, 9, 4, 4}), ones(), weight(), rows()},
       .op = {.length = 2, .num_bcast = 1, .num_xs = 1, .reverse = true},
       .bodies = plain,
       .out = {{4, 4}, {6, 6}, {1, 1, 2, 2}}},
      {.name = "stacked",
       .in = {init(), trajectory(), ones(), T({2, 2}).with({-1, -1, 0, 0}), weight(), rows()},
       .op = {.length = 2, .num_bcast = 1, .num_xs = 1},
       .bodies = stacking,
       .out = {{6, 6}, {6, 6}, {3, 3, 1, 1}}},
      {.name = "stacked_only",
       .in = {init(), trajectory(), T({2, 2}).with({0, 0, -1, -1}), weight(), rows()},
       .op = {.length = 2, .num_bcast = 1, .num_xs = 1, .upstream_present = {false, true}},
       .bodies = stacking,
       .out = once},
      {.name = "stacked_absent",
       .in = final_upstream,
       .op = {.length = 2, .num_bcast = 1, .num_xs = 1, .upstream_present = {true, false}},
       .bodies = stacking,
       .out = once},
      {.name = "no_upstream",
       .in = {init(), trajectory(), weight(), rows()},
       .op = {.length = 2, .num_bcast = 1, .num_xs = 1, .upstream_present = {false}},
       .bodies = plain,
       .out = {{0, 0}, {0, 0}, {0, 0, 0, 0}}},
      // [scan-save-policy]
      {.name = "saved",
       .in = {T({2}).with({0, 0}), T({2, 2}).with({1, 1, 3, 3}), ones(), weight(), rows(),
              T({2, 2}).with({5, 5, 7, 7}), Fixed(DType::I32, {2})},
       .op = {.length = 2, .num_bcast = 1, .num_xs = 1, .upstream_present = {true}, .num_saved = 2},
       .dtypes = {DType::F64},
       .bodies = saving,
       .out = {{4 * std::cos(1.0), 4 * std::cos(1.0)},
               {10 * std::cos(1.0) + 7, 10 * std::cos(1.0) + 7},
               {2 * std::cos(1.0), 2 * std::cos(1.0), 1, 1}}},
      {.name = "saved_with_checkpoints",
       .in = {init(), T({2, 2}), ones(), weight(), T({5, 2}), T({5, 2}), Fixed(DType::I32, {5})},
       .op = {.length = 5, .num_bcast = 1, .num_xs = 1, .num_checkpoints = 2, .num_saved = 2},
       .bodies = saving_some},
      {.name = "integers",
       .in = {ones(), Fixed(DType::I32, {}).with({0}), T({2, 2}), Fixed(DType::I32, {2}), ones(),
              Fixed(DType::I32, {2})},
       .op = {.length = 2, .num_carry = 2, .num_xs = 1},
       .bodies = counting,
       .out = {{4, 4}}},
      {.name = "no_steps",
       .in = {init(), T({0, 2}), ones(), weight(), T({0, 2})},
       .op = {.length = 0, .num_bcast = 1, .num_xs = 1},
       .bodies = plain,
       .out = {{1, 1}, {0, 0}, {}}},
      {.name = "symbolic",
       .in = {init(), T({Dim::symbol("t"), 2}), ones(), weight(), T({Dim::symbol("t"), 2})},
       .op = {.length = Dim::symbol("t"), .num_bcast = 1, .num_xs = 1},
       .bodies = plain},
  });
}

Cases scan_refusals() {
  const std::vector<In> good = {init(), trajectory(), ones(), weight(), rows()};
  const op::ScanBackward op{.length = 2, .num_bcast = 1, .num_xs = 1};
  op::ScanBackward kept = op;
  kept.num_checkpoints = 1;
  const std::vector<In> thinned = {init(), T({1, 2}), ones(), weight(), rows()};
  return cases_of<op::ScanBackward>({
      {.name = "too_many_checkpoints",
       .in = good,
       .op = {.length = 2, .num_bcast = 1, .num_xs = 1, .num_checkpoints = 3},
       .bodies = plain,
       .rejects = "c1"},
      {.name = "negative_count",
       .in = good,
       .op = {.length = 2, .num_bcast = -1, .num_xs = 1},
       .bodies = plain,
       .rejects = "c1"},
      {.name = "operands_missing",
       .in = {init(), trajectory(), weight(), rows()},
       .op = op,
       .bodies = plain,
       .rejects = "c2"},
      {.name = "counts_overflow",
       .in = good,
       .op = {.length = 2, .num_carry = std::numeric_limits<std::int64_t>::max(), .num_xs = 4},
       .bodies = plain,
       .rejects = "range"},
      {.name = "flags_missing",
       .in = good,
       .op = {.length = 2, .num_bcast = 1, .num_xs = 1, .upstream_present = {true, true}},
       .bodies = plain,
       .rejects = "c2"},
      {.name = "integer_upstream",
       .in = {ones(), Fixed(DType::I32, {}), T({2, 2}), Fixed(DType::I32, {2}), ones(),
              Fixed(DType::I32, {}), Fixed(DType::I32, {2})},
       .op = {.length = 2, .num_carry = 2, .num_xs = 1, .upstream_present = {true, true}},
       .bodies = counting,
       .rejects = "c3"},
      {.name = "trajectory_rows",
       .in = {init(), T({3, 2}), ones(), weight(), rows()},
       .op = op,
       .bodies = plain,
       .rejects = "c4"},
      {.name = "upstream_of_trajectory",
       .in = {init(), trajectory(), T({2, 2}), weight(), rows()},
       .op = op,
       .bodies = plain,
       .rejects = "c5"},
      {.name = "stacked_rows",
       .in = {init(), trajectory(), ones(), T({3, 2}), weight(), rows()},
       .op = op,
       .bodies = stacking,
       .rejects = "c5"},
      {.name = "xs_rows",
       .in = {init(), trajectory(), ones(), weight(), T({3, 2})},
       .op = op,
       .bodies = plain,
       .rejects = "c6"},
      {.name = "saved_rows",
       .in = {init(), trajectory(), ones(), weight(), rows(), T({3, 2}), Fixed(DType::I32, {2})},
       .op = {.length = 2, .num_bcast = 1, .num_xs = 1, .num_saved = 2},
       .bodies = saving,
       .rejects = "c6"},
      {.name = "bcast_type",
       .in = {init(), trajectory(), ones(), T({1}), rows()},
       .op = op,
       .bodies = plain,
       .rejects = "c7"},
      {.name = "no_d_output",
       .in = {init(), trajectory(), ones(), rows(), weight(), rows()},
       .op = op,
       .bodies = plain,
       .rejects = "c8"},
      {.name = "d_output_of_nothing", .in = good, .op = op, .bodies = stacking, .rejects = "c8"},
      {.name = "cotangent_missing",
       .in = good,
       .op = op,
       .bodies = [](DType d) -> std::vector<Body> {
         return {rule_body("body_vjp", {vec(d), vec(d), vec(d)}, {d_output(0, vec(d))},
                           [](Graph&, Inputs in) { return Values{in[3], in[3]}; })};
       },
       .rejects = "c9"},
      {.name = "no_forward_body", .in = thinned, .op = kept, .bodies = plain, .rejects = "c10"},
      {.name = "needless_forward_body",
       .in = good,
       .op = op,
       .bodies = recomputing,
       .rejects = "c10"},
      {.name = "forward_body_outputs",
       .in = thinned,
       .op = kept,
       .bodies = [](DType d) -> std::vector<Body> {
         return {affine_vjp(d), body("forward_body", {vec(d), vec(d), vec(d)},
                                     [](Graph&, Inputs in) { return Values{sum(in[0])}; })};
       },
       .rejects = "c11"},
  });
}

// c' = c² beside an integer counter: dc = 2·c·d.
Body square_vjp(DType d) {
  return rule_body("body_vjp", {vec(d), i32()}, {d_output(0, vec(d))},
                   [](Graph&, Inputs in) { return Values{in[0] * in[2] * 2.0}; });
}
Body square(DType d) {
  return body("forward_body", {vec(d), i32()}, [](Graph&, Inputs in) {
    return Values{in[0] * in[0], in[1] + scalar_like(in[1], 1)};
  });
}
std::vector<Body> squares(DType d) { return {square_vjp(d)}; }
std::vector<Body> squares_again(DType d) { return {square_vjp(d), square(d)}; }

In counter() { return Fixed(DType::I32, {}).with({0}); }
In trips(double n) { return Fixed(DType::I32, {}).with({n}); }
In carry() { return T({2}).with({2, 1}); }

}  // namespace

// [scan-single-sweep] [scan-bcast-grad] [scan-dtypes]
Cases cases(const op::ScanBackward*) {
  Cases all = scan_values();
  for (Case& c : scan_refusals()) all.push_back(std::move(c));
  return all;
}

// [while-ad]
Cases cases(const op::WhileBackward*) {
  const In tape = T({3, 2}).with({2, 1, 4, 1, 0, 0});
  const In counts = Fixed(DType::I32, {3}).with({0, 1, 0});
  const std::vector<In> two_trips = {carry(), counter(), tape, counts, trips(2), ones()};
  const op::WhileBackward op{.num_carry = 2, .max_iterations = 3};
  const std::vector<In> thin = {
      carry(),  counter(), T({2, 2}).with({2, 1, 0, 0}), Fixed(DType::I32, {2}).with({0, 0}),
      trips(2), ones()};
  const op::WhileBackward kept{.num_carry = 2, .max_iterations = 3, .num_checkpoints = 2};
  return cases_of<op::WhileBackward>({
      {.name = "two_trips",
       .in = two_trips,
       .op = op,
       .dtypes = dtypes::floats | dtypes::complexes,
       .bodies = squares,
       .out = {{32, 4}}},
      {.name = "no_trip",
       .in = {carry(), counter(), tape, counts, trips(0), ones()},
       .op = op,
       .bodies = squares,
       .out = {{1, 1}}},
      {.name = "no_upstream",
       .in = {carry(), counter(), tape, counts, trips(2)},
       .op = {.num_carry = 2, .max_iterations = 3, .upstream_present = {false, false}},
       .bodies = squares,
       .out = {{0, 0}}},
      {.name = "checkpoints", .in = thin, .op = kept, .bodies = squares_again, .out = {{32, 4}}},
      {.name = "own_trips",
       .in = {carry(), counter(), T({3, 2}), counts, Fixed(DType::I32, {}).between(0, 4), ones()},
       .op = op,
       .bodies = squares},
      {.name = "too_many_trips",
       .in = {carry(), counter(), tape, counts, trips(4), ones()},
       .op = op,
       .bodies = squares,
       .fails = ErrorCode::IndexOutOfRange},
      {.name = "too_many_checkpoints",
       .in = two_trips,
       .op = {.num_carry = 2, .max_iterations = 3, .num_checkpoints = 4},
       .bodies = squares,
       .rejects = "c1"},
      {.name = "operands_missing",
       .in = {carry(), counter(), tape, counts, trips(2)},
       .op = op,
       .bodies = squares,
       .rejects = "c2"},
      {.name = "too_many_upstreams",
       .in = {carry(), counter(), tape, counts, trips(2), ones(), ones()},
       .op = op,
       .bodies = squares,
       .rejects = "c2"},
      {.name = "integer_upstream",
       .in = {carry(), counter(), tape, counts, trips(2), counter()},
       .op = {.num_carry = 2, .max_iterations = 3, .upstream_present = {false, true}},
       .bodies = squares,
       .rejects = "c3"},
      {.name = "tape_rows",
       .in = {carry(), counter(), T({2, 2}), counts, trips(2), ones()},
       .op = op,
       .bodies = squares,
       .rejects = "c4"},
      {.name = "trip_count_type",
       .in = {carry(), counter(), tape, counts, T({}), ones()},
       .op = op,
       .bodies = squares,
       .rejects = "c5"},
      {.name = "upstream_type",
       .in = {carry(), counter(), tape, counts, trips(2), T({1})},
       .op = op,
       .bodies = squares,
       .rejects = "c6"},
      {.name = "carry_type",
       .in = {T({1}), counter(), T({3, 1}), counts, trips(2), T({1})},
       .op = op,
       .bodies = squares,
       .rejects = "c7"},
      {.name = "no_d_output",
       .in = two_trips,
       .op = op,
       .bodies = [](DType d) -> std::vector<Body> {
         return {rule_body("body_vjp", {vec(d), i32()}, {},
                           [](Graph&, Inputs in) { return Values{in[0]}; })};
       },
       .rejects = "c8"},
      {.name = "integer_cotangent",
       .in = two_trips,
       .op = op,
       .bodies = [](DType d) -> std::vector<Body> {
         return {rule_body("body_vjp", {vec(d), i32()}, {d_output(0, vec(d))},
                           [](Graph&, Inputs in) { return Values{in[2], in[1]}; })};
       },
       .rejects = "c9"},
      {.name = "no_forward_body", .in = thin, .op = kept, .bodies = squares, .rejects = "c10"},
      {.name = "needless_forward_body",
       .in = two_trips,
       .op = op,
       .bodies = squares_again,
       .rejects = "c10"},
      {.name = "forward_body_outputs",
       .in = thin,
       .op = kept,
       .bodies = [](DType d) -> std::vector<Body> {
         return {square_vjp(d), body("forward_body", {vec(d), i32()},
                                     [](Graph&, Inputs in) { return Values{in[0]}; })};
       },
       .rejects = "c11"},
  });
}

}  // namespace ricci::testing
