// A program over HTTP: inputs as JSON in, outputs out. Calls wait in a queue that is bounded, and
// one after the other has all threads of the device.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "ricci/runtime/compiled_graph.h"

#include "serve/service/service.h"

namespace ricci::serve {

/// The program keeps its params; what a call gives are its inputs, and params it has no value for.
class ForwardService final : public Service {
 public:
  ForwardService(HttpServer& server, CompiledGraph program, std::vector<std::string> kept,
                 ServiceLimits limits);
  ~ForwardService() override;

  [[nodiscard]] std::string_view path() const override { return "/v1/forward"; }
  void request(ConnectionId connection, const std::string& body) override;
  void gone(ConnectionId connection) override;
  void tick() override;
  [[nodiscard]] std::string metrics() const override;

 private:
  struct Call {
    ConnectionId connection = 0;
    std::uint64_t id = 0;
    Feeds feeds;
    RunOptions options;
    std::vector<std::size_t> outputs;  // none: all
    StopSource stop;
    std::chrono::steady_clock::time_point deadline;
  };
  struct Answer {
    int status = 200;
    std::string body;
  };
  [[nodiscard]] Call read(const std::string& body) const;
  [[nodiscard]] std::vector<std::size_t> read_outputs(const std::vector<std::string>& names) const;
  void run();
  [[nodiscard]] Answer answer(const Call& call) const;
  void told(std::uint64_t id, ConnectionId connection, const Answer& answer);

  HttpServer& server_;
  CompiledGraph program_;
  std::vector<std::string> kept_;
  ServiceLimits limits_;
  struct Waiting {
    std::uint64_t id = 0;
    StopSource stop;
    std::chrono::steady_clock::time_point deadline;
  };
  std::map<ConnectionId, Waiting> waiting_;  // of the loop's thread: calls that are not answered
  std::uint64_t last_id_ = 0;
  std::uint64_t completed_ = 0, refused_ = 0, turned_away_ = 0, late_ = 0, failed_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Call> queue_;
  StopSource running_;  // of the call that runs
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace ricci::serve
