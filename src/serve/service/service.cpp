#include "serve/service/service.h"

#include <fmt/format.h>

#include "io/json_value.h"

namespace ricci::serve {
namespace {

bool is_json(const HttpRequest& request) {
  const std::string* type = request.find("content-type");
  return type != nullptr &&
         small_letters(trimmed(std::string_view(*type).substr(0, type->find(';')))) == Json;
}

}  // namespace

std::string error_json(std::string_view message) {
  return fmt::format("{{\"error\": {{\"message\": {}}}}}\n", io::json_string(message));
}

void Routes::request(ConnectionId connection, const HttpRequest& request) {
  const bool posts = request.path == service_.path();
  const bool models = request.path == "/v1/models";
  if (!posts && !models && request.path != "/health" && request.path != "/metrics") {
    const std::string there =
        fmt::format("there are {}, /v1/models, /health and /metrics", service_.path());
    return server_.reply(connection, 404, Json, error_json(there));
  }
  const std::string_view method = posts ? "POST" : "GET";
  if (request.method != method && (posts || request.method != "HEAD")) {
    return server_.reply(connection, 405, Json, error_json(fmt::format("use {}", method)),
                         {{"Allow", posts ? "POST" : "GET, HEAD"}});
  }
  if (models) {
    return server_.reply(connection, 200, Json,
                         fmt::format("{{\"object\": \"list\", \"data\": [{{\"id\": {}, "
                                     "\"object\": \"model\", \"owned_by\": \"ricci\"}}]}}\n",
                                     io::json_string(model_)));
  }
  if (request.path == "/health") {
    const std::string body = fmt::format("{{\"status\": \"{}\", \"model\": {}}}\n",
                                         draining_ ? "stopping" : "ok", io::json_string(model_));
    return server_.reply(connection, draining_ ? 503 : 200, Json, body);
  }
  if (!posts) return server_.reply(connection, 200, "text/plain; version=0.0.4", metrics());
  // Web pages of others can post forms and text to a server on this machine, but not JSON.
  if (!is_json(request)) {
    return server_.reply(connection, 415, Json,
                         error_json("a request is JSON: Content-Type: application/json"));
  }
  service_.request(connection, request.body);
}

std::string Routes::metrics() const {
  const HttpCounts& c = server_.counts();
  std::string out;
  const auto line = [&](std::string_view name, std::uint64_t value) {
    out += fmt::format("ricci_{} {}\n", name, value);
  };
  line("connections_open", c.open);
  line("connections_open_most", c.open_most);
  line("connections_total", c.accepted);
  line("connections_turned_away_total", c.turned_away);
  line("connections_timed_out_total", c.timeouts);
  line("connections_gone_total", c.gone);
  line("requests_total", c.requests);
  line("requests_malformed_total", c.faults);
  return out + service_.metrics();
}

}  // namespace ricci::serve
