// Every host kernel against the reference kernel of its op: all cases of the op's table, operands
// in several layouts, one thread and three.
#include <algorithm>
#include <cstring>
#include <functional>
#include <variant>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/compiler/rule/lower.h"
#include "ricci/compiler/rule/nd.h"
#include "ricci/interp/interpreter.h"
#include "ricci/op/sequence.h"
#include "ricci/op/table.h"

#include "backend/cpu/run/call_kernel.h"
#include "backend/cpu/run/host_call.h"
#include "backend/cpu/structured/strided_copy.h"
#include "ops/cases.h"
#include "schedule/calls.h"
#include "support/compare.h"

namespace ricci::testing::host_kernels_test {
namespace {

constexpr std::uint64_t Seed = 7;

// The same elements with something else between them, every second axis mirrored, and the axes in
// another order in memory.
Tensor scattered_copy(const Tensor& t) {
  std::vector<std::int64_t> perm;
  for (std::size_t i = t.rank(); i-- > 0;) perm.push_back(static_cast<std::int64_t>(i));
  const Tensor turned = t.transposed(perm);
  const StaticDims& dims = turned.dims();
  const auto size = size_of(t.dtype());
  const auto memory = std::make_shared<std::vector<std::byte>>(
      static_cast<std::size_t>(2 * size * (t.numel() + 1)), std::byte{0x7F});
  std::vector<std::int64_t> strides = row_major_strides(dims);
  std::int64_t first = 1;
  for (std::size_t a = 0; a < dims.size(); ++a) {
    strides[a] *= 2;
    if (a % 2 == 0 && dims[a] > 0) {
      first += (dims[a] - 1) * strides[a];
      strides[a] = -strides[a];
    }
  }
  std::byte* start = memory->data() + first * size;
  const Tensor packed = turned.contiguous();
  std::int64_t flat = 0;
  for_each_index(dims, [&](const StaticDims& index) {
    std::int64_t offset = 0;
    for (std::size_t a = 0; a < index.size(); ++a) offset += index[a] * strides[a];
    std::memcpy(start + offset * size, packed.data() + flat++ * size,
                static_cast<std::size_t>(size));
  });
  return Tensor::borrow(turned.type(), start, strides, memory).transposed(perm);
}

cpu::ArrayView view_of(const Tensor& t) {
  return {const_cast<std::byte*>(t.data()), t.dtype(), t.dims(), t.strides()};
}

// Runs the host kernel of a node; results nobody wants come back as empty scalars.
std::vector<Tensor> run_kernel(const Node& node, std::span<const Tensor> operands, int threads) {
  std::vector<Type> types;
  for (const Tensor& t : operands) types.push_back(t.type());
  const loop::Call call = call_of(node.op, types, node.types);
  const std::string_view name = node.op.mnemonic();
  const cpu::HostKernel kernel = cpu::host_kernel(call);
  std::vector<cpu::ArrayView> in;
  for (const Tensor& t : operands) in.push_back(view_of(t));
  std::vector<Tensor> results;
  std::vector<cpu::ArrayView> out;
  for (const Type& type : node.types) results.push_back(Tensor::zeros(type));
  for (std::size_t r = 0; r < results.size(); ++r) {
    out.push_back(view_of(results[r]));
    const auto bytes = static_cast<std::size_t>(results[r].numel() * size_of(out[r].dtype));
    if (bytes > 0) std::memset(results[r].mutable_data(), 0x55, bytes);  // kernels write it all
    out[r].data = node.wanted[r] ? results[r].mutable_data() : nullptr;
  }
  ThreadPool pool(threads);
  std::int64_t needed = 0;
  if (kernel.scratch != nullptr) {
    std::vector<cpu::ArrayView> shapes_in = in;
    std::vector<cpu::ArrayView> shapes_out = out;
    for (cpu::ArrayView& v : shapes_in) v.data = nullptr;
    for (cpu::ArrayView& v : shapes_out) v.data = nullptr;
    needed = kernel.scratch({call, name, shapes_in, shapes_out, pool, Seed});
  }
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> scratch(static_cast<std::size_t>(needed / 64 + 1));
  std::memset(static_cast<void*>(scratch.data()), 0xAB, scratch.size() * 64);
  kernel.run({call, name, in, out, pool, Seed,
              std::as_writable_bytes(std::span(scratch)).first(static_cast<std::size_t>(needed))});
  return results;
}

// Sums and functions are rounded; all else is exact.
bool is_exact(const Op& op, DType dtype) {
  if (!is_differentiable(dtype)) return true;
  return op.has(Trait::DataMovement) || op.has(Trait::Random) || op.is<op::Sort>() ||
         op.is<op::TopK>();
}

class HostCase {
 public:
  HostCase(const Case& c, DType dtype) : case_(c), built_(build_case(c, dtype)) {
    for (const auto& [name, tensor] : built_.feeds) operands_.push_back(tensor);
  }

