// The gradient of a scan written as a scan that visits the rows the other way round. Its body is
// the derivative of the scan's body, so it can be differentiated as often as that.
#include "op/loop_layout.h"
#include "rule/control/body_masks.h"
#include "rule/control/loop_rewriting.h"
#include "rule/control/scan_segments_expand.h"
#include "rule/tables/expand_rules.h"
#include "type/small_dtype.h"

namespace ricci::rule {
namespace {

Value flipped(Value rows) { return reverse(rows, {.axes = {0}}); }

class ReverseScan {
 public:
  ReverseScan(const op::ScanBackward& op, const ExpandContext& c)
      : op_(op),
        c_(c),
        layout_(*layout_of(op, types_of(c.operands))),
        read_(read_inputs(*c.node.body("body_vjp"))),
        rows_kept_(op.num_checkpoints > 0 && !op.length.is(op.num_checkpoints)) {}

  std::vector<Value> build() {
    add_carries();
    for (std::size_t k = layout_.first_bcast(); k < layout_.first_x(); ++k) {
      operands_.push_back(c_[k]);
    }
    add_rows();
    const op::Scan op{.length = op_.length,
                      .num_carry = static_cast<std::int64_t>(own_.carries),
                      .num_bcast = static_cast<std::int64_t>(own_.bcasts),
                      .reverse = !op_.reverse};
    return results(
        add_scan(c_.graph, op, operands_,
                 [this](Graph& graph, std::span<const Value> in) { return step(graph, in); }));
  }

 private:
  [[nodiscard]] bool counts(std::size_t k) const { return is_differentiable(c_[k].dtype()); }

  // Carries: the cotangents of the scan's carries, then the sums of those of its bcasts.
  void add_carries() {
    std::size_t r = 0;  // result the next cotangent is
    for (std::size_t i = 0; i < layout_.carries; ++i) {
      if (!counts(i)) continue;
      const auto upstream = layout_.upstream(i);
      operands_.push_back(upstream && !op_.save_trajectory ? c_[*upstream]
                                                           : filled(c_.graph, c_[i].type(), 0));
      ++r;
    }
    for (std::size_t k = layout_.first_bcast(); k < layout_.first_x(); ++k) {
      if (!counts(k)) continue;
      if (!c_.wanted(r++)) continue;
      const Type& type = c_[k].type();
      operands_.push_back(filled(c_.graph, {widened(type.dtype), type.dims}, 0));
    }
    own_ = {operands_.size(), layout_.bcasts, 0};
  }

  // Which of the carries, bcasts, xs and saved values the body reads; they are its first inputs.
  [[nodiscard]] bool reads_carry(std::size_t i) const { return read_[i]; }
  [[nodiscard]] bool reads_row(std::size_t operand) const {
    return read_[layout_.input_of(operand)];
  }

  // Rows: the carries entering each step, xs, saved values, as far as they are read, and the
  // cotangents that are there.
  void add_rows() {
    for (const Value& v : entering_carries()) operands_.push_back(v);
    for (std::size_t k = layout_.first_x(); k < c_.size(); ++k) {
      if (reads_row(k)) operands_.push_back(c_[k]);
    }
    for (std::size_t i = 0; i < layout_.present.size(); ++i) {
      const auto at = layout_.upstream(i);
      if (!at) continue;
      if (i >= layout_.carries) {
        operands_.push_back(c_[*at]);
      } else if (op_.save_trajectory) {
        operands_.push_back(
            rows_kept_ ? by_row(segments().spread_rows(by_step(c_[*at]), Edge::Last)) : c_[*at]);
      }
    }
  }

  [[nodiscard]] Segments segments() const { return scan_segments(op_.length, op_.num_checkpoints); }
  // Rows in the order in which the scan visited them, and back.
  [[nodiscard]] Value by_step(Value rows) const { return op_.reverse ? flipped(rows) : rows; }
  [[nodiscard]] Value by_row(Value steps) const { return op_.reverse ? flipped(steps) : steps; }

  // Those of the carries that are read. One that enters a step is the one the step before it left,
  // or the initial one.
  [[nodiscard]] std::vector<Value> entering_carries() const {
    std::vector<Value> out;
    for (std::size_t i = 0; i < layout_.carries; ++i) {
      if (!reads_carry(i)) continue;
      if (rows_kept_) return recomputed_carries();
      const Value init = reshape_to(c_[i], stacked_type(1, c_[i].type()).dims);
      const Value left = c_[layout_.kept(i)];
      const Value all =
          op_.reverse ? concat({left, init}, {.axis = 0}) : concat({init, left}, {.axis = 0});
      const Dim start = op_.reverse ? 1 : 0;
      out.push_back(narrow(all, {.axis = 0, .start = start, .len = op_.length}));
    }
    return out;
  }

