// The first use of the code generator, ahead of time.
#pragma once

#include "ricci/compiler/device/thread_pool.h"

namespace ricci::cpu {

/// Makes and throws away a little code on some of the pool's threads.
void warm_up(ThreadPool& pool);

}  // namespace ricci::cpu
