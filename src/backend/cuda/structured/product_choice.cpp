#include "backend/cuda/structured/product_choice.h"

#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include <fmt/format.h>

#include "backend/cuda/run/code_folder.h"
#include "support/fork.h"

namespace ricci::cuda {
namespace {

struct Choices {
  ForkMutex mutex;
  std::map<std::string, KnownChoice, std::less<>> all;
};

Choices& choices() {
  static auto* const the = new Choices;  // asked for until the process ends
  return *the;
}

// As bytes: its algorithm, its workspace, and whether it is right.
constexpr std::size_t ChoiceBytes = sizeof(MatmulAlgorithm) + sizeof(std::uint64_t) + 1;

std::string to_bytes(const KnownChoice& known) {
  std::string bytes(ChoiceBytes, '\0');
  const std::uint64_t workspace = known.choice.workspace;
  std::memcpy(bytes.data(), &known.choice.algorithm, sizeof(MatmulAlgorithm));
  std::memcpy(bytes.data() + sizeof(MatmulAlgorithm), &workspace, sizeof workspace);
  bytes.back() = known.is_right ? 1 : 0;
  return bytes;
}

std::optional<KnownChoice> from_bytes(const std::vector<char>& bytes) {
  if (bytes.size() != ChoiceBytes) return std::nullopt;
  KnownChoice known;
  std::uint64_t workspace = 0;
  std::memcpy(&known.choice.algorithm, bytes.data(), sizeof(MatmulAlgorithm));
  std::memcpy(&workspace, bytes.data() + sizeof(MatmulAlgorithm), sizeof workspace);
  known.choice.workspace = workspace;
  known.is_right = bytes.back() != 0;
  return known;
}

bool has_folder(const CodeFolder* folder) { return folder != nullptr && !folder->path.empty(); }

}  // namespace

std::string choice_key(const Gpu& gpu, const std::string& shape) {
  return fmt::format("product on {} {} driver {} cuBLASLt {}: {}", gpu.name(), gpu.architecture(),
                     loaded_driver().version, cublas_library().version(), shape);
}

std::optional<KnownChoice> known_choice(const std::string& key, const CodeFolder* folder) {
  {
    const std::lock_guard lock(choices().mutex);
    const auto found = choices().all.find(key);
    if (found != choices().all.end()) return found->second;
  }
  if (!has_folder(folder)) return std::nullopt;
  const auto bytes = KeptCode(folder->path, folder->max_bytes).load(key);
  return bytes ? from_bytes(*bytes) : std::nullopt;
}

void keep_choice(const std::string& key, const KnownChoice& known, const CodeFolder* folder) {
  if (has_folder(folder)) KeptCode(folder->path, folder->max_bytes).store(key, to_bytes(known));
  constexpr std::size_t Most = 1 << 16;  // a process that goes on with new sizes must not grow
  const std::lock_guard lock(choices().mutex);
  if (choices().all.size() >= Most) choices().all.clear();
  KnownChoice kept = known;
  kept.of_this_process = true;
  choices().all[key] = kept;
}

void forget_choices() {
  const std::lock_guard lock(choices().mutex);
  choices().all.clear();
}

}  // namespace ricci::cuda
