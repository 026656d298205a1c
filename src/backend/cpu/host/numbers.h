// Elements of any dtype and layout as plain numbers, and back. N is float, double, std::int64_t
// or a complex number of either width.
#pragma once

#include "backend/cpu/run/host_call.h"

namespace ricci::cpu {

/// Elements [begin, begin + count) of a view in row-major order.
template <class N>
void read_numbers(const ArrayView& from, std::int64_t begin, std::int64_t count, N* to);

/// Stores numbers as elements [begin, begin + count) of a row-major array.
template <class N>
void write_numbers(const ArrayView& to, std::int64_t begin, std::int64_t count, const N* from);

/// The only element of an integer operand.
[[nodiscard]] std::int64_t read_integer(const ArrayView& from);
/// The key of a random stream: a call's own plus what an operand holds, unless that is -1.
[[nodiscard]] std::uint64_t stream_key(const HostArguments& call, std::uint64_t key,
                                       std::int64_t operand);

}  // namespace ricci::cpu
