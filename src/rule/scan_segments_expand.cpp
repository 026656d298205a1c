#include "rule/scan_segments_expand.h"

#include "op/loop_layout.h"
#include "rule/body_masks.h"
#include "rule/loop_rewriting.h"

namespace ricci::rule {
namespace {

class SegmentedSweep {
 public:
  SegmentedSweep(const op::ScanBackward& op, const ExpandContext& c, std::int64_t steps)
      : op_(op),
        c_(c),
        layout_(*layout_of(op, types_of(c.operands))),
        steps_(steps),
        forward_(first_outputs(*c.node.body("forward_body"), layout_.carries)) {}

  std::vector<Value> build() {
    add_carries();
    for (std::size_t k = layout_.first_bcast(); k < layout_.first_x(); ++k) {
      operands_.push_back(c_[k]);
    }
    add_segments();
    const std::size_t first_row = sums_ + layout_.bcasts;
    const op::Scan op{.length = op_.num_checkpoints,
                      .num_carry = static_cast<std::int64_t>(sums_),
                      .num_bcast = static_cast<std::int64_t>(layout_.bcasts),
                      .num_xs = static_cast<std::int64_t>(operands_.size() - first_row),
                      .reverse = !op_.reverse};
    std::vector<Type> inputs = types_of(operands_);
    for (std::size_t k = first_row; k < inputs.size(); ++k) inputs[k] = row_type(inputs[k]);
    const auto body = make_body(
        "body", inputs,
        [this](Graph& graph, std::span<const Value> in) { return segment(graph, in); }, c_.graph);
    return results(add_scan(c_.graph, op, operands_, body));
  }

 private:
  static std::shared_ptr<const Graph> first_outputs(const Graph& body, std::size_t count) {
    Graph out = body;
    out.set_outputs(std::vector<ValueId>(
        body.outputs().begin(), body.outputs().begin() + static_cast<std::ptrdiff_t>(count)));
    return std::make_shared<const Graph>(std::move(out));
  }

  [[nodiscard]] bool counts(std::size_t k) const { return is_differentiable(c_[k].dtype()); }

  // Calls f(k, r) for each operand k whose cotangent is result r, in their order.
  template <class F>
  void for_results(std::size_t first, std::size_t last, std::size_t& r, F&& f) const {
    for (std::size_t k = first; k < last; ++k) {
      if (counts(k)) f(k, r++);
    }
  }

  // Carries: the cotangents of the scan's carries, then the sums of those of its bcasts.
  void add_carries() {
    std::size_t r = 0;
    for_results(0, layout_.carries, r, [&](std::size_t k, std::size_t) {
      const auto upstream = layout_.upstream(k);
      operands_.push_back(upstream && !op_.save_trajectory ? c_[*upstream]
                                                           : filled(c_.graph, c_[k].type(), 0));
    });
    for_results(layout_.first_bcast(), layout_.first_x(), r, [&](std::size_t k, std::size_t at) {
      if (c_.wanted(at)) operands_.push_back(filled(c_.graph, c_[k].type(), 0));
    });
    sums_ = operands_.size();
  }

  // [L, …] as [segments, steps, …].
  [[nodiscard]] Value by_segment(Value rows) const {
    Dims dims{op_.num_checkpoints, steps_};
    dims.insert(dims.end(), rows.dims().begin() + 1, rows.dims().end());
    return reshape_to(rows, dims);
  }

  // Rows: the carries each segment starts from, its xs, saved values and upstreams.
  void add_segments() {
    for (std::size_t i = 0; i < layout_.carries; ++i) {
      const Value init = reshape_to(c_[i], stacked_type(1, c_[i].type()).dims);
      const Value kept = c_[layout_.kept(i)];
      const Value all =
          op_.reverse ? concat({kept, init}, {.axis = 0}) : concat({init, kept}, {.axis = 0});
      const Dim start = op_.reverse ? 1 : 0;
      operands_.push_back(narrow(all, {.axis = 0, .start = start, .len = op_.num_checkpoints}));
    }
    for (std::size_t k = layout_.first_x(); k < c_.size(); ++k) {
      operands_.push_back(by_segment(c_[k]));
    }
    for (std::size_t i = 0; i < layout_.present.size(); ++i) {
      const auto at = layout_.upstream(i);
      if (!at || (i < layout_.carries && !op_.save_trajectory)) continue;
      operands_.push_back(i < layout_.carries ? c_[*at] : by_segment(c_[*at]));
    }
  }

