// cuBLASLt, NVIDIA's matrix products, with declarations of our own. Optional: without it products
// are our own kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "backend/cuda/load/driver.h"

namespace ricci::cuda {

using CublasHandle = struct cublasLtContext*;
using MatmulDesc = struct cublasLtMatmulDescOpaque*;
using MatrixLayout = struct cublasLtMatrixLayoutOpaque*;
using Preference = struct cublasLtMatmulPreferenceOpaque*;

/// cublasLtMatmulAlgo_t, which it copies about.
struct MatmulAlgorithm {
  std::uint64_t data[8];
};
/// cublasLtMatmulHeuristicResult_t
struct MatmulChoice {
  MatmulAlgorithm algorithm;
  std::size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

// Numbers of the library's enumerations.
namespace cublas {
inline constexpr int Real32 = 0;  // cudaDataType
inline constexpr int Real64 = 1;
inline constexpr int Half = 2;
inline constexpr int Complex32 = 4;
inline constexpr int Complex64 = 5;
inline constexpr int BHalf = 14;
inline constexpr int Compute32 = 68;  // cublasComputeType_t
inline constexpr int Compute64 = 70;
inline constexpr int ComputeTf32 = 77;
inline constexpr int TransposeA = 3;  // cublasLtMatmulDescAttributes_t
inline constexpr int TransposeB = 4;
inline constexpr int EpilogueKind = 7;
inline constexpr int BiasPointer = 8;
inline constexpr int AuxPointer = 11;
inline constexpr int AuxLeading = 12;
inline constexpr std::uint32_t EpilogueNone = 1;  // cublasLtEpilogue_t, which are put together
inline constexpr std::uint32_t EpilogueRelu = 2;
inline constexpr std::uint32_t EpilogueBias = 4;
inline constexpr std::uint32_t EpilogueGelu = 32;
inline constexpr std::uint32_t EpilogueAux = 128;
inline constexpr int BatchCount = 5;  // cublasLtMatrixLayoutAttribute_t
inline constexpr int BatchStride = 6;
inline constexpr int MaxWorkspace = 1;  // cublasLtMatmulPreferenceAttributes_t
inline constexpr int AlignmentA = 5;
inline constexpr int AlignmentB = 6;
inline constexpr int AlignmentC = 7;
inline constexpr int AlignmentD = 8;
}  // namespace cublas

// F(member, exported name, parameters)
#define RICCI_CUBLASLT(F)                                                                       \
  F(create, "cublasLtCreate", (CublasHandle * handle))                                          \
  F(desc_create, "cublasLtMatmulDescCreate", (MatmulDesc * desc, int compute, int scale))       \
  F(desc_destroy, "cublasLtMatmulDescDestroy", (MatmulDesc desc))                               \
  F(desc_set, "cublasLtMatmulDescSetAttribute",                                                 \
    (MatmulDesc desc, int attribute, const void* value, std::size_t bytes))                     \
  F(layout_create, "cublasLtMatrixLayoutCreate",                                                \
    (MatrixLayout * layout, int type, std::uint64_t rows, std::uint64_t columns,                \
     std::int64_t leading))                                                                     \
  F(layout_destroy, "cublasLtMatrixLayoutDestroy", (MatrixLayout layout))                       \
  F(layout_set, "cublasLtMatrixLayoutSetAttribute",                                             \
    (MatrixLayout layout, int attribute, const void* value, std::size_t bytes))                 \
  F(preference_create, "cublasLtMatmulPreferenceCreate", (Preference * preference))             \
  F(preference_destroy, "cublasLtMatmulPreferenceDestroy", (Preference preference))             \
  F(preference_set, "cublasLtMatmulPreferenceSetAttribute",                                     \
    (Preference preference, int attribute, const void* value, std::size_t bytes))               \
  F(choose, "cublasLtMatmulAlgoGetHeuristic",                                                   \
    (CublasHandle handle, MatmulDesc desc, MatrixLayout a, MatrixLayout b, MatrixLayout c,      \
     MatrixLayout d, Preference preference, int wanted, MatmulChoice* choices, int* found))     \
  F(check, "cublasLtMatmulAlgoCheck",                                                           \
    (CublasHandle handle, MatmulDesc desc, MatrixLayout a, MatrixLayout b, MatrixLayout c,      \
     MatrixLayout d, const MatmulAlgorithm* algorithm, MatmulChoice* choice))                   \
  F(multiply, "cublasLtMatmul",                                                                 \
    (CublasHandle handle, MatmulDesc desc, const void* alpha, Address a, MatrixLayout a_layout, \
     Address b, MatrixLayout b_layout, const void* beta, Address c, MatrixLayout c_layout,      \
     Address d, MatrixLayout d_layout, const MatmulAlgorithm* algorithm, Address workspace,     \
     std::size_t workspace_bytes, Stream stream))

struct Cublas {
#define RICCI_CUBLASLT_MEMBER(member, exported, parameters) int(*member) parameters = nullptr;
  RICCI_CUBLASLT(RICCI_CUBLASLT_MEMBER)
#undef RICCI_CUBLASLT_MEMBER
  std::size_t (*version)() = nullptr;
  std::string why_not;
};

/// Loaded once.
[[nodiscard]] const Cublas& cublas_library();

}  // namespace ricci::cuda
