// A checkpoint as bytes: needs tensors and files of them, and no network or trainer.
#include "train/checkpoint_file.h"

#include <algorithm>
#include <charconv>
#include <deque>
#include <memory>

#include <fmt/format.h>

#include "ricci/support/error.h"
#include "ricci/support/text.h"

#include "io/fault.h"
#include "support/sha256.h"

namespace ricci {
namespace {

using Metadata = std::vector<std::pair<std::string, std::string>>;

constexpr std::string_view Version = "1";
constexpr std::string_view NoSum =
    "0000000000000000000000000000000000000000000000000000000000000000";

// Where the 64 digits of a sum stand in the directory.
std::size_t sum_place(std::span<const std::byte> front, std::string_view key) {
  const std::string_view text = io::as_text(front);
  const std::string before = fmt::format("\"{}\":\"", key);
  const std::size_t at = text.find(before);
  const std::size_t place = at + before.size();
  if (at == std::string_view::npos || text.size() - place < NoSum.size()) {
    io::file_fault("checkpoint_sum", fmt::format("the checkpoint has no {}", key), 0,
                   "was it written again by another program?");
  }
  return place;
}

std::size_t front_size(std::span<const std::byte> bytes) {
  io::ByteCursor in(bytes, "the checkpoint");
  const auto size = static_cast<std::size_t>(in.u64());
  (void)in.take(size);
  return size + sizeof(std::uint64_t);
}

std::string tensor_sum(std::span<const std::byte> bytes) {
  return sha256_hex(io::as_text(bytes.subspan(front_size(bytes))));
}

std::string directory_sum(std::span<const std::byte> bytes) {
  std::string front(io::as_text(bytes.first(front_size(bytes))));
  front.replace(sum_place(bytes.first(front.size()), DirectorySumKey), NoSum.size(), NoSum);
  return sha256_hex(front);
}

void put_sum(std::span<std::byte> bytes, std::string_view key, std::string_view sum) {
  const std::size_t place = sum_place(bytes.first(front_size(bytes)), key);
  std::ranges::copy(std::as_bytes(std::span(sum)),
                    bytes.begin() + static_cast<std::ptrdiff_t>(place));
}

Metadata metadata_of(const Checkpoint& checkpoint) {
  const TrainingState& s = checkpoint.state;
  const CheckpointInfo& info = checkpoint.info;
  Metadata out = {{std::string(VersionKey), std::string(Version)},
                  {std::string(DirectorySumKey), std::string(NoSum)},
                  {std::string(TensorSumKey), std::string(NoSum)},
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
  if (find(file, VersionKey) == nullptr) {
    io::file_fault("checkpoint", "this is a safetensors file, but no checkpoint", 0,
                   "weights alone are read by load<Net>(path)");
  }
  if (wanted(file, VersionKey) != Version) {
    io::file_fault("checkpoint",
                   fmt::format("the checkpoint is of version {}, this program reads {}",
                               shortened(wanted(file, VersionKey)), Version),
                   0, "read it with the Ricci that wrote it");
  }
  if (wanted(file, DirectorySumKey) == directory_sum(bytes) &&
      wanted(file, TensorSumKey) == tensor_sum(bytes)) {
    return;
  }
  io::file_fault("checkpoint_sum", "the checkpoint is damaged: its bytes do not have its sum", 0,
                 "go on from an earlier one");
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
    if (t.name.starts_with(KeptPrefix)) {
      out.kept.emplace_back(t.name.substr(KeptPrefix.size()), io::load(t, owner));
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

void seal_checkpoint(std::span<std::byte> bytes) {
  put_sum(bytes, TensorSumKey, tensor_sum(bytes));
  put_sum(bytes, DirectorySumKey, directory_sum(bytes));
}

std::vector<std::byte> checkpoint_bytes(const Checkpoint& checkpoint) {
  io::Safetensors file{.metadata = metadata_of(checkpoint)};
  std::deque<Tensor> plain;
  for (const auto& [name, value] : checkpoint.state.model) {
    if (!name.starts_with(KeptPrefix)) continue;
    throw UserError(
        ErrorCode::Name,
        fmt::format("a model with an array called {} cannot be kept", quote(shortened(name))),
        fmt::format("names that begin with {} are those of the optimiser's state", KeptPrefix));
  }
  add_tensors(file, plain, checkpoint.state.model, "");
  add_tensors(file, plain, checkpoint.state.kept, KeptPrefix);
  std::vector<std::byte> bytes = io::safetensors_bytes(file);
  seal_checkpoint(bytes);
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
