#include "ricci/data/tokens.h"

#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "ricci/io/mapped_file.h"
#include "ricci/support/error.h"
#include "ricci/support/file.h"

namespace ricci {
namespace {

[[noreturn]] void file_error(const char* detail, const std::string& path, std::string message,
                             std::string help) {
  throw UserError(Diagnostic{.code = ErrorCode::File,
                             .detail = detail,
                             .message = std::move(message),
                             .where = {.file = path, .line = 0, .column = 0, .text = {}},
                             .notes = {},
                             .help = std::move(help)});
}

// Tokens where they lie, in a file or in memory.
struct Source {
  std::span<const std::byte> bytes;
  std::size_t width = 2;
  std::shared_ptr<const void> owner;
  std::string name;

  [[nodiscard]] std::int64_t size() const {
    return static_cast<std::int64_t>(bytes.size() / width);
  }
  [[nodiscard]] std::uint32_t at(std::int64_t i) const {
    const std::byte* from = bytes.data() + static_cast<std::size_t>(i) * width;
    if (width == 2) {
      std::uint16_t v = 0;
      std::memcpy(&v, from, sizeof v);
      return v;
    }
    std::uint32_t v = 0;
    std::memcpy(&v, from, sizeof v);
    return v;
  }
};

void require_window(const TokenOptions& options) {
  constexpr std::int64_t Most = std::int64_t{1} << 32;
  if (options.window >= 1 && options.window <= Most && options.stride >= 0 &&
      options.skip_bytes >= 0 && options.vocabulary >= 0) {
    return;
  }
  throw UserError(ErrorCode::Attr,
                  fmt::format("tokens are to be read in windows of {} with a stride of {}",
                              options.window, options.stride),
                  "a window is 1 or more tokens, a stride 0 (a window) or more");
}

std::int32_t checked_token(const Source& from, std::int64_t place, std::uint32_t most) {
  const std::uint32_t token = from.at(place);
  if (token <= most) return static_cast<std::int32_t>(token);
  file_error("token", from.name, fmt::format("token {} is {}, more than {}", place, token, most),
             "are TokenOptions::width, skip_bytes and vocabulary those of the file?");
}

TokenBatch windows(const Source& from, const TokenOptions& options, std::int64_t stride,
                   std::span<const std::int64_t> rows) {
  const std::int64_t window = options.window;
  const Type type{DType::I32, {static_cast<std::int64_t>(rows.size()), window}};
  Tensor x = Tensor::zeros(type);
  Tensor y = Tensor::zeros(type);
  if (rows.empty()) return {x, y};
  const std::uint32_t most =
      options.vocabulary > 0 && options.vocabulary <= std::numeric_limits<std::int32_t>::max()
          ? static_cast<std::uint32_t>(options.vocabulary - 1)
          : std::numeric_limits<std::int32_t>::max();
  auto* to_x = reinterpret_cast<std::int32_t*>(x.mutable_data());
  auto* to_y = reinterpret_cast<std::int32_t*>(y.mutable_data());
  for (const std::int64_t row : rows) {
    const std::int64_t first = row * stride;
    std::int32_t token = checked_token(from, first, most);
    for (std::int64_t i = 0; i < window; ++i) {
      *to_x++ = token;
      token = checked_token(from, first + i + 1, most);
      *to_y++ = token;
    }
  }
  return {x, y};
}

Dataset<TokenBatch> windows_of(Source from, const TokenOptions& options) {
  const std::int64_t stride = options.stride == 0 ? options.window : options.stride;
  const std::int64_t room = from.size() - options.window - 1;
  const std::int64_t count = room < 0 ? 0 : room / stride + 1;
  return {count, [from = std::move(from), options, stride](std::span<const std::int64_t> rows) {
            return windows(from, options, stride, rows);
          }};
}

}  // namespace

Dataset<TokenBatch> token_windows(const std::string& path, const TokenOptions& options) {
  require_window(options);
  const io::MappedFile file(path);
  const auto width = static_cast<std::size_t>(options.width);
  const auto skip = static_cast<std::size_t>(options.skip_bytes);
  if (skip > file.bytes().size()) {
    file_error("tokens", path,
               fmt::format("the file has {} bytes, fewer than the {} to be skipped",
                           file.bytes().size(), skip),
               "TokenOptions::skip_bytes is the size of what is before the tokens");
  }
  const std::span<const std::byte> bytes = file.bytes().subspan(skip);
  if (bytes.size() % width != 0) {
    file_error(
        "tokens", path,
        fmt::format("{} bytes are no whole number of tokens of {} bytes", bytes.size(), width),
        "the file is cut short, or TokenOptions::width is not its width");
  }
  return windows_of({bytes, width, file.owner(), path}, options);
}

Dataset<TokenBatch> token_windows(std::span<const std::int32_t> tokens,
                                  const TokenOptions& options) {
  require_window(options);
  auto own = std::make_shared<const std::vector<std::int32_t>>(tokens.begin(), tokens.end());
  return windows_of({std::as_bytes(std::span(*own)), sizeof(std::int32_t), own, "tokens"}, options);
}

void write_tokens(const std::string& path, std::span<const std::int32_t> tokens, TokenWidth width) {
  const auto size = static_cast<std::size_t>(width);
  const std::int64_t most = width == TokenWidth::U16 ? 0xFFFF : 0x7FFFFFFF;
  constexpr std::size_t Chunk = 1 << 16;
  AtomicFile file(path);
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || tokens[i] > most) {
      throw UserError(
          ErrorCode::Refused,
          fmt::format("token {} is {}, which does not fit in {} bytes", i, tokens[i], size),
          "write them with TokenWidth::U32");
    }
    const auto wide = static_cast<std::uint32_t>(tokens[i]);
    std::byte raw[sizeof wide];
    std::memcpy(raw, &wide, sizeof wide);
    bytes.insert(bytes.end(), raw, raw + size);  // little-endian
    if (bytes.size() < Chunk) continue;
    file.write(bytes);
    bytes.clear();
  }
  file.write(bytes);
  file.commit();
}

}  // namespace ricci
