// Arrays and functions of them: the surface most programs need.
//
//   #include <ricci/array.h>
//
//   auto loss = [](const Net& net, const Batch& b) { return cross_entropy(net(b.x), b.y); };
//   auto step = jit(value_and_grad(loss));
#pragma once

#if __cplusplus < 202002L
#error "Ricci needs C++20: compile with -std=c++20"
#else

#include "ricci/array/array.h"
#include "ricci/array/control.h"
#include "ricci/array/create.h"
#include "ricci/array/function.h"
#include "ricci/array/ops.h"
#include "ricci/array/print.h"
#include "ricci/array/random.h"
#include "ricci/array/transform.h"
#include "ricci/array/tree.h"

#endif
