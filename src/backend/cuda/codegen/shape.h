// How kernels are made for a GPU: sums cut into more parts than a processor has cores, rows as long
// as a block holds in registers or shared memory.
#pragma once

#include "ricci/compiler/schedule/target.h"

namespace ricci::cuda {

[[nodiscard]] const schedule::KernelShape& kernel_shape();

}  // namespace ricci::cuda
