// Matrix products on a GPU by cuBLASLt: what is done with a result before it is stored is read from
// the kernel behind the product, and values, on an emulated library (support/emulated_cublas.h),
// in a process of its own.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/build/reduce.h"
#include "ricci/build/shape.h"
#include "ricci/runtime/ahead_of_time.h"

#include "backend/cuda/run/code_folder.h"
#include "backend/cuda/structured/product_choice.h"
#include "runtime/models.h"
#include "support/compare.h"
#include "support/cuda_run.h"
#include "support/device_programs.h"
#include "support/emulated_gpu.h"
#include "support/scratch_folder.h"

namespace ricci::testing::cuda_products_test {
namespace {

enum class Behind : std::uint8_t { Nothing, Relu, Gelu, ExactGelu };

struct Layer {
  DType dtype = DType::F32;
  std::int64_t rows = 6;
  std::int64_t depth = 10;
  std::int64_t columns = 16;
  bool bias = true;
  bool added = false;
  bool keeps_inner = false;
  Behind behind = Behind::Nothing;
};

Graph layer_graph(const Layer& l) {
  Graph g("layer");
  Value y = matmul(g.input("x", Type(l.dtype, {l.rows, l.depth})),
                   g.param("w", Type(l.dtype, {l.depth, l.columns})));
  if (l.bias) y = y + g.param("b", Type(l.dtype, {l.columns}));
  if (l.added) y = g.input("r", Type(l.dtype, {l.rows, l.columns})) + y;
  const Value inner = y;
  if (l.behind == Behind::Relu) y = relu(y);
  if (l.behind == Behind::Gelu) y = gelu_approx(y);
  if (l.behind == Behind::ExactGelu) y = gelu(y);
  g.set_outputs(l.keeps_inner ? std::vector<Value>{y, inner} : std::vector<Value>{y});
  return g;
}

std::string text_of_layer(const Layer& l) {
  return fmt::format("{} {}x{}x{}{}{}{} {}", name(l.dtype), l.rows, l.depth, l.columns,
                     l.bias ? " bias" : "", l.added ? " added" : "", l.keeps_inner ? " inner" : "",
                     static_cast<int>(l.behind));
}

// How the first product would be served.
std::string product_of(const Graph& g, bool tf32 = false) {
  const std::string report = compile_text(g, "report", {.device = "cuda", .tf32_products = tf32});
  const std::size_t at = report.find("     0 ");
  return report.substr(at, report.find('\n', at) - at);
}

bool is_served(const Graph& g, const std::string& how) {
  return product_of(g).find(" " + how + " ") != std::string::npos;
}

TEST(BackendCudaEpilogues, AreFoundInTheKernelBehindAProduct) {
  EXPECT_TRUE(is_served(layer_graph({}), "cublaslt bias")) << product_of(layer_graph({}));
  EXPECT_TRUE(is_served(layer_graph({.added = true}), "cublaslt bias add"));
  EXPECT_TRUE(is_served(layer_graph({.bias = false, .added = true}), "cublaslt add"));
  EXPECT_TRUE(is_served(layer_graph({.behind = Behind::Relu}), "cublaslt bias relu"));
  EXPECT_TRUE(is_served(layer_graph({.behind = Behind::Gelu}), "cublaslt bias gelu"));
  EXPECT_TRUE(
      is_served(layer_graph({.keeps_inner = true, .behind = Behind::Gelu}), "cublaslt bias gelu"));
  EXPECT_TRUE(is_served(layer_graph({.dtype = DType::BF16, .added = true, .behind = Behind::Relu}),
                        "cublaslt bias add relu"));
}

// What the library has not, or cannot be told, is a kernel.
TEST(BackendCudaEpilogues, AreNothingElse) {
  for (const Layer& l : {Layer{.behind = Behind::ExactGelu}, Layer{.dtype = DType::F64},
                         Layer{.bias = false, .behind = Behind::Relu},
                         Layer{.keeps_inner = true, .behind = Behind::Relu},
                         Layer{.columns = 12, .keeps_inner = true, .behind = Behind::Gelu}}) {
    EXPECT_TRUE(is_served(layer_graph(l), "cublaslt")) << product_of(layer_graph(l));
    EXPECT_FALSE(is_served(layer_graph(l), "cublaslt bias")) << product_of(layer_graph(l));
  }
  Graph by_row("by_row");
  by_row.set_outputs({matmul(by_row.input("x", f32({8, 8})), by_row.input("w", f32({8, 8}))) +
                      by_row.input("b", f32({8, 1}))});
  EXPECT_TRUE(is_served(by_row, "cublaslt")) << product_of(by_row);
  Graph read_twice("read_twice");
  const Value p = matmul(read_twice.input("x", f32({8, 8})), read_twice.input("w", f32({8, 8})));
  const Value sum = p + read_twice.input("b", f32({8}));
  read_twice.set_outputs({sum, matmul(p, sum)});
  EXPECT_FALSE(is_served(read_twice, "cublaslt bias")) << product_of(read_twice);
  Graph doubled("doubled");
  const Value q = matmul(doubled.input("x", f32({8, 8})), doubled.input("w", f32({8, 8})));
  doubled.set_outputs({q * 2.0 + doubled.input("b", f32({8}))});
  EXPECT_FALSE(is_served(doubled, "cublaslt bias")) << product_of(doubled);
}

TEST(BackendCudaEpilogues, SayWhereProductsAreInTf32) {
  const Graph g = layer_graph({});
  EXPECT_NE(product_of(g, true).find("cublaslt tf32 bias"), std::string::npos);
  const Graph half = layer_graph({.dtype = DType::BF16});
  EXPECT_EQ(product_of(half, true).find("tf32"), std::string::npos);
}

// One launch with what stands behind them, where they take no longer than a launch; neither those
// that are hardly anything nor those that fill a GPU.
TEST(BackendCudaProducts, AreKernelsWhereTheyAreShort) {
  const Layer layer{.rows = 128, .depth = 784, .columns = 512, .behind = Behind::Relu};
  EXPECT_TRUE(is_served(layer_graph(layer), "kernel")) << product_of(layer_graph(layer));
  for (const Layer& l : {Layer{.rows = 8, .depth = 64, .columns = 64},
                         Layer{.rows = 1024, .depth = 1024, .columns = 1024},
                         Layer{.dtype = DType::BF16, .rows = 128, .depth = 784, .columns = 512}}) {
    EXPECT_TRUE(is_served(layer_graph(l), "cublaslt bias")) << product_of(layer_graph(l));
  }
}

// The gradient of a layer's bias adds up what the gradient of its input is made of: where each row
// would be a chunk of its own, no sums of rows stand between that and the product.
TEST(BackendCudaProducts, HaveWhatIsAddedUpLaterBehindThem) {
  Graph g("layers");
  const Value x = relu(g.input("x", f32({128, 4096})));
  const Value dy = matmul(g.input("dz", f32({128, 64})), g.param("w", f32({64, 4096})));
  const Value dx = dy * x;
  g.set_outputs({dx, reduce(dx, {.op = ReduceKind::Sum, .axes = {0}})});
  const std::string report = compile_text(g, "report", {.device = "cuda"});
  EXPECT_NE(report.find("2 kernels"), std::string::npos) << report;
  EXPECT_NE(report.find("matmul, then "), std::string::npos) << report;
}

TEST(BackendCudaProducts, AgreeOnAnEmulatedLibrary) {
  if (const std::string why = why_no_emulated_gpu(); !why.empty()) GTEST_SKIP() << why;
  const EmulatedRun run =
      run_with_emulated_gpu("BackendEmulatedProducts.*:BackendCudaDevice.*", true);
  EXPECT_EQ(run.status, 0) << run.log;
  EXPECT_EQ(run.log.find("SKIPPED"), std::string::npos) << run.log;
  EXPECT_NE(run.log.find("BackendEmulatedProducts.AreThoseOfTheReference"), std::string::npos)
      << run.log;
}

class BackendEmulatedProducts : public ::testing::Test {
 protected:
  void SetUp() override {
    if (emulated_folder() == nullptr) {
      GTEST_SKIP() << "run by BackendCudaProducts.AgreeOnAnEmulatedLibrary";
    }
    (void)compile(layer_graph({}), cuda_device());  // which loads it
    const auto find = [](const char* name) {
      void* found = emulated_function("libcublasLt.so.12", name);
      EXPECT_NE(found, nullptr) << name;
      return found;
    };
    multiplied_ = reinterpret_cast<decltype(multiplied_)>(find("emulated_multiplied"));
    proposals_ = reinterpret_cast<decltype(proposals_)>(find("emulated_proposals"));
    functions_ = reinterpret_cast<decltype(functions_)>(find("emulated_functions"));
    launches_ =
        reinterpret_cast<decltype(launches_)>(emulated_function("libcuda.so.1", "emulated_calls"));
    ASSERT_TRUE(multiplied_ != nullptr && proposals_ != nullptr && functions_ != nullptr &&
                launches_ != nullptr);
    cuda::forget_choices();
  }
  void TearDown() override {
    if (functions_ != nullptr) functions_(0, 0);
  }
  [[nodiscard]] long multiplied(int algorithm) const { return multiplied_(algorithm); }
  [[nodiscard]] long proposals() const { return proposals_(); }
  [[nodiscard]] long launches() const { return launches_("cuLaunchKernel"); }
  void set_functions(bool drops_nan, bool is_coarse) { functions_(drops_nan, is_coarse); }

