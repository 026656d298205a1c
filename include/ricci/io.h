// Files of arrays and weights: NPY, NPZ, safetensors, GGUF.
#pragma once

#if __cplusplus < 202002L
#error "Ricci needs C++20: compile with -std=c++20"
#else

#include "ricci/io/gguf.h"
#include "ricci/io/npy.h"
#include "ricci/io/safetensors.h"
#include "ricci/io/weight_file.h"
#include "ricci/io/weights.h"

#endif
