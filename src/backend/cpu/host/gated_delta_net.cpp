// Gated delta-rule linear attention and its derivative, in blocks of values: see recurrence.h.
#include "backend/cpu/host/delta_unit.h"
#include "backend/cpu/host/kernels.h"

namespace ricci::cpu {
namespace {

template <class N>
class GatedDeltaNet {
 public:
  GatedDeltaNet(const HostArguments& call, Scratch& scratch)
      : call_(call),
        in_(call, scratch),
        units_(in_.batch * in_.heads * in_.blocks),
        piece_(in_.chunked ? DeltaChunkSteps : 64),
        room_size_(in_.unit_size() + piece_ * in_.columns +
                   DeltaUnit<N>::forward_room(in_, piece_)),
        room_(scratch.take<N>(units_.tiles * room_size_)) {}

  void run() const {
    in_.pack(call_.pool);
    units_.run(call_.pool, [&](std::int64_t i, std::int64_t tile) {
      N* const s = room_ + tile * room_size_;
      N* const out = s + in_.unit_size();
      N* const room = out + piece_ * in_.columns;
      const std::int64_t head = i / in_.blocks;
      const DeltaUnit<N> unit(in_, head / in_.heads, head % in_.heads, i % in_.blocks);
      unit.load_state(in_.state, s);
      for (std::int64_t t = 0; t < in_.steps; t += piece_) {
        const std::int64_t count = std::min(piece_, in_.steps - t);
        unit.go(t, count, s, out, room);
        unit.write_steps(call_.results[0], t, count, out);
      }
      unit.write_state(call_.results[1], s);
    });
  }

 private:
  const HostArguments& call_;
  DeltaNet<N> in_;
  Slots units_;
  std::int64_t piece_;  // steps between two writes of the output
  std::int64_t room_size_;
  N* room_;
};

// Steps in pieces, pieces in stretches: the state before every stretch is kept, and those before
// the pieces of one stretch at a time, so that room does not grow with steps times states.
struct DeltaPieces {
  static constexpr std::int64_t FewPieces = 16;

  Chunks pieces;
  Chunks stretches;  // of pieces

  DeltaPieces(std::int64_t steps, bool chunked)
      : pieces(chunked ? Chunks(steps, DeltaChunkSteps) : Chunks(steps)),
        stretches(pieces.count, std::max(FewPieces, Chunks(pieces.count).length)) {}
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
        cut_(in_.steps, in_.chunked),
        room_size_(Room::size(in_, cut_)),
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
    N* s;       // the state as it goes on
    N* later;   // the gradient of the state, as it goes back
    N* kept;    // the state before every stretch
    N* states;  // before every piece of one stretch
    N* dv;      // of one piece
    N* more;    // for the steps of a piece

    Room(N* room, const DeltaNet<N>& in, const DeltaPieces& cut)
        : s(room),
          later(s + in.unit_size()),
          kept(later + in.unit_size()),
          states(kept + cut.stretches.count * in.unit_size()),
          dv(states + std::min(cut.pieces.count, cut.stretches.length) * in.unit_size()),
          more(dv + cut.pieces.length * in.columns) {}

    [[nodiscard]] static std::int64_t size(const DeltaNet<N>& in, const DeltaPieces& cut) {
      const std::int64_t states =
          2 + cut.stretches.count + std::min(cut.pieces.count, cut.stretches.length);
      return states * in.unit_size() + cut.pieces.length * in.columns +
             DeltaUnit<N>::backward_room(in, cut.pieces.length);
    }
  };

  // Task i is a part of the units of a key head.
  void run_part(std::int64_t i, N* memory) const {
    const Room room(memory, in_, cut_);
    const std::int64_t part = i % parts_.count;
    const std::int64_t row = i / parts_.count / in_.key_heads;
    const std::int64_t key_head = i / parts_.count % in_.key_heads;
    const std::int64_t own = i * in_.steps * in_.key_width;
    std::fill_n(dq_ + own, in_.steps * in_.key_width, N(0));
    std::fill_n(dk_ + own, in_.steps * in_.key_width, N(0));
    for (std::int64_t u = parts_.begin(part); u < parts_.end(part); ++u) {
      const std::int64_t block = u % in_.blocks;
      const DeltaUnit<N> unit(in_, row, key_head * in_.group() + u / in_.blocks, block);
      const std::int64_t gates = ((row * in_.heads + unit.head) * in_.blocks + block) * in_.steps;
      std::fill_n(dg_ + gates, in_.steps, N(0));
      std::fill_n(dbeta_ + gates, in_.steps, N(0));
      keep_stretches(unit, room);
      unit.load_state(dlast_, room.later);
      for (std::int64_t k = cut_.stretches.count; k-- > 0;) {
        run_back(unit, room, k, own, gates);
      }
      if (in_.has_initial_state) unit.write_state(call_.results[5], room.later);
    }
  }

  // Goes through piece p; the state lies in room.s.
  void go_on(const DeltaUnit<N>& unit, const Room& room, std::int64_t p) const {
    unit.go(cut_.pieces.first(p), cut_.pieces.size(p), room.s, nullptr, room.more);
  }

  // Keeps the state before every stretch.
  void keep_stretches(const DeltaUnit<N>& unit, const Room& room) const {
    const std::int64_t size = in_.unit_size();
    unit.load_state(in_.state, room.s);
    for (std::int64_t k = 0; k < cut_.stretches.count; ++k) {
      std::copy_n(room.s, size, room.kept + k * size);
      if (k + 1 == cut_.stretches.count) break;
      for (std::int64_t i = 0; i < cut_.stretches.size(k); ++i) {
        go_on(unit, room, cut_.stretches.first(k) + i);
      }
    }
  }

  // Stretch k, its last piece first. `own` is where the part's sums for keys start, `gates` the
  // unit's for gates.
  void run_back(const DeltaUnit<N>& unit, const Room& room, std::int64_t k, std::int64_t own,
                std::int64_t gates) const {
    const std::int64_t size = in_.unit_size();
    const std::int64_t first = cut_.stretches.first(k);
    const std::int64_t count = cut_.stretches.size(k);
    std::copy_n(room.kept + k * size, size, room.s);
    for (std::int64_t i = 0; i < count; ++i) {
      std::copy_n(room.s, size, room.states + i * size);
      if (i + 1 < count) go_on(unit, room, first + i);
    }
    for (std::int64_t i = count; i-- > 0;) {
      const std::int64_t t = cut_.pieces.first(first + i);
      const std::int64_t steps = cut_.pieces.size(first + i);
      unit.go_back(t, steps, room.states + i * size,
                   {.dout = dout_.data() + unit.at_value(t),
                    .later = room.later,
                    .dq = dq_ + own + t * in_.key_width,
                    .dk = dk_ + own + t * in_.key_width,
                    .dv = room.dv,
                    .dg = dg_ + gates + t,
                    .dbeta = dbeta_ + gates + t},
                   room.more);
      unit.write_steps(call_.results[2], t, steps, room.dv);
    }
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
  DeltaNet<N> in_;
  NumberOperand<N> dout_;
  std::optional<NumberOperand<N>> dlast_;
  Parts parts_;
  Slots tasks_;
  DeltaPieces cut_;
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
