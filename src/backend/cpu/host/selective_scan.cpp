// The state-space scan and its derivative, in blocks of channels: see recurrence.h.
#include "backend/cpu/host/element.h"
#include "backend/cpu/host/kernels.h"
#include "backend/cpu/host/recurrence.h"
#include "backend/cpu/host/scratch.h"

namespace ricci::cpu {
namespace {

// The sizes of a call and its operands 0 to 5.
template <class N>
struct Scan : loop::SelectiveScan {
  std::int64_t blocks;  // of channels
  NumberOperand<N> x;
  NumberOperand<N> delta;
  NumberOperand<N> a;
  NumberOperand<N> b;
  NumberOperand<N> c;
  std::optional<NumberOperand<N>> h0;

  Scan(const HostArguments& call, Scratch& scratch)
      : loop::SelectiveScan(call.as<loop::SelectiveScan>()),
        blocks(column_blocks(channels)),
        x(call, 0, scratch),
        delta(call, 1, scratch),
        a(call, 2, scratch),
        b(call, 3, scratch),
        c(call, 4, scratch) {
    if (has_initial_state) h0.emplace(call, 5, scratch);
    // Backwards, without a step nothing is asked of any row but what goes into the initial state.
    if (pass == loop::Pass::Backward && steps == 0 && !has_initial_state) batch = 0;
  }

  void pack(ThreadPool& pool) const {
    for (const auto* operand : {&x, &delta, &a, &b, &c}) operand->pack(pool);
    if (h0) h0->pack(pool);
  }
  // Numbers in the state of a unit.
  [[nodiscard]] std::int64_t unit_size() const { return states * RecurrenceColumns; }
};

// One batch row and a block of its channels.
template <class N>
struct ScanUnit {
  const Scan<N>& in;
  std::int64_t row;
  std::int64_t first;  // channel
  std::int64_t width;  // channels
  N* a;                // [states][Columns]

  ScanUnit(const Scan<N>& scan, std::int64_t batch_row, std::int64_t block, N* a_room)
      : in(scan),
        row(batch_row),
        first(block * RecurrenceColumns),
        width(std::min(RecurrenceColumns, scan.channels - first)),
        a(a_room) {
    load_turned(scan.a.data() + ((scan.own_rates ? row : 0) * scan.channels + first) * scan.states,
                a);
  }

  // Where channel `first` of step t is in [batch, S, channels].
  [[nodiscard]] std::int64_t at_channel(std::int64_t t) const {
    return (row * in.steps + t) * in.channels + first;
  }
  // Where step t is in [batch, S, states].
  [[nodiscard]] std::int64_t at_state(std::int64_t t) const {
    return (row * in.steps + t) * in.states;
  }
  // Where this unit is in [batch, channels, states].
  [[nodiscard]] std::int64_t at_unit() const { return (row * in.channels + first) * in.states; }

  // [width, states] to [states][Columns] and back.
  void load_turned(const N* from, N* to) const {
    std::fill_n(to, in.unit_size(), N(0));
    for (std::int64_t l = 0; l < width; ++l) {
      for (std::int64_t m = 0; m < in.states; ++m) {
        to[m * RecurrenceColumns + l] = from[l * in.states + m];
      }
    }
  }
  void write_turned(const N* from, const ArrayView& to) const {
    for (std::int64_t l = 0; l < width; ++l) {
      for (std::int64_t m = 0; m < in.states; ++m) {
        write_numbers(to, at_unit() + l * in.states + m, 1, from + m * RecurrenceColumns + l);
      }
    }
  }
  // A state of [batch, channels, states], or zero.
  void load_state(const std::optional<NumberOperand<N>>& from, N* h) const {
    if (from) {
      load_turned(from->data() + at_unit(), h);
    } else {
      std::fill_n(h, in.unit_size(), N(0));
    }
  }
  void write_steps(const ArrayView& to, std::int64_t t, std::int64_t count, const N* from) const {
    if (to.data == nullptr) return;
    for (std::int64_t i = 0; i < count; ++i) {
      write_numbers(to, at_channel(t + i), width, from + i * RecurrenceColumns);
    }
  }