  // The segment's carries once more, then its steps back.
  [[nodiscard]] std::vector<Value> segment(Graph& graph, std::span<const Value> in) const {
    std::size_t next = sums_;
    const auto take = [&](std::size_t count) {
      const auto values = in.subspan(next, count);
      next += count;
      return std::vector<Value>(values.begin(), values.end());
    };
    ScanBackwardArgs args{.inits = {},
                          .trajectories = {},
                          .upstreams = {},
                          .bcasts = take(layout_.bcasts),
                          .length = steps_,
                          .reverse = op_.reverse,
                          .body_vjp = std::make_shared<const Graph>(*c_.node.body("body_vjp"))};
    args.inits = take(layout_.carries);
    args.xs = take(layout_.xs);
    args.saved = take(layout_.saved);
    args.upstreams.resize(layout_.present.size());
    std::size_t sum_at = 0;
    for (std::size_t i = 0; i < layout_.present.size(); ++i) {
      const bool carry = i < layout_.carries;
      if (carry && counts(i)) args.upstreams[i] = in[sum_at++];
      if (!layout_.upstream(i) || (carry && !op_.save_trajectory)) continue;
      const Value row = take(1)[0];
      args.upstreams[i] = carry ? add(args.upstreams[i], row) : row;
    }
    args.trajectories = recomputed(graph, args);
    return next_values(in, scan_backward(args));
  }

  [[nodiscard]] std::vector<Value> recomputed(Graph& graph, const ScanBackwardArgs& args) const {
    std::vector<Value> operands = args.inits;
    operands.insert(operands.end(), args.bcasts.begin(), args.bcasts.end());
    operands.insert(operands.end(), args.xs.begin(), args.xs.end());
    return add_scan(graph,
                    {.length = steps_,
                     .num_carry = op_.num_carry,
                     .num_bcast = op_.num_bcast,
                     .num_xs = op_.num_xs,
                     .save_trajectory = true,
                     .reverse = op_.reverse},
                    operands, forward_);
  }

  [[nodiscard]] std::vector<Value> next_values(std::span<const Value> in,
                                               std::span<const Value> given) const {
    std::vector<Value> out;
    std::size_t r = 0;
    for_results(0, layout_.carries, r,
                [&](std::size_t, std::size_t at) { out.push_back(given[at]); });
    for_results(layout_.first_bcast(), layout_.first_x(), r, [&](std::size_t, std::size_t at) {
      if (c_.wanted(at)) out.push_back(add(in[out.size()], given[at]));
    });
    for_results(layout_.first_x(), layout_.first_saved(), r, [&](std::size_t, std::size_t at) {
      if (c_.wanted(at)) out.push_back(given[at]);
    });
    return out;
  }

  // A value for each wanted result; every carry's cotangent is there, wanted or not.
  [[nodiscard]] std::vector<Value> results(std::span<const Value> given) const {
    std::vector<Value> out(c_.node.types.size());
    std::size_t r = 0;
    std::size_t next = 0;
    for_results(0, layout_.carries, r, [&](std::size_t, std::size_t at) {
      if (c_.wanted(at)) out[at] = given[next];
      ++next;
    });
    for_results(layout_.first_bcast(), layout_.first_x(), r, [&](std::size_t, std::size_t at) {
      if (c_.wanted(at)) out[at] = given[next++];
    });
    for_results(layout_.first_x(), layout_.first_saved(), r, [&](std::size_t k, std::size_t at) {
      if (c_.wanted(at)) out[at] = reshape_to(given[next++], c_[k].dims());
    });
    return out;
  }

  const op::ScanBackward& op_;
  const ExpandContext& c_;
  LoopLayout layout_;
  std::int64_t steps_;
  std::shared_ptr<const Graph> forward_;
  std::vector<Value> operands_;
  std::size_t sums_ = 0;  // carries of the scan over segments
};

}  // namespace

std::optional<std::vector<Value>> expand_by_segments(const op::ScanBackward& op,
                                                     const ExpandContext& c) {
  const auto length = op.length.try_value();
  const std::int64_t kept = op.num_checkpoints;
  if (!length || kept == 0 || kept == *length || *length % kept != 0) return std::nullopt;
  const auto layout = layout_of(op, types_of(c.operands));
  for (std::size_t k = layout->first_bcast(); k < layout->first_x(); ++k) {
    const DType d = c[k].dtype();
    if (d == DType::F16 || d == DType::BF16) return std::nullopt;
  }
  return SegmentedSweep(op, c, *length / kept).build();
}

}  // namespace ricci::rule
