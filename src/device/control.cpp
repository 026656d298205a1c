#include "device/control.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "ricci/op/ops.h"
#include "ricci/support/error.h"

#include "op/loop_layout.h"
#include "rule/control/loop_parts.h"
#include "support/align.h"

namespace ricci::device {
namespace {

// A body fills all its outputs; is this one that nobody reads?
bool is_spare(const ControlStep& step, const std::string& role, std::size_t r) {
  if (step.op.is<op::While>()) return role == "cond";
  return r >= step.carries.size() && step.results[r].buffer < 0;
}

class Control {
 public:
  Control(const ControlStep& step, std::span<std::byte* const> buffers, ControlRoom& room,
          Bodies& bodies)
      : step_(step), buffers_(buffers), room_(room), bodies_(bodies) {
    check_internal(step.bodies.size() <= inside_.size(), "a control step has too many bodies");
    for (std::size_t b = 0; b < step.bodies.size(); ++b) inside_[b] = bodies.buffers(b);
  }

  void branch() {
    const Type& type = step_.operands[0].type;
    const bool yes = bodies_.all_nonzero(operand(0), type.dtype, *type.numel());
    const std::size_t body = step_.bodies[0].first == "then" ? (yes ? 0 : 1) : (yes ? 1 : 0);
    for (std::size_t k = 1; k < step_.operands.size(); ++k) set_input(body, k - 1, operand(k));
    for (std::size_t r = 0; r < step_.results.size(); ++r)
      set_output(body, r, result_or_spare(body, r));
    bodies_.run(body);
  }

  void scan(const op::Scan& op) {
    const std::int64_t length = op.length.value();
    const ScanLayout layout(op);
    const std::size_t carries = layout.carries;
    const std::size_t whole = layout.first_x();
    const std::int64_t kept = op.num_checkpoints > 0 ? op.num_checkpoints : length;
    std::vector<std::byte*>& state = room_.state;
    for (std::size_t k = 0; k < carries; ++k) state[k] = operand(k);
    for (std::size_t k = carries; k < whole; ++k) set_input(0, k, operand(k));
    std::int64_t next_kept = 0;
    for (std::int64_t t = 0; t < length; ++t) {
      const std::int64_t row = op.reverse ? length - 1 - t : t;
      const bool keep = op.save_trajectory && t == rule::checkpoint_step(next_kept, length, kept);
      const std::int64_t kept_row = op.reverse ? kept - 1 - next_kept : next_kept;
      for (std::size_t k = 0; k < carries; ++k) {
        set_input(0, k, state[k]);
        std::byte* to = buffer(step_.carries[k][static_cast<std::size_t>(t & 1)]);
        if (wanted(k) && keep) to = result_row(k, kept_row);
        if (wanted(k) && !op.save_trajectory && t == length - 1) to = result(k);
        set_output(0, k, to);
        state[k] = to;
      }
      for (std::size_t k = whole; k < step_.operands.size(); ++k)
        set_input(0, k, operand_row(k, row));
      for (std::size_t r = carries; r < step_.results.size(); ++r) {
        set_output(0, r, wanted(r) ? result_row(r, row) : spare(0, r));
      }
      bodies_.run(0);
      if (keep) ++next_kept;
    }
    for (std::size_t k = 0; k < carries && !op.save_trajectory && length == 0; ++k)
      copy_result(k, operand(k));
  }

  void loop(const op::While& op) {
    const std::size_t carries = step_.operands.size();
    const std::size_t cond = step_.bodies[0].first == "cond" ? 0 : 1;
    const std::size_t body = 1 - cond;
    const std::int64_t stride = tape_stride(op.max_iterations.value_or(0), op.num_checkpoints);
    std::vector<std::byte*>& state = room_.state;
    for (std::size_t k = 0; k < carries; ++k) state[k] = operand(k);
    for (std::size_t r = carries + 1; r < step_.results.size(); ++r) {
      if (wanted(r)) bodies_.zero(result(r), bytes(step_.results[r].type));
    }
    std::int32_t trips = 0;
    while ((!op.max_iterations || trips < *op.max_iterations) && goes_on(cond, state)) {
      for (std::size_t k = 0; k < carries; ++k) {
        const std::size_t tape = carries + 1 + k;
        if (tape < step_.results.size() && wanted(tape) && trips % stride == 0) {
          bodies_.copy(result_row(tape, trips / stride), state[k], bytes(step_.operands[k].type));
        }
        set_input(body, k, state[k]);
        state[k] = buffer(step_.carries[k][static_cast<std::size_t>(trips & 1)]);
        set_output(body, k, state[k]);
      }
      bodies_.run(body);
      ++trips;
    }
    for (std::size_t k = 0; k < carries; ++k) copy_result(k, state[k]);
    if (carries < step_.results.size() && wanted(carries)) {
      bodies_.store_count(result(carries), trips);
    }
  }

