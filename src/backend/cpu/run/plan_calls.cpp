#include "backend/cpu/run/plan_calls.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>

#include "ricci/support/error.h"

#include "backend/cpu/kernels/vector_kernels.h"
#include "backend/cpu/run/host_call.h"
#include "backend/cpu/run/reference_call.h"
#include "backend/cpu/structured/attention.h"
#include "backend/cpu/structured/conv.h"
#include "backend/cpu/structured/fourier.h"
#include "backend/cpu/structured/pooling.h"
#include "backend/cpu/structured/strided_copy.h"
#include "support/align.h"
#include "type/small_dtype.h"

namespace ricci::cpu {
namespace {

constexpr std::size_t MostOperands = 8;

// Plans read row-major operands: others are copied into scratch first.
class RowMajorCall : public CallKernel {
 public:
  explicit RowMajorCall(const CallStep& step) {
    check_internal(step.operands.size() <= MostOperands, "a plan is given too many operands");
    for (const BufferView& v : step.operands) {
      Operand o{v.type.dtype, v.type.static_dims(), v.layout.strides, {}, -1};
      if (!loop::is_contiguous({0, o.strides}, o.dims)) {
        o.plain = loop::contiguous(o.dims).strides;
        o.at = copies_bytes_;
        copies_bytes_ += aligned(*v.type.numel() * size_of(v.type.dtype));
      }
      operands_.push_back(std::move(o));
    }
  }

  void run(const CallArguments& a) const final { run_with(a, {}); }
  void run_with(const CallArguments& a, const RunWith& attached) const final {
    RunWith inside;
    if (runs_before()) inside.before = attached.before;
    if (runs_after()) inside.after = attached.after;
    if (attached.before != inside.before) attached.before->run_all();
    run_plan(a, inside);
    if (attached.after != inside.after) attached.after->run_all();
  }
  [[nodiscard]] std::int64_t scratch_bytes() const final { return copies_bytes_ + plan_bytes(); }

 protected:
  /// `attached`: what is to be run from inside.
  virtual void run_plan(ThreadPool& pool, std::span<const std::byte* const> in,
                        std::span<std::byte* const> out, std::byte* scratch,
                        const RunWith& attached) const = 0;
  [[nodiscard]] virtual std::int64_t plan_bytes() const { return 0; }
  [[nodiscard]] virtual bool runs_before() const { return false; }
  [[nodiscard]] virtual bool runs_after() const { return false; }

 private:
  void run_plan(const CallArguments& a, const RunWith& attached) const {
    std::array<const std::byte*, MostOperands> in{};
    for (std::size_t k = 0; k < operands_.size(); ++k) {
      const Operand& o = operands_[k];
      in[k] = a.operands[k];
      if (o.at < 0) continue;
      std::byte* copy = a.scratch + o.at;
      copy_strided({copy, o.dtype, o.dims, o.plain}, {a.operands[k], o.dtype, o.dims, o.strides},
                   a.pool);
      in[k] = copy;
    }
    run_plan(a.pool, std::span(in).first(operands_.size()), a.results, a.scratch + copies_bytes_,
             attached);
  }

  struct Operand {
    DType dtype;
    StaticDims dims;
    std::vector<std::int64_t> strides;
    std::vector<std::int64_t> plain;
    std::int64_t at;  ///< of its copy in scratch; -1 without one
  };
  std::vector<Operand> operands_;
  std::int64_t copies_bytes_ = 0;
};

// The host kernel of a call on row-major arrays.
class PlainLoops {
 public:
  PlainLoops(const Program& program, const CallStep& step)
      : call_(step.call),
        name_(program.reference_of(step).name()),
        kernel_(host_kernel(step.call)) {
    for (const BufferView& v : step.operands) add(operands_, v);
    for (const BufferView& v : step.results) add(results_, v);
  }
  void run(ThreadPool& pool, std::span<const std::byte* const> in,
           std::span<std::byte* const> out) const {
    std::vector<ArrayView> from;
    std::vector<ArrayView> to;
    from.reserve(operands_.size());
    to.reserve(results_.size());
    for (std::size_t k = 0; k < operands_.size(); ++k) {
      from.push_back(operands_[k].at(const_cast<std::byte*>(in[k])));
    }
    for (std::size_t r = 0; r < results_.size(); ++r) to.push_back(results_[r].at(out[r]));
    // A rare way: its room is taken when it is needed.
    const std::int64_t bytes =
        kernel_.scratch == nullptr ? 0 : kernel_.scratch({call_, name_, from, to, pool});
    std::vector<std::byte> room(static_cast<std::size_t>(bytes + CacheLine));
    const auto start = reinterpret_cast<std::uintptr_t>(room.data());
    const auto shift = static_cast<std::size_t>(-start % CacheLine);
    kernel_.run({call_, name_, from, to, pool, 0,
                 std::span(room).subspan(shift, static_cast<std::size_t>(bytes))});
  }

