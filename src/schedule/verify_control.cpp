#include "schedule/verify_control.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ricci/op/ops.h"
#include "ricci/support/checked.h"

namespace ricci::schedule {
namespace {

struct Fault {
  const char* what;
};

void require(bool holds, const char* what) {
  if (!holds) throw Fault{what};
}

constexpr const char* OtherSize = "a body takes or gives values of another size";
constexpr const char* NoScan = "a scan is not one";
constexpr const char* NoWhile = "a while is not one";

class ControlChecker {
 public:
  ControlChecker(const Program& program, const ControlStep& step)
      : program_(program), step_(step) {}

  void run() const {
    check_places();
    if (const auto* scan = step_.op.as<op::Scan>()) return check(*scan);
    if (const auto* loop = step_.op.as<op::While>()) return check(*loop);
    require(step_.op.is<op::If>(), "a control step is of no known kind");
    check_branch();
  }

 private:
  // The runner knows where things begin, and takes them to be row-major. A body that reads what it
  // writes could change what was already found to be good.
  void check_places() const {
    std::vector<BufferId> written = {step_.workspace};
    for (const auto& pair : step_.carries) written.insert(written.end(), pair.begin(), pair.end());
    for (const BufferView& v : step_.results) {
      if (v.buffer < 0) continue;
      require(v.layout.offset == 0 && is_row_major(v), "a result of a loop is not row-major");
      written.push_back(v.buffer);
    }
    for (const BufferView& v : step_.operands) {
      require(is_row_major(v), "an operand of a loop is not row-major");
      require(std::ranges::find(written, v.buffer) == written.end(),
              "a loop writes to its operands");
    }
    std::ranges::sort(written);
    require(std::ranges::adjacent_find(written) == written.end(),
            "a loop writes to one place in two ways");
  }

  void check_roles(std::initializer_list<const char*> roles) const {
    require(step_.bodies.size() == roles.size(), "a body is missing");
    for (const char* role : roles) {
      require(std::ranges::count(step_.bodies, role, [](const auto& b) { return b.first; }) == 1,
              "a body is missing");
    }
  }
  [[nodiscard]] const Program& body(std::string_view role) const {
    return *std::ranges::find(step_.bodies, role, [](const auto& b) { return b.first; })->second;
  }
  static const Buffer& input(const Program& body, std::size_t k) {
    return body.buffers[static_cast<std::size_t>(body.inputs[k])];
  }
  static const Buffer& output(const Program& body, std::size_t k) {
    return body.buffers[static_cast<std::size_t>(body.outputs[k])];
  }
  static void check_counts(const Program& body, std::size_t inputs, std::size_t outputs) {
    require(body.inputs.size() == inputs && body.outputs.size() == outputs,
            "a body takes or gives another number of values");
  }

  // Is a value of the step as large as that of a body, so many times?
  static void check_same(const Buffer& inside, const BufferView& outside, std::int64_t rows) {
    if (outside.buffer < 0) return;
    const std::optional<std::int64_t> elements = try_mul(inside.elements, rows);
    require(inside.dtype == outside.type.dtype && elements == outside.type.numel(), OtherSize);
  }
  // And does it have a row for each time?
  static void check_rows(const Buffer& inside, const BufferView& outside, std::int64_t rows) {
    if (outside.buffer < 0) return;
    require(outside.type.rank() > 0 && outside.type.dims[0].value() == rows, OtherSize);
    check_same(inside, outside, rows);
  }
  // Carries are read and written by turns, in two buffers.
  void check_carry(std::size_t k, const Program& body) const {
    const BufferView& operand = step_.operands[k];
    check_same(input(body, k), operand, 1);
    check_same(output(body, k), operand, 1);
    for (const BufferId b : step_.carries[k]) {
      const Buffer& room = program_.buffers[static_cast<std::size_t>(b)];
      require(room.role == Buffer::Role::Output || room.role == Buffer::Role::Temporary,
              "a loop writes to what it may only read");
      require(room.dtype == operand.type.dtype && room.elements >= *operand.type.numel(),
              "a buffer for a carry is too small");
    }
  }

