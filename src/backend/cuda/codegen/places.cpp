// Addresses: where a kernel's elements lie, and what of them waits in registers.
#include <algorithm>

#include "ricci/support/text.h"

#include "backend/cuda/codegen/expression.h"
#include "backend/cuda/codegen/kernel_printer.h"
#include "type/small_dtype.h"

namespace ricci::cuda {

std::string KernelPrinter::linear(std::int64_t offset, const std::vector<std::int64_t>& strides,
                                  bool lane) const {
  std::string sum;
  const auto add = [&](std::int64_t by, const std::string& what) {
    const std::string size = integer_text(by < 0 ? -by : by);
    const std::string term = what.empty()  ? size
                             : size == "1" ? what
                                           : fmt::format("{} * {}", size, what);
    if (sum.empty()) {
      sum = by < 0 ? "-" + term : term;
    } else {
      sum += (by < 0 ? " - " : " + ") + term;
    }
  };
  for (std::size_t a = 0; a < strides.size(); ++a) {
    if (strides[a] == 0 || (a >= k_.outer && !in_elements_)) continue;
    add(strides[a], axis(a));
    if (lane && a + 1 == strides.size() && a >= k_.outer) add(strides[a], "j");
  }
  if (offset != 0 || sum.empty()) add(offset, "");
  return sum;
}

std::string KernelPrinter::guard_text(const Access& access, bool lane) const {
  std::vector<std::string> all;
  for (const loop::Guard& g : access.guards) {
    all.push_back(fmt::format("{}({}) < {}u{}", m_.wide ? "u64" : "unsigned",
                              linear(g.offset, g.strides, lane), g.limit, m_.wide ? "ll" : ""));
  }
  return join(all, " && ");
}

// The terms as variables of their own; what must hold for them to be places, if it need not.
std::string KernelPrinter::print_terms(const Access& access, const std::string& owner) {
  std::vector<std::string> all;
  for (std::size_t n = 0; n < access.terms.size(); ++n) {
    const loop::Term& t = access.terms[n];
    const std::string index = cast_text(instr(t.index).dtype, DType::I64, reg(t.index));
    const std::string name = fmt::format("{}_index{}", owner, n == 0 ? "" : std::to_string(n));
    if (t.clamp) {
      text_.line("const {0} {1} = {0}(clamped({2}, {3}));", whole(), name, index,
                 integer_text(t.limit));
    } else {
      text_.line("const {0} {1} = {0}(index_of({2}, {3}, fault, origin));", whole(), name, index,
                 integer_text(t.limit));
      all.push_back(fmt::format("{} >= 0", name));
    }
  }
  return join(all, " && ");
}

std::string KernelPrinter::place(const Access& access, bool lane, const std::string& owner) {
  std::string at = linear(access.offset, access.strides, lane);
  for (std::size_t n = 0; n < access.terms.size(); ++n) {
    const std::int64_t stride = access.terms[n].stride;
    at += fmt::format(" + {}{}_index{}", stride == 1 ? "" : integer_text(stride) + " * ", owner,
                      n == 0 ? "" : std::to_string(n));
  }
  return at;
}

std::string KernelPrinter::element(const Access& access, const std::string& at) const {
  return fmt::format("a{}[{}]", access.argument, at);
}

std::string KernelPrinter::pack_type(DType dtype) const {
  return fmt::format("Pack<{}, {}>", stored_type(dtype), m_.lanes);
}

std::string KernelPrinter::packed_place(const Access& access, const std::string& at,
                                        bool reads) const {
  const std::string type = pack_type(argument(access.argument).dtype);
  return fmt::format("*({}{}*)(a{} + {})", reads ? "const " : "", type, access.argument, at);
}

const Held* KernelPrinter::held(const Access& access) const {
  const auto found =
      std::ranges::find_if(m_.held, [&](const Held& h) { return same_place(h.place, access); });
  return found == m_.held.end() ? nullptr : &*found;
}

std::string KernelPrinter::held_name(const Held& h) const {
  return fmt::format("h{}", &h - m_.held.data());
}

// The neighbours that are held together: in registers, where a stage also has those of shared
// memory while it works on them.
std::string KernelPrinter::held_pack(const Held& h) const {
  if (m_.in_shared) return held_name(h) + "_own";
  return held_name(h) + (m_.packs > 0 ? "[p]" : "");
}

std::string KernelPrinter::held_place(const Held& h) const {
  return fmt::format("{}[unsigned(e) / {}]", held_name(h), m_.lanes);
}

std::string KernelPrinter::pack_of(const Held& h) const {
  return m_.lanes > 1 ? pack_type(h.dtype) : stored_type(h.dtype);
}

std::string KernelPrinter::held_lane(const Held& h) const {
  return held_pack(h) + (m_.lanes > 1 ? ".at[j]" : "");
}

std::string KernelPrinter::store_name(const Stage& stage, const loop::Store& store) const {
  return fmt::format("s{}_{}", &stage - k_.stages.data(), &store - stage.stores.data());
}

bool KernelPrinter::is_lane_packed(const Access& access) const {
  return m_.lanes > 1 && is_packed(k_, access, m_.lanes) &&
         std::ranges::none_of(access.terms, [&](const loop::Term& t) { return varies(t.index); });
}

// Small floats that are stored side by side are rounded two at a time.
bool KernelPrinter::is_rounded_together(const loop::Store& store) const {
  return m_.lanes > 1 && is_small_float(argument(store.access.argument).dtype) &&
         is_lane_packed(store.access);
}

// A store that only lets a value wait: held in registers, it needs no memory. That of an output is
// one when a later stage stores to the same place.
bool KernelPrinter::is_dead(const Stage& stage, const loop::Store& store) const {
  if (held(store.access) == nullptr) return false;
  if (argument(store.access.argument).role == loop::ArgumentRole::Local) return true;
  for (const Stage* later = &stage + 1; later != k_.stages.data() + k_.stages.size(); ++later) {
    if (!later->per_element) continue;
    const auto same = [&](const loop::Store& s) { return same_place(s.access, store.access); };
    if (std::ranges::any_of(later->stores, same)) return true;
  }
  return false;
}

}  // namespace ricci::cuda
