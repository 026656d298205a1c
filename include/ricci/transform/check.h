// A gradient checker: are the derivatives of a graph those of the function it computes?
//
//   DerivativeReport report = check_derivatives(graph, {"w", "b"}, feeds);
//   if (!report.ok()) std::puts(report.to_string().c_str());
//
// For random directions t and cotangents u it compares three numbers that must agree: ⟨u, J t⟩ by
// forward mode, ⟨Jᵀu, t⟩ by reverse mode, and a difference quotient of ⟨u, f⟩ along t.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ricci/interp/interpreter.h"

namespace ricci {

struct CheckOptions {
  int directions = 3;      ///< random directions tried per value, and for all values together
  std::uint64_t seed = 1;  ///< of the directions
  int order = 1;           ///< 2 checks the derivatives of the gradient as well
  /// Relative gaps that are accepted; 0 chooses by the graph's narrowest float dtype.
  double adjoint_tolerance = 0;
  double difference_tolerance = 0;
  /// Bytes that one run of the interpreter may take; 0: the machine's memory.
  std::int64_t memory_limit = 0;
};

/// One direction: three ways to the same number.
struct DerivativeProbe {
  std::string wrt;  ///< the value that was moved, or "all"
  int order = 1;
  double forward = 0;     ///< ⟨u, J t⟩
  double reverse = 0;     ///< ⟨Jᵀu, t⟩
  double difference = 0;  ///< d/dh ⟨u, f(x + h t)⟩ by differences
  double scale = 0;       ///< the size of the terms that were added up
  /// Whether differences of two step sizes agree; at a kink they need not, and say nothing.
  bool smooth = true;

  [[nodiscard]] bool finite() const;
  [[nodiscard]] double adjoint_gap() const;
  [[nodiscard]] double difference_gap() const;
};

struct DerivativeReport {
  std::vector<DerivativeProbe> probes;
  double adjoint_tolerance = 0;
  double difference_tolerance = 0;
  /// Some derivative is another than that of the function by definition: stop_gradient, or rounding
  /// (round, fake_quantize, …). Differences are then shown but not judged. Rules of functions and
  /// of registered ops are judged: both modes may follow the same wrong rule.
  bool by_definition = false;

  [[nodiscard]] bool ok() const;
  [[nodiscard]] bool ok(const DerivativeProbe& p) const;
  /// A table, one line a probe.
  [[nodiscard]] std::string to_string() const;
};

/// Moves the given inputs and params (all that have a derivative when none are given), each alone
/// and all together. Runs on the reference interpreter.
[[nodiscard]] DerivativeReport check_derivatives(const Graph& graph, std::vector<std::string> wrt,
                                                 const Feeds& feeds,
                                                 const CheckOptions& options = {});

/// One probe of all of `wrt` together, for directions drawn from `seed`.
[[nodiscard]] DerivativeProbe probe_derivatives(const Graph& graph,
                                                const std::vector<std::string>& wrt,
                                                const Feeds& feeds, std::uint64_t seed);

}  // namespace ricci
