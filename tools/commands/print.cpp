// ricci print: a file in its canonical form, types filled in.
#include <memory>

#include "ricci/ir/text.h"

#include "commands/commands.h"
#include "source.h"

namespace ricci::tool {

void add_print(CLI::App& app, Action& action) {
  struct Options {
    Source source;
    PrintOptions print;
    std::string out = "-";
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("print", "prints graphs in their canonical text form");
  options->source.declare_all(*command);
  command->add_flag("--locations", options->print.locations, "say where each node came from");
  command->add_option("-o,--out", options->out, "where to write (default: standard output)")
      ->type_name("FILE");
  command->callback([options, &action] {
    action = [options] {
      write_text(options->out, print_file(options->source.load_chosen(), options->print));
    };
  });
}

}  // namespace ricci::tool
