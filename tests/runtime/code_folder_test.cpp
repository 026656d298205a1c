// The folder of compiled kernels, damaged or prepared by someone: what is found is what was stored.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "ricci/runtime/session.h"

#include "fuzz/cache_folder.h"
#include "runtime/models.h"
#include "support/scratch_folder.h"

namespace ricci::testing {
namespace {

namespace fs = std::filesystem;

void overwrite(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

// The first lines name the object and the symbol: a bit of these could choose another kernel.
TEST(RuntimeCodeFolder, EveryFlippedBitOfAnEntryIsNoticed) {
  CacheFolderAttack attack;
  ASSERT_EQ(attack.look_up(), 4U);
  const auto entry = std::ranges::find_if(
      attack.whole(), [](const auto& file) { return file.first.ends_with(".kernel"); });
  ASSERT_NE(entry, attack.whole().end());
  const std::string path = attack.folder() + "/" + entry->first;
  for (std::size_t i = 0; i < entry->second.size(); ++i) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      if (i > 100 && bit != i % 8) continue;
      std::string changed = entry->second;
      changed[i] = static_cast<char>(static_cast<unsigned char>(changed[i]) ^ (1U << bit));
      overwrite(path, changed);
      ASSERT_EQ(attack.look_up(), 3U) << "byte " << i << ", bit " << bit;
    }
  }
}

TEST(RuntimeCodeFolder, EveryFlippedByteOfAnObjectIsNoticed) {
  CacheFolderAttack attack;
  for (const auto& [name, text] : attack.whole()) {
    if (!name.ends_with(".o")) continue;
    for (std::size_t i = 0; i < text.size(); ++i) {
      std::string changed = text;
      changed[i] = static_cast<char>(changed[i] ^ (1 << (i % 8)));
      overwrite(attack.folder() + "/" + name, changed);
      ASSERT_EQ(attack.look_up(), 2U) << i;
    }
    attack.restore();
  }
}

TEST(RuntimeCodeFolder, AnEntryUnderAnothersNameIsNotTaken) {
  CacheFolderAttack attack;
  std::vector<std::string> entries;
  for (const auto& [name, text] : attack.whole()) {
    if (name.ends_with(".kernel")) entries.push_back(name);
  }
  ASSERT_EQ(entries.size(), 4U);
  for (const std::string& from : entries) {
    for (const std::string& to : entries) {
      if (from == to) continue;
      overwrite(attack.folder() + "/" + to, attack.whole().at(from));
      EXPECT_EQ(attack.look_up(), 3U);
      attack.restore();
    }
  }
}

// A pipe would be waited for, a link could lead anywhere.
TEST(RuntimeCodeFolder, PipesAndLinksAreNotEntries) {
  CacheFolderAttack attack;
  const ScratchFolder elsewhere;
  for (const auto& [name, text] : attack.whole()) {
    const std::string path = attack.folder() + "/" + name;
    const std::size_t left = name.ends_with(".o") ? 2 : 3;
    fs::remove(path);
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    EXPECT_EQ(attack.look_up(), left);
    fs::remove(path);
    overwrite(elsewhere.file(name), text);
    fs::create_symlink(elsewhere.file(name), path);
    EXPECT_EQ(attack.look_up(), left);
    attack.restore();
    ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
    EXPECT_EQ(attack.look_up(), left);
    attack.restore();
  }
}

std::string refusal(const std::function<void()>& compile) {
  try {
    compile();
  } catch (const UserError& e) {
    return e.what();
  }
  return {};
}

TEST(RuntimeCodeFolder, FoldersOthersMayWriteToAreRefused) {
  const ScratchFolder scratch;
  const std::string folder = scratch.file("code");
  fs::create_directory(folder);
  ASSERT_EQ(::chmod(folder.c_str(), 0777), 0);
  const std::string named =
      refusal([&] { (void)compile(dense_graph(), Device::default_cpu(), {.code_cache = folder}); });
  EXPECT_NE(named.find("error[file.folder]: others may write to the folder"), std::string::npos)
      << named;
  EXPECT_NE(named.find("chmod go-w"), std::string::npos) << named;
  const std::string of_session = refusal(
      [&] { (void)Session(Device::default_cpu(), {.code_cache = folder}).compile(dense_graph()); });
  EXPECT_EQ(of_session, named);
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST(RuntimeCodeFolder, StaysWithinItsLimit) {
  const ScratchFolder scratch;
  const std::string folder = scratch.file("code");
  constexpr std::int64_t Limit = 200'000;
  const cpu::ObjectCache cache(folder, Limit);
  for (int i = 0; i < 100; ++i) {
    const std::string object = fmt::format("object {} ", i) + std::string(5000, 'o');
    const cpu::ObjectCache::Entry entry{fmt::format("key {}", i), "k0"};
    cache.store(std::span(&entry, 1), object);
  }
  std::int64_t total = 0;
  for (const auto& e : fs::directory_iterator(folder)) {
    total += static_cast<std::int64_t>(e.file_size());
  }
  EXPECT_LE(total, Limit + Limit / 8);
  EXPECT_GE(total, Limit / 4);
}

}  // namespace
}  // namespace ricci::testing
