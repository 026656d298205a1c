// One training step as one program: loss, gradients and an AdamW update of every param in place.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ricci/ricci.h"
#include "ricci/runtime/compiled_graph.h"

#include "text.h"

namespace gpt {

/// The graph of a step: outputs `[loss, step, then for each param: it and its two moments]`, all
/// but the loss in place of what they are made from.
struct StepGraph {
  ricci::Graph graph;
  std::vector<ricci::Donation> donations;
};
[[nodiscard]] StepGraph make_step(const ricci::Graph& loss);

/// A compiled step and the values it works on.
class Training {
 public:
  Training(const ricci::Graph& loss, const ricci::Feeds& params, const ricci::Device& device);

  /// Learns from a batch; gives its loss before that.
  double step(const Batch& batch, double learning_rate);
  [[nodiscard]] ricci::Feeds params() const;
  [[nodiscard]] const ricci::CompiledGraph& compiled() const { return compiled_; }

 private:
  Training(const StepGraph& step, const ricci::Feeds& params, const ricci::Device& device);

  ricci::CompiledGraph compiled_;
  ricci::ExecutionContext context_;
  std::map<std::string, ricci::Tensor, std::less<>>
      kept_;  // params, moments, step: updated in place
  std::vector<std::string> param_names_;
  ricci::Tensor loss_;
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
};

}  // namespace gpt
