// The state-space scan and its derivative. Channels are independent, so a unit of work is one batch
// row and LaneCount channels side by side, with its state [state size][LaneCount] at hand. The
// derivative keeps a state every √S steps and computes those between them again.
#include <cmath>

#include "backend/cpu/host/element.h"
#include "backend/cpu/host/kernels.h"
#include "backend/cpu/host/lanes.h"
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
        blocks((channels + LaneCount - 1) / LaneCount),
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
  [[nodiscard]] std::int64_t unit_size() const { return states * LaneCount; }
};

// One batch row and some channels.
template <class N>
struct Unit {
  const Scan<N>& in;
  std::int64_t row;
  std::int64_t first;  // channel
  std::int64_t width;  // channels
  N* a;                // [states][LaneCount]

  Unit(const Scan<N>& scan, std::int64_t unit, N* a_room)
      : in(scan),
        row(unit / scan.blocks),
        first(unit % scan.blocks * LaneCount),
        width(std::min(LaneCount, scan.channels - first)),
        a(a_room) {
    load_turned(scan.a.data() + first * scan.states, a);
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

  // [width, states] to [states][LaneCount] and back.
  void load_turned(const N* from, N* to) const {
    std::fill_n(to, in.unit_size(), N(0));
    for (std::int64_t l = 0; l < width; ++l) {
      for (std::int64_t m = 0; m < in.states; ++m) to[m * LaneCount + l] = from[l * in.states + m];
    }
  }
  void write_turned(const N* from, const ArrayView& to) const {
    for (std::int64_t l = 0; l < width; ++l) {
      for (std::int64_t m = 0; m < in.states; ++m) {
        write_numbers(to, at_unit() + l * in.states + m, 1, from + m * LaneCount + l);
      }
    }
  }
  void load_initial(N* h) const {
    if (in.h0) {
      load_turned(in.h0->data() + at_unit(), h);
    } else {
      std::fill_n(h, in.unit_size(), N(0));
    }
  }

  // H_t from H_{t-1}; `decays` (e^(Δ_t a)) and `y` may be null. `before` and `h` may be one.
  void step(std::int64_t t, const N* before, N* h, N* decays, Lanes<N>* y) const {
    const Lanes<N> x = load_lanes(in.x.data() + at_channel(t), width);
    const Lanes<N> delta = load_lanes(in.delta.data() + at_channel(t), width);
    const N* b = in.b.data() + at_state(t);
    const N* c = in.c.data() + at_state(t);
    Lanes<N> total{};
    vectorised([&]() RICCI_INLINE {
      for (std::int64_t m = 0; m < in.states; ++m) {
        const std::int64_t at = m * LaneCount;
        const N bm = b[m];
        const N cm = c[m];
        Lanes<N> state = load_lanes(before + at, LaneCount);
        Lanes<N> decay = load_lanes(static_cast<const N*>(a) + at, LaneCount);
        for (std::size_t l = 0; l < state.size(); ++l) decay[l] *= delta[l];
        exp_lanes(decay);
        for (std::size_t l = 0; l < state.size(); ++l) {
          state[l] = decay[l] * state[l] + delta[l] * bm * x[l];
          total[l] += cm * state[l];
        }
        std::copy(state.begin(), state.end(), h + at);
        if (decays != nullptr) std::copy(decay.begin(), decay.end(), decays + at);
      }
    });
    if (y != nullptr) *y = total;
  }
};

template <class N>
class SelectiveScan {
 public:
  SelectiveScan(const HostArguments& call, Scratch& scratch)
      : call_(call),
        in_(call, scratch),
        units_(in_.batch * in_.blocks),
        room_(scratch.take<N>(units_.tiles * 2 * in_.unit_size())) {}

  void run() const {
    in_.pack(call_.pool);
    units_.run(call_.pool, [&](std::int64_t i, std::int64_t tile) {
      N* h = room_ + tile * 2 * in_.unit_size();
      const Unit<N> unit(in_, i, h + in_.unit_size());
      unit.load_initial(h);
      for (std::int64_t t = 0; t < in_.steps; ++t) {
        Lanes<N> y;
        unit.step(t, h, h, nullptr, &y);
        if (call_.results[0].data == nullptr) continue;
        write_numbers(call_.results[0], unit.at_channel(t), unit.width, y.data());
      }
      if (call_.results[1].data != nullptr) unit.write_turned(h, call_.results[1]);
    });
  }

