#include "serve/service/forward_service.h"

#include <algorithm>

#include <fmt/format.h>

#include "ricci/support/error.h"
#include "ricci/support/text.h"

#include "io/json_value.h"
#include "serve/service/tensor_json.h"

namespace ricci::serve {

ForwardService::ForwardService(HttpServer& server, CompiledGraph program,
                               std::vector<std::string> kept, ServiceLimits limits)
    : server_(server),
      program_(std::move(program)),
      kept_(std::move(kept)),
      limits_(limits),
      thread_([this] { run(); }) {}

ForwardService::~ForwardService() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    running_.request_stop();
  }
  changed_.notify_all();
  thread_.join();
}

std::vector<std::size_t> ForwardService::read_outputs(const std::vector<std::string>& names) const {
  std::vector<std::size_t> out;
  for (const std::string& name : names) out.push_back(program_.output_index(name));
  return out;
}

// {"inputs": {"x": [[…]], …}, "outputs": ["y", …]}
ForwardService::Call ForwardService::read(const std::string& body) const {
  Call call;
  io::JsonCursor json(body);
  bool has_inputs = false;
  json.object([&](const std::string& key) {
    if (key == "inputs") {
      has_inputs = true;
      json.object([&](const std::string& name) {
        const Port& port = program_.inputs()[program_.input_index(name)];
        call.feeds.emplace(name, read_tensor(json, body, port.type));
      });
    } else if (key == "outputs") {
      std::vector<std::string> names;
      json.array([&] { names.push_back(json.string()); });
      call.outputs = read_outputs(names);
    } else if (key == "seed") {
      call.options.seed = static_cast<std::uint64_t>(json.integer());
    } else {
      json.fault(fmt::format("a call has no {}", quote(shortened(key))));
    }
  });
  json.end();
  for (const Port& port : program_.inputs()) {
    const bool kept = std::ranges::find(kept_, port.name) != kept_.end();
    if (kept || call.feeds.contains(port.name)) continue;
    throw UserError(ErrorCode::Name,
                    fmt::format("the input {} : {} is not given", port.name, port.type.to_string()),
                    has_inputs ? "" : "say {\"inputs\": {…}}");
  }
  return call;
}

void ForwardService::request(ConnectionId connection, const std::string& body) {
  Call call;
  try {
    call = read(body);
  } catch (const UserError& e) {
    ++refused_;
    return server_.reply(connection, 400, Json, error_json(e.what()));
  }
  call.connection = connection;
  call.id = ++last_id_;
  call.options.stop = call.stop.token();
  call.deadline = std::chrono::steady_clock::now() +
                  std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                      std::chrono::duration<double>(limits_.seconds));
  const Waiting waiting{call.id, call.stop, call.deadline};
  {
    const std::lock_guard lock(mutex_);
    if (queue_.size() < limits_.queue) {
      queue_.push_back(std::move(call));
      waiting_[connection] = waiting;
      changed_.notify_all();
      return;
    }
  }
  ++turned_away_;
  server_.reply(connection, 503, Json, error_json("too many requests are waiting"),
                {{"Retry-After", "1"}});
}

void ForwardService::gone(ConnectionId connection) {
  const auto it = waiting_.find(connection);
  if (it == waiting_.end()) return;
  it->second.stop.request_stop();
  const std::uint64_t id = it->second.id;
  waiting_.erase(it);
  const std::lock_guard lock(mutex_);
  std::erase_if(queue_, [&](const Call& c) { return c.id == id; });
}

void ForwardService::tick() {
  const auto now = std::chrono::steady_clock::now();
  std::vector<ConnectionId> late;
  for (const auto& [connection, w] : waiting_) {
    if (w.deadline < now) late.push_back(connection);
  }
  for (const ConnectionId connection : late) {
    ++late_;
    gone(connection);
    server_.reply(connection, 504, Json, error_json("the time for a request is over"));
  }
}

void ForwardService::run() {
  for (;;) {
    Call call;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return ends_ || !queue_.empty(); });
      if (ends_) return;
      call = std::move(queue_.front());
      queue_.pop_front();
      running_ = call.stop;
    }
    Answer a = answer(call);
    server_.post([this, id = call.id, connection = call.connection, a = std::move(a)] {
      told(id, connection, a);
    });
  }
}

ForwardService::Answer ForwardService::answer(const Call& call) const {
  try {
    const Outputs results = program_.run(call.feeds, call.options);
    std::string body = "{\"outputs\": {";
    std::vector<std::size_t> wanted = call.outputs;
    for (std::size_t i = 0; call.outputs.empty() && i < results.size(); ++i) wanted.push_back(i);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (i > 0) body += ", ";
      body += io::json_string(program_.output_names()[wanted[i]]) + ": ";
      write_tensor(body, results[wanted[i]]);
    }
    return {200, body + "}}\n"};
  } catch (const UserError& e) {
    return {e.code() == ErrorCode::OutOfMemory ? 503 : 422, error_json(e.what())};
  } catch (const std::exception& e) {
    return {500, error_json(e.what())};
  }
}

void ForwardService::told(std::uint64_t id, ConnectionId connection, const Answer& answer) {
  const auto it = waiting_.find(connection);
  if (it == waiting_.end() || it->second.id != id) return;
  waiting_.erase(it);
  ++(answer.status == 200 ? completed_ : failed_);
  server_.reply(connection, answer.status, Json, answer.body);
}

std::string ForwardService::metrics() const {
  std::string out;
  const auto line = [&](std::string_view name, std::uint64_t value) {
    out += fmt::format("ricci_{} {}\n", name, value);
  };
  line("calls_total", completed_);
  line("calls_refused_total", refused_);
  line("calls_turned_away_total", turned_away_);
  line("calls_late_total", late_);
  line("calls_failed_total", failed_);
  const std::lock_guard lock(mutex_);
  line("queue_waiting", queue_.size());
  return out;
}

}  // namespace ricci::serve
