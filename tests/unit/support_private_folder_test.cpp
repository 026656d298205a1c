// Folders whose files are trusted: what is refused, what is not seen, and what goes when there is
// too much.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/file_faults.h"
#include "support/private_folder.h"
#include "support/scratch_folder.h"

namespace ricci::support_private_folder_test {
namespace {

namespace fs = std::filesystem;
using testing::fault_of;
using testing::ScratchFolder;

constexpr std::int64_t Plenty = 1 << 20;
constexpr uid_t Somebody = 12345;

bool starts_with_our(std::string_view name) { return name.starts_with("our"); }

std::string refusal(const std::string& path) {
  return fault_of([&] { (void)PrivateFolder::open(path); });
}

void write_plainly(const std::string& path, std::string_view text, mode_t mode = 0600) {
  std::ofstream(path, std::ios::binary) << text;
  ASSERT_EQ(::chmod(path.c_str(), mode), 0);
}

TEST(SupportPrivateFolder, IsMadeForItsOwnerAlone) {
  const ScratchFolder scratch;
  const std::string path = scratch.file("a/b/c");
  const mode_t before = ::umask(0);
  EXPECT_TRUE(PrivateFolder::open(path + "/").has_value());
  ::umask(before);
  struct stat status{};
  for (const char* made : {"a", "a/b", "a/b/c"}) {
    ASSERT_EQ(::stat(scratch.file(made).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777U, 0700U) << made;
  }
}

TEST(SupportPrivateFolder, WhatIsNoFolderIsNone) {
  const ScratchFolder scratch;
  write_plainly(scratch.file("file"), "text");
  EXPECT_FALSE(PrivateFolder::open(scratch.file("file")).has_value());
  EXPECT_FALSE(PrivateFolder::open(scratch.file("file/inside")).has_value());
}

TEST(SupportPrivateFolder, FoldersOthersMayWriteToAreRefused) {
  const ScratchFolder scratch;
  const std::string path = scratch.file("folder");
  fs::create_directory(path);
  fs::create_symlink("folder", scratch.file("link"));
  for (const mode_t mode : {0777U, 0770U, 0702U, 01777U}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    EXPECT_EQ(refusal(path), "file.folder") << mode;
    EXPECT_EQ(refusal(scratch.file("link")), "file.folder") << mode;
  }
  ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
  EXPECT_EQ(refusal(path), "");
  EXPECT_EQ(refusal(scratch.file("link")), "");
}

TEST(SupportPrivateFolder, FoldersOfOthersAreRefused) {
  const ScratchFolder scratch;
  if (::geteuid() != 0) {  // then the root of all folders is another's
    EXPECT_EQ(refusal("/"), "file.folder");
    return;
  }
  ASSERT_EQ(::chown(scratch.path().c_str(), Somebody, Somebody), 0);
  EXPECT_EQ(refusal(scratch.path()), "file.folder");
}

TEST(SupportPrivateFolder, OnlyPlainFilesOfTheUserAreSeen) {
  const ScratchFolder scratch;
  const PrivateFolder folder = PrivateFolder::open(scratch.path()).value();
  write_plainly(scratch.file("good"), "text");
  EXPECT_EQ(folder.read("good", Plenty), "text");
  EXPECT_EQ(folder.read("good", 3), std::nullopt);
  EXPECT_EQ(folder.read("none", Plenty), std::nullopt);
  ASSERT_EQ(::mkfifo(scratch.file("pipe").c_str(), 0600), 0);
  EXPECT_EQ(folder.read("pipe", Plenty), std::nullopt);  // and it does not wait for a writer
  fs::create_directory(scratch.file("folder"));
  EXPECT_EQ(folder.read("folder", Plenty), std::nullopt);
  fs::create_symlink("good", scratch.file("link"));
  EXPECT_EQ(folder.read("link", Plenty), std::nullopt);
  for (const mode_t mode : {0660U, 0606U, 0666U}) {
    write_plainly(scratch.file("open"), "text", mode);
    EXPECT_EQ(folder.read("open", Plenty), std::nullopt) << mode;
  }
  if (::geteuid() != 0) return;
  ASSERT_EQ(::chown(scratch.file("good").c_str(), Somebody, Somebody), 0);
  EXPECT_EQ(folder.read("good", Plenty), std::nullopt);
}

TEST(SupportPrivateFolder, WritingFollowsNoLinks) {
  const ScratchFolder scratch;
  const ScratchFolder elsewhere;
  write_plainly(elsewhere.file("victim"), "kept");
  const PrivateFolder folder = PrivateFolder::open(scratch.path()).value();
  fs::create_symlink(elsewhere.file("victim"), scratch.file("name"));
  ASSERT_EQ(::mkfifo(scratch.file("pipe").c_str(), 0600), 0);
  folder.replace("name", "new");
  folder.replace("pipe", "new");
  EXPECT_EQ(folder.read("name", Plenty), "new");
  EXPECT_EQ(folder.read("pipe", Plenty), "new");
  std::string kept;
  std::ifstream(elsewhere.file("victim")) >> kept;
  EXPECT_EQ(kept, "kept");
}

// The folder that was checked is the one that is used.
TEST(SupportPrivateFolder, StaysWithTheFolderThatWasOpened) {
  const ScratchFolder scratch;
  const PrivateFolder folder = PrivateFolder::open(scratch.file("a")).value();
  fs::rename(scratch.file("a"), scratch.file("b"));
  fs::create_directory(scratch.file("a"));
  folder.replace("name", "text");
  EXPECT_TRUE(fs::exists(scratch.file("b/name")));
  EXPECT_TRUE(fs::is_empty(scratch.file("a")));
}

void set_age(const std::string& path, int seconds) {
  const timespec then{::time(nullptr) - seconds, 0};
  const timespec times[] = {then, then};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

TEST(SupportPrivateFolder, WhatWasUsedLongestAgoGoes) {
  const ScratchFolder scratch;
  const PrivateFolder folder = PrivateFolder::open(scratch.path()).value();
  const std::string text(4096, 'x');
  for (int i = 0; i < 8; ++i) {
    const std::string name = fmt::format("our{}", i);
    folder.replace(name, text);
    set_age(scratch.file(name), 100 - i);
  }
  write_plainly(scratch.file("theirs"), text);
  set_age(scratch.file("theirs"), 1000);
  folder.trim(8 * 4096, starts_with_our);
  EXPECT_TRUE(fs::exists(scratch.file("our0")));
  (void)folder.read("our0", Plenty);  // used now
  folder.trim(4 * 4096, starts_with_our);
  for (const char* name : {"our0", "our6", "our7", "theirs"}) {
    EXPECT_TRUE(fs::exists(scratch.file(name))) << name;
  }
  for (const char* name : {"our1", "our2", "our3", "our4", "our5"}) {
    EXPECT_FALSE(fs::exists(scratch.file(name))) << name;
  }
}

TEST(SupportPrivateFolder, WhatKilledProcessesLeftGoes) {
  const ScratchFolder scratch;
  const PrivateFolder folder = PrivateFolder::open(scratch.path()).value();
  const std::string old = ".ricci-" + std::string(32, '0') + ".tmp";
  const std::string young = ".ricci-" + std::string(32, '1') + ".tmp";
  write_plainly(scratch.file(old), "left");
  write_plainly(scratch.file(young), "being written");
  set_age(scratch.file(old), 2 * 3600);
  folder.trim(Plenty, starts_with_our);
  EXPECT_FALSE(fs::exists(scratch.file(old)));
  EXPECT_TRUE(fs::exists(scratch.file(young)));
}

// Each has opened the folder itself, as processes do.
TEST(SupportPrivateFolder, ManyWriteReadAndTrimAtOnce) {
  const ScratchFolder scratch;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      const PrivateFolder folder = PrivateFolder::open(scratch.path()).value();
      for (int i = 0; i < 300; ++i) {
        const int n = (i * 7 + t) % 10;
        const std::string text(static_cast<std::size_t>(3000 + n), static_cast<char>('a' + n));
        const std::string name = fmt::format("our{}", n);
        folder.replace(name, text);
        const auto read = folder.read(name, Plenty);
        if (read && *read != text) ++wrong;
        if (i % 10 == t) folder.trim(6 * 4096, starts_with_our);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  PrivateFolder::open(scratch.path())->trim(6 * 4096, starts_with_our);
  std::size_t files = 0;
  for (const auto& e : fs::directory_iterator(scratch.path())) {
    EXPECT_NE(e.path().extension(), ".tmp");
    ++files;
  }
  EXPECT_LE(files, 6U);
  EXPECT_GE(files, 1U);
}

}  // namespace
}  // namespace ricci::support_private_folder_test
