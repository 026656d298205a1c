#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <set>

#include <fmt/format.h>
#include <sys/stat.h>

#include "ricci/io/safetensors.h"
#include "ricci/support/error.h"
#include "ricci/support/file.h"
#include "ricci/train/checkpoint.h"

#include "support/replacement.h"
#include "train/checkpoint_file.h"

namespace ricci {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view Front = "step-";
constexpr std::string_view Back = ".safetensors";

[[noreturn]] void folder_fault(const std::string& path, const char* action,
                               const std::error_code& error) {
  throw UserError(Diagnostic{.code = ErrorCode::File,
                             .detail = "checkpoints",
                             .message = fmt::format("cannot {}: {}", action, error.message()),
                             .where = {.file = path, .line = 0, .column = 0, .text = {}},
                             .notes = {},
                             .help = {}});
}

std::optional<std::int64_t> step_of(std::string_view name) {
  if (!name.starts_with(Front) || !name.ends_with(Back)) return std::nullopt;
  if (name.size() <= Front.size() + Back.size()) return std::nullopt;
  name = name.substr(Front.size(), name.size() - Front.size() - Back.size());
  std::int64_t step = 0;
  const auto [end, fault] = std::from_chars(name.data(), name.data() + name.size(), step);
  if (fault != std::errc() || end != name.data() + name.size() || step < 0) return std::nullopt;
  return step;
}

std::optional<double> score_in(const std::string& path) {
  try {
    return score_of(io::read_safetensors(path));
  } catch (const UserError&) {
    return std::nullopt;
  }
}

// A file that cannot be read now, for want of memory or of descriptors, may be the best of all.
bool is_known(const CheckpointFolder::Entry& e) {
  if (e.score) return true;
  try {
    return !score_of(io::read_safetensors(e.path));
  } catch (const UserError&) {
    return false;
  }
}

std::vector<fs::path> files_in(const std::string& folder) {
  std::error_code error;
  std::vector<fs::path> out;
  fs::directory_iterator at(folder, error);
  if (error) folder_fault(folder, "read the folder of checkpoints", error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) out.push_back(at->path());
  if (error) folder_fault(folder, "read the folder of checkpoints", error);
  return out;
}

// The oldest first, without their scores.
std::vector<CheckpointFolder::Entry> listed(const std::string& folder) {
  std::vector<CheckpointFolder::Entry> out;
  for (const fs::path& file : files_in(folder)) {
    const auto step = step_of(file.filename().string());
    if (step && is_plain_file(file.string())) out.push_back({file.string(), *step});
  }
  std::ranges::sort(out, {}, [](const auto& e) { return std::pair(e.step, e.path); });
  return out;
}

// Those with a score, the best first; of equal ones the newest.
std::vector<CheckpointFolder::Entry> by_score(const std::vector<CheckpointFolder::Entry>& entries,
                                              bool lower_is_better) {
  std::vector<CheckpointFolder::Entry> out;
  std::ranges::copy_if(entries, std::back_inserter(out),
                       [](const auto& e) { return e.score && !std::isnan(*e.score); });
  std::ranges::sort(out, [&](const auto& a, const auto& b) {
    if (*a.score != *b.score) return (*a.score < *b.score) == lower_is_better;
    return a.step > b.step;
  });
  return out;
}

}  // namespace

CheckpointFolder::CheckpointFolder(std::string path, CheckpointFolderOptions options)
    : path_(std::move(path)), options_(options) {
  if (options_.keep < 1 || options_.keep_best < 0) {
    throw UserError(ErrorCode::Attr,
                    fmt::format("a folder of checkpoints is to keep {} and the best {}",
                                options_.keep, options_.keep_best),
                    "keep one or more, and any number of the best");
  }
  std::error_code error;
  fs::create_directories(path_, error);
  if (error) folder_fault(path_, "make the folder of checkpoints", error);
}

std::vector<CheckpointFolder::Entry> CheckpointFolder::entries() const {
  std::vector<Entry> out = listed(path_);
  for (Entry& e : out) e.score = score_in(e.path);
  return out;
}

std::optional<CheckpointFolder::Entry> CheckpointFolder::best() const {
  const std::vector<Entry> order = by_score(entries(), options_.lower_is_better);
  return order.empty() ? std::nullopt : std::optional(order.front());
}

std::vector<CheckpointFolder::Entry> CheckpointFolder::best_first() const {
  const std::vector<Entry> all = entries();
  std::vector<Entry> out = by_score(all, options_.lower_is_better);
  std::copy_if(all.rbegin(), all.rend(), std::back_inserter(out), [&](const Entry& e) {
    return std::ranges::find(out, e.path, &Entry::path) == out.end();
  });
  return out;
}

// What processes that were killed have left; another one may be writing.
static void remove_abandoned(const std::string& folder) {
  std::error_code ignored;
  for (const fs::path& file : files_in(folder)) {
    struct stat status{};
    if (is_temporary_name(file.filename().string()) && ::lstat(file.c_str(), &status) == 0 &&
        is_abandoned(status)) {
      fs::remove(file, ignored);
    }
  }
}

std::string CheckpointFolder::write(const Checkpoint& checkpoint) const {
  remove_abandoned(path_);
  const std::string path =
      (fs::path(path_) / fmt::format("{}{:08}{}", Front, checkpoint.info.step, Back)).string();
  write_checkpoint(path, checkpoint);
  const std::vector<Entry> all = entries();
  std::set<std::string> kept = {path};
  const auto keep = [&](const auto& from, std::int64_t count) {
    for (const Entry& e : from) {
      if (count-- > 0) kept.insert(e.path);
    }
  };
  keep(std::vector<Entry>(all.rbegin(), all.rend()), options_.keep);
  keep(by_score(all, options_.lower_is_better), options_.keep_best);
  std::error_code ignored;
  for (const Entry& e : all) {
    if (!kept.contains(e.path) && is_known(e)) fs::remove(e.path, ignored);
  }
  return path;
}

std::optional<CheckpointFolder::Found> CheckpointFolder::newest() const {
  std::vector<Entry> all = listed(path_);
  std::vector<std::string> warnings;
  for (auto e = all.rbegin(); e != all.rend(); ++e) {
    try {
      return Found{e->path, read_checkpoint(e->path), std::move(warnings)};
    } catch (const UserError& fault) {
      if (fault.code() != ErrorCode::File) throw;
      warnings.push_back(fmt::format("{} is passed over: {}", e->path, fault.diagnostic().message));
    }
  }
  if (all.empty()) return std::nullopt;
  throw UserError(Diagnostic{.code = ErrorCode::File,
                             .detail = "checkpoints",
                             .message = "none of the checkpoints in the folder is whole",
                             .where = {.file = path_, .line = 0, .column = 0, .text = {}},
                             .notes = std::move(warnings),
                             .help = "begin anew in another folder"});
}

}  // namespace ricci
