#include "backend/cpu/codegen/unrolled.h"

#include <algorithm>

#include "ricci/compiler/rule/nd.h"

#include "op/kinds.h"
#include "type/small_dtype.h"

namespace ricci::cpu {
namespace {

using llvm::Value;
using loop::Code;
using loop::Read;
using loop::SequenceRead;
using loop::SplatRead;
using loop::StorageId;
using loop::StoredRead;
using loop::WrittenItem;

StaticDims outer(const StaticDims& dims) {
  return dims.empty() ? StaticDims{} : StaticDims(dims.begin(), dims.end() - 1);
}

std::int64_t inner(const StaticDims& dims) { return dims.empty() ? 1 : dims.back(); }

std::int64_t offset(const loop::Layout& layout, const StaticDims& index) {
  std::int64_t at = layout.offset;
  for (std::size_t a = 0; a < index.size(); ++a) at += index[a] * layout.strides[a];
  return at;
}

}  // namespace

int Unrolled::most_lanes(DType dtype) const {
  return target_.lanes(static_cast<int>(std::max<std::int64_t>(size_of(dtype), 4)));
}

// [0, n) in vectors, the last ones narrower so that none reads beyond the end.
std::vector<Unrolled::Piece> Unrolled::pieces(std::int64_t n, DType dtype) const {
  std::vector<Piece> out;
  int lanes = most_lanes(dtype);
  for (std::int64_t first = 0; first < n;) {
    while (lanes > n - first) lanes /= 2;
    out.push_back({first, lanes});
    first += lanes;
  }
  return out;
}

Value* Unrolled::at(Value* base, std::int64_t element, DType dtype) {
  return b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), base,
                                       static_cast<std::uint64_t>(element * size_of(dtype)));
}

Value* Unrolled::slot(StorageId storage) {
  const loop::Storage& s = body_.storages[static_cast<std::size_t>(storage)];
  const auto bytes =
      static_cast<std::uint64_t>(std::max<std::int64_t>(s.elements * size_of(s.dtype), 1));
  auto* type = llvm::ArrayType::get(b_.getInt8Ty(), bytes);
  llvm::Function* function = b_.GetInsertBlock()->getParent();
  llvm::IRBuilder<> top(&function->getEntryBlock(), function->getEntryBlock().begin());
  llvm::AllocaInst* memory = top.CreateAlloca(type);
  memory->setAlignment(llvm::Align(64));
  return memory;
}

// As the dtype has it: a small float rounds it.
Value* Unrolled::whole_number(DType dtype, std::int64_t n) {
  if (!is_float(dtype)) return lanes_.constant(dtype, n, 1);
  return lanes_.constant(dtype, Tensor::splat({dtype, {}}, n).item(), 1);
}

// Elements [first, first + lanes) along the last axis, at an index of the others.
Value* Unrolled::read(const Read& from, const StaticDims& index, std::int64_t first, int lanes,
                      DType dtype) {
  if (const auto* splat = std::get_if<SplatRead>(&from)) {
    return is_float(dtype) ? lanes_.constant(dtype, std::get<double>(splat->number), lanes)
                           : lanes_.constant(dtype, std::get<std::int64_t>(splat->number), lanes);
  }
  const bool sequence = std::holds_alternative<SequenceRead>(from);
  const loop::Layout& layout =
      sequence ? std::get<SequenceRead>(from).layout : std::get<StoredRead>(from).layout;
  const std::int64_t stride = layout.strides.empty() ? 0 : layout.strides.back();
  const std::int64_t start = offset(layout, index) + first * stride;
  if (sequence) {
    Value* out = llvm::PoisonValue::get(lanes_.held(dtype, lanes));
    if (lanes == 1) return whole_number(dtype, start);
    for (int i = 0; i < lanes; ++i) {
      out = b_.CreateInsertElement(out, whole_number(dtype, start + i * stride),
                                   static_cast<std::uint64_t>(i));
    }
    return out;
  }
  Value* base = places_.at(std::get<StoredRead>(from).storage);
  if (stride == 1 || lanes == 1) return lanes_.load(dtype, at(base, start, dtype), lanes, nullptr);
  if (stride == 0)
    return lanes_.spread(lanes_.load(dtype, at(base, start, dtype), 1, nullptr), lanes);
  Value* out = llvm::PoisonValue::get(lanes_.held(dtype, lanes));
  for (int i = 0; i < lanes; ++i) {
    Value* one = lanes_.load(dtype, at(base, start + i * stride, dtype), 1, nullptr);
    out = b_.CreateInsertElement(out, one, static_cast<std::uint64_t>(i));
  }
  return out;
}

