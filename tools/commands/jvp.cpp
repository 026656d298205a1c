// ricci jvp: forward mode, directional derivatives of every output.
#include "ricci/transform/jvp.h"

#include "commands/transforming.h"

namespace ricci::tool {

void add_jvp(CLI::App& app, Action& action) {
  auto options = std::make_shared<TransformOptions>();
  CLI::App* command = app.add_subcommand("jvp", "directional derivatives of every output");
  options->declare(*command);
  options->declare_wrt(*command, "inputs and params that move; each adds an input tangent_<name>");
  command->callback([options, &action] {
    action = [options] {
      write_transformed(*options, [&](const Graph& g) { return jvp(g, options->refs()); });
    };
  });
}

}  // namespace ricci::tool