  void check(const op::Scan& scan) const {
    check_roles({"body"});
    require(scan.length.is_static() && scan.length.value() >= 0 && scan.num_carry >= 0 &&
                scan.num_bcast >= 0 && scan.num_xs >= 0 && scan.num_checkpoints >= 0,
            NoScan);
    const std::int64_t length = scan.length.value();
    const auto carries = static_cast<std::size_t>(scan.num_carry);
    const std::size_t whole = carries + static_cast<std::size_t>(scan.num_bcast);
    require(whole + static_cast<std::size_t>(scan.num_xs) == step_.operands.size() &&
                carries == step_.carries.size() && carries <= step_.results.size(),
            NoScan);
    const Program& inside = body("body");
    check_counts(inside, step_.operands.size(), step_.results.size());
    for (std::size_t k = 0; k < carries; ++k) check_carry(k, inside);
    for (std::size_t k = carries; k < whole; ++k)
      check_same(input(inside, k), step_.operands[k], 1);
    for (std::size_t k = whole; k < step_.operands.size(); ++k)
      check_rows(input(inside, k), step_.operands[k], length);
    const std::int64_t kept = scan.num_checkpoints > 0 ? scan.num_checkpoints : length;
    for (std::size_t r = 0; r < step_.results.size(); ++r) {
      if (r < carries && !scan.save_trajectory) {
        check_same(output(inside, r), step_.results[r], 1);
      } else {
        check_rows(output(inside, r), step_.results[r], r < carries ? kept : length);
      }
    }
  }

  void check(const op::While& loop) const {
    check_roles({"cond", "body"});
    const std::size_t carries = step_.operands.size();
    const std::size_t results = step_.results.size();
    require(step_.carries.size() == carries &&
                (results == carries || results == carries + 1 || results == 2 * carries + 1),
            NoWhile);
    check_counts(body("cond"), carries, 1);
    check_counts(body("body"), carries, carries);
    for (std::size_t k = 0; k < carries; ++k) {
      check_same(input(body("cond"), k), step_.operands[k], 1);
      check_carry(k, body("body"));
      check_same(output(body("body"), k), step_.results[k], 1);
    }
    if (results > carries && step_.results[carries].buffer >= 0) {
      require(step_.results[carries].type == Type{DType::I32, {}}, NoWhile);
    }
    for (std::size_t r = carries + 1; r < results; ++r) check_tape(loop, r - carries - 1, r);
  }
  // The states a loop leaves for its gradient: a row for every trip, or for some.
  void check_tape(const op::While& loop, std::size_t carry, std::size_t r) const {
    if (step_.results[r].buffer < 0) return;
    require(loop.max_iterations && *loop.max_iterations >= 0 && loop.num_checkpoints >= 0, NoWhile);
    const std::int64_t most = *loop.max_iterations;
    const std::int64_t rows =
        loop.num_checkpoints == 0 ? most : std::min(most, loop.num_checkpoints);
    const Type& type = step_.results[r].type;
    require(type.rank() > 0 && type.dims[0].value() >= rows, NoWhile);
    check_rows(input(body("body"), carry), step_.results[r], type.dims[0].value());
  }

  void check_branch() const {
    check_roles({"then", "else"});
    require(!step_.operands.empty() && step_.carries.empty(), "an if is not one");
    for (const auto& [role, inside] : step_.bodies) {
      check_counts(*inside, step_.operands.size() - 1, step_.results.size());
      for (std::size_t k = 0; k < inside->inputs.size(); ++k)
        check_same(input(*inside, k), step_.operands[k + 1], 1);
      for (std::size_t r = 0; r < inside->outputs.size(); ++r)
        check_same(output(*inside, r), step_.results[r], 1);
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
  } catch (const Fault& fault) {
    return fault.what;
  }
}

}  // namespace ricci::schedule