Value* Unrolled::compute(const WrittenItem& item, const std::vector<Value*>& in,
                         const std::vector<DType>& dtypes) {
  const loop::Instr& i = item.instr;
  switch (i.code) {
    case Code::Copy: return in[0];
    case Code::Unary: return lanes_.unary(i, dtypes[0], in[0]);
    case Code::Binary: return lanes_.binary(i.binary(), dtypes[0], in[0], in[1]);
    case Code::Compare: return lanes_.compare(i.compare(), dtypes[0], in[0], in[1]);
    case Code::Select: return b_.CreateSelect(lanes_.nonzero(in[0], dtypes[0]), in[1], in[2]);
    case Code::Cast: return lanes_.cast(in[0], dtypes[0], i.dtype);
    default: throw InternalError("an item cannot be written out");
  }
}

void Unrolled::emit_pointwise(const WrittenItem& item) {
  const DType out = item.instr.dtype;
  Value* to = places_.at(item.storage);
  const loop::Layout& storage = item.to;
  const bool packed =
      storage.strides.empty() || storage.strides.back() == 1 || inner(item.dims) == 1;
  std::vector<DType> dtypes;
  DType widest = out;
  for (const Read& from : item.reads) {
    dtypes.push_back(read_dtype(body_, from));
    if (size_of(dtypes.back()) > size_of(widest)) widest = dtypes.back();
  }
  for_each_index(outer(item.dims), [&](const StaticDims& index) {
    for (const Piece& p : pieces(inner(item.dims), packed ? widest : DType::C128)) {
      std::vector<Value*> in(item.reads.size());
      for (std::size_t k = 0; k < in.size(); ++k) {
        in[k] = read(item.reads[k], index, p.first, p.lanes, dtypes[k]);
      }
      Value* v = compute(item, in, dtypes);
      const std::int64_t step = storage.strides.empty() ? 0 : storage.strides.back();
      for (int i = 0; i < (packed ? 1 : p.lanes); ++i) {
        Value* part =
            packed || p.lanes == 1 ? v : b_.CreateExtractElement(v, static_cast<std::uint64_t>(i));
        lanes_.store(out, part, at(to, offset(storage, index) + (p.first + i) * step, out),
                     packed ? p.lanes : 1, nullptr);
      }
    }
  });
}

// Combines vectors along the last axis, and over the other reduced axes.
void Unrolled::emit_reduction(const WrittenItem& item) {
  const DType from = read_dtype(body_, item.reads[0]);
  const DType out = item.instr.dtype;
  const DType held = widened(out);
  Value* to = places_.at(item.storage);
  const bool inside = item.dims.empty() || item.reduced.back();
  StaticDims kept;
  for (std::size_t a = 0; a < item.dims.size(); ++a) {
    if (!item.reduced[a]) kept.push_back(item.dims[a]);
  }
  const loop::Layout result = loop::contiguous(kept);
  std::map<std::int64_t, std::vector<Value*>> totals;  // by place of the result
  const std::vector<Piece> parts =
      pieces(inner(item.dims), size_of(from) > size_of(out) ? from : out);
  for_each_index(outer(item.dims), [&](const StaticDims& index) {
    StaticDims where;
    for (std::size_t a = 0; a < index.size(); ++a) {
      if (!item.reduced[a]) where.push_back(index[a]);
    }
    std::vector<Value*>& total = totals[offset(result, where)];
    for (std::size_t p = 0; p < parts.size(); ++p) {
      Value* x = read(item.reads[0], index, parts[p].first, parts[p].lanes, from);
      if (is_logical(item.reduce)) x = lanes_.nonzero(x, from);
      if (total.size() <= p) {
        // A sum starts from zero: without it -0 would stay -0.
        const bool from_zero = item.reduce == ReduceKind::Sum && is_float(held);
        total.push_back(from_zero ? b_.CreateFAdd(x, llvm::Constant::getNullValue(x->getType()))
                                  : x);
      } else {
        total[p] = lanes_.combine(item.reduce, held, total[p], x);
      }
    }
  });
  for (auto& [where, total] : totals) {
    if (!inside) {
      for (std::size_t p = 0; p < parts.size(); ++p) {
        lanes_.store(out, total[p], at(to, where + parts[p].first, out), parts[p].lanes, nullptr);
      }
      continue;
    }
    Value* all = nullptr;
    for (std::size_t p = 0; p < parts.size(); ++p) {
      // Vectors of one width are combined before they are combined across.
      if (p + 1 < parts.size() && parts[p + 1].lanes == parts[p].lanes) {
        total[p + 1] = lanes_.combine(item.reduce, held, total[p], total[p + 1]);
        continue;
      }
      Value* one = lanes_.across(item.reduce, held, total[p]);
      all = all == nullptr ? one : lanes_.combine(item.reduce, held, all, one);
    }
    lanes_.store(out, all, at(to, where, out), 1, nullptr);
  }
}

bool Unrolled::against_the_grain(const WrittenItem& item) const {
  return std::get<StoredRead>(item.reads[1]).layout.strides[1] != 1 && item.dims[2] > 1;
}

