#include "support/nvrtc.h"

#include <array>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <fmt/format.h>

#include "test_paths.h"

namespace ricci::testing {
namespace {

// As nvrtc.h has them.
using Handle = void*;
struct Nvrtc {
  int (*create)(Handle*, const char*, const char*, int, const char* const*, const char* const*);
  int (*destroy)(Handle*);
  int (*compile)(Handle, int, const char* const*);
  int (*log_size)(Handle, std::size_t*);
  int (*log)(Handle, char*);
};

void* open_library() {
  if (RICCI_IS_STATIC) return nullptr;
  constexpr std::array Names = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
  const char* folders = std::getenv("RICCI_CUDA_LIBRARIES");
  std::istringstream list(folders == nullptr ? "" : folders);
  for (std::string folder; std::getline(list, folder, ':');) {
    if (!folder.starts_with('/')) continue;
    for (const char* name : Names) {
      if (void* found = ::dlopen(fmt::format("{}/{}", folder, name).c_str(), RTLD_NOW)) {
        return found;
      }
    }
  }
  for (const char* name : Names) {
    if (void* found = ::dlopen(name, RTLD_NOW)) return found;
  }
  return nullptr;
}

const Nvrtc* nvrtc() {
  static const Nvrtc* const found = []() -> const Nvrtc* {
    void* library = open_library();
    if (library == nullptr) return nullptr;
    static Nvrtc functions;
    const auto get = [&](auto& function, const char* name) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
      return function != nullptr;
    };
    const bool all = get(functions.create, "nvrtcCreateProgram") &&
                     get(functions.destroy, "nvrtcDestroyProgram") &&
                     get(functions.compile, "nvrtcCompileProgram") &&
                     get(functions.log_size, "nvrtcGetProgramLogSize") &&
                     get(functions.log, "nvrtcGetProgramLog");
    return all ? &functions : nullptr;
  }();
  return found;
}

}  // namespace

std::string why_no_nvrtc() {
  return nvrtc() != nullptr ? "" : "NVRTC is not here: RICCI_CUDA_LIBRARIES can name its folder";
}

std::string compile_for_gpu(const std::string& source) {
  const Nvrtc& api = *nvrtc();
  Handle program = nullptr;
  if (api.create(&program, source.c_str(), "kernels.cu", 0, nullptr, nullptr) != 0) {
    return "no program can be made";
  }
  constexpr std::array Options = {"--gpu-architecture=sm_90", "--fmad=false"};
  const int code = api.compile(program, Options.size(), Options.data());
  std::string log;
  if (code != 0) {
    std::size_t size = 0;
    api.log_size(program, &size);
    std::vector<char> text(size + 1, 0);
    api.log(program, text.data());
    log = fmt::format("error {}: {}", code, text.data());
  }
  api.destroy(&program);
  return log;
}

}  // namespace ricci::testing
