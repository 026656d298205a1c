#include "device/control.h"

#include <array>
#include <concepts>
#include <cstring>

#include "ricci/support/error.h"

#include "support/align.h"

namespace ricci::device {
namespace {

constexpr std::size_t LoopBody = 0;
constexpr std::size_t Condition = 1;

const Buffer& output_buffer(const Program& body, std::size_t r) {
  return body.buffers[static_cast<std::size_t>(body.outputs[r])];
}

// A body fills all its outputs; is this one that nobody reads?
bool is_spare(const ControlStep& step, std::size_t body, std::size_t r) {
  const auto* plan = std::get_if<loop::LoopPlan>(&step.how);
  if (plan == nullptr) return step.results[r].buffer < 0;
  if (body == Condition) return true;
  return r >= plan->carries.size() && plan->ys[r - plan->carries.size()].array < 0;
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
    const std::size_t body = bodies_.all_nonzero(operand(0), type.dtype, *type.numel()) ? 0 : 1;
    for (std::size_t k = 1; k < step_.operands.size(); ++k) set_input(body, k - 1, operand(k));
    for (std::size_t r = 0; r < step_.results.size(); ++r) {
      set_output(body, r, step_.results[r].buffer >= 0 ? result(r) : room_.spare[body][r]);
    }
    bodies_.run(body);
  }

  void loop(const loop::LoopPlan& plan) {
    begin(plan);
    std::int64_t trip = 0;
    for (; !plan.most_trips || trip < *plan.most_trips; ++trip) {
      if (plan.conditional && !goes_on()) break;
      for (std::size_t k = 0; k < plan.carries.size(); ++k) hand_on(plan, k, trip);
      const std::size_t first_x = plan.carries.size() + plan.wholes.size();
      for (std::size_t k = 0; k < plan.xs.size(); ++k) {
        const auto& [array, rows] = plan.xs[k];
        const std::int64_t bytes = input_bytes(first_x + k);
        set_input(LoopBody, first_x + k, operand(array) + rows.row(trip) * bytes);
      }
      for (std::size_t k = 0; k < plan.ys.size(); ++k) {
        const auto& [array, rows] = plan.ys[k];
        const std::size_t r = plan.carries.size() + k;
        set_output(LoopBody, r,
                   array < 0 ? room_.spare[LoopBody][r] : result_row(array, rows.row(trip), r));
      }
      bodies_.run(LoopBody);
      if (bodies_.has_failed()) return;
    }
    for (std::size_t k = 0; k < plan.carries.size(); ++k) {
      const std::int32_t last = plan.carries[k].last;
      if (last >= 0 && room_.carries[k].at != result(last)) {
        bodies_.copy(result(last), room_.carries[k].at, input_bytes(k));
      }
    }
    if (plan.trip_count >= 0) {
      bodies_.store_count(result(plan.trip_count), static_cast<std::int32_t>(trip));
    }
  }

 private:
  // What is so before the first trip, and stays.
  void begin(const loop::LoopPlan& plan) {
    for (const std::int32_t r : plan.zeroed) {
      const Type& type = step_.results[static_cast<std::size_t>(r)].type;
      bodies_.zero(result(r), *type.numel() * size_of(type.dtype));
    }
    for (std::size_t k = 0; k < plan.carries.size(); ++k) {
      const loop::Carry& carry = plan.carries[k];
      room_.carries[k] = {operand(carry.operand), carry.kept ? carry.kept->pace.start : 0, 0};
    }
    for (std::size_t k = 0; k < plan.wholes.size(); ++k) {
      set_input(LoopBody, plan.carries.size() + k, operand(plan.wholes[k]));
    }
  }

