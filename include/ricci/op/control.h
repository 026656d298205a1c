// Control flow: ops with bodies. A body is a graph of its own; its inputs, in order, are bound to
// the op's operands, and it sees nothing else of the outside.
#pragma once

#include <array>
#include <string_view>

#include "ricci/op/fields.h"

namespace ricci {

/// What a gradient keeps of a checkpointed sub-graph's inner values.
enum class CheckpointPolicy : std::uint8_t { Nothing, Matmuls, Named };
constexpr auto enumerator_names(CheckpointPolicy) {
  return std::to_array<std::string_view>({"nothing", "matmuls", "named"});
}

/// What a gradient keeps of the steps of a scan besides what its attributes make it keep:
///   auto: the most that fits a byte budget; without a budget the carries
///   all: every inner value of a step that its derivative reads
///   matmuls, named: of these, results of products and convolutions, or the values named
///   carries: the carries only; a step's inner values are computed again from them
///   recompute: some carries; those between are computed again too
enum class ScanSave : std::uint8_t { Auto, All, Matmuls, Named, Carries, Recompute };
constexpr auto enumerator_names(ScanSave) {
  return std::to_array<std::string_view>(
      {"auto", "all", "matmuls", "named", "carries", "recompute"});
}

/// A scan's policy with what belongs to it.
struct ScanSaving {
  ScanSave policy = ScanSave::Auto;
  std::vector<std::string> names = {};     ///< values of the body, for Named and Auto
  std::optional<std::int64_t> bytes = {};  ///< the budget, for Auto and Recompute
};

}  // namespace ricci

namespace ricci::op {

/// Runs one of two bodies; the other does not run at all.
///   predicate ≠ 0 ? then(captures…) : else(captures…)
struct If {
  static constexpr OpInfo info{
      .name = "if",
      .operands = "predicate, captures...",
      .results = "outputs...",
      .bodies = "then, else",
      .help = "runs one of two bodies",
      .formula = "outputs = predicate ≠ 0 ? then(captures…) : else(captures…)",
      .constraints = "c1 shape: predicate has one element\n"
                     "c2 shape: both bodies take the captures, with their types\n"
                     "c3 shape: both bodies give the same types",
      .no_gradient = "predicate"};
  static void fields(auto&, auto&&) {}
  bool operator==(const If&) const = default;
};

/// A loop of known length over rows of `xs`.
///   (c_{t+1}…, y_t…) = body(c_t…, bcasts…, xs[t]…),  t = 0 … length-1
/// Results: each carry's final value (or, with save_trajectory, all values c_1 … c_L stacked, or
/// the num_checkpoints kept ones), then each y stacked. `reverse` visits the rows last to first.
struct Scan {
  Dim length = 0;
  std::int64_t num_carry = 1;
  std::int64_t num_bcast = 0;
  std::int64_t num_xs = 0;
  bool save_trajectory = false;
  std::int64_t num_checkpoints = 0;
  bool reverse = false;
  ScanSave save = ScanSave::Auto;
  std::vector<std::string> save_names = {};
  std::optional<std::int64_t> save_bytes = {};