  // `count` steps from step t on, with the state in its place.
  [[nodiscard]] ScanSteps<N> steps(std::int64_t t, std::int64_t count, N* h) const {
    return {.steps = count,
            .states = in.states,
            .channels = in.channels,
            .width = width,
            .x = in.x.data() + at_channel(t),
            .delta = in.delta.data() + at_channel(t),
            .b = in.b.data() + at_state(t),
            .c = in.c.data() + at_state(t),
            .a = a,
            .h = h};
  }
};

// Steps of a long scan of few units, cut into segments that run side by side: the state is linear
// in the one before the segment, H = decay · H_0 + (H from zero), so the segments are run from
// zero, their states put together one after the other, and the segments run once more from those.
struct ScanSegments {
  std::int64_t steps;
  std::int64_t count;

  // By shapes alone: twice the work, which pays from a few threads on.
  ScanSegments(std::int64_t all, std::int64_t units)
      : steps(all), count(units <= FewUnits ? std::clamp<std::int64_t>(all / Least, 1, Most) : 1) {}
  [[nodiscard]] std::int64_t first(std::int64_t k) const { return k * steps / count; }
  [[nodiscard]] std::int64_t last(std::int64_t k) const { return first(k + 1); }

 private:
  static constexpr std::int64_t FewUnits = 2;
  static constexpr std::int64_t Least = 512;
  static constexpr std::int64_t Most = 32;
};

template <class N>
class SelectiveScan {
 public:
  SelectiveScan(const HostArguments& call, Scratch& scratch)
      : call_(call),
        in_(call, scratch),
        segments_(in_.steps, in_.batch * in_.blocks),
        units_(in_.batch * in_.blocks * segments_.count),
        room_size_(2 * in_.unit_size() + Piece * RecurrenceColumns),
        room_(scratch.take<N>(units_.tiles * room_size_)),
        states_(scratch.take<N>(segments_.count > 1 ? units_.items * in_.unit_size() : 0)),
        decays_(scratch.take<N>(segments_.count > 1 ? units_.items * in_.unit_size() : 0)) {}

  void run() const {
    in_.pack(call_.pool);
    if (segments_.count > 1) find_states();
    units_.run(call_.pool, [&](std::int64_t i, std::int64_t tile) {
      N* const h = room_ + tile * room_size_;
      N* const y = h + 2 * in_.unit_size();
      const std::int64_t segment = i % segments_.count;
      const ScanUnit<N> unit = unit_of(i / segments_.count, h + in_.unit_size());
      if (segment == 0) {
        unit.load_state(in_.h0, h);
      } else {
        std::copy_n(states_ + i * in_.unit_size(), in_.unit_size(), h);
      }
      const std::int64_t last = segments_.last(segment);
      for (std::int64_t t = segments_.first(segment); t < last; t += Piece) {
        ScanSteps<N> steps = unit.steps(t, std::min(Piece, last - t), h);
        if (call_.results[0].data != nullptr) steps.y = y;
        recurrence_kernels<N>().scan(steps);
        unit.write_steps(call_.results[0], t, steps.steps, y);
      }
      if (call_.results[1].data != nullptr && last == in_.steps) {
        unit.write_turned(h, call_.results[1]);
      }
    });
  }

 private:
  static constexpr std::int64_t Piece = 64;  // steps between two writes of y

  [[nodiscard]] ScanUnit<N> unit_of(std::int64_t i, N* a) const {
    return ScanUnit<N>(in_, i / in_.blocks, i % in_.blocks, a);
  }

  // The state before every segment but the first.
  void find_states() const {
    const std::int64_t size = in_.unit_size();
    units_.run(call_.pool, [&](std::int64_t i, std::int64_t tile) {
      const std::int64_t segment = i % segments_.count;
      if (segment + 1 == segments_.count) return;
      N* const a = room_ + tile * room_size_;
      const ScanUnit<N> unit = unit_of(i / segments_.count, a);
      N* const h = states_ + (i + 1) * size;
      const std::int64_t first = segments_.first(segment);
      const std::int64_t count = segments_.last(segment) - first;
      if (segment == 0) {
        unit.load_state(in_.h0, h);
      } else {
        std::fill_n(h, size, N(0));
      }
      recurrence_kernels<N>().scan(unit.steps(first, count, h));
      N total[RecurrenceColumns] = {};
      for (std::int64_t t = first; t < first + count; ++t) {
        const N* delta = in_.delta.data() + unit.at_channel(t);
        for (std::int64_t l = 0; l < unit.width; ++l) total[l] += delta[l];
      }
      for (std::int64_t k = 0; k < size; ++k) {
        decays_[i * size + k] = std::exp(a[k] * total[k % RecurrenceColumns]);
      }
    });
    for (std::int64_t i = 1; i < units_.items; ++i) {
      const std::int64_t segment = i % segments_.count;
      if (segment < 2) continue;
      N* const h = states_ + i * size;
      const N* const before = h - size;
      const N* const decay = decays_ + (i - 1) * size;
      for (std::int64_t k = 0; k < size; ++k) {
        if (before[k] != N(0)) h[k] += decay[k] * before[k];
      }
    }
  }

