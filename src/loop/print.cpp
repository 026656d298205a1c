// The text form of kernels, for dumps and golden tests.
#include <iterator>

#include <fmt/format.h>

#include "ricci/compiler/loop/kernel.h"
#include "ricci/support/text.h"

namespace ricci::loop {
namespace {

std::vector<std::string> parts_of(const std::vector<std::int64_t>& strides) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < strides.size(); ++i) {
    if (strides[i] == 0) continue;
    parts.push_back(strides[i] == 1 ? fmt::format("i{}", i) : fmt::format("{}*i{}", strides[i], i));
  }
  return parts;
}

std::string place(const Access& a, std::string_view argument) {
  std::vector<std::string> parts = parts_of(a.strides);
  for (const Term& t : a.terms) {
    parts.push_back(
        fmt::format("{}*r{}{}{}", t.stride, t.index, t.clamp ? " clamped < " : " < ", t.limit));
  }
  if (a.offset != 0 || parts.empty()) parts.push_back(fmt::format("{}", a.offset));
  const std::string sum = join(parts, " + ");
  return argument.empty() ? sum : fmt::format("{}[{}]", argument, sum);
}

std::string guard_text(const Guard& g) {
  std::vector<std::string> parts = parts_of(g.strides);
  if (g.offset != 0 || parts.empty()) parts.push_back(fmt::format("{}", g.offset));
  return fmt::format("0 <= {} < {}", join(parts, " + "), g.limit);
}

std::string argument_name(std::int32_t a) { return fmt::format("a{}", a); }

std::string number_text(const Instr& i) {
  if (const auto* d = std::get_if<double>(&i.number)) return fmt::format("{}", *d);
  if (const auto* z = std::get_if<std::complex<double>>(&i.number)) {
    return fmt::format("({}, {})", z->real(), z->imag());
  }
  return fmt::format("{}", std::get<std::int64_t>(i.number));
}

std::string load_text(const Instr& i) {
  std::string text = "load " + place(i.access, argument_name(i.access.argument));
  std::vector<std::string> guards;
  for (const Guard& g : i.access.guards) guards.push_back(guard_text(g));
  if (!guards.empty()) text += fmt::format(" where {} else {}", join(guards, ", "), number_text(i));
  return text;
}

std::string random_text(const Instr& i) {
  const bool bits = i.random() == RandomKind::Bits;
  const std::string what =
      bits ? "bits"
           : fmt::format("{} {}, {}", i.random() == RandomKind::Normal ? "normal" : "uniform",
                         i.range[0], i.range[1]);
  const std::string more = i.in[1] == NoReg ? "" : fmt::format(" + r{}", i.in[1]);
  return fmt::format("random {} at {} of stream {}{} seed r{}", what, place(i.access, {}),
                     number_text(i), more, i.in[0]);
}

std::string right_side(const Instr& i) {
  const auto in = [&](std::size_t k) { return fmt::format("r{}", i.in[k]); };
  switch (i.code) {
    case Code::Constant: return number_text(i);
    case Code::Index: return "index " + place(i.access, {});
    case Code::Load: return load_text(i);
    case Code::Copy: return in(0);
    case Code::Unary:
      return fmt::format("{} {}{}", row(i.unary()).name, in(0),
                         i.not_positive ? ", not_positive" : "");
    case Code::Binary: return fmt::format("{} {}, {}", row(i.binary()).name, in(0), in(1));
    case Code::Compare: return fmt::format("{} {}, {}", row(i.compare()).name, in(0), in(1));
    case Code::Select: return fmt::format("select {}, {}, {}", in(0), in(1), in(2));
    case Code::Cast: return "cast " + in(0);
    case Code::Reduced: return fmt::format("reduced m{}", i.reduction);
    case Code::Running: return fmt::format("running n{} {}", i.reduction, in(0));
    case Code::Random: return random_text(i);
  }
  return "?";
}

std::string_view role_name(ArgumentRole role) {
  return role == ArgumentRole::In ? "in" : role == ArgumentRole::Out ? "out" : "local";
}

std::string_view reduce_name(ReduceKind kind) {
  return enumerator_names(kind)[static_cast<std::size_t>(kind)];
}

std::string extents_text(const Kernel& k, std::size_t from, std::size_t to) {
  std::vector<std::string> parts;
  for (std::size_t i = from; i < to; ++i) parts.push_back(fmt::format("i{} < {}", i, k.extents[i]));
  return fmt::format("[{}]", join(parts, ", "));
}

}  // namespace

std::string to_string(const Kernel& k) {
  std::string text = fmt::format("kernel {} rows {}", k.name, extents_text(k, 0, k.kept));
  auto out = std::back_inserter(text);
  if (k.kept != k.outer) fmt::format_to(out, " accumulate {}", extents_text(k, k.kept, k.outer));
  fmt::format_to(out, " row {}", extents_text(k, k.outer, k.extents.size()));
  if (k.chunks != 1) fmt::format_to(out, " chunks {}", k.chunks);
  fmt::format_to(out, " {{\n");
  for (std::size_t a = 0; a < k.arguments.size(); ++a) {
    const Argument& g = k.arguments[a];
    fmt::format_to(out, "  a{} : {} {}", a, role_name(g.role), name(g.dtype));
    if (g.role == ArgumentRole::Local) fmt::format_to(out, "[{}]", g.elements);
    fmt::format_to(out, "\n");
  }
  for (std::size_t n = 0; n < k.accumulators.size(); ++n) {
    const Accumulator& acc = k.accumulators[n];
    if (!acc.running) continue;
    fmt::format_to(out, "  n{} : {}{} over rows {} in a{}\n", n, acc.exclusive ? "exclusive " : "",
                   reduce_name(acc.kind), name(acc.dtype), acc.local);
  }
  for (const Stage& s : k.stages) {
    fmt::format_to(out, "  {}:\n", s.per_element ? "each element" : "once");
    for (const Reg r : s.code) {
      const Instr& i = k.code[static_cast<std::size_t>(r)];
      fmt::format_to(out, "    r{} = {} : {}\n", r, right_side(i), name(i.dtype));
    }
    for (const Store& st : s.stores) {
      fmt::format_to(out, "    store r{} -> {}\n", st.value,
                     place(st.access, argument_name(st.access.argument)));
    }
    for (const std::int32_t m : s.reductions) {
      const Reduction& red = k.reductions[static_cast<std::size_t>(m)];
      fmt::format_to(out, "    m{} = {} r{} : {}\n", m, reduce_name(red.kind), red.value,
                     name(red.dtype));
    }
    for (const std::int32_t m : s.accumulators) {
      const Accumulator& acc = k.accumulators[static_cast<std::size_t>(m)];
      fmt::format_to(out, "    {} over rows r{} : {} in a{} -> a{}\n", reduce_name(acc.kind),
                     acc.value, name(acc.dtype), acc.local, acc.argument);
    }
  }
  text += "}\n";
  return text;
}

}  // namespace ricci::loop
