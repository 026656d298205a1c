// Compiled kernels in a folder, for the next process. Kernels are found by all that their code
// depends on: their text, the target, and the version of the code generator. Every file says itself
// whether it is whole: an entry ends with a digest of all of it and names its object by the digest
// of the object's bytes, so that damage anywhere, or a file under another's name, is taken for a
// file that is missing and replaced. Without a folder there is only more to compile; a folder that
// others may write to is refused, since what lies in it is run.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/cpu/codegen/jit.h"
#include "support/private_folder.h"

namespace ricci::cpu {

class ObjectCache {
 public:
  /// Code out of the bytes of an object; UserError or InternalError for what is none.
  using Loader = std::function<std::shared_ptr<const JitCode>(std::span<const char> object)>;

  /// UserError(file.folder) when others own the folder or may write to it. When its files take more
  /// than `max_bytes`, those used longest ago go. Without a loader objects are loaded by the JIT.
  ObjectCache(std::string path, std::int64_t max_bytes, Loader loader = {});

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
  std::string path_;
  std::int64_t max_bytes_;
  Loader loader_;
  std::optional<PrivateFolder> folder_;  // none: it cannot be made or opened
};

}  // namespace ricci::cpu
