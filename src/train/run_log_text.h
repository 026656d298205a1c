// The lines of a run's log, as text: what RunLog writes and read_run_log reads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ricci/train/run_log.h"

namespace ricci {

[[nodiscard]] std::string run_log_line(const RunStart& start);
[[nodiscard]] std::string run_log_line(const RunStep& step);
[[nodiscard]] std::string run_log_line(const RunEvaluation& evaluation);
[[nodiscard]] std::string run_log_line(const RunSample& sample);
[[nodiscard]] std::string run_log_line(const RunEnd& end);
[[nodiscard]] std::string run_log_resume(std::int64_t step);
[[nodiscard]] std::string run_log_checkpoint(std::int64_t step);

/// Nothing when no line is one of a run.
[[nodiscard]] std::optional<RunRecord> parse_run_log(std::string_view text);

}  // namespace ricci
