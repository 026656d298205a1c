// SHA-256 against the examples of FIPS 180-4 and its authors, and entries that are sealed with it.
#include <string>

#include <gtest/gtest.h>

#include "support/sealed_entry.h"
#include "support/sha256.h"

namespace ricci::support_sealed_entry_test {
namespace {

TEST(Sha256, GivesTheDigestsOfTheStandard) {
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// The last block has room for the length up to 55 bytes.
TEST(Sha256, TellsLengthsAroundABlockApart) {
  EXPECT_EQ(sha256_hex(std::string(55, 'a')),
            "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
  EXPECT_EQ(sha256_hex(std::string(56, 'a')),
            "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a");
  EXPECT_EQ(sha256_hex(std::string(64, 'a')),
            "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
}

TEST(SealedEntry, OpensForItsKindAndKeyAlone) {
  const std::string entry = seal_entry("code-1", "a key", "content\nof any kind");
  EXPECT_EQ(open_entry(entry, "code-1", "a key"), "content\nof any kind");
  EXPECT_EQ(open_entry(entry, "code-2", "a key"), std::nullopt);
  EXPECT_EQ(open_entry(entry, "code-1", "a ke"), std::nullopt);
  EXPECT_EQ(open_entry(entry, "code-1", "a key\nc"), std::nullopt);
  EXPECT_EQ(open_entry("", "code-1", "a key"), std::nullopt);
  for (std::size_t at = 0; at < entry.size(); ++at) {
    std::string damaged = entry;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    EXPECT_EQ(open_entry(damaged, "code-1", "a key"), std::nullopt) << at;
    EXPECT_EQ(open_entry(entry.substr(0, at), "code-1", "a key"), std::nullopt) << at;
  }
}

TEST(SealedEntry, IsNamedByTheDigestOfItsKey) {
  const std::string name = entry_name("a key", ".code");
  EXPECT_EQ(name, sha256_hex("a key") + ".code");
  EXPECT_TRUE(is_entry_name(name, ".code"));
  EXPECT_FALSE(is_entry_name(name, ".o"));
  EXPECT_FALSE(is_entry_name("x" + name.substr(1), ".code"));
  EXPECT_FALSE(is_entry_name(".code", ".code"));
}

}  // namespace
}  // namespace ricci::support_sealed_entry_test
