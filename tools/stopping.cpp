#include "stopping.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "ricci/support/text.h"

namespace ricci::tool {
namespace {

constexpr int InputError = 1;
constexpr int Interrupted = 128 + SIGINT;

// A signal handler can reach nothing else than what the whole process shares.
const StopSource& button() {
  static const StopSource source;
  return source;
}
std::atomic<const StopSource*> pressed_by_interrupt{nullptr};
std::atomic<bool> interrupted{false};
std::atomic<double> seconds_passed{0};

extern "C" void on_interrupt(int) {
  interrupted.store(true);
  pressed_by_interrupt.load()->request_stop();
}

}  // namespace

StopOnInterrupt::StopOnInterrupt() : scope_(button().token()) {
  pressed_by_interrupt.store(&button());
  struct sigaction action = {};
  sigaction(SIGINT, nullptr, &action);
  if (action.sa_handler == SIG_IGN) return;  // someone runs us in the background
  action = {};
  action.sa_handler = on_interrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
}

StopToken interrupt_token() { return button().token(); }

void declare_timeout(CLI::App& app, double& seconds) {
  const auto fault_in = [](const std::string& text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    return whole && value > 0
               ? std::string()
               : fmt::format("'{}' is not a number of seconds above 0", shortened(text, 40));
  };
  for (CLI::App* command : app.get_subcommands({})) {
    if (command->get_option_no_throw("--timeout") != nullptr) continue;
    command->add_option("--timeout", seconds, "stop when this takes longer")
        ->type_name("SECONDS")
        ->check(fault_in);
  }
}

struct Deadline::Timer {
  explicit Timer(double seconds) : thread([this, seconds] { wait(seconds); }) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() {
    {
      const std::lock_guard lock(mutex);
      done = true;
    }
    news.notify_all();
    thread.join();
  }

  void wait(double seconds) {
    // More than a year is forever; so is what a clock cannot count.
    constexpr double Longest = 4e7;
    const auto time = std::chrono::duration<double>(std::min(seconds, Longest));
    std::unique_lock lock(mutex);
    if (news.wait_for(lock, time, [this] { return done; })) return;
    seconds_passed.store(seconds);
    button().request_stop();
  }

  std::mutex mutex;
  std::condition_variable news;
  bool done = false;
  std::thread thread;
};

Deadline::Deadline(double seconds) {
  if (seconds > 0) timer_ = std::make_unique<Timer>(seconds);
}

Deadline::~Deadline() = default;

Stopped how_stopped() {
  if (interrupted.load()) return {Interrupted, "error[stopped]: interrupted"};
  return {InputError, fmt::format("error[stopped]: not done after {} s\n"
                                  "  help: give it longer with --timeout",
                                  seconds_passed.load())};
}

}  // namespace ricci::tool
