// Gated delta-rule linear attention and its derivative, in blocks of values: see recurrence.h.
#include "backend/cpu/host/element.h"
#include "backend/cpu/host/kernels.h"
#include "backend/cpu/host/recurrence.h"
#include "backend/cpu/host/scratch.h"

namespace ricci::cpu {
namespace {

// The sizes of a call and its operands 0 to 5.
template <class N>
struct Net : loop::GatedDelta {
  N kappa;
  std::int64_t blocks;  // of values
  NumberOperand<N> q;
  NumberOperand<N> k;
  NumberOperand<N> v;
  NumberOperand<N> g;
  NumberOperand<N> beta;
  std::optional<NumberOperand<N>> state;

  Net(const HostArguments& call, Scratch& scratch)
      : loop::GatedDelta(call.as<loop::GatedDelta>()),
        kappa(static_cast<N>(1 / std::sqrt(static_cast<double>(key_width)))),
        blocks(column_blocks(value_width)),
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
  // Numbers in the state of a unit.
  [[nodiscard]] std::int64_t unit_size() const { return key_width * RecurrenceColumns; }
  [[nodiscard]] std::int64_t at_key(std::int64_t row, std::int64_t t, std::int64_t key_head) const {
    return ((row * steps + t) * key_heads + key_head) * key_width;
  }
};

// One head of a batch row, and a block of its values.
template <class N>
struct DeltaUnit {
  const Net<N>& in;
  std::int64_t row;
  std::int64_t head;
  std::int64_t first;  // value
  std::int64_t width;  // values

  DeltaUnit(const Net<N>& net, std::int64_t batch_row, std::int64_t of_head, std::int64_t block)
      : in(net),
        row(batch_row),
        head(of_head),
        first(block * RecurrenceColumns),
        width(std::min(RecurrenceColumns, net.value_width - first)) {}

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
      std::copy_n(from->data() + at_state(i), width, s + i * RecurrenceColumns);
    }
  }
  void write_state(const ArrayView& to, const N* s) const {
    if (to.data == nullptr) return;
    for (std::int64_t i = 0; i < in.key_width; ++i) {
      write_numbers(to, at_state(i), width, s + i * RecurrenceColumns);
    }
  }
  void write_steps(const ArrayView& to, std::int64_t t, std::int64_t count, const N* from) const {
    if (to.data == nullptr) return;
    for (std::int64_t i = 0; i < count; ++i) {
      write_numbers(to, at_value(t + i), width, from + i * RecurrenceColumns);
    }
  }

  // `count` steps from step t on, with the state in its place.
  [[nodiscard]] DeltaSteps<N> steps(std::int64_t t, std::int64_t count, N* s) const {
    const std::int64_t key = in.at_key(row, t, head / in.group());
    return {.steps = count,
            .keys = in.key_width,
            .width = width,
            .key_step = in.key_heads * in.key_width,
            .value_step = in.heads * in.value_width,
            .gate_step = in.heads,
            .kappa = in.kappa,
            .q = in.q.data() + key,
            .k = in.k.data() + key,
            .v = in.v.data() + at_value(t),
            .g = in.g.data() + at_gate(t),
            .beta = in.beta.data() + at_gate(t),
            .s = s};
  }
};

template <class N>
class GatedDeltaNet {
 public:
  GatedDeltaNet(const HostArguments& call, Scratch& scratch)
      : call_(call),
        in_(call, scratch),
        units_(in_.batch * in_.heads * in_.blocks),
        room_size_(in_.unit_size() + Piece * RecurrenceColumns),
        room_(scratch.take<N>(units_.tiles * room_size_)) {}

  void run() const {
    in_.pack(call_.pool);
    units_.run(call_.pool, [&](std::int64_t i, std::int64_t tile) {
      N* const s = room_ + tile * room_size_;
      N* const out = s + in_.unit_size();
      const std::int64_t head = i / in_.blocks;
      const DeltaUnit<N> unit(in_, head / in_.heads, head % in_.heads, i % in_.blocks);
      unit.load_state(in_.state, s);
      for (std::int64_t t = 0; t < in_.steps; t += Piece) {
        DeltaSteps<N> steps = unit.steps(t, std::min(Piece, in_.steps - t), s);
        steps.out = out;
        recurrence_kernels<N>().delta(steps);
        unit.write_steps(call_.results[0], t, steps.steps, out);
      }
      unit.write_state(call_.results[1], s);
    });
  }

