// The stop button: pressed by another thread or a signal handler, obeyed within loops.
#include "ricci/support/stop.h"

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <thread>

#include <gtest/gtest.h>

#include "ricci/compiler/device/thread_pool.h"
#include "ricci/ir/text.h"
#include "ricci/runtime/session.h"

#include "runtime/models.h"
#include "support/c_program.h"

namespace ricci::testing {
namespace {

// Counts from `n` in steps of `by` until 5: with 0 it never gets there.
constexpr const char* Counts = R"(
graph @counts {
  %n = input "n" : f32[]
  %by = input "by" : f32[]
  %last, %same = while %n, %by cond {
    %c = input "c" : f32[]
    %b = input "b" : f32[]
    %most = constant 5.0 : f32[]
    %t = lt %c, %most
    return %t
  } body {
    %c = input "c" : f32[]
    %b = input "b" : f32[]
    %d = add %c, %b
    return %d, %b
  }
  return %last
}
)";
// Nothing to do in its body, and no end.
constexpr const char* Idle = R"(
graph @idle {
  %x = input "x" : bool[]
  %y = while %x cond { %c = input "c" : bool[] return %c } body { %c = input "c" : bool[] return %c }
  return %y
}
)";
// A loop that is one function.
constexpr const char* ShortSteps = R"(
graph @short_steps {
  %x = input "x" : f32[4]
  %y = scan %x {length = 1000000000000} body {
    %c = input "c" : f32[4]
    %n = sin %c
    return %n
  }
  return %y
}
)";
// One whose body is a program.
constexpr const char* LongSteps = R"(
graph @long_steps {
  %x = input "x" : f32[40, 40]
  %w = param "w" : f32[40, 40]
  %y = scan %x, %w {length = 1000000000000, num_carry = 1, num_bcast = 1} body {
    %c = input "c" : f32[40, 40]
    %v = input "v" : f32[40, 40]
    %p = matmul %c, %v
    %n = tanh %p
    return %n
  }
  return %y
}
)";

ErrorCode code_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const UserError& e) {
    return e.code();
  }
  return ErrorCode::Internal;
}

// How `work` ends when it is stopped some time after it has begun.
ErrorCode when_stopped(const std::function<void(const StopToken&)>& work) {
  const StopSource stop;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    stop.request_stop();
  });
  const ErrorCode code = code_of([&] { work(stop.token()); });
  other.join();
  return code;
}

const Feeds Finite = {{"n", Tensor::splat(f32({}), 0.0)}, {"by", Tensor::splat(f32({}), 1.0)}};
const Feeds Endless = {{"n", Tensor::splat(f32({}), 0.0)}, {"by", Tensor::splat(f32({}), 0.0)}};

TEST(RuntimeStop, EndlessLoopsAreStopped) {
  const CompiledGraph f = compile(parse_graph(Counts), Device::cpu(2));
  EXPECT_EQ(when_stopped([&](const StopToken& stop) { (void)f.run(Endless, {.stop = stop}); }),
            ErrorCode::Stopped);
  EXPECT_EQ(f.run(Finite)[0].item(), 5);
  EXPECT_EQ(f.run(Finite, {.stop = StopSource().token()})[0].item(), 5);
  const CompiledGraph idle = compile(parse_graph(Idle), Device::cpu(2));
  EXPECT_EQ(when_stopped([&](const StopToken& stop) {
              (void)idle.run({{"x", Tensor::splat({DType::Bool, {}}, 1.0)}}, {.stop = stop});
            }),
            ErrorCode::Stopped);
}

TEST(RuntimeStop, ContextsStayUsable) {
  const CompiledGraph f = compile(parse_graph(Counts), Device::cpu(1));
  ExecutionContext context = f.make_context();
  const float zero = 0;
  const float one = 1;
  float out = 0;
  const std::array<const void*, 2> endless = {&zero, &zero};
  const std::array<const void*, 2> finite = {&zero, &one};
  const std::array<void*, 1> to = {&out};
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(
        when_stopped([&](const StopToken& stop) { f.run(context, endless, to, {.stop = stop}); }),
        ErrorCode::Stopped);
    f.run(context, finite, to);
    EXPECT_EQ(out, 5);
  }
}

TEST(RuntimeStop, LongScansAreStopped) {
  for (const char* text : {ShortSteps, LongSteps}) {
    const Graph g = parse_graph(text);
    const Feeds feeds = random_feeds(g);
    const CompiledGraph f = compile(g, Device::cpu(2));
    EXPECT_EQ(f.served_by(0), text == ShortSteps ? "loop" : "control");
    EXPECT_EQ(when_stopped([&](const StopToken& stop) { (void)f.run(feeds, {.stop = stop}); }),
              ErrorCode::Stopped);
  }
}

// Loops end where a look falls, before and behind it.
TEST(RuntimeStop, ScansThatCanBeStoppedGiveTheSameNumbers) {
  for (const int length : {1, 1023, 1024, 1025, 2048, 5000}) {
    const Graph g = parse_graph("graph @g { %x = input \"x\" : f64[3] %y, %s = scan %x {length = " +
                                std::to_string(length) +
                                "} body { %c = input \"c\" : f64[3] %one = constant 1.0 : f64[] "
                                "%n = add %c, %one return %n, %c } return %y, %s }");
    const CompiledGraph f = compile(g, Device::cpu(1));
    EXPECT_EQ(f.served_by(0), "loop");
    const Feeds feeds = {{"x", Tensor::of<double>({3}, {0, 1, 2})}};
    const std::vector<Tensor> out = f.run(feeds, {.stop = StopSource().token()});
    EXPECT_EQ(out[0].numbers<double>(),
              (std::vector<double>{length + 0.0, length + 1.0, length + 2.0}));
    EXPECT_TRUE(out[1].identical(interpret(g, feeds)[1])) << length;
  }
}

