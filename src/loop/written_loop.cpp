#include "ricci/compiler/loop/written_loop.h"

#include <algorithm>

#include "ricci/support/checked.h"

namespace ricci::loop {
namespace {

std::int64_t vectors(std::int64_t n, DType dtype, std::int64_t vector_bytes) {
  const std::int64_t lanes = vector_bytes / std::max<std::int64_t>(size_of(dtype), 4);
  return (saturating_add(n, lanes - 1)) / lanes;
}

std::int64_t product_of(std::int64_t a, std::int64_t b, std::int64_t c) {
  return saturating_mul(saturating_mul(a, b), c);
}

// All elements an item walks over.
std::int64_t walked(const WrittenItem& item) {
  std::int64_t n = 1;
  for (const std::int64_t d : item.dims) n = saturating_mul(n, d);
  return n;
}

std::int64_t instructions(const WrittenItem& item, std::int64_t vector_bytes) {
  const std::int64_t last = item.dims.empty() ? 1 : item.dims.back();
  const std::int64_t wide = vectors(last, item.instr.dtype, vector_bytes);
  if (item.kind == WrittenItem::Kind::Product) {
    // What is packed is packed however few rows there are.
    return product_of(std::max<std::int64_t>(item.dims[0], 1), item.dims[1],
                      saturating_mul(wide, 2));
  }
  const std::int64_t rows = last == 0 ? 0 : walked(item) / last;
  const std::int64_t each = item.kind == WrittenItem::Kind::Reduction ? 4 : weight(item.instr);
  return product_of(rows, wide, each);
}

std::int64_t instructions(const WrittenBody& body, std::int64_t vector_bytes) {
  std::int64_t total = 0;
  for (const WrittenItem& item : body.items) {
    total = saturating_add(total, instructions(item, vector_bytes));
  }
  return total;
}

double flops(const WrittenBody& body) {
  double total = 0;
  for (const WrittenItem& item : body.items) {
    const bool copies = item.kind == WrittenItem::Kind::Pointwise && item.instr.code == Code::Copy;
    const double each = copies ? 0 : item.kind == WrittenItem::Kind::Product ? 2 : 1;
    total += each * static_cast<double>(walked(item));
  }
  return total;
}

}  // namespace

DType read_dtype(const WrittenBody& body, const Read& read) {
  if (const auto* s = std::get_if<StoredRead>(&read)) {
    return body.storages[static_cast<std::size_t>(s->storage)].dtype;
  }
  if (const auto* q = std::get_if<SequenceRead>(&read)) return q->dtype;
  return std::get<SplatRead>(read).dtype;
}

std::vector<ArraySize> sizes(const WrittenBody& body, const std::vector<StorageId>& storages) {
  std::vector<ArraySize> out;
  for (const StorageId s : storages) {
    const Storage& storage = body.storages[static_cast<std::size_t>(s)];
    out.push_back({storage.dtype, storage.elements});
  }
  return out;
}

// A condition stands before the loop and at its end.
std::int64_t vector_instructions(const WrittenLoop& loop, std::int64_t vector_bytes) {
  const std::int64_t body = instructions(loop.body, vector_bytes);
  if (!loop.condition) return body;
  return saturating_add(body, saturating_mul(instructions(*loop.condition, vector_bytes), 2));
}

double flops_per_trip(const WrittenLoop& loop) {
  return flops(loop.body) + (loop.condition ? flops(*loop.condition) : 0);
}

}  // namespace ricci::loop
