#include "serve/service/forward_service.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <ranges>

#include <fmt/format.h>

#include "ricci/support/error.h"
#include "ricci/support/text.h"

#include "io/json_value.h"
#include "serve/service/picture_json.h"
#include "serve/service/tensor_json.h"

namespace ricci::serve {

ForwardService::ForwardService(HttpServer& server, JoinedProgram program, std::size_t batch,
                               ServiceLimits limits)
    : server_(server),
      program_(std::move(program)),
      batch_(batch),
      limits_(limits),
      thread_([this] { run(); }) {}

ForwardService::~ForwardService() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    stop_.request_stop();
  }
  changed_.notify_all();
  thread_.join();
}

std::vector<std::size_t> ForwardService::read_outputs(const std::vector<std::string>& names) const {
  std::vector<std::size_t> out;
  for (const std::string& name : names) out.push_back(program_.single().output_index(name));
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
        const Port& port = program_.single().inputs()[program_.single().input_index(name)];
        const bool pictures = takes_pictures(port.type) && pictures_come(json, body);
        call.feeds.emplace(name, pictures ? read_pictures(json, body, port.type)
                                          : read_tensor(json, body, port.type));
      });
    } else if (key == "outputs") {
      std::vector<std::string> names;
      json.array([&] { names.push_back(json.string()); });
      call.outputs = read_outputs(names);
    } else if (key == "seed") {
      call.seed = static_cast<std::uint64_t>(json.integer());
    } else {
      json.fault(fmt::format("a call has no {}", quote(shortened(key))));
    }
  });
  json.end();
  for (const Port& port : program_.single().inputs()) {
    if (program_.is_kept(port.name) || call.feeds.contains(port.name)) continue;
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
  const Waiting waiting{call.id,
                        std::chrono::steady_clock::now() +
                            std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                std::chrono::duration<double>(limits_.seconds))};
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
  const std::uint64_t id = it->second.id;
  waiting_.erase(it);
  const std::lock_guard lock(mutex_);
  std::erase_if(queue_, [&](const Call& c) { return c.id == id; });
  if (running_.erase(id) > 0 && running_.empty()) stop_.request_stop();
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

// The one that waits longest, and others that fit to it; as many as a power of two, so that there
// are few programs. They pass those that do not fit, which wait no longer for that.
std::vector<ForwardService::Call> ForwardService::next_calls() {
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < queue_.size() && chosen.size() < batch_; ++i) {
    if (i == 0 || program_.can_join(queue_.front().feeds, queue_[i].feeds)) chosen.push_back(i);
  }
  chosen.resize(std::bit_floor(chosen.size()));
  std::vector<Call> out;
  for (const std::size_t i : chosen) out.push_back(std::move(queue_[i]));
  for (const std::size_t i : chosen | std::views::reverse) {
    queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return out;
}

void ForwardService::run() {
  for (;;) {
    std::vector<Call> calls;
    StopToken stop;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return ends_ || !queue_.empty(); });
      if (ends_) return;
      calls = next_calls();
      running_.clear();
      for (const Call& c : calls) running_.insert(c.id);
      stop_ = StopSource();
      stop = stop_.token();
    }
    answer(calls, stop);
  }
}

std::string ForwardService::body_of(const Call& call, const Outputs& results) const {
  std::string body = "{\"outputs\": {";
  std::vector<std::size_t> wanted = call.outputs;
  for (std::size_t i = 0; call.outputs.empty() && i < results.size(); ++i) wanted.push_back(i);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (i > 0) body += ", ";
    body += io::json_string(program_.single().output_names()[wanted[i]]) + ": ";
    write_tensor(body, results[wanted[i]]);
  }
  return body + "}}\n";
}

void ForwardService::answer(std::span<const Call> calls, const StopToken& stop) {
  std::optional<Answer> fault;
  try {
    std::vector<const Feeds*> feeds;
    for (const Call& c : calls) feeds.push_back(&c.feeds);
    {
      const std::lock_guard lock(mutex_);
      ++runs_;
    }
    const StopScope scope(stop);  // compiling too
    const std::vector<Outputs> results =
        program_.run(feeds, {.seed = calls.front().seed, .stop = stop});
    for (std::size_t i = 0; i < calls.size(); ++i) {
      tell(calls[i], {200, body_of(calls[i], results[i])});
    }
    return;
  } catch (const UserError& e) {
    fault = {e.code() == ErrorCode::OutOfMemory ? 503 : 422, error_json(e.what())};
  } catch (const std::exception& e) {
    fault = {500, error_json(e.what())};
  }
  if (calls.size() == 1) return tell(calls.front(), *fault);
  // Nothing says which of them is to blame.
  for (std::size_t i = 0; i < calls.size() && !stop.stop_requested(); ++i) {
    answer(calls.subspan(i, 1), stop);
  }
}

void ForwardService::tell(const Call& call, Answer answer) {
  {
    const std::lock_guard lock(mutex_);
    running_.erase(call.id);
  }
  server_.post([this, id = call.id, connection = call.connection, a = std::move(answer)] {
    told(id, connection, a);
  });
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
  line("runs_total", runs_);
  line("queue_waiting", queue_.size());
  return out;
}

}  // namespace ricci::serve
