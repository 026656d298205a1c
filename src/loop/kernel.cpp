#include "ricci/compiler/loop/kernel.h"

#include <algorithm>

#include "ricci/support/error.h"

#include "loop/guards.h"

namespace ricci::loop {
namespace {

std::int64_t product(const std::vector<std::int64_t>& extents, std::size_t from, std::size_t to) {
  std::int64_t n = 1;
  for (std::size_t i = from; i < to; ++i) n *= extents[i];
  return n;
}

void drop_axis(Kernel& kernel, std::size_t axis) {
  const auto at = static_cast<std::ptrdiff_t>(axis);
  kernel.extents.erase(kernel.extents.begin() + at);
  for_each_strides(kernel, [&](auto& strides) { strides.erase(strides.begin() + at); });
  if (axis < kernel.kept) --kernel.kept;
  if (axis < kernel.outer) --kernel.outer;
}

bool one_zone(const Kernel& kernel, std::size_t axis) {
  return axis + 1 != kernel.kept && axis + 1 != kernel.outer;
}

// A guard that moves by one with the outer axis holds for all of the inner one or for none.
bool counts_runs(const Guard& g, std::size_t axis) {
  return g.strides[axis] == 0 && g.strides[axis - 1] == 1;
}

// In arguments that are the same memory.
bool is_same_place(const Access& a, const Access& b) {
  return a.terms.empty() && b.terms.empty() && a.guards.empty() && b.guards.empty() &&
         a.offset == b.offset && a.strides == b.strides;
}

constexpr std::int64_t DrawnNumber = 24;  // ten rounds of a generator, four numbers at a time

}  // namespace

FaultKind fault_of(const Instr& i) {
  if (i.code != Code::Binary || !is_int(i.dtype)) return FaultKind::None;
  switch (i.binary()) {
    case BinaryKind::Div: return FaultKind::Division;
    case BinaryKind::Rem: return FaultKind::Remainder;
    case BinaryKind::Pow: return FaultKind::Exponent;
    case BinaryKind::Add:
    case BinaryKind::Sub:
    case BinaryKind::Mul:
    case BinaryKind::Max:
    case BinaryKind::Min:
    case BinaryKind::Atan2:
    case BinaryKind::Hypot:
    case BinaryKind::MakeComplex:
    case BinaryKind::LogicalAnd:
    case BinaryKind::LogicalOr:
    case BinaryKind::LogicalXor:
    case BinaryKind::BitwiseAnd:
    case BinaryKind::BitwiseOr:
    case BinaryKind::BitwiseXor:
    case BinaryKind::ShiftLeft:
    case BinaryKind::ShiftRight: break;
  }
  return FaultKind::None;
}

std::int64_t weight(const Instr& i) {
  const auto of = [&](const ElementCost& cost) {
    return is_complex(i.dtype) ? cost.complex : cost.real;
  };
  if (i.code == Code::Unary) return of(row(i.unary()).cost);
  if (i.code == Code::Binary) return of(row(i.binary()).cost);
  if (i.code == Code::Load) {
    return i.access.terms.empty() ? (i.access.guards.empty() ? 1 : 2) : 4;
  }
  if (i.code == Code::Random)
    return i.random() == RandomKind::Normal ? 2 * DrawnNumber : DrawnNumber;
  return i.code == Code::Constant ? 0 : 1;
}

std::int64_t Kernel::kept_rows() const { return product(extents, 0, kept); }
std::int64_t Kernel::accumulated_rows() const { return product(extents, kept, outer); }
std::int64_t Kernel::rows() const { return product(extents, 0, outer); }
std::int64_t Kernel::row_elements() const { return product(extents, outer, extents.size()); }

bool joins_axes(const Guard& guard, std::size_t axis, std::int64_t extent) {
  return guard.strides[axis - 1] == guard.strides[axis] * extent || counts_runs(guard, axis);
}

// Counts elements where it counted runs of them.
void write_for_joined(Guard& guard, std::size_t axis, std::int64_t extent) {
  if (!counts_runs(guard, axis)) return;
  for (std::int64_t& s : guard.strides) s *= extent;
  guard.offset *= extent;
  guard.limit *= extent;
  guard.strides[axis] = 1;
}

void coalesce(Kernel& kernel) {
  for (std::size_t axis = kernel.extents.size(); axis-- > 0;) {
    if (kernel.extents[axis] == 1) drop_axis(kernel, axis);
  }
  for (std::size_t axis = kernel.extents.size(); axis-- > 1;) {
    const std::size_t outer = axis - 1;
    if (!one_zone(kernel, outer)) continue;
    const std::int64_t extent = kernel.extents[axis];
    bool joint = true;
    for_each_access(kernel, [&](const Access& access) {
      joint = joint && access.strides[outer] == access.strides[axis] * extent;
      for (const Guard& g : access.guards) joint = joint && joins_axes(g, axis, extent);
    });
    if (!joint) continue;
    for_each_access(kernel, [&](Access& access) {
      for (Guard& g : access.guards) write_for_joined(g, axis, extent);
    });
    kernel.extents[outer] *= extent;
    for_each_strides(kernel, [&](auto& strides) { strides[outer] = strides[axis]; });
    drop_axis(kernel, axis);
  }
}

void sum_up(Kernel& kernel) {
  std::int64_t per_element = 1;
  for (const Instr& i : kernel.code) {
    if (i.per_element) per_element += weight(i);
  }
  kernel.work = std::max<std::int64_t>(kernel.rows() * kernel.row_elements(), 1) * per_element;
  const auto on_elements = [](const Stage& s) { return s.per_element || s.stores.empty(); };
  kernel.flat = kernel.outer == 0 && kernel.extents.size() == 1 && kernel.extents[0] > 1 &&
                kernel.reductions.empty() && kernel.accumulators.empty() &&
                std::ranges::all_of(kernel.stages, on_elements);
}

bool can_overwrite(const Kernel& kernel, std::size_t out, std::size_t in) {
  if (size_of(kernel.arguments[out].dtype) != size_of(kernel.arguments[in].dtype)) return false;
  // A row may wait in the output for later stages; then it is stored more than once.
  const Store* store = nullptr;
  std::size_t stored_in = 0;
  for (std::size_t s = 0; s < kernel.stages.size(); ++s) {
    for (const Store& candidate : kernel.stages[s].stores) {
      if (candidate.access.argument != static_cast<std::int32_t>(out)) continue;
      // What is stored once a row meets elements that others still read.
      if (!kernel.stages[s].per_element) return false;
      if (store == nullptr) {
        store = &candidate;
        stored_in = s;
      } else if (!is_same_place(store->access, candidate.access)) {
        return false;
      }
    }
  }
  if (store == nullptr) return false;  // accumulated
  for (std::size_t s = 0; s < kernel.stages.size(); ++s) {
    for (const Reg r : kernel.stages[s].code) {
      const Instr& i = kernel.code[static_cast<std::size_t>(r)];
      if (i.code != Code::Load || i.access.argument != static_cast<std::int32_t>(in)) continue;
      const bool same = i.per_element && is_same_place(i.access, store->access);
      if (!same || s > stored_in) return false;
    }
  }
  return true;
}

Kernel copying_kernel(DType dtype, std::int64_t elements, std::string name) {
  Kernel k;
  k.name = std::move(name);
  k.extents = {elements};
  k.arguments = {{dtype, ArgumentRole::In, 0}, {dtype, ArgumentRole::Out, 0}};
  Instr load{.code = Code::Load, .dtype = dtype};
  load.per_element = true;
  load.access = {0, 0, {1}, {}};
  k.code = {load};
  Stage s;
  s.code = {0};
  s.stores = {{0, {1, 0, {1}, {}}}};
  k.stages = {s};
  sum_up(k);
  return k;
}

void verify(const Kernel& kernel) {
  check_internal(kernel.kept <= kernel.outer && kernel.outer <= kernel.extents.size(),
                 "a kernel's axes are out of order");
  std::vector<bool> ready(kernel.code.size(), false);
  std::vector<bool> reduced(kernel.reductions.size(), false);
  const auto check_access = [&](const Access& a) {
    check_internal(a.strides.size() == kernel.extents.size(),
                   "an access does not have one stride per axis");
    for (const Term& t : a.terms) {
      check_internal(ready[static_cast<std::size_t>(t.index)],
                     "an access depends on a value that is computed later");
    }
    check_internal(a.guards.empty() || a.terms.empty(), "an access has both guards and indices");
    for (const Guard& g : a.guards) {
      check_internal(g.strides.size() == kernel.extents.size() && g.limit >= 0,
                     "a guard does not have one stride per axis, or a negative limit");
    }
  };
  for (const Stage& stage : kernel.stages) {
    for (const Reg r : stage.code) {
      const Instr& i = kernel.code[static_cast<std::size_t>(r)];
      check_internal(stage.per_element || !i.per_element,
                     "a value per element is computed in a stage that runs once a row");
      for (const Reg in : i.in) {
        check_internal(in == NoReg || ready[static_cast<std::size_t>(in)],
                       "an instruction reads a value that is computed later");
      }
      if (i.code == Code::Load || i.code == Code::Index || i.code == Code::Random) {
        check_access(i.access);
      }
      if (i.code == Code::Running) {
        const Accumulator& acc = kernel.accumulators.at(static_cast<std::size_t>(i.reduction));
        check_internal(acc.running && acc.per_element && i.per_element && kernel.chunks == 1,
                       "a running total is not kept for the elements of a row");
      }
      check_internal(i.code != Code::Random || i.in[0] != NoReg,
                     "numbers are drawn without a seed");
      if (i.code == Code::Reduced) {
        check_internal(reduced[static_cast<std::size_t>(i.reduction)],
                       "a reduction is read before it is complete");
      }
      ready[static_cast<std::size_t>(r)] = true;
    }
    for (const Store& s : stage.stores) {
      check_internal(ready[static_cast<std::size_t>(s.value)],
                     "a store writes a value that is never computed");
      check_access(s.access);
      check_internal(s.access.guards.empty(), "a store is guarded");
    }
    for (const std::int32_t r : stage.reductions) reduced[static_cast<std::size_t>(r)] = true;
    // What is per element does not outlive its stage.
    for (const Reg r : stage.code) {
      if (kernel.code[static_cast<std::size_t>(r)].per_element) {
        ready[static_cast<std::size_t>(r)] = false;
      }
    }
  }
}

}  // namespace ricci::loop
