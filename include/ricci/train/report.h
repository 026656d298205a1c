// Training runs as one page that needs nothing else: no network, and no script for what does not
// move. Curves of losses and learning rates, settings, samples, the table of the model, where the
// time of a step goes, what lies in memory when, and a drawing of the graph; several runs side by
// side.
//
//   write_file("report.html", run_report({{read_report_run("runs/a"),
//   read_report_run("runs/b")}}));
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ricci/train/program_record.h"
#include "ricci/train/run_log.h"

namespace ricci {

/// What a report shows of a run.
struct ReportRun {
  std::string name;
  RunRecord log;
  std::optional<ProgramRecord> program = {};
  std::string graph = {};               ///< as text; empty: it is not drawn
  std::vector<std::string> notes = {};  ///< what could not be read
};

/// From a folder that a run has written: `log.jsonl`, and where they are there `program.json` and
/// `model.ric`. UserError(file) when there is no log.
[[nodiscard]] ReportRun read_report_run(const std::string& folder);

/// A page of HTML. All that comes from users is text in it, whatever it looks like. UserError when
/// there is no run.
[[nodiscard]] std::string run_report(std::span<const ReportRun> runs);

}  // namespace ricci
