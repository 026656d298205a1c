#include "backend/cuda/structured/cublas_product.h"

#include <complex>
#include <string>

#include "ricci/support/error.h"

namespace ricci::cuda {
namespace {

constexpr std::uint64_t MostWorkspace = 32 << 20;  // what its documentation wants for Hopper

struct LibraryTypes {
  int stored = cublas::Real32;
  int scale = cublas::Real32;
  int compute = cublas::Compute32;
};

LibraryTypes types_of(DType dtype) {
  switch (dtype) {
    case DType::F64: return {cublas::Real64, cublas::Real64, cublas::Compute64};
    case DType::F16: return {cublas::Half, cublas::Real32, cublas::Compute32};
    case DType::BF16: return {cublas::BHalf, cublas::Real32, cublas::Compute32};
    case DType::C64: return {cublas::Complex32, cublas::Complex32, cublas::Compute32};
    case DType::C128: return {cublas::Complex64, cublas::Complex64, cublas::Compute64};
    default: return {};
  }
}

void require_library(int status, const char* doing) {
  if (status != 0) {
    throw DeviceError("cuBLASLt could not " + std::string(doing),
                      "status " + std::to_string(status));
  }
}

OwnedLayout layout_of(const LibraryTypes& types, std::int64_t rows, std::int64_t columns,
                      const LibraryMatrix& m, std::int64_t batch) {
  const Cublas& library = cublas_library();
  MatrixLayout made = nullptr;
  require_library(library.layout_create(&made, types.stored, static_cast<std::uint64_t>(rows),
                                        static_cast<std::uint64_t>(columns), m.leading),
                  "describe a matrix");
  OwnedLayout layout(made);
  const auto count = static_cast<std::int32_t>(batch);
  require_library(library.layout_set(layout.get(), cublas::BatchCount, &count, sizeof count),
                  "describe a batch");
  require_library(library.layout_set(layout.get(), cublas::BatchStride, &m.batch, sizeof m.batch),
                  "describe a batch");
  return layout;
}

// Numbers the library multiplies with, in its scale type.
const void* scale_number(DType dtype, bool one) {
  static constexpr float F32[] = {0, 1};
  static constexpr double F64[] = {0, 1};
  static constexpr std::complex<float> C64[] = {0, 1};
  static constexpr std::complex<double> C128[] = {0, 1};
  const std::size_t i = one ? 1 : 0;
  switch (dtype) {
    case DType::F64: return &F64[i];
    case DType::C64: return &C64[i];
    case DType::C128: return &C128[i];
    default: return &F32[i];
  }
}

}  // namespace

bool has_library_product(DType dtype) { return is_float(dtype) || is_complex(dtype); }

Multiplication::Multiplication(const Gpu& gpu, const LibraryShape& s)
    : handle_(gpu.cublas()), dtype_(s.dtype) {
  const Cublas& library = cublas_library();
  const LibraryTypes types = types_of(s.dtype);
  MatmulDesc desc = nullptr;
  require_library(library.desc_create(&desc, types.compute, types.scale), "describe a product");
  desc_.reset(desc);
  const std::int32_t first_transposed = s.b.transposed ? 1 : 0;
  const std::int32_t second_transposed = s.a.transposed ? 1 : 0;
  require_library(
      library.desc_set(desc, cublas::TransposeA, &first_transposed, sizeof(std::int32_t)),
      "describe a product");
  require_library(
      library.desc_set(desc, cublas::TransposeB, &second_transposed, sizeof(std::int32_t)),
      "describe a product");
  const auto shaped = [&](std::int64_t rows, std::int64_t columns, const LibraryMatrix& m) {
    return m.transposed ? layout_of(types, columns, rows, m, s.batch)
                        : layout_of(types, rows, columns, m, s.batch);
  };
  first_ = shaped(s.columns, s.depth, s.b);
  second_ = shaped(s.depth, s.rows, s.a);
  result_ = shaped(s.columns, s.rows, s.c);
  Preference made = nullptr;
  require_library(library.preference_create(&made), "say what it prefers");
  const OwnedPreference preference(made);
  const auto prefer = [&](int attribute, auto value) {
    require_library(library.preference_set(made, attribute, &value, sizeof value),
                    "say what it prefers");
  };
  prefer(cublas::MaxWorkspace, MostWorkspace);
  prefer(cublas::AlignmentA, static_cast<std::uint32_t>(s.b.alignment));
  prefer(cublas::AlignmentB, static_cast<std::uint32_t>(s.a.alignment));
  prefer(cublas::AlignmentC, static_cast<std::uint32_t>(s.c.alignment));
  prefer(cublas::AlignmentD, static_cast<std::uint32_t>(s.c.alignment));
  int count = 0;
  const int status = library.choose(handle_, desc, first_.get(), second_.get(), result_.get(),
                                    result_.get(), made, 1, &choice_, &count);
  found_ = status == 0 && count == 1 && choice_.state == 0;
}

std::shared_ptr<const Multiplication> Multiplication::make(const Gpu& gpu,
                                                           const LibraryShape& shape) {
  if (!has_library_product(shape.dtype) || gpu.cublas() == nullptr) return nullptr;
  std::shared_ptr<Multiplication> made(new Multiplication(gpu, shape));
  return made->found_ ? made : nullptr;
}

void Multiplication::enqueue(const Arrays& at) const {
  require_library(
      cublas_library().multiply(handle_, desc_.get(), scale_number(dtype_, true), at.b,
                                first_.get(), at.a, second_.get(), scale_number(dtype_, false),
                                at.c, result_.get(), at.c, result_.get(), &choice_.algorithm,
                                at.workspace, choice_.workspace, at.stream),
      "multiply");
}

}  // namespace ricci::cuda
