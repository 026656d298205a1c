#include "backend/cuda/load/cublas.h"

#include <vector>

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
    Cublas out;
    const std::vector<std::string> names = toolkit_names("libcublasLt.so", loaded_driver().version);
    const Library library(names, library_folders(), [&](const Library& found) -> std::string {
      if (const char* missing = find_all(found, out)) {
        return fmt::format("it is too old: it has no {}", missing);
      }
      return out.version() < OldestCublas ? fmt::format("it is too old: {}", out.version()) : "";
    });
    if (!library.found()) out.why_not = fmt::format("there is no cuBLASLt ({})", library.why_not());
    return out;
  }();
  return loaded;
}

}  // namespace ricci::cuda
