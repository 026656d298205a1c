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
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "ricci/data/loader.h"
#include "ricci/io/npy.h"
#include "ricci/nn/trainer.h"

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
