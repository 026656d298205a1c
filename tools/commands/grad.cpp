// ricci grad: reverse mode, the gradients of a graph's first output.
#include "ricci/transform/grad.h"

#include <optional>

#include "commands/transforming.h"
#include "numbers.h"

namespace ricci::tool {
namespace {

struct GradCommandOptions : TransformOptions {
  bool zero_missing = false;
  bool with_loss = false;  // what happens anyway; scripts may say so
  bool only_grads = false;
  bool internal_seed = false;  // what happens anyway
  bool external_seed = false;
  std::string save = "auto";
  std::optional<std::int64_t> save_bytes;
  std::vector<std::string> save_names;

  [[nodiscard]] ScanSaving scan_saving() const {
    return {*enum_from_name<ScanSave>(save), save_names, save_bytes};
  }
};

void declare_saving(CLI::App& command, GradCommandOptions& options) {
  const auto names = enumerator_names(ScanSave{});
  command
      .add_option("--save", options.save,
                  "what to keep of the steps of scans that do not say it: auto, all, matmuls, "
                  "named, carries or recompute")
      ->check(CLI::IsMember(std::vector<std::string>(names.begin(), names.end())));
  command
      .add_option("--save-budget", options.save_bytes,
                  "bytes that what is kept of a scan may take, for auto and recompute")
      ->check(check_whole<std::int64_t>);
  command
      .add_option("--save-names", options.save_names,
                  "values of scans' bodies to keep, for named and auto")
      ->delimiter(',');
}

Transformed gradient(const Graph& graph, const GradCommandOptions& options) {
  const GradOptions how{.zero_missing_wrt = options.zero_missing,
                        .internal_seed = !options.external_seed,
                        .scan_saving = options.scan_saving(),
                        .external_seed = options.external_seed};
  return options.only_grads ? grad(graph, options.refs(), how)
                            : grad_with_loss_opts(graph, options.refs(), how);
}

}  // namespace

void add_grad(CLI::App& app, Action& action) {
  auto options = std::make_shared<GradCommandOptions>();
  CLI::App* command = app.add_subcommand("grad", "gradients of a graph's first output");
  options->declare(*command);
  options->declare_wrt(*command, "differentiate by these; %name for a value that is computed");
  command->add_flag("--zero-missing", options->zero_missing,
                    "zeros for what the output does not depend on, instead of an error");
  auto* loss =
      command->add_flag("--with-loss", options->with_loss, "outputs, then gradients (the default)");
  command->add_flag("--only-grads", options->only_grads, "gradients and nothing else")
      ->excludes(loss);
  auto* internal =
      command->add_flag("--internal-seed", options->internal_seed, "start from ones (the default)");
  command
      ->add_flag("--external-seed", options->external_seed,
                 "start from a new input d_output instead of ones")
      ->excludes(internal);
  declare_saving(*command, *options);
  command->callback([options, &action] {
    action = [options] {
      write_transformed(*options, [&](const Graph& g) { return gradient(g, *options); });
    };
  });
}

}  // namespace ricci::tool
