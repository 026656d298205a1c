#include "schedule/sums_over_rows.h"

#include <algorithm>

#include "type/small_dtype.h"

namespace ricci::schedule {

using loop::Kernel;

std::int64_t chunks_of(const Kernel& k, const KernelShape& shape) {
  if (k.accumulators.empty() || k.accumulators[0].running) return 1;
  const std::int64_t wanted =
      std::clamp<std::int64_t>(k.work / shape.chunk_work, 1, shape.most_parts);
  const std::int64_t kept = std::min(wanted, std::max<std::int64_t>(k.kept_rows(), 1));
  if (kept >= shape.enough_rows) return 1;
  const std::int64_t chunks = std::min((wanted + kept - 1) / kept, shape.most_chunks);
  return std::min(chunks, std::max<std::int64_t>(k.accumulated_rows(), 1));
}

std::int64_t local_elements(const Kernel& k, const loop::Accumulator& acc, std::int64_t length) {
  constexpr std::int64_t ManyRows = 512;  // in a chunk
  const DType wide = widened(acc.dtype);
  const bool rounds = wide == DType::F32 || wide == DType::C64;
  const bool adds = acc.kind == ReduceKind::Sum && !acc.running;
  return rounds && adds && k.accumulated_rows() / k.chunks >= ManyRows ? 2 * length : length;
}

}  // namespace ricci::schedule
