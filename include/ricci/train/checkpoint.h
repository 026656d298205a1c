// Checkpoints: a trainer and its data as one file, and folders of them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ricci/data/loader.h"
#include "ricci/io/npy.h"
#include "ricci/nn/trainer.h"

// Checkpoints: all that a training run needs to go on, in one file, which appears when it is
// complete and is known to be whole when it is read.
//
//   save("run.safetensors", train, batches);      // model, optimiser, steps, seeds, data position
//
//   Trainer train(Net{}, loss, AdamW{});          // another process: made the same way
//   restore("run.safetensors", train, batches);   // … and goes on, bit for bit
//   Net net = load<Net>("run.safetensors");       // the weights alone, here or anywhere else
//
// The file is safetensors: weights under their own names, what the optimiser keeps behind
// `training/`, everything else as metadata, with a SHA-256 of all of it.

namespace ricci {

struct SaveOptions {
  /// What is kept with it: names and texts of your own.
  std::map<std::string, std::string> notes = {};
  /// How good it is, for CheckpointFolder::best.
  std::optional<double> score = {};
};

/// What is in a file, besides tensors.
struct CheckpointInfo {
  std::int64_t step = 0;
  std::map<std::string, std::string> notes = {};
  std::optional<double> score = {};
  std::optional<DataPosition> data = {};
};

/// A checkpoint as it lies in a file.
struct Checkpoint {
  CheckpointInfo info;
  TrainingState state;
};

/// UserError(file) for a file that is none, or is damaged: `file.checkpoint_sum` where its sum says
/// so. Nothing of a damaged file is given.
[[nodiscard]] Checkpoint read_checkpoint(const std::string& path);
/// Writes a temporary file, syncs it, renames it and syncs its folder.
void write_checkpoint(const std::string& path, const Checkpoint& checkpoint);

template <class Model, class Loss>
void save(const std::string& path, const Trainer<Model, Loss>& trainer,
          const SaveOptions& options = {}) {
  TrainingState state = trainer.state();
  write_checkpoint(path, {{state.step, options.notes, options.score, {}}, std::move(state)});
}
/// The position of a loader as well.
template <class Model, class Loss, class Batch>
void save(const std::string& path, const Trainer<Model, Loss>& trainer, const Loader<Batch>& data,
          const SaveOptions& options = {}) {
  TrainingState state = trainer.state();
  write_checkpoint(path,
                   {{state.step, options.notes, options.score, data.position()}, std::move(state)});
}

/// UserError, and nothing has changed, when it does not fit the trainer.
template <class Model, class Loss>
CheckpointInfo restore(const std::string& path, Trainer<Model, Loss>& trainer) {
  const Checkpoint found = read_checkpoint(path);
  trainer.set_state(found.state);
  return found.info;
}

namespace detail {
/// The position in a checkpoint; UserError(name) when it has none.
[[nodiscard]] const DataPosition& position_in(const Checkpoint& found, const std::string& path);
}  // namespace detail

template <class Model, class Loss, class Batch>
CheckpointInfo restore(const std::string& path, Trainer<Model, Loss>& trainer,
                       Loader<Batch>& data) {
  const Checkpoint found = read_checkpoint(path);
  const DataPosition before = data.position();
  data.seek(detail::position_in(found, path));
  try {
    trainer.set_state(found.state);
  } catch (...) {
    data.seek(before);
    throw;
  }
  return found.info;
}

}  // namespace ricci

// A folder of checkpoints: the newest few and the best, and what is whole of them after a crash.
//
//   CheckpointFolder folder("runs/gpt", {.keep = 3, .keep_best = 1});
//   if (const auto resumed = folder.restore(train, batches)) print("goes on at {}",
//   resumed->info.step); for (auto [i, batch] : enumerate(batches)) {
//     train(batch);
//     if (i % 1000 == 999) folder.save(train, batches, {.score = validation_loss});
//   }

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
