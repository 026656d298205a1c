#include "ricci/runtime/profile.h"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "ricci/compiler/schedule/cost.h"
#include "ricci/op/ops.h"

#include "runtime/observers.h"
#include "support/float_environment.h"
#include "support/fork.h"
#include "support/json.h"

namespace ricci {
namespace {

std::string step_kind(const Program& program, const Step& step) {
  if (std::holds_alternative<KernelStep>(step.what)) return "kernel";
  if (const auto* call = std::get_if<CallStep>(&step.what)) {
    return std::string(program.reference_of(*call).name());
  }
  return std::holds_alternative<LoopStep>(step.what) ? "loop" : "control";
}

std::string place(const SourcePosition& where) {
  if (!where.known()) return {};
  const std::size_t slash = where.file.rfind('/');
  const std::string file = slash == std::string::npos ? where.file : where.file.substr(slash + 1);
  return fmt::format("{}:{}", file, where.line);
}

}  // namespace

struct Profile::Impl {
  struct Event {
    std::size_t row = 0;
    std::uint64_t thread = 0;
    std::int64_t start = 0;
    std::int64_t duration = 0;
  };
  std::size_t max_events = 0;
  std::chrono::steady_clock::time_point born = std::chrono::steady_clock::now();
  mutable ForkMutex mutex;
  std::vector<ProfileRow> rows;
  std::vector<Event> events;
  std::vector<std::thread::id> threads;
  std::int64_t dropped = 0;
  std::int64_t runs = 0;
  double seconds = 0;

  // Programs are told apart by what they say of themselves: they may be gone by now.
  std::size_t row_for(const ProfileRow& like) {
    const auto same = [&](const ProfileRow& r) {
      return r.step == like.step && r.depth == like.depth && r.program == like.program &&
             r.label == like.label;
    };
    const auto found = std::ranges::find_if(rows, same);
    if (found != rows.end()) return static_cast<std::size_t>(found - rows.begin());
    rows.push_back(like);
    return rows.size() - 1;
  }

  std::uint64_t thread_number() {
    const auto id = std::this_thread::get_id();
    const auto found = std::ranges::find(threads, id);
    if (found != threads.end()) return static_cast<std::uint64_t>(found - threads.begin());
    threads.push_back(id);
    return threads.size() - 1;
  }
};

Profile::Profile(std::size_t max_events) : impl_(std::make_unique<Impl>()) {
  impl_->max_events = max_events;
}
Profile::~Profile() = default;

std::vector<ProfileRow> Profile::rows() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->rows;
}
double Profile::seconds() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->seconds;
}
std::int64_t Profile::runs() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->runs;
}

std::string Profile::to_string() const {
  const DefaultFloatEnvironment floats;
  const std::lock_guard lock(impl_->mutex);
  const auto runs_or_one = static_cast<double>(std::max<std::int64_t>(impl_->runs, 1));
  std::string text =
      fmt::format("{} runs, {:.3f} ms each\n", impl_->runs, impl_->seconds * 1e3 / runs_or_one);
  text += fmt::format("{:>5} {:>9} {:>11} {:>6} {:>8} {:>8}  {}\n", "step", "runs", "us/run",
                      "share", "GB/s", "GFLOP/s", "what");
  for (const ProfileRow& r : impl_->rows) {
    // A step that faulted has no run that ended.
    const double each = r.runs > 0 ? r.seconds / static_cast<double>(r.runs) : 0;
    const double rate = each > 0 ? 1e-9 / each : 0;
    const std::string indent(static_cast<std::size_t>(2 * r.depth), ' ');
    text +=
        fmt::format("{:>5} {:>9} {:>11.2f} {:>5.1f}% {:>8.2f} {:>8.2f}  {}{} [{}]  {}\n", r.step,
                    r.runs, each * 1e6, impl_->seconds > 0 ? 100 * r.seconds / impl_->seconds : 0,
                    static_cast<double>(r.bytes) * rate, static_cast<double>(r.flops) * rate,
                    indent, r.label, r.kind, place(r.where));
  }
  return text;
}