 private:
  const HostArguments& call_;
  Scan<N> in_;
  Slots units_;
  N* room_;
};

// Sums over channels (dB, dC) and over rows (da) are kept per unit and added up in the end.
template <class N>
class SelectiveScanBackward {
 public:
  SelectiveScanBackward(const HostArguments& call, Scratch& scratch)
      : call_(call),
        in_(call, scratch),
        dy_(call, cotangent(), scratch),
        units_(in_.batch * in_.blocks),
        chunk_(std::max<std::int64_t>(
            1, static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(in_.steps)))))),
        chunks_((in_.steps + chunk_ - 1) / chunk_),
        room_size_((chunks_ + 2 * chunk_ + 5) * in_.unit_size()),
        room_(scratch.take<N>(units_.tiles * room_size_)),
        db_(scratch.take<N>(in_.blocks * row_states())),
        dc_(scratch.take<N>(in_.blocks * row_states())),
        da_(scratch.take<N>(in_.batch * in_.blocks * in_.unit_size())) {
    if (in_.has_final_cotangent) dlast_.emplace(call, cotangent() + 1, scratch);
  }

  void run() const {
    in_.pack(call_.pool);
    dy_.pack(call_.pool);
    if (dlast_) dlast_->pack(call_.pool);
    units_.run(call_.pool,
               [&](std::int64_t i, std::int64_t tile) { run_unit(i, room_ + tile * room_size_); });
    add_blocks(db_, 3);
    add_blocks(dc_, 4);
    add_rows();
  }

 private:
  [[nodiscard]] std::size_t cotangent() const { return in_.has_initial_state ? 6 : 5; }
  [[nodiscard]] std::int64_t row_states() const { return in_.batch * in_.steps * in_.states; }

  void run_unit(std::int64_t i, N* room) const {
    const std::int64_t size = in_.unit_size();
    N* const kept = room;                     // the state before every chunk
    N* const states = kept + chunks_ * size;  // of one chunk, from the one before it
    N* const decays = states + (chunk_ + 1) * size;
    N* const later = decays + chunk_ * size;  // ā_{t+1}·G_{t+1}
    N* const chunk_da = later + size;
    const Unit<N> unit(in_, i, chunk_da + size);
    N* const da = da_ + i * size;
    std::fill_n(da, size, N(0));
    unit.load_initial(states);
    for (std::int64_t k = 0; k < chunks_; ++k) {
      std::copy_n(states, size, kept + k * size);
      const std::int64_t end = std::min(in_.steps, (k + 1) * chunk_);
      for (std::int64_t t = k * chunk_; t < end; ++t)
        unit.step(t, states, states, nullptr, nullptr);
    }
    if (dlast_) {
      unit.load_turned(dlast_->data() + unit.at_unit(), later);
    } else {
      std::fill_n(later, size, N(0));
    }
    for (std::int64_t k = chunks_; k-- > 0;) {
      const std::int64_t start = k * chunk_;
      const std::int64_t count = std::min(chunk_, in_.steps - start);
      std::copy_n(kept + k * size, size, states);
      for (std::int64_t t = 0; t < count; ++t) {
        unit.step(start + t, states + t * size, states + (t + 1) * size, decays + t * size,
                  nullptr);
      }
      std::fill_n(chunk_da, size, N(0));
      for (std::int64_t t = count; t-- > 0;) {
        step_back(unit, i % in_.blocks, start + t,
                  {states + t * size, states + (t + 1) * size, decays + t * size, later, chunk_da});
      }
      for (std::int64_t e = 0; e < size; ++e) da[e] += chunk_da[e];
    }
    if (in_.has_initial_state && call_.results[5].data != nullptr) {
      unit.write_turned(later, call_.results[5]);
    }
  }

  struct StepState {
    const N* before;
    const N* after;
    const N* decays;
    N* later;
    N* da;
  };

  void step_back(const Unit<N>& unit, std::int64_t block, std::int64_t t, StepState s) const {
    const Lanes<N> x = load_lanes(in_.x.data() + unit.at_channel(t), unit.width);
    const Lanes<N> delta = load_lanes(in_.delta.data() + unit.at_channel(t), unit.width);
    const Lanes<N> dy = load_lanes(dy_.data() + unit.at_channel(t), unit.width);
    const N* b = in_.b.data() + unit.at_state(t);
    const N* c = in_.c.data() + unit.at_state(t);
    N* db = db_ + block * row_states() + unit.at_state(t);
    N* dc = dc_ + block * row_states() + unit.at_state(t);
    Lanes<N> dx{};
    Lanes<N> ddelta{};
    vectorised([&]() RICCI_INLINE {
      for (std::int64_t m = 0; m < in_.states; ++m) {
        const std::int64_t at = m * LaneCount;
        const N bm = b[m];
        const N cm = c[m];
        const Lanes<N> decay = load_lanes(s.decays + at, LaneCount);
        const Lanes<N> before = load_lanes(s.before + at, LaneCount);
        const Lanes<N> after = load_lanes(s.after + at, LaneCount);
        const Lanes<N> am = load_lanes(static_cast<const N*>(unit.a) + at, LaneCount);
        Lanes<N> later = load_lanes(static_cast<const N*>(s.later) + at, LaneCount);
        Lanes<N> da = load_lanes(static_cast<const N*>(s.da) + at, LaneCount);
        Lanes<N> to_b;
        Lanes<N> to_c;
        for (std::size_t l = 0; l < dx.size(); ++l) {
          const N kept = decay[l] * before[l];
          const N g = dy[l] * cm + later[l];
          to_c[l] = dy[l] * after[l];
          to_b[l] = g * delta[l] * x[l];
          dx[l] += g * delta[l] * bm;
          ddelta[l] += g * (am[l] * kept + bm * x[l]);
          da[l] += g * delta[l] * kept;
          later[l] = decay[l] * g;
        }
        std::copy(later.begin(), later.end(), s.later + at);
        std::copy(da.begin(), da.end(), s.da + at);
        db[m] = sum_lanes(to_b);
        dc[m] = sum_lanes(to_c);
      }
    });
    write_wanted(0, unit.at_channel(t), unit.width, dx.data());
    write_wanted(1, unit.at_channel(t), unit.width, ddelta.data());
  }

  void write_wanted(std::size_t r, std::int64_t at, std::int64_t count, const N* from) const {
    if (call_.results[r].data != nullptr) write_numbers(call_.results[r], at, count, from);
  }

  // result r = Σ over blocks of channels
  void add_blocks(N* sums, std::size_t r) const {
    if (call_.results[r].data == nullptr) return;
    if (in_.blocks == 0) std::fill_n(sums, row_states(), N(0));
    parallel_for(call_.pool, row_states(), grain_for(in_.blocks),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t block = 1; block < in_.blocks; ++block) {
                     const N* more = sums + block * row_states();
                     for (std::int64_t i = begin; i < end; ++i) sums[i] += more[i];
                   }
                   write_numbers(call_.results[r], begin, end - begin, sums + begin);
                 });
  }

  // da[j, m] = Σ over rows
  void add_rows() const {
    if (call_.results[2].data == nullptr) return;
    parallel_for(call_.pool, in_.channels * in_.states, grain_for(in_.batch),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t i = begin; i < end; ++i) {
                     const std::int64_t j = i / in_.states;
                     const std::int64_t m = i % in_.states;
                     N total(0);
                     for (std::int64_t row = 0; row < in_.batch; ++row) {
                       total +=
                           da_[((row * in_.blocks + j / LaneCount) * in_.states + m) * LaneCount +
                               j % LaneCount];
                     }
                     write_numbers(call_.results[2], i, 1, &total);
                   }
                 });
  }

  const HostArguments& call_;
  Scan<N> in_;
  NumberOperand<N> dy_;
  std::optional<NumberOperand<N>> dlast_;
  Slots units_;
  std::int64_t chunk_;
  std::int64_t chunks_;
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
