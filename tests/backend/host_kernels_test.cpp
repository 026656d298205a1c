// Every host kernel against the reference kernel of its op: all cases of the op's table, operands
// in several layouts, one thread and three.
#include <algorithm>
#include <cstring>
#include <functional>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/interp/interpreter.h"
#include "ricci/op/table.h"
#include "ricci/rule/nd.h"

#include "backend/cpu/host_call.h"
#include "backend/cpu/strided_copy.h"
#include "ops/cases.h"
#include "support/compare.h"

namespace ricci::testing {
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
  const cpu::HostKernel kernel = cpu::host_kernel(node.op.kind());
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
    needed = kernel.scratch({node.op, shapes_in, shapes_out, pool, Seed});
  }
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> scratch(static_cast<std::size_t>(needed / 64 + 1));
  std::memset(static_cast<void*>(scratch.data()), 0xAB, scratch.size() * 64);
  kernel.run({node.op, in, out, pool, Seed,
              std::as_writable_bytes(std::span(scratch)).first(static_cast<std::size_t>(needed))});
  return results;
}

// Sums and functions are rounded; all else is exact.
bool is_exact(const Op& op, DType dtype) {
  if (!is_differentiable(dtype)) return true;
  return op.has(Trait::DataMovement) || op.has(Trait::Random) || op.is<op::Iota>() ||
         op.is<op::Sort>() || op.is<op::TopK>() || op.is<op::Where>() || op.is<op::Cast>() ||
         op.is<op::MaxPool2dSelect>();
}

class HostCase {
 public:
  HostCase(const Case& c, DType dtype) : case_(c), built_(build_case(c, dtype)) {
    for (const auto& [name, tensor] : built_.feeds) operands_.push_back(tensor);
  }

  void check() {
    if (!built_.graph.symbols().empty()) return;
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

class BackendHostKernels : public ::testing::TestWithParam<OpKind> {};

TEST_P(BackendHostKernels, AgreeWithTheReference) {
  for (const Case& c : cases_for(GetParam())) {
    if (!c.rejects.empty()) continue;
    for (const DType dtype : AllDTypes) {
      if (!c.dtypes.has(dtype)) continue;
      SCOPED_TRACE(fmt::format("case '{}' in {}", c.name, name(dtype)));
      try {
        HostCase(c, dtype).check();
      } catch (const std::exception& e) {
        ADD_FAILURE() << e.what();
      }
    }
  }
}

std::vector<OpKind> kinds_with_kernels() {
  std::vector<OpKind> kinds;
  for (const OpDescriptor& d : all_ops()) {
    if (cpu::host_kernel(d.kind).run != nullptr) kinds.push_back(d.kind);
  }
  return kinds;
}

INSTANTIATE_TEST_SUITE_P(All, BackendHostKernels, ::testing::ValuesIn(kinds_with_kernels()),
                         [](const auto& op) {
                           return std::string(
                               all_ops()[static_cast<std::size_t>(op.param)].info->name);
                         });

}  // namespace
}  // namespace ricci::testing
