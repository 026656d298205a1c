// CUDA code without a GPU: every kernel and written-out loop of the ops' cases and of their
// gradients is printed, compiled with NVRTC where that library can be had, and run on the host, as
// C++, against the interpreter of programs. By default the first case of each op in a few dtypes;
// RICCI_ALL_CASES=1 takes them all. Shapes for every way in which kernels are laid out come on top.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/build/shape.h"
#include "ricci/compiler/schedule/program.h"
#include "ricci/ir/text.h"
#include "ricci/op/table.h"

#include "backend/cuda/codegen/expression.h"
#include "backend/cuda/codegen/kernel_text.h"
#include "backend/cuda/codegen/program_text.h"
#include "backend/cuda/codegen/shape.h"
#include "backend/lir/kernel.h"
#include "backend/lir/loop.h"
#include "backend/lir/number.h"
#include "ops/cases.h"
#include "ops/chosen_cases.h"
#include "ops/transformed_case.h"
#include "property/random.h"
#include "support/cuda_host.h"
#include "support/cuda_kernels_target.h"
#include "support/nvrtc.h"
#include "test_paths.h"

namespace ricci::testing::cuda_codegen_test {
namespace {

// A kernel, or a loop, with the sizes of its arrays.
struct Piece {
  std::optional<loop::Kernel> kernel;
  std::optional<loop::WrittenLoop> loop;
  std::vector<std::int64_t> sizes;  // elements: by argument, or operands and then results
  std::vector<DType> dtypes;
  cuda::KernelText text;
  std::string where;
};

class Pieces {
 public:
  void add(const Program& program, const std::string& where) {
    for (const Step& step : program.steps) {
      if (const auto* kernels = std::get_if<KernelStep>(&step.what)) {
        for (const Launch& l : kernels->launches) add(program, l, where);
      } else if (const auto* loop = std::get_if<LoopStep>(&step.what)) {
        add(*loop, where);
      } else if (const auto* control = std::get_if<ControlStep>(&step.what)) {
        for (const auto& body : control->bodies) add(*body.second, where + ", " + body.first);
      }
    }
  }
  std::vector<Piece> all;