 private:
  static constexpr std::int64_t Piece = 64;  // steps between two writes of the output

  const HostArguments& call_;
  Net<N> in_;
  Slots units_;
  std::int64_t room_size_;
  N* room_;
};

// Sums over values and over the heads a key serves (dq, dk) are kept per part of a key head's
// units, sums over values (dg, dbeta) per unit; they are added up in the end.
template <class N>
class GatedDeltaNetBackward {
 public:
  GatedDeltaNetBackward(const HostArguments& call, Scratch& scratch)
      : call_(call),
        in_(call, scratch),
        dout_(call, cotangent(), scratch),
        parts_(in_.group() * in_.blocks),
        tasks_(in_.batch * in_.key_heads * parts_.count),
        chunks_(in_.steps),
        room_size_((chunks_.count + chunks_.length + 2) * in_.unit_size() +
                   2 * chunks_.length * RecurrenceColumns),
        room_(scratch.take<N>(tasks_.tiles * room_size_)),
        dq_(scratch.take<N>(tasks_.items * in_.steps * in_.key_width)),
        dk_(scratch.take<N>(tasks_.items * in_.steps * in_.key_width)),
        dg_(scratch.take<N>(in_.batch * in_.heads * in_.blocks * in_.steps)),
        dbeta_(scratch.take<N>(in_.batch * in_.heads * in_.blocks * in_.steps)) {
    if (in_.has_final_cotangent) dlast_.emplace(call, cotangent() + 1, scratch);
  }

  void run() const {
    in_.pack(call_.pool);
    dout_.pack(call_.pool);
    if (dlast_) dlast_->pack(call_.pool);
    tasks_.run(call_.pool,
               [&](std::int64_t i, std::int64_t tile) { run_part(i, room_ + tile * room_size_); });
    add_parts(dq_, 0);
    add_parts(dk_, 1);
    add_blocks(dg_, 3);
    add_blocks(dbeta_, 4);
  }

 private:
  [[nodiscard]] std::size_t cotangent() const { return in_.has_initial_state ? 6 : 5; }

  // What a unit works in.
  struct Room {
    N* later;   // E_{t+1}, then E_t
    N* kept;    // the state before every chunk
    N* states;  // of one chunk, from the one before it
    N* errors;  // of one chunk
    N* dv;      // of one chunk

    Room(N* room, const Chunks& chunks, std::int64_t size)
        : later(room),
          kept(later + size),
          states(kept + chunks.count * size),
          errors(states + (chunks.length + 1) * size),
          dv(errors + chunks.length * RecurrenceColumns) {}
  };

  // Task i is a part of the units of a key head.
  void run_part(std::int64_t i, N* memory) const {
    const Room room(memory, chunks_, in_.unit_size());
    const std::int64_t part = i % parts_.count;
    const std::int64_t row = i / parts_.count / in_.key_heads;
    const std::int64_t key_head = i / parts_.count % in_.key_heads;
    const std::int64_t own = i * in_.steps * in_.key_width;
    std::fill_n(dq_ + own, in_.steps * in_.key_width, N(0));
    std::fill_n(dk_ + own, in_.steps * in_.key_width, N(0));
    for (std::int64_t u = parts_.begin(part); u < parts_.end(part); ++u) {
      const std::int64_t block = u % in_.blocks;
      const DeltaUnit<N> unit(in_, row, key_head * in_.group() + u / in_.blocks, block);
      run_forward(unit, room);
      run_back(unit, room, own, ((row * in_.heads + unit.head) * in_.blocks + block) * in_.steps);
    }
  }

  // Keeps the state before every chunk.
  void run_forward(const DeltaUnit<N>& unit, const Room& room) const {
    const std::int64_t size = in_.unit_size();
    unit.load_state(in_.state, room.states);
    for (std::int64_t c = 0; c < chunks_.count; ++c) {
      std::copy_n(room.states, size, room.kept + c * size);
      if (c + 1 == chunks_.count) break;
      recurrence_kernels<N>().delta(unit.steps(chunks_.first(c), chunks_.size(c), room.states));
    }
  }

