// Sessions: what is compiled once, what is kept where.
#include "ricci/runtime/session.h"

#include <filesystem>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/op/custom.h"

#include "backend/cpu/codegen/code_cache.h"
#include "runtime/models.h"

namespace ricci::testing {
namespace {

TEST(RuntimeSession, CompilesAGraphOnce) {
  Session session;
  const CompiledGraph a = session.compile(dense_graph());
  const CompiledGraph b = session.compile(dense_graph());
  EXPECT_EQ(&a.program(), &b.program());
  EXPECT_EQ(session.cache().hits, 1U);
  EXPECT_EQ(session.cache().misses, 1U);
  const CompiledGraph c = session.compile(dense_graph(8));
  const CompiledGraph d = session.compile(dense_graph(), {.fuse = false});
  EXPECT_NE(&a.program(), &c.program());
  EXPECT_NE(&a.program(), &d.program());
  EXPECT_EQ(session.cache().programs, 3U);
  session.clear_cache();
  EXPECT_EQ(session.cache().programs, 0U);
  const Feeds feeds = random_feeds(dense_graph());
  EXPECT_TRUE(same(a.run(feeds)[0], b.run(feeds)[0]));
}

// [lir-fingerprint] Constants, attributes and bodies count, however little they differ.
TEST(RuntimeSession, EverythingInAGraphCounts) {
  Session session;
  const auto run = [&](double shift, std::int64_t axis, bool twice) {
    Graph g("g");
    const Value x = g.input("x", f32({2, 2}));
    const auto body = [&](Graph&, std::span<const Value> v) {
      return std::vector{twice ? v[0] * 2.0 : v[0] * 3.0};
    };
    const Value looped = scan(x, body, 2);
    g.set_outputs({reduce(looped + shift, {.op = ReduceKind::Sum, .axes = {axis}})});
    return session.compile(g).run({{"x", Tensor::of<float>({2, 2}, {1, 2, 3, 4})}})[0];
  };
  EXPECT_EQ(run(0, 0, true).elements<float>(), (std::vector<float>{16, 24}));
  EXPECT_EQ(run(1, 0, true).elements<float>(), (std::vector<float>{18, 26}));
  EXPECT_EQ(run(0, 1, true).elements<float>(), (std::vector<float>{12, 28}));
  EXPECT_EQ(run(0, 0, false).elements<float>(), (std::vector<float>{36, 54}));
  EXPECT_EQ(session.cache().hits, 0U);
  (void)run(0, 0, false);
  EXPECT_EQ(session.cache().hits, 1U);
}

TEST(RuntimeSession, ForgetsWhatWasNotAskedForLongest) {
  Session session(Device::default_cpu(), {.max_programs = 2});
  (void)session.compile(dense_graph(1));
  (void)session.compile(dense_graph(2));
  (void)session.compile(dense_graph(1));
  (void)session.compile(dense_graph(3));  // drops 2
  EXPECT_EQ(session.cache().programs, 2U);
  (void)session.compile(dense_graph(1));
  EXPECT_EQ(session.cache().hits, 2U);
  (void)session.compile(dense_graph(2));
  EXPECT_EQ(session.cache().hits, 2U);
}

TEST(RuntimeSession, PlacesInTheSourceCount) {
  Session session;
  const auto build = [](std::source_location here) {
    Graph g("g");
    g.set_outputs({tanh(g.input("x", f32({2}), here), here)});
    return g;
  };
  (void)session.compile(build(std::source_location::current()));
  (void)session.compile(build(std::source_location::current()));
  EXPECT_EQ(session.cache().hits, 0U);
}

TEST(RuntimeSession, ParamsBelongToACompiledGraphAndItsCopies) {
  Session session;
  CompiledGraph a = session.compile(dense_graph());
  CompiledGraph copy = a;
  CompiledGraph b = session.compile(dense_graph());
  const Feeds feeds = random_feeds(dense_graph());
  a.set_param("w", feeds.at("w"));
  a.set_param("b", feeds.at("b"));
  EXPECT_TRUE(same(copy.param("w"), feeds.at("w")));
  EXPECT_TRUE(same(copy.run({{"x", feeds.at("x")}})[0], a.run(feeds)[0]));
  EXPECT_THROW((void)b.param("w"), UserError);
  EXPECT_THROW((void)b.run({{"x", feeds.at("x")}}), UserError);
}

TEST(RuntimeSession, ManyThreadsCompileAtOnce) {
  Session session;
  const Feeds feeds = random_feeds(dense_graph());
  const Tensor expected = interpret(dense_graph(), feeds)[0];
  std::vector<std::thread> threads;
  std::vector<Tensor> results(8);
  for (std::size_t t = 0; t < results.size(); ++t) {
    threads.emplace_back([&, t] { results[t] = session.compile(dense_graph()).run(feeds)[0]; });
  }
  for (std::thread& t : threads) t.join();
  for (const Tensor& r : results) EXPECT_TRUE(close(r, expected));
  EXPECT_EQ(session.cache().programs, 1U);
}

class RuntimeCodeCache : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "ricci_code_cache_" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    cpu::forget_code();
  }
  void TearDown() override {
    std::filesystem::remove_all(folder_);
    cpu::forget_code();
  }

  // What compiling the graph with no code in memory made and loaded.
  cpu::CodeStatistics compile_afresh(const Graph& graph = dense_graph()) {
    cpu::forget_code();
    const cpu::CodeStatistics before = cpu::code_statistics();
    Session session(Device::default_cpu(), {.code_cache = folder_});
    const CompiledGraph f = session.compile(graph);
    const cpu::CodeStatistics after = cpu::code_statistics();
    const Feeds feeds = random_feeds(graph);
    EXPECT_TRUE(close(f.run(feeds)[0], interpret(graph, feeds)[0]));
    return {after.compiled - before.compiled, after.loaded - before.loaded};
  }

