// Compiled for its instruction set by src/CMakeLists.txt.
#if defined(__x86_64__)
#define RICCI_VECTOR_TARGET vector_avx2
#define RICCI_VECTOR_BYTES 32
#include "backend/cpu/kernels/vector_kernels_body.h"
#endif
