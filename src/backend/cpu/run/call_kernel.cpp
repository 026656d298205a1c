#include "backend/cpu/run/call_kernel.h"

#include <array>
#include <cstring>

#include "backend/cpu/run/host_call.h"
#include "backend/cpu/run/matmul_call.h"
#include "backend/cpu/run/plan_calls.h"
#include "backend/cpu/run/reference_call.h"
#include "device/reference_call.h"

namespace ricci::cpu {
namespace {

// What a call is given, in place: a run allocates nothing unless its op has many operands.
class Views {
 public:
  struct Shape {
    explicit Shape(const BufferView& v)
        : dtype(v.type.dtype), dims(v.type.static_dims()), strides(v.layout.strides) {}
    DType dtype;
    StaticDims dims;
    std::vector<std::int64_t> strides;
  };

  /// Without data: null pointers.
  Views(const std::vector<Shape>& shapes, std::span<std::byte* const> data)
      : count_(shapes.size()) {
    if (count_ > few_.size()) many_.resize(count_);
    const std::span<ArrayView> views = many_.empty() ? std::span(few_) : std::span(many_);
    for (std::size_t k = 0; k < count_; ++k) {
      views[k] = {data.empty() ? nullptr : data[k], shapes[k].dtype, shapes[k].dims,
                  shapes[k].strides};
    }
  }
  operator std::span<const ArrayView>() const {  // NOLINT: it is one
    return many_.empty() ? std::span(few_).first(count_) : std::span(many_);
  }

 private:
  std::size_t count_;
  std::array<ArrayView, 8> few_;
  std::vector<ArrayView> many_;
};

// A C++ kernel of our own.
class NativeCall final : public CallKernel {
 public:
  NativeCall(const Program& program, const CallStep& step, HostKernel kernel)
      : call_(step.call), name_(program.reference_of(step).name()), kernel_(kernel) {
    for (const BufferView& v : step.operands) operands_.emplace_back(v);
    for (const BufferView& v : step.results) results_.emplace_back(v);
    if (kernel_.scratch == nullptr) return;
    ThreadPool none(1);
    const Views in(operands_, {});
    const Views out(results_, {});
    scratch_bytes_ = kernel_.scratch({call_, name_, in, out, none});
    if (kernel_.thread_bytes == nullptr) return;
    thread_bytes_ = kernel_.thread_bytes({call_, name_, in, out, none});
  }

  void run(const CallArguments& a) const override {
    const Views in(operands_, a.operands);
    const Views out(results_, a.results);
    kernel_.run({call_,
                 name_,
                 in,
                 out,
                 a.pool,
                 a.seed,
                 {a.scratch, static_cast<std::size_t>(scratch_bytes_)}});
  }
  [[nodiscard]] std::int64_t scratch_bytes() const override { return scratch_bytes_; }
  [[nodiscard]] std::int64_t thread_bytes() const override { return thread_bytes_; }
  [[nodiscard]] std::string_view how() const override { return "native"; }

 private:
  loop::Call call_;
  std::string name_;
  HostKernel kernel_;
  std::vector<Views::Shape> operands_;
  std::vector<Views::Shape> results_;
  std::int64_t scratch_bytes_ = 0;
  std::int64_t thread_bytes_ = 0;
};

// Of a call whose results are all empty. A size beside the zero may be as large as it likes: a
// kernel would walk along it.
class EmptyCallKernel final : public CallKernel {
 public:
  void run(const CallArguments&) const override {}
  [[nodiscard]] std::string_view how() const override { return "native"; }
};

}  // namespace

std::unique_ptr<CallKernel> make_call_kernel(const Program& program, const CallStep& step,
                                             const AttachedKernels& attached,
                                             const SameBuffers& same) {
  if (device::gives_nothing(program, step)) return std::make_unique<EmptyCallKernel>();
  if (const auto* product = std::get_if<loop::MatrixProduct>(&step.call)) {
    return make_matmul_call(*product, step, attached, same);
  }
  if (auto plan = make_plan_call(program, step, attached)) return plan;
  const HostKernel host = host_kernel(step.call);
  if (host.run != nullptr) return std::make_unique<NativeCall>(program, step, host);
  return make_reference_call(program, step);
}

}  // namespace ricci::cpu
