#include "backend/cuda/structured/epilogue.h"

#include <algorithm>

#include "schedule/step_buffers.h"

namespace ricci::cuda {
namespace {

using loop::Code;
using loop::Instr;

// What a register of the kernel holds, as far as it is known here.
struct Summed {
  bool product = false;
  std::int32_t bias = -1;
  std::int64_t bias_offset = 0;
  std::int32_t added = -1;
  Epilogue::Function function = Epilogue::Function::None;
};

class Reader {
 public:
  Reader(const loop::Kernel& kernel, std::int32_t product, std::int64_t columns)
      : kernel_(kernel),
        product_(product),
        columns_(columns),
        in_order_(loop::contiguous(kernel.extents).strides) {}

  [[nodiscard]] std::optional<Epilogue> run() {
    if (kernel_.stages.size() != 1 || !kernel_.accumulators.empty() ||
        !kernel_.reductions.empty() || !kernel_.stages[0].per_element) {
      return std::nullopt;
    }
    const std::vector<loop::Store>& stores = kernel_.stages[0].stores;
    if (stores.empty() || stores.size() > 2) return std::nullopt;
    // Of two the one of f is the result, and the other what f is applied to.
    std::optional<Summed> first = held(stores[0].value);
    std::optional<Summed> second = stores.size() == 2 ? held(stores[1].value) : std::nullopt;
    if (!first || (stores.size() == 2 && !second)) return std::nullopt;
    std::size_t result = 0;
    if (second) {
      result = first->function == Epilogue::Function::None ? 1 : 0;
      if (result == 1) std::swap(*first, *second);
      const bool same_sum = first->bias == second->bias && first->added == second->added &&
                            first->bias_offset == second->bias_offset;
      // Of what relu is applied to the library keeps the signs alone.
      if (!same_sum || first->function != Epilogue::Function::Gelu ||
          second->function != Epilogue::Function::None) {
        return std::nullopt;
      }
    }
    const auto argument_of = [&](std::size_t s) { return stores[s].access.argument; };
    for (const loop::Store& store : stores) {
      if (!is_in_order(store.access)) return std::nullopt;
      if (dtype_of(store.access.argument) != dtype_of(argument_of(result))) return std::nullopt;
    }
    const DType dtype = dtype_of(argument_of(result));
    if (!first->product || !all_are(dtype, *first)) return std::nullopt;
    return Epilogue{.function = first->function,
                    .dtype = dtype,
                    .bias = first->bias,
                    .bias_offset = first->bias_offset,
                    .added = first->added,
                    .inner = second ? argument_of(1 - result) : -1,
                    .result = argument_of(result)};
  }

 private:
  [[nodiscard]] DType dtype_of(std::int32_t argument) const {
    return kernel_.arguments[static_cast<std::size_t>(argument)].dtype;
  }
  [[nodiscard]] bool is_in_order(const loop::Access& a) const {
    return a.offset == 0 && a.terms.empty() && a.guards.empty() && a.strides == in_order_;
  }
  // One number for each column, whatever the row.
  [[nodiscard]] bool is_by_column(const loop::Access& a) const {
    if (!a.terms.empty() || !a.guards.empty() || a.offset < 0 || a.strides.empty()) return false;
    if (kernel_.extents.back() != columns_ || a.strides.back() != 1) return false;
    return std::ranges::all_of(a.strides.begin(), a.strides.end() - 1,
                               [](std::int64_t s) { return s == 0; });
  }
  // Sums are of one dtype; what is wider than the product is f32, in which it is summed anyway.
  [[nodiscard]] bool all_are(DType dtype, const Summed& h) const {
    const DType product = dtype_of(product_);
    if (product != dtype && dtype != DType::F32) return false;
    return (h.bias < 0 || dtype_of(h.bias) == dtype) && (h.added < 0 || dtype_of(h.added) == dtype);
  }

  [[nodiscard]] std::optional<Summed> held(loop::Reg reg) const {
    const Instr& i = kernel_.code[static_cast<std::size_t>(reg)];
    switch (i.code) {
      case Code::Load: return loaded(i);
      case Code::Copy: return held(i.in[0]);
      case Code::Cast: return widened(i);
      case Code::Binary:
        return i.binary() == BinaryKind::Add ? sum(held(i.in[0]), held(i.in[1])) : std::nullopt;
      case Code::Unary: return applied(i);
      default: return std::nullopt;
    }
  }

