// How faults of a program's steps are told: in the same words, whichever device meets them.
#pragma once

#include <cstdint>
#include <exception>
#include <string_view>

#include "ricci/compiler/schedule/program.h"

namespace ricci::device {

/// What a kernel has met: an index that is outside [0, limit), or an exponent.
struct KernelFault {
  loop::FaultKind kind = loop::FaultKind::Index;
  std::int64_t number = 0;
  std::int64_t limit = 0;
};

/// UserError for a launch: index_out_of_range, or attr for integers that have no answer.
[[noreturn]] void fail_launch(const KernelFault& fault, const Origin& launch);
/// Something that is not ours was thrown: by a kernel of the user's, or for want of memory.
[[noreturn]] void fail_kernel(const std::exception& error, std::string_view op, const Origin& step);
/// Inside a handler of what a call has thrown: throws it again, with the op and its place.
[[noreturn]] void fail_call(const Program& program, const CallStep& call, const Origin& step);

}  // namespace ricci::device
