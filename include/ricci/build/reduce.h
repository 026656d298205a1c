// Reductions and running totals by name.
#pragma once

#include "ricci/build/build.h"

namespace ricci {

// `sum` and `mean` are declared with the operators; the others carry their family's name, because
// `max` and `min` compare two operands. No axes means all of them.
Value reduce_max(Value x, Axes axes = {}, bool keep_dim = false,
                 std::source_location loc = std::source_location::current());
Value reduce_min(Value x, Axes axes = {}, bool keep_dim = false,
                 std::source_location loc = std::source_location::current());
Value reduce_prod(Value x, Axes axes = {}, bool keep_dim = false,
                  std::source_location loc = std::source_location::current());
Value reduce_any(Value x, Axes axes = {}, bool keep_dim = false,
                 std::source_location loc = std::source_location::current());
Value reduce_all(Value x, Axes axes = {}, bool keep_dim = false,
                 std::source_location loc = std::source_location::current());
/// log Σ e^x, without overflow.
Value log_sum_exp(Value x, Axes axes = {}, bool keep_dim = false,
                  std::source_location loc = std::source_location::current());

struct CumulativeOptions {
  Axis axis = -1;
  bool exclusive = false;  ///< element i leaves x_i itself out
};
/// The generic form: the function as an argument.
Value cumulative(CumulativeKind kind, Value x, CumulativeOptions options = {},
                 std::source_location loc = std::source_location::current());
Value cumsum(Value x, CumulativeOptions options = {},
             std::source_location loc = std::source_location::current());
Value cumprod(Value x, CumulativeOptions options = {},
              std::source_location loc = std::source_location::current());
Value cummax(Value x, CumulativeOptions options = {},
             std::source_location loc = std::source_location::current());
Value cummin(Value x, CumulativeOptions options = {},
             std::source_location loc = std::source_location::current());

}  // namespace ricci