  static constexpr OpInfo info{
      .name = "scan",
      .operands = "operands...",
      .results = "results...",
      .bodies = "body",
      .help = "a loop of known length over rows",
      .formula = "(c_{t+1}…, y_t…) = body(c_t…, bcasts…, xs[t]…)",
      .constraints =
          "c1 attr: operands are num_carry carries, num_bcast bcasts and num_xs xs\n"
          "c2 shape: every xs has length as its first size\n"
          "c3 shape: the body takes carries, bcasts and one row of each xs, with their types\n"
          "c4 shape: the body gives each carry back with its type, then any stacked outputs\n"
          "c5 attr: 0 ≤ num_checkpoints ≤ length, and the counts are not negative\n"
          "c6 attr: save = named has save_names, which only auto may have besides; save_bytes is "
          "not negative and goes with auto or recompute, without num_checkpoints",
      .keeps_residuals = true};
  static void fields(auto& self, auto&& f) {
    f("length", self.length, "number of steps", Presence::Required);
    f("num_carry", self.num_carry, "values handed from step to step");
    f("num_bcast", self.num_bcast, "operands every step sees whole");
    f("num_xs", self.num_xs, "operands a step sees one row of");
    f("save_trajectory", self.save_trajectory, "give all carries, not the last only");
    f("num_checkpoints", self.num_checkpoints, "carries kept for the backward pass; 0 keeps all");
    f("reverse", self.reverse, "visit rows last to first");
    f("save", self.save, "what a gradient keeps of each step");
    f("save_names", self.save_names, "values of the body that a gradient keeps");
    f("save_bytes", self.save_bytes, "bytes that what a gradient keeps may take",
      Presence::Defaulted, Range::Any);
  }
  bool operator==(const Scan&) const = default;
};

/// A loop that runs as long as its condition holds, or max_iterations times at most.
///   c ← body(c…) while every element of cond(c…) is non-zero
/// Optional results: how many trips were made, and per carry a tape of the values entering trips
/// 0, s, 2s, …, with s = 1, or ⌈max_iterations/num_checkpoints⌉ when that is not 0. Tape rows of
/// trips not made are zero. There are tapes only when the loop has a bound.
struct While {
  std::optional<std::int64_t> max_iterations = {};
  std::int64_t num_checkpoints = 0;

  static constexpr OpInfo info{
      .name = "while",
      .operands = "carries...",
      .results = "finals..., trip_count?, tapes...?",
      .bodies = "cond, body",
      .help = "a loop that runs as long as its condition holds",
      .formula = "c ← body(c…) while every element of cond(c…) is non-zero",
      .constraints = "c1 attr: there is a carry\n"
                     "c2 shape: both bodies take the carries, with their types\n"
                     "c3 shape: cond gives one value, of any shape\n"
                     "c4 shape: the body gives each carry back with its type, and nothing else\n"
                     "c5 attr: max_iterations is not negative, and 0 ≤ num_checkpoints ≤ "
                     "max_iterations",
      .keeps_residuals = true};
  static void fields(auto& self, auto&& f) {
    f("max_iterations", self.max_iterations, "most trips there can be; no bound when absent");
    f("num_checkpoints", self.num_checkpoints, "carries kept on a tape; 0 keeps all");
  }
  bool operator==(const While&) const = default;
};

/// A sub-graph with derivative rules of its own.
///   (outputs…, residuals…) = fwd(inputs…)
///
/// `vjp` takes the inputs, and special inputs by role: primal_output(i) for every output,
/// d_output(i) for every output of a float or complex dtype, and residual(i) where it likes; it
/// gives one cotangent per input that has a derivative. `jvp` takes the inputs, tangent(i) for
/// every input that has a derivative, and primal_output(i) where it likes; it gives one tangent per
/// output of a float or complex dtype. An input has a derivative when its dtype is float or complex
/// and `no_gradient` does not list it. Reverse mode goes through the parts of `fwd` where there is
/// no vjp, or, with `transpose_jvp`, through the jvp, which is linear in the tangents.
struct CustomFn {
  std::int64_t num_residuals = 0;
  std::vector<std::int64_t> no_gradient = {};
  bool transpose_jvp = false;