 private:
  void add(const Program& program, const Launch& launch, const std::string& where) {
    Piece p;
    p.kernel = program.kernels[launch.kernel];
    for (std::size_t a = 0; a < launch.buffers.size(); ++a) {
      const BufferId b = launch.buffers[a];
      p.sizes.push_back(b < 0 ? 0 : program.buffers[static_cast<std::size_t>(b)].elements);
      p.dtypes.push_back(p.kernel->arguments[a].dtype);
    }
    p.kernel->name = "kernel";
    p.text = cuda::print_kernel(*p.kernel, "kernel");
    keep(std::move(p), where);
  }
  void add(const LoopStep& step, const std::string& where) {
    Piece p;
    p.loop = step.loop;
    const auto see = [&](const BufferView& v) {
      p.sizes.push_back(v.buffer < 0 ? 0 : v.type.numel().value());
      p.dtypes.push_back(v.type.dtype);
    };
    for (std::int32_t k = 0; k < cuda::loop_operands(step.loop.plan); ++k) {
      see(step.operands[static_cast<std::size_t>(k)]);
    }
    for (std::int32_t r = 0; r < cuda::loop_results(step.loop.plan); ++r) {
      see(step.results[static_cast<std::size_t>(r)]);
    }
    p.text = cuda::print_loop(step.loop, "loop");
    keep(std::move(p), where);
  }
  // Each once, and then under a name of its own.
  void keep(Piece p, const std::string& where) {
    if (!seen_.insert(p.text.text).second) return;
    p.where = where;
    const std::string name = fmt::format("kernel{}", all.size());
    p.text = p.kernel ? cuda::print_kernel(*p.kernel, name) : cuda::print_loop(*p.loop, name);
    all.push_back(std::move(p));
  }
  std::set<std::string> seen_;
};

void add_case(Pieces& pieces, const OpDescriptor& d, const Case& c, DType dtype,
              const std::string& what) {
  static const CudaKernelsTarget target;
  const auto add = [&](const Graph& graph, const std::string& where) {
    if (graph.outputs().empty() || !graph.symbols().empty()) return;
    pieces.add(make_program(graph, {.target = &target}), where);
  };
  add(build_case(c, dtype).graph, what);
  if (c.fails || !is_differentiable(dtype) || is_unbounded(c)) return;
  if (d.vjp == RuleSource::Leaf || d.vjp == RuleSource::Refused) return;
  const CaseProgram p = program_of(c, dtype);
  if (p.graph.symbols().empty() && !p.differentiable().empty()) {
    add(gradient_of(p, 7).graph, what + ", gradient");
  }
}

bool is_taken(std::size_t place, DType dtype) {
  static const bool all = std::getenv("RICCI_ALL_CASES") != nullptr;
  constexpr DTypeSet Some = {DType::F32, DType::BF16, DType::I32, DType::Bool, DType::C64};
  return all || (place == 0 && Some.has(dtype));
}

Pieces pieces_of(const OpDescriptor& d) {
  Pieces pieces;
  for (const DType dtype : AllDTypes) {
    std::size_t place = 0;
    for (const Case& c : cases_for(d.kind)) {
      if (!c.rejects.empty() || !c.dtypes.has(dtype) || !is_taken(place++, dtype)) continue;
      add_case(pieces, d, c, dtype,
               fmt::format("{} case '{}' in {}", d.info->name, c.name, name(dtype)));
    }
  }
  return pieces;
}

// Numbers of all kinds: most ordinary, small whole ones for integers, which may be indices.
void fill(std::vector<std::byte>& bytes, DType dtype, Rng& rng) {
  const auto size = static_cast<std::size_t>(size_of(dtype));
  for (std::size_t at = 0; at + size <= bytes.size(); at += size) {
    const auto real = [&] { return (static_cast<double>(rng.below(4001)) - 2000) / 1000; };
    loop::Number n = static_cast<std::int64_t>(rng.below(3));
    if (is_float(dtype)) n = real();
    if (is_complex(dtype)) n = std::complex<double>(real(), real());
    lir::store(dtype, bytes.data() + at, n);
  }
}

double tolerance(DType dtype) {
  switch (dtype) {
    case DType::F64:
    case DType::C128: return 1e-10;
    case DType::F32:
    case DType::C64: return 2e-5;
    case DType::F16: return 5e-3;
    case DType::BF16: return 4e-2;
    default: return 0;
  }
}

std::complex<double> number_at(DType dtype, const std::byte* at) {
  const loop::Number n = lir::load(dtype, at);
  if (const auto* z = std::get_if<std::complex<double>>(&n)) return *z;
  if (const auto* x = std::get_if<double>(&n)) return *x;
  return static_cast<double>(std::get<std::int64_t>(n));
}

bool same_part(double a, double b, double allowed) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b || std::fabs(a - b) <= allowed;
}

std::string difference(DType dtype, const std::vector<std::byte>& got,
                       const std::vector<std::byte>& wanted) {
  const auto size = static_cast<std::size_t>(size_of(dtype));
  double largest = 0;
  for (std::size_t at = 0; at + size <= wanted.size(); at += size) {
    const double m = std::abs(number_at(dtype, wanted.data() + at));
    if (std::isfinite(m)) largest = std::max(largest, m);
  }
  for (std::size_t at = 0; at + size <= wanted.size(); at += size) {
    const std::complex<double> a = number_at(dtype, got.data() + at);
    const std::complex<double> b = number_at(dtype, wanted.data() + at);
    const double wanted_size = std::isfinite(std::abs(b)) ? std::abs(b) : 0;
    // Sums of numbers around 1 may cancel.
    const double allowed = tolerance(dtype) * (wanted_size + 0.1 * largest + 0.05);
    if (same_part(a.real(), b.real(), allowed) && same_part(a.imag(), b.imag(), allowed)) continue;
    return fmt::format("element {} of {}: {} + {}i, not {} + {}i", at / size, wanted.size() / size,
                       a.real(), a.imag(), b.real(), b.imag());
  }
  return {};
}

// What the interpreter of programs makes of the arrays a run is given.
struct Expected {
  std::vector<std::vector<std::byte>> arrays;  // by argument, or operands and then results
  bool fails = false;
};

bool is_local(const Piece& p, std::size_t a) {
  return p.kernel && p.kernel->arguments[a].role == loop::ArgumentRole::Local;
}

Expected run_on_lir_kernel(const Piece& p, std::vector<std::vector<std::byte>> arrays) {
  std::vector<lir::KernelArgument> arguments;
  for (auto& a : arrays) {
    arguments.push_back({a.data(), static_cast<std::int64_t>(a.size())});
  }
  Expected out;
  if (p.kernel) {
    out.fails = lir::run_kernel(*p.kernel, arguments).has_value();
  } else {
    const auto operands = static_cast<std::size_t>(cuda::loop_operands(p.loop->plan));
    std::vector<std::byte> room(static_cast<std::size_t>(lir::loop_room_bytes(*p.loop)));
    const std::span all(arguments);
    lir::run_loop(*p.loop, all.first(operands), all.subspan(operands), room);
  }
  out.arrays = std::move(arrays);
  return out;
}

std::vector<std::vector<std::byte>> random_arrays(const Piece& p, Rng& rng) {
  std::vector<std::vector<std::byte>> arrays;
  for (std::size_t a = 0; a < p.sizes.size(); ++a) {
    arrays.emplace_back(static_cast<std::size_t>(p.sizes[a] * size_of(p.dtypes[a])));
    const bool result = p.loop && a >= static_cast<std::size_t>(cuda::loop_operands(p.loop->plan));
    if (!result) fill(arrays.back(), p.dtypes[a], rng);
  }
  return arrays;
}

std::string disagreement(const Piece& p, const HostRun& run, const Expected& expected) {
  if (!run.wrong.empty()) return run.wrong;
  if (expected.fails != (run.fault.kind != 0)) return "a fault on one side only";
  if (expected.fails) return {};
  std::size_t next = 0;
  for (std::size_t a = 0; a < p.sizes.size(); ++a) {
    if (is_local(p, a)) continue;
    const std::string wrong = difference(p.dtypes[a], run.arrays[next++], expected.arrays[a]);
    if (!wrong.empty()) return fmt::format("argument {}: {}", a, wrong);
  }
  return {};
}

// What is wrong with the first that is, and where.
std::string first_wrong(std::span<const Piece> pieces) {
  std::vector<cuda::KernelText> texts;
  std::vector<HostRun> runs;
  std::vector<Expected> expected;
  for (std::size_t n = 0; n < pieces.size(); ++n) {
    const Piece& p = pieces[n];
    Rng rng(n);
    const auto arrays = random_arrays(p, rng);
    texts.push_back(p.text);
    HostRun& run = runs.emplace_back();
    run.kernel = n;
    for (std::size_t a = 0; a < arrays.size(); ++a) {
      if (!is_local(p, a)) run.arrays.push_back(arrays[a]);
    }
    expected.push_back(run_on_lir_kernel(p, arrays));
  }
  HostKernels(texts).run(runs);
  for (std::size_t n = 0; n < pieces.size(); ++n) {
    const Piece& p = pieces[n];
    const std::string wrong = disagreement(p, runs[n], expected[n]);
    if (wrong.empty()) continue;
    return fmt::format("{}: {}\n{}{}", p.where, wrong,
                       p.kernel ? loop::to_string(*p.kernel) : loop::to_string(*p.loop),
                       p.text.text);
  }
  return {};
}

class BackendCudaCode : public ::testing::TestWithParam<std::size_t> {
 protected:
  [[nodiscard]] static const OpDescriptor& op() { return all_ops()[GetParam()]; }
};

void expect_agreement_on_host(const Pieces& pieces) {
  constexpr std::size_t Together = 64;
  for (std::size_t first = 0; first < pieces.all.size(); first += Together) {
    const std::span all(pieces.all);
    EXPECT_EQ(first_wrong(all.subspan(first, std::min(Together, all.size() - first))), "");
    if (::testing::Test::HasFailure()) return;  // one tells enough
  }
}

void expect_to_compile(const Pieces& pieces) {
  constexpr std::size_t Together = 32;
  for (std::size_t first = 0; first < pieces.all.size(); first += Together) {
    std::string source;
    for (std::size_t n = first; n < std::min(first + Together, pieces.all.size()); ++n) {
      source += fmt::format("namespace source{} {{\n{}}}\n", n, pieces.all[n].text.text);
    }
    EXPECT_EQ(compile_for_gpu(source), "");
    if (::testing::Test::HasFailure()) return;
  }
}

TEST_P(BackendCudaCode, RunOnTheHostAgrees) {
  if (const std::string why = why_no_cuda_on_host(); !why.empty()) GTEST_SKIP() << why;
  if (op().op_class != OpClass::Block) expect_agreement_on_host(pieces_of(op()));
}

TEST_P(BackendCudaCode, CompilesForAGpu) {
  if (const std::string why = why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  if (op().op_class != OpClass::Block) expect_to_compile(pieces_of(op()));
}

INSTANTIATE_TEST_SUITE_P(All, BackendCudaCode, ::testing::Range<std::size_t>(0, OpCount),
                         [](const auto& op) {
                           return std::string(all_ops()[op.param].info->name);
                         });

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Rows for a thread, a part of a warp, a warp, a block, several warps that share a chunk of them,
// and too long for registers; columns walked down by one thread and by many; long sums in blocks;
// packs that fit and others.
Pieces pieces_of_shapes() {
  struct Shape {
    const char* dims;
    const char* row;
  };
  constexpr std::array Shapes = {Shape{"3, 4096", "4096"}, Shape{"2, 20000", "20000"},
                                 Shape{"300, 96", "96"},   Shape{"5, 37", "37"},
                                 Shape{"1500, 3", "3"},    Shape{"1, 1", "1"},
                                 Shape{"70, 83", "83"},    Shape{"3000, 40", "40"}};
  constexpr std::array Bodies = {
      "%y = softmax %x",
      "%y = layer_norm %x, %g, %b",
      "%y = reduce %x {op = sum, axes = [0]}",
      "%y = reduce %x {op = max, axes = [0, 1]}",
      "%t = transpose %x {perm = [1, 0]}\n  %y = exp %t",
      "%y = cumsum %x {axis = 0}",
      "%t = gelu %x\n  %u = mul %t, %g\n  %v = add %u, %x\n  %y = softmax %v",
  };
  static const CudaKernelsTarget target;
  Pieces pieces;
  for (const char* dtype : {"f32", "bf16", "f64"}) {
    for (const Shape& shape : Shapes) {
      const bool short_row = std::string_view(shape.row).size() == 2;
      if (std::string_view(dtype) != "f32" && !short_row) continue;
      for (const char* body : Bodies) {
        const std::string text = fmt::format(
            "graph @g {{\n  %x = input \"x\" : {0}[{1}]\n  %g = input \"g\" : {0}[{2}]\n"
            "  %b = input \"b\" : {0}[{2}]\n  {3}\n  return %y\n}}\n",
            dtype, shape.dims, shape.row, body);
        CaseProgram p;
        p.graph = parse_graph(text);
        for (const Node& node : p.graph.nodes()) {
          const auto* input = node.op.as<op::Input>();
          if (input != nullptr) p.feeds.emplace(input->name, Tensor::splat(node.types[0], 1.0));
        }
        pieces.add(make_program(p.graph, {.target = &target}), text);
        pieces.add(make_program(gradient_of(p, 7).graph, {.target = &target}),
                   "gradient of " + text);
      }
    }
  }
  const std::string vocabulary =
      "graph @g {\n  %x = input \"x\" : bf16[2, 50304]\n  %b = input \"b\" : bf16[50304]\n"
      "  %z = add %x, %b\n  %w = cast %z {to = f32}\n  %s = softmax %w\n"
      "  %y = cast %s {to = bf16}\n  return %y\n}\n";
  pieces.add(make_program(parse_graph(vocabulary), {.target = &target}), vocabulary);
  for (const char* text : {StoresAndSums, RowsInPacks}) {
    pieces.add(make_program(parse_graph(text), {.target = &target}), text);
  }
  return pieces;
}

// Gates of one product, cut apart.
Graph lstm_graph() {
  constexpr std::int64_t Width = 12;
  Graph g("lstm");
  const auto body = [](Graph&, std::span<const Value> v) -> std::vector<Value> {
    const Value gates = matmul(v[0], v[2]) + v[3];
    const auto gate = [&](std::int64_t n) {
      return slice(gates, {.axis = 1, .start = n * Width, .stop = (n + 1) * Width});
    };
    const Value cell = sigmoid(gate(0)) * v[1] + sigmoid(gate(1)) * tanh(gate(2));
    return {sigmoid(gate(3)) * tanh(cell), cell, cell * 2.0};
  };
  g.set_outputs(scan(std::array{g.input("h", f32({2, Width})), g.input("c", f32({2, Width}))},
                     {.bcasts = {g.input("w", f32({Width, 4 * Width}))},
                      .xs = {g.input("x", f32({4, 2, 4 * Width}))}},
                     body));
  return g;
}

// Small loops whose matrices are too many for registers, are carried, or lie transposed.
Pieces pieces_of_loops() {
  const auto text = [](std::string_view inputs, std::string_view scanned, std::string_view body) {
    return fmt::format("graph @g {{\n{}  %last = scan {} body {{\n{}  }}\n  return %last\n}}\n",
                       inputs, scanned, body);
  };
  std::vector<std::string> all;
  for (const int width : {3, 16, 52, 64, 80}) {
    all.push_back(text(
        fmt::format("  %c0 = input \"c0\" : f64[1, {0}]\n  %a = input \"a\" : f64[{0}, {0}]\n"
                    "  %xs = input \"xs\" : f64[5, 1, {0}]\n",
                    width),
        "%c0, %a, %xs {length = 5, num_bcast = 1, num_xs = 1}",
        fmt::format("    %c = input \"c\" : f64[1, {0}]\n    %a = input \"a\" : f64[{0}, {0}]\n"
                    "    %x = input \"x\" : f64[1, {0}]\n    %m = matmul %c, %a\n"
                    "    %s = add %m, %x\n    %n = tanh %s\n    return %n\n",
                    width)));
  }
  for (const int width : {3, 4, 7, 8}) {
    for (const bool transposed : {false, true}) {
      all.push_back(text(fmt::format("  %c0 = input \"c0\" : f64[{0}, {0}]\n", width),
                         "%c0 {length = 3, num_bcast = 0, num_xs = 0}",
                         fmt::format("    %c = input \"c\" : f64[{0}, {0}]\n"
                                     "    %t = transpose %c {{perm = [{1}]}}\n"
                                     "    %m = matmul %t, %c\n    %n = tanh %m\n    return %n\n",
                                     width, transposed ? "1, 0" : "0, 1")));
    }
  }
  static const CudaKernelsTarget target;
  Pieces pieces;
  const auto add = [&](const Graph& graph, const std::string& where) {
    pieces.add(make_program(graph, {.target = &target}), where);
  };
  for (const std::string& source : all) add(parse_graph(source), source);
  add(lstm_graph(), "lstm");
  return pieces;
}

TEST(BackendCudaLoops, RunOnTheHostAgree) {
  if (const std::string why = why_no_cuda_on_host(); !why.empty()) GTEST_SKIP() << why;
  const Pieces pieces = pieces_of_loops();
  const auto is_loop = [](const Piece& p) { return p.loop.has_value(); };
  EXPECT_GE(std::ranges::count_if(pieces.all, is_loop), 12);
  expect_agreement_on_host(pieces);
}

TEST(BackendCudaLoops, CompileForAGpu) {
  if (const std::string why = why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  expect_to_compile(pieces_of_loops());
}

// What people read: RICCI_UPDATE_GOLDEN=1 writes it anew.
TEST(BackendCudaText, IsAsItWas) {
  static const CudaKernelsTarget target;
  for (const std::string name : {"softmax", "column_sums", "small_scan"}) {
    const std::string path = fmt::format("{}/tests/data/cuda/{}", RICCI_SOURCE_DIR, name);
    const std::string actual =
        cuda::program_text(make_program(parse_graph(text_of(path + ".ric")), {.target = &target}));
    if (std::getenv("RICCI_UPDATE_GOLDEN") != nullptr) std::ofstream(path + ".cu") << actual;
    EXPECT_EQ(actual, text_of(path + ".cu")) << "RICCI_UPDATE_GOLDEN=1 writes it anew";
  }
}

// An index out of range, and a division by zero: the first fault is reported, with its numbers.
TEST(BackendCudaFaults, AreReportedWithTheirNumbers) {
  if (const std::string why = why_no_cuda_on_host(); !why.empty()) GTEST_SKIP() << why;
  loop::Kernel k{.name = "pick", .extents = {3}};
  k.arguments = {{DType::I32, loop::ArgumentRole::In},
                 {DType::F32, loop::ArgumentRole::In},
                 {DType::F32, loop::ArgumentRole::Out}};
  const auto load = [](DType dtype, loop::Access access) {
    return loop::Instr{
        .code = loop::Code::Load, .dtype = dtype, .per_element = true, .access = std::move(access)};
  };
  k.code = {load(DType::I32, {.argument = 0, .strides = {1}}),
            load(DType::F32, {.argument = 1, .strides = {0}, .terms = {{0, 1, 4, false}}})};
  k.stages = {
      {.per_element = true, .code = {0, 1}, .stores = {{1, {.argument = 2, .strides = {1}}}}}};
  const std::vector texts = {cuda::print_kernel(k, "pick")};
  const std::array<std::int32_t, 3> indices = {2, -5, 3};
  std::vector<HostRun> runs(1);
  runs[0].arrays = {std::vector<std::byte>(12), std::vector<std::byte>(16),
                    std::vector<std::byte>(12)};
  std::memcpy(runs[0].arrays[0].data(), indices.data(), sizeof indices);
  HostKernels(texts).run(runs);
  EXPECT_EQ(runs[0].wrong, "");
  EXPECT_EQ(runs[0].fault.kind, static_cast<std::uint32_t>(loop::FaultKind::Index));
  EXPECT_EQ(runs[0].fault.value, -5);
  EXPECT_EQ(runs[0].fault.limit, 4);
  EXPECT_EQ(runs[0].fault.origin, 7U);
}

TEST(BackendCudaShapes, RunOnTheHostAgree) {
  if (const std::string why = why_no_cuda_on_host(); !why.empty()) GTEST_SKIP() << why;
  expect_agreement_on_host(pieces_of_shapes());
}

TEST(BackendCudaShapes, CompileForAGpu) {
  if (const std::string why = why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  expect_to_compile(pieces_of_shapes());
}

}  // namespace
}  // namespace ricci::testing::cuda_codegen_test
