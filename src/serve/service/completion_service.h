// Completions over HTTP: requests become jobs of the worker, and what it says becomes answers,
// whole or streamed as server-sent events.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "serve/service/completion_request.h"
#include "serve/service/completion_worker.h"
#include "serve/service/service.h"
#include "serve/service/text_output.h"

namespace ricci::serve {

class CompletionService final : public Service {
 public:
  CompletionService(HttpServer& server, Generator generator, TextCodec codec, std::string model,
                    GenerateOptions defaults, ServiceLimits limits);

  [[nodiscard]] std::string_view path() const override { return "/v1/completions"; }
  void request(ConnectionId connection, const std::string& body) override;
  void gone(ConnectionId connection) override;
  [[nodiscard]] std::string metrics() const override;

 private:
  struct Pending {
    ConnectionId connection = 0;
    std::size_t prompt_tokens = 0;
    bool stream = false, began = false;
    TextOutput output;
    std::string text;
    std::vector<std::int32_t> tokens;
  };
  void on_token(RequestId id, std::int32_t token);
  void on_end(RequestId id, EndReason reason, const std::string& message);
  void finish(RequestId id, std::string_view reason);
  void fail(RequestId id, int status, const std::string& message);
  void send_piece(RequestId id, Pending& p, const std::string& text,
                  std::optional<std::int32_t> token);
  [[nodiscard]] std::string head(RequestId id) const;

  HttpServer& server_;
  TextCodec codec_;
  std::string model_;
  GenerateOptions defaults_;
  ServiceLimits limits_;
  std::map<RequestId, Pending> pending_;
  std::map<ConnectionId, RequestId> by_connection_;
  RequestId last_id_ = 0;
  std::uint64_t completed_ = 0, refused_ = 0, turned_away_ = 0, late_ = 0, failed_ = 0;
  CompletionWorker worker_;  // last: it says what it does until it is gone
};

}  // namespace ricci::serve
