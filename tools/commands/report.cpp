// ricci report: training runs as a page.
#include "ricci/train/report.h"

#include <memory>

#include <fmt/format.h>

#include "commands/commands.h"
#include "source.h"

namespace ricci::tool {
namespace {

struct ReportCommand {
  std::vector<std::string> folders;
  std::string out;
};

void report_runs(const ReportCommand& command) {
  std::vector<ReportRun> runs;
  for (const std::string& folder : command.folders) runs.push_back(read_report_run(folder));
  const std::string path = !command.out.empty() ? command.out
                           : runs.size() == 1   ? command.folders[0] + "/report.html"
                                                : "report.html";
  write_text(path, run_report(runs));
  if (path != "-") fmt::print("{}\n", path);
}

}  // namespace

void add_report(CLI::App& app, Action& action) {
  auto options = std::make_shared<ReportCommand>();
  CLI::App* command = app.add_subcommand(
      "report", "writes a page about training runs: curves, samples, time, memory");
  command->add_option("DIR", options->folders, "folders of runs; several are compared")->required();
  command
      ->add_option("-o,--out", options->out,
                   "the page (default: report.html, in the folder where there is one)")
      ->type_name("FILE");
  command->callback([options, &action] { action = [options] { report_runs(*options); }; });
}

}  // namespace ricci::tool
