// ricci grad: reverse mode, the gradients of a graph's first output.
#include "ricci/transform/grad.h"

#include "ricci/rewrite/cleanup.h"

#include "commands/transforming.h"

namespace ricci::tool {
namespace {

struct Options : TransformOptions {
  bool zero_missing = false;
  bool with_loss = false;  // what happens anyway; scripts may say so
  bool only_grads = false;
  bool internal_seed = false;
};

// Keeps the gradients, which come last, and what they need.
Transformed without_loss(Transformed t, std::size_t gradients) {
  const auto outputs = t.graph.outputs();
  t.graph.set_outputs(
      std::vector<ValueId>(outputs.end() - static_cast<std::ptrdiff_t>(gradients), outputs.end()));
  PassResult live = dead_code_elimination(t.graph);
  return {std::move(live.graph), t.map.then(live.map), std::move(t.names)};
}

Transformed gradient(const Graph& graph, const Options& options) {
  const GradOptions how{.zero_missing_wrt = options.zero_missing};
  if (!options.internal_seed) {
    return options.only_grads ? grad(graph, options.refs(), how)
                              : grad_with_loss_opts(graph, options.refs(), how);
  }
  Transformed both = value_and_grad(graph, options.refs(), how);
  return options.only_grads ? without_loss(std::move(both), options.wrt.size()) : both;
}

}  // namespace

void add_grad(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("grad", "gradients of a graph's first output");
  options->declare(*command);
  options->declare_wrt(*command, "differentiate by these; %name for a value that is computed");
  command->add_flag("--zero-missing", options->zero_missing,
                    "zeros for what the output does not depend on, instead of an error");
  auto* loss =
      command->add_flag("--with-loss", options->with_loss, "outputs, then gradients (the default)");
  command->add_flag("--only-grads", options->only_grads, "gradients and nothing else")
      ->excludes(loss);
  command->add_flag("--internal-seed", options->internal_seed,
                    "start from ones instead of a new input d_output");
  command->callback([options, &action] {
    action = [options] {
      write_transformed(*options, [&](const Graph& g) { return gradient(g, *options); });
    };
  });
}

}  // namespace ricci::tool