 private:
  struct Shape {
    DType dtype;
    StaticDims dims;
    std::vector<std::int64_t> strides;
    [[nodiscard]] ArrayView at(std::byte* data) const { return {data, dtype, dims, strides}; }
  };
  static void add(std::vector<Shape>& to, const BufferView& v) {
    const StaticDims dims = v.type.static_dims();
    to.push_back({v.type.dtype, dims, loop::contiguous(dims).strides});
  }
  loop::Call call_;
  std::string name_;
  HostKernel kernel_;
  std::vector<Shape> operands_;
  std::vector<Shape> results_;
};

StaticDims dims_of(const BufferView& v) { return v.type.static_dims(); }

// Plans multiply padding by 0, which is nothing only while the other factor is a number.
template <class Bits>
bool all_finite(const std::byte* data, std::int64_t n, Bits exponent) {
  const Bits* x = reinterpret_cast<const Bits*>(data);
  return std::all_of(x, x + n, [&](Bits v) { return (v & exponent) != exponent; });
}

class ConvCall final : public RowMajorCall {
 public:
  ConvCall(const Program& program, const CallStep& step, const loop::Convolution& geometry,
           const AttachedKernels& attached)
      : RowMajorCall(step),
        plan_(geometry),
        plain_(program, step),
        dtype_(geometry.dtype),
        factors_(*step.operands[1].type.numel()),
        pads_(geometry.of != loop::Convolution::Of::ImageGradient &&
              (geometry.padding[0] != 0 || geometry.padding[1] != 0)) {
    const bool forward = geometry.of == loop::Convolution::Of::Image;
    const auto size_for = [&](const loop::Kernel* kernel, std::int64_t image) {
      const bool can = kernel != nullptr && plan_.tells_images() && has_whole_rows(*kernel, image);
      return can ? image : 0;
    };
    image_before_ = size_for(attached.before, forward ? geometry.x_image() : geometry.y_image());
    image_after_ = size_for(attached.after, forward ? geometry.y_image() : geometry.x_image());
  }
  [[nodiscard]] std::string_view how() const override { return "conv"; }
  [[nodiscard]] std::string_view how_where_not_finite() const override {
    return pads_ ? "native" : "";
  }

