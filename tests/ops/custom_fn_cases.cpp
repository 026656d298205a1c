#include "ops/cases.h"
#include "ops/control_bodies.h"

namespace ricci::testing {
namespace {

Type count() { return i32(); }

// y = x·k for a float x and an integer k.
Body scaled(DType d) {
  return body("fwd", {vec(d), count()},
              [d](Graph&, Inputs in) { return Values{in[0] * cast_to(in[1], d)}; });
}
// in: x, k, y, dy
Values scaled_vjp(Graph&, Inputs in) { return {in[3] * cast_to(in[1], in[3].dtype())}; }
Body vjp(DType d) {
  return rule_body("vjp", {vec(d), count()}, {primal_output(0, vec(d)), d_output(0, vec(d))},
                   scaled_vjp);
}
// in: x, k, tx
Body jvp(DType d) {
  return rule_body("jvp", {vec(d), count()}, {tangent(0, vec(d))},
                   [](Graph&, Inputs in) { return Values{in[2] * cast_to(in[1], in[2].dtype())}; });
}
std::vector<Body> with_rules(DType d) { return {scaled(d), vjp(d), jvp(d)}; }

// y = x², with 2x as what the vjp needs.
std::vector<Body> squared(DType d) {
  return {
      body("fwd", {vec(d)}, [](Graph&, Inputs in) { return Values{in[0] * in[0], in[0] * 2.0}; }),
      rule_body("vjp", {vec(d)},
                {primal_output(0, vec(d)), d_output(0, vec(d)), residual(0, vec(d))},
                [](Graph&, Inputs in) { return Values{in[2] * in[3]}; })};
}

// (x + 1, which elements are positive); the second output has no cotangent.
std::vector<Body> mixed(DType d) {
  return {
      body("fwd", {vec(d)},
           [](Graph&, Inputs in) { return Values{in[0] + 1.0, gt(in[0], scalar_like(in[0], 0))}; }),
      rule_body("vjp", {vec(d)},
                {primal_output(0, vec(d)), primal_output(1, boolean({2})), d_output(0, vec(d))},
                [](Graph&, Inputs in) { return Values{in[3]}; }),
      rule_body("jvp", {vec(d)}, {tangent(0, vec(d)), primal_output(1, boolean({2}))},
                [](Graph&, Inputs in) { return Values{in[1]}; })};
}

// x + shift, where shift takes no gradient.
std::vector<Body> shifted(DType d) {
  const auto add_both = [](Graph&, Inputs in) { return Values{in[0] + in[1]}; };
  return {body("fwd", {vec(d), vec(d)}, add_both),
          rule_body("vjp", {vec(d), vec(d)}, {primal_output(0, vec(d)), d_output(0, vec(d))},
                    [](Graph&, Inputs in) { return Values{in[3]}; }),
          rule_body("jvp", {vec(d), vec(d)}, {tangent(0, vec(d))},
                    [](Graph&, Inputs in) { return Values{in[2]}; })};
}

// x·w, for a w that examples may share, without a jvp or without a vjp.
Body product(DType d) {
  return body("fwd", {vec(d), vec(d)}, [](Graph&, Inputs in) { return Values{in[0] * in[1]}; });
}
std::vector<Body> product_vjp(DType d) {
  return {product(d),
          rule_body("vjp", {vec(d), vec(d)}, {primal_output(0, vec(d)), d_output(0, vec(d))},
                    [](Graph&, Inputs in) {
                      return Values{in[3] * conjugate(in[1]), in[3] * conjugate(in[0])};
                    })};
}
std::vector<Body> product_jvp(DType d) {
  return {product(d),
          rule_body("jvp", {vec(d), vec(d)}, {tangent(0, vec(d)), tangent(1, vec(d))},
                    [](Graph&, Inputs in) { return Values{in[2] * in[1] + in[0] * in[3]}; })};
}
// (x·w, sin x)
std::vector<Body> two_outputs(DType d) {
  return {body("fwd", {vec(d), vec(d)},
               [](Graph&, Inputs in) { return Values{in[0] * in[1], sin(in[0])}; }),
          rule_body("vjp", {vec(d), vec(d)},
                    {primal_output(0, vec(d)), primal_output(1, vec(d)), d_output(0, vec(d)),
                     d_output(1, vec(d))},
                    [](Graph&, Inputs in) {
                      return Values{in[4] * conjugate(in[1]) + in[5] * conjugate(cos(in[0])),
                                    in[4] * conjugate(in[0])};
                    })};
}

// A `vjp` (or `jvp`) beside `scaled` that takes and gives something else.
template <class F>
std::vector<Body> with_vjp(DType d, std::vector<Type> primals, std::vector<Special> special,
                           F&& build) {
  return {scaled(d), rule_body("vjp", primals, special, build)};
}
template <class F>
std::vector<Body> with_jvp(DType d, std::vector<Type> primals, std::vector<Special> special,
                           F&& build) {
  return {scaled(d), rule_body("jvp", primals, special, build)};
}
Values first(Graph&, Inputs in) { return {in[0]}; }

Cases refused_rules() {
  const std::vector<In> in = {T({2}), Fixed(DType::I32, {})};
  return cases_of<op::CustomFn>({
      {.name = "vjp_primal_missing",
       .in = in,
       .bodies =
           [](DType d) {
             return with_vjp(d, {vec(d)}, {primal_output(0, vec(d)), d_output(0, vec(d))}, first);
           },
       .rejects = "c4"},
      {.name = "no_d_output",
       .in = in,
       .bodies =
           [](DType d) {
             return with_vjp(d, {vec(d), count()}, {primal_output(0, vec(d))}, first);
           },
       .rejects = "c5"},
      {.name = "no_primal_output",
       .in = in,
       .bodies =
           [](DType d) { return with_vjp(d, {vec(d), count()}, {d_output(0, vec(d))}, first); },
       .rejects = "c5"},
      {.name = "d_output_type",
       .in = in,
       .bodies =
           [](DType d) {
             return with_vjp(d, {vec(d), count()},
                             {primal_output(0, vec(d)), d_output(0, {d, {3}})}, first);
           },
       .rejects = "c5"},
      {.name = "d_output_of_nothing",
       .in = in,
       .bodies =
           [](DType d) {
             return with_vjp(d, {vec(d), count()},
                             {primal_output(0, vec(d)), d_output(0, vec(d)), d_output(1, vec(d))},
                             first);
           },
       .rejects = "c5"},
      {.name = "role_twice",
       .in = in,
       .bodies =
           [](DType d) {
             return with_vjp(d, {vec(d), count()},
                             {primal_output(0, vec(d)), d_output(0, vec(d)), d_output(0, vec(d))},
                             first);
           },
       .rejects = "c5"},
      {.name = "integer_cotangent",
       .in = in,
       .bodies =
           [](DType d) {
             return with_vjp(d, {vec(d), count()}, {primal_output(0, vec(d)), d_output(0, vec(d))},
                             [](Graph&, Inputs i) { return Values{i[0], i[1]}; });
           },
       .rejects = "c6"},
      {.name = "cotangent_type",
       .in = in,
       .bodies =
           [](DType d) {
             return with_vjp(d, {vec(d), count()}, {primal_output(0, vec(d)), d_output(0, vec(d))},
                             [](Graph&, Inputs i) { return Values{sum(i[0])}; });
           },
       .rejects = "c6"},
      {.name = "jvp_primal_missing",
       .in = in,
       .bodies = [](DType d) { return with_jvp(d, {vec(d)}, {tangent(0, vec(d))}, first); },
       .rejects = "c7"},
      {.name = "no_tangent",
       .in = in,
       .bodies = [](DType d) { return with_jvp(d, {vec(d), count()}, {}, first); },
       .rejects = "c8"},
      {.name = "integer_tangent",
       .in = in,
       .bodies =
           [](DType d) {
             return with_jvp(d, {vec(d), count()}, {tangent(0, vec(d)), tangent(1, count())},
                             first);
           },
       .rejects = "c8"},
      {.name = "two_tangents",
       .in = in,
       .bodies =
           [](DType d) {
             return with_jvp(d, {vec(d), count()}, {tangent(0, vec(d))},
                             [](Graph&, Inputs i) { return Values{i[0], i[0]}; });
           },
       .rejects = "c9"},
  });
}

}  // namespace

// [customfn-shape-check] [customfn-none-grads] [customfn-residuals] [multi-output-full]
Cases cases(const op::CustomFn*) {
  const std::vector<In> in = {T({2}).with({1, 2}), Fixed(DType::I32, {}).with({3})};
  const std::vector<In> one = {T({2}).with({-1, 2})};
  const std::vector<In> two = {T({2}).with({1, 2}), T({2}).with({10, 20})};
  Cases all = cases_of<op::CustomFn>({
      {.name = "without_rules",
       .in = in,
       .bodies = [](DType d) { return std::vector<Body>{scaled(d)}; },
       .out = {{3, 6}}},
      {.name = "with_rules",
       .in = in,
       .dtypes = dtypes::floats | dtypes::complexes,
       .bodies = with_rules,
       .out = {{3, 6}}},
      {.name = "residual_unwanted",
       .in = one,
       .op = {.num_residuals = 1},
       .bodies = squared,
       .out = {{1, 4}}},
      {.name = "residual",
       .in = one,
       .op = {.num_residuals = 1},
       .bodies = squared,
       .wanted = {true, true},
       .out = {{1, 4}, {-2, 4}}},
      {.name = "mixed_outputs", .in = one, .bodies = mixed, .out = {{0, 3}, {0, 1}}},
      {.name = "no_gradient",
       .in = two,
       .op = {.no_gradient = {1}},
       .bodies = shifted,
       .out = {{11, 22}}},
      // Both modes with one rule. [customfn-partial-rules]
      {.name = "vjp_only", .in = {T({2}), T({2})}, .bodies = product_vjp},
      {.name = "jvp_only", .in = {T({2}), T({2})}, .bodies = product_jvp},
      {.name = "jvp_transposed",
       .in = {T({2}), T({2})},
       .op = {.transpose_jvp = true},
       .bodies = product_jvp},
      {.name = "mixed_transposed",
       .in = one,
       .op = {.transpose_jvp = true},
       .bodies =
           [](DType d) {
             std::vector<Body> bodies = mixed(d);
             bodies.erase(bodies.begin() + 1);
             return bodies;
           }},
      {.name = "two_outputs", .in = {T({2}), T({2})}, .bodies = two_outputs},
      {.name = "symbolic",
       .in = {T({Dim::symbol("n")})},
       .bodies =
           [](DType d) {
             return std::vector<Body>{body("fwd", {{d, {Dim::symbol("n")}}}, first)};
           }},
      {.name = "input_type",
       .in = {T({3}), Fixed(DType::I32, {})},
       .bodies = with_rules,
       .rejects = "c1"},
      {.name = "only_residuals",
       .in = one,
       .op = {.num_residuals = 2},
       .bodies = squared,
       .rejects = "c2"},
      {.name = "gradient_missing", .in = two, .bodies = shifted, .rejects = "c6"},
      {.name = "unknown_input",
       .in = two,
       .op = {.no_gradient = {2}},
       .bodies = shifted,
       .rejects = "c3"},
      {.name = "listed_twice",
       .in = two,
       .op = {.no_gradient = {1, 1}},
       .bodies = shifted,
       .rejects = "c3"},
      {.name = "nothing_to_transpose",
       .in = two,
       .op = {.transpose_jvp = true},
       .bodies = [](DType d) { return std::vector<Body>{product(d)}; },
       .rejects = "c10"},
      {.name = "both_rules_transposed",
       .in = in,
       .op = {.transpose_jvp = true},
       .bodies = with_rules,
       .rejects = "c10"},
  });
  for (Case& c : refused_rules()) all.push_back(std::move(c));
  return all;
}

}  // namespace ricci::testing
