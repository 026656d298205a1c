#include "serve/service/completion_service.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ricci/support/error.h"

#include "io/json_value.h"

namespace ricci::serve {
namespace {

std::string event(std::string_view data) { return fmt::format("data: {}\n\n", data); }

}  // namespace

CompletionService::CompletionService(HttpServer& server, Generator generator, TextCodec codec,
                                     std::string model, GenerateOptions defaults,
                                     ServiceLimits limits)
    : server_(server),
      codec_(std::move(codec)),
      model_(std::move(model)),
      defaults_(std::move(defaults)),
      limits_(limits),
      worker_(std::move(generator), limits.queue,
              {.token =
                   [this](RequestId id, std::int32_t token) {
                     server_.post([this, id, token] { on_token(id, token); });
                   },
               .end =
                   [this](RequestId id, EndReason reason, const std::string& message) {
                     server_.post([this, id, reason, message] { on_end(id, reason, message); });
                   }}) {}

void CompletionService::request(ConnectionId connection, const std::string& body) {
  CompletionRequest asked;
  try {
    asked = read_completion(body, codec_, defaults_);
  } catch (const UserError& e) {
    ++refused_;
    return server_.reply(connection, 400, Json, error_json(e.what()));
  }
  const RequestId id = ++last_id_;
  const auto time = std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(limits_.seconds));
  Pending pending{.connection = connection,
                  .prompt_tokens = asked.prompt.size(),
                  .stream = asked.stream,
                  .began = false,
                  .output = TextOutput(std::move(asked.stops)),
                  .text = {},
                  .tokens = {}};
  pending_.emplace(id, std::move(pending));
  by_connection_[connection] = id;
  if (worker_.push({.id = id,
                    .prompt = std::move(asked.prompt),
                    .options = std::move(asked.options),
                    .deadline = std::chrono::steady_clock::now() + time})) {
    return;
  }
  pending_.erase(id);
  by_connection_.erase(connection);
  ++turned_away_;
  server_.reply(connection, 503, Json, error_json("too many requests are waiting"),
                {{"Retry-After", "1"}});
}

void CompletionService::gone(ConnectionId connection) {
  const auto it = by_connection_.find(connection);
  if (it == by_connection_.end()) return;
  worker_.cancel(it->second);
  pending_.erase(it->second);
  by_connection_.erase(it);
}

std::string CompletionService::head(RequestId id) const {
  return fmt::format("\"id\": \"cmpl-{}\", \"object\": \"text_completion\", \"model\": {}", id,
                     io::json_string(model_));
}

void CompletionService::send_piece(RequestId id, Pending& p, const std::string& text,
                                   std::optional<std::int32_t> token) {
  p.text += text;
  if (!p.stream || (text.empty() && !token)) return;
  if (!p.began) {
    p.began = true;
    server_.begin_stream(p.connection, "text/event-stream");
    if (!pending_.contains(id)) return;  // the client is gone
  }
  std::string choice = "\"index\": 0";
  if (codec_.bytes) choice += fmt::format(", \"text\": {}", io::json_string(text));
  if (token) choice += fmt::format(", \"token\": {}", *token);
  server_.stream(p.connection, event(fmt::format("{{{}, \"choices\": [{{{}, \"finish_reason\": "
                                                 "null}}]}}",
                                                 head(id), choice)));
}

void CompletionService::on_token(RequestId id, std::int32_t token) {
  const auto it = pending_.find(id);
  if (it == pending_.end()) return;
  Pending& p = it->second;
  p.tokens.push_back(token);
  const std::string text = codec_.bytes ? p.output.add(codec_.bytes(token)) : std::string();
  send_piece(id, p, text, token);
  if (!pending_.contains(id) || !p.output.stopped()) return;
  worker_.cancel(id);
  finish(id, "stop");
}

void CompletionService::on_end(RequestId id, EndReason reason, const std::string& message) {
  switch (reason) {
    case EndReason::Stop: return finish(id, "stop");
    case EndReason::Length:
    case EndReason::Context: return finish(id, "length");
    case EndReason::Refused: ++refused_; return fail(id, 400, message);
    case EndReason::Late: ++late_; return fail(id, 504, message);
    case EndReason::Failed: ++failed_; return fail(id, 500, message);
  }
}

void CompletionService::finish(RequestId id, std::string_view reason) {
  const auto it = pending_.find(id);
  if (it == pending_.end()) return;
  send_piece(id, it->second, it->second.output.finish(), std::nullopt);
  const auto still = pending_.find(id);
  if (still == pending_.end()) return;
  const Pending p = std::move(still->second);
  pending_.erase(still);
  by_connection_.erase(p.connection);
  ++completed_;
  const std::string text =
      codec_.bytes && !p.stream ? fmt::format("\"text\": {}, ", io::json_string(p.text)) : "";
  const std::string tokens =
      p.stream ? "" : fmt::format("\"tokens\": [{}], ", fmt::join(p.tokens, ", "));
  const std::string body = fmt::format(
      "{{{}, \"choices\": [{{\"index\": 0, {}{}\"finish_reason\": \"{}\"}}], \"usage\": "
      "{{\"prompt_tokens\": {}, \"completion_tokens\": {}, \"total_tokens\": {}}}}}",
      head(id), text, tokens, reason, p.prompt_tokens, p.tokens.size(),
      p.prompt_tokens + p.tokens.size());
  if (!p.stream) return server_.reply(p.connection, 200, Json, body + "\n");
  if (!p.began) server_.begin_stream(p.connection, "text/event-stream");
  server_.stream(p.connection, event(body) + event("[DONE]"));
  server_.end_stream(p.connection);
}

void CompletionService::fail(RequestId id, int status, const std::string& message) {
  const auto it = pending_.find(id);
  if (it == pending_.end()) return;
  const Pending p = std::move(it->second);
  pending_.erase(it);
  by_connection_.erase(p.connection);
  if (!p.began) return server_.reply(p.connection, status, Json, error_json(message));
  std::string body = error_json(message);
  body.pop_back();
  server_.stream(p.connection, event(body) + event("[DONE]"));
  server_.end_stream(p.connection);
}

std::string CompletionService::metrics() const {
  const CompletionWorker::Counts c = worker_.counts();
  std::string out;
  const auto line = [&](std::string_view name, std::uint64_t value) {
    out += fmt::format("ricci_{} {}\n", name, value);
  };
  line("completions_total", completed_);
  line("completions_refused_total", refused_);
  line("completions_turned_away_total", turned_away_);
  line("completions_late_total", late_);
  line("completions_failed_total", failed_);
  line("queue_waiting", c.waiting);
  line("sequences_active", c.active);
  line("steps_total", c.steps);
  line("tokens_total", c.tokens);
  line("past_bytes", static_cast<std::uint64_t>(c.past_bytes));
  return out;
}

}  // namespace ricci::serve
