// The folder of a run: where its settings, log, checkpoints and report are.
#pragma once

#include <string>

#include "train/settings.h"

namespace ricci::tool {

struct RunFolder {
  std::string path;

  [[nodiscard]] std::string file(const char* name) const { return path + "/" + name; }
  /// What it is called: the last part of its path.
  [[nodiscard]] std::string name() const;
  /// UserError(file) when it is no folder of a run.
  [[nodiscard]] RunSettings settings() const;
  /// A checkpoint's file: `best`, `last`, or a path. UserError(file) when there is none.
  [[nodiscard]] std::string checkpoint(const std::string& which) const;
};

/// A new one. UserError(file) when there is something at that path.
[[nodiscard]] RunFolder new_run_folder(const std::string& path);
/// `runs/gpt`, or `runs/gpt-2` and so on.
[[nodiscard]] std::string free_run_path(const std::string& kind);

}  // namespace ricci::tool
