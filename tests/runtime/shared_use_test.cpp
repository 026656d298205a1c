// What threads share besides a program: sizes bound on demand, code in memory and in a folder,
// profiles, and libraries that keep state of their own. Worth most under a race detector.
#include <array>
#include <atomic>
#include <exception>
#include <filesystem>
#include <functional>
#include <thread>

#include <gtest/gtest.h>

#include "ricci/runtime/profile.h"
#include "ricci/runtime/session.h"

#include "backend/cpu/codegen/code_cache.h"
#include "runtime/models.h"
#include "runtime/programs.h"

namespace ricci::testing {
namespace {

constexpr std::size_t Threads = 4;

// Runs `work(thread)` on some threads that start together; what one of them throws is thrown here.
void on_threads(const std::function<void(std::size_t)>& work) {
  std::array<std::exception_ptr, Threads> failures;
  std::atomic<std::size_t> ready = 0;
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < Threads; ++t) {
    threads.emplace_back([&, t] {
      ++ready;
      while (ready < Threads) std::this_thread::yield();
      try {
        work(t);
      } catch (...) {
        failures[t] = std::current_exception();
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (const std::exception_ptr& f : failures) {
    if (f) std::rethrow_exception(f);
  }
}

Graph rows_graph() {
  Graph g("rows");
  const Value x = g.input("x", {DType::F32, {Dim::symbol("n"), 3}});
  const Value w = g.param("w", f32({3, 2}));
  g.set_outputs({tanh(matmul(x, w)), reduce(x, {.op = ReduceKind::Mean, .axes = {0}})});
  return g;
}

TEST(RuntimeSharedUse, SizesAreBoundAndForgottenWhileOthersRun) {
  const Graph g = rows_graph();
  CompiledGraph f = compile(g, Device::cpu(2), {.max_bindings = 2});
  const Tensor weights = random_tensor(1, f32({3, 2}));
  f.set_param("w", weights);
  std::atomic<int> wrong = 0;
  on_threads([&](std::size_t t) {
    for (std::int64_t i = 0; i < 12; ++i) {
      const std::int64_t rows = 1 + (i + static_cast<std::int64_t>(t) / 2) % 4;
      const Feeds feeds = {{"x", random_tensor(rows, f32({rows, 3}))}};
      const std::vector<Tensor> actual = f.run(feeds);
      const std::vector<Tensor> expected = interpret(g, {{"x", feeds.at("x")}, {"w", weights}});
      if (!close(actual[0], expected[0]) || !close(actual[1], expected[1])) ++wrong;
      if (t == 0) cpu::forget_code();
      if (t == 1) f.release_memory();
      if (t == 2) f.set_param("w", weights);
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST(RuntimeSharedUse, ContextsRefuseASecondThread) {  // [FE-7d]
  const Graph g = dense_graph();
  const Feeds feeds = random_feeds(g);
  const CompiledGraph f = compile(g, Device::cpu(2));
  const std::vector<Tensor> expected = f.run(feeds);
  ExecutionContext context = f.make_context();
  std::atomic<int> ran = 0;
  std::atomic<int> refused = 0;
  std::atomic<int> wrong = 0;
  on_threads([&](std::size_t) {
    std::vector<const void*> from;
    for (const Port& p : f.inputs()) from.push_back(feeds.at(p.name).data());
    std::vector<Tensor> out;
    std::vector<void*> to;
    for (const Type& type : f.outputs()) out.push_back(Tensor::zeros(type));
    for (Tensor& o : out) to.push_back(o.mutable_data());
    // Until two threads have met, at the least.
    for (int i = 0; i < 1000 || (refused == 0 && i < 10'000'000); ++i) {
      try {
        f.run(context, from, to);
        ++ran;
        if (!out[0].identical(expected[0]) || !out[1].identical(expected[1])) ++wrong;
      } catch (const UserError& e) {
        ++(e.code() == ErrorCode::Busy ? refused : wrong);
      }
    }
  });
  EXPECT_GT(ran, 0);
  EXPECT_GT(refused, 0);
  EXPECT_EQ(wrong, 0);
}

TEST(RuntimeSharedUse, ThreadsThatBindTheSameSizesGetOneProgram) {
  for (int round = 0; round < 5; ++round) {
    runtime::Programs programs(rows_graph(), Device::cpu(1), {.max_bindings = 2});
    std::array<std::shared_ptr<runtime::BoundProgram>, Threads> bound;
    on_threads([&](std::size_t t) { bound[t] = programs.bound({{"n", 5}}); });
    for (const auto& b : bound) EXPECT_EQ(b, bound[0]);
    EXPECT_EQ(programs.bound({{"n", 5}}), bound[0]);
  }
}

TEST(RuntimeSharedUse, AFolderOfCodeServesManyThreads) {
  const std::string folder = ::testing::TempDir() + "ricci_shared_code";
  std::filesystem::remove_all(folder);
  std::atomic<int> wrong = 0;
  on_threads([&](std::size_t t) {
    for (std::int64_t i = 0; i < 4; ++i) {
      cpu::forget_code();
      const Graph g = dense_graph(4 + (i + static_cast<std::int64_t>(t)) % 2);
      const Feeds feeds = random_feeds(g);
      const CompiledGraph f = compile(g, Device::default_cpu(), {.code_cache = folder});
      if (!close(f.run(feeds)[0], interpret(g, feeds)[0])) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0);
  for (const auto& e : std::filesystem::directory_iterator(folder)) {
    EXPECT_NE(e.path().extension(), ".tmp");
  }
  std::filesystem::remove_all(folder);
}

TEST(RuntimeSharedUse, OneProfileAndTheSearchForNaN) {
  const Graph g = dense_graph();
  const Feeds feeds = random_feeds(g);
  const CompiledGraph f = compile(g, Device::cpu(2));
  Profile profile;
  on_threads([&](std::size_t t) {
    for (int i = 0; i < 10; ++i) {
      static_cast<void>(f.run(feeds, {.profile = &profile, .check_finite = t % 2 == 0}));
      static_cast<void>(profile.to_string());
    }
  });
  EXPECT_EQ(profile.runs(), static_cast<std::int64_t>(10 * Threads));
}

// LAPACK and oneDNN from several threads at once, some of them the pool's.
TEST(RuntimeSharedUse, LibrariesAreCalledByMany) {
  Graph g("libraries");
  const Value a = g.input("a", f64({6, 5, 5}));
  const Value b = g.input("b", f64({6, 5, 2}));
  const Value x = g.input("x", f32({6, 8, 12, 12}));
  const Value w = g.input("w", f32({8, 8, 3, 3}));
  g.set_outputs({batched_dense_solve(a, b), conv(x, w, {.padding = {1, 1}})});
  const CompiledGraph f = compile(g, Device::cpu(2));
  const Feeds feeds = random_feeds(g);
  const std::vector<Tensor> expected = f.run(feeds);
  EXPECT_TRUE(close(expected[0], interpret(g, feeds)[0]));
  std::atomic<int> wrong = 0;
  on_threads([&](std::size_t) {
    for (int i = 0; i < 10; ++i) {
      const std::vector<Tensor> actual = f.run(feeds);
      for (std::size_t k = 0; k < actual.size(); ++k) {
        if (!actual[k].identical(expected[k])) ++wrong;
      }
    }
  });
  EXPECT_EQ(wrong, 0);
}

// A tile that fails on a thread of the pool's is an error of the run it belongs to, no other's.
TEST(RuntimeSharedUse, ErrorsStayWithTheirRun) {
  Graph g("gather");
  const Value table = g.input("table", f32({16}));
  const Value ids = g.input("ids", i32({1 << 17}));
  g.set_outputs({gather(table, ids) * 2.0});
  const CompiledGraph f = compile(g, Device::cpu(3));
  const Tensor good = Tensor::splat(i32({1 << 17}), 3);
  const Tensor bad = Tensor::splat(i32({1 << 17}), 99);
  const Tensor values = random_tensor(1, f32({16}));
  std::array<int, Threads> errors = {};
  on_threads([&](std::size_t t) {
    for (int i = 0; i < 10; ++i) {
      try {
        static_cast<void>(f.run({{"table", values}, {"ids", t % 2 == 0 ? good : bad}}));
      } catch (const UserError&) {
        ++errors[t];
      }
    }
  });
  EXPECT_EQ(errors, (std::array<int, Threads>{0, 10, 0, 10}));
}

}  // namespace
}  // namespace ricci::testing
