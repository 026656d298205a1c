#include "backend/lir/kernel.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "ricci/support/error.h"
#include "ricci/support/stop.h"

#include "backend/lir/number.h"
#include "loop/cut.h"
#include "loop/of_nothing.h"
#include "rule/draws.h"

namespace ricci::lir {
namespace {

using loop::Access;
using loop::Code;
using loop::Instr;
using loop::Reg;
using loop::Stage;

constexpr std::byte Unwritten{0xFF};  // a NaN, in any float

// One run of a kernel.
class KernelRun {
 public:
  KernelRun(const loop::Kernel& kernel, std::span<const KernelArgument> arguments)
      : kernel_(kernel),
        arguments_(arguments.begin(), arguments.end()),
        locals_(arguments.size()),
        index_(kernel.extents.size(), 0),
        values_(kernel.code.size()),
        reduced_(kernel.reductions.size()),
        accumulated_(kernel.accumulators.size()) {
    for (std::size_t a = 0; a < arguments_.size(); ++a) {
      const loop::Argument& argument = kernel.arguments[a];
      if (argument.role != loop::ArgumentRole::Local) continue;
      locals_[a].assign(at(argument.elements * size_of(argument.dtype)), Unwritten);
      arguments_[a] = {locals_[a].data(), static_cast<std::int64_t>(locals_[a].size())};
    }
  }

  void run() {
    if (kernel_.accumulators.empty()) {
      for (std::int64_t row = 0; row < kernel_.rows(); ++row) run_row(row, 0);
      return;
    }
    for (std::int64_t row = 0; row < kernel_.kept_rows(); ++row) {
      for (std::int64_t chunk = 0; chunk < kernel_.chunks; ++chunk) run_chunk(row, chunk);
    }
  }

 private:
  // Rows that are combined to one, and what they give.
  void run_chunk(std::int64_t kept_row, std::int64_t chunk) {
    for (std::size_t n = 0; n < accumulated_.size(); ++n) {
      const loop::Accumulator& acc = kernel_.accumulators[n];
      accumulated_[n].assign(at(length_of(acc)), loop::reduction_of_nothing(acc.kind, acc.dtype));
    }
    const auto [first, last] = loop::chunk_rows(kernel_, chunk);
    for (std::int64_t row = first; row < last; ++row) run_row(kept_row, row);
    const std::int64_t slot = kept_row * kernel_.chunks + chunk;
    for (std::size_t n = 0; n < accumulated_.size(); ++n) {
      const loop::Accumulator& acc = kernel_.accumulators[n];
      if (acc.running) continue;
      for (std::int64_t i = 0; i < length_of(acc); ++i) {
        store_at(acc.argument, slot * length_of(acc) + i, accumulated_[n][at(i)]);
      }
    }
  }

  [[nodiscard]] std::int64_t length_of(const loop::Accumulator& acc) const {
    return acc.per_element ? kernel_.row_elements() : 1;
  }

  void run_row(std::int64_t kept_row, std::int64_t accumulated_row) {
    throw_if_stopped();
    set_index(kept_row, 0, kernel_.kept);
    set_index(accumulated_row, kernel_.kept, kernel_.outer);
    std::ranges::fill(values_, std::nullopt);
    for (const Stage& stage : kernel_.stages) {
      for (const std::int32_t m : stage.reductions) {
        const loop::Reduction& red = kernel_.reductions[at(m)];
        reduced_[at(m)] = loop::reduction_of_nothing(red.kind, red.dtype);
      }
      if (stage.per_element) {
        for (std::int64_t e = 0; e < kernel_.row_elements(); ++e) run_once(stage, e);
      } else {
        run_once(stage, 0);
      }
      for (const std::int32_t m : stage.reductions) {
        Number& sum = reduced_[at(m)];
        sum = as_stored(kernel_.reductions[at(m)].dtype, sum);
      }
      forget_elements(stage);
    }
  }

