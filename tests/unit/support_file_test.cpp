// Whole files: limits on what is read, and writing that nothing left behind can hinder.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ricci/io/mapped_file.h"
#include "ricci/support/file.h"

#include "support/descriptor.h"
#include "support/file_faults.h"
#include "support/scratch_folder.h"

namespace ricci::support_file_test {
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

// The system sends a signal that ends processes which do not expect it.
TEST(SupportFile, PipesThatNobodyReadsAreErrors) {
  const ScratchFolder folder;
  const std::string path = folder.file("pipe");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::optional<Descriptor> reader(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  ASSERT_TRUE(reader->is_open());
  AtomicFile file(path);
  file.write(testing::bytes_of("read"));
  reader.reset();
  EXPECT_EQ(fault_of([&] { file.write(testing::bytes_of("not read")); }), "file.write");
  sigset_t waiting;
  sigpending(&waiting);
  EXPECT_EQ(sigismember(&waiting, SIGPIPE), 0);
}

// Opened once: a second time would wait for a second writer, or find nothing.
TEST(SupportFile, PipesAreOpenedOnce) {
  const ScratchFolder folder;
  for (int round = 0; round < 100; ++round) {
    const std::string path = folder.file(fmt::format("pipe{}", round));
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    std::thread writer([&] {
      const Descriptor to(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
      fs::remove(path);
      EXPECT_TRUE(write_all(to, testing::bytes_of("one and all")));
    });
    EXPECT_EQ(fault_of([&] {
                const io::MappedFile mapped(path, 1 << 20);
                EXPECT_EQ(mapped.bytes().size(), 11U);
              }),
              "");
    writer.join();
  }
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
}  // namespace ricci::support_file_test
