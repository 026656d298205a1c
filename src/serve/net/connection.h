// One client of a server: what has come and is not read yet, and what it has not taken yet.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "serve/net/http_request.h"
#include "serve/net/sockets.h"

namespace ricci::serve {

using Clock = std::chrono::steady_clock;

struct Connection {
  Connection(Descriptor client, const HttpLimits& limits)
      : socket(std::move(client)), reader(limits) {}

  enum class At : std::uint8_t {
    Reading,    ///< waits for a request, or the rest of one
    Working,    ///< a request is not answered yet
    Streaming,  ///< an answer has begun
    Closing     ///< what is written is sent, then it is closed
  };

  /// Takes what has come, `most` bytes at most. False when the client has closed or failed.
  bool receive(std::size_t most);
  /// Sends what it can. False when the connection is broken.
  bool send();
  [[nodiscard]] std::size_t waiting() const noexcept { return out.size() - sent; }
  void write(std::string_view bytes) { out += bytes; }
  /// Bytes it takes.
  [[nodiscard]] std::size_t bytes() noexcept {
    return in.capacity() + out.capacity() + reader.request().body.capacity();
  }
  /// Nothing will be sent any more.
  void shut_down();

  Descriptor socket;
  HttpReader reader;
  At at = At::Reading;
  std::string in, out;
  std::size_t sent = 0;       // of `out`
  std::uint32_t watched = 0;  // what epoll tells of it
  bool keep_alive = false;    // behind the answer that is under way
  bool head_only = false;     // it is to have no body (HEAD)
  bool chunked = true;        // an answer in pieces: HTTP/1.0 has no chunks, and ends by closing
  bool shut = false;          // all is sent: what it still sends is read until it closes too, as
                              // closing first could take back what was sent
  std::size_t counted = 0;    // of the bytes below, among those of all connections
  Clock::time_point since = Clock::now();  // of the request, or of being idle
  Clock::time_point last_sent = Clock::now();
};

}  // namespace ricci::serve