 private:
  long (*multiplied_)(int) = nullptr;
  long (*proposals_)() = nullptr;
  void (*functions_)(int, int) = nullptr;
  long (*launches_)(const char*) = nullptr;
};

void expect_reference(const Graph& g, const Feeds& feeds, const std::string& what) {
  const std::vector<Tensor> actual = run_on_cuda(g, feeds);
  const std::vector<Tensor> expected = interpret(g, feeds);
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(close(actual[i], expected[i])) << what << ", output " << i;
  }
}

TEST_F(BackendEmulatedProducts, AreThoseOfTheReference) {
  for (const DType dtype :
       {DType::F32, DType::F64, DType::F16, DType::BF16, DType::C64, DType::C128}) {
    Graph g("products");
    const Value a = g.input("a", Type(dtype, {3, 5, 7}));
    const Value b = g.input("b", Type(dtype, {7, 4}));
    const Value c = g.input("c", Type(dtype, {3, 7, 6}));
    const Value t = transpose(c, {.perm = {0, 2, 1}});
    g.set_outputs({matmul(a, b), matmul(a, c), matmul(t, transpose(a, {.perm = {0, 2, 1}})),
                   matmul(slice(a, {.axis = 1, .start = 1}), b)});
    expect_reference(g, random_feeds(g), std::string(name(dtype)));
  }
}

TEST_F(BackendEmulatedProducts, DoWhatTheKernelBehindThemDoes) {
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16}) {
    for (const Behind behind : {Behind::Nothing, Behind::Relu, Behind::Gelu, Behind::ExactGelu}) {
      for (int which = 0; which < 8; ++which) {
        if (dtype == DType::F16 && which != 1) continue;  // as bf16
        Layer l{.dtype = dtype, .behind = behind};
        l.bias = (which & 1) != 0;
        l.added = (which & 2) != 0;
        l.keeps_inner = (which & 4) != 0 && behind != Behind::Nothing;
        const Graph g = layer_graph(l);
        expect_reference(g, random_feeds(g), text_of_layer(l));
      }
    }
  }
  for (const Layer& l : {Layer{.rows = 1}, Layer{.columns = 1, .behind = Behind::Relu},
                         Layer{.depth = 1, .behind = Behind::Gelu}, Layer{.depth = 0},
                         Layer{.rows = 33, .depth = 17, .columns = 65, .added = true}}) {
    const Graph g = layer_graph(l);
    expect_reference(g, random_feeds(g), text_of_layer(l));
  }
}

