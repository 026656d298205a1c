// Copies between arrays of one shape, however their elements lie in memory.
#pragma once

#include "backend/cpu/run/host_call.h"

namespace ricci::cpu {

/// dst[i] = src[i] for every index, bit for bit. Both have one shape and elements of one size; they
/// do not overlap, and no two elements of dst share a place.
void copy_strided(const ArrayView& dst, const ArrayView& src, ThreadPool& pool);

}  // namespace ricci::cpu
