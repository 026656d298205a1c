// Everyday ways to read and write by index: compositions of gather, scatter and comparisons.
#pragma once

#include "ricci/build/build.h"

namespace ricci {

/// Elements or slices of x by index tuples: out[k…, t…] = x[i_0, …, i_r-1, t…] with
/// (i_0, …, i_r-1) = indices[k…, :]. Each index is checked against its own axis. The first r sizes
/// of x are known.
Value gather_nd(Value x, Value indices, std::source_location loc = std::source_location::current());

/// x with slices combined at index tuples, one after the other as `scatter` does: updates are
/// [k…, t…] for indices [k…, r] and x [n_0, …, n_r-1, t…].
Value scatter_nd(ScatterKind kind, Value x, Value updates, Value indices,
                 std::source_location loc = std::source_location::current());

/// x with single elements combined along an axis: out[…, indices[…, k, …], …] meets
/// updates[…, k, …]; updates and indices have one shape, that of x but for the axis. Sizes are
/// known.
Value scatter_along_axis(ScatterKind kind, Value x, Value updates, Value indices, Axis axis,
                         std::source_location loc = std::source_location::current());

struct OneHotOptions {
  Axis axis = -1;  ///< where the new axis goes
  DType dtype = DType::F32;
};
/// 1 where the new axis has the index, 0 elsewhere; an index outside of it gives zeros.
Value one_hot(Value indices, const Dim& depth, OneHotOptions options = {},
              std::source_location loc = std::source_location::current());

struct HistogramOptions {
  std::int64_t bins = 10;
  double low = 0;
  double high = 1;
};
/// How many elements of x are in each of `bins` equal parts of [low, high], the last one with its
/// upper edge; others, and NaN, are left out. The edges are low + i·(high - low)/bins, rounded once
/// to x's dtype. i64[bins].
Value histogram(Value x, HistogramOptions options,
                std::source_location loc = std::source_location::current());
/// The sum of the elements' weights instead of their number; the gradient goes to the weights.
Value histogram(Value x, Value weights, HistogramOptions options,
                std::source_location loc = std::source_location::current());

}  // namespace ricci
