#include "train/run_folder.h"

#include <filesystem>

#include <fmt/format.h>

#include "ricci/support/error.h"
#include "ricci/support/file.h"
#include "ricci/train/checkpoint_folder.h"

namespace ricci::tool {

namespace fs = std::filesystem;

std::string RunFolder::name() const {
  const fs::path clean = fs::path(path).lexically_normal();
  const std::string last = clean.filename().string();
  return last.empty() ? clean.parent_path().filename().string() : last;
}

RunSettings RunFolder::settings() const {
  if (!is_there(file("run.toml"))) {
    throw UserError(ErrorCode::File, fmt::format("'{}' is no folder of a run", path),
                    "name one that `ricci train` has made: there is a run.toml in it");
  }
  RunSettings out;
  read_toml(out, file("run.toml"));
  settle(out);
  return out;
}

std::string RunFolder::checkpoint(const std::string& which) const {
  if (which != "best" && which != "last") {
    if (is_there(which)) return which;
    throw UserError(ErrorCode::File, fmt::format("there is no checkpoint '{}'", which),
                    "say best, last, or the path of one");
  }
  if (is_there(file("checkpoints"))) {
    const CheckpointFolder folder(file("checkpoints"));
    const auto best = folder.best();
    if (which == "best" && best) return best->path;
    const auto all = folder.entries();
    if (!all.empty()) return all.back().path;
  }
  throw UserError(ErrorCode::File, fmt::format("'{}' has no checkpoint yet", path));
}

RunFolder new_run_folder(const std::string& path) {
  std::error_code error;
  if (is_there(path) && !fs::is_empty(path, error)) {
    throw UserError(ErrorCode::File, fmt::format("there is something at '{}' already", path),
                    fmt::format("go on with it: ricci train --resume {}; or name another folder "
                                "with --out",
                                path));
  }
  fs::create_directories(path, error);
  if (error) {
    throw UserError(ErrorCode::File,
                    fmt::format("cannot make the folder '{}': {}", path, error.message()));
  }
  return {path};
}

std::string free_run_path(const std::string& kind) {
  std::string path = "runs/" + kind;
  for (int n = 2; is_there(path); ++n) path = fmt::format("runs/{}-{}", kind, n);
  return path;
}

}  // namespace ricci::tool