 private:
  bool goes_on(std::size_t cond, const std::vector<std::byte*>& state) {
    for (std::size_t k = 0; k < state.size(); ++k) set_input(cond, k, state[k]);
    std::byte* flag = spare(cond, 0);
    set_output(cond, 0, flag);
    bodies_.run(cond);
    const Program& p = *step_.bodies[cond].second;
    const Buffer& b = p.buffers[static_cast<std::size_t>(p.outputs[0])];
    return bodies_.all_nonzero(flag, b.dtype, b.elements);
  }

  static std::int64_t bytes(const Type& type) { return *type.numel() * size_of(type.dtype); }
  [[nodiscard]] std::byte* buffer(BufferId b) const {
    return buffers_[static_cast<std::size_t>(b)];
  }
  [[nodiscard]] std::byte* operand(std::size_t k) const {
    const BufferView& v = step_.operands[k];
    return buffer(v.buffer) + v.layout.offset * size_of(v.type.dtype);
  }
  [[nodiscard]] bool wanted(std::size_t r) const { return step_.results[r].buffer >= 0; }
  [[nodiscard]] std::byte* result(std::size_t r) const { return buffer(step_.results[r].buffer); }

  static std::int64_t row_bytes(const Type& type) {
    const std::int64_t rows = type.dims[0].value();
    return rows == 0 ? 0 : *type.numel() / rows * size_of(type.dtype);
  }
  [[nodiscard]] std::byte* operand_row(std::size_t k, std::int64_t row) const {
    return operand(k) + row * row_bytes(step_.operands[k].type);
  }
  [[nodiscard]] std::byte* result_row(std::size_t r, std::int64_t row) const {
    return result(r) + row * row_bytes(step_.results[r].type);
  }
  [[nodiscard]] std::byte* result_or_spare(std::size_t body, std::size_t r) {
    return wanted(r) ? result(r) : spare(body, r);
  }

  // Where an output goes that nobody wants.
  [[nodiscard]] std::byte* spare(std::size_t body, std::size_t r) const {
    return room_.spare[body][r];
  }

  void set_input(std::size_t body, std::size_t k, std::byte* at) {
    inside_[body][static_cast<std::size_t>(step_.bodies[body].second->inputs[k])] = at;
  }
  void set_output(std::size_t body, std::size_t r, std::byte* at) {
    inside_[body][static_cast<std::size_t>(step_.bodies[body].second->outputs[r])] = at;
  }
  void copy_result(std::size_t r, const std::byte* from) {
    if (wanted(r)) bodies_.copy(result(r), from, bytes(step_.results[r].type));
  }

  const ControlStep& step_;
  std::span<std::byte* const> buffers_;
  std::array<std::span<std::byte*>, 2> inside_;  // of the bodies
  ControlRoom& room_;
  Bodies& bodies_;
};

}  // namespace

ControlRoom make_control_room(const ControlStep& step, Memory& memory) {
  ControlRoom room;
  room.state.resize(std::max(step.carries.size(), step.operands.size()));
  room.memory = Array(memory, control_spare_bytes(step));
  std::byte* next = room.memory.data();
  for (const auto& [role, body] : step.bodies) {
    std::vector<std::byte*>& spare = room.spare.emplace_back(body->outputs.size(), nullptr);
    for (std::size_t r = 0; r < spare.size(); ++r) {
      if (!is_spare(step, role, r)) continue;
      spare[r] = next;
      next += aligned(body->buffers[static_cast<std::size_t>(body->outputs[r])].bytes());
    }
  }
  return room;
}

std::int64_t control_spare_bytes(const ControlStep& step) {
  std::int64_t total = 0;
  for (const auto& [role, body] : step.bodies) {
    for (std::size_t r = 0; r < body->outputs.size(); ++r) {
      if (!is_spare(step, role, r)) continue;
      total += aligned(body->buffers[static_cast<std::size_t>(body->outputs[r])].bytes());
    }
  }
  return total;
}

void run_control(const ControlStep& step, std::span<std::byte* const> buffers, ControlRoom& room,
                 Bodies& bodies) {
  Control control(step, buffers, room, bodies);
  if (const auto* scan = step.op.as<op::Scan>()) {
    control.scan(*scan);
  } else if (const auto* loop = step.op.as<op::While>()) {
    control.loop(*loop);
  } else {
    check_internal(step.op.is<op::If>(), "a control step is neither an if, a scan nor a while");
    control.branch();
  }
}

// Bytes that come from outside need not be 0 or 1 to be bools, so these are read as the numbers
// they are.
bool all_nonzero_on_host(const std::byte* at, DType dtype, std::int64_t elements) {
  if (dtype == DType::Bool) dtype = DType::U8;
  return with_element_type(dtype, [&]<class T>() {
    for (std::int64_t i = 0; i < elements; ++i) {
      T x;
      std::memcpy(&x, at + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
      if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
        if (static_cast<double>(x) == 0) return false;
      } else {
        if (x == T{}) return false;
      }
    }
    return true;
  });
}

}  // namespace ricci::device
