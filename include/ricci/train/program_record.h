// What a compiled program is like: its steps with their time, and what lies where in its memory
// when. It is written beside the log of a run, and drawn in its report.
//
//   write_file("runs/gpt/program.json", to_json(record_program(compiled, profile)));
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ricci/runtime/compiled_graph.h"
#include "ricci/runtime/profile.h"

namespace ricci {

struct ProgramRecord {
  struct Row {
    std::string label;
    std::string kind;
    double seconds = 0;      ///< of one run
    std::int64_t bytes = 0;  ///< read and written in a run, about
    std::int64_t flops = 0;
  };
  /// A value in the arena from the step that makes it to the last one that reads it.
  struct Place {
    std::int64_t offset = 0;
    std::int64_t bytes = 0;
    std::int64_t first = 0;
    std::int64_t last = 0;
  };
  std::string program;
  double seconds = 0;     ///< of one run
  std::vector<Row> rows;  ///< steps, in order; loops count as one
  std::vector<Place> places;
  std::int64_t steps = 0;
  std::int64_t arena_bytes = 0;  ///< temporaries, after planning
  std::int64_t live_bytes = 0;   ///< no plan needs less
  std::int64_t kept_bytes = 0;   ///< params, state of the optimiser, inputs
};

/// Of a program that has been run with the profile, and nothing else with it.
[[nodiscard]] ProgramRecord record_program(const CompiledGraph& compiled, const Profile& profile);

[[nodiscard]] std::string to_json(const ProgramRecord& record);
/// UserError(file) when it is none.
[[nodiscard]] ProgramRecord read_program_record(const std::string& path);

}  // namespace ricci
