// What a server does with requests: one of these behind an HttpServer (ricci serve).
#pragma once

#include <string>
#include <string_view>

#include "serve/net/http_server.h"

namespace ricci::serve {

inline constexpr std::string_view Json = "application/json";

class Service {
 public:
  virtual ~Service() = default;
  /// The one path it answers, by POST of JSON.
  [[nodiscard]] virtual std::string_view path() const = 0;
  virtual void request(ConnectionId connection, const std::string& body) = 0;
  virtual void gone(ConnectionId connection) = 0;
  virtual void tick() {}
  /// Lines of `name value`.
  [[nodiscard]] virtual std::string metrics() const = 0;
};

struct ServiceLimits {
  std::size_t queue = 64;
  double seconds = 120;  ///< for a request, from when it has come
};

/// `{"error": {"message": …}}`
[[nodiscard]] std::string error_json(std::string_view message);

/// The routes all servers have, in front of a service: /health, /metrics, /v1/models, and its
/// own.
class Routes {
 public:
  Routes(HttpServer& server, Service& service, std::string model)
      : server_(server), service_(service), model_(std::move(model)) {}
  void request(ConnectionId connection, const HttpRequest& request);
  void drain() noexcept { draining_ = true; }

 private:
  [[nodiscard]] std::string metrics() const;

  HttpServer& server_;
  Service& service_;
  std::string model_;
  bool draining_ = false;
};

}  // namespace ricci::serve