  template <class F>
  void damage(const std::string& extension, F&& f) {
    for (const auto& e : std::filesystem::directory_iterator(folder_)) {
      if (e.path().extension() == extension) f(e.path());
    }
  }

  std::string folder_;
};

// A loop that is one function is code like any other.
TEST_F(RuntimeCodeCache, KeepsLoopsInMemoryAndInTheFolder) {
  Graph g("loop");
  const Value start = g.input("c", f32({4}));
  const Value last = scan(
      start, [](Graph&, std::span<const Value> in) { return std::vector{tanh(in[0]) * 0.5}; }, 20);
  g.set_outputs({last});
  const cpu::CodeStatistics first = compile_afresh(g);
  EXPECT_GT(first.compiled, 0);
  const cpu::CodeStatistics second = compile_afresh(g);
  EXPECT_EQ(second.compiled, 0);
  EXPECT_EQ(second.loaded, first.compiled);
  const cpu::CodeStatistics before = cpu::code_statistics();
  const CompiledGraph again = compile(g);
  EXPECT_EQ(again.served_by(0), "loop");
  EXPECT_EQ(cpu::code_statistics().compiled, before.compiled);
}

// Steps of a loop that was written out differ in the part of an array they read or write, forwards
// or backwards; that is no other code.
TEST_F(RuntimeCodeCache, PartsOfArraysShareCode) {
  constexpr std::int64_t Steps = 12;
  Graph g("parts");
  const Value x = g.input("x", f32({Steps, 5}));
  const Value w = g.input("w", f32({5, 5}));
  Value h = narrow(x, {.axis = 0, .start = 0, .len = 1});
  std::vector<Value> rows;
  for (std::int64_t t = 0; t < Steps; ++t) {
    const Value row = narrow(x, {.axis = 0, .start = t, .len = 1});
    h = tanh(matmul(h, w) + reverse(row, {.axes = {1}}));
    rows.push_back(h);
  }
  g.set_outputs({concat(rows, {.axis = 0})});
  const cpu::CodeStatistics made = compile_afresh(g);
  EXPECT_GT(made.compiled, 0);
  EXPECT_LT(made.compiled, Steps / 2);
}

TEST_F(RuntimeCodeCache, SecondProcessCompilesNothing) {
  const cpu::CodeStatistics first = compile_afresh();
  EXPECT_GT(first.compiled, 0);
  EXPECT_EQ(first.loaded, 0);
  const cpu::CodeStatistics second = compile_afresh();
  EXPECT_EQ(second.compiled, 0);
  EXPECT_EQ(second.loaded, first.compiled);
  for (const auto& e : std::filesystem::directory_iterator(folder_)) {
    EXPECT_NE(e.path().extension(), ".tmp");
  }
}

TEST_F(RuntimeCodeCache, DamagedFilesAreReplaced) {
  const std::int64_t all = compile_afresh().compiled;
  const auto flip_a_byte = [](const std::filesystem::path& path) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(100);
    file.put('\x7f');
  };
  const auto truncate = [](const std::filesystem::path& path) {
    std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  };
  for (const char* extension : {".o", ".kernel"}) {
    damage(extension, flip_a_byte);
    EXPECT_EQ(compile_afresh().compiled, all) << extension;
    EXPECT_EQ(compile_afresh().loaded, all) << extension;
    damage(extension, truncate);
    EXPECT_EQ(compile_afresh().compiled, all) << extension;
    EXPECT_EQ(compile_afresh().loaded, all) << extension;
    damage(extension, [](const auto& path) { std::ofstream(path, std::ios::trunc); });
    EXPECT_EQ(compile_afresh().compiled, all) << extension;
    EXPECT_EQ(compile_afresh().loaded, all) << extension;
  }
}

TEST_F(RuntimeCodeCache, AFolderThatCannotBeWrittenIsNoFault) {
  std::ofstream(folder_) << "a file";
  EXPECT_GT(compile_afresh().compiled, 0);
  EXPECT_GT(compile_afresh().compiled, 0);
}

TEST(RuntimeCodeCacheFolder, ComesFromTheEnvironment) {
  const auto restore = [](const char* name) {
    const char* value = std::getenv(name);
    return std::pair{std::string(name), value == nullptr ? std::optional<std::string>() : value};
  };
  const auto saved = {restore("RICCI_CACHE_DIR"), restore("XDG_CACHE_HOME"), restore("HOME")};
  unsetenv("RICCI_CACHE_DIR");
  setenv("XDG_CACHE_HOME", "/xdg", 1);
  EXPECT_EQ(default_code_cache(), "/xdg/ricci");
  setenv("XDG_CACHE_HOME", "relative", 1);
  setenv("HOME", "/somewhere", 1);
  EXPECT_EQ(default_code_cache(), "/somewhere/.cache/ricci");
  setenv("RICCI_CACHE_DIR", "/mine", 1);
  EXPECT_EQ(default_code_cache(), "/mine");
  setenv("RICCI_CACHE_DIR", "", 1);
  EXPECT_EQ(default_code_cache(), "");
  for (const auto& [name, value] : saved) {
    if (value) {
      setenv(name.c_str(), value->c_str(), 1);
    } else {
      unsetenv(name.c_str());
    }
  }
}

}  // namespace
}  // namespace ricci::testing