TEST(RuntimeStop, TheInterpreterIsStopped) {
  for (const char* text : {Counts, ShortSteps}) {
    const Graph g = parse_graph(text);
    const Feeds feeds = text == Counts ? Endless : random_feeds(g);
    EXPECT_EQ(
        when_stopped([&](const StopToken& stop) { (void)interpret(g, feeds, {.stop = stop}); }),
        ErrorCode::Stopped);
  }
}

TEST(RuntimeStop, UpdatesAreStopped) {
  CompiledGraph f = compile(parse_graph(Counts), Device::cpu(2), {.donations = {{0, "n"}}});
  f.set_param("n", Tensor::splat(f32({}), 0.0));
  EXPECT_EQ(when_stopped([&](const StopToken& stop) {
              (void)f.update({{"by", Endless.at("by")}}, {.stop = stop});
            }),
            ErrorCode::Stopped);
  f.set_param("n", Tensor::splat(f32({}), 0.0));
  (void)f.update({{"by", Finite.at("by")}});
  EXPECT_EQ(f.param("n").item(), 5);
}

const StopSource* pressed = nullptr;
extern "C" void press(int) { pressed->request_stop(); }

TEST(RuntimeStop, SignalHandlersMayPressTheButton) {
  const CompiledGraph f = compile(parse_graph(Counts), Device::cpu(2));
  const StopSource stop;
  pressed = &stop;
  const auto before = std::signal(SIGUSR1, press);
  std::thread other([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ::raise(SIGUSR1);
  });
  EXPECT_EQ(code_of([&] { (void)f.run(Endless, {.stop = stop.token()}); }), ErrorCode::Stopped);
  other.join();
  std::signal(SIGUSR1, before);
}

TEST(RuntimeStop, TilesOfAPoolAreStopped) {
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    EXPECT_EQ(when_stopped([&](const StopToken& stop) {
                const StopScope scope(stop);
                pool.run(1'000'000'000'000, [](std::int64_t) {});
              }),
              ErrorCode::Stopped);
    std::atomic<int> tiles = 0;
    pool.run(100, [&](std::int64_t) { ++tiles; });
    EXPECT_EQ(tiles, 100);
  }
}

TEST(RuntimeStop, CompilesInAScopeAreStoppedAndSessionsStayUsable) {
  Session session(Device::cpu(2));
  const Graph g = wide_graph();
  {
    const StopSource stop;
    stop.request_stop();
    const StopScope scope(stop.token());
    const StopScope unchanged{StopToken()};
    EXPECT_TRUE(stop_requested());
    EXPECT_EQ(code_of([&] { (void)session.compile(g); }), ErrorCode::Stopped);
    EXPECT_EQ(code_of([&] { (void)interpret(g, random_feeds(g)); }), ErrorCode::Stopped);
  }
  EXPECT_FALSE(stop_requested());
  const std::vector<Tensor> out = session.compile(g).run(random_feeds(g));
  EXPECT_TRUE(close(out[1], interpret(g, random_feeds(g))[1]));
}

TEST(RuntimeStop, ProgramsCompiledAheadOfTimeHaveOneAndServeOneThread) {
  const std::string executable = build_c("stops", R"c(
#define _POSIX_C_SOURCE 200809L
#include "counts.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static counts_program* program;
static void on_alarm(int number) {
  (void)number;
  counts_stop(program);
}

static int endless_status;
static void* run_endless(void* unused) {
  float zero = 0, out = 0;
  counts_arrays arrays = {.n = &zero, .by = &zero, .last = &out};
  (void)unused;
  do endless_status = counts_run(program, &arrays, 0);
  while (endless_status == counts_busy);
  return NULL;
}

int main(void) {
  pthread_t other;
  float zero = 0, one = 1, out = 0;
  int status;
  counts_arrays arrays = {.n = &zero, .by = &one, .last = &out};
  counts_stop(NULL);
  if (counts_create(&program, 2) != counts_ok) return 2;
  counts_stop(program);
  if (counts_run(program, &arrays, 0) != counts_stopped) return 9;
  if (counts_run(program, &arrays, 0) != counts_ok || out != 5) return 3;
  if (pthread_create(&other, NULL, run_endless, NULL) != 0) return 4;
  do status = counts_run(program, &arrays, 0);
  while (status == counts_ok);
  if (status != counts_busy) return 5;
  counts_stop(program);
  pthread_join(other, NULL);
  if (endless_status != counts_stopped) return 6;
  signal(SIGALRM, on_alarm);
  alarm(1);
  run_endless(NULL);
  if (endless_status != counts_stopped) return 7;
  if (counts_run(program, &arrays, 0) != counts_ok || out != 5) return 8;
  counts_destroy(program);
  return 0;
}
)c",
                                         {compile_object(parse_graph(Counts))});
  ASSERT_FALSE(executable.empty());
  const ToolRun ran = run_shell("'" + executable + "'");
  EXPECT_EQ(ran.status, 0) << ran.err;
}

}  // namespace
}  // namespace ricci::testing
