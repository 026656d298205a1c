#include "rule/control/scan_segments_expand.h"

#include "op/loop_layout.h"
#include "rule/control/body_masks.h"
#include "rule/control/loop_parts.h"
#include "rule/control/loop_rewriting.h"
#include "rule/derivative_parts.h"

namespace ricci::rule {
namespace {

// Segments of one length are rows of [segments, steps, …]. Otherwise some have one step more than
// others: the last ⌊L/K⌋ steps of each are its block, cut out where it lies, and a first step that
// only some have is taken on its own.
class SegmentedSweep {
 public:
  SegmentedSweep(const op::ScanBackward& op, const ExpandContext& c, std::int64_t length)
      : op_(op),
        c_(c),
        layout_(*layout_of(op, types_of(c.operands))),
        length_(length),
        steps_(length / op.num_checkpoints),
        differ_(length % op.num_checkpoints != 0),
        forward_(first_outputs(*c.node.body("forward_body"), layout_.carries)),
        vjp_(std::make_shared<const Graph>(*c.node.body("body_vjp"))) {}

  std::vector<Value> build() {
    add_carries();
    const std::size_t bcasts = add_bcasts();
    add_segments();
    const op::Scan op{.length = op_.num_checkpoints,
                      .num_carry = static_cast<std::int64_t>(sums_),
                      .num_bcast = static_cast<std::int64_t>(bcasts),
                      .reverse = !op_.reverse};
    return results(
        add_scan(c_.graph, op, operands_,
                 [this](Graph& graph, std::span<const Value> in) { return segment(graph, in); }));
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

  // The operands with a row for each step: xs, saved values, upstreams of stacked outputs.
  [[nodiscard]] std::vector<Value> by_step() const {
    std::vector<Value> out;
    for (std::size_t k = layout_.first_x(); k < c_.size(); ++k) out.push_back(c_[k]);
    for (std::size_t i = layout_.carries; i < layout_.present.size(); ++i) {
      if (const auto at = layout_.upstream(i)) out.push_back(c_[*at]);
    }
    return out;
  }

  std::size_t add_bcasts() {
    for (std::size_t k = layout_.first_bcast(); k < layout_.first_x(); ++k) {
      operands_.push_back(c_[k]);
    }
    if (differ_) {
      for (const Value& v : by_step()) operands_.push_back(v);
    }
    return operands_.size() - sums_;
  }

  // Rows: the carries each segment starts from, the upstreams of those it ends with, its steps.
  void add_segments() {
    for (std::size_t i = 0; i < layout_.carries; ++i) {
      const Value init = reshape_to(c_[i], stacked_type(1, c_[i].type()).dims);
      const Value kept = c_[layout_.kept(i)];
      const Value all =
          op_.reverse ? concat({kept, init}, {.axis = 0}) : concat({init, kept}, {.axis = 0});
      const Dim start = op_.reverse ? 1 : 0;
      operands_.push_back(narrow(all, {.axis = 0, .start = start, .len = op_.num_checkpoints}));
    }
    for (std::size_t i = 0; i < layout_.carries && op_.save_trajectory; ++i) {
      if (const auto at = layout_.upstream(i)) operands_.push_back(c_[*at]);
    }
    if (differ_) {
      add_places();
      return;
    }
    for (const Value& v : by_step()) {
      Dims dims{op_.num_checkpoints, steps_};
      dims.insert(dims.end(), v.dims().begin() + 1, v.dims().end());
      operands_.push_back(reshape_to(v, dims));
    }
  }

  // Of each segment: the first row of its block, the row of its odd step, whether it has one.
  void add_places() {
    const std::int64_t kept = op_.num_checkpoints;
    std::vector<std::int64_t> block;
    std::vector<std::int64_t> odd;
    std::vector<std::int64_t> has_odd;
    for (std::int64_t row = 0; row < kept; ++row) {
      const std::int64_t k = op_.reverse ? kept - 1 - row : row;
      const std::int64_t first = k == 0 ? 0 : checkpoint_step(k - 1, length_, kept) + 1;
      const std::int64_t last = checkpoint_step(k, length_, kept);
      block.push_back(op_.reverse ? length_ - 1 - last : last + 1 - steps_);
      odd.push_back(op_.reverse ? length_ - 1 - first : first);
      has_odd.push_back(last - first == steps_ ? 1 : 0);
    }
    const auto add = [&](DType dtype, const std::vector<std::int64_t>& numbers) {
      operands_.push_back(
          c_.graph.constant(Tensor::from_numbers<std::int64_t>({dtype, {kept}}, numbers)));
    };
    add(DType::I64, block);
    add(DType::I64, odd);
    add(DType::Bool, has_odd);
  }

  // What a segment's body is given.
  struct Segment {
    std::vector<Value> bcasts;
    std::vector<Value> inits;
    std::vector<Value> cotangents;  // of the carries it ends with
    std::vector<Value> block;       // its rows of what has one for each step
    std::vector<Value> odd;         // the odd step's; empty where no segment has one
    Value has_odd;
  };
  [[nodiscard]] Segment read(std::span<const Value> in) const {
    std::size_t next = sums_;
    const auto take = [&](std::size_t count) {
      const auto values = in.subspan(next, count);
      next += count;
      return std::vector<Value>(values.begin(), values.end());
    };
    const std::size_t stacked = by_step().size();
    Segment s{.bcasts = take(layout_.bcasts), .cotangents = std::vector<Value>(layout_.carries)};
    const std::vector<Value> whole = take(differ_ ? stacked : 0);
    s.inits = take(layout_.carries);
    for (std::size_t i = 0, sum_at = 0; i < layout_.carries; ++i) {
      if (counts(i)) s.cotangents[i] = in[sum_at++];
      if (layout_.upstream(i) && op_.save_trajectory) {
        s.cotangents[i] = add(s.cotangents[i], take(1)[0]);
      }
    }
    if (!differ_) {
      s.block = take(stacked);
      return s;
    }
    const std::vector<Value> places = take(3);
    for (const Value& v : whole) {
      s.block.push_back(dynamic_narrow(v, places[0], {.axis = 0, .len = steps_}));
      const Value row = dynamic_narrow(v, places[1], {.axis = 0, .len = 1});
      s.odd.push_back(reshape_to(row, row_type(v.type()).dims));
    }
    s.has_odd = places[2];
    return s;
  }

  // The segment's carries once more, then its steps back.
  [[nodiscard]] std::vector<Value> segment(Graph& graph, std::span<const Value> in) const {
    const Segment s = read(in);
    const auto first_saved = s.block.begin() + static_cast<std::ptrdiff_t>(layout_.xs);
    const auto first_dy = first_saved + static_cast<std::ptrdiff_t>(layout_.saved);
    ScanBackwardArgs args{.inits = differ_ ? after_odd_step(s) : s.inits,
                          .trajectories = {},
                          .upstreams = s.cotangents,
                          .bcasts = s.bcasts,
                          .xs = {s.block.begin(), first_saved},
                          .saved = {first_saved, first_dy},
                          .length = steps_,
                          .reverse = op_.reverse,
                          .body_vjp = vjp_};
    add_upstreams(args.upstreams, {first_dy, s.block.end()});
    args.trajectories = recomputed(graph, args);
    const std::vector<Value> given = scan_backward(args);
    return next_values(in, given, differ_ ? odd_step_back(s, given) : std::vector<Value>());
  }

  // One for each stacked output, invalid where there is none, behind those of the carries.
  void add_upstreams(std::vector<Value>& cotangents, std::span<const Value> present) const {
    std::size_t next = 0;
    for (std::size_t i = layout_.carries; i < layout_.present.size(); ++i) {
      cotangents.push_back(layout_.upstream(i) ? present[next++] : Value());
    }
  }

  // What a body's step reads: carries, bcasts, one row of the xs and of what was saved.
  [[nodiscard]] std::vector<Value> odd_inputs(const Segment& s, std::size_t rows) const {
    std::vector<Value> out = s.inits;
    out.insert(out.end(), s.bcasts.begin(), s.bcasts.end());
    out.insert(out.end(), s.odd.begin(), s.odd.begin() + static_cast<std::ptrdiff_t>(rows));
    return out;
  }

  [[nodiscard]] std::vector<Value> after_odd_step(const Segment& s) const {
    const auto step = [&](Graph& graph, std::span<const Value> in) {
      return inline_subgraph(*forward_, in, graph);
    };
    const auto stay = [&](Graph&, std::span<const Value> in) {
      const auto carries = in.first(layout_.carries);
      return std::vector<Value>(carries.begin(), carries.end());
    };
    return cond(s.has_odd, odd_inputs(s, layout_.xs), step, stay);
  }

  // The results of the odd step's derivative; zeros, and the carries' cotangents as they are, where
  // there is no such step.
  [[nodiscard]] std::vector<Value> odd_step_back(const Segment& s,
                                                 std::span<const Value> given) const {
    const std::size_t ordinary = layout_.gradient_inputs();
    std::vector<Value> captures = odd_inputs(s, s.odd.size());
    const std::size_t dcarries = count_dcarries();
    captures.insert(captures.end(), given.begin(),
                    given.begin() + static_cast<std::ptrdiff_t>(dcarries));
    const auto back = [&](Graph& graph, std::span<const Value> in) {
      std::vector<Value> cotangents(layout_.carries);
      std::size_t next = captures.size() - dcarries;
      for (std::size_t i = 0; i < layout_.carries; ++i) {
        if (counts(i)) cotangents[i] = in[next++];
      }
      add_upstreams(cotangents, in.subspan(ordinary, captures.size() - dcarries - ordinary));
      return inline_by_role(*vjp_, in.first(ordinary), graph, [&](const op::InputRole& role) {
        return cotangents.at(std::size_t(role.index));
      });
    };
    const auto stay = [&](Graph& graph, std::span<const Value> in) {
      std::vector<Value> out(in.end() - static_cast<std::ptrdiff_t>(dcarries), in.end());
      for (const ValueId v : vjp_->outputs().subspan(dcarries)) {
        out.push_back(filled(graph, vjp_->type(v), 0));
      }
      return out;
    };
    return cond(s.has_odd, captures, back, stay);
  }

  [[nodiscard]] std::size_t count_dcarries() const {
    std::size_t r = 0;
    for_results(0, layout_.carries, r, [](std::size_t, std::size_t) {});
    return r;
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

  // `odd` has the results of the odd step, which the sweep visits last; empty without one.
  [[nodiscard]] std::vector<Value> next_values(std::span<const Value> in,
                                               std::span<const Value> given,
                                               std::span<const Value> odd) const {
    std::vector<Value> out;
    std::size_t r = 0;
    for_results(0, layout_.carries, r, [&](std::size_t, std::size_t at) {
      out.push_back(odd.empty() ? given[at] : odd[at]);
    });
    for_results(layout_.first_bcast(), layout_.first_x(), r, [&](std::size_t, std::size_t at) {
      if (!c_.wanted(at)) return;
      const Value sum_so_far = add(in[out.size()], given[at]);
      out.push_back(odd.empty() ? sum_so_far : add(sum_so_far, odd[at]));
    });
    for_results(layout_.first_x(), layout_.first_saved(), r, [&](std::size_t, std::size_t at) {
      if (c_.wanted(at)) out.push_back(odd.empty() ? given[at] : with_odd_row(given[at], odd[at]));
    });
    return out;
  }

  // The odd step is visited before the block, so its row lies in front of it, or behind.
  [[nodiscard]] Value with_odd_row(Value block, Value odd) const {
    const Value row = reshape_to(odd, stacked_type(1, odd.type()).dims);
    return op_.reverse ? concat({block, row}, {.axis = 0}) : concat({row, block}, {.axis = 0});
  }

  // [segments, steps, …] as [L, …]; where segments differ, an odd row no step has is left out.
  [[nodiscard]] Value by_row(Value segments, const Dims& dims) const {
    if (!differ_) return reshape_to(segments, dims);
    const std::int64_t kept = op_.num_checkpoints;
    const auto number = [](Value like, std::int64_t n) {
      return scalar_like(like, static_cast<double>(n));
    };
    const Value row = iota(c_.graph, {.shape = {length_}, .dtype = DType::I64});
    const Value step = op_.reverse ? sub(number(row, length_ - 1), row) : row;
    const Value k = div(mul(step, number(row, kept)), number(row, length_));
    // Steps from here to the segment's last: ⌈(k+1)·L/K⌉ - 1 - step.
    const Value past_end =
        div(add(mul(add(k, number(row, 1)), number(row, length_)), number(row, kept - 1)),
            number(row, kept));
    const Value to_last = sub(sub(past_end, number(row, 1)), step);
    const Value segment_row = op_.reverse ? sub(number(row, kept - 1), k) : k;
    const Value inside = op_.reverse ? to_last : sub(number(row, steps_), to_last);
    const Value at = add(mul(segment_row, number(row, steps_ + 1)), inside);
    Dims flat{kept * (steps_ + 1)};
    flat.insert(flat.end(), dims.begin() + 1, dims.end());
    return gather(reshape_to(segments, flat), at, {.axis = 0});
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
      if (c_.wanted(at)) out[at] = by_row(given[next++], c_[k].dims());
    });
    return out;
  }

  const op::ScanBackward& op_;
  const ExpandContext& c_;
  LoopLayout layout_;
  std::int64_t length_;
  std::int64_t steps_;  // of each segment, or of its block
  bool differ_;         // do segments have different lengths?
  std::shared_ptr<const Graph> forward_;
  std::shared_ptr<const Graph> vjp_;
  std::vector<Value> operands_;
  std::size_t sums_ = 0;  // carries of the scan over segments
};

}  // namespace

std::optional<std::vector<Value>> expand_by_segments(const op::ScanBackward& op,
                                                     const ExpandContext& c) {
  const auto length = op.length.try_value();
  const std::int64_t kept = op.num_checkpoints;
  if (!length || kept == 0 || kept == *length) return std::nullopt;
  const auto layout = layout_of(op, types_of(c.operands));
  std::vector<bool> read = read_inputs(*c.node.body("body_vjp"));
  read.resize(layout->carries);
  if (!any(read)) return std::nullopt;  // there is nothing to recompute
  for (std::size_t k = layout->first_bcast(); k < layout->first_x(); ++k) {
    if (is_small_float(c[k].dtype())) return std::nullopt;
  }
  return SegmentedSweep(op, c, *length).build();
}

}  // namespace ricci::rule