// Every tile, sizes that end within tiles and within what is copied at once, and both orders of
// both operands; what is behind them is done by the same launch.
TEST_F(BackendEmulatedProducts, AreOneLaunchWhereTheyAreShort) {
  for (const Layer& l :
       {Layer{.rows = 40, .depth = 70, .columns = 60, .behind = Behind::Relu},
        Layer{.rows = 33, .depth = 300, .columns = 33, .added = true, .behind = Behind::ExactGelu},
        Layer{
            .rows = 128, .depth = 130, .columns = 10, .keeps_inner = true, .behind = Behind::Gelu},
        Layer{.rows = 200, .depth = 9, .columns = 516, .bias = false},
        Layer{.rows = 400, .depth = 24, .columns = 300, .added = true},
        Layer{.rows = 784, .depth = 16, .columns = 256, .bias = false, .behind = Behind::Relu}}) {
    const Graph g = layer_graph(l);
    const CompiledGraph f = compile(g, cuda_device());
    EXPECT_EQ(f.served_by(0), "kernel") << text_of_layer(l);
    const Feeds feeds = random_feeds(g);
    const long before = launches();
    const std::vector<Tensor> actual = f.run(feeds);
    EXPECT_EQ(launches(), before + 1) << text_of_layer(l);
    const std::vector<Tensor> expected = interpret(g, feeds);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      // Sums of that many products are not those of the reference to the last digits.
      EXPECT_TRUE(close(actual[i], expected[i], {.relative = 1e-5, .absolute = 1e-5}))
          << text_of_layer(l) << ", output " << i;
    }
  }
  for (const bool a_turned : {false, true}) {
    for (const bool b_turned : {false, true}) {
      for (const std::int64_t odd : {0, 1}) {
        Graph g("turned");
        const auto turned = [&](const char* name, Dims dims, bool turn) {
          if (!turn) return g.input(name, Type(DType::F32, dims));
          std::swap(dims[1], dims[2]);
          return transpose(g.input(name, Type(DType::F32, dims)), {.perm = {0, 2, 1}});
        };
        const Value a = turned("a", {3, 36 + odd, 44}, a_turned);
        const Value b = turned("b", {3, 44, 40 + odd}, b_turned);
        const Value part = slice(a, {.axis = 1, .start = 1 + odd});
        g.set_outputs({matmul(a, b), matmul(part, b) * 2.0,
                       matmul(slice(a, {.axis = 0, .start = 1, .stop = 2}), b)});
        expect_reference(g, random_feeds(g),
                         fmt::format("turned {} {} odd {}", a_turned, b_turned, odd));
      }
    }
  }
}

