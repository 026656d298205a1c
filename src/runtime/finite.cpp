// The search for the op that makes the first non-finite value.
#include <cmath>
#include <complex>
#include <cstring>

#include <fmt/format.h>

#include "ricci/op/ops.h"

#include "runtime/observers.h"

namespace ricci::runtime {
namespace {

struct Found {
  bool nan = false;
  bool infinite = false;
  std::int64_t first = -1;  ///< element
};

template <class T>
double magnitude_like(T x) {
  if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
    const double re = static_cast<double>(x.real());
    const double im = static_cast<double>(x.imag());
    if (std::isnan(re) || std::isnan(im)) return std::nan("");
    return std::max(std::fabs(re), std::fabs(im));
  } else {
    return static_cast<double>(x);
  }
}

// `at(i)` is the place of element i; null where there is none.
template <class At>
Found look_at(DType dtype, std::int64_t count, At&& at) {
  Found found;
  if (!is_float(dtype) && !is_complex(dtype)) return found;
  with_element_type(dtype, [&]<class T>() {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::byte* place = at(i);
      if (place == nullptr) continue;
      T x;
      std::memcpy(&x, place, sizeof(T));
      const double m = magnitude_like(x);
      if (std::isfinite(m)) continue;
      if (found.first < 0) found.first = i;
      (std::isnan(m) ? found.nan : found.infinite) = true;
    }
  });
  return found;
}

Found look_at(const Buffer& buffer, const std::byte* data) {
  if (data == nullptr) return {};
  const std::int64_t size = size_of(buffer.dtype);
  return look_at(buffer.dtype, buffer.elements, [&](std::int64_t i) { return data + i * size; });
}

// Only the elements a call sees: the rest of the buffer may be anything.
Found look_at(const BufferView& view, const std::byte* data) {
  const StaticDims dims = view.type.static_dims();
  const std::int64_t size = size_of(view.type.dtype);
  return look_at(view.type.dtype, *view.type.numel(), [&](std::int64_t i) {
    std::int64_t place = view.layout.offset;
    for (std::size_t axis = dims.size(); axis-- > 0;) {
      place += i % dims[axis] * view.layout.strides[axis];
      i /= dims[axis];
    }
    return data + place * size;
  });
}

void add(Found& to, const Found& more) {
  to.nan = to.nan || more.nan;
  to.infinite = to.infinite || more.infinite;
  if (to.first < 0) to.first = more.first;
}

Found look_at(const loop::Number& number) {
  const double m = std::visit([](auto x) { return magnitude_like(x); }, number);
  return {.nan = std::isnan(m), .infinite = std::isinf(m)};
}

// The elements of an argument that an access touches. One that depends on indices may touch any.
Found look_at(const loop::Kernel& kernel, const loop::Access& access, bool per_element,
              const Buffer& buffer, const std::byte* data) {
  if (!access.terms.empty()) return look_at(buffer, data);
  const std::size_t axes = per_element ? kernel.extents.size() : kernel.outer;
  std::int64_t count = 1;
  for (std::size_t axis = 0; axis < axes; ++axis) count *= kernel.extents[axis];
  const std::int64_t size = size_of(buffer.dtype);
  const auto counted = [&](std::int64_t from, const std::vector<std::int64_t>& strides,
                           std::int64_t i) {
    for (std::size_t axis = axes; axis-- > 0;) {
      from += i % kernel.extents[axis] * strides[axis];
      i /= kernel.extents[axis];
    }
    return from;
  };
  return look_at(buffer.dtype, count, [&](std::int64_t i) -> const std::byte* {
    for (const loop::Guard& g : access.guards) {
      const std::int64_t at = counted(g.offset, g.strides, i);
      if (at < 0 || at >= g.limit) return nullptr;
    }
    return data + counted(access.offset, access.strides, i) * size;
  });
}

// Looks at what the accesses of a launch touch.
class Touched {
 public:
  Touched(const Program& program, const Launch& step, const device::Buffers& buffers)
      : program_(program), kernel_(program.kernels[step.kernel]), step_(step), buffers_(buffers) {}

  /// But for what is in buffer `made`: it is not there yet.
  [[nodiscard]] Found read(BufferId made = -1) const {
    Found found;
    for (const loop::Instr& i : kernel_.code) {
      if (i.code == loop::Code::Load && buffer_of(i.access) != made)
        add(found, at(i.access, i.per_element));
      const bool has_number = i.code == loop::Code::Constant || !i.access.guards.empty();
      if (has_number) add(found, look_at(i.number));
    }
    return found;
  }

  [[nodiscard]] Found written() const {
    Found found;
    for (const loop::Stage& stage : kernel_.stages) {
      for (const loop::Store& s : stage.stores) add(found, at(s.access, stage.per_element));
    }
    for (const loop::Accumulator& a : kernel_.accumulators) {
      if (a.running) continue;
      const BufferId b = step_.buffers[static_cast<std::size_t>(a.argument)];
      if (b >= 0) add(found, look_at(buffer(b), data(b)));
    }
    return found;
  }