  void check() {
    if (!built_.graph.symbols().empty()) return;
    // Some shapes of an op may have no role: the reference serves those.
    const loop::Call call = lower_node(built_.graph, node()).call;
    if (std::holds_alternative<loop::HostCall>(call)) return;
    std::vector<Tensor> scattered;
    for (const Tensor& t : operands_) scattered.push_back(scattered_copy(t));
    if (case_.fails) {
      check_fails(operands_);
      check_fails(scattered);
      return;
    }
    expected_ = interpret(built_.graph, {built_.feeds.begin(), built_.feeds.end()}, {.seed = Seed});
    const auto one = run_kernel(node(), operands_, 1);
    check_results(one);
    const auto three = run_kernel(node(), operands_, 3);
    for (std::size_t r = 0; r < one.size(); ++r) {
      if (!node().wanted[r]) continue;
      EXPECT_TRUE(same(three[r], one[r])) << "on three threads";
    }
    check_results(run_kernel(node(), scattered, 1));
    check_results(run_kernel(node(), scattered, 3));
  }

 private:
  [[nodiscard]] const Node& node() const { return built_.graph.nodes().back(); }

  void check_results(const std::vector<Tensor>& results) const {
    std::size_t next = 0;
    for (std::size_t r = 0; r < results.size(); ++r) {
      if (!node().wanted[r]) continue;
      const Tensor& expected = expected_[next++];
      EXPECT_TRUE(is_exact(node().op, expected.dtype()) ? same(results[r], expected)
                                                        : close(results[r], expected))
          << "result " << r;
    }
  }

  static Diagnostic fault_of(const std::function<void()>& run) {
    try {
      run();
    } catch (const UserError& e) {
      return e.diagnostic();
    }
    return {.message = "no fault"};
  }

  void check_fails(const std::vector<Tensor>& operands) const {
    const Diagnostic expected = fault_of([&] {
      (void)interpret(built_.graph, {built_.feeds.begin(), built_.feeds.end()}, {.seed = Seed});
    });
    for (const int threads : {1, 3}) {
      const Diagnostic d = fault_of([&] { (void)run_kernel(node(), operands, threads); });
      EXPECT_EQ(d.code, expected.code);
      EXPECT_EQ(d.message, expected.message);
      EXPECT_EQ(d.help, expected.help);
    }
  }

