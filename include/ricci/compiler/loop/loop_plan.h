// How a loop goes, as plain data: how often its body runs, what it is handed each time and where
// what it gives goes. A loop whose body is a program and one that is written out (written_loop.h)
// are described alike, and whoever runs them needs nothing else.
//
// Operands and results are arrays, one element behind the other, by number. A body's inputs are the
// carries, the whole operands and one row of each x, in this order; its outputs are the next
// carries and one row of each y. A condition takes the carries and gives one array.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ricci/type/dtype.h"

namespace ricci::loop {

/// Rows of an array in the order in which a loop comes to them.
struct RowWalk {
  std::int64_t first = 0;
  std::int64_t step = 1;

  [[nodiscard]] std::int64_t row(std::int64_t n) const noexcept { return first + n * step; }
  bool operator==(const RowWalk&) const = default;
};

/// An operand, or a result, of which each trip has a row.
struct RowPort {
  std::int32_t array = -1;  ///< -1: a result nobody wants
  RowWalk rows = {};
  bool operator==(const RowPort&) const = default;
};

/// Which trips are kept: a count goes up by `add` with every trip, and where it reaches `limit`,
/// that much is taken away and the trip is kept. 0 ≤ start < limit, 0 < add ≤ limit.
struct Pace {
  std::int64_t start = 0;
  std::int64_t add = 1;
  std::int64_t limit = 1;

  [[nodiscard]] bool every_trip() const noexcept { return add == limit; }
  /// Counts a trip; is it kept?
  [[nodiscard]] bool keeps(std::int64_t& count) const noexcept {
    count += add;
    if (count < limit) return false;
    count -= limit;
    return true;
  }
  bool operator==(const Pace&) const = default;
};

/// Rows with the values of a carry on the trips that are kept.
struct KeptRows {
  std::int32_t result = -1;
  RowWalk rows = {};
  Pace pace = {};
  bool entering = false;  ///< the value the trip is given, else the one it gives
  bool operator==(const KeptRows&) const = default;
};

/// A value that is handed from trip to trip.
struct Carry {
  std::int32_t operand = -1;  ///< what the first trip is given
  std::int32_t last = -1;     ///< the result with the value after the last trip; -1: none
  std::optional<KeptRows> kept = {};
  bool operator==(const Carry&) const = default;
};

struct LoopPlan {
  /// How many trips there are, or, with a condition, at most; nothing: no bound.
  std::optional<std::int64_t> most_trips = {};
  /// A trip is made only when every element of what the condition gives is something else than 0.
  bool conditional = false;
  std::vector<Carry> carries = {};
  std::vector<std::int32_t> wholes = {};
  std::vector<RowPort> xs = {};
  std::vector<RowPort> ys = {};
  std::vector<std::int32_t> zeroed = {};  ///< results that are zero before the first trip
  std::int32_t trip_count = -1;           ///< the result with the number of trips; -1: none

  [[nodiscard]] std::size_t body_inputs() const noexcept {
    return carries.size() + wholes.size() + xs.size();
  }
  [[nodiscard]] std::size_t body_outputs() const noexcept { return carries.size() + ys.size(); }
  bool operator==(const LoopPlan&) const = default;
};

struct ArraySize {
  DType dtype = DType::F32;
  std::int64_t elements = 0;
  bool operator==(const ArraySize&) const = default;
};

/// The arrays around a plan.
struct PlanArrays {
  std::vector<ArraySize> operands;
  std::vector<std::optional<ArraySize>> results;  ///< nothing: nobody wants it
  std::vector<ArraySize> body_inputs;
  std::vector<ArraySize> body_outputs;
  std::vector<ArraySize> condition_inputs;  ///< none without a condition
};

/// What is wrong with a plan: arrays that do not exist or have another size than the body's, rows
/// outside them, results that are filled twice or not at all. The plan may come from anywhere.
[[nodiscard]] std::optional<std::string> find_fault(const LoopPlan& plan, const PlanArrays& arrays);

/// Readable text, one line for each thing that happens.
[[nodiscard]] std::string to_string(const LoopPlan& plan);

}  // namespace ricci::loop
