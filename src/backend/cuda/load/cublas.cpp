#include "backend/cuda/load/cublas.h"

#include <array>

#include <fmt/format.h>

#include "backend/cuda/load/library.h"

namespace ricci::cuda {
namespace {

constexpr std::size_t OldestCublas = 120000;

const char* find_all(const Library& library, Cublas& out) {
#define RICCI_CUBLASLT_FIND(member, exported, parameters)                   \
  out.member = reinterpret_cast<int(*) parameters>(library.find(exported)); \
  if (out.member == nullptr) return exported;
  RICCI_CUBLASLT(RICCI_CUBLASLT_FIND)
#undef RICCI_CUBLASLT_FIND
  out.version = reinterpret_cast<std::size_t (*)()>(library.find("cublasLtGetVersion"));
  return out.version == nullptr ? "cublasLtGetVersion" : nullptr;
}

}  // namespace

const Cublas& cublas_library() {
  static const Cublas loaded = [] {
    constexpr std::array Names = {"libcublasLt.so.13", "libcublasLt.so.12"};
    Cublas out;
    const Library library(Names, library_folders());
    if (!library.found()) {
      out.why_not = fmt::format("there is no cuBLASLt ({})", library.why_not());
    } else if (const char* missing = find_all(library, out)) {
      out.why_not = fmt::format("cuBLASLt is too old: it has no {}", missing);
    } else if (out.version() < OldestCublas) {
      out.why_not = fmt::format("cuBLASLt is too old: {}", out.version());
    }
    return out;
  }();
  return loaded;
}

}  // namespace ricci::cuda