  // The scan once more, from the carry kept at the start of each segment.
  [[nodiscard]] std::vector<Value> recomputed_carries() const {
    const std::size_t n = layout_.carries;
    std::vector<Value> operands(c_.operands.begin(),
                                c_.operands.begin() + static_cast<std::ptrdiff_t>(n));
    for (std::size_t k = layout_.first_bcast(); k < layout_.first_saved(); ++k) {
      operands.push_back(c_[k]);
    }
    operands.push_back(by_row(segments().edges(c_.graph, Edge::First)));
    for (std::size_t i = 0; i < n; ++i) {
      const Value init = reshape_to(c_[i], stacked_type(1, c_[i].type()).dims);
      const Value kept = narrow(by_step(c_[layout_.kept(i)]),
                                {.axis = 0, .start = 0, .len = op_.num_checkpoints - 1});
      operands.push_back(
          by_row(segments().spread_rows(concat({init, kept}, {.axis = 0}), Edge::First)));
    }
    const Graph& forward = *c_.node.body("forward_body");
    const auto body = [&](Graph& graph, std::span<const Value> in) {
      const std::size_t own = layout_.step().operands();
      std::vector<Value> given(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(own));
      for (std::size_t i = 0; i < n; ++i) given[i] = where(in[own], in[own + 1 + i], in[i]);
      std::vector<Value> out = inline_subgraph(forward, given, graph);
      out.resize(n);
      out.insert(out.end(), given.begin(), given.begin() + static_cast<std::ptrdiff_t>(n));
      return out;
    };
    const op::Scan op{.length = op_.length,
                      .num_carry = op_.num_carry,
                      .num_bcast = op_.num_bcast,
                      .reverse = op_.reverse};
    const std::vector<Value> all = add_scan(c_.graph, op, operands, body);
    std::vector<Value> out;
    for (std::size_t i = 0; i < n; ++i) {
      if (reads_carry(i)) out.push_back(all[n + i]);
    }
    return out;
  }

  // dc ← dc + upstream
  // (dc…, db…, dx_t…) = body_vjp(c_t…, bcasts…, xs[t]…, saved[t]…, dc…, dy_t…)
  [[nodiscard]] std::vector<Value> step(Graph& graph, std::span<const Value> in) const {
    std::size_t next_row = own_.first_x();
    std::vector<Value> ordinary;
    for (std::size_t i = 0; i < layout_.carries; ++i) {
      ordinary.push_back(reads_carry(i) ? in[next_row++] : filled(graph, c_[i].type(), 0));
    }
    for (std::size_t k = own_.first_bcast(); k < own_.first_x(); ++k) ordinary.push_back(in[k]);
    for (std::size_t k = layout_.first_x(); k < c_.size(); ++k) {
      ordinary.push_back(reads_row(k) ? in[next_row++] : filled(graph, row_type(c_[k].type()), 0));
    }
    std::vector<Value> cotangents(layout_.present.size());
    for (std::size_t i = 0, next = 0; i < layout_.carries; ++i) {
      if (counts(i)) cotangents[i] = in[next++];
    }
    for (std::size_t i = 0, next = next_row; i < layout_.present.size(); ++i) {
      if (!layout_.upstream(i)) continue;
      if (i >= layout_.carries) {
        cotangents[i] = in[next++];
      } else if (op_.save_trajectory) {
        cotangents[i] = add(cotangents[i], in[next++]);
      }
    }
    const std::vector<Value> given =
        inline_by_role(*c_.node.body("body_vjp"), ordinary, graph, [&](const op::InputRole& role) {
          return cotangents.at(static_cast<std::size_t>(role.index));
        });
    return next_values(in, given);
  }

  [[nodiscard]] std::vector<Value> next_values(std::span<const Value> in,
                                               std::span<const Value> given) const {
    std::vector<Value> out;
    std::size_t r = 0;
    for (std::size_t i = 0; i < layout_.carries; ++i) {
      if (counts(i)) out.push_back(given[r++]);
    }
    for (std::size_t k = layout_.first_bcast(); k < layout_.first_x(); ++k) {
      if (!counts(k)) continue;
      const Value more = given[r];
      if (!c_.wanted(r++)) continue;
      const Value so_far = in[out.size()];
      out.push_back(add(so_far, cast_to(more, so_far.dtype())));
    }
    for (std::size_t k = layout_.first_x(); k < layout_.first_saved(); ++k) {
      if (!counts(k)) continue;
      if (c_.wanted(r)) out.push_back(given[r]);
      ++r;
    }
    return out;
  }

  // A value for each wanted result; every carry's cotangent is there, wanted or not.
  [[nodiscard]] std::vector<Value> results(std::span<const Value> given) const {
    std::vector<Value> out(c_.node.types.size());
    std::size_t dcarries = 0;
    for (std::size_t i = 0; i < layout_.carries; ++i) dcarries += counts(i) ? 1 : 0;
    std::size_t next = 0;
    for (std::size_t r = 0; r < out.size(); ++r) {
      if (c_.wanted(r)) out[r] = given[next];
      if (c_.wanted(r) || r < dcarries) ++next;
    }
    return out;
  }

  const op::ScanBackward& op_;
  const ExpandContext& c_;
  LoopLayout layout_;
  std::vector<bool> read_;  // inputs of body_vjp
  bool rows_kept_;          // only some of the carries
  std::vector<Value> operands_;
  StepLayout own_;  // of the scan that is made; whatever is no carry or bcast is an xs
};

}  // namespace

// [scan-higher-order]
std::vector<Value> expand(const op::ScanBackward& op, const ExpandContext& c) {
  if (auto segments = expand_by_segments(op, c)) return *std::move(segments);
  return ReverseScan(op, c).build();
}

}  // namespace ricci::rule
