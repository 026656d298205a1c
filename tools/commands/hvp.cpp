// ricci hvp: Hessian-vector products, forward over reverse.
#include "ricci/transform/higher_order.h"

#include "commands/transforming.h"

namespace ricci::tool {

void add_hvp(CLI::App& app, Action& action) {
  struct Options : TransformOptions {
    HvpOptions hvp;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("hvp", "Hessian-vector products of the first output");
  options->declare(*command);
  options->declare_wrt(*command, "inputs and params; the vector is a new input tangent_<name>");
  command->add_flag("--external-seed", options->hvp.external_seed,
                    "keep the input d_output instead of ones");
  command->add_flag("--zero-missing", options->hvp.grad.zero_missing_wrt,
                    "zeros for what the output does not depend on, instead of an error");
  command->callback([options, &action] {
    action = [options] {
      write_transformed(*options,
                        [&](const Graph& g) { return hvp(g, options->refs(), options->hvp); });
    };
  });
}

}  // namespace ricci::tool
