#include "serve/service/completion_worker.h"

#include "ricci/support/error.h"

namespace ricci::serve {
namespace {

EndReason reason_of(FinishReason reason) {
  switch (reason) {
    case FinishReason::Stop: return EndReason::Stop;
    case FinishReason::Length: return EndReason::Length;
    case FinishReason::Context: return EndReason::Context;
    default: return EndReason::Failed;
  }
}

}  // namespace

CompletionWorker::CompletionWorker(Generator generator, std::size_t queue, CompletionNews news)
    : generator_(std::move(generator)),
      most_waiting_(queue),
      news_(std::move(news)),
      thread_([this] { run(); }) {}

CompletionWorker::~CompletionWorker() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  stop_.request_stop();
  changed_.notify_all();
  thread_.join();
}

bool CompletionWorker::push(CompletionJob job) {
  {
    const std::lock_guard lock(mutex_);
    if (queue_.size() >= most_waiting_) return false;
    queue_.push_back(std::move(job));
    counts_.waiting = queue_.size();
  }
  changed_.notify_all();
  return true;
}

void CompletionWorker::cancel(RequestId id) {
  {
    const std::lock_guard lock(mutex_);
    if (std::erase_if(queue_, [&](const CompletionJob& j) { return j.id == id; }) == 0) {
      cancelled_.insert(id);
    }
    counts_.waiting = queue_.size();
  }
  changed_.notify_all();
}

CompletionWorker::Counts CompletionWorker::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void CompletionWorker::run() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] {
        return ends_ || !queue_.empty() || !cancelled_.empty() || !under_way_.empty();
      });
      if (ends_) return;
    }
    take_cancelled();
    end_late();
    admit();
    if (!under_way_.empty()) step();
    count();
  }
}

void CompletionWorker::take_cancelled() {
  std::set<RequestId> gone;
  {
    const std::lock_guard lock(mutex_);
    gone.swap(cancelled_);
  }
  std::erase_if(under_way_, [&](const auto& u) {
    if (!gone.contains(u.second.id)) return false;
    generator_.remove(u.first);
    return true;
  });
}

void CompletionWorker::end_late() {
  const auto now = std::chrono::steady_clock::now();
  std::vector<RequestId> late;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(queue_, [&](const CompletionJob& j) {
      if (j.deadline > now) return false;
      late.push_back(j.id);
      return true;
    });
  }
  std::erase_if(under_way_, [&](const auto& u) {
    if (u.second.deadline > now) return false;
    generator_.remove(u.first);
    late.push_back(u.second.id);
    return true;
  });
  for (const RequestId id : late) news_.end(id, EndReason::Late, "the time for a request is over");
}

void CompletionWorker::admit() {
  while (generator_.has_room()) {
    CompletionJob job;
    {
      const std::lock_guard lock(mutex_);
      if (queue_.empty()) return;
      job = std::move(queue_.front());
      queue_.pop_front();
    }
    try {
      under_way_[generator_.add(job.prompt, job.options)] = {job.id, job.deadline};
    } catch (const std::exception& e) {
      news_.end(job.id, EndReason::Refused, e.what());
    }
  }
}

void CompletionWorker::step() {
  std::vector<TokenEvent> events;
  try {
    events = generator_.step(stop_.token());
  } catch (const std::exception& e) {
    // Nothing says which of them is to blame, and the next step would fail as this one did.
    for (const auto& [sequence, job] : under_way_) {
      generator_.remove(sequence);
      news_.end(job.id, EndReason::Failed, e.what());
    }
    under_way_.clear();
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    ++counts_.steps;
    for (const TokenEvent& e : events) counts_.tokens += e.token ? 1 : 0;
  }
  for (const TokenEvent& e : events) {
    const auto it = under_way_.find(e.sequence);
    if (it == under_way_.end()) continue;
    if (e.token) news_.token(it->second.id, *e.token);
    if (e.finished == FinishReason::None) continue;
    news_.end(it->second.id, reason_of(e.finished), e.failure);
    under_way_.erase(it);
  }
}

void CompletionWorker::count() {
  const std::lock_guard lock(mutex_);
  counts_.waiting = queue_.size();
  counts_.active = under_way_.size();
  counts_.past_bytes = generator_.past_bytes();
}

}  // namespace ricci::serve
