// Compiled for its instruction set by src/CMakeLists.txt.

#define RICCI_VECTOR_TARGET vector_base
#define RICCI_VECTOR_BYTES 16
#include "backend/cpu/kernels/vector_kernels_body.h"
