// Children made by fork(): only the thread that forks lives on in them, and everything still works.
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "ricci/array.h"
#include "ricci/compiler/device/thread_pool.h"
#include "ricci/ir/text.h"
#include "ricci/op/custom.h"
#include "ricci/runtime/session.h"

#include "backend/cpu/codegen/code_cache.h"
#include "runtime/models.h"
#include "support/c_program.h"
#include "support/child.h"

namespace ricci::testing {
namespace {

class RuntimeFork : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!CanFork) GTEST_SKIP() << "the thread sanitizer starts no threads in children";
  }
};

// Does `work()` again and again on another thread while it lives; it has begun when it is made.
class Meanwhile {
 public:
  explicit Meanwhile(std::function<void()> work)
      : thread_([this, work = std::move(work)] {
          while (!done_) {
            work();
            begun_ = true;
          }
        }) {
    while (!begun_) std::this_thread::yield();
  }
  Meanwhile(const Meanwhile&) = delete;
  Meanwhile& operator=(const Meanwhile&) = delete;
  ~Meanwhile() {
    done_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> begun_ = false;
  std::atomic<bool> done_ = false;
  std::thread thread_;
};

TEST_F(RuntimeFork, ChildrenRunWhatTheParentCompiledAndCompileMore) {
  Session session(Device::cpu(3));
  const CompiledGraph f = session.compile(wide_graph());
  const Feeds feeds = random_feeds(wide_graph());
  const std::vector<Tensor> expected = f.run(feeds);
  const std::vector<Tensor> apart =
      compile(wide_graph(), Device::cpu(3), {.fuse = false}).run(feeds);
  const Feeds other = random_feeds(dense_graph());
  const std::vector<Tensor> of_default = compile(dense_graph()).run(other);
  EXPECT_TRUE(holds_in_child([&] {
    cpu::forget_code();  // what is compiled here is compiled by the child
    return identical(f.run(feeds), expected) &&
           identical(compile(dense_graph()).run(other), of_default) &&
           identical(session.compile(wide_graph(), {.fuse = false}).run(feeds), apart) &&
           identical(compile(wide_graph(), Device::cpu(2)).run(feeds), expected) &&
           holds_in_child([&] { return identical(f.run(feeds), expected); });
  }));
  EXPECT_TRUE(identical(f.run(feeds), expected));
}

TEST_F(RuntimeFork, ChildrenLeavePoolsOfTheParent) {
  EXPECT_TRUE(holds_in_child([] { return true; }));
  auto pool = std::make_unique<ThreadPool>(3);
  EXPECT_TRUE(holds_in_child([&] {
    pool.reset();
    return true;
  }));
  std::atomic<int> tiles = 0;
  pool->run(100, [&](std::int64_t) { ++tiles; });
  EXPECT_EQ(tiles, 100);
}

TEST_F(RuntimeFork, WhileAnotherThreadRuns) {
  const CompiledGraph f = compile(wide_graph(), Device::cpu(3));
  const Feeds feeds = random_feeds(wide_graph());
  const std::vector<Tensor> expected = f.run(feeds);
  CompiledGraph counts = compile(counting_graph(), Device::cpu(2), {.donations = {{0, "c"}}});
  counts.set_param("c", Tensor::of<float>({}, {0}));
  const Feeds count_feeds = {{"x", Tensor::of<float>({3}, {1, 1, 1})},
                             {"s", Tensor::of<float>({3}, {0, 0, 0})}};
  const Meanwhile runs([&] { (void)f.run(feeds); });
  const Meanwhile updates([&] { (void)counts.update(count_feeds); });
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(holds_in_child([&] {
      const double before = counts.param("c").item();
      (void)counts.update(count_feeds);
      return counts.param("c").item() == before + 1 && identical(f.run(feeds), expected);
    }));
  }
}

TEST_F(RuntimeFork, WhileAnotherThreadCompiles) {
  const Graph g = wide_graph();
  const Feeds feeds = random_feeds(g);
  const std::vector<Tensor> expected = compile(g, Device::cpu(2)).run(feeds);
  const Device device = Device::cpu(2);
  const Meanwhile compiles([&] {
    cpu::forget_code();
    (void)compile(dense_graph(), device);
  });
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(holds_in_child([&] {
      cpu::forget_code();
      return identical(compile(g, device).run(feeds), expected);
    }));
  }
}

TEST_F(RuntimeFork, WhileAnotherThreadRunsOnTheInterpreterOfPrograms) {
  const CompiledGraph f = compile(counting_graph(), Device::named("lir"));
  const Feeds feeds = random_feeds(counting_graph());
  const std::vector<Tensor> expected = f.run(feeds);
  const Meanwhile runs([&] { (void)f.run(feeds); });
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(holds_in_child([&] { return identical(f.run(feeds), expected); }));
  }
}

