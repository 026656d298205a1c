// What is wrong with a loop, while it is being checked.
#pragma once

namespace ricci::loop {

struct PlanFault {
  const char* what;
};

inline void require_plan(bool holds, const char* what) {
  if (!holds) throw PlanFault{what};
}

}  // namespace ricci::loop
