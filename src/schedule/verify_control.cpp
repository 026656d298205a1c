#include "schedule/verify_control.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace ricci::schedule {
namespace {

struct Fault {
  std::string what;
};

void require(bool holds, const char* what) {
  if (!holds) throw Fault{what};
}

constexpr const char* OtherSize = "a body takes or gives values of another size";

loop::ArraySize size_of_view(const BufferView& v) { return {v.type.dtype, *v.type.numel()}; }

std::vector<loop::ArraySize> operand_sizes(const std::vector<BufferView>& views) {
  std::vector<loop::ArraySize> out;
  for (const BufferView& v : views) out.push_back(size_of_view(v));
  return out;
}

std::vector<std::optional<loop::ArraySize>> result_sizes(const std::vector<BufferView>& views) {
  std::vector<std::optional<loop::ArraySize>> out(views.size());
  for (std::size_t r = 0; r < views.size(); ++r) {
    if (views[r].buffer >= 0) out[r] = size_of_view(views[r]);
  }
  return out;
}

std::vector<loop::ArraySize> port_sizes(const Program& body, const std::vector<BufferId>& ports) {
  std::vector<loop::ArraySize> out;
  for (const BufferId b : ports) {
    const Buffer& buffer = body.buffers[static_cast<std::size_t>(b)];
    out.push_back({buffer.dtype, buffer.elements});
  }
  return out;
}

// The runner knows where things begin, and takes them to be row-major. A body that reads what it
// writes could change what was already found to be good.
void check_places(const std::vector<BufferView>& operands, const std::vector<BufferView>& results,
                  std::vector<BufferId> written) {
  for (const BufferView& v : results) {
    if (v.buffer < 0) continue;
    require(v.layout.offset == 0 && is_row_major(v), "a result of a loop is not row-major");
    written.push_back(v.buffer);
  }
  for (const BufferView& v : operands) {
    require(is_row_major(v), "an operand of a loop is not row-major");
    require(std::ranges::find(written, v.buffer) == written.end(), "a loop writes to its operands");
  }
  std::ranges::sort(written);
  require(std::ranges::adjacent_find(written) == written.end(),
          "a loop writes to one place in two ways");
}

class ControlChecker {
 public:
  ControlChecker(const Program& program, const ControlStep& step)
      : program_(program), step_(step) {}

  void run() const {
    std::vector<BufferId> written = {step_.workspace};
    for (const auto& pair : step_.carries) written.insert(written.end(), pair.begin(), pair.end());
    check_places(step_.operands, step_.results, std::move(written));
    if (const auto* plan = std::get_if<loop::LoopPlan>(&step_.how)) return check(*plan);
    check_branch();
  }

 private:
  [[nodiscard]] const Program& body(std::size_t b) const { return *step_.bodies[b].second; }

  void check(const loop::LoopPlan& plan) const {
    require(step_.bodies.size() == (plan.conditional ? 2 : 1), "a body is missing");
    loop::PlanArrays arrays{.operands = operand_sizes(step_.operands),
                            .results = result_sizes(step_.results),
                            .body_inputs = port_sizes(body(0), body(0).inputs),
                            .body_outputs = port_sizes(body(0), body(0).outputs),
                            .condition_inputs = {}};
    if (plan.conditional) {
      arrays.condition_inputs = port_sizes(body(1), body(1).inputs);
      require(body(1).outputs.size() == 1, "a condition gives another number of values than one");
    }
    if (auto fault = find_fault(plan, arrays)) throw Fault{std::move(*fault)};
    require(step_.carries.size() == plan.carries.size(), "a carry has no buffers");
    for (std::size_t k = 0; k < step_.carries.size(); ++k) check_rooms(k, arrays.body_inputs[k]);
  }
  // Carries are read and written by turns, in two buffers.
  void check_rooms(std::size_t k, const loop::ArraySize& size) const {
    for (const BufferId b : step_.carries[k]) {
      const Buffer& room = program_.buffers[static_cast<std::size_t>(b)];
      require(room.role == Buffer::Role::Output || room.role == Buffer::Role::Temporary,
              "a loop writes to what it may only read");
      require(room.dtype == size.dtype && room.elements >= size.elements,
              "a buffer for a carry is too small");
    }
  }

  void check_branch() const {
    require(step_.bodies.size() == 2, "a body is missing");
    require(!step_.operands.empty() && step_.carries.empty(), "an if is not one");
    const std::vector<loop::ArraySize> operands = operand_sizes(step_.operands);
    const auto results = result_sizes(step_.results);
    for (const auto& [role, inside] : step_.bodies) {
      const auto inputs = port_sizes(*inside, inside->inputs);
      const auto outputs = port_sizes(*inside, inside->outputs);
      require(inputs.size() == operands.size() - 1 && outputs.size() == results.size(),
              "a body takes or gives another number of values");
      require(std::equal(inputs.begin(), inputs.end(), operands.begin() + 1), OtherSize);
      for (std::size_t r = 0; r < results.size(); ++r) {
        require(!results[r] || *results[r] == outputs[r], OtherSize);
      }
    }
  }

  const Program& program_;
  const ControlStep& step_;
};

}  // namespace

bool is_row_major(const BufferView& view) {
  const StaticDims dims = view.type.static_dims();
  if (std::ranges::find(dims, 0) != dims.end()) return true;
  std::int64_t next = 1;
  for (std::size_t axis = dims.size(); axis-- > 0;) {
    if (dims[axis] != 1 && view.layout.strides[axis] != next) return false;
    next *= dims[axis];
  }
  return true;
}

std::optional<std::string> find_control_fault(const Program& program, const ControlStep& step) {
  try {
    ControlChecker(program, step).run();
    return std::nullopt;
  } catch (Fault& fault) {
    return std::move(fault.what);
  }
}

std::optional<std::string> find_loop_fault(const LoopStep& step) {
  try {
    check_places(step.operands, step.results, {});
    return find_fault(step.loop, operand_sizes(step.operands), result_sizes(step.results));
  } catch (Fault& fault) {
    return std::move(fault.what);
  }
}

}  // namespace ricci::schedule
