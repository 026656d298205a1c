// What fills the arrays of a written-out loop, item by item.
#include <algorithm>

#include "ricci/support/error.h"
#include "ricci/support/text.h"

#include "backend/cuda/codegen/expression.h"
#include "backend/cuda/codegen/loop_printer.h"

namespace ricci::cuda {
namespace {

// As a factor: `k + 1` would be multiplied in part.
std::string factor_text(const std::string& index) {
  return index.find(' ') == std::string::npos ? index : fmt::format("({})", index);
}

std::string place_text(const loop::Layout& layout, const std::vector<std::string>& indices) {
  std::vector<std::string> parts;
  for (std::size_t a = 0; a < indices.size(); ++a) {
    const std::int64_t stride = layout.strides[a];
    if (stride == 0) continue;
    parts.push_back(stride == 1
                        ? indices[a]
                        : fmt::format("{} * {}", integer_text(stride), factor_text(indices[a])));
  }
  if (layout.offset != 0 || parts.empty()) parts.push_back(integer_text(layout.offset));
  return join(parts, " + ");
}

std::string instruction_text(const loop::Instr& i, DType dtype,
                             const std::vector<std::string>& in) {
  switch (i.code) {
    case loop::Code::Copy: return in[0];
    case loop::Code::Cast: return cast_text(dtype, i.dtype, in[0]);
    case loop::Code::Unary: return unary_text(i.unary(), dtype, in[0]);
    case loop::Code::Binary: return binary_text(i.binary(), dtype, in[0], in[1]);
    case loop::Code::Compare: return compare_text(i.compare(), in[0], in[1]);
    case loop::Code::Select:
      return fmt::format("({} ? {} : {})", nonzero_text(dtype, in[0]), in[1], in[2]);
    default: throw InternalError("a written-out loop has an instruction that is none");
  }
}

}  // namespace

void LoopPrinter::wait() {
  text_.add(threads_ == 32 ? "__syncwarp();" : "__syncthreads();");
  written_.clear();
  read_.clear();
}

void LoopPrinter::before_read(LoopArray a) {
  const std::string name = array(a);
  if (written_.contains(name)) wait();
  read_.insert(name);
}

void LoopPrinter::before_write(LoopArray a) {
  const std::string name = array(a);
  if (read_.contains(name)) wait();
  written_.insert(name);
}

std::string LoopPrinter::array(LoopArray a) const {
  const LoopArray c = arrays_.canonical(a);
  return fmt::format("{}{}", c.which, c.id);
}

std::string LoopPrinter::reg(LoopArray a) const {
  return array(a) + (arrays_.place(a).registers > 1 ? "[q]" : "");
}

bool LoopPrinter::reads_memory(char which, const Item& item, const loop::Read& read) const {
  const auto* stored = std::get_if<loop::StoredRead>(&read);
  if (stored == nullptr) return false;
  const ArrayPlace& p = arrays_.place({which, stored->storage});
  return p.in_memory && !(arrays_.is_aligned(which, item, read) && p.registers > 0);
}

void LoopPrinter::declare(char which, loop::StorageId s) {
  const ArrayPlace& p = arrays_.place({which, s});
  if (p.registers == 0) return;
  text_.line("{} {}{};", held_type(p.dtype), array({which, s}),
             p.registers > 1 ? fmt::format("[{}]", p.registers) : "");
}

void LoopPrinter::for_turns(std::int64_t elements, const std::function<void()>& print) {
  if (elements == 0) return;
  const int turns = arrays_.turns(elements);
  if (elements == 1) {
    text_.open();
    text_.add("const int n = 0;");
  } else if (turns == 0) {
    text_.open("for (int n = t; n < {}; n += {})", elements, threads_);
  } else if (turns == 1) {
    if (elements < threads_) {
      text_.open("if (t < {})", elements);
    } else {
      text_.open();
    }
    text_.add("const int n = t;");
  } else {
    text_.add("#pragma unroll");
    text_.open("for (int q = 0; q < {}; ++q)", turns);
    text_.line("const int n = q * {} + t;", threads_);
    if (elements % threads_ != 0) text_.line("if (n >= {}) break;", elements);
  }
  print();
  text_.close();
}

LoopPrinter::Strings LoopPrinter::print_indices(const std::string& number,
                                                const std::vector<std::int64_t>& dims) {
  if (dims.size() == 1) return {number};
  Strings names(dims.size());
  const auto wide = [](std::int64_t d) { return d != 1; };
  if (std::ranges::count_if(dims, wide) <= 1) {
    for (std::size_t a = 0; a < dims.size(); ++a) names[a] = dims[a] == 1 ? "0" : number;
    return names;
  }
  text_.line("unsigned rest = {};", number);
  for (std::size_t a = dims.size(); a-- > 0;) {
    names[a] = fmt::format("i{}", a);
    text_.line("const int i{} = int(rest % {}u);", a, dims[a]);
    if (a > 0) text_.line("rest /= {}u;", dims[a]);
  }
  return names;
}

std::string LoopPrinter::hoisted_name(char which, const Item& item, std::size_t k) const {
  return fmt::format("{}g{}_{}", which == 'b' ? "" : "c", &item - arrays_.body(which).items.data(),
                     k);
}

// What a thread needs to keep what it reads of an array that stays the same; 0: it does not.
int LoopPrinter::hoisted_registers(char which, const Item& item, std::size_t k) const {
  const auto* stored = std::get_if<loop::StoredRead>(&item.reads[k]);
  if (stored == nullptr) return 0;
  const ArrayPlace& p = arrays_.place({which, stored->storage});
  if (p.kind != ArrayPlace::Kind::Given) return 0;
  const bool total = LoopArrays::is_total(item);
  const int turns = arrays_.turns(total ? loop::element_count(item.dims) : LoopArrays::width(item));
  std::int64_t each = 1;
  if (!total && item.kind == Item::Kind::Product) each = item.dims[1];
  if (!total && item.kind == Item::Kind::Reduction) return 0;
  constexpr std::int64_t Most = 64;
  return each <= Most ? static_cast<int>(turns * each) : 0;
}

// `step` counts along the axis of a product.
std::string LoopPrinter::value(char which, const Item& item, std::size_t k, const Strings& indices,
                               const std::string& step) {
  const loop::Read& read = item.reads[k];
  if (const auto* splat = std::get_if<loop::SplatRead>(&read)) {
    return constant_text(splat->dtype, splat->number);
  }
  if (const auto* sequence = std::get_if<loop::SequenceRead>(&read)) {
    return cast_text(DType::I64, sequence->dtype,
                     fmt::format("i64({})", place_text(sequence->layout, indices)));
  }
  const auto& stored = std::get<loop::StoredRead>(read);
  const LoopArray a{which, stored.storage};
  const ArrayPlace& p = arrays_.place(a);
  const std::string hoisted = hoisted_name(which, item, k);
  if (hoisted_.contains(hoisted)) {
    const bool total = LoopArrays::is_total(item);
    const int turns =
        arrays_.turns(total ? loop::element_count(item.dims) : LoopArrays::width(item));
    return hoisted + (turns > 1 ? "[q]" : "") + (step.empty() ? "" : fmt::format("[{}]", step));
  }
  if (p.kind != ArrayPlace::Kind::Given && !reads_memory(which, item, read) && p.registers > 0) {
    return reg(a);
  }
  const bool row = p.kind == ArrayPlace::Kind::Row && !p.in_memory;
  const char* where = p.kind == ArrayPlace::Kind::Given ? "_given" : row ? "_row" : "_all";
  return from_stored(p.dtype,
                     fmt::format("{}{}[{}]", array(a), where, place_text(stored.layout, indices)));
}

void LoopPrinter::store(char which, const Item& item, const std::string& place,
                        const std::string& value) {
  const LoopArray a{which, item.storage};
  const ArrayPlace& p = arrays_.place(a);
  if (p.registers > 0) text_.line("{} = {};", reg(a), value);
  if (!p.in_memory) return;
  text_.line("{}_all[{}] = {};", array(a), place,
             to_stored(p.dtype, p.registers > 0 ? reg(a) : value));
}

// Would threads not have to wait for each other before it?
bool LoopPrinter::is_free(char which, const Item& item) const {
  const auto waits = [&](const loop::Read& read) {
    return reads_memory(which, item, read) &&
           written_.contains(array({which, std::get<loop::StoredRead>(read).storage}));
  };
  return std::ranges::none_of(item.reads, waits) && !read_.contains(array({which, item.storage}));
}

void LoopPrinter::take(char which, const Item& item) {
  for (const loop::Read& read : item.reads) {
    if (reads_memory(which, item, read)) {
      before_read({which, std::get<loop::StoredRead>(read).storage});
    }
  }
  if (arrays_.place({which, item.storage}).in_memory) before_write({which, item.storage});
}

// Items of one width whose threads need not wait in between are printed together.
void LoopPrinter::print_items(char which) {
  const std::span<const Item> items = arrays_.body(which).items;
  std::set<loop::StorageId> declared;
  for (std::size_t first = 0; first < items.size();) {
    take(which, items[first]);
    std::size_t last = first + 1;
    const auto joins = [&](const Item& item) {
      return !LoopArrays::is_total(items[first]) && !LoopArrays::is_total(item) &&
             LoopArrays::width(item) == LoopArrays::width(items[first]) && is_free(which, item);
    };
    while (last < items.size() && joins(items[last])) take(which, items[last++]);
    for (std::size_t n = first; n < last; ++n) {
      if (declared.insert(items[n].storage).second) declare(which, items[n].storage);
    }
    print_together(which, items.subspan(first, last - first));
    first = last;
  }
}

void LoopPrinter::print_together(char which, std::span<const Item> items) {
  if (LoopArrays::is_total(items[0])) return print_total(which, items[0]);
  for_turns(LoopArrays::width(items[0]), [&] {
    for (const Item& item : items) print_item(which, item);
  });
}

void LoopPrinter::print_item(char which, const Item& item) {
  switch (item.kind) {
    case Item::Kind::Pointwise: return print_pointwise(which, item);
    case Item::Kind::Reduction: return print_reduction(which, item);
    case Item::Kind::Product: return print_product(which, item);
  }
}

void LoopPrinter::print_pointwise(char which, const Item& item) {
  const auto wide = [](std::int64_t d) { return d != 1; };
  const bool block = std::ranges::count_if(item.dims, wide) > 1;
  if (block) text_.open();
  const Strings indices = print_indices("n", item.dims);
  Strings in;
  for (std::size_t k = 0; k < item.reads.size(); ++k) in.push_back(value(which, item, k, indices));
  const DType dtype = loop::read_dtype(arrays_.body(which), item.reads[0]);
  store(which, item, place_text(item.to, indices), instruction_text(item.instr, dtype, in));
  if (block) text_.close();
}

void LoopPrinter::print_reduction(char which, const Item& item) {
  std::vector<std::int64_t> kept;
  for (std::size_t a = 0; a < item.dims.size(); ++a) {
    if (!item.reduced[a]) kept.push_back(item.dims[a]);
  }
  const DType dtype = loop::read_dtype(arrays_.body(which), item.reads[0]);
  const DType held_in = reduced_in(item.reduce, dtype);
  text_.open();
  const Strings outer = print_indices("n", kept);
  Strings indices;
  std::size_t next = 0;
  int loops = 0;
  text_.line("{} total = {};", held_type(held_in), reduction_of_nothing(item.reduce, held_in));
  for (std::size_t a = 0; a < item.dims.size(); ++a) {
    if (!item.reduced[a]) {
      indices.push_back(outer[next++]);
      continue;
    }
    indices.push_back(fmt::format("k{}", a));
    text_.open("for (int k{0} = 0; k{0} < {1}; ++k{0})", a, item.dims[a]);
    ++loops;
  }
  const std::string x = cast_text(dtype, held_in, value(which, item, 0, indices));
  text_.line("total = {};", combined_text(item.reduce, dtype, "total", x));
  for (; loops > 0; --loops) text_.close();
  store(which, item, "n", cast_text(held_in, item.instr.dtype, "total"));
  text_.close();
}

// Four sums at a time: each waits less for itself.
void LoopPrinter::print_product(char which, const Item& item) {
  const std::int64_t depth = item.dims[1];
  const char* type = held_type(item.instr.dtype);
  const char* fma = item.instr.dtype == DType::F64 ? "fma" : "fmaf";
  const std::string row = item.dims[0] == 1 ? "0" : fmt::format("n / {}", item.dims[2]);
  const std::string column = item.dims[0] == 1 ? "n" : fmt::format("n % {}", item.dims[2]);
  const auto term = [&](const std::string& k) {
    return fmt::format("{}, {}", value(which, item, 0, {row, k}, k),
                       value(which, item, 1, {k, column}, k));
  };
  text_.open();
  text_.line("{} sum[4] = {{0, 0, 0, 0}};", type);
  text_.line("#pragma unroll{}", depth <= 64 ? "" : " 8");
  text_.open("for (int k = 0; k < {}; k += 4)", depth - depth % 4);
  for (int j = 0; j < 4; ++j) {
    const std::string k = j == 0 ? "k" : fmt::format("k + {}", j);
    text_.line("sum[{0}] = {1}({2}, sum[{0}]);", j, fma, term(k));
  }
  text_.close();
  for (std::int64_t k = depth - depth % 4; k < depth; ++k) {
    text_.line("sum[{0}] = {1}({2}, sum[{0}]);", k % 4, fma, term(std::to_string(k)));
  }
  store(which, item, "n", "((sum[0] + sum[1]) + (sum[2] + sum[3]))");
  text_.close();
}

// One number, which all threads have in the end.
void LoopPrinter::print_total(char which, const Item& item) {
  const bool product = item.kind == Item::Kind::Product;
  const DType dtype = loop::read_dtype(arrays_.body(which), item.reads[0]);
  const ReduceKind kind = product ? ReduceKind::Sum : item.reduce;
  const DType held_in = reduced_in(kind, dtype);
  text_.open();
  text_.line("{} total = {};", held_type(held_in), reduction_of_nothing(kind, held_in));
  const std::int64_t count = loop::element_count(item.dims);
  const auto add = [&] {
    if (product) {
      text_.line("total = {}({}, {}, total);", dtype == DType::F64 ? "fma" : "fmaf",
                 value(which, item, 0, {"0", "n"}), value(which, item, 1, {"n", "0"}));
      return;
    }
    const Strings indices = print_indices("n", item.dims);
    const std::string x = cast_text(dtype, held_in, value(which, item, 0, indices));
    text_.line("total = {};", combined_text(kind, dtype, "total", x));
  };
  for_turns(count, add);
  if (count > 1 && threads_ == 32) {
    text_.line("total = team_total<32>(0xffffffffu, {}(), total);", combiner(kind));
  } else if (count > 1) {
    text_.line("__shared__ {} parts{}[{}];", held_type(held_in), parts_, threads_ / 32);
    text_.line("total = block_total<{}>(parts{}, {}(), total);", threads_ / 32, parts_,
               combiner(kind));
    read_.insert(fmt::format("parts{}", parts_++));
  }
  text_.line("{} = {};", reg({which, item.storage}), cast_text(held_in, item.instr.dtype, "total"));
  text_.close();
}

}  // namespace ricci::cuda
