// The sections of a report.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ricci/train/report.h"

namespace ricci::report {

using Runs = std::span<const ReportRun>;

[[nodiscard]] std::string overview(Runs runs);
[[nodiscard]] std::string curves(Runs runs);
[[nodiscard]] std::string settings(Runs runs);
[[nodiscard]] std::string samples(Runs runs);
[[nodiscard]] std::string models(Runs runs);
[[nodiscard]] std::string times(Runs runs);
[[nodiscard]] std::string memory(Runs runs);
[[nodiscard]] std::string graphs(Runs runs);

[[nodiscard]] std::string_view style();
[[nodiscard]] std::string_view script();

/// What a run's name looks like above a part of its own, where there are several.
[[nodiscard]] std::string run_heading(Runs runs, std::size_t i);

}  // namespace ricci::report
