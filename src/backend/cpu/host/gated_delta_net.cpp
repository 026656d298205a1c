// Gated delta-rule linear attention and its derivative. Forward, the columns of a state are
// independent: a unit of work is one head and LaneCount columns, whose state stays in the cache.
// Backward, a unit is one key head with all value heads it serves; a state is kept every √S steps
// and those between are computed again.
#include <cmath>

#include "backend/cpu/host/element.h"
#include "backend/cpu/host/kernels.h"
#include "backend/cpu/host/lanes.h"
#include "backend/cpu/host/scratch.h"

namespace ricci::cpu {
namespace {

// The sizes of a call and its operands 0 to 5.
template <class N>
struct Net : loop::GatedDelta {
  N kappa;
  NumberOperand<N> q;
  NumberOperand<N> k;
  NumberOperand<N> v;
  NumberOperand<N> g;
  NumberOperand<N> beta;
  std::optional<NumberOperand<N>> state;

  Net(const HostArguments& call, Scratch& scratch)
      : loop::GatedDelta(call.as<loop::GatedDelta>()),
        kappa(static_cast<N>(1 / std::sqrt(static_cast<double>(key_width)))),
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
  // Where things are: a key, a value (or output), a gate, a state.
  [[nodiscard]] std::int64_t at_key(std::int64_t row, std::int64_t t, std::int64_t key_head) const {
    return ((row * steps + t) * key_heads + key_head) * key_width;
  }
  [[nodiscard]] std::int64_t at_gate(std::int64_t row, std::int64_t t, std::int64_t head) const {
    return (row * steps + t) * heads + head;
  }
  [[nodiscard]] std::int64_t at_state(std::int64_t row, std::int64_t head) const {
    return (row * heads + head) * key_width * value_width;
  }
};

template <class N>
class GatedDeltaNet {
 public:
  GatedDeltaNet(const HostArguments& call, Scratch& scratch)
      : call_(call),
        in_(call, scratch),
        blocks_((in_.value_width + LaneCount - 1) / LaneCount),
        units_(in_.batch * in_.heads * blocks_),
        room_(scratch.take<N>(units_.tiles * in_.key_width * LaneCount)) {}

  void run() const {
    in_.pack(call_.pool);
    units_.run(call_.pool, [&](std::int64_t i, std::int64_t tile) {
      run_unit(i / blocks_, i % blocks_ * LaneCount, room_ + tile * in_.key_width * LaneCount);
    });
  }

 private:
  void run_unit(std::int64_t row_and_head, std::int64_t first, N* s) const {
    const std::int64_t row = row_and_head / in_.heads;
    const std::int64_t head = row_and_head % in_.heads;
    const std::int64_t width = std::min(LaneCount, in_.value_width - first);
    const std::int64_t at_state = in_.at_state(row, head) + first;
    std::fill_n(s, in_.key_width * LaneCount, N(0));
    if (in_.state) {
      for (std::int64_t i = 0; i < in_.key_width; ++i) {
        std::copy_n(in_.state->data() + at_state + i * in_.value_width, width, s + i * LaneCount);
      }
    }
    for (std::int64_t t = 0; t < in_.steps; ++t) {
      const std::int64_t gate = in_.at_gate(row, t, head);
      const std::int64_t key = in_.at_key(row, t, head / in_.group());
      const std::int64_t value = gate * in_.value_width + first;
      const Lanes<N> out =
          step(s, in_.q.data() + key, in_.k.data() + key, load_lanes(in_.v.data() + value, width),
               std::exp(in_.g.data()[gate]), in_.beta.data()[gate]);
      if (call_.results[0].data != nullptr) {
        write_numbers(call_.results[0], value, width, out.data());
      }
    }
    if (call_.results[1].data == nullptr) return;
    for (std::int64_t i = 0; i < in_.key_width; ++i) {
      write_numbers(call_.results[1], at_state + i * in_.value_width, width, s + i * LaneCount);
    }
  }

  // S̃ = e^g·S; d = β·(v - S̃ᵀk); S ← S̃ + k dᵀ; gives κ·Sᵀq
  Lanes<N> step(N* s, const N* q, const N* k, const Lanes<N>& v, N gate, N beta) const {
    Lanes<N> out{};
    vectorised([&]() RICCI_INLINE {
      Lanes<N> recalled{};
      for (std::int64_t i = 0; i < in_.key_width; ++i) {
        const N ki = k[i];
        Lanes<N> e = load_lanes(static_cast<const N*>(s) + i * LaneCount, LaneCount);
        for (std::size_t l = 0; l < e.size(); ++l) {
          e[l] *= gate;
          recalled[l] += e[l] * ki;
        }
        std::copy(e.begin(), e.end(), s + i * LaneCount);
      }
      Lanes<N> d;
      for (std::size_t l = 0; l < out.size(); ++l) d[l] = beta * (v[l] - recalled[l]);
      for (std::int64_t i = 0; i < in_.key_width; ++i) {
        const N ki = k[i];
        const N qi = q[i];
        Lanes<N> e = load_lanes(static_cast<const N*>(s) + i * LaneCount, LaneCount);
        for (std::size_t l = 0; l < e.size(); ++l) {
          e[l] += ki * d[l];
          out[l] += e[l] * qi;
        }
        std::copy(e.begin(), e.end(), s + i * LaneCount);
      }
      for (N& o : out) o *= in_.kappa;
    });
    return out;
  }