// y = r + f(x w) where y takes the place of r, and a kernel behind of which elements meet others.
TEST_F(BackendEmulatedProducts, ShortOnesKeepWhatIsBehindThemInOrder) {
  Graph g("residual");
  const Value r = g.param("r", f32({64, 64}));
  const Value y = tanh(matmul(g.input("x", f32({64, 64})), g.input("w", f32({64, 64}))));
  g.set_outputs({r + y});
  const Feeds feeds = random_feeds(g);
  const CompiledGraph f = compile(g, cuda_device(), {.donations = {{0, "r"}}});
  EXPECT_EQ(f.served_by(0), "kernel");
  expect_close(f.run(feeds), interpret(g, feeds));
  Graph rows("rows");
  const Value x = matmul(rows.input("x", f32({64, 64})), rows.input("w", f32({64, 64})));
  rows.set_outputs({softmax(x, {.axis = 1}), reduce(x, {.op = ReduceKind::Max, .axes = {0}})});
  expect_reference(rows, random_feeds(rows), "rows");
  Graph sums("sums");
  const Value z = relu(matmul(sums.input("x", f32({64, 64})), sums.input("w", f32({64, 64}))));
  sums.set_outputs({z, reduce(z, {.op = ReduceKind::Max, .axes = {0}})});
  expect_reference(sums, random_feeds(sums), "sums");
}

TEST_F(BackendEmulatedProducts, NeedNoKernelThen) {
  const Graph g = layer_graph({.added = true, .behind = Behind::Gelu});
  const CompiledGraph f = compile(g, cuda_device());
  EXPECT_EQ(f.served_by(0), "cublaslt bias add gelu");
  const long before = launches();
  expect_close(f.run(random_feeds(g)), interpret(g, random_feeds(g)));
  EXPECT_EQ(launches(), before);
}

// Products of small floats in f32, with a bias in f32: they are not rounded in between.
TEST_F(BackendEmulatedProducts, AreWidenedWhereTheyAreStored) {
  for (const bool bias : {false, true}) {
    Graph g("widened");
    const Value product =
        matmul(g.input("x", Type(DType::BF16, {6, 24})), g.input("w", Type(DType::BF16, {24, 8})));
    const Value wide = cast(product, {.to = DType::F32});
    g.set_outputs({bias ? wide + g.input("b", f32({8})) : wide});
    const Feeds feeds = random_feeds(g);
    const CompiledGraph f = compile(g, cuda_device());
    EXPECT_EQ(f.served_by(0), bias ? "cublaslt bias" : "cublaslt");
    const long before = launches();
    const Tensor actual = f.run(feeds)[0];
    EXPECT_EQ(launches(), before);
    EXPECT_TRUE(close(actual, interpret(g, feeds)[0], tolerance(DType::BF16)));
  }
}

