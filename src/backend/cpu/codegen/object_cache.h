// Compiled kernels in a folder, for the next process. Kernels are found by all that their code
// depends on: their text, the target, and the version of the code generator. Files appear complete
// or not at all; one that is damaged is taken for missing and replaced. Nothing here fails: without
// the folder there is only more to compile.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/cpu/codegen/jit.h"

namespace ricci::cpu {

class ObjectCache {
 public:
  explicit ObjectCache(std::string folder);

  struct Hit {
    std::shared_ptr<const JitCode> code;  ///< null: not there
    std::string symbol;
  };
  /// One per key, in order.
  [[nodiscard]] std::vector<Hit> load(std::span<const std::string> keys) const;

  struct Entry {
    std::string key;
    std::string symbol;
  };
  /// Keeps an object and the kernels in it.
  void store(std::span<const Entry> entries, std::span<const char> object) const;

 private:
  [[nodiscard]] std::string path(const std::string& file) const { return folder_ + "/" + file; }
  std::string folder_;
};

}  // namespace ricci::cpu
