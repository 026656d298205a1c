// Everything a user of Ricci needs, one header a layer; a program may include only those it uses:
//
//   ricci/array.h    arrays, functions of functions, control flow, random numbers
//   ricci/nn.h       networks: layers, initialisers, the trainer
//   ricci/graph.h    below arrays: graphs, builders, text, transforms, the reference interpreter
//   ricci/runtime.h  graphs compiled for a device, profiles, objects made ahead of time
//   ricci/model.h    modules, optimisers and training steps of graphs, quantisation
//   ricci/io.h       files: NPY, NPZ, safetensors, GGUF
//
// Beside them: ricci/compat.h has spellings of the specification, and ricci/compiler.h is for those
// who write passes, rules or back ends.
#pragma once

#if __cplusplus < 202002L
#error "Ricci needs C++20: compile with -std=c++20"
#else

#include "ricci/array.h"
#include "ricci/graph.h"
#include "ricci/io.h"
#include "ricci/model.h"
#include "ricci/nn.h"
#include "ricci/runtime.h"

#endif