  // A stage for one element of the row.
  void run_once(const Stage& stage, std::int64_t element) {
    set_index(element, kernel_.outer, kernel_.extents.size());
    forget_elements(stage);
    for (const Reg r : stage.code) {
      const Instr& i = kernel_.code[at(r)];
      values_[at(r)] = i.code == Code::Running ? run_on(i, element) : compute(i);
    }
    for (const loop::Store& s : stage.stores) {
      store_at(s.access.argument, place_of(s.access), value(s.value));
    }
    for (const std::int32_t n : stage.accumulators) {
      const loop::Accumulator& acc = kernel_.accumulators[at(n)];
      Number& so_far = accumulated_[at(n)][at(acc.per_element ? element : 0)];
      so_far = reduced_with(acc.kind, acc.dtype, so_far, value(acc.value));
    }
    for (const std::int32_t m : stage.reductions) {
      const loop::Reduction& red = kernel_.reductions[at(m)];
      reduced_[at(m)] = reduced_with(red.kind, red.dtype, reduced_[at(m)], value(red.value));
    }
  }

  // The total of an element's column.
  [[nodiscard]] Number run_on(const Instr& i, std::int64_t element) {
    const loop::Accumulator& acc = kernel_.accumulators[at(i.reduction)];
    Number& total = accumulated_[at(i.reduction)][at(element)];
    const Number before = total;
    total = reduced_with(acc.kind, acc.dtype, before, value(i.in[0]));
    return as_stored(i.dtype, acc.exclusive ? before : total);
  }

  // What is computed for an element is there for that element alone, and in its own stage.
  void forget_elements(const Stage& stage) {
    for (const Reg r : stage.code) {
      if (kernel_.code[at(r)].per_element) values_[at(r)].reset();
    }
  }

  // A number as the indices of axes [from, to), the last one counting fastest.
  void set_index(std::int64_t number, std::size_t from, std::size_t to) {
    for (std::size_t a = to; a-- > from;) {
      const std::int64_t extent = std::max<std::int64_t>(kernel_.extents[a], 1);
      index_[a] = number % extent;
      number /= extent;
    }
  }

  [[nodiscard]] Number compute(const Instr& i) const {
    const auto in = [&](std::size_t k) -> const Number& { return value(i.in[k]); };
    const auto dtype = [&] { return kernel_.code[at(i.in[0])].dtype; };
    switch (i.code) {
      case Code::Constant: return as_stored(i.dtype, i.number);
      case Code::Index: return as_stored(i.dtype, place_of(i.access));
      case Code::Load:
        if (!holds(i.access)) return as_stored(i.dtype, i.number);
        return load_at(i.access.argument, place_of(i.access));
      case Code::Copy: return in(0);
      case Code::Unary: return as_stored(i.dtype, unary(i.unary(), dtype(), in(0)));
      case Code::Binary:
        if (loop::is_partial(i)) check_numbers(i);
        return as_stored(i.dtype, binary(i.binary(), dtype(), in(0), in(1)));
      case Code::Compare: return truth(compare(i.compare(), dtype(), in(0), in(1)));
      case Code::Select: return is_nonzero(in(0)) ? in(1) : in(2);
      case Code::Cast: return as_stored(i.dtype, in(0));
      case Code::Reduced: return reduced_[at(i.reduction)];
      case Code::Running: break;  // see run_on
      case Code::Random: return as_stored(i.dtype, draw(i));
    }
    throw InternalError("an instruction of no known kind");
  }

