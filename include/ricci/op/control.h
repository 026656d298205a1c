// Control flow: ops with bodies. A body is a graph of its own; its inputs, in order, are bound to
// the op's operands, and it sees nothing else of the outside.
#pragma once

#include "ricci/op/fields.h"

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
                     "c3 shape: both bodies give the same types"};
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
          "c5 attr: 0 ≤ num_checkpoints ≤ length, and the counts are not negative"};
  static void fields(auto& self, auto&& f) {
    f("length", self.length, "number of steps", Presence::Required);
    f("num_carry", self.num_carry, "values handed from step to step");
    f("num_bcast", self.num_bcast, "operands every step sees whole");
    f("num_xs", self.num_xs, "operands a step sees one row of");
    f("save_trajectory", self.save_trajectory, "give all carries, not the last only");
    f("num_checkpoints", self.num_checkpoints, "carries kept for the backward pass; 0 keeps all");
    f("reverse", self.reverse, "visit rows last to first");
  }
  bool operator==(const Scan&) const = default;
};

}  // namespace ricci::op