 private:
  [[nodiscard]] BufferId buffer_of(const loop::Access& access) const {
    return step_.buffers[static_cast<std::size_t>(access.argument)];
  }
  [[nodiscard]] Found at(const loop::Access& access, bool per_element) const {
    const BufferId b = buffer_of(access);
    if (b < 0) return {};
    return look_at(kernel_, access, per_element, buffer(b), data(b));
  }
  [[nodiscard]] const Buffer& buffer(BufferId b) const {
    return program_.buffers[static_cast<std::size_t>(b)];
  }
  [[nodiscard]] const std::byte* data(BufferId b) const { return buffers_.on_host(b); }

  const Program& program_;
  const loop::Kernel& kernel_;
  const Launch& step_;
  const device::Buffers& buffers_;
};

Found look_at(const std::vector<BufferView>& views, const device::Buffers& buffers) {
  Found found;
  for (const BufferView& v : views) {
    if (v.buffer >= 0) add(found, look_at(v, buffers.on_host(v.buffer)));
  }
  return found;
}

// The operands of a call but for what its own step makes.
std::vector<BufferView> there_at_start(const CallStep& call) {
  return {call.operands.begin() + (call.before ? 1 : 0), call.operands.end()};
}

// What computes for itself in a step, and what it reads or has written: each of several launches
// side by side, or all of it.
struct Part {
  const Origin* from = nullptr;
  Found found;
};

std::vector<Part> look_at(const Program& program, const Step& step, const device::Buffers& buffers,
                          bool written) {
  std::vector<Part> parts;
  if (const auto* k = std::get_if<KernelStep>(&step.what)) {
    for (const Launch& l : k->launches) {
      const Touched touched(program, l, buffers);
      parts.push_back({&l.from, written ? touched.written() : touched.read()});
    }
  } else if (const auto* c = std::get_if<CallStep>(&step.what)) {
    Found found = look_at(written ? c->results : there_at_start(*c), buffers);
    if (c->before) {
      const Touched touched(program, *c->before, buffers);
      add(found, written ? touched.written() : touched.read());
    }
    if (c->after) {
      const Touched touched(program, *c->after, buffers);
      add(found, written ? touched.written() : touched.read(c->results[0].buffer));
    }
    parts.push_back({&step, found});
  } else {
    const auto look = [&](const auto& s) {
      parts.push_back({&step, look_at(written ? s.results : s.operands, buffers)});
    };
    const auto* loop = std::get_if<LoopStep>(&step.what);
    loop != nullptr ? look(*loop) : look(std::get<ControlStep>(step.what));
  }
  return parts;
}

}  // namespace

// A result may take the place of an operand, so operands are looked at first.
void FiniteObserver::before(const Program& program, std::size_t step,
                            const device::Buffers& buffers) {
  const Step& s = program.steps[step];
  Around around{s.where.known() ? fmt::format("{} at {}", s.label, s.where.to_string()) : s.label,
                {}};
  for (const Part& p : look_at(program, s, buffers, false)) {
    around.operands.push_back({p.found.nan, p.found.infinite});
  }
  around_.push_back(std::move(around));
}

void FiniteObserver::after(const Program& program, std::size_t step,
                           const device::Buffers& buffers) {
  const Around around = std::move(around_.back());
  around_.pop_back();
  const std::vector<Part> parts = look_at(program, program.steps[step], buffers, true);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Found& out = parts[i].found;
    judge(*parts[i].from, around.operands[i], {out.nan, out.infinite}, out.first);
  }
}

// Infinities are often meant (masks): they are reported where they arise, not where they go.
void FiniteObserver::judge(const Origin& made_by, const Held& in, const Held& out,
                           std::int64_t element) const {
  const bool nan = out.nan && !in.nan;
  const bool infinity = out.infinite && !in.infinite && !in.nan;
  if (!nan && !infinity) return;
  Diagnostic d{ErrorCode::Refused,
               "not_finite",
               fmt::format("{} makes {} (element {} of its result)", made_by.label,
                           nan ? "a NaN" : "an infinity", element),
               made_by.where,
               {},
               "RunOptions::check_finite asked to stop here"};
  if (in.infinite) d.notes.emplace_back("an operand is infinite");
  for (const Around& outer : around_) d.notes.push_back("inside " + outer.what);
  throw UserError(std::move(d));
}

void FiniteObserver::check_inputs(const Program& program, device::Memory& memory,
                                  std::span<const std::byte* const> inputs,
                                  const std::vector<std::string>& names) {
  std::vector<std::byte> copy;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const Buffer& b = program.buffers[static_cast<std::size_t>(program.inputs[k])];
    const std::byte* at = inputs[k];
    if (!memory.is_host()) {
      copy.resize(static_cast<std::size_t>(b.bytes()));
      memory.copy_out(copy.data(), at, b.bytes());
      at = copy.data();
    }
    const Found found = look_at(b, at);
    if (!found.nan) continue;
    throw UserError(
        Diagnostic{ErrorCode::Refused,
                   "not_finite",
                   fmt::format("'{}' holds a NaN already (element {})", names[k], found.first),
                   {},
                   {},
                   "RunOptions::check_finite asked to stop here"});
  }
}

}  // namespace ricci::runtime
