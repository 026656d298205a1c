// Training steps ahead of time.
#include "ricci/model/training.h"
#include "ricci/support/error.h"

namespace ricci {

ObjectFile compile_object(const TrainingGraph& training, ObjectOptions options) {
  const Graph& graph = training.graph;
  options.donations = training.donations;
  options.output_names = {"loss"};
  for (std::size_t k = 0; k < training.aux; ++k) {
    const ValueId value = graph.outputs()[1 + k];
    const std::vector<std::string>& names = graph.node(value.node).names;
    const bool named = value.result < names.size() && !names[value.result].empty();
    options.output_names.push_back(named ? names[value.result] : "aux" + std::to_string(k));
  }
  if (training.has_norm) options.output_names.emplace_back("gradient_norm");
  const auto note = [&](const std::string& param, const char* text) {
    options.notes.try_emplace(param, text);
  };
  note(training.count, "counts steps; zero before the first");
  for (const TrainingGraph::Trained& t : training.trained) {
    note(t.param, "trained");
    for (const std::string& state : t.state)
      note(state, "of the optimiser; zeros before the first step");
  }
  for (const std::string& param : training.updated) note(param, "follows an output of the model");
  if (!training.learning_rate.empty()) note(training.learning_rate, "for this step");
  if (!training.loss_scale.empty()) {
    note(training.loss_scale, "scale of the loss; zero before the first step");
    note(training.good_steps, "steps it has been good for; zero before the first");
  }
  if (!training.accumulated_steps.empty()) {
    note(training.accumulated_steps, "gradients that are accumulated; zero before the first step");
  }
  for (const std::string& sum : training.accumulated) {
    note(sum, "sum of gradients; zeros before the first step");
  }
  return compile_object(graph, options);
}

}  // namespace ricci
