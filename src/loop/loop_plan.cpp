#include "ricci/compiler/loop/loop_plan.h"

#include <iterator>

#include <fmt/format.h>

#include "ricci/support/checked.h"

#include "loop/plan_fault.h"

namespace ricci::loop {
namespace {

__extension__ using Wide = __int128;  // products of any two counts

constexpr const char* OtherSize = "a body takes or gives values of another size";
constexpr const char* NoArray = "a loop uses an operand or result that does not exist";

class PlanChecker {
 public:
  PlanChecker(const LoopPlan& plan, const PlanArrays& arrays)
      : plan_(plan), arrays_(arrays), filled_(arrays.results.size(), false) {}

  void run() {
    constexpr std::int64_t Most = std::int64_t{1} << 60;
    require_plan(plan_.conditional || plan_.most_trips, "a loop without a condition has no length");
    require_plan(!plan_.most_trips || (*plan_.most_trips >= 0 && *plan_.most_trips <= Most),
                 "a loop has more trips than can be counted, or less than none");
    require_plan(
        arrays_.body_inputs.size() == plan_.body_inputs() &&
            arrays_.body_outputs.size() == plan_.body_outputs() &&
            arrays_.condition_inputs.size() == (plan_.conditional ? plan_.carries.size() : 0),
        "a body takes or gives another number of values");
    for (std::size_t k = 0; k < plan_.carries.size(); ++k) check_carry(k);
    for (std::size_t k = 0; k < plan_.wholes.size(); ++k) {
      require_plan(operand(plan_.wholes[k]) == input(plan_.carries.size() + k), OtherSize);
    }
    for (std::size_t k = 0; k < plan_.xs.size(); ++k) {
      const RowPort& x = plan_.xs[k];
      check_rows(input(plan_.carries.size() + plan_.wholes.size() + k), operand(x.array), x.rows,
                 trips());
    }
    for (std::size_t k = 0; k < plan_.ys.size(); ++k) {
      const RowPort& y = plan_.ys[k];
      if (y.array < 0) continue;
      check_rows(arrays_.body_outputs[plan_.carries.size() + k], fill(y.array), y.rows, trips());
    }
    if (plan_.trip_count >= 0) {
      require_plan(fill(plan_.trip_count) == ArraySize{DType::I32, 1},
                   "the number of trips is not one i32");
    }
    for (const std::int32_t r : plan_.zeroed) (void)result(r);
    for (std::size_t r = 0; r < filled_.size(); ++r) {
      require_plan(filled_[r] || !arrays_.results[r], "a loop leaves a result as it is");
    }
  }

 private:
  [[nodiscard]] const ArraySize& operand(std::int32_t k) const {
    require_plan(k >= 0 && static_cast<std::size_t>(k) < arrays_.operands.size(), NoArray);
    return arrays_.operands[static_cast<std::size_t>(k)];
  }
  [[nodiscard]] const ArraySize& result(std::int32_t r) const {
    require_plan(r >= 0 && static_cast<std::size_t>(r) < arrays_.results.size() &&
                     arrays_.results[static_cast<std::size_t>(r)],
                 NoArray);
    return *arrays_.results[static_cast<std::size_t>(r)];
  }
  // A result has one place of the plan that it comes from.
  const ArraySize& fill(std::int32_t r) {
    const ArraySize& size = result(r);
    require_plan(!filled_[static_cast<std::size_t>(r)], "a loop fills a result in two ways");
    filled_[static_cast<std::size_t>(r)] = true;
    return size;
  }
  [[nodiscard]] const ArraySize& input(std::size_t k) const { return arrays_.body_inputs[k]; }
  [[nodiscard]] std::int64_t trips() const {
    require_plan(plan_.most_trips.has_value(), "a loop without a bound goes over rows");
    return *plan_.most_trips;
  }