  // The last chunk first. `own` is where the part's sums for keys start, `gates` the unit's for
  // gates.
  void run_back(const DeltaUnit<N>& unit, const Room& room, std::int64_t own,
                std::int64_t gates) const {
    const std::int64_t size = in_.unit_size();
    std::fill_n(dg_ + gates, in_.steps, N(0));
    std::fill_n(dbeta_ + gates, in_.steps, N(0));
    unit.load_state(dlast_, room.later);
    for (std::int64_t c = chunks_.count; c-- > 0;) {
      const std::int64_t t = chunks_.first(c);
      DeltaSteps<N> steps = unit.steps(t, chunks_.size(c), room.states);
      steps.s_step = size;
      steps.errors = room.errors;
      std::copy_n(room.kept + c * size, size, room.states);
      recurrence_kernels<N>().delta(steps);
      steps.dout = dout_.data() + unit.at_value(t);
      steps.later = room.later;
      steps.dq = dq_ + own + t * in_.key_width;
      steps.dk = dk_ + own + t * in_.key_width;
      steps.dv = room.dv;
      steps.dg = dg_ + gates + t;
      steps.dbeta = dbeta_ + gates + t;
      recurrence_kernels<N>().delta_backward(steps);
      unit.write_steps(call_.results[2], t, steps.steps, room.dv);
    }
    if (in_.has_initial_state) unit.write_state(call_.results[5], room.later);
  }

  // result r [batch, S, key_heads, keys] = Σ over parts
  void add_parts(N* sums, std::size_t r) const {
    if (call_.results[r].data == nullptr) return;
    const std::int64_t width = in_.key_width;
    const std::int64_t rows = in_.batch * in_.steps * in_.key_heads;
    parallel_for(call_.pool, rows, grain_for(width * parts_.count),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t i = begin; i < end; ++i) {
                     const std::int64_t head = i % in_.key_heads;
                     const std::int64_t t = i / in_.key_heads % in_.steps;
                     const std::int64_t row = i / in_.key_heads / in_.steps;
                     const std::int64_t first = (row * in_.key_heads + head) * parts_.count;
                     N* total = sums + (first * in_.steps + t) * width;
                     for (std::int64_t part = 1; part < parts_.count; ++part) {
                       const N* more = total + part * in_.steps * width;
                       for (std::int64_t e = 0; e < width; ++e) total[e] += more[e];
                     }
                     write_sum(r, i * width, width, total);
                   }
                 });
  }

  // result r [batch, S, heads] = Σ over blocks of values
  void add_blocks(const N* sums, std::size_t r) const {
    if (call_.results[r].data == nullptr) return;
    parallel_for(call_.pool, in_.batch * in_.steps * in_.heads, grain_for(in_.blocks),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t i = begin; i < end; ++i) {
                     const std::int64_t t = i / in_.heads % in_.steps;
                     const std::int64_t row = i / in_.heads / in_.steps;
                     const N* of_head =
                         sums + (row * in_.heads + i % in_.heads) * in_.blocks * in_.steps;
                     N total(0);
                     for (std::int64_t b = 0; b < in_.blocks; ++b) {
                       total += of_head[b * in_.steps + t];
                     }
                     write_numbers(call_.results[r], i, 1, &total);
                   }
                 });
  }

  // Sums of no part at all are zeros.
  void write_sum(std::size_t r, std::int64_t at, std::int64_t count, const N* total) const {
    const N zero(0);
    for (std::int64_t e = 0; parts_.count == 0 && e < count; ++e) {
      write_numbers(call_.results[r], at + e, 1, &zero);
    }
    if (parts_.count > 0) write_numbers(call_.results[r], at, count, total);
  }

  const HostArguments& call_;
  Net<N> in_;
  NumberOperand<N> dout_;
  std::optional<NumberOperand<N>> dlast_;
  Parts parts_;
  Slots tasks_;
  Chunks chunks_;
  std::int64_t room_size_;
  N* room_;
  N* dq_;
  N* dk_;
  N* dg_;
  N* dbeta_;
};

}  // namespace

HostKernel gated_delta_kernel() noexcept { return kernel_of_float<GatedDeltaNet>(); }
HostKernel gated_delta_backward_kernel() noexcept {
  return kernel_of_float<GatedDeltaNetBackward>();
}

}  // namespace ricci::cpu