std::string Profile::chrome_trace() const {
  const DefaultFloatEnvironment floats;
  const std::lock_guard lock(impl_->mutex);
  std::string text = "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n";
  for (const Impl::Event& e : impl_->events) {
    const ProfileRow& r = impl_->rows[e.row];
    fmt::format_to(std::back_inserter(text),
                   "{{\"name\": {}, \"cat\": {}, \"ph\": \"X\", \"pid\": 1, \"tid\": {}, "
                   "\"ts\": {:.3f}, \"dur\": {:.3f}, \"args\": {{\"program\": {}, \"step\": "
                   "{}, \"where\": {}, \"bytes\": {}, \"flops\": {}}}}},\n",
                   quote_json(r.label), quote_json(r.kind), e.thread,
                   static_cast<double>(e.start) * 1e-3, static_cast<double>(e.duration) * 1e-3,
                   quote_json(r.program), r.step,
                   quote_json(r.where.known() ? r.where.to_string() : ""), r.bytes, r.flops);
  }
  fmt::format_to(std::back_inserter(text),
                 "{{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": 1, \"args\": {{\"name\": "
                 "\"ricci\"}}}}\n], \"otherData\": {{\"events_left_out\": {}}}}}\n",
                 impl_->dropped);
  return text;
}

ProfileObserver::ProfileObserver(Profile& profile) : profile_(profile) {}

std::size_t ProfileObserver::find(const Program& program, std::size_t step) {
  const auto [at, is_new] = index_.try_emplace({&program, step}, seen_.size());
  if (is_new) seen_.push_back({&program, step, static_cast<int>(open_.size()), 0, 0});
  return at->second;
}

void ProfileObserver::before(const Program& program, std::size_t step, const device::Buffers&) {
  const std::size_t seen = find(program, step);
  open_.push_back({seen, Clock::now()});
}

void ProfileObserver::after(const Program&, std::size_t, const device::Buffers&) {
  const Clock::time_point end = Clock::now();
  const Open open = open_.back();
  open_.pop_back();
  const auto in_ns = [](Clock::duration d) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(d).count();
  };
  const std::int64_t duration = in_ns(end - open.start);
  Seen& s = seen_[open.seen];
  ++s.runs;
  s.nanoseconds += duration;
  if (open_.empty()) nanoseconds_ += duration;
  if (events_.size() < profile_.impl_->max_events) {
    events_.push_back({open.seen, in_ns(open.start - profile_.impl_->born), duration});
  }
}

ProfileObserver::~ProfileObserver() {
  const DefaultFloatEnvironment floats;
  Profile::Impl& to = *profile_.impl_;
  const std::lock_guard lock(to.mutex);
  std::vector<std::size_t> rows;
  std::int64_t all_runs = 0;
  for (const Seen& s : seen_) {
    const Step& step = s.program->steps[s.step];
    const StepCost cost = estimate_cost(*s.program, step);
    rows.push_back(to.row_for(
        {s.program->name, s.step, s.depth, step.label, step_kind(*s.program, step), step.where, 0,
         0, static_cast<std::int64_t>(cost.bytes()), static_cast<std::int64_t>(cost.flops)}));
    ProfileRow& row = to.rows[rows.back()];
    row.runs += s.runs;
    row.seconds += static_cast<double>(s.nanoseconds) * 1e-9;
    all_runs += s.runs;
  }
  const std::uint64_t thread = to.thread_number();
  const std::size_t room = to.max_events - std::min(to.max_events, to.events.size());
  const std::size_t kept = std::min(room, events_.size());
  for (std::size_t i = 0; i < kept; ++i) {
    const Event& e = events_[i];
    to.events.push_back({rows[e.seen], thread, e.start, e.duration});
  }
  to.dropped += all_runs - static_cast<std::int64_t>(kept);
  ++to.runs;
  to.seconds += static_cast<double>(nanoseconds_) * 1e-9;
}

}  // namespace ricci