  const HostArguments& call_;
  Scan<N> in_;
  ScanSegments segments_;
  Slots units_;
  std::int64_t room_size_;
  N* room_;
  N* states_;  ///< before each segment
  N* decays_;  ///< of each segment
};

// Sums over channels (dB, dC) are kept per part of a row's blocks, sums over rows (da) per unit;
// they are added up in the end.
template <class N>
class SelectiveScanBackward {
 public:
  SelectiveScanBackward(const HostArguments& call, Scratch& scratch)
      : call_(call),
        in_(call, scratch),
        dy_(call, cotangent(), scratch),
        parts_(in_.blocks),
        tasks_(in_.batch * parts_.count),
        chunks_(in_.steps),
        room_size_((chunks_.count + 2 * chunks_.length + 4) * in_.unit_size() +
                   2 * chunks_.length * RecurrenceColumns),
        room_(scratch.take<N>(tasks_.tiles * room_size_)),
        db_(scratch.take<N>(std::max<std::int64_t>(1, parts_.count) * row_states())),
        dc_(scratch.take<N>(std::max<std::int64_t>(1, parts_.count) * row_states())),
        da_(scratch.take<N>(in_.batch * in_.blocks * in_.unit_size())) {
    if (in_.has_final_cotangent) dlast_.emplace(call, cotangent() + 1, scratch);
  }

  void run() const {
    in_.pack(call_.pool);
    dy_.pack(call_.pool);
    if (dlast_) dlast_->pack(call_.pool);
    tasks_.run(call_.pool, [&](std::int64_t i, std::int64_t tile) {
      run_part(i / parts_.count, i % parts_.count, room_ + tile * room_size_);
    });
    add_parts(db_, 3);
    add_parts(dc_, 4);
    add_rows();
  }

 private:
  [[nodiscard]] std::size_t cotangent() const { return in_.has_initial_state ? 6 : 5; }
  [[nodiscard]] std::int64_t row_states() const { return in_.batch * in_.steps * in_.states; }

  // What a unit works in.
  struct Room {
    N* a;
    N* later;   // ā_{t+1}·G_{t+1}
    N* da;      // of one chunk
    N* kept;    // the state before every chunk
    N* states;  // of one chunk, from the one before it
    N* decays;  // of one chunk
    N* dx;      // of one chunk
    N* ddelta;

    Room(N* room, const Chunks& chunks, std::int64_t size)
        : a(room),
          later(a + size),
          da(later + size),
          kept(da + size),
          states(kept + chunks.count * size),
          decays(states + (chunks.length + 1) * size),
          dx(decays + chunks.length * size),
          ddelta(dx + chunks.length * RecurrenceColumns) {}
  };

  void run_part(std::int64_t row, std::int64_t part, N* memory) const {
    const Room room(memory, chunks_, in_.unit_size());
    const std::int64_t own = part * row_states();
    const std::int64_t at = own + row * in_.steps * in_.states;
    std::fill_n(db_ + at, in_.steps * in_.states, N(0));
    std::fill_n(dc_ + at, in_.steps * in_.states, N(0));
    for (std::int64_t block = parts_.begin(part); block < parts_.end(part); ++block) {
      const ScanUnit<N> unit(in_, row, block, room.a);
      run_forward(unit, room);
      run_back(unit, room, own, da_ + (row * in_.blocks + block) * in_.unit_size());
    }
  }