  static constexpr OpInfo info{
      .name = "custom_fn",
      .operands = "inputs...",
      .results = "outputs..., residuals...?",
      .bodies = "fwd, vjp?, jvp?",
      .help = "a sub-graph with derivative rules of its own",
      .formula = "(outputs…, residuals…) = fwd(inputs…)",
      .constraints =
          "c1 shape: fwd takes the inputs, with their types\n"
          "c2 attr: fwd gives an output besides its num_residuals residuals\n"
          "c3 attr: no_gradient lists inputs, each once\n"
          "c4 shape: vjp takes the inputs, with their types\n"
          "c5 shape: vjp has every primal_output and d_output, with the outputs' types\n"
          "c6 shape: vjp gives one cotangent per input that has a derivative, with its type\n"
          "c7 shape: jvp takes the inputs, with their types\n"
          "c8 shape: jvp has the tangent of every input that has a derivative, with its type\n"
          "c9 shape: jvp gives one tangent per output that has a derivative, with its type\n"
          "c10 attr: transpose_jvp needs a jvp, and no vjp",
      .keeps_residuals = true};
  static void fields(auto& self, auto&& f) {
    f("num_residuals", self.num_residuals, "last outputs of fwd, kept for vjp");
    f("no_gradient", self.no_gradient, "float inputs without a derivative, by position");
    f("transpose_jvp", self.transpose_jvp, "the gradient is the transpose of jvp");
  }
  bool operator==(const CustomFn&) const = default;
};

/// A sub-graph whose inner values a gradient computes again instead of keeping them.
///   (outputs…, kept…) = body(inputs…)
/// The last `num_kept` outputs of the body are values a gradient keeps after all; they are results
/// only when asked for. `policy` says which those will be when the node is differentiated: no inner
/// value, the results of matrix products and convolutions, or the values named in `names`.
struct Checkpoint {
  CheckpointPolicy policy = CheckpointPolicy::Nothing;
  std::vector<std::string> names = {};
  std::int64_t num_kept = 0;

  static constexpr OpInfo info{.name = "checkpoint",
                               .operands = "inputs...",
                               .results = "outputs..., kept...?",
                               .bodies = "body",
                               .help = "a sub-graph whose inner values a gradient computes again",
                               .formula = "(outputs…, kept…) = body(inputs…)",
                               .constraints =
                                   "c1 shape: the body takes the inputs, with their types\n"
                                   "c2 attr: the body gives num_kept values besides its outputs\n"
                                   "c3 attr: names are given with the policy named, and only then",
                               .vjp = RuleSource::Written,
                               .jvp = RuleSource::Written,
                               .batch = RuleSource::Written,
                               .keeps_residuals = true};
  static void fields(auto& self, auto&& f) {
    f("policy", self.policy, "what a gradient keeps: nothing, matmuls or named values");
    f("names", self.names, "values of the body that a gradient keeps");
    f("num_kept", self.num_kept, "last outputs of the body, kept for a gradient");
  }
  bool operator==(const Checkpoint&) const = default;
};

/// The gradients of a scan in one sweep from its last step to its first.
///   dc ← dc + upstream
///   (dc…, db…, dx_t…) = body_vjp(c_t…, bcasts…, xs[t]…, saved[t]…, dc…, dy_t…)
/// db is summed over the steps; dx_t is row t of its result.
///
/// Operands, in order: inits; per carry its trajectory, all rows or the num_checkpoints kept ones;
/// the upstream cotangents that are there, per carry (of the final value, or of the trajectory with
/// save_trajectory: row k enters at the step that made it), then per stacked output; bcasts; xs;
/// inner values of the steps that the scan saved, stacked, which have no result.
/// `upstream_present` has one flag per output of the scan's body, carries first. Without it all
/// that can be there are: every stacked output, and every carry of a float or complex dtype.
///
/// Integers have no cotangent: an integer carry, bcast or xs has no result, and body_vjp gives no
/// output for it.
struct ScanBackward {
  Dim length = 0;
  std::int64_t num_carry = 1;
  std::int64_t num_bcast = 0;
  std::int64_t num_xs = 0;
  bool save_trajectory = false;
  std::int64_t num_checkpoints = 0;
  bool reverse = false;
  std::vector<bool> upstream_present = {};
  std::int64_t num_saved = 0;

