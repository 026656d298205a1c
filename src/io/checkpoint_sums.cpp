#include "io/checkpoint_sums.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "io/fault.h"
#include "io/safetensors_layout.h"
#include "support/sha256.h"

namespace ricci::io {
namespace {

// Where the 64 digits of a sum stand in the directory.
std::size_t sum_place(std::span<const std::byte> front, std::string_view key) {
  const std::string_view text = as_text(front);
  const std::string before = fmt::format("\"{}\":\"", key);
  const std::size_t at = text.find(before);
  const std::size_t place = at + before.size();
  if (at == std::string_view::npos || text.size() - place < NoSum.size()) {
    file_fault("checkpoint_sum", fmt::format("the checkpoint has no {}", key), 0,
               "was it written again by another program?");
  }
  return place;
}

std::size_t front_size(std::span<const std::byte> bytes) {
  ByteCursor in(bytes, "the checkpoint");
  const auto size = static_cast<std::size_t>(in.u64());
  (void)in.take(size);
  return size + SafetensorsFront;
}

std::string tensor_sum(std::span<const std::byte> bytes) {
  return sha256_hex(as_text(bytes.subspan(front_size(bytes))));
}

std::string directory_sum(std::span<const std::byte> bytes) {
  std::string front(as_text(bytes.first(front_size(bytes))));
  front.replace(sum_place(bytes.first(front.size()), DirectorySumKey), NoSum.size(), NoSum);
  return sha256_hex(front);
}

std::string_view sum_in(std::span<const std::byte> bytes, std::string_view key) {
  const std::span<const std::byte> front = bytes.first(front_size(bytes));
  return as_text(front).substr(sum_place(front, key), NoSum.size());
}

void put_sum(std::span<std::byte> bytes, std::string_view key, std::string_view sum) {
  const std::size_t place = sum_place(bytes.first(front_size(bytes)), key);
  std::ranges::copy(std::as_bytes(std::span(sum)),
                    bytes.begin() + static_cast<std::ptrdiff_t>(place));
}

}  // namespace

void seal_sums(std::span<std::byte> bytes) {
  put_sum(bytes, TensorSumKey, tensor_sum(bytes));
  put_sum(bytes, DirectorySumKey, directory_sum(bytes));
}

void require_sums(std::span<const std::byte> bytes) {
  if (sum_in(bytes, DirectorySumKey) == directory_sum(bytes) &&
      sum_in(bytes, TensorSumKey) == tensor_sum(bytes)) {
    return;
  }
  file_fault("checkpoint_sum", "the checkpoint is damaged: its bytes do not have its sum", 0,
             "go on from an earlier one");
}

void require_sums_if_any(const Safetensors& file, std::span<const std::byte> bytes) {
  for (const std::string_view key : {CheckpointKey, TensorSumKey, DirectorySumKey}) {
    if (file.find(key) != nullptr) return require_sums(bytes);
  }
}

}  // namespace ricci::io
