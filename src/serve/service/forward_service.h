// A program over HTTP: inputs as JSON in, outputs out. Calls wait in a queue that is bounded; one
// run at a time has all threads of the device, and takes those with it that wait for the same one.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "serve/service/joined_program.h"
#include "serve/service/service.h"

namespace ricci::serve {

/// The program keeps its params; what a call gives are its inputs, and params it has no value for.
class ForwardService final : public Service {
 public:
  /// A run is of `batch` calls at most.
  ForwardService(HttpServer& server, JoinedProgram program, std::size_t batch,
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
    std::uint64_t seed = 0;
    std::vector<std::size_t> outputs;  // none: all
  };
  struct Answer {
    int status = 200;
    std::string body;
  };
  [[nodiscard]] Call read(const std::string& body) const;
  [[nodiscard]] std::vector<std::size_t> read_outputs(const std::vector<std::string>& names) const;
  void run();
  [[nodiscard]] std::vector<Call> next_calls();
  void answer(std::span<const Call> calls, const StopToken& stop);
  [[nodiscard]] std::string body_of(const Call& call, const Outputs& results) const;
  void tell(const Call& call, Answer answer);
  void told(std::uint64_t id, ConnectionId connection, const Answer& answer);

  HttpServer& server_;
  JoinedProgram program_;
  std::size_t batch_;
  ServiceLimits limits_;
  struct Waiting {
    std::uint64_t id = 0;
    std::chrono::steady_clock::time_point deadline;
  };
  std::map<ConnectionId, Waiting> waiting_;  // of the loop's thread: calls that are not answered
  std::uint64_t last_id_ = 0;
  std::uint64_t completed_ = 0, refused_ = 0, turned_away_ = 0, late_ = 0, failed_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Call> queue_;
  std::set<std::uint64_t> running_;  // calls of the run there is that someone waits for
  StopSource stop_;                  // of that run
  std::uint64_t runs_ = 0;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace ricci::serve
