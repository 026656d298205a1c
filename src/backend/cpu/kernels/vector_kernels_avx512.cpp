// Compiled for its instruction set by src/CMakeLists.txt.
#if defined(__x86_64__)
#define RICCI_VECTOR_TARGET vector_avx512
#define RICCI_VECTOR_BYTES 64
#include "backend/cpu/kernels/vector_kernels_body.h"
#endif
