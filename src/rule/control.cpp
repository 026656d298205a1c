// Control flow: bodies are run by the driver.
#include "ricci/op/control.h"

#include <cstring>

#include "rule/eval_rules.h"

namespace ricci::rule {
namespace {

// Rows of equal type, filled one by one.
class Rows {
 public:
  explicit Rows(const Type& type) : tensor_(Tensor::zeros(type)) {
    const std::int64_t rows = tensor_.dims()[0];
    bytes_ = rows == 0 ? 0 : tensor_.numel() / rows * size_of(type.dtype);
  }
  void set(std::int64_t row, const Tensor& value) {
    const Tensor source = value.contiguous();
    std::memcpy(tensor_.mutable_data() + row * bytes_, source.data(),
                static_cast<std::size_t>(bytes_));
  }
  [[nodiscard]] Tensor take() { return std::move(tensor_); }

 private:
  Tensor tensor_;
  std::int64_t bytes_ = 0;
};

Tensor row_of(const Tensor& t, std::int64_t row) {
  StaticDims dims(t.dims().begin() + 1, t.dims().end());
  return t.narrowed(0, row, 1).reshaped(std::move(dims));
}

}  // namespace

// predicate ≠ 0 ? then(captures…) : else(captures…)
void eval(const op::If&, EvalContext& c) {
  std::vector<Tensor> captures;
  for (std::size_t k = 1; k < c.operands(); ++k) captures.push_back(c.tensor(k));
  const bool yes = c.numbers<std::complex<double>>(0).data[0] != std::complex<double>(0);
  std::vector<Tensor> outputs = c.run_body(yes ? "then" : "else", captures);
  for (std::size_t r = 0; r < outputs.size(); ++r) c.give(r, std::move(outputs[r]));
}

// The visiting step after which kept row k holds the carry: p_k = ⌈(k+1)·L/K⌉ - 1.
std::int64_t checkpoint_step(std::int64_t k, std::int64_t length, std::int64_t count) {
  return ((k + 1) * length + count - 1) / count - 1;
}

// (c_{t+1}…, y_t…) = body(c_t…, bcasts…, xs[t]…)
void eval(const op::Scan& op, EvalContext& c) {
  const std::int64_t length = op.length.value();
  const auto carries = static_cast<std::size_t>(op.num_carry);
  const auto whole = carries + static_cast<std::size_t>(op.num_bcast);
  const std::int64_t kept = op.num_checkpoints > 0 ? op.num_checkpoints : length;
  std::vector<Tensor> state;
  for (std::size_t k = 0; k < whole; ++k) state.push_back(c.tensor(k));
  std::vector<Rows> rows;
  for (std::size_t r = 0; r < c.node().types.size(); ++r) {
    const bool stacked = r >= carries || op.save_trajectory;
    rows.emplace_back(stacked ? c.result_type(r) : Type{DType::Bool, {0}});
  }
  std::int64_t next_kept = 0;
  for (std::int64_t step = 0; step < length; ++step) {
    const std::int64_t t = op.reverse ? length - 1 - step : step;
    std::vector<Tensor> inputs = state;
    for (std::size_t k = whole; k < c.operands(); ++k) inputs.push_back(row_of(c.tensor(k), t));
    std::vector<Tensor> outputs = c.run_body("body", inputs);
    for (std::size_t r = carries; r < outputs.size(); ++r) rows[r].set(t, outputs[r]);
    for (std::size_t r = 0; r < carries; ++r) state[r] = outputs[r];
    if (op.save_trajectory && step == checkpoint_step(next_kept, length, kept)) {
      const std::int64_t row = op.reverse ? kept - 1 - next_kept : next_kept;
      for (std::size_t r = 0; r < carries; ++r) rows[r].set(row, outputs[r]);
      ++next_kept;
    }
  }
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const bool stacked = r >= carries || op.save_trajectory;
    c.give(r, stacked ? rows[r].take() : state[r]);
  }
}

}  // namespace ricci::rule
