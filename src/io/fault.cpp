#include "io/fault.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

namespace ricci::io {

void file_fault(std::string detail, std::string message, std::size_t offset, std::string help) {
  throw UserError(Diagnostic{.code = ErrorCode::File,
                             .detail = std::move(detail),
                             .message = std::move(message),
                             .where = {},
                             .notes = {fmt::format("at byte {}", offset)},
                             .help = std::move(help)});
}

void unwritable(std::string detail, std::string message, std::string help) {
  throw UserError(Diagnostic{.code = ErrorCode::File,
                             .detail = std::move(detail),
                             .message = std::move(message),
                             .where = {},
                             .notes = {},
                             .help = std::move(help)});
}

UserError in_file(const UserError& error, const std::string& path) {
  std::vector<Diagnostic> all = error.diagnostics();
  for (Diagnostic& d : all) {
    if (d.where.file.empty()) d.where.file = path;
  }
  return UserError(std::move(all));
}

UserError with_note(const UserError& error, const std::string& note) {
  std::vector<Diagnostic> all = error.diagnostics();
  for (Diagnostic& d : all) d.notes.push_back(note);
  return UserError(std::move(all));
}

ByteSpan ByteCursor::take(std::size_t count) {
  if (count > left()) {
    file_fault("truncated",
               fmt::format("{} needs {} more bytes, but {} are left", what_, count, left()),
               offset(), "the file is cut short or damaged; fetch or write it again");
  }
  const ByteSpan taken = bytes_.subspan(at_, count);
  at_ += count;
  return taken;
}

std::uint64_t ByteCursor::number(std::size_t size) {
  const ByteSpan raw = take(size);
  std::uint64_t v = 0;
  for (std::size_t i = size; i-- > 0;) v = (v << 8) | std::to_integer<std::uint64_t>(raw[i]);
  return v;
}

std::string_view as_text(ByteSpan bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace ricci::io
