#include "ricci/build/build.h"

#include "ops/cases.h"

namespace ricci::testing {
namespace {

using Inputs = std::span<const Value>;

Body body(std::string role, std::vector<Type> inputs, const BodyFunction& build) {
  return {role, make_body(role, inputs, build, default_registry())};
}

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
      {.name = "operands_missing",
       .in = {T({3})},
       .op = {.length = 2, .num_xs = 1},
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

}  // namespace ricci::testing
