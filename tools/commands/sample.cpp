// ricci sample: what a trained language model writes behind a prompt.
#include <cstdio>
#include <memory>

#include <fmt/format.h>

#include "commands/commands.h"
#include "commands/device_option.h"
#include "numbers.h"
#include "train/tasks.h"

namespace ricci::tool {
namespace {

struct SampleCommand {
  std::string folder;
  std::string checkpoint = "best";
  WritingOptions writing;
  std::string device = "cpu";
  int threads = 0;
};

void run_sample(const SampleCommand& command) {
  require_compiler(command.device);
  use_device(Device::named(command.device, command.threads));
  const RunFolder folder{command.folder};
  const RunSettings s = folder.settings();
  if (!is_language(s.kind)) {
    throw UserError(ErrorCode::Refused,
                    fmt::format("'{}' is a run of {}, which writes no text", folder.path, s.kind),
                    fmt::format("ricci eval {} says how good it is", folder.path));
  }
  with_language_model(s, folder, command.checkpoint,
                      [&](const auto& model, const Tokenizer& tokenizer) {
                        const auto show = [](const std::string& text) {
                          std::fwrite(text.data(), 1, text.size(), stdout);
                          std::fflush(stdout);
                        };
                        show(command.writing.prompt);
                        (void)Writer(tokenizer).write(model, command.writing, show);
                        show("\n");
                      });
}

}  // namespace

void add_sample(CLI::App& app, Action& action) {
  auto options = std::make_shared<SampleCommand>();
  CLI::App* command = app.add_subcommand("sample", "writes with a model that `train` has made");
  command->add_option("DIR", options->folder, "the run's folder")->required();
  WritingOptions& w = options->writing;
  command->add_option("--prompt", w.prompt, "what the text starts with");
  command->add_option("--length", w.length, "tokens that are written (default 200)")
      ->check(check_whole<std::int64_t>);
  command
      ->add_option("--temperature", w.sampling.temperature, "0: always the likeliest (default 0.8)")
      ->check(CLI::Range(0.0, 100.0));
  command->add_option("--top-k", w.sampling.top_k, "of the so many likeliest (default 0: of all)")
      ->check(check_whole<std::int64_t>)
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--top-p", w.sampling.top_p,
                   "of the likeliest that together have this probability (default 1)")
      ->check(CLI::Range(0.0, 1.0));
  command->add_option("--seed", w.sampling.seed, "another text for another number (default 1)")
      ->check(check_whole<std::uint64_t>);
  command->add_option("--checkpoint", options->checkpoint, "best, last or a file (default best)");
  declare_device(*command, options->device);
  declare_threads(*command, options->threads);
  command->callback([options, &action] { action = [options] { run_sample(*options); }; });
}

}  // namespace ricci::tool
