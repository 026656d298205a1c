// ricci jacfwd, jacrev, hessian: whole matrices of derivatives, by three compositions that take the
// same arguments.
#include "ricci/transform/higher_order.h"

#include "commands/transforming.h"

namespace ricci::tool {
namespace {

using Matrices = Transformed (*)(const Graph& graph, const std::vector<ValueRef>& wrt);

void add_matrices(CLI::App& app, Action& action, const char* name, const char* help,
                  Matrices transform) {
  auto options = std::make_shared<TransformOptions>();
  CLI::App* command = app.add_subcommand(name, help);
  options->declare(*command);
  options->declare_wrt(*command, "inputs and params to differentiate by");
  command->callback([options, transform, &action] {
    action = [options, transform] {
      write_transformed(*options, [&](const Graph& g) { return transform(g, options->refs()); });
    };
  });
}

}  // namespace

void add_jacobians(CLI::App& app, Action& action) {
  add_matrices(app, action, "jacfwd", "Jacobians of every output, by forward mode", jacfwd);
  add_matrices(app, action, "jacrev", "Jacobians of every output, by reverse mode", jacrev);
  add_matrices(app, action, "hessian", "second derivatives of a single-element output", hessian);
}

}  // namespace ricci::tool
