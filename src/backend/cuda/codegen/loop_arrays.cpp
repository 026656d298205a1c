#include "backend/cuda/codegen/loop_arrays.h"

#include <algorithm>
#include <bit>

#include "support/align.h"

namespace ricci::cuda {
namespace {

using loop::WrittenItem;

constexpr int MostRegisters = 8;  // of an array, in one thread

std::size_t at(std::int32_t n) { return static_cast<std::size_t>(n); }

// Is element number i, row-major, at place i?
bool is_plain(const loop::Layout& layout, const std::vector<std::int64_t>& dims) {
  return layout.offset == 0 && loop::is_contiguous(layout, dims);
}

}  // namespace

std::int64_t LoopArrays::width(const WrittenItem& item) {
  if (item.kind == WrittenItem::Kind::Product) return item.dims[0] * item.dims[2];
  std::int64_t n = 1;
  for (std::size_t a = 0; a < item.dims.size(); ++a) {
    const bool reduced = item.kind == WrittenItem::Kind::Reduction && item.reduced[a];
    n *= reduced ? 1 : item.dims[a];
  }
  return n;
}

bool LoopArrays::is_total(const WrittenItem& item) {
  return item.kind != WrittenItem::Kind::Pointwise && width(item) == 1;
}

LoopArrays::LoopArrays(const loop::WrittenLoop& loop) : loop_(loop) {
  choose_threads();
  name_places('b');
  if (loop.condition) name_places('c');
  find_readers('b');
  if (loop.condition) find_readers('c');
  for (std::vector<ArrayPlace>& places : places_) {
    for (ArrayPlace& p : places) {
      if (p.kind != ArrayPlace::Kind::Given && p.registers == 0) p.in_memory = true;
      if (p.kind == ArrayPlace::Kind::Row && p.registers == 0) p.in_memory = false;
      if (p.elements == 0) p.in_memory = false;
      if (p.kind == ArrayPlace::Kind::Given || !p.in_memory) continue;
      p.offset = memory_bytes_;
      memory_bytes_ += aligned(p.elements * size_of(p.dtype));
    }
  }
}

// A warp where it has no more than four elements a thread: it waits for nobody else.
void LoopArrays::choose_threads() {
  std::int64_t widest = 1;
  for (const WrittenItem& item : loop_.body.items) widest = std::max(widest, width(item));
  const auto wanted = std::bit_ceil(static_cast<std::uint64_t>((widest + 3) / 4));
  threads_ = static_cast<int>(std::clamp<std::uint64_t>(wanted, 32, 512));
}

int LoopArrays::turns(std::int64_t elements) const {
  if (elements <= 1) return static_cast<int>(elements);
  const std::int64_t n = (elements + threads_ - 1) / threads_;
  return n <= MostRegisters ? static_cast<int>(n) : 0;
}

void LoopArrays::name_places(char which) {
  const loop::WrittenBody& of = body(which);
  std::vector<ArrayPlace>& places = places_[which == 'b' ? 0 : 1];
  for (const loop::Storage& s : of.storages) {
    const auto kind = s.constant ? ArrayPlace::Kind::Given : ArrayPlace::Kind::Own;
    places.push_back({kind, s.dtype, s.elements, s.constant ? 0 : turns(s.elements), false, 0});
  }
  // A part of an array is not element n for element n of what fills it.
  for (const WrittenItem& item : of.items) {
    const bool whole =
        item.kind != WrittenItem::Kind::Pointwise ||
        (is_plain(item.to, item.dims) && width(item) == of.storages[at(item.storage)].elements);
    if (!whole) places[at(item.storage)].registers = 0;
  }
  if (which == 'c') {
    for (const loop::StorageId s : of.inputs) places[at(s)] = {ArrayPlace::Kind::Given};
    return;
  }
  const std::size_t carries = loop_.plan.carries.size();
  const std::size_t wholes = loop_.plan.wholes.size();
  for (std::size_t k = carries; k < of.inputs.size(); ++k) {
    ArrayPlace& p = places[at(of.inputs[k])];
    p.kind = k < carries + wholes ? ArrayPlace::Kind::Given : ArrayPlace::Kind::Row;
    if (p.kind == ArrayPlace::Kind::Given) p.registers = 0;
  }
}

LoopArray LoopArrays::canonical(LoopArray a) const {
  if (a.which == 'b') return a;
  const auto& inputs = loop_.condition->inputs;
  const auto found = std::ranges::find(inputs, a.id);
  if (found == inputs.end()) return a;
  return {'b', loop_.body.inputs[static_cast<std::size_t>(found - inputs.begin())]};
}

ArrayPlace& LoopArrays::place_of(LoopArray a) {
  const LoopArray c = canonical(a);
  return places_[c.which == 'b' ? 0 : 1][at(c.id)];
}
const ArrayPlace& LoopArrays::place(LoopArray a) const {
  const LoopArray c = canonical(a);
  return places_[c.which == 'b' ? 0 : 1][at(c.id)];
}

bool LoopArrays::is_aligned(char which, const WrittenItem& item, const loop::Read& read) const {
  const auto* stored = std::get_if<loop::StoredRead>(&read);
  if (stored == nullptr) return true;
  const std::int64_t elements = storage({which, stored->storage}).elements;
  if (elements == 1) return true;
  if (is_total(item)) {
    std::vector<std::int64_t> dims = item.dims;
    if (item.kind == WrittenItem::Kind::Product) {
      const bool left = &read == item.reads.data();
      dims = left ? std::vector{dims[0], dims[1]} : std::vector{dims[1], dims[2]};
    }
    return elements == loop::element_count(dims) && is_plain(stored->layout, dims);
  }
  return item.kind == WrittenItem::Kind::Pointwise && elements == width(item) &&
         is_plain(stored->layout, item.dims) && is_plain(item.to, item.dims) &&
         storage({which, item.storage}).elements == elements;
}

void LoopArrays::find_readers(char which) {
  for (const WrittenItem& item : body(which).items) {
    for (const loop::Read& read : item.reads) {
      const auto* stored = std::get_if<loop::StoredRead>(&read);
      if (stored != nullptr && !is_aligned(which, item, read)) {
        place_of({which, stored->storage}).in_memory = true;
      }
    }
  }
  if (which == 'b') return;
  // All threads ask all elements of the flag.
  const LoopArray flag{'c', body('c').outputs[0]};
  if (storage(flag).elements != 1) place_of(flag).in_memory = true;
}

}  // namespace ricci::cuda
