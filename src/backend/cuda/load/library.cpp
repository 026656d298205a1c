#include "backend/cuda/load/library.h"

#include <cstdlib>
#include <sstream>

#include <dlfcn.h>

namespace ricci::cuda {

std::string library_folders() {
  const char* given = secure_getenv("RICCI_CUDA_LIBRARIES");
  return given == nullptr ? std::string() : given;
}

Library::Library(std::span<const char* const> names, const std::string& folders) {
  const auto open = [&](const std::string& path) {
    handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) {
      const char* said = dlerror();
      why_not_ = said == nullptr ? "it cannot be loaded" : said;
    }
    return handle_ != nullptr;
  };
  std::istringstream list(folders);
  std::string refused;  // what is written there may be anybody's
  for (std::string folder; std::getline(list, folder, ':');) {
    if (folder.empty()) continue;
    if (!folder.starts_with('/')) {
      refused = "; '" + folder + "' of RICCI_CUDA_LIBRARIES is not an absolute path";
      continue;
    }
    for (const char* name : names) {
      if (open(folder + "/" + name)) return;
    }
  }
  for (const char* name : names) {
    if (open(name)) return;
  }
  why_not_ += refused;
}

void* Library::find(const char* name) const {
  return handle_ == nullptr ? nullptr : dlsym(handle_, name);
}

}  // namespace ricci::cuda
