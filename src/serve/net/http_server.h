// An HTTP/1.1 server on one thread: an event loop over all connections, so that a slow client costs
// memory that is bounded, and no thread. What takes long is done elsewhere and comes back by
// `post`.
//
//   HttpServer server({.port = 8080}, {.request = [&](ConnectionId c, HttpRequest r) {…},
//                                      .gone = [&](ConnectionId c) {…}});
//   server.run(interrupted);
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ricci/support/stop.h"

#include "serve/net/http_request.h"

namespace ricci::serve {

using ConnectionId = std::uint64_t;

struct HttpServerOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;  ///< 0: any that is free
  /// By which requests may call a server on the loopback, beside addresses and `localhost`.
  std::vector<std::string> names = {};
  HttpLimits limits = {};
  std::size_t connections = 4096;
  double request_seconds = 30;          ///< from the first byte of a request to its last
  double idle_seconds = 60;             ///< between requests
  double write_seconds = 30;            ///< without a byte that the client took
  std::size_t output_bytes = 16 << 20;  ///< that wait for one client
  std::size_t all_bytes = 512 << 20;    ///< of all clients: requests, and what waits for them
};

struct HttpHandlers {
  /// A whole request; answered by `reply` or `begin_stream`, now or later. What it throws answers
  /// that request (503 where there is no memory, otherwise 500), and nothing else ends.
  std::function<void(ConnectionId, HttpRequest)> request;
  /// A connection whose request is not answered yet, or not to its end, is gone.
  std::function<void(ConnectionId)> gone;
  /// Every fifth of a second.
  std::function<void()> tick;
  /// No request is to come any more, and those there are are finished.
  std::function<void()> draining;
};

struct HttpCounts {
  std::uint64_t accepted = 0, turned_away = 0, requests = 0, faults = 0, timeouts = 0, gone = 0;
  std::uint64_t open = 0, open_most = 0;
};

class HttpServer {
 public:
  /// Listens. UserError(refused) with the system's reason when it cannot.
  HttpServer(HttpServerOptions options, HttpHandlers handlers);
  ~HttpServer();

  [[nodiscard]] std::uint16_t port() const noexcept;
  /// Serves until `stop` is asked for, and then finishes what has begun.
  void run(const StopToken& stop);
  /// What any thread has done on the loop's thread.
  void post(std::function<void()> what);

  // On the loop's thread; connections that are gone are passed over.
  using Fields = std::vector<std::pair<std::string, std::string>>;
  void reply(ConnectionId connection, int status, std::string_view type, std::string_view body,
             const Fields& fields = {});
  /// An answer in pieces, each a chunk.
  void begin_stream(ConnectionId connection, std::string_view type);
  void stream(ConnectionId connection, std::string_view piece);
  void end_stream(ConnectionId connection);
  [[nodiscard]] const HttpCounts& counts() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ricci::serve
