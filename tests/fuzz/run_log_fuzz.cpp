// Any bytes are the log of a run or refused, and lines that are none are passed over; what was read
// is the same when it is written and read again.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "fuzz/largest_allocation.h"
#include "train/run_log_text.h"

namespace {

std::string written(const ricci::RunRecord& run) {
  using namespace ricci;
  std::string out = run_log_line(run.start);
  for (const RunStep& s : run.steps) out += run_log_line(s);
  for (const RunEvaluation& e : run.evaluations) out += run_log_line(e);
  for (const RunSample& s : run.samples) out += run_log_line(s);
  for (const std::int64_t step : run.checkpoints) out += run_log_checkpoint(step);
  if (run.end) out += run_log_line(*run.end);
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ricci;
  const ricci::testing::LargestAllocation largest(static_cast<std::int64_t>(64 * size + 65536));
  const auto run = parse_run_log({reinterpret_cast<const char*>(data), size});
  if (!run) return 0;
  for (std::size_t i = 1; i < run->steps.size(); ++i) {
    if (run->steps[i - 1].step >= run->steps[i].step) std::abort();
  }
  const std::string text = written(*run);
  const auto again = parse_run_log(text);
  if (!again || again->torn != 0 || written(*again) != text) std::abort();
  return 0;
}
