// What derivative and batching rules are written with.
#pragma once

#include <vector>

#include "ricci/build/build.h"
#include "ricci/compiler/rule/batch.h"
#include "ricci/compiler/rule/jvp.h"
#include "ricci/compiler/rule/vjp.h"

#include "type/small_dtype.h"

namespace ricci::rule {

/// Sums `g` over the axes along which a value of type `like` was broadcast: the transpose of
/// broadcasting.
[[nodiscard]] Value unbroadcast(Value g, const Type& like);

/// The complex conjugate; a real value itself. A linear map's transpose under our convention for
/// complex cotangents is its conjugate transpose.
[[nodiscard]] Value conj(Value v);

/// Whether numbers of a dtype are too few for counts and sums: rules then compute in f32.

/// a + b where either may be absent.
[[nodiscard]] Value sum_of(Value a, Value b);

/// A size as a rank-0 number of the dtype of `like`, symbolic or not.
[[nodiscard]] Value size_as_number(const Dim& size, Value like);

/// The value of a reduction put back over the reduced axes: sizes 1 there, then `dims`.
[[nodiscard]] Value spread(Value reduced, const Axes& axes, const Dims& dims);

/// Zeros of `like`'s type as a constant that broadcasts: rank 0.
[[nodiscard]] inline Value zero_like(Value like) { return scalar_like(like, 0); }

/// Adds a node and gives its results; those not asked for are invalid.
[[nodiscard]] std::vector<Value> add_wanted(Graph& graph, Op op, std::span<const Value> operands,
                                            std::vector<bool> wanted);

/// Axis `from` put where axis `to` is now, the others in their order.
[[nodiscard]] Value move_axis(Value v, std::size_t from, std::size_t to);

/// Elements along an axis put `stride` apart, zeros between them and behind: the transpose of
/// take_every of an axis of `size`.
[[nodiscard]] Value spread_apart(Value v, std::size_t axis, std::int64_t stride, const Dim& size);

/// Axes one further, for a value with the batch in front.
[[nodiscard]] Axes shifted(const Axes& axes);
[[nodiscard]] inline Axis shifted(Axis axis) { return axis + 1; }

}  // namespace ricci::rule
