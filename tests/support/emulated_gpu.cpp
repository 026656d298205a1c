#include "support/emulated_gpu.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <dlfcn.h>
#include <fmt/format.h>

#include "support/cuda_host.h"
#include "support/sanitized.h"
#include "support/scratch_folder.h"
#include "test_paths.h"

namespace ricci::testing {
namespace {

std::string text_of_log(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

void make_library(const ScratchFolder& folder, const std::string& header, const std::string& name) {
  std::ofstream(folder.file(name + ".cpp"))
      << fmt::format("#define RICCI_EMULATED_SHIM \"{0}/cuda_shim.h\"\n#include \"{0}/{1}\"\n",
                     RICCI_SOURCE_DIR "/tests/support", header);
  const char* given = std::getenv("CXX");
  const std::string command =
      fmt::format("{} -std=c++17 -O1 -w -shared -fPIC -pthread {} -o {} -ldl 2> {}",
                  given != nullptr && *given != 0 ? given : "c++", folder.file(name + ".cpp"),
                  folder.file(name), folder.file("errors.txt"));
  if (std::system(command.c_str()) != 0) {
    throw std::runtime_error(text_of_log(folder.file("errors.txt")));
  }
}

}  // namespace

const char* emulated_folder() { return std::getenv("RICCI_EMULATED_FOLDER"); }

void* emulated_function(const std::string& library, const char* name) {
  if (emulated_folder() == nullptr) return nullptr;
  void* found =
      ::dlopen(fmt::format("{}/{}", emulated_folder(), library).c_str(), RTLD_NOW | RTLD_NOLOAD);
  return found == nullptr ? nullptr : ::dlsym(found, name);
}

std::string why_no_emulated_gpu() {
  if (emulated_folder() != nullptr) return "this is the process with the emulated GPU";
  if (RICCI_IS_STATIC || SpaceIsTaken) {
    return "static programs load no libraries, and fibers are not for sanitizers";
  }
  return why_no_cuda_on_host();
}

EmulatedRun run_with_emulated_gpu(const std::string& filter, bool with_products, bool older) {
  const ScratchFolder folder;
  make_library(folder, "emulated_driver.h", "libcuda.so.1");
  make_library(folder, "emulated_nvrtc.h", "libnvrtc.so.12");
  make_library(folder, "emulated_cublas.h", "libcublasLt.so.12");
  const std::string command = fmt::format(
      "{3} {4} RICCI_CUDA_LIBRARIES={0} RICCI_EMULATED_FOLDER={0} {1} --gtest_filter='{2}' "
      "> {0}/log.txt 2>&1",
      folder.path(), std::filesystem::read_symlink("/proc/self/exe").string(), filter,
      with_products ? "RICCI_EMULATED_PRODUCTS=1" : "", older ? "RICCI_EMULATED_OLDER=1" : "");
  EmulatedRun run;
  run.status = std::system(command.c_str());
  run.log = text_of_log(folder.file("log.txt"));
  return run;
}

}  // namespace ricci::testing
