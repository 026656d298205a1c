// The loops' gradients: one sweep from the last step to the first.
#include <algorithm>

#include <fmt/format.h>

#include "ricci/op/control.h"

#include "op/loop_layout.h"
#include "rule/control/loop_parts.h"
#include "rule/tables/eval_rules.h"

namespace ricci::rule {
namespace {

std::vector<Type> operand_types(const EvalContext& c) {
  std::vector<Type> out;
  for (std::size_t k = 0; k < c.operands(); ++k) out.push_back(c.tensor(k).type());
  return out;
}

// The cotangents threaded through the sweep; carries without a derivative have none.
class CarryCotangents {
 public:
  CarryCotangents(const EvalContext& c, std::size_t carries) : values_(carries) {
    for (std::size_t k = 0; k < carries; ++k) {
      if (is_differentiable(c.dtype(k))) values_[k] = Tensor::zeros(c.tensor(k).type());
    }
  }
  [[nodiscard]] const std::optional<Tensor>& operator[](std::size_t k) const { return values_[k]; }
  void set(std::size_t k, const Tensor& value) { values_[k] = value; }
  void add(std::size_t k, const Tensor& more) {
    WideSum total(more.type());
    total.add(*values_[k]);
    total.add(more);
    values_[k] = total.value();
  }
  // Takes the next cotangents from the front of body_vjp's outputs; gives how many there were.
  std::size_t replace(std::span<const Tensor> outputs) {
    std::size_t next = 0;
    for (auto& v : values_) {
      if (v) v = outputs[next++];
    }
    return next;
  }
  std::size_t give(EvalContext& c) const {
    std::size_t r = 0;
    for (const auto& v : values_) {
      if (v) c.give(r++, *v);
    }
    return r;
  }

 private:
  std::vector<std::optional<Tensor>> values_;
};

// The carries entering each step of a scan: kept, or recomputed a segment at a time.
class ScanCarries {
 public:
  ScanCarries(const op::ScanBackward& op, const LoopLayout& layout, EvalContext& c)
      : op_(op), layout_(layout), c_(c), length_(op.length.value()) {
    kept_ = op.num_checkpoints > 0 ? op.num_checkpoints : length_;
  }

  [[nodiscard]] std::int64_t kept() const noexcept { return kept_; }
  [[nodiscard]] std::int64_t row_at(std::int64_t step) const {
    return op_.reverse ? length_ - 1 - step : step;
  }
  [[nodiscard]] std::int64_t kept_row(std::int64_t k) const {
    return op_.reverse ? kept_ - 1 - k : k;
  }

  // The inputs of the scan's body at a step, and what was saved of it.
  [[nodiscard]] std::vector<Tensor> inputs(std::int64_t step) {
    if (step < first_ || segment_.empty()) load_segment(step);
    std::vector<Tensor> out = with_rest(segment_[static_cast<std::size_t>(step - first_)], step);
    for (std::size_t k = layout_.first_saved(); k < c_.operands(); ++k) {
      out.push_back(row_of(c_.tensor(k), row_at(step)));
    }
    return out;
  }

 private:
  // Segment k covers the steps p_{k-1}+1 … p_k and starts from kept row k-1, or from the inits.
  void load_segment(std::int64_t step) {
    std::int64_t k = 0;
    while (checkpoint_step(k, length_, kept_) < step) ++k;
    first_ = k == 0 ? 0 : checkpoint_step(k - 1, length_, kept_) + 1;
    std::vector<Tensor> carries;
    for (std::size_t i = 0; i < layout_.carries; ++i) {
      carries.push_back(k == 0 ? c_.tensor(i)
                               : row_of(c_.tensor(layout_.kept(i)), kept_row(k - 1)));
    }
    segment_ = {carries};
    for (std::int64_t s = first_; s < step; ++s) {
      std::vector<Tensor> next = c_.run_body("forward_body", with_rest(segment_.back(), s));
      next.resize(layout_.carries);
      segment_.push_back(std::move(next));
    }
  }

  [[nodiscard]] std::vector<Tensor> with_rest(std::vector<Tensor> carries,
                                              std::int64_t step) const {
    for (std::size_t k = layout_.first_bcast(); k < layout_.first_x(); ++k) {
      carries.push_back(c_.tensor(k));
    }
    for (std::size_t k = layout_.first_x(); k < layout_.first_saved(); ++k) {
      carries.push_back(row_of(c_.tensor(k), row_at(step)));
    }
    return carries;
  }

