#include "ricci/train/report.h"

#include <fmt/format.h>

#include "ricci/support/error.h"
#include "ricci/support/file.h"

#include "draw/svg.h"
#include "support/float_environment.h"
#include "train/report/html.h"
#include "train/report/page_parts.h"

namespace ricci {
namespace {

std::string text_of_file(const std::string& path) {
  const std::vector<std::byte> bytes = read_file(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string page_title(std::span<const ReportRun> runs) {
  std::string out;
  for (const ReportRun& run : runs) out += (out.empty() ? "" : ", ") + run.name;
  return out;
}

std::string navigation(std::string_view body) {
  constexpr std::pair<std::string_view, std::string_view> Places[] = {
      {"curves", "Curves"}, {"samples", "Samples"}, {"settings", "Settings"}, {"model", "Model"},
      {"time", "Time"},     {"memory", "Memory"},   {"graph", "Graph"}};
  std::string out = "<nav>";
  for (const auto& [id, name] : Places) {
    if (body.find(fmt::format("<section id=\"{}\">", id)) == std::string_view::npos) continue;
    out += fmt::format("<a href=\"#{}\">{}</a>", id, name);
  }
  return out + "</nav>\n";
}

}  // namespace

ReportRun read_report_run(const std::string& folder) {
  if (!is_there(folder + "/log.jsonl")) {
    throw UserError(ErrorCode::File, fmt::format("'{}' is no folder of a run", folder),
                    "name one that training has made: there is a log.jsonl in it");
  }
  ReportRun run;
  run.log = read_run_log(folder + "/log.jsonl");
  run.name = run.log.start.name.empty() ? folder : run.log.start.name;
  const auto optional = [&](const char* file, const auto& read) {
    const std::string path = folder + "/" + file;
    if (!is_there(path)) return;
    try {
      read(path);
    } catch (const UserError& e) {
      run.notes.emplace_back(e.what());
    }
  };
  optional("program.json", [&](const std::string& p) { run.program = read_program_record(p); });
  optional("model.ric", [&](const std::string& p) { run.graph = text_of_file(p); });
  return run;
}

std::string run_report(std::span<const ReportRun> runs) {
  const DefaultFloatEnvironment floats;
  using namespace report;  // NOLINT: the parts of the page
  if (runs.empty()) {
    throw UserError(ErrorCode::Refused, "a report of no run", "name the folder of one");
  }
  const std::string title = escaped(page_title(runs));
  const std::string body = overview(runs) + curves(runs) + samples(runs) + settings(runs) +
                           models(runs) + times(runs) + memory(runs) + graphs(runs);
  const std::string kind =
      runs.size() == 1 ? "A training run" : fmt::format("{} training runs", runs.size());
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n"
      "<title>{0}</title>\n<style>{1}{2}</style></head>\n<body><main>\n"
      "<h1>{0}</h1><p class=\"lead\">{3}</p>\n{4}{5}"
      "<footer>Written by Ricci {6}.</footer>\n</main>\n<script>{7}</script>\n</body></html>\n",
      title, draw::style_sheet(), style(), kind, navigation(body), body, RICCI_VERSION, script());
}

}  // namespace ricci