void Unrolled::pack_invariants(const std::vector<bool>& invariant) {
  for (const WrittenItem& item : body_.items) {
    if (item.kind != WrittenItem::Kind::Product || !against_the_grain(item)) continue;
    const auto& b = std::get<StoredRead>(item.reads[1]);
    if (!invariant[static_cast<std::size_t>(b.storage)]) continue;
    const DType dtype = item.instr.dtype;
    const StaticDims dims = {item.dims[1], item.dims[2]};
    auto* array = llvm::ArrayType::get(
        b_.getInt8Ty(), static_cast<std::uint64_t>(dims[0] * dims[1] * size_of(dtype)));
    llvm::Function* function = b_.GetInsertBlock()->getParent();
    llvm::IRBuilder<> top(&function->getEntryBlock(), function->getEntryBlock().begin());
    llvm::AllocaInst* memory = top.CreateAlloca(array);
    memory->setAlignment(llvm::Align(64));
    for_each_index(dims, [&](const StaticDims& index) {
      Value* x =
          lanes_.load(dtype, at(places_.at(b.storage), offset(b.layout, index), dtype), 1, nullptr);
      lanes_.store(dtype, x, at(memory, index[0] * dims[1] + index[1], dtype), 1, nullptr);
    });
    packed_[&item] = memory;
  }
}

Value* Unrolled::multiply_add(Value* x, Value* y, Value* sum) {
  if (!target_.fma) return b_.CreateFAdd(sum, b_.CreateFMul(x, y));
  return b_.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {x, y, sum});
}

void Unrolled::emit_matmul(const WrittenItem& item) {
  const DType dtype = item.instr.dtype;
  const std::int64_t rows = item.dims[0];
  const std::int64_t inside = item.dims[1];
  const std::int64_t columns = item.dims[2];
  Value* to = places_.at(item.storage);
  const auto packed = packed_.find(&item);
  const auto right = [&](std::int64_t k, const Piece& p) {
    if (packed != packed_.end()) {
      return lanes_.load(dtype, at(packed->second, k * columns + p.first, dtype), p.lanes, nullptr);
    }
    return read(item.reads[1], {k}, p.first, p.lanes, dtype);
  };
  // Several sums at a time: one would wait for itself.
  constexpr std::int64_t Chains = 4;
  for (std::int64_t m = 0; m < rows; ++m) {
    for (const Piece& p : pieces(columns, dtype)) {
      std::vector<Value*> sums;
      for (std::int64_t k = 0; k < inside; ++k) {
        Value* x = lanes_.spread(read(item.reads[0], {m}, k, 1, dtype), p.lanes);
        Value* y = right(k, p);
        if (k == 0) {  // from zero: without it a sum of -0 would stay -0
          sums.push_back(multiply_add(x, y, llvm::Constant::getNullValue(x->getType())));
        } else if (k < Chains) {
          sums.push_back(b_.CreateFMul(x, y));
        } else {
          Value*& sum = sums[static_cast<std::size_t>(k % Chains)];
          sum = multiply_add(x, y, sum);
        }
      }
      while (sums.size() > 1) {
        std::vector<Value*> half;
        for (std::size_t i = 0; i < sums.size(); i += 2) {
          half.push_back(i + 1 < sums.size() ? b_.CreateFAdd(sums[i], sums[i + 1]) : sums[i]);
        }
        sums = std::move(half);
      }
      lanes_.store(dtype, sums[0], at(to, m * columns + p.first, dtype), p.lanes, nullptr);
    }
  }
}

void Unrolled::emit() {
  for (const WrittenItem& item : body_.items) {
    switch (item.kind) {
      case WrittenItem::Kind::Pointwise: emit_pointwise(item); break;
      case WrittenItem::Kind::Reduction: emit_reduction(item); break;
      case WrittenItem::Kind::Product: emit_matmul(item); break;
    }
  }
}

Value* Unrolled::all_nonzero(StorageId storage) {
  const loop::Storage& s = body_.storages[static_cast<std::size_t>(storage)];
  Value* all = b_.getTrue();
  for (const Piece& p : pieces(s.elements, s.dtype)) {
    Value* x = lanes_.load(s.dtype, at(places_.at(storage), p.first, s.dtype), p.lanes, nullptr);
    Value* some = lanes_.nonzero(x, s.dtype);
    all = b_.CreateAnd(all, p.lanes == 1 ? some : b_.CreateAndReduce(some));
  }
  return all;
}

void Unrolled::copy(StorageId storage, Value* from, Value* to) {
  const loop::Storage& s = body_.storages[static_cast<std::size_t>(storage)];
  for (const Piece& p : pieces(s.elements, s.dtype)) {
    Value* v = lanes_.load(s.dtype, at(from, p.first, s.dtype), p.lanes, nullptr);
    lanes_.store(s.dtype, v, at(to, p.first, s.dtype), p.lanes, nullptr);
  }
}

}  // namespace ricci::cpu