  const op::ScanBackward& op_;
  const LoopLayout& layout_;
  EvalContext& c_;
  std::int64_t length_;
  std::int64_t kept_ = 0;
  std::int64_t first_ = 0;  // the first step of the segment held
  std::vector<std::vector<Tensor>> segment_;
};

}  // namespace

// dc ← dc + upstream;  (dc…, db…, dx_t…) = body_vjp(c_t…, bcasts…, xs[t]…, saved[t]…, dc…, dy_t…)
void eval(const op::ScanBackward& op, EvalContext& c) {
  const LoopLayout layout = *layout_of(op, operand_types(c));
  ScanCarries carries(op, layout, c);
  CarryCotangents dc(c, layout.carries);
  for (std::size_t i = 0; i < layout.carries && !op.save_trajectory; ++i) {
    if (const auto at = layout.upstream(i)) dc.set(i, c.tensor(*at));
  }
  std::vector<WideSum> dbcasts;
  for (std::size_t k = layout.first_bcast(); k < layout.first_x(); ++k) {
    if (is_differentiable(c.dtype(k))) dbcasts.emplace_back(c.tensor(k).type());
  }
  std::vector<Rows> dxs;
  for (std::size_t k = layout.first_x(); k < layout.first_saved(); ++k) {
    if (is_differentiable(c.dtype(k))) dxs.emplace_back(c.tensor(k).type());
  }

  const Graph& body = *c.node().body("body_vjp");
  std::int64_t next_kept = carries.kept() - 1;
  for (std::int64_t step = op.length.value() - 1; step >= 0; --step) {
    if (op.save_trajectory && next_kept >= 0 &&
        step == checkpoint_step(next_kept, op.length.value(), carries.kept())) {
      const std::int64_t row = carries.kept_row(next_kept--);
      for (std::size_t i = 0; i < layout.carries; ++i) {
        if (const auto at = layout.upstream(i)) dc.add(i, row_of(c.tensor(*at), row));
      }
    }
    const std::int64_t t = carries.row_at(step);
    const std::vector<Tensor> inputs = carries.inputs(step);
    const auto d_output = [&](std::size_t i) -> std::optional<Tensor> {
      if (i < layout.carries) return dc[i];
      const auto at = layout.upstream(i);
      return at ? std::optional(row_of(c.tensor(*at), t)) : std::nullopt;
    };
    const std::vector<Tensor> outputs =
        c.run_body("body_vjp", derivative_inputs(body, inputs, d_output));
    std::size_t next = dc.replace(outputs);
    for (WideSum& db : dbcasts) db.add(outputs[next++]);
    for (Rows& dx : dxs) dx.set(t, outputs[next++]);
  }
  std::size_t r = dc.give(c);
  for (const WideSum& db : dbcasts) c.give(r++, db.value());
  for (Rows& dx : dxs) c.give(r++, dx.take());
}

// dc ← upstream;  dc ← body_vjp(c_t…, dc…),  t = trip_count-1 … 0
void eval(const op::WhileBackward& op, EvalContext& c) {
  const LoopLayout layout = *layout_of(op, operand_types(c));
  const auto trips = c.numbers<std::int64_t>(layout.trip_count()).data[0];
  if (trips < 0 || trips > op.max_iterations) {
    c.fail(ErrorCode::IndexOutOfRange,
           fmt::format("the trip count is {}, but the tape was made for {} trips at most", trips,
                       op.max_iterations));
  }
  CarryCotangents dc(c, layout.carries);
  for (std::size_t i = 0; i < layout.carries; ++i) {
    if (const auto at = layout.upstream(i)) dc.set(i, c.tensor(*at));
  }
  const std::int64_t stride = tape_stride(op.max_iterations, op.num_checkpoints);
  const Graph& body = *c.node().body("body_vjp");
  std::vector<std::vector<Tensor>> segment;  // carries entering the trips from a kept row on
  for (std::int64_t t = trips - 1; t >= 0; --t) {
    const auto offset = static_cast<std::size_t>(t % stride);
    if (segment.empty()) {
      std::vector<Tensor> first;
      for (std::size_t i = 0; i < layout.carries; ++i) {
        first.push_back(row_of(c.tensor(layout.kept(i)), t / stride));
      }
      segment.push_back(std::move(first));
      while (segment.size() <= offset) {
        segment.push_back(c.run_body("forward_body", segment.back()));
      }
    }
    const auto d_output = [&](std::size_t i) { return dc[i]; };
    (void)dc.replace(c.run_body("body_vjp", derivative_inputs(body, segment[offset], d_output)));
    if (offset == 0) segment.clear();
  }
  (void)dc.give(c);
}

}  // namespace ricci::rule