  // Keeps the state before every chunk.
  void run_forward(const ScanUnit<N>& unit, const Room& room) const {
    const std::int64_t size = in_.unit_size();
    unit.load_state(in_.h0, room.states);
    for (std::int64_t k = 0; k < chunks_.count; ++k) {
      std::copy_n(room.states, size, room.kept + k * size);
      if (k + 1 == chunks_.count) break;
      recurrence_kernels<N>().scan(unit.steps(chunks_.first(k), chunks_.size(k), room.states));
    }
  }

  // The last chunk first. `own` is where the part's sums over channels start.
  void run_back(const ScanUnit<N>& unit, const Room& room, std::int64_t own, N* da) const {
    const std::int64_t size = in_.unit_size();
    std::fill_n(da, size, N(0));
    unit.load_state(dlast_, room.later);
    for (std::int64_t k = chunks_.count; k-- > 0;) {
      const std::int64_t t = chunks_.first(k);
      ScanSteps<N> steps = unit.steps(t, chunks_.size(k), room.states);
      steps.h_step = size;
      steps.decays = room.decays;
      std::copy_n(room.kept + k * size, size, room.states);
      recurrence_kernels<N>().scan(steps);
      steps.dy = dy_.data() + unit.at_channel(t);
      steps.later = room.later;
      steps.da = room.da;
      steps.dx = room.dx;
      steps.ddelta = room.ddelta;
      steps.db = db_ + own + unit.at_state(t);
      steps.dc = dc_ + own + unit.at_state(t);
      std::fill_n(room.da, size, N(0));
      recurrence_kernels<N>().scan_backward(steps);
      for (std::int64_t e = 0; e < size; ++e) da[e] += room.da[e];
      unit.write_steps(call_.results[0], t, steps.steps, room.dx);
      unit.write_steps(call_.results[1], t, steps.steps, room.ddelta);
    }
    if (in_.has_initial_state && call_.results[5].data != nullptr) {
      unit.write_turned(room.later, call_.results[5]);
    }
  }

  // result r = Σ over parts of the channels
  void add_parts(N* sums, std::size_t r) const {
    if (call_.results[r].data == nullptr) return;
    if (parts_.count == 0) std::fill_n(sums, row_states(), N(0));
    parallel_for(call_.pool, row_states(), grain_for(parts_.count),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t part = 1; part < parts_.count; ++part) {
                     const N* more = sums + part * row_states();
                     for (std::int64_t i = begin; i < end; ++i) sums[i] += more[i];
                   }
                   write_numbers(call_.results[r], begin, end - begin, sums + begin);
                 });
  }

  // da[j, m] = Σ over rows, or da[row, j, m]
  void add_rows() const {
    if (call_.results[2].data == nullptr) return;
    const std::int64_t rates = in_.channels * in_.states;
    // Rows that were not run have no part in it.
    const std::int64_t given = call_.as<loop::SelectiveScan>().batch;
    const std::int64_t together = in_.own_rates ? 1 : in_.batch;
    parallel_for(call_.pool, in_.own_rates ? given * rates : rates, grain_for(together),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t i = begin; i < end; ++i) {
                     const std::int64_t first = i / rates;
                     const std::int64_t j = i % rates / in_.states;
                     const std::int64_t at =
                         (j / RecurrenceColumns * in_.states + i % in_.states) * RecurrenceColumns +
                         j % RecurrenceColumns;
                     N total(0);
                     for (std::int64_t row = first; row < std::min(first + together, in_.batch);
                          ++row) {
                       total += da_[row * in_.blocks * in_.unit_size() + at];
                     }
                     write_numbers(call_.results[2], i, 1, &total);
                   }
                 });
  }

  const HostArguments& call_;
  Scan<N> in_;
  NumberOperand<N> dy_;
  std::optional<NumberOperand<N>> dlast_;
  Parts parts_;
  Slots tasks_;
  Chunks chunks_;
  std::int64_t room_size_;
  N* room_;
  N* db_;
  N* dc_;
  N* da_;
};

}  // namespace

HostKernel selective_scan_kernel() noexcept { return kernel_of_float<SelectiveScan>(); }
HostKernel selective_scan_backward_kernel() noexcept {
  return kernel_of_float<SelectiveScanBackward>();
}

}  // namespace ricci::cpu