TEST_F(RuntimeFork, WhileAnotherThreadLooksForCustomOps) {
  class Named final : public CustomOp {
   public:
    explicit Named(int i) : name_("fork." + std::to_string(i)) {}
    [[nodiscard]] std::string name() const override { return name_; }
    [[nodiscard]] std::vector<Type> infer(std::span<const Type> operands,
                                          const Bytes&) const override {
      return {operands.begin(), operands.end()};
    }
    void eval(const Bytes&, EvalContext&) const override {}

   private:
    std::string name_;
  };
  Registry registry;
  for (int i = 0; i < 1000; ++i) registry.add(std::make_shared<Named>(i));
  const Meanwhile lists([&] { (void)registry.list(); });
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(holds_in_child([&] { return registry.find("fork.7", 1) != nullptr; }));
  }
}

// To be seen only where nothing was compiled before: run it alone.
TEST_F(RuntimeFork, WhileAnotherThreadWarmsUp) {
  const Device device = Device::cpu(1);
  std::atomic<bool> begun = false;
  std::thread warms([&] {
    begun = true;
    device.warm_up();
  });
  while (!begun) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_TRUE(holds_in_child([&] {
    Device::cpu(1).warm_up();
    return true;
  }));
  warms.join();
}

TEST_F(RuntimeFork, ContextsInUseAreFreeInTheChild) {
  const Graph g = parse_graph(R"(
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
)");
  const CompiledGraph f = compile(g, Device::cpu(1));
  ExecutionContext context = f.make_context();
  const float zero = 0;
  const float one = 1;
  float endless = 0;
  float out = 0;
  const StopSource stop;
  std::thread runs([&] {
    const std::array<const void*, 2> from = {&zero, &zero};
    const std::array<void*, 1> to = {&endless};
    ErrorCode ended = ErrorCode::Busy;
    while (ended == ErrorCode::Busy) {  // while the context serves the thread below
      try {
        f.run(context, from, to, {.stop = stop.token()});
      } catch (const UserError& e) {
        ended = e.code();
      }
    }
    EXPECT_EQ(ended, ErrorCode::Stopped);
  });
  const std::array<const void*, 2> from = {&zero, &one};
  const std::array<void*, 1> to = {&out};
  // The other thread is in it when it is refused here.
  for (bool in_use = false; !in_use;) {
    try {
      f.run(context, from, to);
      std::this_thread::yield();
    } catch (const UserError& e) {
      EXPECT_EQ(e.code(), ErrorCode::Busy) << e.what();
      in_use = true;
    }
  }
  EXPECT_TRUE(holds_in_child([&] {
    out = 0;
    f.run(context, from, to);
    return out == 5;
  }));
  stop.request_stop();
  runs.join();
  f.run(context, from, to);
  EXPECT_EQ(out, 5);
}

TEST_F(RuntimeFork, ProgramsCompiledAheadOfTimeRunInChildren) {
  const std::string executable = build_c("forks", R"c(
#define _POSIX_C_SOURCE 200809L
#include "wide.h"
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

static float x[wide_x_elements], w[wide_w_elements], a[2][wide_out0_elements], b[wide_out1_elements],
    c[wide_out2_elements];

int main(void) {
  wide_program* program = NULL;
  wide_arrays arrays = {.x = x, .w = w, .out0 = a[0], .out1 = b, .out2 = c};
  int status = 1;
  pid_t child;
  for (int i = 0; i < wide_x_elements; ++i) x[i] = (float)(i % 7);
  for (int i = 0; i < wide_w_elements; ++i) w[i] = (float)(i % 5) * 0.1f;
  if (wide_create(&program, 3) != wide_ok || wide_run(program, &arrays, 0) != wide_ok) return 2;
  child = fork();
  if (child == 0) {
    alarm(300);
    arrays.out0 = a[1];
    if (wide_run(program, &arrays, 0) != wide_ok) _exit(3);
    _exit(memcmp(a[0], a[1], sizeof a[0]) == 0 ? 0 : 4);
  }
  if (waitpid(child, &status, 0) != child || status != 0) return 5;
  if (wide_run(program, &arrays, 0) != wide_ok) return 6;
  wide_destroy(program);
  return 0;
}
)c",
                                         {compile_object(wide_graph())});
  ASSERT_FALSE(executable.empty());
  const ToolRun ran = run_shell("'" + executable + "'");
  EXPECT_EQ(ran.status, 0) << ran.err;
}

TEST_F(RuntimeFork, ChildrenCompileFunctionsThatTheParentWasCompiling) {
  // Another thread makes the first call of one function after the other: the child calls the one
  // that was under way, and must not wait for a thread it does not have.
  std::vector<Jitted<Array (*)(const Array&)>> functions;
  for (int k = 0; k < 2000; ++k) {
    functions.push_back(jit(+[](const Array& x) { return sum(tanh(x) * 0.0 + 1.0); }));
  }
  std::atomic<std::size_t> current = 0;
  const auto length = [](std::size_t k) { return static_cast<std::int64_t>(k + 2); };
  const Meanwhile compiling([&] {
    const std::size_t k = current;
    (void)functions[k](ones({length(k)}));
    if (k + 1 < functions.size()) current = k + 1;
  });
  for (int child = 0; child < 5; ++child) {
    EXPECT_TRUE(holds_in_child([&] {
      const std::size_t k = current;
      return functions[k](ones({length(k)})).item() == static_cast<double>(length(k));
    }));
  }
}

}  // namespace
}  // namespace ricci::testing
