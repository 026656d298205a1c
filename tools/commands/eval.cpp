// ricci eval: how good a trained model is.
#include <limits>
#include <memory>

#include <fmt/format.h>

#include "commands/commands.h"
#include "commands/device_option.h"
#include "train/tasks.h"

namespace ricci::tool {
namespace {

struct EvalCommand {
  std::string folder;
  std::string data;
  std::string checkpoint = "best";
  std::string device = "cpu";
  int threads = 0;
};

void evaluate_run(const EvalCommand& command) {
  require_compiler(command.device);
  use_device(Device::named(command.device, command.threads));
  const RunFolder folder{command.folder};
  RunSettings s = folder.settings();
  const bool other = !command.data.empty();
  if (other) s.data = command.data;
  with_task(s, folder, other, [&](const auto& task) {
    if (task.data.test.empty()) {
      throw UserError(ErrorCode::Refused, "the run has kept no data back",
                      "name other data with --data");
    }
    const auto [model, file] = folder.load_model(command.checkpoint, task.model);
    const auto measure = evaluation_of(task, s, std::numeric_limits<std::int64_t>::max());
    const RunEvaluation found = measure(model);
    fmt::print("{}\n{} {} of {}\nloss {:.6f}\n", file, found.examples,
               task.is_text ? fmt::format("pieces of {} tokens", s.context) : "examples",
               other ? s.data : "what was kept back", found.loss);
    for (const auto& [name, value] : found.metrics) fmt::print("{} {:.6f}\n", name, value);
  });
}

}  // namespace

void add_eval(CLI::App& app, Action& action) {
  auto options = std::make_shared<EvalCommand>();
  CLI::App* command = app.add_subcommand("eval", "says how good a model is that `train` has made");
  command->add_option("DIR", options->folder, "the run's folder")->required();
  command
      ->add_option("--data", options->data,
                   "other data, all of it (default: what the run has kept back)")
      ->type_name("FILE");
  command->add_option("--checkpoint", options->checkpoint, "best, last or a file (default best)");
  declare_device(*command, options->device);
  declare_threads(*command, options->threads);
  command->callback([options, &action] { action = [options] { evaluate_run(*options); }; });
}

}  // namespace ricci::tool
