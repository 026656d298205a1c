#include "backend/cuda/codegen/kernel_printer.h"

#include <algorithm>

#include "ricci/support/error.h"
#include "ricci/support/text.h"

#include "backend/cuda/codegen/coarse.h"
#include "backend/cuda/codegen/expression.h"
#include "backend/cuda/codegen/prelude.h"
#include "support/align.h"
#include "type/small_dtype.h"

namespace ricci::cuda {
namespace {

constexpr std::int64_t MostBusyBlocks = 132 * 4;  // where each needs room of its own

std::string minimum(const std::string& a, const std::string& b) {
  return fmt::format("({0} < {1} ? {0} : {1})", a, b);
}

}  // namespace

KernelPrinter::KernelPrinter(const loop::Kernel& kernel, std::string name)
    : KernelPrinter(kernel, std::move(name), map_kernel(kernel)) {}

KernelPrinter::KernelPrinter(const loop::Kernel& kernel, std::string name, Mapping mapping)
    : k_(kernel), name_(std::move(name)), m_(std::move(mapping)), coarse_(find_coarse(kernel)) {
  find_varying();
}

KernelText KernelPrinter::run() {
  print_all();
  out_.text = with_prelude(text_.str());
  return std::move(out_);
}

KernelText KernelPrinter::run_as_part() {
  block_ = "block";
  print_all();
  out_.text = text_.str();
  return std::move(out_);
}

KernelText KernelPrinter::run_at_point() {
  check_internal(m_.kind == Mapping::Kind::Points, "what is done at a point needs others");
  at_point_ = true;
  print_all();
  out_.text = text_.str();
  return std::move(out_);
}

void KernelPrinter::print_all() {
  place_locals();
  print_signature();
  switch (m_.kind) {
    case Mapping::Kind::Points: print_points(); break;
    case Mapping::Kind::Tiles: print_tiles(); break;
    case Mapping::Kind::Columns: print_columns(); break;
    case Mapping::Kind::Rows: print_rows(); break;
  }
  text_.close();
  out_.name = name_;
  out_.blocks = m_.blocks;
  out_.threads = m_.threads;
  out_.scratch_bytes = scratch_per_team_ * m_.blocks * m_.teams();
}

// Rows that wait and totals that do not fit in registers: in shared memory, or in the scratch.
void KernelPrinter::place_locals() {
  if (!is_rows() || m_.packs != 0) return;
  if (m_.in_shared) {
    for (const Held& h : m_.held) {
      out_.shared_bytes += static_cast<std::int32_t>(aligned(k_.row_elements() * size_of(h.dtype)));
    }
    return;
  }
  for (const loop::Argument& a : k_.arguments) {
    if (a.role == loop::ArgumentRole::Local) {
      scratch_per_team_ += aligned(a.elements * size_of(a.dtype));
    }
  }
  if (scratch_per_team_ == 0) return;
  const std::int64_t block_bytes = scratch_per_team_ * m_.teams();
  if (block_bytes <= MostSharedBytes) {
    out_.shared_bytes = static_cast<std::int32_t>(block_bytes);
    scratch_per_team_ = 0;
    return;
  }
  loops_ = m_.blocks > MostBusyBlocks;
  m_.blocks = std::min(m_.blocks, MostBusyBlocks);
}

void KernelPrinter::print_signature() {
  const bool is_part = at_point_ || std::string_view(block_) == "block";
  // Kernels that do the same are compiled once: those without a name are the same text.
  if (!is_part && !k_.name.empty()) text_.line("// {}", k_.name);
  if (is_part) {
    text_.add("__device__ inline void");
  } else {
    // What shares out the rows of a chunk counts on two blocks.
    const bool two = is_rows() && m_.strips > 1;
    text_.line("extern \"C\" __global__ void __launch_bounds__({}{})", m_.threads,
               two ? ", 2" : "");
  }
  std::vector<std::string> parameters;
  for (std::size_t a = 0; a < k_.arguments.size(); ++a) {
    const loop::Argument& g = k_.arguments[a];
    if (g.role == loop::ArgumentRole::Local) continue;
    parameters.push_back(fmt::format("{}{}* a{}", g.role == loop::ArgumentRole::In ? "const " : "",
                                     stored_type(g.dtype), a));
  }
  out_.pointers = parameters.size();
  parameters.emplace_back("void* scratch");
  parameters.emplace_back("ricci_fault* fault");
  parameters.emplace_back("unsigned origin");
  if (is_part) {
    parameters.emplace_back(at_point_ ? fmt::format("{} point", whole()) : "unsigned block");
  }
  text_.open("{}({})", name_, join(parameters, ", "));
}

void KernelPrinter::print_points() {
  if (!at_point_) {
    text_.line("const {} point = {}({}) * {} + threadIdx.x;", whole(), whole(), block_, m_.threads);
    text_.line("if (point >= {}) return;", integer_text(m_.units));
  }
  print_indices("point", 0, k_.extents.size(), m_.lanes);
  declare_held();
  print_stages();
}

// A warp has eight points along the last axis and four along the other: whichever way an array
// lies, whole sectors of memory are read, and the block uses all of each line.
void KernelPrinter::print_tiles() {
  text_.add("const int t = threadIdx.x;");
  text_.line("{} rest = {};", m_.wide ? "u64" : "unsigned", block_);
  std::string outside;
  for (std::size_t a = k_.extents.size(); a-- > 0;) {
    const bool last = a + 1 == k_.extents.size();
    const bool side = last || a == m_.across;
    const std::int64_t count = side ? (k_.extents[a] + TileSide - 1) / TileSide : k_.extents[a];
    const std::string number = fmt::format("{}(rest % {}u)", whole(), count);
    if (!side) {
      text_.line("const {} i{} = {};", whole(), a, number);
    } else {
      text_.line("const {} i{} = {} * {} + {};", whole(), a, number, TileSide,
                 last ? "t % 8 + t / 32 % 2 * 8" : "t / 8 % 4 + t / 64 * 4");
      if (k_.extents[a] % TileSide != 0) {
        outside += fmt::format("{}i{} >= {}", outside.empty() ? "" : " || ", a, k_.extents[a]);
      }
    }
    if (a > 0) text_.line("rest /= {}u;", count);
  }
  if (!outside.empty()) text_.line("if ({}) return;", outside);
  declare_held();
  print_stages();
}

void KernelPrinter::print_columns() {
  const std::int64_t columns = k_.row_elements() / m_.lanes;
  if (m_.strips > 1) {
    text_.add("const int strip = threadIdx.x / 32, lane = threadIdx.x % 32;");
    text_.line("const bool inside = {}({}) * 32 + lane < {};", whole(), block_,
               integer_text(m_.units));
    text_.line("const {0} column = inside ? {0}({1}) * 32 + lane : 0;", whole(), block_);
  } else {
    text_.line("const {} column = {}({}) * {} + threadIdx.x;", whole(), whole(), block_,
               m_.threads);
    text_.line("if (column >= {}) return;", integer_text(m_.units));
  }
  text_.line("const {} part = column % {};", whole(), columns);
  text_.line("const {} slot = column / {};", whole(), columns);
  print_indices("part", k_.outer, k_.extents.size(), m_.lanes);
  print_chunk_bounds("slot");
  print_row_loop();
  join_strips();
  write_accumulators("slot");
}

void KernelPrinter::print_chunk_bounds(const std::string& slot) {
  const std::int64_t rows = k_.accumulated_rows();
  if (k_.chunks == 1) {
    print_indices(slot, 0, k_.kept, 1);
    text_.line("const {} first = 0, last = {};", whole(), rows);
    return;
  }
  text_.line("const {} kept = {} / {};", whole(), slot, k_.chunks);
  text_.line("const {} chunk = {} % {};", whole(), slot, k_.chunks);
  print_indices("kept", 0, k_.kept, 1);
  const std::int64_t each = rows / k_.chunks;
  const std::int64_t more = rows % k_.chunks;
  text_.line("const {} first = {} * chunk + {};", whole(), each,
             minimum("chunk", std::to_string(more)));
  text_.line("const {} last = first + {} + (chunk < {} ? 1 : 0);", whole(), each, more);
}

// The accumulated rows from `first` to `last`, one after another.
void KernelPrinter::print_row_loop() {
  declare_accumulators();
  const int step = m_.strips;
  const bool running = std::ranges::any_of(
      k_.accumulators, [](const loop::Accumulator& acc) { return acc.running; });
  std::string begin = "first";
  if (step > 1) {
    begin = is_rows() ? fmt::format("first + {}(strip)", whole()) : "inside ? first + strip : last";
  }
  find_next_row();
  if (!ahead_.empty() && step > 1) {
    text_.line("const {} begin = {};", whole(), begin);
    begin = "begin";
  }
  read_first_row(begin);
  if (!is_rows() && !running) text_.add("#pragma unroll 4");
  text_.open("for ({} row = {}; row < last; {})", whole(), begin,
             step > 1 ? fmt::format("row += {}", step) : "++row");
  read_next_row();
  print_indices("row", k_.kept, k_.outer, 1);
  declare_held();
  print_stages();
  end_blocks();
  if (needs_barrier_behind_row()) text_.add("__syncthreads();");
  text_.close();
  join_blocks();
}

// What a team's warps have found of a row is read before that of the next is written: another
// reduction of the row, which all wait for, lies between them.
bool KernelPrinter::needs_barrier_behind_row() const {
  const auto reducing = std::ranges::count_if(
      k_.stages, [](const Stage& stage) { return !stage.reductions.empty(); });
  return is_rows() && m_.team > 32 && reducing == 1;
}

void KernelPrinter::print_team_place() {
  if (m_.strips > 1) {
    text_.line("const int t = threadIdx.x % {0}, strip = threadIdx.x / {0};", m_.team);
    text_.line("{} unit = {};", whole(), block_);
  } else if (m_.team == m_.threads) {
    text_.add("const int t = threadIdx.x;");
    text_.line("{} unit = {};", whole(), block_);
  } else {
    text_.line("const int t = threadIdx.x % {};", m_.team);
    text_.line("{} unit = {}({}) * {} + threadIdx.x / {};", whole(), whole(), block_, m_.teams(),
               m_.team);
  }
  if (m_.team > 1 && m_.team <= 32 && m_.team < m_.threads) {
    const std::string bits = m_.team == 32 ? "0xffffffffu"
                                           : fmt::format("{:#x}u << (threadIdx.x % 32 - t)",
                                                         (std::uint64_t{1} << m_.team) - 1);
    text_.line("const unsigned team = {};", bits);
  }
  if (m_.in_shared) {
    text_.add("extern __shared__ __align__(16) unsigned char shared_memory[];");
    return;
  }
  std::int64_t at = 0;
  const bool shared = out_.shared_bytes != 0;
  if (shared) {
    text_.add("extern __shared__ __align__(16) unsigned char shared_memory[];");
    text_.line("unsigned char* const room = shared_memory + {} * (threadIdx.x / {});",
               out_.shared_bytes / m_.teams(), m_.team);
  } else if (scratch_per_team_ != 0) {
    text_.line("unsigned char* const room = (unsigned char*)scratch + {}LL * unit;",
               scratch_per_team_);
  }
  if (!shared && scratch_per_team_ == 0) return;
  for (std::size_t a = 0; a < k_.arguments.size(); ++a) {
    const loop::Argument& g = k_.arguments[a];
    if (g.role != loop::ArgumentRole::Local) continue;
    text_.line("{0}* const a{1} = ({0}*)(room + {2});", stored_type(g.dtype), a, at);
    at += aligned(g.elements * size_of(g.dtype));
  }
}

void KernelPrinter::print_rows() {
  print_team_place();
  for (const Stage& stage : k_.stages) {
    if (m_.team <= 32) break;
    for (const std::int32_t m : stage.reductions) {
      const loop::Reduction& red = k_.reductions[static_cast<std::size_t>(m)];
      text_.line("__shared__ {} m{}_parts[{}];", held_type(reduced_in(red.kind, red.dtype)), m,
                 m_.team / 32);
      out_.static_bytes += size_of(widened(red.dtype)) * (m_.team / 32);
    }
  }
  if (loops_) {
    text_.open("for (; unit < {}; unit += {})", integer_text(m_.units),
               integer_text(m_.blocks * m_.teams()));
  } else if (m_.units % m_.teams() != 0 || m_.units == 0) {
    text_.line("if (unit >= {}) return;", integer_text(m_.units));
  }
  if (k_.accumulators.empty()) {
    print_indices("unit", 0, k_.outer, 1);
    declare_held();
    print_stages();
  } else {
    print_chunk_bounds("unit");
    print_row_loop();
    join_teams();
    write_accumulators("unit");
  }
  if (loops_) {
    if (m_.team > 32) text_.add("__syncthreads();");
    text_.close();
  }
}

// A number as the indices of axes [from, to), the last one counting fastest, in steps of `unit`.
void KernelPrinter::print_indices(const std::string& number, std::size_t from, std::size_t to,
                                  int unit) {
  if (from == to) return;
  if (to - from == 1) {
    text_.line("const {} i{} = {}{};", whole(), from, number,
               unit == 1 ? "" : fmt::format(" * {}", unit));
    return;
  }
  const char* rest_type = m_.wide ? "u64" : "unsigned";
  const std::string rest = fmt::format("rest{}", from);
  text_.line("{} {} = {};", rest_type, rest, number);
  for (std::size_t a = to; a-- > from;) {
    const bool last = a + 1 == to;
    const std::int64_t extent = std::max<std::int64_t>(k_.extents[a] / (last ? unit : 1), 1);
    const std::string times = last && unit != 1 ? fmt::format(" * {}", unit) : "";
    if (a == from) {
      text_.line("const {0} i{1} = {0}({2}){3};", whole(), a, rest, times);
    } else {
      text_.line("const {0} i{1} = {0}({2} % {3}u){4};", whole(), a, rest, extent, times);
      text_.line("{} /= {}u;", rest, extent);
    }
  }
}

void KernelPrinter::print_stages() {
  for (const Stage& stage : k_.stages) {
    if (stage.per_element) {
      print_elements(stage);
    } else {
      print_once(stage);
    }
  }
}

void KernelPrinter::declare_held() {
  std::int64_t at = 0;
  for (const Held& h : m_.held) {
    if (m_.in_shared) {
      text_.line("{0}* const {1} = ({0}*)(shared_memory + {2});", pack_of(h), held_name(h), at);
      at += aligned(k_.row_elements() * size_of(h.dtype));
    } else {
      const std::string many = m_.packs > 0 ? fmt::format("[{}]", m_.packs) : "";
      text_.line("{} {}{};", pack_of(h), held_name(h), many);
    }
  }
}

// Statements for every number that an accumulator has in this thread.
void KernelPrinter::for_accumulated(const loop::Accumulator& acc,
                                    const std::vector<std::string>& statements) {
  int loops = 0;
  if (acc.per_element && is_rows()) {
    const std::int64_t row = k_.row_elements();
    const std::string lanes = m_.lanes > 1 ? fmt::format(" * {}", m_.lanes) : "";
    if (m_.packs == 0) {
      text_.open("for (int e = t{}; e < {}; e += {})", lanes, row, m_.team * m_.lanes);
    } else {
      text_.add("#pragma unroll");
      text_.open("for (int p = 0; p < {}; ++p)", m_.packs);
      text_.line("const int e = (p * {} + t){};", m_.team, lanes);
      if (row != std::int64_t{m_.packs} * m_.team * m_.lanes) {
        text_.line("if (e >= {}) break;", row);
      }
    }
    ++loops;
  }
  if (acc.per_element && m_.lanes > 1) {
    text_.add("#pragma unroll");
    text_.open("for (int j = 0; j < {}; ++j)", m_.lanes);
    ++loops;
  }
  for (const std::string& s : statements) text_.add(s);
  for (; loops > 0; --loops) text_.close();
}

std::string KernelPrinter::accumulator_lane(std::size_t n, const char* which) const {
  const std::string name = fmt::format("n{}{}", n, which);
  if (!k_.accumulators[n].per_element) return name;
  if (is_rows() && m_.packs == 0) return fmt::format("{}[e{}]", name, m_.lanes > 1 ? " + j" : "");
  return fmt::format("{}{}{}", name, m_.packs > 0 ? "[p]" : "", m_.lanes > 1 ? "[j]" : "");
}

void KernelPrinter::declare_accumulators() {
  for (std::size_t n = 0; n < k_.accumulators.size(); ++n) {
    const loop::Accumulator& acc = k_.accumulators[n];
    const DType held_in = reduced_in(acc.kind, acc.dtype);
    const char* type = held_type(held_in);
    std::string size;
    if (acc.per_element && m_.packs > 0) size += fmt::format("[{}]", m_.packs);
    if (acc.per_element && m_.lanes > 1) size += fmt::format("[{}]", m_.lanes);
    std::vector<std::string> clear;
    for (const char* which : {"", "_blocks"}) {
      if (*which != 0 && !in_blocks(k_, acc)) continue;
      if (acc.per_element && is_rows() && m_.packs == 0) {
        text_.line("{0}* const n{1}{2} = ({0}*)a{3} + {4};", type, n, which, acc.local,
                   *which != 0 ? length_of(acc) : 0);
      } else {
        text_.line("{} n{}{}{};", type, n, which, size);
      }
      clear.push_back(fmt::format("{} = {};", accumulator_lane(n, which),
                                  reduction_of_nothing(acc.kind, held_in)));
    }
    for_accumulated(acc, clear);
  }
}

// Long sums are added up in blocks of rows.
void KernelPrinter::end_blocks() {
  const auto blocked = [&](const loop::Accumulator& acc) { return in_blocks(k_, acc); };
  if (std::ranges::none_of(k_.accumulators, blocked)) return;
  const std::string strips = m_.strips > 1 ? fmt::format(" / {}", m_.strips) : "";
  text_.open("if ((row - first){} % {} == {})", strips, BlockRows, BlockRows - 1);
  for (std::size_t n = 0; n < k_.accumulators.size(); ++n) {
    const loop::Accumulator& acc = k_.accumulators[n];
    if (!blocked(acc)) continue;
    const std::string rows = accumulator_lane(n);
    const std::string blocks = accumulator_lane(n, "_blocks");
    const DType held_in = reduced_in(acc.kind, acc.dtype);
    for_accumulated(
        acc, {fmt::format("{} = {};", blocks, combined_text(acc.kind, acc.dtype, blocks, rows)),
              fmt::format("{} = {};", rows, reduction_of_nothing(acc.kind, held_in))});
  }
  text_.close();
}

void KernelPrinter::join_blocks() {
  for (std::size_t n = 0; n < k_.accumulators.size(); ++n) {
    const loop::Accumulator& acc = k_.accumulators[n];
    if (!in_blocks(k_, acc)) continue;
    const std::string rows = accumulator_lane(n);
    const std::string sum =
        combined_text(acc.kind, acc.dtype, accumulator_lane(n, "_blocks"), rows);
    for_accumulated(acc, {fmt::format("{} = {};", rows, sum)});
  }
}

// What the threads of a column have found, in the order of their rows' first.
void KernelPrinter::join_strips() {
  if (m_.strips == 1) return;
  const auto shared = [&](std::size_t n) { return fmt::format("n{}_strips", n); };
  for (std::size_t n = 0; n < k_.accumulators.size(); ++n) {
    const loop::Accumulator& acc = k_.accumulators[n];
    const bool lanes = acc.per_element && m_.lanes > 1;
    out_.static_bytes += size_of(widened(acc.dtype)) * m_.strips * (lanes ? m_.lanes : 1) * 32;
    text_.line("__shared__ {} {}[{}]{}[32];", held_type(reduced_in(acc.kind, acc.dtype)), shared(n),
               m_.strips, lanes ? fmt::format("[{}]", m_.lanes) : "");
    for_accumulated(acc, {fmt::format("{}[strip]{}[lane] = {};", shared(n), lanes ? "[j]" : "",
                                      accumulator_lane(n))});
  }
  text_.add("__syncthreads();");
  text_.add("if (strip != 0 || !inside) return;");
  for (std::size_t n = 0; n < k_.accumulators.size(); ++n) {
    const loop::Accumulator& acc = k_.accumulators[n];
    const bool lanes = acc.per_element && m_.lanes > 1;
    const std::string other = fmt::format("{}[s]{}[lane]", shared(n), lanes ? "[j]" : "");
    const std::string lane = accumulator_lane(n);
    text_.add("#pragma unroll");
    text_.open("for (int s = 1; s < {}; ++s)", m_.strips);
    for_accumulated(
        acc, {fmt::format("{} = {};", lane, combined_text(acc.kind, acc.dtype, lane, other))});
    text_.close();
  }
}

// What the teams of a chunk have found, in the order of their rows' first; one total after the
// other, for there is not room for all of them.
void KernelPrinter::join_teams() {
  if (m_.strips == 1) return;
  const auto numbers = [&](const loop::Accumulator& acc) {
    return (m_.strips - 1) * length_of(acc);
  };
  std::int64_t bytes = 0;
  for (const loop::Accumulator& acc : k_.accumulators) {
    bytes = std::max(bytes, numbers(acc) * size_of(widened(acc.dtype)));
  }
  text_.line("__align__(16) __shared__ unsigned char strips_room[{}];", bytes);
  out_.static_bytes += bytes;
  for (std::size_t n = 0; n < k_.accumulators.size(); ++n) {
    const loop::Accumulator& acc = k_.accumulators[n];
    const DType held_in = reduced_in(acc.kind, acc.dtype);
    const std::string shared = fmt::format("n{}_strips", n);
    const std::string lane = accumulator_lane(n);
    const std::string at = !acc.per_element ? "" : m_.lanes > 1 ? " + e + j" : " + e";
    const std::int64_t length = length_of(acc);
    text_.line("{0}* const {1} = ({0}*)strips_room;", held_type(held_in), shared);
    if (n > 0) text_.add("__syncthreads();");
    text_.open("if (strip != 0{})", acc.per_element ? "" : " && t == 0");
    for_accumulated(acc, {fmt::format("{}[(strip - 1) * {}{}] = {};", shared, length, at, lane)});
    text_.close();
    text_.add("__syncthreads();");
    text_.open("if (strip == 0)");
    text_.open("for (int s = 0; s < {}; ++s)", m_.strips - 1);
    const std::string other = fmt::format("{}[s * {}{}]", shared, length, at);
    for_accumulated(
        acc, {fmt::format("{} = {};", lane, combined_text(acc.kind, acc.dtype, lane, other))});
    text_.close();
    text_.close();
  }
  text_.add("if (strip != 0) return;");
}

void KernelPrinter::write_accumulators(const std::string& slot) {
  for (std::size_t n = 0; n < k_.accumulators.size(); ++n) {
    const loop::Accumulator& acc = k_.accumulators[n];
    if (acc.running) continue;
    const DType to = argument(acc.argument).dtype;
    const std::string value =
        cut_to_stored(to, cast_text(reduced_in(acc.kind, acc.dtype), to, accumulator_lane(n)));
    if (!acc.per_element) {
      text_.line("if ({}) a{}[{}] = {};", is_first(), acc.argument, slot, value);
      continue;
    }
    const std::string lanes = m_.lanes > 1 ? fmt::format(" * {}", m_.lanes) : "";
    const std::string at = is_rows() ? "e" : "part" + lanes;
    for_accumulated(
        acc, {fmt::format("a{}[{} * {} + {}{}] = {};", acc.argument, slot,
                          integer_text(k_.row_elements()), at, m_.lanes > 1 ? " + j" : "", value)});
  }
}

std::string KernelPrinter::is_first() const {
  if (is_rows()) return "t == 0";
  std::vector<std::string> all;
  for (std::size_t a = k_.outer; a < k_.extents.size(); ++a) {
    all.push_back(fmt::format("i{} == 0", a));
  }
  return all.empty() ? "true" : join(all, " && ");
}

KernelText print_kernel(const loop::Kernel& kernel, const std::string& name) {
  return KernelPrinter(kernel, name).run();
}

bool can_fault(const loop::Kernel& kernel) {
  const auto checked = [](const loop::Access& access) {
    return std::ranges::any_of(access.terms, [](const loop::Term& t) { return !t.clamp; });
  };
  bool any = std::ranges::any_of(kernel.code, loop::is_partial);
  loop::for_each_access(kernel, [&](const loop::Access& access) { any = any || checked(access); });
  return any;
}

std::optional<PointText> print_at_points(const loop::Kernel& kernel, const std::string& name,
                                         int most_lanes) {
  if (can_fault(kernel)) return std::nullopt;
  std::optional<Mapping> mapping = map_given_points(kernel, most_lanes);
  if (!mapping) return std::nullopt;
  const int lanes = mapping->lanes;
  return PointText{KernelPrinter(kernel, name, std::move(*mapping)).run_at_point().text, lanes};
}

}  // namespace ricci::cuda
