// Gated delta-rule linear attention: the operands of a call, and pieces of its steps for one head
// and a block of its values. A few steps (decoding) are taken one by one; many are cut into chunks,
// which are products of matrices.
#pragma once

#include <optional>

#include "backend/cpu/host/element.h"
#include "backend/cpu/host/recurrence.h"
#include "backend/cpu/host/scratch.h"

namespace ricci::cpu {

/// The sizes of a call and its operands 0 to 5.
template <class N>
struct DeltaNet : loop::GatedDelta {
  static constexpr std::int64_t LeastChunked = 16;  // steps

  N kappa;
  bool chunked;
  std::int64_t columns;  // values in a block
  std::int64_t blocks;   // of values
  NumberOperand<N> q;
  NumberOperand<N> k;
  NumberOperand<N> v;
  NumberOperand<N> g;
  NumberOperand<N> beta;
  std::optional<NumberOperand<N>> state;

  DeltaNet(const HostArguments& call, Scratch& scratch)
      : loop::GatedDelta(call.as<loop::GatedDelta>()),
        kappa(static_cast<N>(1 / std::sqrt(static_cast<double>(key_width)))),
        chunked(steps >= LeastChunked &&
                (pass == loop::Pass::Backward || recurrence_kernels<N>().chunks_forward)),
        columns(chunked ? DeltaChunkColumns : RecurrenceColumns),
        blocks((value_width + columns - 1) / columns),
        q(call, 0, scratch),
        k(call, 1, scratch),
        v(call, 2, scratch),
        g(call, 3, scratch),
        beta(call, 4, scratch) {
    if (has_initial_state) state.emplace(call, 5, scratch);
  }

  void pack(ThreadPool& pool) const {
    for (const auto* operand : {&q, &k, &v, &g, &beta}) operand->pack(pool);
    if (state) state->pack(pool);
  }
  [[nodiscard]] std::int64_t group() const { return key_heads == 0 ? 1 : heads / key_heads; }
  /// Numbers in the state of a unit.
  [[nodiscard]] std::int64_t unit_size() const { return key_width * columns; }
  [[nodiscard]] std::int64_t at_key(std::int64_t row, std::int64_t t, std::int64_t key_head) const {
    return ((row * steps + t) * key_heads + key_head) * key_width;
  }
};

/// What a piece of steps gives backwards, and what it is given.
template <class N>
struct DeltaGradients {
  const N* dout = nullptr;  // from the piece's first step on
  N* later = nullptr;       // [keys][columns]: the gradient of the state behind, then before
  N* dq = nullptr;          // [steps][keys], added to, and so dk
  N* dk = nullptr;
  N* dv = nullptr;  // [steps][columns]
  N* dg = nullptr;  // [steps], added to, and so dbeta
  N* dbeta = nullptr;
};

/// One head of a batch row, and a block of its values.
template <class N>
struct DeltaUnit {
  const DeltaNet<N>& in;
  std::int64_t row;
  std::int64_t head;
  std::int64_t first;  // value
  std::int64_t width;  // values

  DeltaUnit(const DeltaNet<N>& net, std::int64_t batch_row, std::int64_t of_head,
            std::int64_t block)
      : in(net),
        row(batch_row),
        head(of_head),
        first(block * net.columns),
        width(std::min(net.columns, net.value_width - first)) {}

  [[nodiscard]] std::int64_t at_gate(std::int64_t t) const {
    return (row * in.steps + t) * in.heads + head;
  }
  [[nodiscard]] std::int64_t at_value(std::int64_t t) const {
    return at_gate(t) * in.value_width + first;
  }
  // Where key i of the state is.
  [[nodiscard]] std::int64_t at_state(std::int64_t i) const {
    return ((row * in.heads + head) * in.key_width + i) * in.value_width + first;
  }

  void load_state(const std::optional<NumberOperand<N>>& from, N* s) const {
    std::fill_n(s, in.unit_size(), N(0));
    for (std::int64_t i = 0; from && i < in.key_width; ++i) {
      std::copy_n(from->data() + at_state(i), width, s + i * in.columns);
    }
  }
  void write_state(const ArrayView& to, const N* s) const {
    if (to.data == nullptr) return;
    for (std::int64_t i = 0; i < in.key_width; ++i) {
      write_numbers(to, at_state(i), width, s + i * in.columns);
    }
  }
  void write_steps(const ArrayView& to, std::int64_t t, std::int64_t count, const N* from) const {
    if (to.data == nullptr) return;
    for (std::int64_t i = 0; i < count; ++i) {
      write_numbers(to, at_value(t + i), width, from + i * in.columns);
    }
  }

  /// Numbers of room that `count` steps need forwards and backwards.
  [[nodiscard]] static std::int64_t forward_room(const DeltaNet<N>& net, std::int64_t count) {
    if (!net.chunked) return 0;
    return delta_chunk_room(net.key_width) + (net.key_width + count) * RecurrenceColumns;
  }
  [[nodiscard]] static std::int64_t backward_room(const DeltaNet<N>& net, std::int64_t count) {
    const std::int64_t chunk = net.chunked ? delta_chunk_room(net.key_width) : 0;
    return chunk + ((count + 2) * net.key_width + 2 * count) * RecurrenceColumns;
  }

