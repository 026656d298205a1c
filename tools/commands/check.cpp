// ricci check: is every graph of a file well formed, and are its derivatives right?
#include "ricci/transform/check.h"

#include <memory>

#include <fmt/format.h>

#include "ricci/compiler/rewrite/pass.h"
#include "ricci/ir/verify.h"
#include "ricci/support/error.h"

#include "commands/commands.h"
#include "feeds.h"
#include "numbers.h"
#include "source.h"

namespace ricci::tool {
namespace {

constexpr std::size_t MostFaults = 50;  // after which a text is given up

struct CheckCommandOptions {
  Source source;
  std::vector<std::string> wrt;
  FeedOptions feeds;
  CheckOptions check;

  [[nodiscard]] bool derivatives() const { return !wrt.empty() || feeds.any(); }
};

std::string counted(std::size_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

void check_form(const CheckCommandOptions& options) {
  std::vector<Diagnostic> faults;
  std::string report;
  for (const Graph& graph : options.source.load_chosen(MostFaults)) {
    const std::vector<Diagnostic> found = find_faults(graph);
    faults.insert(faults.end(), found.begin(), found.end());
    report += fmt::format(
        "ok: @{}: {}, {}, {}, {}\n", graph.name(), counted(count_nodes(graph), "node"),
        counted(graph.inputs().size(), "input"), counted(graph.params().size(), "param"),
        counted(graph.outputs().size(), "output"));
  }
  if (!faults.empty()) throw UserError(std::move(faults));
  write_text("-", report);
}

// Values are those of one program, so that only the first or chosen graph is looked at.
void check_gradients(const CheckCommandOptions& options) {
  const Graph graph = options.source.load();
  verify(graph);
  const RunValues values = make_values(graph, options.feeds);
  const Graph bound = graph.bind(bindings_from_feeds(graph, values.feeds, values.symbols));
  const DerivativeReport report =
      check_derivatives(bound, options.wrt, values.feeds, options.check);
  write_text("-", report.to_string());
  if (report.ok()) return;
  throw UserError(
      ErrorCode::NoGradient,
      fmt::format("the derivatives of '{}' are wrong where the table says so", graph.name()),
      "look at the rules of its custom functions; a NaN in both modes may be a singular point");
}

}  // namespace

void add_check(CLI::App& app, Action& action) {
  auto options = std::make_shared<CheckCommandOptions>();
  CLI::App* command =
      app.add_subcommand("check", "verifies the graphs of a file; derivatives of one as well");
  options->source.declare_all(*command);
  command
      ->add_option("--wrt", options->wrt,
                   "check derivatives by these inputs and params (default when values are given: "
                   "all that have one)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("A,B");
  options->feeds.declare(*command);
  command->add_option("--order", options->check.order, "2 checks second derivatives as well")
      ->check(check_whole<int>)
      ->check(CLI::Range(1, 2))
      ->type_name("N");
  command->add_option("--directions", options->check.directions, "random directions per value")
      ->check(check_whole<int>)
      ->check(CLI::Range(1, 1000))
      ->type_name("N");
  command
      ->add_option("--memory-limit", options->check.memory_limit,
                   "bytes that a run may take (default: the machine's memory)")
      ->type_name("BYTES")
      ->check(check_whole<std::int64_t>);
  command->callback([options, &action] {
    action = [options] {
      options->derivatives() ? check_gradients(*options) : check_form(*options);
    };
  });
}

}  // namespace ricci::tool