  const Case& case_;
  BuiltCase built_;
  std::vector<Tensor> operands_;
  std::vector<Tensor> expected_;
};

// Shapes larger than the tables': several tiles, cut rows, long sorts, many chunks of steps.
Cases large_cases() {
  Cases all;
  const auto add = [&]<OpStruct O>(std::vector<CaseOf<O>> list) {
    std::ranges::move(cases_of<O>(std::move(list)), std::back_inserter(all));
  };
  add(std::vector<CaseOf<op::GatherBackward>>{
      {.name = "sparse", .in = {T({90, 70}), Index({90}, 900)}, .op = {0, 900}},
      {.name = "dense", .in = {T({3, 700, 33}).between(0, 2), Index({700}, 5)}, .op = {1, 5}},
      {.name = "wide", .in = {T({3, 20000}), Index({3}, 4)}, .op = {0, 4}},
      {.name = "columns",
       .in = {T({90, 300}), Index({300}, 9)},
       .op = {1, 9},
       .dtypes = dtypes::floats | dtypes::ints | dtypes::complexes},
      {.name = "narrow", .in = {T({20, 300, 3}), Index({300}, 400)}, .op = {1, 400}},
      // Parts of the updates have sums of their own: eight, and two for each of three slabs.
      {.name = "parts",
       .in = {T({140001}), Index({140001}, 11)},
       .op = {0, 13},
       .dtypes = dtypes::floats | dtypes::ints},
      {.name = "slabs_in_parts", .in = {T({3, 20000, 2}), Index({20000}, 70)}, .op = {1, 70}}});
  add(std::vector<CaseOf<op::Scatter>>{
      {.name = "dense",
       .in = {T({5, 130}), T({300, 130}), Index({300}, 5)},
       .op = {ScatterKind::Max}},
      {.name = "sparse",
       .in = {T({900, 70}), T({90, 70}).between(0.9, 1.1), Index({90}, 900)},
       .op = {ScatterKind::Mul}},
      {.name = "scalars",
       .in = {T({30000}), T({7000}), Index({7000}, 30000)},
       .op = {ScatterKind::Set},
       .dtypes = dtypes::all}});
  add(std::vector<CaseOf<op::ScatterAddAlongAxis>>{
      {.name = "columns", .in = {T({50, 200}), Index({50, 200}, 9)}, .op = {0, 9}}});
  add(std::vector<CaseOf<op::Gather>>{
      {.name = "rows",
       .in = {T({300, 130}), Index({40, 11}, 300)},
       .op = {0},
       .dtypes = dtypes::all},
      {.name = "scalars", .in = {T({300}), Index({70000}, 300)}, .op = {0}}});
  add(std::vector<CaseOf<op::Cumulative>>{
      {.name = "inner", .in = {T({3, 3000})}, .op = {CumulativeKind::Cumsum, 1}},
      {.name = "outer", .in = {T({5, 70, 130})}, .op = {CumulativeKind::Cummax, 1, true}}});
  const DTypeSet ordered = dtypes::floats | dtypes::ints | dtypes::booleans;
  add(std::vector<CaseOf<op::Sort>>{
      {.name = "radix", .in = {T({3, 700}).between(-90, 90)}, .op = {1}, .dtypes = ordered},
      {.name = "long", .in = {T({9000}).between(-900, 900)}, .op = {0, true}, .dtypes = ordered},
      {.name = "columns", .in = {T({200, 70})}, .op = {0}}});
  add(std::vector<CaseOf<op::TopK>>{
      {.name = "few", .in = {T({70, 2000}).between(-90, 90)}, .op = {3}, .dtypes = ordered}});
  add(std::vector<CaseOf<op::ArgReduce>>{
      {.name = "rows", .in = {T({70, 900})}, .op = {ArgKind::ArgMin, 1}, .dtypes = ordered},
      {.name = "columns", .in = {T({70, 900})}, .op = {ArgKind::ArgMax, 0}, .dtypes = ordered}});
  add(std::vector<CaseOf<op::Sample>>{
      {.name = "likely", .in = {T({70, 300})}, .op = {.top_k = 20, .top_p = 0.7}},
      {.name = "mass", .in = {T({3, 9000})}, .op = {.top_p = 0.5, .temperature = 0.3}}});
  add(std::vector<CaseOf<op::BatchedDenseSolve>>{
      {.name = "many",
       .in = {T({70, 6, 6}).between(3, 4), T({70, 6, 2})},
       .dtypes = {DType::F64}}});
  // Sums of one sign: all but c64's have an error of their own size.
  const DTypeSet numbers = dtypes::floats | dtypes::ints | DTypeSet{DType::C128};
  // Experts with many rows and with few, beside one that has none; several picks of a row.
  add(std::vector<CaseOf<op::GroupedMatmul>>{
      {.name = "many_rows",
       .in = {T({150, 40}).between(0, 1), T({3, 40, 70}).between(0, 1), Index({150}, 2)},
       .dtypes = numbers},
      {.name = "few_rows",
       .in = {T({20, 70}).between(0, 1), T({30, 70, 40}).between(0, 1), Index({20, 3}, 30)},
       .dtypes = numbers},
      {.name = "tiles",
       .in = {T({400, 130}).between(0, 1), T({2, 130, 150}).between(0, 1), Index({400}, 2)},
       .dtypes = {DType::F32}},
      {.name = "few_columns",
       .in = {T({90, 70}).between(0, 1), T({3, 70, 2}).between(0, 1), Index({90}, 3)},
       .dtypes = numbers}});
  add(std::vector<CaseOf<op::GroupedMatmulBackward>>{
      {.name = "many_rows",
       .in = {T({150, 40}).between(0, 1), T({3, 40, 70}).between(0, 1), Index({150}, 2),
              T({150, 70}).between(0, 1)},
       .dtypes = numbers},
      {.name = "several",
       .in = {T({60, 70}).between(0, 1), T({9, 70, 40}).between(0, 1), Index({60, 3}, 8),
              T({60, 3, 40}).between(0, 1)},
       .dtypes = numbers}});
  const In steps = T({2, 23, 70}).between(0, 1);
  const std::vector<In> scan = {T({2, 23, 70}), steps, T({70, 3}).between(-1, 0), T({2, 23, 3}),
                                T({2, 23, 3})};
  std::vector<In> scan_back = scan;
  scan_back.push_back(T({2, 23, 70}));
  add(std::vector<CaseOf<op::SelectiveScan>>{
      {.name = "chunks", .in = scan, .op = {3}, .wanted = {true, true}}});
  add(std::vector<CaseOf<op::SelectiveScanBackward>>{
      {.name = "chunks", .in = scan_back, .op = {3}, .dtypes = {DType::F64, DType::BF16}}});
  const In gate = T({2, 11, 4}).between(-1, 0);
  const std::vector<In> net = {T({2, 11, 2, 6}).between(-0.5, 0.5),
                               T({2, 11, 2, 6}).between(-0.5, 0.5), T({2, 11, 4, 70}), gate,
                               T({2, 11, 4}).between(0, 1)};
  std::vector<In> net_back = net;
  net_back.push_back(T({2, 11, 4, 70}));
  add(std::vector<CaseOf<op::GatedDeltaNet>>{
      {.name = "chunks", .in = net, .op = {6}, .wanted = {true, true}}});
  add(std::vector<CaseOf<op::GatedDeltaNetBackward>>{
      {.name = "chunks", .in = net_back, .op = {6}, .dtypes = {DType::F64, DType::BF16}}});
  return all;
}

void check_case(const Case& c) {
  for (const DType dtype : AllDTypes) {
    if (!c.dtypes.has(dtype)) continue;
    SCOPED_TRACE(fmt::format("{} case '{}' in {}", c.op->mnemonic(), c.name, name(dtype)));
    try {
      HostCase(c, dtype).check();
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what();
    }
  }
}

TEST(BackendHostKernels, AgreeWithTheReferenceOnLargeShapes) {
  for (const Case& c : large_cases()) check_case(c);
}

// Systems too large for f64 by default: what is left of a x - b is small beside both.
TEST(BackendHostKernels, SolveLargeSystemsInTheirOwnPrecision) {
  const std::int64_t n = 100;
  const Case c = cases_of<op::DenseSolve>({{.name = "large", .in = {T({n, n}), T({n, 3})}}})[0];
  for (const DType dtype : {DType::F32, DType::F64, DType::C64, DType::C128}) {
    SCOPED_TRACE(name(dtype));
    const BuiltCase built = build_case(c, dtype);
    const std::vector<Tensor> operands = {built.feeds[0].second, built.feeds[1].second};
    const Tensor x = run_kernel(built.graph.nodes().back(), operands, 1)[0];
    const auto a = operands[0].numbers<std::complex<double>>();
    const auto b = operands[1].numbers<std::complex<double>>();
    const auto found = x.numbers<std::complex<double>>();
    const bool wide = dtype == DType::F64 || dtype == DType::C128;
    for (std::int64_t i = 0; i < n * 3; ++i) {
      std::complex<double> left = -b[static_cast<std::size_t>(i)];
      double size = 1;
      for (std::int64_t k = 0; k < n; ++k) {
        const auto term = a[static_cast<std::size_t>(i / 3 * n + k)] *
                          found[static_cast<std::size_t>(k * 3 + i % 3)];
        left += term;
        size += std::abs(term);
      }
      EXPECT_LT(std::abs(left), (wide ? 1e-13 : 1e-5) * size);
    }
  }
}

class BackendHostKernelCases : public ::testing::TestWithParam<OpKind> {};

TEST_P(BackendHostKernelCases, AgreeWithTheReference) {
  for (const Case& c : cases_for(GetParam())) {
    if (c.rejects.empty()) check_case(c);
  }
}

// Ops whose calls have a role that host kernels serve.
std::vector<OpKind> kinds_with_kernels() {
  std::vector<OpKind> kinds;
  for (const OpDescriptor& d : all_ops()) {
    if (d.op_class == OpClass::Control || d.op_class == OpClass::Block) continue;
    const Cases& cases = cases_for(d.kind);
    const auto c = std::ranges::find_if(cases, [](const Case& one) { return one.rejects.empty(); });
    if (c == cases.end()) continue;
    const auto dtype = std::ranges::find_if(AllDTypes, [&](DType t) { return c->dtypes.has(t); });
    const BuiltCase built = build_case(*c, *dtype);
    if (!built.graph.symbols().empty()) continue;
    const loop::Call call = lower_node(built.graph, built.graph.nodes().back()).call;
    if (cpu::host_kernel(call).run != nullptr) kinds.push_back(d.kind);
  }
  return kinds;
}

INSTANTIATE_TEST_SUITE_P(All, BackendHostKernelCases, ::testing::ValuesIn(kinds_with_kernels()),
                         [](const auto& op) {
                           const auto kind = static_cast<std::size_t>(op.param);
                           return std::string(all_ops()[kind].info->name);
                         });

// As a stored program may call it: with nothing in any array, but many steps to walk.
TEST(BackendHostKernels, StoredCallsDoNotWalkAlongNothing) {
  const auto view = [](const Dims& dims) {
    const Type type = f32(dims);
    return BufferView{0, type, loop::contiguous(type.static_dims())};
  };
  constexpr std::int64_t Far = std::int64_t{1} << 40;
  const BufferView keys = view({1, Far, 3, 0});
  const BufferView values = view({1, Far, 0, 4});
  const BufferView gates = view({1, Far, 0});
  const Op op(op::GatedDeltaNetBackward{});
  Program program{.references = {loop::Reference(op)}};
  CallStep step{.call = {},
                .operands = {keys, keys, values, gates, gates, values},
                .results = {keys, keys, values, gates, gates}};
  step.call = schedule::call_on(op, step.operands, step.results);
  const auto kernel = cpu::make_call_kernel(program, step);
  EXPECT_EQ(kernel->scratch_bytes(), 0);
  std::byte nothing{};
  const std::vector<std::byte*> in(step.operands.size(), &nothing);
  const std::vector<std::byte*> out(step.results.size(), &nothing);
  ThreadPool pool(1);
  kernel->run({in, out, pool});
  EXPECT_EQ(nothing, std::byte{});
}

}  // namespace
}  // namespace ricci::testing::host_kernels_test