  static constexpr OpInfo info{
      .name = "scan_backward",
      .operands = "operands...",
      .results = "dinits..., dbcasts..., dxs...",
      .bodies = "body_vjp, forward_body?",
      .help = "the gradients of a scan, in one sweep",
      .formula = "(dc…, db…, dx_t…) = body_vjp(c_t…, bcasts…, xs[t]…, saved[t]…, dc…, dy_t…), "
                 "t = L-1 … 0",
      .constraints =
          "c1 attr: 0 ≤ num_checkpoints ≤ length, and the counts are not negative\n"
          "c2 attr: operands are inits, trajectories, the upstreams present, bcasts, xs and saved "
          "values\n"
          "c3 dtype: an integer carry has no upstream\n"
          "c4 shape: a trajectory is its carry behind an axis of the kept rows\n"
          "c5 shape: an upstream has the type of what it is the cotangent of\n"
          "c6 shape: every xs and saved value has length as its first size\n"
          "c7 shape: body_vjp takes carries, bcasts and one row of each xs and saved value, with "
          "their types\n"
          "c8 shape: body_vjp has a d_output for each carry and stacked output, with its type\n"
          "c9 shape: body_vjp gives the cotangents of carries, bcasts and rows, with their types\n"
          "c10 attr: forward_body is there when carries must be recomputed, and only then\n"
          "c11 shape: forward_body takes what the scan's body takes and gives the carries first",
      .vjp = RuleSource::Expansion,
      .jvp = RuleSource::Expansion};
  static void fields(auto& self, auto&& f) {
    f("length", self.length, "number of steps", Presence::Required);
    f("num_carry", self.num_carry, "values handed from step to step");
    f("num_bcast", self.num_bcast, "operands every step sees whole");
    f("num_xs", self.num_xs, "operands a step sees one row of");
    f("save_trajectory", self.save_trajectory, "the scan gave all carries, not the last only");
    f("num_checkpoints", self.num_checkpoints, "carries kept by the scan; 0 when all are");
    f("reverse", self.reverse, "the scan visited rows last to first");
    f("upstream_present", self.upstream_present, "which body outputs have a cotangent");
    f("num_saved", self.num_saved, "operands with an inner value of every step");
  }
  bool operator==(const ScanBackward&) const = default;
};

/// The gradients of a taped while, from its last trip to its first.
///   dc ← upstream;  dc ← body_vjp(c_t…, dc…),  t = trip_count-1 … 0
/// Operands, in order: initial carries; their tapes; the trip count; the upstream cotangents that
/// are there. `upstream_present` has one flag per carry; without it every carry of a float or
/// complex dtype has one. An integer carry has no cotangent and no result.
struct WhileBackward {
  std::int64_t num_carry = 1;
  std::int64_t max_iterations = 0;
  std::int64_t num_checkpoints = 0;
  std::vector<bool> upstream_present = {};

  static constexpr OpInfo info{
      .name = "while_backward",
      .operands = "operands...",
      .results = "dcarries...",
      .bodies = "body_vjp, forward_body?",
      .help = "the gradients of a taped while",
      .formula = "dc ← body_vjp(c_t…, dc…), t = trip_count-1 … 0",
      .constraints =
          "c1 attr: num_carry and max_iterations are not negative, and 0 ≤ num_checkpoints ≤ "
          "max_iterations\n"
          "c2 attr: operands are carries, tapes, the trip count and the upstreams present\n"
          "c3 dtype: an integer carry has no upstream\n"
          "c4 shape: a tape is its carry behind an axis of the kept rows\n"
          "c5 dtype: the trip count is an i32 of rank 0\n"
          "c6 shape: an upstream has its carry's type\n"
          "c7 shape: body_vjp takes the carries, with their types\n"
          "c8 shape: body_vjp has a d_output for each carry that has a cotangent, with its type\n"
          "c9 shape: body_vjp gives one cotangent per carry that has one, with its type\n"
          "c10 attr: forward_body is there when carries must be recomputed, and only then\n"
          "c11 shape: forward_body takes the carries and gives them back",
      .vjp = RuleSource::Expansion,
      .jvp = RuleSource::Expansion};
  static void fields(auto& self, auto&& f) {
    f("num_carry", self.num_carry, "values handed from trip to trip");
    f("max_iterations", self.max_iterations, "the bound of the loop", Presence::Required);
    f("num_checkpoints", self.num_checkpoints, "carries kept by the loop; 0 when all are");
    f("upstream_present", self.upstream_present, "which carries have a cotangent");
  }
  bool operator==(const WhileBackward&) const = default;
};

}  // namespace ricci::op
