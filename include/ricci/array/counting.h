// What is where, and how often: sums by segments, histograms, sets, places of what is chosen.
#pragma once

#include <cstdint>
#include <optional>
#include <source_location>
#include <utility>
#include <vector>

#include "ricci/array/math.h"

namespace ricci {

// Rows that have the same number are combined: out[k] of all data[i] with segments[i] = k, for k in
// 0 … count - 1. A segment without rows has 0, 1, or the least or largest number there is.
[[nodiscard]] Array segment_sum(const Array& data, const Array& segments, std::int64_t count,
                                Here where = Here::current());
[[nodiscard]] Array segment_prod(const Array& data, const Array& segments, std::int64_t count,
                                 Here where = Here::current());
[[nodiscard]] Array segment_max(const Array& data, const Array& segments, std::int64_t count,
                                Here where = Here::current());
[[nodiscard]] Array segment_min(const Array& data, const Array& segments, std::int64_t count,
                                Here where = Here::current());
/// 0 where there is none.
[[nodiscard]] Array segment_mean(const Array& data, const Array& segments, std::int64_t count,
                                 Here where = Here::current());

/// {counts, edges}: how many elements are in each of `bins` equal parts of [low, high], the last of
/// which has its end; without them from the smallest to the largest, which is computed at once.
[[nodiscard]] std::pair<Array, Array> histogram(const Array& x, std::int64_t bins = 10,
                                                std::optional<std::pair<double, double>> range = {},
                                                Here where = Here::current());
/// The elements, each once and sorted. Computed at once, and not for what is being traced.
[[nodiscard]] Array unique(const Array& x, Here where = Here::current());
/// Whether each element of x is among those.
[[nodiscard]] Array isin(const Array& x, const Array& those, Here where = Here::current());
/// The places of what is not 0, one row each. Computed at once.
[[nodiscard]] Array argwhere(const Array& x, Here where = Here::current());

/// {rows, columns} of the lower or upper triangle of an n × n matrix.
[[nodiscard]] std::pair<Array, Array> tril_indices(std::int64_t n, std::int64_t k = 0,
                                                   Here where = Here::current());
[[nodiscard]] std::pair<Array, Array> triu_indices(std::int64_t n, std::int64_t k = 0,
                                                   Here where = Here::current());
/// Places in an array of a shape from their number in row-major order, one array an axis; and back.
[[nodiscard]] std::vector<Array> unravel_index(const Array& indices,
                                               const std::vector<std::int64_t>& shape,
                                               Here where = Here::current());
[[nodiscard]] Array ravel_multi_index(const std::vector<Array>& places,
                                      const std::vector<std::int64_t>& shape,
                                      Here where = Here::current());
/// The first choice whose condition holds, `otherwise` where none does.
[[nodiscard]] Array select(const std::vector<Array>& conditions, const std::vector<Array>& choices,
                           const Array& otherwise = 0, Here where = Here::current());

}  // namespace ricci