  /// `count` steps from step t on: the state goes on in its place; `out` [steps][columns] may be
  /// null.
  void go(std::int64_t t, std::int64_t count, N* s, N* out, N* room) const {
    if (!in.chunked) {
      DeltaSteps<N> one_by_one = steps(t, count, 0, s);
      one_by_one.out = out;
      recurrence_kernels<N>().delta(one_by_one);
      return;
    }
    DeltaChunk<N> whole = chunk(t, count, s, room);
    whole.out = out;
    if (!recurrence_kernels<N>().delta_chunk(whole)) go_by_steps(t, count, s, out, room);
  }

  /// The same backwards, with the state before the first of them.
  void go_back(std::int64_t t, std::int64_t count, N* s, const DeltaGradients<N>& d,
               N* room) const {
    if (in.chunked) {
      DeltaChunk<N> whole = chunk(t, count, s, room);
      whole.dout = d.dout;
      whole.later = d.later;
      whole.dq = d.dq, whole.dk = d.dk, whole.dv = d.dv;
      whole.dg = d.dg, whole.dbeta = d.dbeta;
      if (recurrence_kernels<N>().delta_chunk_backward(whole)) return;
      room += delta_chunk_room(in.key_width);
    }
    for (std::int64_t at = 0; at < width; at += RecurrenceColumns) {
      back_by_steps(t, count, at, s, d, room);
    }
  }

 private:
  [[nodiscard]] DeltaSteps<N> steps(std::int64_t t, std::int64_t count, std::int64_t column,
                                    N* s) const {
    const std::int64_t key = in.at_key(row, t, head / in.group());
    return {.steps = count,
            .keys = in.key_width,
            .width = std::min(RecurrenceColumns, width - column),
            .key_step = in.key_heads * in.key_width,
            .value_step = in.heads * in.value_width,
            .gate_step = in.heads,
            .kappa = in.kappa,
            .q = in.q.data() + key,
            .k = in.k.data() + key,
            .v = in.v.data() + at_value(t) + column,
            .g = in.g.data() + at_gate(t),
            .beta = in.beta.data() + at_gate(t),
            .s = s};
  }
  [[nodiscard]] DeltaChunk<N> chunk(std::int64_t t, std::int64_t count, N* s, N* room) const {
    const DeltaSteps<N> same = steps(t, count, 0, s);
    return {.steps = count,
            .keys = same.keys,
            .width = width,
            .key_step = same.key_step,
            .value_step = same.value_step,
            .gate_step = same.gate_step,
            .kappa = same.kappa,
            .q = same.q,
            .k = same.k,
            .v = same.v,
            .g = same.g,
            .beta = same.beta,
            .s = s,
            .room = room};
  }

  // Columns from `column` on of rows [count][columns] to [count][RecurrenceColumns] and back.
  void take_columns(const N* from, std::int64_t count, std::int64_t column, N* to) const {
    for (std::int64_t i = 0; i < count; ++i) {
      std::copy_n(from + i * in.columns + column, RecurrenceColumns, to + i * RecurrenceColumns);
    }
  }
  void put_columns(const N* from, std::int64_t count, std::int64_t column, N* to) const {
    for (std::int64_t i = 0; i < count; ++i) {
      std::copy_n(from + i * RecurrenceColumns, RecurrenceColumns, to + i * in.columns + column);
    }
  }

  void go_by_steps(std::int64_t t, std::int64_t count, N* s, N* out, N* room) const {
    N* const state_room = room + delta_chunk_room(in.key_width);
    N* const out_room = state_room + in.key_width * RecurrenceColumns;
    for (std::int64_t at = 0; at < width; at += RecurrenceColumns) {
      take_columns(s, in.key_width, at, state_room);
      DeltaSteps<N> one_by_one = steps(t, count, at, state_room);
      one_by_one.out = out == nullptr ? nullptr : out_room;
      recurrence_kernels<N>().delta(one_by_one);
      put_columns(state_room, in.key_width, at, s);
      if (out != nullptr) put_columns(out_room, count, at, out);
    }
  }

  void back_by_steps(std::int64_t t, std::int64_t count, std::int64_t column, const N* s,
                     const DeltaGradients<N>& d, N* room) const {
    const std::int64_t size = in.key_width * RecurrenceColumns;
    N* const states = room;  // before every step
    N* const later = states + (count + 1) * size;
    N* const errors = later + size;
    N* const dv = errors + count * RecurrenceColumns;
    DeltaSteps<N> one_by_one = steps(t, count, column, states);
    one_by_one.s_step = size;
    one_by_one.errors = errors;
    take_columns(s, in.key_width, column, states);
    take_columns(d.later, in.key_width, column, later);
    recurrence_kernels<N>().delta(one_by_one);
    one_by_one.dout = d.dout + column;
    one_by_one.later = later;
    one_by_one.dq = d.dq, one_by_one.dk = d.dk, one_by_one.dv = dv;
    one_by_one.dg = d.dg, one_by_one.dbeta = d.dbeta;
    recurrence_kernels<N>().delta_backward(one_by_one);
    put_columns(later, in.key_width, column, d.later);
    put_columns(dv, count, column, d.dv);
  }
};

}  // namespace ricci::cpu
