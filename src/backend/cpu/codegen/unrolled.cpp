#include "backend/cpu/codegen/unrolled.h"

#include <algorithm>

#include "ricci/op/ops.h"
#include "ricci/rule/nd.h"

#include "op/kinds.h"
#include "type/small_dtype.h"

namespace ricci::cpu {
namespace {

using llvm::Value;
using loop::Code;
using schedule::Item;
using schedule::Seen;
using schedule::Sequence;
using schedule::Splat;
using schedule::StorageId;
using schedule::Stored;

constexpr std::int64_t Budget = 900;  // vector instructions; a few milliseconds of compiling

// A plain product of two matrices.
bool is_matmul(const Item& item, const Graph& graph) {
  const Node& node = graph.node(item.node);
  if (item.kind != Item::Kind::Call || !node.op.is<op::Matmul>()) return false;
  const DType d = node.types[0].dtype;
  return (d == DType::F32 || d == DType::F64) && graph.type(node.operands[0]).rank() == 2 &&
         graph.type(node.operands[1]).rank() == 2;
}

std::int64_t vectors(std::int64_t n, DType dtype, const TargetInfo& target) {
  const int lanes = target.lanes(static_cast<int>(std::max<std::int64_t>(size_of(dtype), 4)));
  return (n + lanes - 1) / lanes;
}

std::int64_t cost(const Item& item, const Graph& graph, const TargetInfo& target) {
  const DType d = graph.node(item.node).types[0].dtype;
  if (item.kind == Item::Kind::Call) {
    const Type& a = graph.type(graph.node(item.node).operands[0]);
    const Type& c = graph.node(item.node).types[0];
    // What is packed is packed however few rows there are.
    const std::int64_t rows = std::max<std::int64_t>(c.dims[0].value(), 1);
    return rows * a.dims[1].value() * vectors(c.dims[1].value(), d, target) * 2;
  }
  const std::int64_t last = item.dims.empty() ? 1 : item.dims.back();
  const std::int64_t rows = last == 0 ? 0 : loop::element_count(item.dims) / last;
  const std::int64_t each = item.kind == Item::Kind::Reduction ? 4 : loop::weight(item.instr);
  return rows * vectors(last, d, target) * each;
}

bool is_bounded(const Seen& seen) {
  const auto* s = std::get_if<Stored>(&seen);
  return s != nullptr && !s->bounds.empty();
}

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

bool can_unroll(const schedule::Items& items, const Graph& graph, const TargetInfo& target) {
  std::int64_t total = 0;
  for (const Item& item : items.items) {
    if (loop::is_partial(item.instr) || item.kind == Item::Kind::Running) return false;
    if (item.indirect || item.instr.code == Code::Random ||
        std::ranges::any_of(item.reads, is_bounded))
      return false;
    if (item.kind == Item::Kind::Call && !is_matmul(item, graph)) return false;
    for (const Type& t : graph.node(item.node).types) {
      if (is_complex(t.dtype)) return false;
    }
    total += cost(item, graph, target);
    if (total > Budget) return false;
  }
  return true;
}

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
  const schedule::Storage& s = items_.storages[static_cast<std::size_t>(storage)];
  const auto bytes =
      static_cast<std::uint64_t>(std::max<std::int64_t>(s.elements * size_of(s.dtype), 1));
  auto* type = llvm::ArrayType::get(b_.getInt8Ty(), bytes);
  llvm::Function* function = b_.GetInsertBlock()->getParent();
  llvm::IRBuilder<> top(&function->getEntryBlock(), function->getEntryBlock().begin());
  llvm::AllocaInst* memory = top.CreateAlloca(type);
  memory->setAlignment(llvm::Align(64));
  return memory;
}

DType Unrolled::dtype_of(const Seen& seen) const {
  if (const auto* s = std::get_if<Stored>(&seen)) {
    return items_.storages[static_cast<std::size_t>(s->storage)].dtype;
  }
  if (const auto* q = std::get_if<Sequence>(&seen)) return q->dtype;
  return std::get<Splat>(seen).value.dtype();
}

// As the dtype has it: a small float rounds it.
Value* Unrolled::whole_number(DType dtype, std::int64_t n) {
  if (!is_float(dtype)) return lanes_.constant(dtype, n, 1);
  return lanes_.constant(dtype, Tensor::splat({dtype, {}}, n).item(), 1);
}

// Elements [first, first + lanes) along the last axis, at an index of the others.
Value* Unrolled::read(const Seen& seen, const StaticDims& index, std::int64_t first, int lanes,
                      DType dtype) {
  if (const auto* splat = std::get_if<Splat>(&seen)) {
    return is_float(dtype) ? lanes_.constant(dtype, splat->value.item(), lanes)
                           : lanes_.constant(dtype, splat->value.numbers<std::int64_t>()[0], lanes);
  }
  const bool sequence = std::holds_alternative<Sequence>(seen);
  const loop::Layout& layout =
      sequence ? std::get<Sequence>(seen).layout : std::get<Stored>(seen).layout;
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
  Value* base = places_.at(std::get<Stored>(seen).storage);
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

Value* Unrolled::compute(const Item& item, const std::vector<Value*>& in,
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

void Unrolled::emit_pointwise(const Item& item) {
  const DType out = items_.storages[static_cast<std::size_t>(item.writes[0])].dtype;
  Value* to = places_.at(item.writes[0]);
  const loop::Layout storage = item.piece ? *item.piece : loop::contiguous(item.dims);
  const bool packed =
      storage.strides.empty() || storage.strides.back() == 1 || inner(item.dims) == 1;
  std::vector<DType> dtypes;
  DType widest = out;
  for (const Seen& seen : item.reads) {
    dtypes.push_back(dtype_of(seen));
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
void Unrolled::emit_reduction(const Item& item) {
  const DType from = dtype_of(item.reads[0]);
  const DType out = item.instr.dtype;
  const DType held = widened(out);
  Value* to = places_.at(item.writes[0]);
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

bool Unrolled::against_the_grain(const Item& item) const {
  const auto& b = std::get<Stored>(item.reads[1]);
  return b.layout.strides[1] != 1 &&
         graph_.type(graph_.node(item.node).operands[1]).dims[1].value() > 1;
}

void Unrolled::pack_invariants(const std::vector<bool>& invariant) {
  for (const Item& item : items_.items) {
    if (item.kind != Item::Kind::Call || !against_the_grain(item)) continue;
    const auto& b = std::get<Stored>(item.reads[1]);
    if (!invariant[static_cast<std::size_t>(b.storage)]) continue;
    const Type& type = graph_.type(graph_.node(item.node).operands[1]);
    const StaticDims dims = type.static_dims();
    auto* array = llvm::ArrayType::get(
        b_.getInt8Ty(), static_cast<std::uint64_t>(*type.numel() * size_of(type.dtype)));
    llvm::Function* function = b_.GetInsertBlock()->getParent();
    llvm::IRBuilder<> top(&function->getEntryBlock(), function->getEntryBlock().begin());
    llvm::AllocaInst* memory = top.CreateAlloca(array);
    memory->setAlignment(llvm::Align(64));
    for_each_index(dims, [&](const StaticDims& index) {
      Value* x = lanes_.load(
          type.dtype, at(places_.at(b.storage), offset(b.layout, index), type.dtype), 1, nullptr);
      lanes_.store(type.dtype, x, at(memory, index[0] * dims[1] + index[1], type.dtype), 1,
                   nullptr);
    });
    packed_[&item] = memory;
  }
}

Value* Unrolled::multiply_add(Value* x, Value* y, Value* sum) {
  if (!target_.fma) return b_.CreateFAdd(sum, b_.CreateFMul(x, y));
  return b_.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {x, y, sum});
}

void Unrolled::emit_matmul(const Item& item) {
  const Node& node = graph_.node(item.node);
  const DType dtype = node.types[0].dtype;
  const StaticDims a = graph_.type(node.operands[0]).static_dims();
  const StaticDims c = node.types[0].static_dims();
  Value* to = places_.at(item.writes[0]);
  const auto packed = packed_.find(&item);
  const auto right = [&](std::int64_t k, const Piece& p) {
    if (packed != packed_.end()) {
      return lanes_.load(dtype, at(packed->second, k * c[1] + p.first, dtype), p.lanes, nullptr);
    }
    return read(item.reads[1], {k}, p.first, p.lanes, dtype);
  };
  // Several sums at a time: one would wait for itself.
  constexpr std::int64_t Chains = 4;
  for (std::int64_t m = 0; m < c[0]; ++m) {
    for (const Piece& p : pieces(c[1], dtype)) {
      std::vector<Value*> sums;
      for (std::int64_t k = 0; k < a[1]; ++k) {
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
      Value* total = sums.empty() ? lanes_.constant(dtype, 0.0, p.lanes) : sums[0];
      lanes_.store(dtype, total, at(to, m * c[1] + p.first, dtype), p.lanes, nullptr);
    }
  }
}

void Unrolled::emit() {
  for (const Item& item : items_.items) {
    if (item.kind == Item::Kind::Pointwise) {
      emit_pointwise(item);
    } else if (item.kind == Item::Kind::Reduction) {
      emit_reduction(item);
    } else {
      emit_matmul(item);
    }
  }
}

void Unrolled::copy(StorageId storage, Value* from, Value* to) {
  const schedule::Storage& s = items_.storages[static_cast<std::size_t>(storage)];
  for (const Piece& p : pieces(s.elements, s.dtype)) {
    Value* v = lanes_.load(s.dtype, at(from, p.first, s.dtype), p.lanes, nullptr);
    lanes_.store(s.dtype, v, at(to, p.first, s.dtype), p.lanes, nullptr);
  }
}

}  // namespace ricci::cpu