  [[nodiscard]] Number draw(const Instr& i) const {
    const auto whole = [&](Reg r) {
      return static_cast<std::uint64_t>(std::get<std::int64_t>(as_stored(DType::I64, value(r))));
    };
    auto key = static_cast<std::uint64_t>(std::get<std::int64_t>(i.number));
    if (i.in[1] != loop::NoReg) key += whole(i.in[1]);
    const PhiloxStream stream(whole(i.in[0]), key);
    const auto element = static_cast<std::uint64_t>(place_of(i.access));
    switch (i.random()) {
      case loop::RandomKind::Bits: return static_cast<std::int64_t>(stream.word(element));
      case loop::RandomKind::Uniform:
        return rule::draw_uniform(stream, i.dtype, element, i.range[0], i.range[1]);
      case loop::RandomKind::Normal:
        return rule::draw_normal(stream, i.dtype, element, i.range[0], i.range[1]);
    }
    throw InternalError("random numbers of no known kind");
  }

  void check_numbers(const Instr& i) const {
    const std::int64_t b = std::get<std::int64_t>(value(i.in[1]));
    const loop::FaultKind kind = loop::fault_of(i);
    const bool good = kind == loop::FaultKind::Exponent ? b >= 0 : b != 0;
    if (!good) throw device::KernelFault{kind, b, 0};
  }

  [[nodiscard]] const Number& value(Reg r) const {
    const std::optional<Number>& v = values_[at(r)];
    check_internal(v.has_value(), "a kernel reads a value that is not there");
    return *v;
  }

  // Is there a place at all?
  [[nodiscard]] bool holds(const Access& access) const {
    return std::ranges::all_of(access.guards, [&](const loop::Guard& g) {
      std::int64_t at = g.offset;
      for (std::size_t a = 0; a < index_.size(); ++a) at += g.strides[a] * index_[a];
      return 0 <= at && at < g.limit;
    });
  }

  // In elements of the argument.
  [[nodiscard]] std::int64_t place_of(const Access& access) const {
    std::int64_t place = access.offset;
    for (std::size_t a = 0; a < index_.size(); ++a) place += access.strides[a] * index_[a];
    for (const loop::Term& t : access.terms) place += t.stride * index_in_range(t);
    return place;
  }

  [[nodiscard]] std::int64_t index_in_range(const loop::Term& term) const {
    const auto index = std::get<std::int64_t>(as_stored(DType::I64, value(term.index)));
    if (term.clamp) {
      return std::clamp<std::int64_t>(index, 0, std::max<std::int64_t>(term.limit - 1, 0));
    }
    if (index < 0 || index >= term.limit)
      throw device::KernelFault{loop::FaultKind::Index, index, term.limit};
    return index;
  }

  [[nodiscard]] Number load_at(std::int32_t argument, std::int64_t place) const {
    return load(kernel_.arguments[at(argument)].dtype, address(argument, place));
  }
  void store_at(std::int32_t argument, std::int64_t place, const Number& number) const {
    store(kernel_.arguments[at(argument)].dtype, address(argument, place), number);
  }

  [[nodiscard]] std::byte* address(std::int32_t argument, std::int64_t place) const {
    const KernelArgument& array = arguments_[at(argument)];
    const std::int64_t size = size_of(kernel_.arguments[at(argument)].dtype);
    if (place < 0 || place >= array.bytes / size) {
      throw InternalError(fmt::format("kernel '{}': place {} of argument {}, which has {} elements",
                                      kernel_.name, place, argument, array.bytes / size));
    }
    return array.data + place * size;
  }

  template <class N>
  static std::size_t at(N n) {
    return static_cast<std::size_t>(n);
  }

  const loop::Kernel& kernel_;
  std::vector<KernelArgument> arguments_;
  std::vector<std::vector<std::byte>> locals_;  // per argument
  std::vector<std::int64_t> index_;             // per axis
  std::vector<std::optional<Number>> values_;   // per instruction
  std::vector<Number> reduced_;
  std::vector<std::vector<Number>> accumulated_;
};

}  // namespace

std::optional<device::KernelFault> run_kernel(const loop::Kernel& kernel,
                                              std::span<const KernelArgument> arguments) {
  try {
    KernelRun(kernel, arguments).run();
  } catch (const device::KernelFault& fault) {
    return fault;
  }
  return std::nullopt;
}

}  // namespace ricci::lir