  [[nodiscard]] std::optional<Summed> loaded(const Instr& i) const {
    const loop::Access& a = i.access;
    if (a.argument == product_) {
      if (!is_in_order(a)) return std::nullopt;
      return Summed{.product = true};
    }
    if (is_by_column(a)) return Summed{.bias = a.argument, .bias_offset = a.offset};
    if (is_in_order(a)) return Summed{.added = a.argument};
    return std::nullopt;
  }

  // The product itself in f32: the library does not round it before.
  [[nodiscard]] std::optional<Summed> widened(const Instr& i) const {
    const Instr& from = kernel_.code[static_cast<std::size_t>(i.in[0])];
    const bool is_product = from.code == Code::Load && from.access.argument == product_;
    if (!is_product || i.dtype != DType::F32 || !is_float(from.dtype)) return std::nullopt;
    return loaded(from);
  }

  [[nodiscard]] static std::optional<Summed> sum(const std::optional<Summed>& a,
                                                 const std::optional<Summed>& b) {
    if (!a || !b) return std::nullopt;
    const bool plain =
        a->function == Epilogue::Function::None && b->function == Epilogue::Function::None;
    const bool both = (a->product && b->product) || (a->bias >= 0 && b->bias >= 0) ||
                      (a->added >= 0 && b->added >= 0);
    if (!plain || both) return std::nullopt;
    const Summed& has_bias = a->bias >= 0 ? *a : *b;
    return Summed{.product = a->product || b->product,
                  .bias = has_bias.bias,
                  .bias_offset = has_bias.bias_offset,
                  .added = std::max(a->added, b->added)};
  }

  [[nodiscard]] std::optional<Summed> applied(const Instr& i) const {
    std::optional<Summed> of = held(i.in[0]);
    if (!of || of->function != Epilogue::Function::None) return std::nullopt;
    if (i.unary() == UnaryKind::Relu) {
      of->function = Epilogue::Function::Relu;
    } else if (i.unary() == UnaryKind::GeluApprox) {
      of->function = Epilogue::Function::Gelu;
    } else {
      return std::nullopt;
    }
    return of;
  }

  const loop::Kernel& kernel_;
  std::int32_t product_;
  std::int64_t columns_;
  std::vector<std::int64_t> in_order_;
};

// Does anything but the kernel behind the call read the product, which then has to be stored?
bool is_read_elsewhere(const Program& program, const CallStep& call, BufferId product) {
  if (program.buffers[static_cast<std::size_t>(product)].role != Buffer::Role::Temporary) {
    return true;
  }
  for (const Step& step : program.steps) {
    if (std::get_if<CallStep>(&step.what) == &call) continue;
    bool reads = false;
    schedule::for_uses(program, step,
                       [&](BufferId b, bool written) { reads |= b == product && !written; });
    if (reads) return true;
  }
  return false;
}

}  // namespace

std::optional<Epilogue> epilogue_of(const Program& program, const CallStep& call) {
  const auto* product = std::get_if<loop::MatrixProduct>(&call.call);
  if (product == nullptr || !call.after) return std::nullopt;
  const loop::Kernel& kernel = program.kernels[call.after->kernel];
  const BufferId made = call.results[0].buffer;
  std::int32_t read = -1;
  bool is_overwritten = false;
  for (std::size_t a = 0; a < kernel.arguments.size(); ++a) {
    if (call.after->buffers[a] != made) continue;
    if (kernel.arguments[a].role == loop::ArgumentRole::Out) {
      is_overwritten = true;
    } else if (read >= 0) {
      return std::nullopt;
    } else {
      read = static_cast<std::int32_t>(a);
    }
  }
  if (read < 0) return std::nullopt;
  if (!is_overwritten && is_read_elsewhere(program, call, made)) return std::nullopt;
  return Reader(kernel, read, product->columns).run();
}

std::string words_for(const Epilogue& e) {
  std::string words;
  const auto add = [&](bool has, const char* word) {
    if (has) words += (words.empty() ? "" : " ") + std::string(word);
  };
  add(e.bias >= 0, "bias");
  add(e.added >= 0, "add");
  add(e.function == Epilogue::Function::Relu, "relu");
  add(e.function == Epilogue::Function::Gelu, "gelu");
  return words;
}

}  // namespace ricci::cuda
