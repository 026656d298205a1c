#include "train/run_folder.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include <fmt/format.h>

#include "ricci/support/error.h"
#include "ricci/support/file.h"
#include "ricci/train/checkpoint.h"

namespace ricci::tool {

namespace fs = std::filesystem;

std::string RunFolder::name() const {
  const fs::path clean = fs::path(path).lexically_normal();
  const std::string last = clean.filename().string();
  return last.empty() ? clean.parent_path().filename().string() : last;
}

RunSettings RunFolder::settings() const {
  if (!is_there(file("run.toml"))) {
    throw UserError(ErrorCode::File, fmt::format("'{}' is no folder of a run", path),
                    "name one that `ricci train` has made: there is a run.toml in it");
  }
  RunSettings out;
  read_toml(out, file("run.toml"));
  if (out.kind.empty()) {
    throw UserError(ErrorCode::File,
                    fmt::format("'{}' does not say what kind of run it is of", file("run.toml")),
                    "it was cut short: write `kind = \"gpt\"`, or what it was, at its beginning");
  }
  settle(out);
  return out;
}

std::vector<std::string> RunFolder::checkpoints(const std::string& which) const {
  if (which != "best" && which != "last") {
    if (is_there(which)) return {which};
    throw UserError(ErrorCode::File, fmt::format("there is no checkpoint '{}'", which),
                    "say best, last, or the path of one");
  }
  std::vector<std::string> out;
  if (is_there(file("checkpoints"))) {
    const CheckpointFolder folder(file("checkpoints"));
    std::vector<CheckpointFolder::Entry> all =
        which == "best" ? folder.best_first() : folder.entries();
    if (which == "last") std::ranges::reverse(all);
    for (const auto& e : all) out.push_back(e.path);
  }
  if (!out.empty()) return out;
  throw UserError(ErrorCode::File, fmt::format("'{}' has no checkpoint yet", path));
}

std::string RunFolder::first_whole(const std::string& which,
                                   const std::function<void(const std::string&)>& load) const {
  const std::vector<std::string> all = checkpoints(which);
  for (std::size_t i = 0;; ++i) {
    try {
      load(all[i]);
      return all[i];
    } catch (const UserError& e) {
      if (e.code() != ErrorCode::File || i + 1 == all.size()) throw;
      fmt::print(stderr, "{} is passed over: {}\n", all[i], e.diagnostic().message);
    }
  }
}

namespace {

// A lock alone is nothing: who holds it says so.
bool has_something(const std::string& path) {
  std::error_code error;
  for (fs::directory_iterator at(path, error); !error && at != fs::directory_iterator();
       at.increment(error)) {
    if (at->path().filename() != RunLock::Name) return true;
  }
  return bool(error);
}

[[noreturn]] void is_taken(const std::string& path) {
  throw UserError(ErrorCode::File, fmt::format("there is something at '{}' already", path),
                  fmt::format("go on with it: ricci train --resume {}; or name another folder "
                              "with --out",
                              path));
}

// True when it was not there: of several processes one makes it.
bool make_folder(const std::string& path) {
  std::error_code error;
  fs::path folder(path);
  if (!folder.has_filename()) folder = folder.parent_path();  // `runs/gpt/`
  if (folder.has_parent_path()) fs::create_directories(folder.parent_path(), error);
  const bool made = !error && fs::create_directory(folder, error);
  if (!error) return made;
  throw UserError(ErrorCode::File,
                  fmt::format("cannot make the folder '{}': {}", path, error.message()));
}

}  // namespace

WrittenRun WrittenRun::resumed(const std::string& path) { return WrittenRun(RunFolder{path}); }

WrittenRun WrittenRun::made(const std::string& path, const std::string& kind) {
  std::string at = path.empty() ? "runs/" + kind : path;
  bool made = false;
  if (path.empty()) {
    for (int n = 2; is_there(at) || !(made = make_folder(at)); ++n) {
      at = fmt::format("runs/{}-{}", kind, n);
    }
  } else {
    if (is_there(at) && !is_folder(at)) is_taken(at);
    made = make_folder(at);
    if (!made && has_something(at)) is_taken(at);
  }
  WrittenRun out(RunFolder{at});
  if (has_something(at)) is_taken(at);  // by a process that was faster
  out.is_new_ = true;
  out.is_made_ = made;
  return out;
}

void WrittenRun::take_back() const noexcept {
  if (!is_new_) return;
  std::error_code ignored;
  for (const char* name : {"run.toml", "log.jsonl", "tokenizer.json", "model.ric", "program.json",
                           "report.html", "checkpoints"}) {
    fs::remove(folder_.file(name), ignored);  // of a folder: if it is empty
  }
  if (has_something(folder_.path)) return;
  fs::remove(folder_.file(RunLock::Name), ignored);
  if (is_made_) fs::remove(folder_.path, ignored);
}

}  // namespace ricci::tool
