#include "backend/cuda/load/library.h"

#include <sstream>

#include <dlfcn.h>

#include "support/environment.h"

namespace ricci::cuda {

std::string library_folders() {
  const char* given = environment_variable("RICCI_CUDA_LIBRARIES");
  return given == nullptr ? std::string() : given;
}

bool Library::open(const std::string& path, const Check& check) {
  handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) {
    const char* said = dlerror();
    if (!refused_) why_not_ = said == nullptr ? "it cannot be loaded" : said;
    return false;
  }
  const std::string fault = check(*this);
  if (fault.empty()) return true;
  why_not_ = path + ": " + fault;
  refused_ = true;
  dlclose(handle_);
  handle_ = nullptr;
  return false;
}

Library::Library(std::span<const std::string> names, const std::string& folders,
                 const Check& check) {
  std::istringstream list(folders);
  std::string skipped;  // what is written there may be anybody's
  for (std::string folder; std::getline(list, folder, ':');) {
    if (folder.empty()) continue;
    if (!folder.starts_with('/')) {
      skipped = "; '" + folder + "' of RICCI_CUDA_LIBRARIES is not an absolute path";
      continue;
    }
    for (const std::string& name : names) {
      if (open(folder + "/" + name, check)) return;
    }
  }
  for (const std::string& name : names) {
    if (open(name, check)) return;
  }
  why_not_ += skipped;
}

void* Library::find(const char* name) const {
  return handle_ == nullptr ? nullptr : dlsym(handle_, name);
}

std::vector<std::string> toolkit_names(const std::string& stem, int driver) {
  constexpr int Newest = 13;
  constexpr int Oldest = 12;
  std::vector<std::string> names;
  for (int major = Newest; major >= Oldest; --major) {
    // Drivers take the code of older toolkits, not of newer ones.
    if (driver == 0 || driver / 1000 >= major) names.push_back(stem + "." + std::to_string(major));
  }
  names.push_back(stem);
  return names;
}

}  // namespace ricci::cuda
