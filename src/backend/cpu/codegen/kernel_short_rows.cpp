// Rows that are too short to be vectors: each lane has one, and the code of an element is made once
// for every place of the row. What neighbours in memory hold for neighbouring rows is read and
// written as whole vectors, whose lanes are sorted out between registers.
#include <algorithm>
#include <cstdlib>

#include "backend/cpu/codegen/kernel_code.h"
#include "backend/cpu/codegen/kernel_emitter.h"
#include "op/kinds.h"
#include "type/small_dtype.h"

namespace ricci::cpu {

using llvm::BasicBlock;
using llvm::Value;

void KernelEmitter::emit_short_rows() {
  lane_count_ = short_rows_;
  indices_.assign(k_.extents.size(), nullptr);
  element_.assign(k_.extents.size(), 0);
  find_read_places();
  in_groups(k_.extents.back(), k_.kept, Groups::WholeAndOthers, [&](Value* index, Value* count) {
    preheader_ = b_.GetInsertBlock();
    mask_ = count == nullptr ? nullptr : first_lanes(count);
    BasicBlock* start = block("start");
    b_.SetInsertPoint(start);
    emit_group(index);
    BasicBlock* end = b_.GetInsertBlock();
    b_.SetInsertPoint(preheader_);
    b_.CreateBr(start);
    b_.SetInsertPoint(end);
  });
  mask_ = nullptr;
}

void KernelEmitter::emit_group(Value* column) {
  const std::size_t lane_axis = k_.extents.size() - 1;
  row_values_.clear();
  runs_.clear();
  left_there_.clear();
  reduced_.assign(k_.reductions.size(), nullptr);
  indices_[lane_axis] = column;
  for (const Stage& stage : k_.stages) {
    if (stage.per_element) {
      emit_group_elements(stage, column);
    } else {
      std::ranges::fill(element_, 0);
      for (std::size_t a = k_.kept; a < lane_axis; ++a) indices_[a] = number(0);
      bases_.clear();
      guards_.clear();
      invariants_.clear();
      vectors_ = row_values_;
      for (const Reg r : stage.code) {
        vectors_[r] = emit(k_.code[static_cast<std::size_t>(r)], column);
      }
      for (const loop::Store& s : stage.stores) store_to_rows(s, stage, column);
      row_values_ = vectors_;
    }
    flush_stores(column);
  }
}

void KernelEmitter::emit_group_elements(const Stage& stage, Value* column) {
  std::vector<Value*> sums;
  for (const std::int32_t m : stage.reductions) {
    const loop::Reduction& red = k_.reductions[static_cast<std::size_t>(m)];
    sums.push_back(lanes_.identity(red.kind, widened(red.dtype), lane_count_));
  }
  for_elements([&] {
    vectors_ = row_values_;
    for (const Reg r : stage.code) {
      vectors_[r] = emit(k_.code[static_cast<std::size_t>(r)], column);
    }
    for (const loop::Store& s : stage.stores) store_to_rows(s, stage, column);
    for (std::size_t n = 0; n < sums.size(); ++n) {
      const loop::Reduction& red = k_.reductions[static_cast<std::size_t>(stage.reductions[n])];
      Value* x = lanes_.spread(value(red.value), lane_count_);
      if (is_logical(red.kind)) x = lanes_.nonzero(x, dtype_of(red.value));
      sums[n] = lanes_.combine(red.kind, widened(red.dtype), sums[n], x);
    }
  });
  for (std::size_t n = 0; n < sums.size(); ++n) {
    const auto m = static_cast<std::size_t>(stage.reductions[n]);
    reduced_[m] = lanes_.rounded(sums[n], k_.reductions[m].dtype);
  }
}

template <class F>
void KernelEmitter::for_elements(F&& f) {
  const std::size_t lane_axis = k_.extents.size() - 1;
  std::int64_t count = 1;
  for (std::size_t a = k_.kept; a < lane_axis; ++a) count *= k_.extents[a];
  for (std::int64_t n = 0; n < count; ++n) {
    std::int64_t rest = n;
    for (std::size_t a = lane_axis; a-- > k_.kept;) {
      element_[a] = rest % k_.extents[a];
      rest /= k_.extents[a];
      indices_[a] = number(element_[a]);
    }
    // Addresses and guards are those of one element.
    bases_.clear();
    guards_.clear();
    invariants_.clear();
    f();
  }
}

KernelEmitter::RowPlace KernelEmitter::row_place(const Access& access) const {
  RowPlace place{{access.argument, access.strides}, access.offset};
  for (std::size_t a = k_.kept; a + 1 < k_.extents.size(); ++a) {
    place.second += access.strides[a] * element_[a];
    place.first.strides[a] = 0;
  }
  return place;
}

std::optional<bool> KernelEmitter::reads_here(const Access& access) const {
  bool known = true;
  for (const loop::Guard& g : access.guards) {
    std::int64_t at = g.offset;
    bool moves = false;
    for (std::size_t a = 0; a < k_.extents.size(); ++a) {
      const bool in_row = a >= k_.kept && a + 1 < k_.extents.size();
      if (in_row) {
        at += g.strides[a] * element_[a];
      } else {
        moves = moves || g.strides[a] != 0;
      }
    }
    if (moves) {
      known = false;
    } else if (at < 0 || at >= g.limit) {
      return false;
    }
  }
  return known ? std::optional(true) : std::nullopt;
}

void KernelEmitter::find_read_places() {
  for (const Stage& stage : k_.stages) {
    const auto add = [&] {
      for (const Reg r : stage.code) {
        const Instr& i = k_.code[static_cast<std::size_t>(r)];
        if (i.code != loop::Code::Load || !i.access.terms.empty()) continue;
        if (reads_here(i.access) != true) continue;
        const auto [access, place] = row_place(i.access);
        read_places_[access].insert(place);
      }
    };
    if (stage.per_element) {
      for_elements(add);
    } else {
      std::ranges::fill(element_, 0);
      add();
    }
  }
}

KernelEmitter::Span KernelEmitter::span_of(const std::set<std::int64_t>& places, std::int64_t place,
                                           std::int64_t stride) {
  const std::int64_t least = *places.begin();
  const std::int64_t begin = least + (place - least) / stride * stride;
  return {*places.lower_bound(begin), *std::prev(places.lower_bound(begin + stride))};
}

Value* KernelEmitter::load_from_rows(const Instr& i, Value* column) {
  if (!i.access.terms.empty()) return nullptr;
  const std::optional<bool> reads = reads_here(i.access);
  if (reads == false) {
    return std::visit([&](auto v) { return lanes_.constant(i.dtype, v, lane_count_); }, i.number);
  }
  const auto [access, place] = row_place(i.access);
  if (const auto found = left_there_.find({access, place}); found != left_there_.end()) {
    return found->second;
  }
  const std::int64_t stride = access.strides.back();
  if (!reads || mask_ != nullptr || !is_narrow_stride(stride, i.dtype)) return nullptr;
  const std::int64_t apart = std::abs(stride);
  const Span span = span_of(read_places_.at(access), place, apart);
  const VectorRun run{(lane_count_ - 1) * apart + span.high - span.low + 1, lane_count_};
  std::vector<Value*>& vectors = runs_[{access, span, i.dtype}];
  if (vectors.empty()) {
    const std::int64_t first = stride < 0 ? span.low + (lane_count_ - 1) * stride : span.low;
    Value* at = at_index(first, access.strides, k_.extents.size() - 1);
    at = b_.CreateAdd(at, b_.CreateMul(column, number(stride)));
    vectors = load_run(i.dtype, element(argument(access.argument), at, size_of(i.dtype)), run);
  }
  std::vector<std::int64_t> positions;
  for (int l = 0; l < lane_count_; ++l) {
    positions.push_back(place - span.low + apart * (stride < 0 ? lane_count_ - 1 - l : l));
  }
  return lanes_.from_stored(picked(b_, run, vectors, positions), i.dtype);
}

bool KernelEmitter::is_stored_later(const loop::Store& s, const Stage& stage) const {
  for (const Stage* later = &stage + 1; later != k_.stages.data() + k_.stages.size(); ++later) {
    for (const loop::Store& other : later->stores) {
      if (other.access.argument == s.access.argument && other.access.offset == s.access.offset &&
          other.access.strides == s.access.strides && later->per_element == stage.per_element) {
        return true;
      }
    }
  }
  return false;
}

void KernelEmitter::store_to_rows(const loop::Store& s, const Stage& stage, Value* column) {
  const auto [access, place] = row_place(s.access);
  const loop::Argument& to = k_.arguments[static_cast<std::size_t>(s.access.argument)];
  Value* v = value(s.value);
  left_there_[{access, place}] = v;
  if (to.role == loop::ArgumentRole::Local || is_stored_later(s, stage)) return;
  if (mask_ == nullptr && access.strides.back() > 1) {
    to_store_[access][place] = lanes_.to_stored(lanes_.spread(v, lane_count_), to.dtype);
  } else {
    store(s, k_.extents.size() - 1, column);
  }
}

void KernelEmitter::flush_stores(Value* column) {
  for (const auto& [access, values] : to_store_) {
    const std::int64_t stride = access.strides.back();
    const DType dtype = k_.arguments[static_cast<std::size_t>(access.argument)].dtype;
    for (auto from = values.begin(); from != values.end();) {
      const std::int64_t low = from->first;
      const auto to = values.lower_bound(low + stride);
      std::vector<Value*> parts;
      std::map<std::int64_t, std::int64_t> part_at;  // by place
      for (; from != to; ++from) {
        part_at[from->first - low] = static_cast<std::int64_t>(parts.size());
        parts.push_back(from->second);
      }
      const VectorRun all{static_cast<std::int64_t>(parts.size()) * lane_count_, lane_count_};
      Value* at = at_index(low, access.strides, k_.extents.size() - 1);
      at = b_.CreateAdd(at, b_.CreateMul(column, number(stride)));
      for (std::int64_t v = 0; v < stride; ++v) {
        std::vector<std::int64_t> positions;
        std::vector<llvm::Constant*> wanted;
        bool any = false;
        for (std::int64_t l = v * lane_count_; l < (v + 1) * lane_count_; ++l) {
          const auto part = part_at.find(l % stride);
          const bool there = part != part_at.end();
          positions.push_back(there ? part->second * lane_count_ + l / stride : -1);
          wanted.push_back(b_.getInt1(there));
          any = any || there;
        }
        if (!any) continue;  // strides longer than a vector pass over some
        const bool whole = parts.size() == static_cast<std::size_t>(stride);
        Value* mask = whole ? nullptr : llvm::ConstantVector::get(wanted);
        Value* place = b_.CreateAdd(at, number(v * lane_count_));
        lanes_.store_stored(dtype, picked(b_, all, parts, positions),
                            element(argument(access.argument), place, size_of(dtype)), lane_count_,
                            mask);
      }
    }
  }
  to_store_.clear();
}

}  // namespace ricci::cpu
