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
constexpr int Signalled = 128;

// A signal handler can reach nothing else than what the whole process shares.
const StopSource& button() {
  static const StopSource source;
  return source;
}
std::atomic<const StopSource*> pressed_by_signals{nullptr};
std::atomic<int> signal_that_came{0};
std::atomic<double> seconds_passed{0};

extern "C" void on_signal(int number) {
  signal_that_came.store(number);
  pressed_by_signals.load()->request_stop();
}

// The first one presses the button, the second one ends the process.
void listen_to(int number) {
  struct sigaction action = {};
  sigaction(number, nullptr, &action);
  if (action.sa_handler == SIG_IGN) return;  // someone runs us in the background
  action = {};
  action.sa_handler = on_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  sigaction(number, &action, nullptr);
}

}  // namespace

StopOnSignals::StopOnSignals() : scope_(button().token()) {
  pressed_by_signals.store(&button());
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) listen_to(number);
}

StopToken signal_token() { return button().token(); }

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
  const int number = signal_that_came.load();
  if (number == SIGINT) return {Signalled + number, "error[stopped]: interrupted"};
  if (number != 0) {
    return {Signalled + number, fmt::format("error[stopped]: ended by signal {}", number)};
  }
  return {InputError, fmt::format("error[stopped]: not done after {} s\n"
                                  "  help: give it longer with --timeout",
                                  seconds_passed.load())};
}

}  // namespace ricci::tool
