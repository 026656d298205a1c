// What happens in a stage: once a row, or with each element a thread has. Neighbours that a thread
// handles together are read and written in packs; what they share is worked out before them.
#include <algorithm>

#include "ricci/support/error.h"

#include "backend/cuda/codegen/coarse.h"
#include "backend/cuda/codegen/expression.h"
#include "backend/cuda/codegen/kernel_printer.h"
#include "op/kinds.h"
#include "type/small_dtype.h"

namespace ricci::cuda {

using loop::Code;

// Along the last axis of the row.
void KernelPrinter::find_varying() {
  varies_.assign(k_.code.size(), false);
  const auto moves = [&](const std::vector<std::int64_t>& strides) {
    return has_row_axes() && strides.back() != 0;
  };
  for (const Stage& stage : k_.stages) {
    if (!stage.per_element) continue;
    for (const Reg r : stage.code) {
      const Instr& i = instr(r);
      if (!i.per_element) continue;
      bool varying = i.code == Code::Running;
      for (const Reg in : i.in) varying = varying || (in != loop::NoReg && varies(in));
      if (i.code == Code::Load || i.code == Code::Index || i.code == Code::Random) {
        varying = varying || moves(i.access.strides);
        for (const loop::Term& t : i.access.terms) varying = varying || varies(t.index);
        for (const loop::Guard& g : i.access.guards) varying = varying || moves(g.strides);
      }
      varies_[index(r)] = varying && m_.lanes > 1;
    }
  }
}

void KernelPrinter::print_once(const Stage& stage) {
  in_elements_ = false;
  in_lanes_ = false;
  for (const Reg r : stage.code) define(r);
  for (const loop::Store& s : stage.stores) {
    const DType to = argument(s.access.argument).dtype;
    const std::string value = cut_to_stored(to, cast_text(instr(s.value).dtype, to, reg(s.value)));
    text_.line("if ({}) {} = {};", is_first(), element(s.access, place(s.access, false, "")),
               value);
  }
  for (const std::int32_t n : stage.accumulators) {
    const loop::Accumulator& acc = k_.accumulators[static_cast<std::size_t>(n)];
    check_internal(!acc.per_element, "elements are accumulated once a row");
    const std::string x =
        cast_text(instr(acc.value).dtype, reduced_in(acc.kind, acc.dtype), reg(acc.value));
    text_.line("n{} = {};", n, combined_text(acc.kind, acc.dtype, fmt::format("n{}", n), x));
  }
}

void KernelPrinter::print_elements(const Stage& stage) {
  for (const std::int32_t m : stage.reductions) {
    const loop::Reduction& red = k_.reductions[static_cast<std::size_t>(m)];
    const DType held_in = reduced_in(red.kind, red.dtype);
    text_.line("{} m{} = {};", held_type(held_in), m, reduction_of_nothing(red.kind, held_in));
  }
  in_elements_ = true;
  if (is_rows()) {
    print_element_loop(stage);
  } else {
    print_vector(stage);
  }
  in_elements_ = false;
  print_reductions(stage);
}

void KernelPrinter::print_element_loop(const Stage& stage) {
  read_packs_ahead(stage);
  int open = 1;
  if (m_.packs == 0) {
    const std::string lanes = m_.lanes > 1 ? fmt::format(" * {}", m_.lanes) : "";
    if (m_.in_shared) text_.add("#pragma unroll 4");
    text_.open("for ({} e = t{}; e < {}; e += {})", whole(), lanes, integer_text(k_.row_elements()),
               std::int64_t{m_.team} * m_.lanes);
    print_row_indices();
  } else {
    open = open_packs();
  }
  print_vector(stage);
  close_packs(open);
}

void KernelPrinter::print_row_indices() {
  if (k_.extents.size() - k_.outer == 1) return;
  print_indices(m_.lanes > 1 ? fmt::format("e / {}", m_.lanes) : "e", k_.outer, k_.extents.size(),
                m_.lanes);
}

// Goes through the packs of a row that a thread has; returns how many braces that takes.
int KernelPrinter::open_packs() {
  const std::string lanes = m_.lanes > 1 ? fmt::format(" * {}", m_.lanes) : "";
  text_.add("#pragma unroll");
  text_.open("for (int p = 0; p < {}; ++p)", m_.packs);
  text_.line("const {} e = (p * {} + t){};", whole(), m_.team, lanes);
  const std::int64_t row = k_.row_elements();
  const bool guarded = row != std::int64_t{m_.packs} * m_.team * m_.lanes;
  if (guarded) text_.open("if (e < {})", row);
  print_row_indices();
  return guarded ? 2 : 1;
}

void KernelPrinter::close_packs(int open) {
  for (; open > 0; --open) text_.close();
}

// The elements that a thread handles together.
void KernelPrinter::print_vector(const Stage& stage) {
  take_held(stage);
  std::vector<Reg> each;
  for (const Reg r : stage.code) {
    if (varies(r)) {
      each.push_back(r);
    } else {
      define(r);
    }
  }
  print_packed_loads(stage);
  for (const loop::Store& s : stage.stores) {
    const DType to = argument(s.access.argument).dtype;
    if (is_rounded_together(s)) {
      text_.line("float {}[{}];", store_name(stage, s), m_.lanes);
    } else if (held(s.access) == nullptr && is_lane_packed(s.access)) {
      text_.line("{} {};", pack_type(to), store_name(stage, s));
    }
  }
  if (m_.lanes > 1) {
    text_.add("#pragma unroll");
    text_.open("for (int j = 0; j < {}; ++j)", m_.lanes);
    in_lanes_ = true;
  }
  print_lanes(stage, each);
  if (m_.lanes > 1) {
    text_.close();
    in_lanes_ = false;
  }
  print_packed_stores(stage);
  keep_held(stage);
}

// What a stage reads and writes of what waits in shared memory it has in registers meanwhile.
void KernelPrinter::take_held(const Stage& stage) {
  if (!m_.in_shared) return;
  const auto number = static_cast<std::size_t>(&stage - k_.stages.data());
  for (const Held& h : m_.held) {
    const auto is_of = [&](const Access& access) { return same_place(access, h.place); };
    const bool reads = std::ranges::any_of(stage.code, [&](Reg r) {
      return instr(r).code == Code::Load && instr(r).per_element && is_of(instr(r).access);
    });
    const bool stores =
        std::ranges::any_of(stage.stores, [&](const loop::Store& s) { return is_of(s.access); });
    const bool fills = !h.stored && h.first_read == number;
    if (reads && !fills) {
      text_.line("{} {} = {};", pack_of(h), held_pack(h), held_place(h));
    } else if (reads || stores) {
      text_.line("{} {};", pack_of(h), held_pack(h));
    }
  }
}

void KernelPrinter::keep_held(const Stage& stage) {
  if (!m_.in_shared) return;
  const auto number = static_cast<std::size_t>(&stage - k_.stages.data());
  for (const Held& h : m_.held) {
    const auto is_of = [&](const Access& access) { return same_place(access, h.place); };
    const bool stores =
        std::ranges::any_of(stage.stores, [&](const loop::Store& s) { return is_of(s.access); });
    if (!stores && (h.stored || h.first_read != number)) continue;
    const bool wanted =
        std::any_of(k_.stages.begin() + static_cast<std::ptrdiff_t>(number) + 1, k_.stages.end(),
                    [&](const Stage& later) {
                      return later.per_element && std::ranges::any_of(later.code, [&](Reg r) {
                               return instr(r).code == Code::Load && instr(r).per_element &&
                                      is_of(instr(r).access);
                             });
                    });
    if (wanted) text_.line("{} = {};", held_place(h), held_pack(h));
  }
}

void KernelPrinter::print_packed_loads(const Stage& stage) {
  const auto number = static_cast<std::size_t>(&stage - k_.stages.data());
  for (const Reg r : stage.code) {
    const Instr& i = instr(r);
    if (i.code != Code::Load || !varies(r) || !is_lane_packed(i.access)) continue;
    const Held* h = held(i.access);
    if (is_ahead(r) || (h != nullptr && (h->stored || h->first_read != number))) continue;
    const std::string good = print_terms(i.access, reg(r));
    const std::string from = packed_place(i.access, place(i.access, false, reg(r)), true);
    if (h != nullptr) {
      text_.line("{} = {};", held_pack(*h), from);
    } else if (good.empty()) {
      text_.line("const {} p{} = {};", pack_type(i.dtype), r, from);
    } else {
      text_.line("{} p{} = {{}};", pack_type(i.dtype), r);
      text_.line("if ({}) p{} = {};", good, r, from);
    }
  }
}

void KernelPrinter::print_lanes(const Stage& stage, const std::vector<Reg>& code) {
  for (const Reg r : code) define(r);
  print_stores(stage);
  for (const std::int32_t n : stage.accumulators) {
    const loop::Accumulator& acc = k_.accumulators[static_cast<std::size_t>(n)];
    check_internal(acc.per_element, "a number of a row is accumulated with its elements");
    const std::string lane = accumulator_lane(static_cast<std::size_t>(n));
    const std::string x =
        cast_text(instr(acc.value).dtype, reduced_in(acc.kind, acc.dtype), reg(acc.value));
    text_.line("{} = {};", lane, combined_text(acc.kind, acc.dtype, lane, x));
  }
  for (const std::int32_t m : stage.reductions) {
    const loop::Reduction& red = k_.reductions[static_cast<std::size_t>(m)];
    const std::string x =
        cast_text(instr(red.value).dtype, reduced_in(red.kind, red.dtype), reg(red.value));
    text_.line("m{} = {};", m, combined_text(red.kind, red.dtype, fmt::format("m{}", m), x));
  }
}

// One by one: what is not stored in packs.
void KernelPrinter::print_stores(const Stage& stage) {
  for (const loop::Store& s : stage.stores) {
    const DType to = argument(s.access.argument).dtype;
    const std::string value = cut_to_stored(to, cast_text(instr(s.value).dtype, to, reg(s.value)));
    const Held* h = held(s.access);
    if (is_rounded_together(s)) {
      text_.line("{}[j] = {};", store_name(stage, s),
                 cast_text(instr(s.value).dtype, to, reg(s.value)));
      continue;
    }
    if (h != nullptr) text_.line("{} = {};", held_lane(*h), value);
    if (h == nullptr && is_lane_packed(s.access)) {
      text_.line("{}.at[j] = {};", store_name(stage, s), value);
      continue;
    }
    if (is_dead(stage, s) || is_lane_packed(s.access)) continue;
    const std::string owner = store_name(stage, s);
    const std::string good = print_terms(s.access, owner);
    text_.line("{}{} = {};", good.empty() ? "" : fmt::format("if ({}) ", good),
               element(s.access, place(s.access, in_lanes_, owner)), value);
  }
}

void KernelPrinter::print_packed_stores(const Stage& stage) {
  for (const loop::Store& s : stage.stores) {
    const Held* h = held(s.access);
    std::string from = h == nullptr ? store_name(stage, s) : held_pack(*h);
    if (is_rounded_together(s)) {
      const std::string rounded = fmt::format(
          "rounded_{}({})", stored_type(argument(s.access.argument).dtype), store_name(stage, s));
      if (h == nullptr) {
        from = rounded;
      } else {
        text_.line("{} = {};", from, rounded);
      }
    }
    if (!is_lane_packed(s.access) || is_dead(stage, s)) continue;
    const std::string owner = store_name(stage, s);
    const std::string good = print_terms(s.access, owner);
    text_.line("{}{} = {};", good.empty() ? "" : fmt::format("if ({}) ", good),
               packed_place(s.access, place(s.access, false, owner), false), from);
  }
}

// What the threads of a team have found, together. Teams of several warps wait once for all that a
// stage reduces.
void KernelPrinter::print_reductions(const Stage& stage) {
  if (!is_rows() || m_.team == 1 || stage.reductions.empty()) return;
  const bool many_warps = m_.team > 32;
  const auto total = [&](std::int32_t m, int lanes, const std::string& of) {
    const loop::Reduction& red = k_.reductions[static_cast<std::size_t>(m)];
    text_.line("m{0} = team_total<{1}>({2}, {3}(), {4});", m, lanes,
               many_warps ? "0xffffffffu" : "team", combiner(red.kind), of);
  };
  for (const std::int32_t m : stage.reductions) {
    total(m, std::min(m_.team, 32), fmt::format("m{}", m));
  }
  if (!many_warps) return;
  text_.open("if (threadIdx.x % 32 == 0)");
  for (const std::int32_t m : stage.reductions) {
    text_.line("m{0}_parts[threadIdx.x / 32] = m{0};", m);
  }
  text_.close();
  text_.add("__syncthreads();");
  for (const std::int32_t m : stage.reductions) {
    total(m, m_.team / 32, fmt::format("m{}_parts[threadIdx.x % {}]", m, m_.team / 32));
  }
}

void KernelPrinter::define(Reg r) {
  const Instr& i = instr(r);
  const std::string value = i.code == Code::Load ? load_text(r) : value_of(i);
  text_.line("const {} {} = {};", held_type(i.dtype), reg(r), value);
  if (is_divisor(r)) text_.line("const Divisor {0}_divisor = divisor_of({0});", reg(r));
}

// Does a thread divide many elements by what it has once a row?
bool KernelPrinter::is_divisor(Reg r) const {
  constexpr int Many = 8;
  if (!is_rows() || instr(r).per_element || (m_.packs != 0 && m_.packs * m_.lanes < Many)) {
    return false;
  }
  return is_float(instr(r).dtype) && instr(r).dtype != DType::F64 &&
         std::ranges::any_of(k_.code, [&](const Instr& i) {
           return i.code == Code::Binary && i.binary() == BinaryKind::Div && i.per_element &&
                  i.in[1] == r;
         });
}

std::string KernelPrinter::load_text(Reg r) {
  const Instr& i = instr(r);
  const bool lane = in_lanes_ && varies(r);
  const Held* h = in_elements_ && i.per_element ? held(i.access) : nullptr;
  if (lane && is_lane_packed(i.access)) {
    const std::string pack = h != nullptr ? held_pack(*h) : pack_name(r);
    if (i.dtype == DType::BF16) return fmt::format("lane_of({}, j)", pack);
    return from_stored(i.dtype, pack + ".at[j]");
  }
  const auto stage = std::ranges::find_if(
      k_.stages, [&](const Stage& s) { return std::ranges::find(s.code, r) != s.code.end(); });
  const bool fills = h != nullptr && !h->stored &&
                     h->first_read == static_cast<std::size_t>(stage - k_.stages.begin());
  if (h != nullptr && !fills) return from_stored(i.dtype, held_lane(*h));
  const std::string good = print_terms(i.access, reg(r));
  std::string text = element(i.access, place(i.access, lane, reg(r)));
  if (fills) {
    text_.line("{} = {};", held_lane(*h), text);
    text = held_lane(*h);
  }
  text = from_stored(i.dtype, text);
  if (!i.access.guards.empty()) {
    return fmt::format("{} ? {} : {}", guard_text(i.access, lane), text,
                       constant_text(i.dtype, i.number));
  }
  if (good.empty()) return text;
  return fmt::format("{} ? {} : {}", good, text, constant_text(i.dtype, std::int64_t{0}));
}

// Is the result rounded to less than f32, now or before anyone sees it?
bool KernelPrinter::is_near(const Instr& i) const {
  return is_small_float(i.dtype) || coarse_[static_cast<std::size_t>(&i - k_.code.data())];
}

// A product and a sum in one, where it is not told that the product is not rounded.
std::string KernelPrinter::fused_text(const Instr& i) const {
  const bool adds = i.binary() == BinaryKind::Add;
  if (!is_near(i) || (!adds && i.binary() != BinaryKind::Sub)) return {};
  const auto is_product = [&](Reg r) {
    const Instr& of = instr(r);
    return of.code == Code::Binary && of.binary() == BinaryKind::Mul && of.dtype == DType::F32 &&
           of.per_element == i.per_element;
  };
  const char* minus = adds ? "" : "-";
  if (is_product(i.in[0])) {
    const Instr& of = instr(i.in[0]);
    return fmt::format("fmaf({}, {}, {}{})", reg(of.in[0]), reg(of.in[1]), minus, reg(i.in[1]));
  }
  if (!is_product(i.in[1])) return {};
  const Instr& of = instr(i.in[1]);
  return fmt::format("fmaf({}{}, {}, {})", minus, reg(of.in[0]), reg(of.in[1]), reg(i.in[0]));
}

// The sigmoid of -x, where that of x is at hand: gradients ask for both, and each is two of the
// functions that a GPU has few units for.
std::string KernelPrinter::other_sigmoid(const Instr& i) const {
  if (i.unary() != UnaryKind::Sigmoid || !is_near(i)) return {};
  const Instr& minus = instr(i.in[0]);
  if (minus.code != Code::Unary || minus.unary() != UnaryKind::Neg) return {};
  const auto own = static_cast<Reg>(&i - k_.code.data());
  const auto stage = std::ranges::find_if(
      k_.stages, [&](const Stage& s) { return std::ranges::find(s.code, own) != s.code.end(); });
  for (const Reg r : stage->code) {
    if (r == own) break;
    const Instr& of = instr(r);
    const bool is_sigmoid = of.code == Code::Unary && of.unary() == UnaryKind::Sigmoid;
    if (!is_sigmoid || of.in[0] != minus.in[0] || !is_near(of) || of.dtype != DType::F32) continue;
    return fmt::format("near_other_sigmoid({}, {})", reg(of.in[0]), reg(r));
  }
  return {};
}

// What is only stored, together with its neighbours, is rounded as it is stored.
DType KernelPrinter::rounded_in(const Instr& i, DType dtype) const {
  const auto r = static_cast<Reg>(&i - k_.code.data());
  if (!in_lanes_ || !is_small_float(i.dtype)) return dtype;
  const auto reads = [&](const Instr& other) {
    return std::ranges::find(other.in, r) != other.in.end();
  };
  const auto is_of = [&](const auto& x) { return x.value == r; };
  bool stored = false;
  for (const Stage& stage : k_.stages) {
    for (const loop::Store& s : stage.stores) {
      if (s.value != r) continue;
      if (!is_rounded_together(s) || argument(s.access.argument).dtype != i.dtype) return dtype;
      stored = true;
    }
  }
  const bool only = stored && std::ranges::none_of(k_.code, reads) &&
                    std::ranges::none_of(k_.reductions, is_of) &&
                    std::ranges::none_of(k_.accumulators, is_of);
  return only ? widened(dtype) : dtype;
}

// Which of the neighbours an index picks is asked once for all of them.
std::string KernelPrinter::compared_text(const Instr& i) const {
  const bool equal = i.compare() == CompareKind::Eq || i.compare() == CompareKind::Ne;
  for (const std::size_t n : {0U, 1U}) {
    const Instr& place = instr(i.in[n]);
    const Reg other = i.in[1 - n];
    if (!in_lanes_ || !equal || place.code != Code::Index || !place.per_element || varies(other) ||
        place.access.strides.back() != 1 ||
        (place.dtype != DType::I64 && place.dtype != DType::I32)) {
      continue;
    }
    const std::string first = linear(place.access.offset, place.access.strides, false);
    return fmt::format("(picked_lane({}, {}) {} j)", reg(other), first,
                       i.compare() == CompareKind::Eq ? "==" : "!=");
  }
  return compare_text(i.compare(), reg(i.in[0]), reg(i.in[1]));
}

std::string KernelPrinter::value_of(const Instr& i) {
  const auto in = [&](std::size_t k) { return reg(i.in[k]); };
  const auto dtype = [&] { return instr(i.in[0]).dtype; };
  switch (i.code) {
    case Code::Constant: return constant_text(i.dtype, i.number);
    case Code::Index: {
      // What is never negative needs no sign.
      const bool counts = i.access.offset >= 0 &&
                          std::ranges::all_of(i.access.strides, [](auto s) { return s >= 0; });
      return cast_text(DType::I64, i.dtype,
                       fmt::format("i64({}({}))", counts && !m_.wide ? "unsigned" : "",
                                   linear(i.access.offset, i.access.strides, in_lanes_)));
    }
    case Code::Copy: return in(0);
    case Code::Unary: {
      const char* near = is_near(i) ? near_function(i.unary()) : nullptr;
      const DType as = rounded_in(i, dtype());
      if (const std::string other = other_sigmoid(i); !other.empty()) {
        return rounded_text(as, other);
      }
      if (near != nullptr) return rounded_text(as, fmt::format("{}({})", near, in(0)));
      return unary_text(i.unary(), as, in(0));
    }
    case Code::Binary:
      if (i.per_element && i.binary() == BinaryKind::Div && is_divisor(i.in[1])) {
        return rounded_text(
            rounded_in(i, i.dtype),
            fmt::format("{}divided({}, {}_divisor)", is_near(i) ? "near_" : "", in(0), in(1)));
      }
      if (const std::string fused = fused_text(i); !fused.empty()) {
        return rounded_text(rounded_in(i, i.dtype), fused);
      }
      return binary_text(i.binary(), rounded_in(i, dtype()), in(0), in(1));
    case Code::Compare: return compared_text(i);
    case Code::Select:
      return fmt::format("{} ? {} : {}", nonzero_text(dtype(), in(0)), in(1), in(2));
    case Code::Cast: {
      const bool wider = widened(dtype()) == widened(i.dtype);
      return cast_text(dtype(), wider ? rounded_in(i, i.dtype) : i.dtype, in(0));
    }
    case Code::Reduced: {
      const loop::Reduction& red = k_.reductions[static_cast<std::size_t>(i.reduction)];
      return cast_text(reduced_in(red.kind, red.dtype), i.dtype, fmt::format("m{}", i.reduction));
    }
    case Code::Running: return running_text(i);
    case Code::Random: return random_text(i);
    case Code::Load: break;
  }
  throw InternalError("an instruction has no CUDA code");
}

std::string KernelPrinter::running_text(const Instr& i) {
  const loop::Accumulator& acc = k_.accumulators[static_cast<std::size_t>(i.reduction)];
  const std::string lane = accumulator_lane(static_cast<std::size_t>(i.reduction));
  const DType held_in = reduced_in(acc.kind, acc.dtype);
  const std::string before = fmt::format("before{}", i.reduction);
  text_.line("const {} {} = {};", held_type(held_in), before, lane);
  const std::string x = cast_text(instr(i.in[0]).dtype, held_in, reg(i.in[0]));
  text_.line("{} = {};", lane, combined_text(acc.kind, acc.dtype, before, x));
  return cast_text(held_in, i.dtype, acc.exclusive ? before : lane);
}

std::string KernelPrinter::random_text(const Instr& i) {
  const auto whole_number = [&](Reg r) {
    return fmt::format("u64({})", cast_text(instr(r).dtype, DType::I64, reg(r)));
  };
  std::string key =
      fmt::format("{}ull", static_cast<std::uint64_t>(std::get<std::int64_t>(i.number)));
  if (i.in[1] != loop::NoReg) key += " + " + whole_number(i.in[1]);
  const std::string at =
      fmt::format("u64({})", linear(i.access.offset, i.access.strides, in_lanes_));
  const std::string seed = whole_number(i.in[0]);
  if (i.random() == loop::RandomKind::Bits) {
    return cast_text(DType::I64, i.dtype,
                     fmt::format("i64(random_word({}, {}, {}))", seed, key, at));
  }
  const bool normal = i.random() == loop::RandomKind::Normal;
  const std::string drawn = fmt::format(
      "random_{}<{}>({}, {}, {}, {}, {})", normal ? "normal" : "uniform", i.dtype == DType::F64,
      seed, key, at, constant_text(DType::F64, i.range[0]), constant_text(DType::F64, i.range[1]));
  return cast_text(DType::F64, i.dtype, drawn);
}

}  // namespace ricci::cuda
