// A folder of checkpoints: the newest few and the best, and what is whole of them after a crash.
//
//   CheckpointFolder folder("runs/gpt", {.keep = 3, .keep_best = 1});
//   if (const auto resumed = folder.restore(train, batches)) print("goes on at {}",
//   resumed->info.step); for (auto [i, batch] : enumerate(batches)) {
//     train(batch);
//     if (i % 1000 == 999) folder.save(train, batches, {.score = validation_loss});
//   }
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ricci/train/checkpoint.h"

namespace ricci {

struct CheckpointFolderOptions {
  std::int64_t keep = 3;       ///< so many of the newest stay
  std::int64_t keep_best = 1;  ///< and so many of the best of those that have a score
  bool lower_is_better = true;
};

class CheckpointFolder {
 public:
  struct Entry {
    std::string path;
    std::int64_t step = 0;
    std::optional<double> score = {};
  };
  struct Found {
    std::string path;
    Checkpoint checkpoint;
    /// What was passed over, and why: one line each.
    std::vector<std::string> warnings;
  };
  struct Resumed {
    std::string path;
    CheckpointInfo info;
    std::vector<std::string> warnings;
  };

  /// Makes the folder where there is none.
  explicit CheckpointFolder(std::string path, CheckpointFolderOptions options = {});

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// `step-00001000.safetensors` and so on, the oldest first. Looks at names and directories of
  /// tensors, not at sums; files that cannot be read have no score.
  [[nodiscard]] std::vector<Entry> entries() const;
  /// The best one with a score; nothing when none has.
  [[nodiscard]] std::optional<Entry> best() const;
  /// Those with a score, the best first, then the others, the newest first.
  [[nodiscard]] std::vector<Entry> best_first() const;

  /// Writes one, then removes those that are not to be kept. Gives its path.
  std::string write(const Checkpoint& checkpoint) const;
  /// The newest that is whole; those that are not are passed over, with a warning. Nothing when
  /// there is no checkpoint; UserError(file) when there are, and none is whole.
  [[nodiscard]] std::optional<Found> newest() const;

  template <class Model, class Loss>
  std::string save(const Trainer<Model, Loss>& trainer, const SaveOptions& options = {}) const {
    TrainingState state = trainer.state();
    return write({{state.step, options.notes, options.score, {}}, std::move(state)});
  }
  template <class Model, class Loss, class Batch>
  std::string save(const Trainer<Model, Loss>& trainer, const Loader<Batch>& data,
                   const SaveOptions& options = {}) const {
    TrainingState state = trainer.state();
    return write({{state.step, options.notes, options.score, data.position()}, std::move(state)});
  }
  /// Goes on from the newest; nothing, and nothing has changed, when there is no checkpoint.
  template <class Model, class Loss>
  std::optional<Resumed> restore(Trainer<Model, Loss>& trainer) const {
    std::optional<Found> found = newest();
    if (!found) return std::nullopt;
    trainer.set_state(found->checkpoint.state);
    return Resumed{found->path, found->checkpoint.info, std::move(found->warnings)};
  }
  template <class Model, class Loss, class Batch>
  std::optional<Resumed> restore(Trainer<Model, Loss>& trainer, Loader<Batch>& data) const {
    std::optional<Found> found = newest();
    if (!found) return std::nullopt;
    const DataPosition before = data.position();
    data.seek(detail::position_in(found->checkpoint, found->path));
    try {
      trainer.set_state(found->checkpoint.state);
    } catch (...) {
      data.seek(before);
      throw;
    }
    return Resumed{found->path, found->checkpoint.info, std::move(found->warnings)};
  }

 private:
  std::string path_;
  CheckpointFolderOptions options_;
};

}  // namespace ricci