  void check_carry(std::size_t k) {
    const Carry& carry = plan_.carries[k];
    const ArraySize& size = input(k);
    require_plan(operand(carry.operand) == size && arrays_.body_outputs[k] == size, OtherSize);
    require_plan(!plan_.conditional || arrays_.condition_inputs[k] == size, OtherSize);
    if (carry.last >= 0) require_plan(fill(carry.last) == size, OtherSize);
    if (!carry.kept) return;
    const Pace& pace = carry.kept->pace;
    constexpr std::int64_t Most = std::int64_t{1} << 60;
    require_plan(pace.start >= 0 && pace.start < pace.limit && pace.add > 0 &&
                     pace.add <= pace.limit && pace.limit <= Most,
                 "a loop keeps rows at no known pace");
    const Wide kept = (Wide{pace.start} + Wide{pace.add} * trips()) / pace.limit;
    // The next trip reads the row that this one has filled.
    require_plan(carry.kept->rows.step != 0, "a loop keeps all rows in one place");
    check_rows(size, fill(carry.kept->result), carry.kept->rows, static_cast<std::int64_t>(kept));
  }

  // Are so many rows inside an array that consists of rows of this size?
  static void check_rows(const ArraySize& row, const ArraySize& array, const RowWalk& walk,
                         std::int64_t count) {
    require_plan(row.dtype == array.dtype, OtherSize);
    if (count == 0) return;
    const std::optional<std::int64_t> way = try_mul(walk.step, count - 1);
    const std::optional<std::int64_t> last = way ? try_add(walk.first, *way) : std::nullopt;
    require_plan(walk.first >= 0 && last && *last >= 0, "a loop goes to a row that does not exist");
    for (const std::int64_t at : {walk.first, *last}) {
      const std::optional<std::int64_t> rows = try_add(at, 1);
      const std::optional<std::int64_t> end = rows ? try_mul(row.elements, *rows) : std::nullopt;
      require_plan(end && *end <= array.elements, OtherSize);
    }
  }

  const LoopPlan& plan_;
  const PlanArrays& arrays_;
  std::vector<bool> filled_;  // results
};

std::string text_of(const RowWalk& rows) {
  return fmt::format("from {} by {}", rows.first, rows.step);
}

std::string text_of(const Carry& c) {
  std::string text = fmt::format("carry operand {}", c.operand);
  auto out = std::back_inserter(text);
  if (c.last >= 0) fmt::format_to(out, ", the last to result {}", c.last);
  if (!c.kept) return text;
  const KeptRows& kept = *c.kept;
  fmt::format_to(out, ", {} {} to rows of result {} {}",
                 kept.pace.every_trip() ? "each"
                                        : fmt::format("{} in {} after {}", kept.pace.add,
                                                      kept.pace.limit, kept.pace.start),
                 kept.entering ? "entering" : "leaving", kept.result, text_of(kept.rows));
  return text;
}

}  // namespace

std::optional<std::string> find_fault(const LoopPlan& plan, const PlanArrays& arrays) {
  try {
    PlanChecker(plan, arrays).run();
    return std::nullopt;
  } catch (const PlanFault& fault) {
    return fault.what;
  }
}

std::string to_string(const LoopPlan& plan) {
  std::string text;
  auto out = std::back_inserter(text);
  if (!plan.conditional) {
    fmt::format_to(out, "trips {}\n", plan.most_trips.value_or(0));
  } else if (plan.most_trips) {
    fmt::format_to(out, "trips while cond, at most {}\n", *plan.most_trips);
  } else {
    text += "trips while cond\n";
  }
  for (const std::int32_t r : plan.zeroed) fmt::format_to(out, "zero result {}\n", r);
  for (const Carry& c : plan.carries) text += text_of(c) + '\n';
  for (const std::int32_t k : plan.wholes) fmt::format_to(out, "whole operand {}\n", k);
  for (const RowPort& x : plan.xs) {
    fmt::format_to(out, "rows of operand {} {}\n", x.array, text_of(x.rows));
  }
  for (const RowPort& y : plan.ys) {
    text += y.array < 0 ? std::string("rows nobody wants\n")
                        : fmt::format("rows to result {} {}\n", y.array, text_of(y.rows));
  }
  if (plan.trip_count >= 0) fmt::format_to(out, "count to result {}\n", plan.trip_count);
  return text;
}

}  // namespace ricci::loop
