// Loads ahead of time. For all that a compiler knows, what is stored may be what is loaded next: it
// leaves loads behind the stores that stand before them, and each waits for memory alone. Elements
// of arrays that share memory are read by the thread that writes them, before it does; so a thread
// may read all its elements of a row before it writes the first, and those of the next row before
// it writes this one's.
#include <algorithm>

#include "backend/cuda/codegen/kernel_printer.h"
#include "type/small_dtype.h"

namespace ricci::cuda {

using loop::Code;

namespace {

// Of a thread's registers, in bytes.
constexpr std::int64_t FewBytes = 64;
constexpr std::int64_t MostBytes = 256;

}  // namespace

// The packs that a stage reads of what the kernel is given, in places that are known before it
// runs.
std::vector<loop::Reg> KernelPrinter::plain_packs(const Stage& stage) const {
  const auto number = static_cast<std::size_t>(&stage - k_.stages.data());
  std::vector<Reg> out;
  for (const Reg r : stage.code) {
    const Instr& i = instr(r);
    if (i.code != Code::Load || !varies(r) || !is_lane_packed(i.access)) continue;
    const Held* h = held(i.access);
    const bool waits = h != nullptr && (h->stored || h->first_read != number);
    const bool is_given = argument(i.access.argument).role == loop::ArgumentRole::In;
    if (!waits && is_given && i.access.terms.empty()) out.push_back(r);
  }
  return out;
}

bool KernelPrinter::stores_elements(const Stage& stage) const {
  return stage.per_element && std::ranges::any_of(stage.stores, [&](const loop::Store& s) {
           return !is_dead(stage, s);
         });
}

// What a thread has room for: as many registers as rows take else, less what it holds of them.
std::int64_t KernelPrinter::bytes_ahead() const {
  std::int64_t each = 0;
  for (const Held& h : m_.held) each += size_of(h.dtype);
  for (const loop::Accumulator& acc : k_.accumulators) {
    if (acc.per_element) each += size_of(widened(acc.dtype));
  }
  const bool many = m_.threads > 512;
  return std::max((many ? MostBytes / 2 : MostBytes) - m_.packs * m_.lanes * each,
                  many ? 0 : FewBytes);
}

// Of a row that a thread has several packs of: all of them, as far as there are registers.
void KernelPrinter::read_packs_ahead(const Stage& stage) {
  ahead_.clear();
  if (m_.packs < 2 || m_.in_shared || !stores_elements(stage)) return;
  std::int64_t bytes = 0;
  for (const Reg r : plain_packs(stage)) {
    const Instr& i = instr(r);
    const bool is_held = held(i.access) != nullptr;
    const std::int64_t size = is_held ? 0 : m_.packs * m_.lanes * size_of(i.dtype);
    if (bytes + size > bytes_ahead()) continue;
    bytes += size;
    ahead_.push_back(r);
    if (!is_held) text_.line("{} p{}[{}];", pack_type(i.dtype), r, m_.packs);
  }
  if (ahead_.empty()) return;
  const int open = open_packs();
  for (const Reg r : ahead_) {
    const Instr& i = instr(r);
    const Held* h = held(i.access);
    text_.line("{} = {};", h != nullptr ? held_pack(*h) : pack_name(r),
               packed_place(i.access, place(i.access, false, reg(r)), true));
  }
  close_packs(open);
}

// Of the next row of a column: what the stages read that depends on the row.
void KernelPrinter::find_next_row() {
  ahead_.clear();
  const bool stores =
      std::ranges::any_of(k_.stages, [&](const Stage& stage) { return stores_elements(stage); });
  if (m_.kind != Mapping::Kind::Columns || !stores) return;
  std::int64_t bytes = 0;
  for (const Stage& stage : k_.stages) {
    for (const Reg r : stage.per_element ? plain_packs(stage) : std::vector<Reg>()) {
      const Instr& i = instr(r);
      const std::int64_t size = m_.lanes * size_of(i.dtype);
      const bool moves =
          std::any_of(i.access.strides.begin() + static_cast<std::ptrdiff_t>(k_.kept),
                      i.access.strides.begin() + static_cast<std::ptrdiff_t>(k_.outer),
                      [](std::int64_t stride) { return stride != 0; });
      if (!moves || held(i.access) != nullptr || bytes + size > FewBytes) continue;
      bytes += size;
      ahead_.push_back(r);
    }
  }
  for (const Reg r : ahead_) text_.line("{} p{}_next;", pack_type(instr(r).dtype), r);
}

// The first row, if there is one.
void KernelPrinter::read_first_row(const std::string& row) {
  if (ahead_.empty()) return;
  text_.open("if ({} < last)", row);
  read_row(row);
  text_.close();
}

// The row that was the next one is this one. Behind the last one there is none: that is read again
// then, which takes no branch.
void KernelPrinter::read_next_row() {
  if (ahead_.empty()) return;
  for (const Reg r : ahead_)
    text_.line("const {0} p{1} = p{1}_next;", pack_type(instr(r).dtype), r);
  text_.open();
  text_.line("const {0} next = row + {1} < last ? row + {1} : row;", whole(), m_.strips);
  read_row("next");
  text_.close();
}

void KernelPrinter::read_row(const std::string& row) {
  print_indices(row, k_.kept, k_.outer, 1);
  in_elements_ = true;
  for (const Reg r : ahead_) {
    const Access& access = instr(r).access;
    text_.line("p{}_next = {};", r, packed_place(access, place(access, false, reg(r)), true));
  }
  in_elements_ = false;
}

bool KernelPrinter::is_ahead(Reg r) const { return std::ranges::find(ahead_, r) != ahead_.end(); }

std::string KernelPrinter::pack_name(Reg r) const {
  return fmt::format("p{}{}", r, is_rows() && is_ahead(r) ? "[p]" : "");
}

}  // namespace ricci::cuda