 private:
  void run_plan(ThreadPool& pool, std::span<const std::byte* const> in,
                std::span<std::byte* const> out, std::byte* scratch,
                const RunWith& attached) const override {
    const auto& [before, after] = attached;
    if (pads_ && !is_finite(in[1])) {
      if (before != nullptr) before->run_all();
      plain_.run(pool, in, out);
      if (after != nullptr) after->run_all();
      return;
    }
    plan_.run(pool, in[0], in[1], out[0], scratch,
              {on_images(before, image_before_), on_images(after, image_after_)});
  }
  static ImageHooks::Hook on_images(const Attached* attached, std::int64_t image) {
    if (attached == nullptr) return {};
    return [attached, image](std::int64_t first, std::int64_t last) {
      attached->run(first * image, last * image);
    };
  }
  [[nodiscard]] bool runs_before() const override { return image_before_ != 0; }
  [[nodiscard]] bool runs_after() const override { return image_after_ != 0; }
  [[nodiscard]] bool is_finite(const std::byte* data) const {
    switch (dtype_) {
      case DType::F64: return all_finite<std::uint64_t>(data, factors_, 0x7ff0000000000000);
      case DType::F16: return all_finite<std::uint16_t>(data, factors_, 0x7c00);
      case DType::BF16: return all_finite<std::uint16_t>(data, factors_, 0x7f80);
      default: return all_finite<std::uint32_t>(data, factors_, 0x7f800000);
    }
  }
  [[nodiscard]] std::int64_t plan_bytes() const override { return plan_.scratch_bytes(); }
  ConvPlan plan_;
  PlainLoops plain_;
  DType dtype_;
  std::int64_t factors_;  ///< elements of the operand that meets the padding
  bool pads_;
  // Elements of an image, when what is attached can run on images.
  std::int64_t image_before_ = 0;
  std::int64_t image_after_ = 0;
};

class PoolCall final : public RowMajorCall {
 public:
  PoolCall(const CallStep& step, const loop::Pooling& geometry)
      : RowMajorCall(step), geometry_(geometry) {}
  [[nodiscard]] std::string_view how() const override { return "pool"; }

 private:
  using Of = loop::Pooling::Of;
  void run_plan(ThreadPool& pool, std::span<const std::byte* const> in,
                std::span<std::byte* const> out, std::byte*, const RunWith&) const override {
    switch (geometry_.of) {
      case Of::Windows: return pool_forward(pool, geometry_, in[0], out[0]);
      case Of::ImageGradient: return max_pool_backward(pool, geometry_, in[0], in[1], out[0]);
      case Of::Selection: return max_pool_select(pool, geometry_, in[0], in[1], out[0]);
    }
  }
  [[nodiscard]] std::int64_t thread_bytes() const override {
    return geometry_.of == Of::ImageGradient ? max_pool_backward_thread_bytes(geometry_) : 0;
  }
  loop::Pooling geometry_;
};

// Plans multiply a weight of zero with whatever its key has: NaN where that is not finite, nothing
// for the reference. NaN in a result and such a number in an operand say that it may have happened;
// then the reference computes the results again. A weight is zero beside a NaN only where it is
// masked; and where an operand is NaN throughout, as all are when training has failed, so is the
// result, which is not worth waiting for.
class OddOperands {
 public:
  /// Looks at the first `count` operands.
  OddOperands(const Program& program, const CallStep& step, std::size_t count, const MaskKind& mask)
      : masked_(mask.kind != MaskKind::Kind::None) {
    CallStep plain = step;
    for (BufferView& v : plain.operands) v.layout = loop::contiguous(dims_of(v));
    for (std::size_t k = 0; k < count; ++k) operands_.push_back(*step.operands[k].type.numel());
    for (const BufferView& v : step.results) results_.push_back(*v.type.numel());
    careful_ = make_reference_call(program, plain);
  }
  [[nodiscard]] std::string_view how() const { return careful_->how(); }
  void repair(ThreadPool& pool, std::span<const std::byte* const> in,
              std::span<std::byte* const> out) const {
    if (!any(pool, out, results_, [](float x) { return std::isnan(x); })) return;
    if (!any(pool, in, operands_, [](float x) { return std::isinf(x); }) && !masks_nan(pool, in)) {
      return;
    }
    std::vector<std::byte*> operands;
    for (const std::byte* p : in) operands.push_back(const_cast<std::byte*>(p));
    careful_->run({operands, out, pool});
  }

