// Whole files: limits on what is read, and writing that nothing left behind can hinder.
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ricci/support/file.h"

#include "support/file_faults.h"
#include "support/scratch_folder.h"

namespace ricci {
namespace {

namespace fs = std::filesystem;
using testing::fault_of;
using testing::ScratchFolder;

std::string text_of(const std::string& path) {
  const std::vector<std::byte> bytes = read_file(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::size_t files_in(const std::string& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

// A process that was killed leaves its temporary; the next one with its number must not mind.
TEST(SupportFile, WhatAKilledProcessLeftIsInNobodysWay) {
  const ScratchFolder folder;
  const std::string path = folder.file("out.npz");
  for (int i = 0; i < 300; ++i) {
    std::ofstream(fmt::format("{}.{}-{}.tmp", path, ::getpid(), i)) << "left";
  }
  write_file(path, "new");
  EXPECT_EQ(text_of(path), "new");
}

TEST(SupportFile, WritersOfOneNameDoNotMeet) {
  const ScratchFolder folder;
  const std::string path = folder.file("x");
  AtomicFile first(path);
  {
    AtomicFile second(path);
    second.write(testing::bytes_of("second"));
    AtomicFile given_up(path);
    given_up.write(testing::bytes_of("never seen"));
    EXPECT_FALSE(fs::exists(path));
    second.commit();
  }
  EXPECT_EQ(text_of(path), "second");
  first.write(testing::bytes_of("first"));
  first.commit();
  EXPECT_EQ(text_of(path), "first");
  EXPECT_EQ(files_in(folder.path()), 1U);
}

TEST(SupportFile, NamesMayBeAsLongAsTheSystemAllows) {
  const ScratchFolder folder;
  const std::string path = folder.file(std::string(255, 'n'));
  write_file(path, "text");
  EXPECT_EQ(text_of(path), "text");
}

TEST(SupportFile, LinksAreFollowedAndModesKept) {
  const ScratchFolder folder;
  const std::string path = folder.file("x");
  write_file(path, "old");
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  fs::create_symlink("x", folder.file("link"));
  write_file(folder.file("link"), "new");
  EXPECT_TRUE(fs::is_symlink(folder.file("link")));
  EXPECT_EQ(text_of(path), "new");
  struct stat status{};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0600U);
}

TEST(SupportFile, FaultsOfWritingAreErrors) {
  const ScratchFolder folder;
  EXPECT_EQ(fault_of([&] { write_file(folder.path(), "x"); }), "file.write");
  EXPECT_EQ(fault_of([&] { write_file(folder.file("no/such/folder"), "x"); }), "file.write");
  EXPECT_EQ(fault_of([&] { write_file("", "x"); }), "file.write");
  EXPECT_EQ(fault_of([&] { write_file("/dev/full", "x"); }), "file.write");
  EXPECT_EQ(files_in(folder.path()), 0U);
}

TEST(SupportFile, LargeFilesAreRefusedBeforeTheyAreRead) {
  const ScratchFolder folder;
  const std::string path = folder.file("sparse");
  std::ofstream(path) << "x";
  fs::resize_file(path, std::uintmax_t{1} << 42);
  EXPECT_EQ(fault_of([&] { (void)read_file(path); }), "file.size");
  EXPECT_EQ(fault_of([&] { (void)read_file(path, std::int64_t{1} << 50); }), "out_of_memory.read");
  EXPECT_EQ(fault_of([] { (void)read_file("/dev/zero", 1 << 20); }), "file.size");
  EXPECT_EQ(fault_of([&] { (void)read_file(folder.path()); }), "file.read");
  EXPECT_EQ(fault_of([&] { (void)read_file(folder.file("none")); }), "file.open");
  write_file(path, "12345678");
  EXPECT_EQ(read_file(path, 8).size(), 8U);
  EXPECT_EQ(fault_of([&] { (void)read_file(path, 7); }), "file.size");
}

}  // namespace
}  // namespace ricci
