// The commands. Each `add_…` declares a command's arguments and, when it is chosen, sets `action`
// to what it does. Actions throw ricci::Error and write nothing before they can succeed.
#pragma once

#include <functional>

#include <CLI/CLI.hpp>

namespace ricci::tool {

using Action = std::function<void()>;

void add_run(CLI::App& app, Action& action);
void add_check(CLI::App& app, Action& action);
void add_print(CLI::App& app, Action& action);
void add_opt(CLI::App& app, Action& action);
void add_quantize(CLI::App& app, Action& action);
void add_grad(CLI::App& app, Action& action);
void add_jvp(CLI::App& app, Action& action);
void add_hvp(CLI::App& app, Action& action);
void add_nth_grad(CLI::App& app, Action& action);
void add_jacobians(CLI::App& app, Action& action);
void add_vmap(CLI::App& app, Action& action);
void add_compile(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_show(CLI::App& app, Action& action);
void add_inspect(CLI::App& app, Action& action);
void add_convert(CLI::App& app, Action& action);
void add_train(CLI::App& app, Action& action);
void add_sample(CLI::App& app, Action& action);
void add_eval(CLI::App& app, Action& action);
void add_report(CLI::App& app, Action& action);
void add_serve(CLI::App& app, Action& action);
void add_doc(CLI::App& app, Action& action);

/// All of them, in the order `--help` lists them.
void add_commands(CLI::App& app, Action& action);

}  // namespace ricci::tool