  const HostArguments& call_;
  Net<N> in_;
  std::int64_t blocks_;
  Slots units_;
  N* room_;
};

template <class N>
class GatedDeltaNetBackward {
 public:
  GatedDeltaNetBackward(const HostArguments& call, Scratch& scratch)
      : call_(call),
        in_(call, scratch),
        dout_(call, cotangent(), scratch),
        units_(in_.batch * in_.key_heads, 16),
        chunk_(std::max<std::int64_t>(
            1, static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(in_.steps)))))),
        chunks_((in_.steps + chunk_ - 1) / chunk_),
        room_size_((chunks_ + chunk_ + 2) * state_size() + (chunk_ + 2) * in_.value_width +
                   2 * in_.steps * in_.key_width),
        room_(scratch.take<N>(units_.tiles * room_size_)) {
    if (in_.has_final_cotangent) dlast_.emplace(call, cotangent() + 1, scratch);
  }

  void run() const {
    in_.pack(call_.pool);
    dout_.pack(call_.pool);
    if (dlast_) dlast_->pack(call_.pool);
    units_.run(call_.pool, [&](std::int64_t i, std::int64_t tile) {
      run_key_head(i / in_.key_heads, i % in_.key_heads, room_ + tile * room_size_);
    });
  }

 private:
  // What one value head needs while it runs backwards.
  struct Head {
    std::int64_t row;
    std::int64_t head;
    std::int64_t key_head;
    N* kept;    // the state before every chunk
    N* states;  // of one chunk, from the one before it
    N* later;   // E_{t+1}, then E_t
    N* errors;  // u_t = v_t - S̃_tᵀk_t of one chunk
    N* toward;  // δ_t
    N* value;   // dv_t
    N* dq;      // [S, keys], summed over the group
    N* dk;
  };

  [[nodiscard]] std::size_t cotangent() const { return in_.has_initial_state ? 6 : 5; }
  [[nodiscard]] std::int64_t state_size() const { return in_.key_width * in_.value_width; }

  void run_key_head(std::int64_t row, std::int64_t key_head, N* room) const {
    Head h{.row = row, .head = 0, .key_head = key_head};
    h.kept = room;
    h.states = h.kept + chunks_ * state_size();
    h.later = h.states + (chunk_ + 1) * state_size();
    h.errors = h.later + state_size();
    h.toward = h.errors + chunk_ * in_.value_width;
    h.value = h.toward + in_.value_width;
    h.dq = h.value + in_.value_width;
    h.dk = h.dq + in_.steps * in_.key_width;
    std::fill_n(h.dq, 2 * in_.steps * in_.key_width, N(0));
    for (std::int64_t i = 0; i < in_.group(); ++i) {
      h.head = key_head * in_.group() + i;
      run_head(h);
    }
    for (std::int64_t t = 0; t < in_.steps; ++t) {
      write_wanted(0, in_.at_key(row, t, key_head), in_.key_width, h.dq + t * in_.key_width);
      write_wanted(1, in_.at_key(row, t, key_head), in_.key_width, h.dk + t * in_.key_width);
    }
  }

  void run_head(const Head& h) const {
    const std::int64_t size = state_size();
    const std::int64_t at = in_.at_state(h.row, h.head);
    start(h.states, in_.state, at);
    for (std::int64_t c = 0; c < chunks_; ++c) {
      std::copy_n(h.states, size, h.kept + c * size);
      const std::int64_t end = std::min(in_.steps, (c + 1) * chunk_);
      for (std::int64_t t = c * chunk_; t < end; ++t) step(h, t, h.states, h.states, h.errors);
    }
    start(h.later, dlast_, at);
    for (std::int64_t c = chunks_; c-- > 0;) {
      const std::int64_t first = c * chunk_;
      const std::int64_t count = std::min(chunk_, in_.steps - first);
      std::copy_n(h.kept + c * size, size, h.states);
      for (std::int64_t t = 0; t < count; ++t) {
        step(h, first + t, h.states + t * size, h.states + (t + 1) * size,
             h.errors + t * in_.value_width);
      }
      for (std::int64_t t = count; t-- > 0;) {
        step_back(h, first + t, h.states + t * size, h.states + (t + 1) * size,
                  h.errors + t * in_.value_width);
      }
    }
    if (in_.has_initial_state) write_wanted(5, at, size, h.later);
  }

  void start(N* to, const std::optional<NumberOperand<N>>& from, std::int64_t at) const {
    if (from) {
      std::copy_n(from->data() + at, state_size(), to);
    } else {
      std::fill_n(to, state_size(), N(0));
    }
  }

  [[nodiscard]] N gate(const Head& h, std::int64_t t) const {
    return std::exp(in_.g.data()[in_.at_gate(h.row, t, h.head)]);
  }

  // The state after step t, and the step's errors; `before` and `after` may be one.
  void step(const Head& h, std::int64_t t, const N* before, N* after, N* errors) const {
    const std::int64_t width = in_.value_width;
    const N* k = in_.k.data() + in_.at_key(h.row, t, h.key_head);
    const N* v = in_.v.data() + in_.at_gate(h.row, t, h.head) * width;
    const N beta = in_.beta.data()[in_.at_gate(h.row, t, h.head)];
    const N decay = gate(h, t);
    vectorised([&]() RICCI_INLINE {
      std::copy_n(v, width, errors);
      N* __restrict error = errors;
      for (std::int64_t i = 0; i < in_.key_width; ++i) {
        const N ki = k[i];
        const N* from = before + i * width;
        N* to = after + i * width;
        for (std::int64_t j = 0; j < width; ++j) to[j] = decay * from[j];
        for (std::int64_t j = 0; j < width; ++j) error[j] -= to[j] * ki;
      }
      for (std::int64_t i = 0; i < in_.key_width; ++i) {
        const N factor = k[i] * beta;
        N* to = after + i * width;
        for (std::int64_t j = 0; j < width; ++j) to[j] += factor * error[j];
      }
    });
  }

  // G = κ·q doᵀ + E_{t+1}; dq = κ·S do; δ = Gᵀk; dβ = ⟨δ, u⟩; dv = β·δ; dS̃ = G - k dvᵀ;
  // dk = G d - S̃ dv; dg = ⟨dS̃, S̃⟩; E_t = e^g·dS̃, with S̃ = e^g·S_{t-1}
  void step_back(const Head& h, std::int64_t t, const N* before, const N* after,
                 const N* errors) const {
    const std::int64_t width = in_.value_width;
    const std::int64_t at = in_.at_gate(h.row, t, h.head);
    const N* q = in_.q.data() + in_.at_key(h.row, t, h.key_head);
    const N* k = in_.k.data() + in_.at_key(h.row, t, h.key_head);
    const N* dout = dout_.data() + at * width;
    const N beta = in_.beta.data()[at];
    const N decay = gate(h, t);
    N* dq = h.dq + t * in_.key_width;
    N* dk = h.dk + t * in_.key_width;
    N dbeta(0);
    N dg(0);
    vectorised([&]() RICCI_INLINE {
      N* __restrict toward = h.toward;
      N* __restrict value = h.value;
      std::fill_n(toward, width, N(0));
      for (std::int64_t i = 0; i < in_.key_width; ++i) {
        N* __restrict later = h.later + i * width;
        dq[i] += in_.kappa * dot(after + i * width, dout, width);
        const N scaled = in_.kappa * q[i];
        const N ki = k[i];
        for (std::int64_t j = 0; j < width; ++j) {
          later[j] += scaled * dout[j];
          toward[j] += later[j] * ki;
        }
      }
      dbeta = dot<N>(toward, errors, width);
      for (std::int64_t j = 0; j < width; ++j) value[j] = beta * toward[j];
      for (std::int64_t i = 0; i < in_.key_width; ++i) {
        N* __restrict later = h.later + i * width;
        const N* row = before + i * width;
        const N ki = k[i];
        dk[i] += beta * dot<N>(later, errors, width) - decay * dot<N>(row, value, width);
        for (std::int64_t j = 0; j < width; ++j) later[j] -= ki * value[j];
        dg += decay * dot<N>(later, row, width);
        for (std::int64_t j = 0; j < width; ++j) later[j] *= decay;
      }
    });
    write_wanted(2, at * width, width, h.value);
    write_wanted(3, at, 1, &dg);
    write_wanted(4, at, 1, &dbeta);
  }

  void write_wanted(std::size_t r, std::int64_t at, std::int64_t count, const N* from) const {
    if (call_.results[r].data != nullptr) write_numbers(call_.results[r], at, count, from);
  }

  const HostArguments& call_;
  Net<N> in_;
  NumberOperand<N> dout_;
  std::optional<NumberOperand<N>> dlast_;
  Slots units_;
  std::int64_t chunk_;
  std::int64_t chunks_;
  std::int64_t room_size_;
  N* room_;
};

}  // namespace

HostKernel gated_delta_kernel() noexcept { return kernel_of_float<GatedDeltaNet>(); }
HostKernel gated_delta_backward_kernel() noexcept {
  return kernel_of_float<GatedDeltaNetBackward>();
}

}  // namespace ricci::cpu
