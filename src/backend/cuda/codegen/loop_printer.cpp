#include "backend/cuda/codegen/loop_printer.h"

#include <algorithm>

#include "ricci/support/text.h"

#include "backend/cuda/codegen/expression.h"
#include "backend/cuda/codegen/mapping.h"
#include "backend/cuda/codegen/prelude.h"

namespace ricci::cuda {
namespace {

// Rows are fetched as many trips ahead as memory takes to answer, where the trips are short.
int trips_ahead(const loop::WrittenLoop& loop) {
  constexpr std::size_t FewItems = 24;
  if (loop.plan.xs.empty() || loop.condition || !loop.plan.most_trips) return 1;
  return loop.body.items.size() <= FewItems ? 4 : 2;
}

}  // namespace

LoopPrinter::LoopPrinter(const loop::WrittenLoop& loop, std::string name)
    : loop_(loop),
      plan_(loop.plan),
      name_(std::move(name)),
      arrays_(loop),
      threads_(arrays_.threads()),
      ahead_(trips_ahead(loop)) {}

KernelText LoopPrinter::run() {
  print_constants('b');
  if (loop_.condition) print_constants('c');
  print_signature();
  print_memory();
  print_hoisted('b');
  if (loop_.condition) print_hoisted('c');
  print_start();
  print_ahead();
  print_trips();
  print_end();
  text_.close();
  out_.name = name_;
  out_.threads = threads_;
  out_.text = with_prelude(text_.str());
  return std::move(out_);
}

// To the bit.
void LoopPrinter::print_constants(char which) {
  const loop::WrittenBody& of = arrays_.body(which);
  for (std::size_t s = 0; s < of.storages.size(); ++s) {
    const loop::Storage& storage = of.storages[s];
    if (!storage.constant) continue;
    Strings numbers;
    const Tensor whole = storage.constant->contiguous();
    const std::span<const std::byte> bytes = whole.bytes();
    const auto size = static_cast<std::size_t>(size_of(storage.dtype));
    for (std::size_t i = 0; i < bytes.size(); i += size) {
      std::uint64_t word = 0;
      for (std::size_t k = size; k-- > 0;) {
        word = (word << 8) | static_cast<std::uint64_t>(bytes[i + k]);
      }
      numbers.push_back(fmt::format("{:#x}{}", word, size == 8 ? "ull" : "u"));
    }
    const char* type = size == 8   ? "u64"
                       : size == 4 ? "unsigned"
                       : size == 2 ? "unsigned short"
                                   : "u8";
    text_.line("__device__ const {} {}_{}{}[] = {{{}}};", type, name_, which, s,
               numbers.empty() ? "0" : join(numbers, ", "));
  }
}

void LoopPrinter::print_signature() {
  text_.line("// a loop: {}", loop::functions_of(loop_.body));
  text_.line("extern \"C\" __global__ void __launch_bounds__({})", threads_);
  Strings parameters;
  for (std::int32_t k = 0; k < loop_operands(plan_); ++k) {
    parameters.push_back(fmt::format("const void* x{}", k));
  }
  for (std::int32_t r = 0; r < loop_results(plan_); ++r) {
    parameters.push_back(fmt::format("void* y{}", r));
  }
  out_.pointers = parameters.size();
  parameters.emplace_back("void* scratch");
  parameters.emplace_back("ricci_fault* fault");
  parameters.emplace_back("unsigned origin");
  text_.open("{}({})", name_, join(parameters, ", "));
  text_.add("const int t = threadIdx.x;");
}

// Names for what lies in memory.
void LoopPrinter::print_memory() {
  const std::int64_t bytes = arrays_.memory_bytes();
  if (bytes > MostSharedBytes) {
    out_.scratch_bytes = bytes;
    text_.add("unsigned char* const room = (unsigned char*)scratch;");
  } else if (bytes > 0) {
    out_.shared_bytes = static_cast<std::int32_t>(bytes);
    text_.add("extern __shared__ __align__(16) unsigned char shared_memory[];");
    text_.add("unsigned char* const room = shared_memory;");
  }
  for (const char which : {'b', 'c'}) {
    if (which == 'c' && !loop_.condition) continue;
    const loop::WrittenBody& of = arrays_.body(which);
    for (std::size_t s = 0; s < of.storages.size(); ++s) {
      const LoopArray a{which, static_cast<loop::StorageId>(s)};
      if (arrays_.canonical(a) != a) continue;
      const ArrayPlace& p = arrays_.place(a);
      const char* type = stored_type(p.dtype);
      if (of.storages[s].constant) {
        text_.line("const {0}* const {1}_given = (const {0}*){2}_{1};", type, array(a), name_);
      } else if (p.in_memory && p.kind != ArrayPlace::Kind::Given) {
        text_.line("{0}* const {1}_all = ({0}*)(room + {2});", type, array(a), p.offset);
      }
    }
  }
  for (std::size_t k = 0; k < plan_.wholes.size(); ++k) {
    const LoopArray a{'b', loop_.body.inputs[plan_.carries.size() + k]};
    text_.line("const {0}* const {1}_given = (const {0}*)x{2};",
               stored_type(arrays_.place(a).dtype), array(a), plan_.wholes[k]);
  }
}

// What stays the same from trip to trip is read once.
void LoopPrinter::print_hoisted(char which) {
  int left = threads_ <= 256 ? 96 : 48;  // registers
  for (const Item& item : arrays_.body(which).items) {
    for (std::size_t k = 0; k < item.reads.size(); ++k) {
      const int count = hoisted_registers(which, item, k);
      const DType dtype = loop::read_dtype(arrays_.body(which), item.reads[k]);
      const int words = count * (size_of(dtype) == 8 ? 2 : 1);
      if (count == 0 || words > left) continue;
      left -= words;
      const std::string name = hoisted_name(which, item, k);
      const bool total = LoopArrays::is_total(item);
      const bool deep = !total && item.kind == Item::Kind::Product;
      const std::int64_t width = total ? loop::element_count(item.dims) : LoopArrays::width(item);
      const int turns = arrays_.turns(width);
      const std::string many = turns > 1 ? fmt::format("[{}]", turns) : "";
      text_.line("{} {}{}{};", held_type(dtype), name, many,
                 deep ? fmt::format("[{}]", item.dims[1]) : "");
      for_turns(width, [&] {
        const std::string lane = name + (turns > 1 ? "[q]" : "");
        if (deep) {
          text_.line("const int row = n / {0}, column = n % {0};", item.dims[2]);
          text_.add("#pragma unroll");
          text_.line("for (int k = 0; k < {}; ++k) {}[k] = {};", item.dims[1], lane,
                     value(which, item, k, k == 0 ? Strings{"row", "k"} : Strings{"k", "column"}));
          return;
        }
        Strings indices = k == 0 ? Strings{"0", "n"} : Strings{"n", "0"};
        if (item.kind != Item::Kind::Product) indices = print_indices("n", item.dims);
        text_.line("{} = {};", lane, value(which, item, k, indices));
      });
      hoisted_.insert(name);
    }
  }
}

std::string LoopPrinter::row_text(DType dtype, const std::string& array, const loop::RowWalk& rows,
                                  const std::string& n, std::int64_t length) const {
  const std::string row =
      rows.step == 1 && rows.first == 0
          ? n
          : fmt::format("({} + {} * {})", integer_text(rows.first), integer_text(rows.step), n);
  return fmt::format("(({}*){} + {} * {})", stored_type(dtype), array, row, length);
}

void LoopPrinter::print_start() {
  for (std::size_t k = 0; k < plan_.carries.size(); ++k) {
    const LoopArray a{'b', loop_.body.inputs[k]};
    const ArrayPlace& p = arrays_.place(a);
    declare('b', a.id);
    const std::string from = from_stored(
        p.dtype,
        fmt::format("((const {}*)x{})[n]", stored_type(p.dtype), plan_.carries[k].operand));
    for_turns(p.elements, [&] {
      if (p.registers > 0) text_.line("{} = {};", reg(a), from);
      if (p.in_memory) text_.line("{}_all[n] = {};", array(a), to_stored(p.dtype, from));
    });
    if (p.in_memory) written_.insert(array(a));
    const auto& kept = plan_.carries[k].kept;
    if (kept && !kept->pace.every_trip()) {
      text_.line("i64 count{0} = {1}, kept{0} = 0;", k, integer_text(kept->pace.start));
    }
  }
  if (!written_.empty()) wait();
}

// The rows of the first trips.
void LoopPrinter::print_ahead() {
  for (std::size_t k = 0; k < plan_.xs.size(); ++k) {
    const LoopArray a{'b', loop_.body.inputs[plan_.carries.size() + plan_.wholes.size() + k]};
    const ArrayPlace& p = arrays_.place(a);
    if (p.registers == 0) continue;
    const std::string many = p.registers > 1 ? fmt::format("[{}]", p.registers) : "";
    text_.line("{} {}_ahead[{}]{};", held_type(p.dtype), array(a), ahead_, many);
    text_.add("#pragma unroll");
    text_.open("for (int u = 0; u < {}; ++u)", ahead_);
    if (!plan_.most_trips || *plan_.most_trips < ahead_) {
      text_.line("if (u >= {}) break;", integer_text(plan_.most_trips.value_or(1)));
    }
    const std::string from = row_text(p.dtype, fmt::format("x{}", plan_.xs[k].array),
                                      plan_.xs[k].rows, "i64(u)", p.elements);
    for_turns(p.elements, [&] {
      text_.line("{}_ahead[u]{} = {};", array(a), p.registers > 1 ? "[q]" : "",
                 from_stored(p.dtype, from + "[n]"));
    });
    text_.close();
  }
}

// The rows of this trip, and of one that is to come.
void LoopPrinter::print_rows() {
  for (std::size_t k = 0; k < plan_.xs.size(); ++k) {
    const LoopArray a{'b', loop_.body.inputs[plan_.carries.size() + plan_.wholes.size() + k]};
    const ArrayPlace& p = arrays_.place(a);
    const std::string from = fmt::format("x{}", plan_.xs[k].array);
    if (p.registers == 0) {
      text_.line("const {}* const {}_row = {};", stored_type(p.dtype), array(a),
                 row_text(p.dtype, from, plan_.xs[k].rows, "trip", p.elements));
      continue;
    }
    declare('b', a.id);
    const std::string next =
        row_text(p.dtype, from, plan_.xs[k].rows, fmt::format("(trip + {})", ahead_), p.elements);
    if (p.in_memory) before_write(a);
    const std::string more = plan_.most_trips ? fmt::format("if (trip + {} < {}) ", ahead_,
                                                            integer_text(*plan_.most_trips))
                                              : "";
    for_turns(p.elements, [&] {
      const std::string lane = fmt::format("{}_ahead[{}]{}", array(a), ahead_ > 1 ? "u" : "0",
                                           p.registers > 1 ? "[q]" : "");
      text_.line("{} = {};", reg(a), lane);
      text_.line("{}{} = {};", more, lane, from_stored(p.dtype, next + "[n]"));
      if (p.in_memory) text_.line("{}_all[n] = {};", array(a), to_stored(p.dtype, reg(a)));
    });
  }
}

// All threads leave a loop together that the host wants to end, or that has met a fault. A loop
// that is soon over is not asked.
void LoopPrinter::print_look(const std::string& trip, int first) {
  constexpr int Between = 1024;  // trips: one is not over before the word has come from the host
  if (plan_.most_trips && *plan_.most_trips <= Between) return;
  text_.line("if ({} % {} == {} && {}t == 0 && must_end(fault))) break;", trip, Between, first,
             threads_ == 32 ? "__any_sync(0xffffffffu, " : "__syncthreads_or(");
}

void LoopPrinter::print_trips() {
  const std::string most = plan_.most_trips ? integer_text(*plan_.most_trips) : "";
  if (ahead_ > 1) {
    text_.open("for (i64 trips = 0; trips < {}; trips += {})", most, ahead_);
    print_look("trips", 1024 - ahead_);
    text_.add("#pragma unroll");
    text_.open("for (int u = 0; u < {}; ++u)", ahead_);
    text_.add("const i64 trip = trips + u;");
    if (*plan_.most_trips % ahead_ != 0) text_.line("if (trip >= {}) break;", most);
    print_trip();
    text_.close();
    return text_.close();
  }
  text_.add("i64 trip = 0;");
  text_.open("for (;{}; ++trip)", most.empty() ? "" : fmt::format(" trip < {}", most));
  print_look("trip", 1023);
  if (loop_.condition) print_condition();
  print_trip();
  text_.close();
}

void LoopPrinter::print_trip() {
  print_rows();
  print_items('b');
  for (std::size_t k = 0; k < plan_.carries.size(); ++k) print_kept(k);
  for (std::size_t k = 0; k < plan_.ys.size(); ++k) {
    const auto& [result, rows] = plan_.ys[k];
    if (result < 0) continue;
    const LoopArray a{'b', loop_.body.outputs[plan_.carries.size() + k]};
    const ArrayPlace& p = arrays_.place(a);
    copy_out(a.id, row_text(p.dtype, fmt::format("y{}", result), rows, "trip", p.elements));
  }
  for (std::size_t k = 0; k < plan_.carries.size(); ++k) carry_over(k);
  if (!written_.empty() || !read_.empty()) wait();
}

// An array to memory of its size.
void LoopPrinter::copy_out(loop::StorageId s, const std::string& to) {
  const LoopArray a{'b', s};
  const ArrayPlace& p = arrays_.place(a);
  if (p.registers == 0) before_read(a);
  for_turns(p.elements, [&] {
    text_.line("{}{}[n] = {};", p.elements == 1 ? "if (t == 0) " : "", to,
               p.registers > 0 ? to_stored(p.dtype, reg(a)) : array(a) + "_all[n]");
  });
}

void LoopPrinter::carry_over(std::size_t k) {
  const LoopArray from{'b', loop_.body.outputs[k]};
  const LoopArray to{'b', loop_.body.inputs[k]};
  const ArrayPlace& p = arrays_.place(from);
  const ArrayPlace& q = arrays_.place(to);
  if (p.registers == 0) before_read(from);
  if (q.in_memory) before_write(to);
  for_turns(p.elements, [&] {
    const std::string value =
        p.registers > 0 ? reg(from) : from_stored(p.dtype, array(from) + "_all[n]");
    if (q.registers > 0) text_.line("{} = {};", reg(to), value);
    if (q.in_memory) text_.line("{}_all[n] = {};", array(to), to_stored(q.dtype, value));
  });
}

void LoopPrinter::print_kept(std::size_t k) {
  const std::optional<loop::KeptRows>& kept = plan_.carries[k].kept;
  if (!kept) return;
  const LoopArray a{'b', kept->entering ? loop_.body.inputs[k] : loop_.body.outputs[k]};
  const ArrayPlace& p = arrays_.place(a);
  const std::string to = fmt::format("y{}", kept->result);
  if (kept->pace.every_trip()) {
    return copy_out(a.id, row_text(p.dtype, to, kept->rows, "trip", p.elements));
  }
  if (p.registers == 0) before_read(a);  // all threads wait, kept or not
  text_.line("count{} += {};", k, integer_text(kept->pace.add));
  text_.open("if (count{} >= {})", k, integer_text(kept->pace.limit));
  text_.line("count{} -= {};", k, integer_text(kept->pace.limit));
  copy_out(a.id, row_text(p.dtype, to, kept->rows, fmt::format("kept{}", k), p.elements));
  text_.line("++kept{};", k);
  text_.close();
}

void LoopPrinter::print_condition() {
  print_items('c');
  const LoopArray flag{'c', loop_.condition->outputs[0]};
  const ArrayPlace& p = arrays_.place(flag);
  if (p.elements == 1) {
    text_.line("if (!{}) break;", nonzero_text(p.dtype, reg(flag)));
    return;
  }
  if (p.elements == 0) return;  // none of nothing is false
  before_read(flag);
  text_.add("bool goes_on = true;");
  text_.line("for (int n = 0; n < {}; ++n) goes_on = goes_on && {};", p.elements,
             nonzero_text(p.dtype, from_stored(p.dtype, array(flag) + "_all[n]")));
  text_.add("if (!goes_on) break;");
}

void LoopPrinter::print_end() {
  for (std::size_t k = 0; k < plan_.carries.size(); ++k) {
    const std::int32_t last = plan_.carries[k].last;
    if (last < 0) continue;
    const ArrayPlace& p = arrays_.place({'b', loop_.body.inputs[k]});
    copy_out(loop_.body.inputs[k], fmt::format("(({}*)y{})", stored_type(p.dtype), last));
  }
  if (plan_.trip_count < 0) return;
  text_.line("if (t == 0) *(int*)y{} = int({});", plan_.trip_count,
             ahead_ > 1 ? integer_text(*plan_.most_trips) : "trip");
}

std::int32_t loop_operands(const loop::LoopPlan& plan) {
  std::int32_t last = -1;
  for (const loop::Carry& c : plan.carries) last = std::max(last, c.operand);
  for (const std::int32_t w : plan.wholes) last = std::max(last, w);
  for (const loop::RowPort& x : plan.xs) last = std::max(last, x.array);
  return last + 1;
}

std::int32_t loop_results(const loop::LoopPlan& plan) {
  std::int32_t last = plan.trip_count;
  for (const loop::Carry& c : plan.carries) {
    last = std::max({last, c.last, c.kept ? c.kept->result : -1});
  }
  for (const loop::RowPort& y : plan.ys) last = std::max(last, y.array);
  return last + 1;
}

KernelText print_loop(const loop::WrittenLoop& loop, const std::string& name) {
  return LoopPrinter(loop, name).run();
}

}  // namespace ricci::cuda
