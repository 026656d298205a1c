// Loops and branches as bytes: descriptions for the archive (see archive.h).
#pragma once

#include <limits>
#include <optional>

#include "ricci/compiler/loop/written_loop.h"

#include "schedule/archive.h"

namespace ricci::schedule {

template <class A, class T>
void optional_field(A& a, T& value) {
  bool there = value.has_value();
  a(there);
  if constexpr (A::reading) {
    value.reset();
    if (there) value.emplace();
  }
  if (there) a(*value);
}

template <class A>
void fields(A& a, Either<loop::RowWalk> auto& w) {
  a(w.first, w.step);
}
template <class A>
void fields(A& a, Either<loop::RowPort> auto& p) {
  a(p.array, p.rows);
}
template <class A>
void fields(A& a, Either<loop::Pace> auto& p) {
  a(p.start, p.add, p.limit);
}
template <class A>
void fields(A& a, Either<loop::KeptRows> auto& k) {
  a(k.result, k.rows, k.pace, k.entering);
}
template <class A>
void fields(A& a, Either<loop::Carry> auto& c) {
  a(c.operand, c.last);
  optional_field(a, c.kept);
}
template <class A>
void fields(A& a, Either<loop::LoopPlan> auto& p) {
  optional_field(a, p.most_trips);
  a(p.conditional, p.carries, p.wholes, p.xs, p.ys, p.zeroed, p.trip_count);
}

template <class A>
void fields(A& a, Either<loop::StoredRead> auto& r) {
  a(r.storage, r.layout);
}
template <class A>
void fields(A& a, Either<loop::SequenceRead> auto& r) {
  a(r.dtype, r.layout);
}
// Bodies have no complex numbers.
template <class A>
void fields(A& a, Either<loop::SplatRead> auto& r) {
  a(r.dtype);
  if constexpr (A::reading) {
    if (is_float(r.dtype)) {
      a(r.number.template emplace<double>());
    } else {
      a(r.number.template emplace<std::int64_t>());
    }
  } else if (const auto* real = std::get_if<double>(&r.number)) {
    a(*real);
  } else {
    a(std::get<std::int64_t>(r.number));
  }
}

template <class A>
void reduced_axes(A& a, Either<std::vector<bool>> auto& reduced) {
  std::vector<std::uint8_t> flags(reduced.begin(), reduced.end());
  a(flags);
  if constexpr (A::reading) {
    reduced.clear();
    for (const std::uint8_t flag : flags) reduced.push_back(flag != 0);
  }
}

// What a body computes, unlike what a kernel does, is kept whole.
template <class A>
void fields(A& a, Either<loop::WrittenItem> auto& i) {
  a.bounded(i.kind, static_cast<std::int64_t>(loop::WrittenItem::Kind::Product));
  a(i.dims, i.reads, i.storage, i.instr.dtype);
  switch (i.kind) {
    case loop::WrittenItem::Kind::Pointwise:
      a.bounded(i.instr.code, std::numeric_limits<std::uint8_t>::max());
      a(i.instr.kind, i.instr.not_positive, i.to);
      break;
    case loop::WrittenItem::Kind::Reduction:
      a.bounded(i.reduce, static_cast<std::int64_t>(enumerator_names(ReduceKind{}).size()) - 1);
      reduced_axes(a, i.reduced);
      break;
    case loop::WrittenItem::Kind::Product: break;
  }
}
template <class A>
void fields(A& a, Either<loop::WrittenBody> auto& b) {
  a(b.storages, b.items, b.inputs, b.outputs);
}
template <class A>
void fields(A& a, Either<loop::WrittenLoop> auto& l) {
  a(l.plan, l.body);
  optional_field(a, l.condition);
}

}  // namespace ricci::schedule
