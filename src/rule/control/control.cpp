// Control flow: bodies are run by the driver.
#include "ricci/op/control.h"

#include <algorithm>
#include <complex>

#include "op/loop_layout.h"
#include "rule/control/loop_parts.h"
#include "rule/tables/eval_rules.h"

namespace ricci::rule {

// predicate ≠ 0 ? then(captures…) : else(captures…)
void eval(const op::If&, EvalContext& c) {
  std::vector<Tensor> captures;
  for (std::size_t k = 1; k < c.operands(); ++k) captures.push_back(c.tensor(k));
  const bool yes = c.numbers<std::complex<double>>(0).data[0] != std::complex<double>(0);
  std::vector<Tensor> outputs = c.run_body(yes ? "then" : "else", captures);
  for (std::size_t r = 0; r < outputs.size(); ++r) c.give(r, std::move(outputs[r]));
}

// (c_{t+1}…, y_t…) = body(c_t…, bcasts…, xs[t]…)
void eval(const op::Scan& op, EvalContext& c) {
  const std::int64_t length = op.length.value();
  const ScanLayout layout(op);
  const std::size_t carries = layout.carries;
  const std::size_t whole = layout.first_x();
  const std::int64_t kept = op.num_checkpoints > 0 ? op.num_checkpoints : length;
  std::vector<Tensor> state;
  for (std::size_t k = 0; k < whole; ++k) state.push_back(c.tensor(k));
  std::vector<Rows> rows;
  for (std::size_t r = 0; r < c.node().types.size(); ++r) {
    rows.emplace_back(layout.is_stacked(r) ? c.result_type(r) : Type{DType::Bool, {0}});
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
    c.give(r, layout.is_stacked(r) ? rows[r].take() : state[r]);
  }
}

// c ← body(c…) while every element of cond(c…) is non-zero
void eval(const op::While& op, EvalContext& c) {
  const std::size_t carries = c.operands();
  const std::int64_t stride = tape_stride(op.max_iterations.value_or(0), op.num_checkpoints);
  std::vector<Tensor> state;
  for (std::size_t k = 0; k < carries; ++k) state.push_back(c.tensor(k));
  const std::size_t first_tape = carries + 1;
  std::vector<std::optional<Rows>> tapes(c.node().types.size() - first_tape);
  for (std::size_t k = 0; k < tapes.size(); ++k) {
    if (c.wanted(first_tape + k)) tapes[k].emplace(c.result_type(first_tape + k));
  }
  const auto goes_on = [&] {
    const auto flags = c.run_body("cond", state)[0].numbers<std::complex<double>>();
    return std::ranges::all_of(flags, [](auto v) { return v != std::complex<double>(0); });
  };
  std::int64_t trips = 0;
  while ((!op.max_iterations || trips < *op.max_iterations) && goes_on()) {
    for (std::size_t k = 0; k < tapes.size() && trips % stride == 0; ++k) {
      if (tapes[k]) tapes[k]->set(trips / stride, state[k]);
    }
    state = c.run_body("body", state);
    ++trips;
  }
  for (std::size_t k = 0; k < carries; ++k) c.give(k, std::move(state[k]));
  c.give(carries, Tensor::splat(i32(), trips));
  for (std::size_t k = 0; k < tapes.size(); ++k) {
    if (tapes[k]) c.give(first_tape + k, tapes[k]->take());
  }
}

namespace {

// The results of a body on the node's operands
void eval_body(std::string_view role, EvalContext& c) {
  std::vector<Tensor> inputs;
  for (std::size_t k = 0; k < c.operands(); ++k) inputs.push_back(c.tensor(k));
  std::vector<Tensor> outputs = c.run_body(role, inputs);
  for (std::size_t r = 0; r < outputs.size(); ++r) {
    if (c.wanted(r)) c.give(r, std::move(outputs[r]));
  }
}

}  // namespace

// (outputs…, residuals…) = fwd(inputs…)
void eval(const op::CustomFn&, EvalContext& c) { eval_body("fwd", c); }

// (outputs…, kept…) = body(inputs…)
void eval(const op::Checkpoint&, EvalContext& c) { eval_body("body", c); }

}  // namespace ricci::rule