 private:
  [[nodiscard]] bool masks_nan(ThreadPool& pool, std::span<const std::byte* const> in) const {
    if (!masked_) return false;
    if (!any(pool, in, operands_, [](float x) { return std::isnan(x); })) return false;
    for (std::size_t k = 0; k < operands_.size(); ++k) {
      const bool some_finite =
          any(pool, in.subspan(k, 1), {operands_[k]}, [](float x) { return std::isfinite(x); });
      if (!some_finite) return false;
    }
    return true;
  }
  // Whole blocks are looked at before one is asked, so that the loop is one of vectors.
  template <class Arrays, class F>
  static bool any(ThreadPool& pool, const Arrays& arrays, const std::vector<std::int64_t>& counts,
                  F&& is) {
    constexpr std::int64_t Block = 1 << 16;
    std::atomic<bool> found = false;
    for (std::size_t k = 0; k < counts.size() && k < arrays.size(); ++k) {
      const auto* x = reinterpret_cast<const float*>(arrays[k]);
      if (x == nullptr) continue;
      pool.run((counts[k] + Block - 1) / Block, [&](std::int64_t block) {
        int here = 0;
        const std::int64_t end = std::min((block + 1) * Block, counts[k]);
        for (std::int64_t i = block * Block; i < end; ++i) here |= is(x[i]) ? 1 : 0;
        if (here != 0) found.store(true, std::memory_order_relaxed);
      });
    }
    return found;
  }
  bool masked_;
  std::vector<std::int64_t> operands_;  // numbers of elements
  std::vector<std::int64_t> results_;
  std::unique_ptr<CallKernel> careful_;
};

class AttentionCall final : public RowMajorCall {
 public:
  AttentionCall(const Program& program, const CallStep& step, const loop::Attention& a)
      : RowMajorCall(step),
        role_(a),
        plan_(a, a.mask_operand < 0 ? DType::F32 : step.operands[at(a.mask_operand)].type.dtype),
        odd_(program, step, a.pass == loop::Pass::Forward ? 3 : 4, a.mask) {}
  [[nodiscard]] std::string_view how() const override { return "attention"; }
  [[nodiscard]] std::string_view how_where_not_finite() const override { return odd_.how(); }

 private:
  static std::size_t at(std::int64_t operand) { return static_cast<std::size_t>(operand); }

  void run_plan(ThreadPool& pool, std::span<const std::byte* const> in,
                std::span<std::byte* const> out, std::byte* scratch,
                const RunWith&) const override {
    const auto given = [&](std::int64_t k) { return k < 0 ? nullptr : in[at(k)]; };
    const auto f = [&](std::int64_t k) { return reinterpret_cast<const float*>(given(k)); };
    const auto to = [&](std::size_t r) {
      return r < out.size() ? reinterpret_cast<float*>(out[r]) : nullptr;
    };
    const AttentionOperands operands{f(0), f(1), f(2), given(role_.mask_operand)};
    if (role_.pass == loop::Pass::Forward) {
      plan_.forward(pool, operands, to(0), to(1), scratch);
    } else {
      plan_.backward(pool, operands, f(3), {f(role_.lse_operand), f(role_.mean_operand)},
                     {to(0), to(1), to(2), to(3)}, scratch);
    }
    odd_.repair(pool, in, out);
  }
  [[nodiscard]] std::int64_t plan_bytes() const override {
    return role_.pass == loop::Pass::Forward ? plan_.forward_scratch_bytes()
                                             : plan_.backward_scratch_bytes();
  }
  loop::Attention role_;
  AttentionPlan plan_;
  OddOperands odd_;
};

// Floats narrower than f32 are widened before and rounded after.
template <class T>
class FourierCall final : public RowMajorCall {
 public:
  FourierCall(const CallStep& step, const loop::FourierTransform& role,
              const AttachedKernels& attached)
      : RowMajorCall(step),
        plan_(role),
        from_(step.operands[0].type.dtype),
        to_(step.results[0].type.dtype),
        operands_(is_small_float(from_) ? *step.operands[0].type.numel() : 0),
        results_(is_small_float(to_) ? *step.results[0].type.numel() : 0) {
    const auto line_for = [&](const loop::Kernel* kernel, const BufferView& v) {
      if (kernel == nullptr || !plan_.tells_lines() || role.batch == 0) return std::int64_t{0};
      const std::int64_t line = *v.type.numel() / role.batch;
      return has_whole_rows(*kernel, line) ? line : 0;
    };
    if (operands_ == 0) line_before_ = line_for(attached.before, step.operands[0]);
    if (line_before_ != 0 && attached.passed_on) plan_.make_room_for_lines();
    if (results_ == 0) line_after_ = line_for(attached.after, step.results[0]);
  }
  [[nodiscard]] std::string_view how() const override { return "fourier"; }
  [[nodiscard]] std::int64_t thread_bytes() const override { return plan_.thread_bytes(); }

