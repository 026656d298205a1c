// What programs made of arrays need, one header a part; a program may include only those it uses:
//
//   ricci/array.h    arrays, functions of functions, control flow, random numbers
//   ricci/nn.h       networks: layers, initialisers, the trainer, data, checkpoints
//   ricci/runtime.h  programs compiled for a device, profiles, objects made ahead of time
//   ricci/io.h       files: NPY, NPZ, safetensors, GGUF
//
// The layer below has headers of its own, for those who go down to it:
//
//   ricci/graph.h    graphs, builders, text, transforms, the reference interpreter
//   ricci/model.h    modules, optimisers and training steps of graphs, quantisation
//
// Beside them: ricci/serve.h generates from language models, ricci/compat.h has spellings of the
// specification, and ricci/compiler.h is for those who write passes, rules or back ends.
#pragma once

#if __cplusplus < 202002L
#error "Ricci needs C++20: compile with -std=c++20"
#else

#include "ricci/array.h"
#include "ricci/io.h"
#include "ricci/nn.h"
#include "ricci/runtime.h"

#endif
