#include "ricci/io/mapped_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "ricci/support/error.h"
#include "ricci/support/file.h"

#include "io/fault.h"
#include "support/descriptor.h"
#include "support/read_open.h"

namespace ricci::io {
namespace {

[[noreturn]] void map_fault(const char* detail, const std::string& path, std::string message) {
  throw in_file(UserError(Diagnostic{.code = ErrorCode::File,
                                     .detail = detail,
                                     .message = std::move(message),
                                     .where = {},
                                     .notes = {},
                                     .help = {}}),
                path);
}

}  // namespace

MappedFile::MappedFile(const std::string& path, std::int64_t max_bytes, FileBytes how,
                       const std::function<void(std::span<const std::byte>)>& front) try {
  const Descriptor file = open_to_read(path);
  struct stat status{};
  if (!file.is_open() || ::fstat(file.get(), &status) != 0) {
    map_fault("open", path, fmt::format("cannot open the file: {}", std::strerror(errno)));
  }
  if (!S_ISREG(status.st_mode) || how == FileBytes::Read) {
    auto read = std::make_shared<const std::vector<std::byte>>(
        read_open(file, path, std::min(max_bytes, MaxFileBytes), front));
    bytes_ = *read;
    owner_ = std::move(read);
    return;
  }
  if (status.st_size > max_bytes) {
    map_fault("size", path,
              fmt::format("the file has {} bytes, more than the {} that are read", status.st_size,
                          max_bytes));
  }
  if (status.st_size == 0) return;
  const auto size = static_cast<std::size_t>(status.st_size);
  void* start = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (start == MAP_FAILED) {
    map_fault("read", path, fmt::format("cannot map the file: {}", std::strerror(errno)));
  }
  owner_ = std::shared_ptr<const void>(
      start, [size](const void* at) { (void)::munmap(const_cast<void*>(at), size); });
  bytes_ = {static_cast<const std::byte*>(start), size};
} catch (const UserError& e) {
  if (e.code() != ErrorCode::File || !e.diagnostic().where.file.empty()) throw;
  throw in_file(e, path);  // what `front` has said
}

}  // namespace ricci::io
