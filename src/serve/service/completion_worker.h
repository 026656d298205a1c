// The thread that generates: requests wait in a queue that is bounded, and join those under way as
// soon as there is a row for them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "ricci/serve/generator.h"

namespace ricci::serve {

using RequestId = std::uint64_t;

enum class EndReason : std::uint8_t { Stop, Length, Context, Failed, Refused, Late };

struct CompletionJob {
  RequestId id = 0;
  std::vector<std::int32_t> prompt;
  GenerateOptions options;
  std::chrono::steady_clock::time_point deadline;
};

/// Called on the worker's thread.
struct CompletionNews {
  std::function<void(RequestId, std::int32_t token)> token;
  std::function<void(RequestId, EndReason, std::string message)> end;
};

class CompletionWorker {
 public:
  CompletionWorker(Generator generator, std::size_t queue, CompletionNews news);
  /// Ends at once what is under way.
  ~CompletionWorker();

  /// False when the queue is full.
  [[nodiscard]] bool push(CompletionJob job);
  /// Nobody waits for it any more.
  void cancel(RequestId id);

  struct Counts {
    std::size_t waiting = 0, active = 0;
    std::uint64_t steps = 0, tokens = 0;
    std::int64_t past_bytes = 0;
  };
  [[nodiscard]] Counts counts() const;

 private:
  void run();
  void take_cancelled();
  void admit();
  void end_late();
  void step();
  void count();

  Generator generator_;
  std::size_t most_waiting_;
  CompletionNews news_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<CompletionJob> queue_;
  std::set<RequestId> cancelled_;
  Counts counts_;
  bool ends_ = false;
  StopSource stop_;
  struct UnderWay {
    RequestId id = 0;
    std::chrono::steady_clock::time_point deadline;
  };
  std::map<SequenceId, UnderWay> under_way_;  // of the thread alone
  std::thread thread_;
};

}  // namespace ricci::serve