// Nobody says what the library's relu makes of NaN, nor how exact its gelu is: it is tried, and not
// taken where it is not right.
TEST_F(BackendEmulatedProducts, ApplyOnlyWhatIsRight) {
  const Graph relus = layer_graph({.behind = Behind::Relu});
  const Graph gelus = layer_graph({.behind = Behind::Gelu});
  Feeds feeds = random_feeds(relus);
  feeds.at("x") = Tensor::splat(f32({6, 10}), std::numeric_limits<double>::quiet_NaN());
  for (const bool drops_nan : {false, true}) {
    for (const bool is_coarse : {false, true}) {
      cuda::forget_choices();
      set_functions(drops_nan, is_coarse);
      const CompiledGraph with_relu = compile(relus, cuda_device());
      EXPECT_EQ(with_relu.served_by(0), drops_nan ? "cublaslt" : "cublaslt bias relu");
      EXPECT_EQ(compile(gelus, cuda_device()).served_by(0),
                is_coarse ? "cublaslt" : "cublaslt bias gelu");
      expect_close(with_relu.run(feeds), interpret(relus, feeds));
      expect_reference(gelus, random_feeds(gelus), "gelu");
    }
  }
}

// y = r + x w where y takes the place of r.
TEST_F(BackendEmulatedProducts, AddWhereTheResultLies) {
  Graph g("residual");
  const Value r = g.param("r", f32({6, 8}));
  g.set_outputs({r + matmul(g.input("x", f32({6, 5})), g.input("w", f32({5, 8})))});
  const Feeds feeds = random_feeds(g);
  const CompiledGraph f = compile(g, cuda_device(), {.donations = {{0, "r"}}});
  EXPECT_EQ(f.served_by(0), "cublaslt add");
  expect_close(f.run(feeds), interpret(g, feeds));
}

TEST_F(BackendEmulatedProducts, AreInTf32WhereThatIsAskedFor) {
  const Graph g = layer_graph({.bias = false});
  const Feeds feeds = random_feeds(g);
  const Tensor expected = interpret(g, feeds)[0];
  EXPECT_TRUE(close(compile(g, cuda_device()).run(feeds)[0], expected));
  const CompiledGraph fast = compile(g, cuda_device(), {.tf32_products = true});
  EXPECT_EQ(fast.served_by(0), "cublaslt tf32");
  const std::vector<double> x = fast.run(feeds)[0].numbers<double>();
  const std::vector<double> y = expected.numbers<double>();
  double furthest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) furthest = std::max(furthest, std::abs(x[i] - y[i]));
  EXPECT_GT(furthest, 1e-6);
  EXPECT_LT(furthest, 1e-2);
  const Graph half = layer_graph({.dtype = DType::BF16, .bias = false});
  EXPECT_EQ(compile(half, cuda_device(), {.tf32_products = true}).served_by(0), "cublaslt");
}

// Measured once where it can be kept, and then taken as it is.
TEST_F(BackendEmulatedProducts, AreDoneInTheFastestWay) {
  const Graph g = layer_graph({.rows = 5, .depth = 11, .columns = 9});
  const Feeds feeds = random_feeds(g);
  const auto run = [&](const std::string& folder) {
    return compile(g, cuda_device(), {.code_cache = folder}).run(feeds);
  };
  const auto takes = [&](const std::string& folder, int algorithm) {
    cuda::forget_choices();
    (void)run(folder);
    const long before = multiplied(algorithm);
    (void)run(folder);
    return multiplied(algorithm) > before;
  };
  EXPECT_TRUE(takes("", 0));  // nowhere to keep it: the first that is proposed
  const ScratchFolder folder;
  const std::string path = folder.path() + "/code";
  EXPECT_TRUE(takes(path, 1));
  const long asked = proposals();
  cuda::forget_choices();
  const long slow = multiplied(0);
  expect_close(run(path), interpret(g, feeds));
  EXPECT_EQ(proposals(), asked) << "the next process does not ask";
  EXPECT_EQ(multiplied(0), slow) << "nor measure";
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    std::ofstream(entry.path(), std::ios::binary | std::ios::trunc) << "damaged";
  }
  cuda::forget_choices();
  expect_close(run(path), interpret(g, feeds));
  EXPECT_GT(proposals(), asked) << "what is damaged is made again";
}

}  // namespace
}  // namespace ricci::testing::cuda_products_test