  // A carry as a trip takes and gives it. What it gives goes where it is wanted, or to one of the
  // two buffers of the carry: not the one it comes from.
  void hand_on(const loop::LoopPlan& plan, std::size_t k, std::int64_t trip) {
    const loop::Carry& carry = plan.carries[k];
    CarryRoom& room = room_.carries[k];
    std::byte* to = buffer(step_.carries[k][static_cast<std::size_t>(trip & 1)]);
    if (carry.kept && carry.kept->pace.keeps(room.count)) {
      std::byte* row = result_row(carry.kept->result, carry.kept->rows.row(room.rows++), k);
      if (carry.kept->entering) {
        bodies_.copy(row, room.at, input_bytes(k));
      } else {
        to = row;
      }
    } else if (carry.last >= 0 && !plan.conditional && trip + 1 == *plan.most_trips) {
      to = result(carry.last);
    }
    set_input(LoopBody, k, room.at);
    set_output(LoopBody, k, to);
    room.at = to;
  }

  bool goes_on() {
    for (std::size_t k = 0; k < room_.carries.size(); ++k) {
      set_input(Condition, k, room_.carries[k].at);
    }
    std::byte* flag = room_.spare[Condition][0];
    set_output(Condition, 0, flag);
    bodies_.run(Condition);
    const Buffer& b = output_buffer(*step_.bodies[Condition].second, 0);
    return bodies_.all_nonzero(flag, b.dtype, b.elements);
  }

  [[nodiscard]] std::byte* buffer(BufferId b) const {
    return buffers_[static_cast<std::size_t>(b)];
  }
  template <std::integral N>
  [[nodiscard]] std::byte* operand(N k) const {
    const BufferView& v = step_.operands[static_cast<std::size_t>(k)];
    return buffer(v.buffer) + v.layout.offset * size_of(v.type.dtype);
  }
  template <std::integral N>
  [[nodiscard]] std::byte* result(N r) const {
    return buffer(step_.results[static_cast<std::size_t>(r)].buffer);
  }
  // Of a loop's body.
  [[nodiscard]] std::int64_t input_bytes(std::size_t k) const {
    const Program& body = *step_.bodies[LoopBody].second;
    return body.buffers[static_cast<std::size_t>(body.inputs[k])].bytes();
  }
  // A row as large as an output of the body.
  [[nodiscard]] std::byte* result_row(std::int32_t r, std::int64_t row, std::size_t output) const {
    return result(r) + row * output_buffer(*step_.bodies[LoopBody].second, output).bytes();
  }

  void set_input(std::size_t body, std::size_t k, std::byte* at) {
    inside_[body][static_cast<std::size_t>(step_.bodies[body].second->inputs[k])] = at;
  }
  void set_output(std::size_t body, std::size_t r, std::byte* at) {
    inside_[body][static_cast<std::size_t>(step_.bodies[body].second->outputs[r])] = at;
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
  room.carries.resize(step.carries.size());
  room.memory = Array(memory, control_spare_bytes(step));
  std::byte* next = room.memory.data();
  for (std::size_t b = 0; b < step.bodies.size(); ++b) {
    const Program& body = *step.bodies[b].second;
    std::vector<std::byte*>& spare = room.spare.emplace_back(body.outputs.size(), nullptr);
    for (std::size_t r = 0; r < spare.size(); ++r) {
      if (!is_spare(step, b, r)) continue;
      spare[r] = next;
      next += aligned(output_buffer(body, r).bytes());
    }
  }
  return room;
}

std::int64_t control_spare_bytes(const ControlStep& step) {
  std::int64_t total = 0;
  for (std::size_t b = 0; b < step.bodies.size(); ++b) {
    const Program& body = *step.bodies[b].second;
    for (std::size_t r = 0; r < body.outputs.size(); ++r) {
      if (is_spare(step, b, r)) total += aligned(output_buffer(body, r).bytes());
    }
  }
  return total;
}

void run_control(const ControlStep& step, std::span<std::byte* const> buffers, ControlRoom& room,
                 Bodies& bodies) {
  Control control(step, buffers, room, bodies);
  if (const auto* plan = std::get_if<loop::LoopPlan>(&step.how)) {
    control.loop(*plan);
  } else {
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
