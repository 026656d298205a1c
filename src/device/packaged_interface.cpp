#include "device/packaged_interface.h"

#include "schedule/archive.h"
#include "schedule/sealed_bytes.h"

namespace ricci::device {

using schedule::ArchiveReader;
using schedule::ArchiveWriter;
using schedule::Either;

// Found by the types of their arguments.
template <class A>
static void fields(A& a, Either<PackagedArray> auto& p) {
  a(p.name, p.input, p.output);
}
template <class A>
static void fields(A& a, Either<PackagedInterface> auto& i) {
  a(i.name, i.target, i.features, i.arrays);
}

namespace {
constexpr schedule::SealKind InterfaceSeal = {{'R', 'i', 'c', 'c', 'i', 'A', 'B', 'I'}, 1};
}  // namespace

std::vector<std::byte> to_bytes(const PackagedInterface& interface) {
  ArchiveWriter archive;
  archive(interface);
  return schedule::sealed(InterfaceSeal, archive.take());
}

PackagedInterface interface_from_bytes(std::span<const std::byte> bytes) {
  ArchiveReader archive(schedule::opened(InterfaceSeal, bytes));
  PackagedInterface out;
  archive(out);
  if (archive.left() > 0) ArchiveReader::fail("something follows it");
  return out;
}

}  // namespace ricci::device
