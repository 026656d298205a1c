// A matrix product as cuBLASLt is asked for it: its description and the algorithm it proposes,
// which depends on the shape alone.
#pragma once

#include <cstdint>
#include <memory>

#include "ricci/type/dtype.h"

#include "backend/cuda/run/gpu.h"

namespace ricci::cuda {

/// One matrix of a batch in memory, in elements: either its rows or its columns adjoin.
struct LibraryMatrix {
  bool transposed = false;  ///< columns adjoin: it is stored as its transpose
  std::int64_t leading = 1;
  std::int64_t batch = 0;
  std::int64_t alignment = 16;  ///< in bytes
};

/// c [rows, columns] = a [rows, depth] b [depth, columns], all row-major where not transposed.
struct LibraryShape {
  DType dtype = DType::F32;
  std::int64_t rows = 0;
  std::int64_t depth = 0;
  std::int64_t columns = 0;
  std::int64_t batch = 1;
  LibraryMatrix a;
  LibraryMatrix b;
  LibraryMatrix c;  ///< never transposed
};

[[nodiscard]] bool has_library_product(DType dtype);

/// What the library makes, given back to it.
struct GivesBack {
  void operator()(MatmulDesc desc) const { cublas_library().desc_destroy(desc); }
  void operator()(MatrixLayout layout) const { cublas_library().layout_destroy(layout); }
  void operator()(Preference preference) const { cublas_library().preference_destroy(preference); }
};
using OwnedDesc = std::unique_ptr<cublasLtMatmulDescOpaque, GivesBack>;
using OwnedLayout = std::unique_ptr<cublasLtMatrixLayoutOpaque, GivesBack>;
using OwnedPreference = std::unique_ptr<cublasLtMatmulPreferenceOpaque, GivesBack>;

class Multiplication {
 public:
  /// Null when the library has nothing for it, or there is no library.
  [[nodiscard]] static std::shared_ptr<const Multiplication> make(const Gpu& gpu,
                                                                  const LibraryShape& shape);
  [[nodiscard]] std::int64_t workspace_bytes() const {
    return static_cast<std::int64_t>(choice_.workspace);
  }

  struct Arrays {
    Address a = 0;
    Address b = 0;
    Address c = 0;
    Address workspace = 0;
    Stream stream = nullptr;
  };
  void enqueue(const Arrays& arrays) const;

 private:
  Multiplication(const Gpu& gpu, const LibraryShape& shape);

  CublasHandle handle_;
  DType dtype_;
  OwnedDesc desc_;
  // The library's matrices are column-major: there cᵀ = bᵀ aᵀ.
  OwnedLayout first_;
  OwnedLayout second_;
  OwnedLayout result_;
  MatmulChoice choice_{};
  bool found_ = false;
};

}  // namespace ricci::cuda
