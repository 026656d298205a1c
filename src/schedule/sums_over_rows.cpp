#include "schedule/sums_over_rows.h"

#include <algorithm>
#include <map>
#include <optional>

#include "type/small_dtype.h"

namespace ricci::schedule {

using loop::Kernel;

namespace {

// An argument that has a value of each element in order, which nothing else is stored to.
std::optional<std::int32_t> stored_in_order(const Kernel& k, loop::Reg value, DType dtype) {
  const std::vector<std::int64_t> in_order = loop::contiguous(k.extents).strides;
  std::map<std::int32_t, int> stores;
  std::optional<std::int32_t> found;
  for (const loop::Stage& stage : k.stages) {
    for (const loop::Store& store : stage.stores) {
      const loop::Access& a = store.access;
      ++stores[a.argument];
      const bool plain = stage.per_element && a.offset == 0 && a.terms.empty() &&
                         a.guards.empty() && a.strides == in_order;
      const loop::Argument& to = k.arguments[static_cast<std::size_t>(a.argument)];
      const bool is_whole = to.role == loop::ArgumentRole::Out && to.dtype == dtype;
      if (plain && is_whole && store.value == value) found = a.argument;
    }
  }
  return found && stores[*found] == 1 ? found : std::nullopt;
}

}  // namespace

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

DType product_in(DType dtype) {
  if (is_complex(dtype)) return DType::C128;
  return is_float(dtype) ? DType::F64 : dtype;
}

DType running_in(ReduceKind kind, DType dtype) {
  if (kind == ReduceKind::Prod && is_float(dtype)) return product_in(dtype);
  return kind == ReduceKind::Sum && dtype == DType::F32 ? DType::F64 : widened(dtype);
}

std::vector<std::int32_t> stored_rows(const Kernel& k) {
  std::vector<std::int32_t> all;
  if (k.chunks == 1 || k.chunks != k.accumulated_rows()) return all;
  for (const loop::Accumulator& acc : k.accumulators) {
    const auto stored =
        acc.per_element ? stored_in_order(k, acc.value, widened(acc.dtype)) : std::nullopt;
    if (!stored) return {};
    all.push_back(*stored);
  }
  return all;
}

void accumulate_nothing(Kernel& k) {
  k.accumulators.clear();
  for (loop::Stage& stage : k.stages) stage.accumulators.clear();
  k.kept = k.outer;
  k.chunks = 1;
  loop::sum_up(k);
}

}  // namespace ricci::schedule
