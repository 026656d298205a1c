// HTTP/1.1 requests out of bytes that come in pieces of any size, bounded in all they have
// (RFC 9112). What two servers could read differently is refused: lengths that are given twice,
// lengths beside chunks, folded lines, bare line feeds within what is sent as chunks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ricci::serve {

struct HttpLimits {
  std::size_t head_bytes = 16384;  ///< of the request line and the fields
  std::size_t fields = 100;
  std::size_t body_bytes = 1 << 20;
};

struct HttpRequest {
  std::string method;
  std::string path;                                         ///< without what is behind a `?`
  std::vector<std::pair<std::string, std::string>> fields;  ///< names in small letters
  std::string body;
  bool keep_alive = true;
  bool old_version = false;  ///< HTTP/1.0, which has no chunks

  /// Nothing when there is none of the name (in small letters).
  [[nodiscard]] const std::string* find(std::string_view name) const;
};

struct HttpFault {
  int status = 400;
  std::string message;
};

class HttpReader {
 public:
  explicit HttpReader(const HttpLimits& limits) : limits_(limits) {}

  enum class State : std::uint8_t { NeedsMore, Done, Fault };
  /// Takes of `bytes` what belongs to this request, from the front.
  State read(std::string& bytes);
  [[nodiscard]] HttpRequest& request() noexcept { return request_; }
  [[nodiscard]] const HttpFault& fault() const noexcept { return fault_; }
  /// Has anything of a request come?
  [[nodiscard]] bool began() const noexcept { return began_; }
  /// The client waits for `100 Continue` before it sends the body; said once.
  [[nodiscard]] bool take_expectation() noexcept { return std::exchange(expects_, false); }

 private:
  enum class At : std::uint8_t { Head, Body, ChunkSize, ChunkBytes, ChunkEnd, Trailer, Done };
  State fail(int status, std::string message);
  bool read_head(std::string_view head);
  bool read_request_line(std::string_view line);
  bool read_field(std::string_view line);
  bool read_framing();
  bool read_chunk_size(std::string_view line);
  std::optional<std::string> take_line(std::string& bytes, std::size_t most);
  State step(std::string& bytes, bool& moved);

  HttpLimits limits_;
  HttpRequest request_;
  HttpFault fault_;
  At at_ = At::Head;
  bool began_ = false, expects_ = false;
  std::size_t left_ = 0;      // of the body, or of a chunk
  std::size_t trailers_ = 0;  // bytes
  std::size_t searched_ = 0;  // of the head: no end of it before
};

/// With A to Z as a to z, as names are compared.
[[nodiscard]] std::string small_letters(std::string_view text);
/// Without spaces and tabs around it.
[[nodiscard]] std::string_view trimmed(std::string_view text);

/// `200 OK`
[[nodiscard]] std::string_view reason_of(int status);

}  // namespace ricci::serve
