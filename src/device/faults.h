// How faults of a program's steps are told: in the same words, whichever device meets them.
#pragma once

#include <cstdint>
#include <exception>
#include <string_view>

#include "ricci/schedule/program.h"

namespace ricci::device {

/// A kernel has met an index that is outside [0, limit).
struct IndexFault {
  std::int64_t index = 0;
  std::int64_t limit = 0;
};

/// UserError(index_out_of_range) for a launch.
[[noreturn]] void fail_index(const IndexFault& fault, const Origin& launch);
/// Something that is not ours was thrown: by a kernel of the user's, or for want of memory.
[[noreturn]] void fail_kernel(const std::exception& error, std::string_view op, const Origin& step);
/// Inside a handler of what a call has thrown: throws it again, with the op and its place.
[[noreturn]] void fail_call(const CallStep& call, const Origin& step);

}  // namespace ricci::device
