// The folder of a run: where its settings, log, checkpoints and report are.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ricci/array/create.h"

#include "train/run_lock.h"
#include "train/settings.h"

namespace ricci::tool {

struct RunFolder {
  std::string path;

  [[nodiscard]] std::string file(const char* name) const { return path + "/" + name; }
  /// What it is called: the last part of its path.
  [[nodiscard]] std::string name() const;
  /// UserError(file) when it is no folder of a run.
  [[nodiscard]] RunSettings settings() const;
  /// A model like this one with the weights of a checkpoint, and its file: `best`, `last`, or a
  /// path. In the place of a best or last one that is damaged comes the next one, and standard
  /// error is told. UserError(file) when there is none.
  template <class Model>
  [[nodiscard]] std::pair<Model, std::string> load_model(const std::string& which,
                                                         const Model& like) const {
    std::pair<Model, std::string> out{like, {}};
    out.second = first_whole(which, [&](const std::string& file) { out.first = load(file, like); });
    return out;
  }

 private:
  std::string first_whole(const std::string& which,
                          const std::function<void(const std::string&)>& load) const;
  [[nodiscard]] std::vector<std::string> checkpoints(const std::string& which) const;
};

/// The folder of a run while this process writes it: nobody else does.
class WrittenRun {
 public:
  /// One that goes on.
  [[nodiscard]] static WrittenRun resumed(const std::string& path);
  /// A new one: `path`, or, where that is empty, `runs/gpt`, `runs/gpt-2` and so on, the first that
  /// nobody has. UserError(file) when there is something at the path.
  [[nodiscard]] static WrittenRun made(const std::string& path, const std::string& kind);

  [[nodiscard]] const RunFolder& folder() const noexcept { return folder_; }
  /// Takes a new folder and the files of a run away again, for a run that has not begun: the next
  /// one may have the name. Nothing else is removed.
  void take_back() const noexcept;

 private:
  explicit WrittenRun(RunFolder folder) : folder_(std::move(folder)), lock_(folder_.path) {}
  RunFolder folder_;
  RunLock lock_;
  bool is_new_ = false;   // nothing was there
  bool is_made_ = false;  // the folder itself neither
};

}  // namespace ricci::tool
