// Whatever is wrong with a run is said, and what was compiled stays usable.
#include <array>
#include <functional>
#include <limits>

#include <gtest/gtest.h>

#include "ricci/compiler/rule/eval.h"
#include "ricci/op/custom.h"
#include "ricci/runtime/session.h"

#include "ops/control_bodies.h"
#include "runtime/models.h"

namespace ricci::testing {
namespace {

void expect_error(ErrorCode code, const std::string& part, const std::function<void()>& f) {
  try {
    f();
    ADD_FAILURE() << "no fault is reported; expected " << part;
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

TEST(RuntimeBadInput, ByName) {
  Session session;
  const CompiledGraph f = session.compile(dense_graph());
  const Feeds good = random_feeds(dense_graph());
  const auto with = [&](const std::string& name, const Tensor& t) {
    Feeds feeds = good;
    feeds.insert_or_assign(name, t);
    return feeds;
  };
  expect_error(ErrorCode::Shape, "'x'",
               [&] { (void)f.run(with("x", Tensor::zeros(f32({6, 4})))); });
  expect_error(ErrorCode::DType, "'w'",
               [&] { (void)f.run(with("w", Tensor::zeros(f64({6, 5})))); });
  expect_error(ErrorCode::Name, "'b'", [&] {
    Feeds feeds = good;
    feeds.erase("b");
    (void)f.run(feeds);
  });
  expect_error(ErrorCode::Name, "bias",
               [&] { (void)f.run(with("bias", Tensor::zeros(f32({5})))); });
  CompiledGraph g = f;
  expect_error(ErrorCode::Shape, "'b'", [&] { g.set_param("b", Tensor::zeros(f32({6}))); });
  expect_error(ErrorCode::DType, "'b'", [&] { g.set_param("b", Tensor::zeros(f64({5}))); });
  expect_error(ErrorCode::Name, "c", [&] { g.set_param("c", Tensor::zeros(f32({6}))); });
  EXPECT_TRUE(close(f.run(good)[0], interpret(dense_graph(), good)[0]));
}

class RuntimeBuffers : public ::testing::Test {
 protected:
  RuntimeBuffers()
      : f_(compile(counting_graph(), Device::standard(), {.donations = {{0, "c"}, {2, "s"}}})),
        context_(f_.make_context()) {}

  void expect_good() {
    s_ = {0, 0, 0};
    c_ = 2;
    f_.run(context_, in_, out_);
    EXPECT_EQ(s_, (std::array<float, 4>{2, 4, 6, 0}));
  }
  void expect_bad(const std::string& part) {
    expect_error(ErrorCode::Attr, part, [&] { f_.run(context_, in_, out_); });
  }

  CompiledGraph f_;
  ExecutionContext context_;
  std::array<float, 4> x_ = {1, 2, 3, 0};
  std::array<float, 4> s_ = {};
  float c_ = 2;
  float total_ = 0;
  std::array<const void*, 3> in_ = {x_.data(), &c_, s_.data()};
  std::array<void*, 3> out_ = {&c_, &total_, s_.data()};
};

TEST_F(RuntimeBuffers, Null) {
  in_[0] = nullptr;
  expect_bad("'x' is null");
  in_[0] = x_.data();
  out_[1] = nullptr;
  expect_bad("output 1 is null");
  out_[1] = &total_;
  in_[1] = nullptr;  // has no value kept
  expect_bad("'c' is null");
  in_[1] = &c_;
  out_[0] = nullptr;  // its input is the caller's
  expect_bad("output 0 is null");
  out_[0] = &c_;
  expect_good();
}

TEST_F(RuntimeBuffers, Misaligned) {
  in_[0] = reinterpret_cast<const std::byte*>(x_.data()) + 1;
  expect_bad("'x' is not aligned to 4 bytes");
  in_[0] = x_.data();
  out_[1] = reinterpret_cast<std::byte*>(&s_) + 2;
  expect_bad("output 1 is not aligned");
  out_[1] = &total_;
  expect_good();
}

TEST_F(RuntimeBuffers, Overlapping) {
  out_[2] = x_.data();  // an input that is not donated
  expect_bad("overlap");
  out_[2] = s_.data() + 1;  // a part of the one that is
  expect_bad("overlap");
  out_[2] = s_.data();
  out_[1] = s_.data() + 2;  // another output
  expect_bad("overlap");
  out_[1] = &total_;
  expect_good();
  in_[0] = s_.data();  // an input where an output is written
  expect_bad("overlap");
  in_[0] = x_.data();
  std::array<float, 3> elsewhere = {};
  out_[2] = elsewhere.data();  // a donated output need not take its input's place
  s_ = {0, 0, 0};
  c_ = 2;
  f_.run(context_, in_, out_);
  EXPECT_EQ(elsewhere, (std::array<float, 3>{2, 4, 6}));
  out_[2] = s_.data();
  expect_good();
}

TEST_F(RuntimeBuffers, CountsAndContexts) {
  expect_error(ErrorCode::Name, "2 inputs",
               [&] { f_.run(context_, std::span<const void* const>(in_).first(2), out_); });
  const CompiledGraph other = compile(dense_graph());
  ExecutionContext theirs = other.make_context();
  expect_error(ErrorCode::Name, "context", [&] { f_.run(theirs, in_, out_); });
  ExecutionContext moved = std::move(theirs);
  expect_error(ErrorCode::Name, "context",
               [&] { f_.run(theirs, in_, out_); });  // NOLINT: what a moved one says
  expect_good();
}

TEST(RuntimeBadInput, TooLargeToRun) {
  Graph g("huge");
  const Value x = g.input("x", f32({1 << 20}));
  const Value y = reshape(x, {.new_shape = {1 << 20, 1}});
  const Value z = reshape(x, {.new_shape = {1, 1 << 20}});
  // 4 TiB of products that a sort needs in memory.
  const auto [sorted, order] = sort(matmul(y, z), {.axis = 1});
  g.set_outputs({reduce(sorted, {.op = ReduceKind::Max, .axes = {0}})});
  Session session;
  const CompiledGraph f = session.compile(g);
  EXPECT_GT(f.workspace_bytes(), std::int64_t{1} << 42);  // known before anything runs
  const Feeds feeds = {{"x", Tensor::zeros(f32({1 << 20}))}};
  expect_error(ErrorCode::OutOfMemory, "bytes to run", [&] { (void)f.run(feeds); });
  expect_error(ErrorCode::OutOfMemory, "bytes to run", [&] { (void)f.make_context(); });

  const CompiledGraph small = session.compile(dense_graph(64), {.memory_limit = 100});
  expect_error(ErrorCode::OutOfMemory, "may take 100",
               [&] { (void)small.run(random_feeds(dense_graph(64))); });
  const Feeds good = random_feeds(dense_graph());
  EXPECT_TRUE(
      close(session.compile(dense_graph()).run(good)[0], interpret(dense_graph(), good)[0]));
}

TEST(RuntimeBadInput, TooLargeToCount) {
  Graph g("huge");
  const Value x =
      g.constant(Tensor::splat(f64({(std::int64_t{1} << 47) - 1, std::int64_t{1} << 11}), 1.0));
  std::vector<Value> sorted = {x};  // eight of 2^61 bytes, all alive at the end
  for (int i = 0; i < 8; ++i) sorted.push_back(sort(sorted.back(), {.axis = 0})[0]);
  Value last = sort(x, {.axis = 0, .descending = true})[0];
  for (const Value& v : sorted) last = sort(last + v, {.axis = 0})[0];
  g.set_outputs({reduce(last, {.op = ReduceKind::Max, .axes = {0, 1}})});
  expect_error(ErrorCode::OutOfMemory, "bytes", [&] { (void)Session().compile(g).run({}); });
}

// A registered op whose kernel throws what it is told to.
class Thrower final : public CustomOp {
 public:
  [[nodiscard]] std::string name() const override { return "thrower"; }
  [[nodiscard]] std::vector<Type> infer(std::span<const Type> operands,
                                        const Bytes&) const override {
    return {operands[0]};
  }
  void eval(const Bytes&, EvalContext& c) const override {
    const double x = c.tensor(0).item();
    if (x == 1) throw std::runtime_error("out of ideas");
    if (x == 2) throw std::bad_alloc();
    if (x == 3) throw UserError(ErrorCode::Shape, "three is too many");
    if (x == 5) std::vector<double>().resize(SIZE_MAX);
    c.give(0, c.tensor(0));
  }
};

TEST(RuntimeBadInput, ExceptionsInKernels) {
  Registry registry;
  registry.add(std::make_shared<Thrower>());
  Graph g("throws", registry);
  const Value x = g.input("x", f32({}));
  const std::vector<Value> y = g.add_node(Op(op::Custom{.name = "thrower"}), std::array{x});
  const int line = __LINE__ - 1;
  g.set_outputs({y[0] + 1.0});
  Session session;
  const CompiledGraph f = session.compile(g);
  const auto run = [&](float value) { return f.run({{"x", Tensor::of<float>({}, {value})}})[0]; };
  expect_error(ErrorCode::Refused, "out of ideas", [&] { (void)run(1); });
  expect_error(ErrorCode::Refused, "bad_input_test.cpp:" + std::to_string(line),
               [&] { (void)run(1); });
  expect_error(ErrorCode::OutOfMemory, "bad_input_test.cpp", [&] { (void)run(2); });
  expect_error(ErrorCode::Shape, "three is too many", [&] { (void)run(3); });
  expect_error(ErrorCode::OutOfMemory, "bad_input_test.cpp", [&] { (void)run(5); });
  EXPECT_EQ(run(4).item(), 5);
}

// Any byte but 0 is true, also where it chooses a branch.
TEST(RuntimeBadInput, BoolsThatAreNeitherZeroNorOne) {
  Graph g("branch");
  const Value p = g.input("p", {DType::Bool, {}});
  const Value x = g.input("x", f32({8, 8}));
  const auto product = [](Graph&, std::span<const Value> in) {
    return std::vector{matmul(in[0], in[0])};
  };
  const auto same = [](Graph&, std::span<const Value> in) { return std::vector{in[0] + 1.0}; };
  g.set_outputs({cond(p, std::array{x}, product, same)[0]});
  const CompiledGraph f = compile(g);
  ExecutionContext context = f.make_context();
  const std::vector<float> ones(64, 1);
  std::vector<float> out(64);
  for (const int byte : {0, 1, 2, 128, 255}) {
    const auto flag = static_cast<unsigned char>(byte);
    f.run(context, std::array<const void*, 2>{&flag, ones.data()},
          std::array<void*, 1>{out.data()});
    EXPECT_EQ(out[0], byte == 0 ? 2 : 8) << byte;
  }
}

TEST(RuntimeBadInput, IndexOutOfRangeOfEmptyRows) {
  Graph g("gather");
  const Value table = g.input("table", f32({4, 0}));
  g.set_outputs({gather(table, g.input("ids", i32({3})))});
  const CompiledGraph f = compile(g);
  const auto feeds = [](std::int32_t id) {
    return Feeds{{"table", Tensor::zeros(f32({4, 0}))}, {"ids", Tensor::splat(i32({3}), id)}};
  };
  expect_error(ErrorCode::IndexOutOfRange, "index 4 is outside [0, 4)",
               [&] { (void)f.run(feeds(4)); });
  EXPECT_EQ(f.run(feeds(3))[0].type(), f32({3, 0}));
}

TEST(RuntimeBadInput, IndexOutOfRange) {
  Graph g("gather");
  const Value table = g.input("table", f32({10, 4}));
  const Value ids = g.input("ids", i32({3}));
  g.set_outputs({gather(table, ids, {.axis = 0}) * 2.0});
  const int line = __LINE__ - 1;
  const CompiledGraph f = compile(g);
  const Tensor values = random_tensor(1, f32({10, 4}));
  expect_error(ErrorCode::IndexOutOfRange, "bad_input_test.cpp:" + std::to_string(line), [&] {
    (void)f.run({{"table", values}, {"ids", Tensor::of<std::int32_t>({3}, {0, 10, 1})}});
  });
  const Feeds good = {{"table", values}, {"ids", Tensor::of<std::int32_t>({3}, {0, 9, 1})}};
  EXPECT_TRUE(close(f.run(good)[0], interpret(g, good)[0]));
}

// A taped loop's gradient is a loop over its tape; a count of trips that the tape has no rows for
// is the fault it is for the reference.
TEST(RuntimeBadInput, TripCountBeyondTheTape) {
  const Type vec = f32({2});
  for (const std::int64_t checkpoints : {0, 2}) {
    Graph g("trips");
    const Value x = g.input("x", vec);
    const Value tape = g.input("tape", f32({checkpoints == 0 ? 4 : checkpoints, 2}));
    const Value count = g.input("count", i32());
    const Value upstream = g.input("upstream", vec);
    const auto doubled = [](Graph&, Inputs in) { return Values{in[0] * 2.0}; };
    g.set_outputs(while_backward(
        {.carries = {x},
         .tapes = {tape},
         .trip_count = count,
         .upstreams = {upstream},
         .max_iterations = 4,
         .checkpoints = checkpoints,
         .body_vjp = rule_body("body_vjp", {vec}, {d_output(0, vec)},
                               [](Graph&, Inputs in) { return Values{in[1] * 2.0}; })
                         .graph,
         .forward_body = checkpoints == 0 ? nullptr : body("forward_body", {vec}, doubled).graph}));
    const CompiledGraph f = compile(g);
    Feeds feeds = random_feeds(g);
    for (const std::int32_t trips : {5, 77, -1}) {
      feeds["count"] = Tensor::of<std::int32_t>({}, {trips});
      expect_error(ErrorCode::IndexOutOfRange, std::to_string(trips),
                   [&] { (void)interpret(g, feeds); });
      expect_error(ErrorCode::IndexOutOfRange, std::to_string(trips), [&] { (void)f.run(feeds); });
      expect_error(ErrorCode::IndexOutOfRange, "trip count", [&] { (void)f.run(feeds); });
    }
    for (const std::int32_t trips : {0, 3, 4}) {
      feeds["count"] = Tensor::of<std::int32_t>({}, {trips});
      EXPECT_TRUE(same(f.run(feeds)[0], interpret(g, feeds)[0])) << trips;
    }
  }
}

}  // namespace
}  // namespace ricci::testing
