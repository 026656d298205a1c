// ricci nth-grad: derivatives of a higher order by one input or param.
#include "ricci/transform/higher_order.h"

#include "commands/transforming.h"
#include "numbers.h"

namespace ricci::tool {

void add_nth_grad(CLI::App& app, Action& action) {
  struct Options : TransformOptions {
    std::string name;
    int order = 1;
    bool directional = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("nth-grad", "derivatives of a higher order");
  options->declare(*command);
  command->add_option("--wrt", options->name, "the input or param to differentiate by")
      ->required()
      ->type_name("NAME");
  command->add_option("--order", options->order, "how often to differentiate")
      ->required()
      ->check(check_whole<int>)
      ->check(CLI::Range(0, 64))
      ->type_name("N");
  command->add_flag("--directional", options->directional,
                    "along new inputs dir_1, dir_2, …, for a NAME of any shape");
  command->callback([options, &action] {
    action = [options] {
      write_transformed(*options, [&](const Graph& g) {
        return options->directional ? directional_nth_grad(g, options->name, options->order)
                                    : nth_order_grad(g, options->name, options->order);
      });
    };
  });
}

}  // namespace ricci::tool
