// What members of the families of functions and reductions have in common. Each question is one
// switch without a default: a new member does not compile until it is answered.
#pragma once

#include <cstdint>

#include "ricci/op/elementwise.h"
#include "ricci/op/reduce.h"

namespace ricci {

/// Which element a reduction picks, if it picks one.
enum class Pick : std::uint8_t { None, Largest, Smallest };

[[nodiscard]] constexpr Pick pick_of(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::Max: return Pick::Largest;
    case ReduceKind::Min: return Pick::Smallest;
    case ReduceKind::Sum:
    case ReduceKind::Mean:
    case ReduceKind::Prod:
    case ReduceKind::Any:
    case ReduceKind::All:
    case ReduceKind::LogSumExp: break;
  }
  return Pick::None;
}

[[nodiscard]] constexpr Pick pick_of(CumulativeKind kind) {
  switch (kind) {
    case CumulativeKind::Cummax: return Pick::Largest;
    case CumulativeKind::Cummin: return Pick::Smallest;
    case CumulativeKind::Cumsum:
    case CumulativeKind::Cumprod: break;
  }
  return Pick::None;
}

/// Does a reduction only ask of each element whether it is zero?
[[nodiscard]] constexpr bool is_logical(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::Any:
    case ReduceKind::All: return true;
    case ReduceKind::Sum:
    case ReduceKind::Mean:
    case ReduceKind::Max:
    case ReduceKind::Min:
    case ReduceKind::Prod:
    case ReduceKind::LogSumExp: break;
  }
  return false;
}

/// Is a reduction written by others before it is lowered?
[[nodiscard]] constexpr bool is_by_others(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::Mean:
    case ReduceKind::LogSumExp: return true;
    case ReduceKind::Sum:
    case ReduceKind::Max:
    case ReduceKind::Min:
    case ReduceKind::Prod:
    case ReduceKind::Any:
    case ReduceKind::All: break;
  }
  return false;
}

}  // namespace ricci