 private:
  void run_plan(ThreadPool& pool, std::span<const std::byte* const> in,
                std::span<std::byte* const> out, std::byte* scratch,
                const RunWith& attached) const override {
    std::byte* wide_in = scratch;
    std::byte* wide_out = wide_in + bytes_of(operands_);
    auto* room = reinterpret_cast<T*>(wide_out + bytes_of(results_));
    const T* x = reinterpret_cast<const T*>(operands_ > 0 ? wide_in : in[0]);
    T* y = reinterpret_cast<T*>(results_ > 0 ? wide_out : out[0]);
    if (operands_ > 0) widen(in[0], reinterpret_cast<float*>(wide_in));
    LineHooks hooks;
    if (const Attached* before = attached.before; before != nullptr) {
      hooks.before = [this, before](std::int64_t first, std::int64_t last, std::byte* lines) {
        return before->run_into(first * line_before_, last * line_before_, lines);
      };
    }
    if (const Attached* after = attached.after; after != nullptr) {
      hooks.done = [this, after](std::int64_t first, std::int64_t last) {
        after->run(first * line_after_, last * line_after_);
      };
    }
    plan_.run(pool, x, y, room, hooks);
    if (results_ > 0) narrow(reinterpret_cast<const float*>(wide_out), out[0]);
  }
  [[nodiscard]] bool runs_before() const override { return line_before_ != 0; }
  [[nodiscard]] bool runs_after() const override { return line_after_ != 0; }
  void widen(const std::byte* x, float* to) const {
    const VectorKernels& k = vector_kernels();
    const auto* from = reinterpret_cast<const std::uint16_t*>(x);
    (from_ == DType::F16 ? k.widen_f16 : k.widen_bf16)(from, to, operands_);
  }
  void narrow(const float* y, std::byte* out) const {
    const VectorKernels& k = vector_kernels();
    auto* to = reinterpret_cast<std::uint16_t*>(out);
    (to_ == DType::F16 ? k.narrow_f16 : k.narrow_bf16)(y, to, results_);
  }
  static std::int64_t bytes_of(std::int64_t floats) {
    return aligned(floats * static_cast<std::int64_t>(sizeof(float)));
  }
  [[nodiscard]] std::int64_t plan_bytes() const override {
    return bytes_of(operands_) + bytes_of(results_) +
           plan_.scratch_elements() * static_cast<std::int64_t>(sizeof(T));
  }
  FourierPlan<T> plan_;
  DType from_;
  DType to_;
  std::int64_t operands_;  ///< that are widened
  std::int64_t results_;   ///< that are rounded
  // Elements of a line, when what is attached can run on lines.
  std::int64_t line_before_ = 0;
  std::int64_t line_after_ = 0;
};

}  // namespace

std::unique_ptr<CallKernel> make_plan_call(const Program& program, const CallStep& step,
                                           const AttachedKernels& attached) {
  if (const auto* conv = std::get_if<loop::Convolution>(&step.call)) {
    return std::make_unique<ConvCall>(program, step, *conv, attached);
  }
  if (const auto* pool = std::get_if<loop::Pooling>(&step.call)) {
    return std::make_unique<PoolCall>(step, *pool);
  }
  if (const auto* fourier = std::get_if<loop::FourierTransform>(&step.call)) {
    const DType dtype = step.operands[0].type.dtype;
    if (dtype == DType::F64 || dtype == DType::C128) {
      return std::make_unique<FourierCall<double>>(step, *fourier, attached);
    }
    return std::make_unique<FourierCall<float>>(step, *fourier, attached);
  }
  const auto* attention = std::get_if<loop::Attention>(&step.call);
  if (attention != nullptr && step.operands[0].type.dtype == DType::F32) {
    return std::make_unique<AttentionCall>(program, step, *attention);
  }
  return nullptr;
}

}  // namespace ricci::cpu
