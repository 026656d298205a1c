#include "schedule/sealed_bytes.h"

#include <cstring>

#include <fmt/format.h>

#include "ricci/support/error.h"
#include "ricci/support/hash.h"

#include "schedule/archive.h"

namespace ricci::schedule {
namespace {

// As wide as the alignment of what follows.
struct Head {
  std::array<char, 8> magic{};
  std::uint64_t version = 0;
  std::uint64_t size = 0;
  std::uint64_t sum = 0;
  std::array<std::uint64_t, 4> unused{};
};
static_assert(sizeof(Head) == ArchiveAlignment);

std::uint64_t sum_of(std::span<const std::byte> bytes) { return Hasher().add(bytes).value(); }

}  // namespace

std::vector<std::byte> sealed(const SealKind& kind, std::span<const std::byte> body) {
  const Head head{kind.magic, kind.version, body.size(), sum_of(body), {}};
  const auto front = std::as_bytes(std::span(&head, 1));
  std::vector<std::byte> out(front.begin(), front.end());
  out.insert(out.end(), body.begin(), body.end());
  return out;
}

std::span<const std::byte> opened(const SealKind& kind, std::span<const std::byte> bytes) {
  Head head;
  if (bytes.size() < sizeof head) ArchiveReader::fail("it ends too soon");
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.magic != kind.magic) ArchiveReader::fail("it does not begin like one");
  if (head.version != kind.version) {
    throw UserError(Diagnostic{ErrorCode::File,
                               "version",
                               fmt::format("the stored program is of version {}, this runtime "
                                           "reads version {}",
                                           head.version, kind.version),
                               {},
                               {},
                               "compile it again with the version it is linked with"});
  }
  const std::span<const std::byte> body = bytes.subspan(sizeof head);
  if (head.size != body.size()) ArchiveReader::fail("it has another length than it says");
  if (head.sum != sum_of(body)) ArchiveReader::fail("its check sum is wrong");
  return body;
}

}  // namespace ricci::schedule
