#include "backend/cpu/call_kernel.h"

#include <cstring>

#include "ricci/op/ops.h"
#include "ricci/rule/eval.h"

#include "backend/cpu/executable.h"
#include "backend/cpu/host_call.h"
#include "backend/cpu/matmul_call.h"
#include "backend/cpu/plan_calls.h"
#include "backend/cpu/reference_call.h"

namespace ricci::cpu {
namespace {

// A C++ kernel of our own.
class HostCallKernel final : public CallKernel {
 public:
  HostCallKernel(const CallStep& step, HostKernel kernel) : op_(step.op), kernel_(kernel) {
    for (const BufferView& v : step.operands) operands_.emplace_back(v);
    for (const BufferView& v : step.results) results_.emplace_back(v);
    if (kernel_.scratch == nullptr) return;
    ThreadPool none(1);
    const std::vector<ArrayView> in = views(operands_, {});
    const std::vector<ArrayView> out = views(results_, {});
    scratch_bytes_ = kernel_.scratch({op_, in, out, none});
    if (kernel_.thread_bytes != nullptr) thread_bytes_ = kernel_.thread_bytes({op_, in, out, none});
  }

  void run(const CallArguments& a) const override {
    const std::vector<ArrayView> in = views(operands_, a.operands);
    const std::vector<ArrayView> out = views(results_, a.results);
    kernel_.run(
        {op_, in, out, a.pool, a.seed, {a.scratch, static_cast<std::size_t>(scratch_bytes_)}});
  }
  [[nodiscard]] std::int64_t scratch_bytes() const override { return scratch_bytes_; }
  [[nodiscard]] std::int64_t thread_bytes() const override { return thread_bytes_; }
  [[nodiscard]] std::string_view how() const override { return "host"; }

 private:
  struct Shape {
    explicit Shape(const BufferView& v)
        : dtype(v.type.dtype), dims(v.type.static_dims()), strides(v.layout.strides) {}
    DType dtype;
    StaticDims dims;
    std::vector<std::int64_t> strides;
  };

  static std::vector<ArrayView> views(const std::vector<Shape>& shapes,
                                      std::span<std::byte* const> data) {
    std::vector<ArrayView> out;
    out.reserve(shapes.size());
    for (std::size_t k = 0; k < shapes.size(); ++k) {
      out.push_back(
          {data.empty() ? nullptr : data[k], shapes[k].dtype, shapes[k].dims, shapes[k].strides});
    }
    return out;
  }

  Op op_;
  HostKernel kernel_;
  std::vector<Shape> operands_;
  std::vector<Shape> results_;
  std::int64_t scratch_bytes_ = 0;
  std::int64_t thread_bytes_ = 0;
};

}  // namespace

bool claims(const Graph& graph, const Node& node) {
  // Backward sweeps of loops are loops themselves once they are written out.
  if (!node.bodies.empty()) return false;
  return has_plan(graph, node) || host_kernel(node.op.kind()).run != nullptr;
}

bool has_kernel(const Graph& graph, const Node& node) {
  return node.op.is<op::Matmul>() || has_plan(graph, node) ||
         host_kernel(node.op.kind()).run != nullptr;
}

std::unique_ptr<CallKernel> make_call_kernel(const CallStep& step, const Registry& registry,
                                             const AttachedKernels& attached) {
  if (step.op.is<op::Matmul>()) return make_matmul_call(step, attached);
  if (auto plan = make_plan_call(step, attached)) return plan;
  const HostKernel host = host_kernel(step.op.kind());
  if (host.run != nullptr) return std::make_unique<HostCallKernel>(step, host);
  return make_reference_call(step, registry);
}

}  // namespace ricci::cpu
