// A checkpoint as bytes: needs tensors and files of them, and no network or trainer.
#include "train/checkpoint_file.h"

#include <algorithm>
#include <charconv>
#include <deque>
#include <memory>

#include <fmt/format.h>

#include "ricci/support/error.h"
#include "ricci/support/text.h"

#include "io/checkpoint_sums.h"
#include "io/fault.h"

namespace ricci {
namespace {

using Metadata = std::vector<std::pair<std::string, std::string>>;

constexpr std::string_view Version = "1";

Metadata metadata_of(const Checkpoint& checkpoint) {
  const TrainingState& s = checkpoint.state;
  const CheckpointInfo& info = checkpoint.info;
  Metadata out = {{std::string(io::CheckpointKey), std::string(Version)},
                  {std::string(io::DirectorySumKey), std::string(io::NoSum)},
                  {std::string(io::TensorSumKey), std::string(io::NoSum)},
                  {"ricci.step", std::to_string(s.step)},
                  {"ricci.seed", std::to_string(s.seed)},
                  {"ricci.generator_seed", std::to_string(s.generator_seed)},
                  {"ricci.generator_count", std::to_string(s.generator_count)}};
  if (s.learning_rate) out.emplace_back("ricci.learning_rate", fmt::format("{}", *s.learning_rate));
  if (info.score) out.emplace_back(ScoreKey, fmt::format("{}", *info.score));
  if (info.data) out.emplace_back("ricci.data", info.data->to_text());
  for (const auto& [key, value] : info.notes) {
    out.emplace_back(std::string(NotePrefix) + key, value);
  }
  return out;
}

void add_tensors(io::Safetensors& file, std::deque<Tensor>& plain, const io::NamedTensors& tensors,
                 std::string_view prefix) {
  for (const auto& [name, value] : tensors) {
    const Tensor& t = plain.emplace_back(value.contiguous());
    file.tensors.push_back({std::string(prefix) + name, io::StoredType::of(t.dtype()),
                            t.type().static_dims(),
                            t.numel() == 0 ? std::span<const std::byte>() : t.bytes()});
  }
}

const std::string* find(const io::Safetensors& file, std::string_view key) {
  return file.find(key);
}

const std::string& wanted(const io::Safetensors& file, std::string_view key) {
  const std::string* value = find(file, key);
  if (value != nullptr) return *value;
  io::file_fault("checkpoint", fmt::format("the checkpoint has no {}", key), 0,
                 "is this a checkpoint of another version?");
}

template <class T>
T number(const std::string& text, std::string_view key) {
  T value{};
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault == std::errc() && end == text.data() + text.size() && !text.empty()) return value;
  io::file_fault("checkpoint",
                 fmt::format("{} of the checkpoint is {}", key, quote(shortened(text))), 0);
}

void require_whole(const io::Safetensors& file, std::span<const std::byte> bytes) {
  if (find(file, io::CheckpointKey) == nullptr) {
    io::file_fault("checkpoint", "this is a safetensors file, but no checkpoint", 0,
                   "weights alone are read by load<Net>(path)");
  }
  if (wanted(file, io::CheckpointKey) != Version) {
    io::file_fault("checkpoint",
                   fmt::format("the checkpoint is of version {}, this program reads {}",
                               shortened(wanted(file, io::CheckpointKey)), Version),
                   0, "read it with the Ricci that wrote it");
  }
  io::require_sums(bytes);
}

CheckpointInfo info_of(const io::Safetensors& file) {
  CheckpointInfo out;
  out.step = number<std::int64_t>(wanted(file, "ricci.step"), "ricci.step");
  out.score = score_of(file);
  if (const std::string* data = find(file, "ricci.data")) {
    out.data = DataPosition::from_text(*data);
  }
  for (const auto& [key, value] : file.metadata) {
    if (key.starts_with(NotePrefix)) out.notes.emplace(key.substr(NotePrefix.size()), value);
  }
  return out;
}

TrainingState state_of(const io::Safetensors& file, const std::shared_ptr<const void>& owner) {
  TrainingState out;
  const auto whole = [&](std::string_view key) {
    return number<std::uint64_t>(wanted(file, key), key);
  };
  out.step = number<std::int64_t>(wanted(file, "ricci.step"), "ricci.step");
  out.seed = whole("ricci.seed");
  out.generator_seed = whole("ricci.generator_seed");
  out.generator_count = whole("ricci.generator_count");
  if (const std::string* rate = find(file, "ricci.learning_rate")) {
    out.learning_rate = number<double>(*rate, "ricci.learning_rate");
  }
  for (const io::StoredTensor& t : file.tensors) {
    if (t.name.starts_with(io::AveragePrefix)) {
      out.averages.emplace_back(t.name.substr(io::AveragePrefix.size()), io::load(t, owner));
    } else if (t.name.starts_with(io::KeptPrefix)) {
      out.kept.emplace_back(t.name.substr(io::KeptPrefix.size()), io::load(t, owner));
    } else {
      out.model.emplace_back(t.name, io::load(t, owner));
    }
  }
  return out;
}

}  // namespace

std::optional<double> score_of(const io::Safetensors& file) {
  const std::string* text = file.find(ScoreKey);
  if (text == nullptr) return std::nullopt;
  return number<double>(*text, ScoreKey);
}

std::vector<std::byte> checkpoint_bytes(const Checkpoint& checkpoint) {
  io::Safetensors file{.metadata = metadata_of(checkpoint)};
  std::deque<Tensor> plain;
  for (const auto& [name, value] : checkpoint.state.model) {
    if (!name.starts_with(io::KeptPrefix)) continue;
    throw UserError(
        ErrorCode::Name,
        fmt::format("a model with an array called {} cannot be kept", quote(shortened(name))),
        fmt::format("names that begin with {} are those of the optimiser's state", io::KeptPrefix));
  }
  add_tensors(file, plain, checkpoint.state.model, "");
  add_tensors(file, plain, checkpoint.state.kept, io::KeptPrefix);
  add_tensors(file, plain, checkpoint.state.averages, io::AveragePrefix);
  std::vector<std::byte> bytes = io::safetensors_bytes(file);
  io::seal_sums(bytes);
  return bytes;
}

Checkpoint parse_checkpoint(std::shared_ptr<const std::vector<std::byte>> bytes) try {
  const io::Safetensors file = io::parse_safetensors(*bytes);
  require_whole(file, *bytes);
  return {info_of(file), state_of(file, bytes)};
} catch (const UserError& e) {
  if (e.code() == ErrorCode::File || e.code() == ErrorCode::OutOfMemory) throw;
  io::file_fault("checkpoint", e.diagnostic().message, 0);
}

}  // namespace ricci
