// Transforms of bodies: what the rules of control flow ask of the transform that runs them.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "ricci/ir/graph.h"
#include "ricci/op/control.h"

namespace ricci {

/// A node written in other ops: one value per result from its operands, invalid for results that
/// are not wanted.
using Rewriting = std::function<std::vector<Value>(Graph& graph, std::span<const Value> operands)>;

/// The gradient of a body: which of its outputs have a cotangent, which of its inputs want one.
/// Masks have one entry per output or input of the body.
struct BodyVjp {
  std::vector<bool> seeds;   ///< outputs that get an input `d_output_<i>`
  std::vector<bool> live;    ///< of those, the ones that are not known to be zero
  std::vector<bool> wanted;  ///< inputs whose cotangent is an output; zeros where there is no path
  std::vector<bool> needed;  ///< of those, the ones not to be given as zeros right away
  /// Values of the body that are handed in as inputs `residual_<i>` instead of computed again.
  std::vector<ValueId> residuals = {};
};

/// Whether a result of a node of a body may be saved for the body's gradient.
using SavesValue = std::function<bool(const Node& node, std::size_t result)>;

/// The gradient of a body cut in two where values are saved: the first half computes them, the
/// second reads them. What the second needs of the first and is not saved it computes again.
struct BodyHalves {
  std::shared_ptr<const Graph> forward;  ///< outputs: the body's, then saved values
  /// Inputs: the body's, saved_<i>, then d_output_<i>; outputs: the wanted cotangents.
  std::shared_ptr<const Graph> backward;
  std::vector<std::size_t> saved;  ///< for each saved value, which output of `forward` it is
};

/// The tangent of a body: inputs are the body's, then the tangents of the live ones; outputs are
/// the body's, then the tangents of those marked in `outputs`.
struct BodyTangent {
  std::shared_ptr<const Graph> graph;
  std::vector<bool> outputs;
};

/// A body over values and their Taylor coefficients 1, 2, …: inputs are the body's, then the
/// coefficients of each, and so are the outputs.
struct BodySeries {
  std::shared_ptr<const Graph> graph;
  std::vector<std::size_t> degrees;  ///< how many coefficients each output has
};

/// A body over a batch: inputs and outputs that are batched have the batch as their first axis.
struct BatchedBody {
  std::shared_ptr<const Graph> graph;
  std::vector<bool> outputs;  ///< which outputs are batched
};

class BodyTransforms {
 public:
  virtual ~BodyTransforms() = default;
  /// Which outputs depend differentiably on the marked inputs.
  [[nodiscard]] virtual std::vector<bool> depends(const Graph& body,
                                                  const std::vector<bool>& inputs) const = 0;
  /// Inputs: the body's, residuals, then d_output_<i>; outputs: the wanted cotangents.
  [[nodiscard]] virtual std::shared_ptr<const Graph> vjp(const Graph& body,
                                                         const BodyVjp& request) const = 0;
  /// Cuts the gradient of a body at the values that `saves` picks, of those that depend on an input
  /// marked in `varying`. Only values the second half reads are saved, never inputs.
  [[nodiscard]] virtual BodyHalves halves(const Graph& body, const BodyVjp& request,
                                          const std::vector<bool>& varying,
                                          const SavesValue& saves) const = 0;
  /// What gradients keep of scans that do not say it themselves.
  [[nodiscard]] virtual const ScanSaving& scan_saving() const = 0;
  /// Outputs marked in `required` have a tangent even if it is zero.
  [[nodiscard]] virtual BodyTangent jvp(const Graph& body, const std::vector<bool>& live,
                                        const std::vector<bool>& required) const = 0;
  /// The series of a body's outputs up to `order`, from as many coefficients of each input as
  /// `degrees` says. An output has at least as many as `required` says, even if they are zero.
  [[nodiscard]] virtual BodySeries series(const Graph& body,
                                          const std::vector<std::size_t>& degrees,
                                          const std::vector<std::size_t>& required,
                                          std::size_t order) const = 0;
  /// Which outputs may be batched when the marked inputs are, without building anything: what
  /// depends on a batched value counts as batched.
  [[nodiscard]] virtual std::vector<bool> batched_outputs(
      const Graph& body, const std::vector<bool>& batched) const = 0;
  /// Outputs marked in `required` are batched even if they do not depend on a batched input.
  [[nodiscard]] virtual BatchedBody batch(const Graph& body, const std::vector<bool>& batched,
                                          const Dim& size,
                                          const std::vector<bool>& required) const = 0;
};

}  // namespace ricci
