// A matrix product as cuBLASLt is asked for it: its description, what is done with the result
// before it is stored, and the algorithm, which is the one it proposes for the shape or, where it
// can be kept, the fastest of several.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "ricci/type/dtype.h"

#include "backend/cuda/run/gpu.h"
#include "backend/cuda/structured/call_plan.h"
#include "backend/cuda/structured/epilogue.h"
#include "support/fork.h"

namespace ricci::cuda {

/// One matrix of a batch in memory, in elements: either its rows or its columns adjoin.
struct LibraryMatrix {
  bool transposed = false;  ///< columns adjoin: it is stored as its transpose
  std::int64_t leading = 1;
  std::int64_t batch = 0;
  std::int64_t alignment = 16;  ///< in bytes
  bool operator==(const LibraryMatrix&) const = default;
};

/// What is done with a result before it is stored, see Epilogue.
struct LibraryEpilogue {
  Epilogue::Function function = Epilogue::Function::None;
  bool bias = false;
  bool added = false;
  bool inner = false;
  [[nodiscard]] bool applies() const { return function != Epilogue::Function::None; }
  bool operator==(const LibraryEpilogue&) const = default;
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
  LibraryMatrix c;            ///< never transposed
  DType result = DType::F32;  ///< of c, and of what the epilogue reads and writes
  bool tf32 = false;          ///< f32 may be rounded to tf32 before it is multiplied
  LibraryEpilogue epilogue = {};

  [[nodiscard]] std::string text() const;
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
  /// Null where the library has none, there is no library, or what it applies to the result is not
  /// what it says: that is tried once for every shape.
  [[nodiscard]] static std::shared_ptr<const Multiplication> make(const Means& means,
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
    Address bias = 0;
    Address added = 0;
    Address inner = 0;
  };
  void enqueue(const Arrays& arrays) const;

 private:
  friend class ProductTrial;
  Multiplication(const Gpu& gpu, const LibraryShape& shape);
  [[nodiscard]] OwnedDesc describe() const;
  [[nodiscard]] std::vector<MatmulChoice> proposals() const;
  /// Can it be done in this way?
  [[nodiscard]] bool accepts(const MatmulChoice& choice) const;
  [[nodiscard]] bool choose(const Means& means);

  const Gpu& gpu_;
  CublasHandle handle_;
  LibraryShape shape_;
  OwnedDesc desc_;
  mutable ForkMutex addresses_;  // of the epilogue, which each run puts into the description
  // The library's matrices are column-major: there cᵀ = bᵀ aᵀ.
  OwnedLayout first_;
  OwnedLayout second_;
  OwnedLayout result_;
  MatmulChoice choice_{};
};

}  // namespace ricci::cuda
