#include "ricci/build/build.h"

#include "ops/cases.h"
#include "ops/control_bodies.h"

namespace ricci::testing {
namespace {

// tanh(x·w), with x·w behind it when it is to be kept.
std::vector<Body> layer(DType d, bool kept) {
  return {body("body", {{d, {2, 3}}, {d, {3, 2}}}, [=](Graph&, Inputs in) {
    const Value product = matmul(in[0], in[1]).named("product");
    return kept ? Values{tanh(product), product} : Values{tanh(product)};
  })};
}
// Three values in a row, one of them used twice, and an integer passed through.
std::vector<Body> chain(DType d) {
  return {body("body", {{d, {3}}, i32()}, [](Graph&, Inputs in) {
    const Value first = sin(in[0]).named("first");
    const Value second = (first * first + in[0]).named("second");
    return Values{exp(second) * first, in[1] + scalar_like(in[1], 1)};
  })};
}
std::vector<Body> plain_layer(DType d) { return layer(d, false); }
std::vector<Body> keeping_layer(DType d) { return layer(d, true); }

}  // namespace

Cases cases(const op::Checkpoint*) {
  return cases_of<op::Checkpoint>({
      {.name = "nothing_kept", .in = {T({2, 3}), T({3, 2})}, .bodies = plain_layer},
      {.name = "matmuls_kept",
       .in = {T({2, 3}), T({3, 2})},
       .op = {.policy = CheckpointPolicy::Matmuls},
       .bodies = plain_layer},
      {.name = "named_kept",
       .in = {T({2, 3}), T({3, 2})},
       .op = {.policy = CheckpointPolicy::Named, .names = {"product"}},
       .bodies = plain_layer},
      {.name = "kept_not_wanted",
       .in = {T({2, 3}), T({3, 2})},
       .op = {.num_kept = 1},
       .bodies = keeping_layer},
      {.name = "kept_wanted",
       .in = {T({2, 3}), T({3, 2})},
       .op = {.num_kept = 1},
       .bodies = keeping_layer,
       .wanted = {true, true}},
      {.name = "chain", .in = {T({3}), Fixed(DType::I32, {})}, .bodies = chain},
      {.name = "chain_keeps_one",
       .in = {T({3}), Fixed(DType::I32, {})},
       .op = {.policy = CheckpointPolicy::Named, .names = {"second", "elsewhere"}},
       .bodies = chain},
      {.name = "input_type", .in = {T({2, 4}), T({3, 2})}, .bodies = plain_layer, .rejects = "c1"},
      {.name = "too_many_kept",
       .in = {T({2, 3}), T({3, 2})},
       .op = {.num_kept = 2},
       .bodies = plain_layer,
       .rejects = "c2"},
      {.name = "no_names",
       .in = {T({2, 3}), T({3, 2})},
       .op = {.policy = CheckpointPolicy::Named},
       .bodies = plain_layer,
       .rejects = "c3"},
      {.name = "names_without_policy",
       .in = {T({2, 3}), T({3, 2})},
       .op = {.names = {"product"}},
       .bodies = plain_layer,
       .rejects = "c3"},
  });
}

}  // namespace ricci::testing
