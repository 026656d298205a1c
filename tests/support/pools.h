// Thread pools of several sizes, made once: results must not depend on which one runs them.
#pragma once

#include <deque>

#include "ricci/compiler/device/thread_pool.h"

namespace ricci::testing {

inline std::deque<ThreadPool>& pools() {
  static std::deque<ThreadPool> all;
  if (all.empty()) {
    for (const int threads : {1, 2, 3, 8}) all.emplace_back(threads);
  }
  return all;
}

}  // namespace ricci::testing
