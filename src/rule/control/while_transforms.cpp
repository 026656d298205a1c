// Derivatives and batching of while. Whatever is done to it, it stops when its condition says so.
#include "op/loop_layout.h"
#include "rule/control/body_masks.h"
#include "rule/control/loop_rewriting.h"
#include "rule/control/reverse_trips.h"
#include "rule/lanes.h"
#include "rule/tables/batch_rules.h"
#include "rule/tables/series_rules.h"
#include "rule/tables/vjp_rules.h"

namespace ricci::rule {
namespace {

bool recomputes(const op::While& op) {
  return op.num_checkpoints != 0 && op.num_checkpoints != op.max_iterations;
}

// A while with the given results wanted; invalid values for the others.
std::vector<Value> add_while(Graph& graph, const op::While& op, std::span<const Value> carries,
                             std::vector<Body> bodies, const std::vector<bool>& wanted) {
  NodeSpec spec{.op = Op(op), .bodies = std::move(bodies), .wanted = wanted};
  for (const Value& v : carries) spec.operands.push_back(v.id());
  const NodeId id = graph.add(std::move(spec));
  std::vector<Value> out;
  for (std::uint32_t r = 0; r < wanted.size(); ++r) {
    out.push_back(wanted[r] ? graph.value({id, r}) : Value());
  }
  return out;
}

// `mask` for the finals, whether to count trips, and `mask` for the tapes where there are any.
std::vector<bool> wanted_results(const std::vector<bool>& finals, bool count,
                                 const std::vector<bool>& tapes) {
  std::vector<bool> out = finals;
  out.push_back(count);
  out.insert(out.end(), tapes.begin(), tapes.end());
  return out;
}

// Does every trip hand a carry on as it is? Such a carry needs no tape.
bool is_handed_on(const Graph& body, std::size_t carry) {
  return body.outputs()[carry] == ValueId{body.inputs()[carry], 0};
}

}  // namespace

// [while-ad] Counts the trips and keeps the carries entering them.
ForwardResults forward_keeping(const op::While& op, const ForwardContext& c) {
  if (!op.max_iterations) {
    throw UserError(ErrorCode::UnboundedLoop,
                    "a 'while' without a bound cannot be differentiated in reverse: there is no "
                    "telling how many carries it has to keep",
                    "say how often it runs at most (max_iterations), or use forward mode");
  }
  const std::size_t n = c.operands.size();
  const Graph& body = *c.node.body("body");
  std::vector<bool> wanted(2 * n + 1, true);
  for (std::size_t k = 0; k < n; ++k) {
    const std::size_t tape = n + 1 + k;
    const bool asked = tape < c.node.wanted.size() && c.node.wanted[tape];
    wanted[tape] = asked || !is_handed_on(body, k);
  }
  std::vector<Value> results = add_while(c.graph, op, c.operands, c.node.bodies, wanted);
  std::vector<Value> residuals(results.begin() + static_cast<std::ptrdiff_t>(n), results.end());
  return {std::move(results), std::move(residuals)};
}

Cotangents vjp(const op::While& op, const VjpContext& c) {
  const std::size_t n = c.size();
  const Graph& body = *c.node().body("body");
  const std::vector<bool> needed = loop_closure(
      c.needs(), n, [&](const auto& inputs) { return c.bodies().depends(body, inputs); });
  const std::vector<bool> wanted = derivative_mask(input_types(body));
  const auto body_vjp =
      c.bodies().vjp(body, {.seeds = wanted, .live = needed, .wanted = wanted, .needed = needed});
  std::vector<Value> upstreams;
  std::vector<Value> tape_upstreams;
  for (std::size_t k = 0; k < n; ++k) {
    upstreams.push_back(needed[k] ? c.cotangent(k) : Value());
    tape_upstreams.push_back(needed[k] ? c.cotangent(n + 1 + k) : Value());
  }
  const std::vector<Value> carries(c.operands().begin(), c.operands().end());
  const Value trip_count = c.residuals()[0];
  const std::vector<Value> tapes(c.residuals().begin() + 1, c.residuals().end());
  std::vector<Value> given;
  const bool handed_on = !std::ranges::all_of(tapes, &Value::valid);
  if (handed_on || std::ranges::any_of(tape_upstreams, &Value::valid)) {
    given = sweep_back(c.graph(), {.carries = carries,
                                   .tapes = tapes,
                                   .trip_count = trip_count,
                                   .upstreams = upstreams,
                                   .tape_upstreams = tape_upstreams,
                                   .max_iterations = *op.max_iterations,
                                   .checkpoints = op.num_checkpoints,
                                   .body_vjp = body_vjp.get(),
                                   .forward_body = recomputes(op) ? &body : nullptr});
  } else {
    const auto forward = recomputes(op) ? std::make_shared<const Graph>(body) : nullptr;
    given = while_backward(WhileBackwardArgs{.carries = carries,
                                             .tapes = tapes,
                                             .trip_count = trip_count,
                                             .upstreams = upstreams,
                                             .max_iterations = *op.max_iterations,
                                             .checkpoints = op.num_checkpoints,
                                             .body_vjp = body_vjp,
                                             .forward_body = forward});
  }
  Cotangents out = c.none();
  for (std::size_t k = 0, next = 0; k < n; ++k) {
    if (!wanted[k]) continue;
    if (c.needs(k)) out[k] = given[next];
    ++next;
  }
  return out;
}

// One loop over values and coefficients; the condition sees the values.
SeriesResults series(const op::While& op, const SeriesContext& c) {
  const std::size_t n = c.operands.size();
  const Graph& body = *c.node.body("body");
  const Graph& condition = *c.node.body("cond");
  const SeriesLayout layout(loop_degrees(c, body, n), {n});
  const BodySeries over = c.bodies.series(body, layout.degrees(), layout.degrees(), c.order);
  check_internal(over.degrees == layout.degrees(),
                 "a carry has as many coefficients after a step as before it");
  const std::vector<Value> carries = arranged_operands(c, layout);
  const std::vector<bool>& wanted = c.node.wanted;
  const bool kept = wanted.size() > n + 1;
  // Coefficients are wanted where their values are.
  const auto wanted_from = [&](std::size_t first) {
    return layout.arranged([&](std::size_t k, std::size_t) -> bool { return wanted[first + k]; });
  };
  const auto joint_condition = make_body(
      "cond", types_of(carries),
      [&](Graph& graph, std::span<const Value> in) {
        return inline_subgraph(condition, in.subspan(0, n), graph);
      },
      c.graph);
  const std::vector<Value> all = add_while(
      c.graph, op, carries, {Body{"cond", joint_condition}, Body{"body", over.graph}},
      wanted_results(wanted_from(0), wanted[n], kept ? wanted_from(n + 1) : std::vector<bool>{}));
  const std::size_t total = layout.size();
  SeriesResults out = layout.split(std::span(all).subspan(0, total));
  out.values.push_back(all[total]);
  out.series.emplace_back();
  if (!kept) return out;
  SeriesResults tapes = layout.split(std::span(all).subspan(total + 1));
  out.values.insert(out.values.end(), tapes.values.begin(), tapes.values.end());
  out.series.insert(out.series.end(), tapes.series.begin(), tapes.series.end());
  return out;
}

namespace {

// Every example makes the same trips.
BatchedValues same_trips(const op::While& op, const VmapContext& c,
                         const std::vector<bool>& batched) {
  const std::size_t n = c.size();
  const BatchedBody body = c.bodies().batch(*c.node().body("body"), batched, c.batch(), batched);
  const BatchedBody condition =
      c.bodies().batch(*c.node().body("cond"), batched, c.batch(), {false});
  std::vector<Value> carries;
  for (std::size_t k = 0; k < n; ++k) carries.push_back(batched[k] ? c.lifted(k) : c[k]);
  const std::vector<Value> all =
      add_while(c.graph(), op, carries, {Body{"cond", condition.graph}, Body{"body", body.graph}},
                c.node().wanted);
  BatchedValues out;
  for (std::size_t r = 0; r < all.size(); ++r) {
    const bool tape = r > n;
    const bool has_batch = r != n && batched[tape ? r - n - 1 : r];
    const bool moved = tape && has_batch && all[r].valid();
    out.emplace_back(moved ? swap_first_two(all[r]) : all[r], has_batch);
  }
  return out;
}

// Goes on as long as any example does; the finished ones stay as they are.
class OwnTrips {
 public:
  OwnTrips(const op::While& op, const VmapContext& c)
      : op_(op), c_(c), wanted_(c.node().wanted), n_(c.size()) {
    const std::vector<bool> every(n_, true);
    body_ = c.bodies().batch(*c.node().body("body"), every, c.batch(), every).graph;
    condition_ = c.bodies().batch(*c.node().body("cond"), every, c.batch(), {true}).graph;
    for (std::size_t r = n_; r < wanted_.size(); ++r) counts_ = counts_ || wanted_[r];
  }

  BatchedValues run() const {
    std::vector<Value> carries;
    for (std::size_t k = 0; k < n_; ++k) carries.push_back(c_.lifted(k));
    if (counts_) carries.push_back(filled(c_.graph(), {DType::I32, {c_.batch()}}, 0));
    const std::vector<Type> types = types_of(carries);
    const auto any_active = [&](Graph& graph, std::span<const Value> in) {
      return std::vector<Value>{lanes(graph, in).any()};
    };
    const auto trip = [&](Graph& graph, std::span<const Value> in) { return step(graph, in); };
    std::vector<bool> finals(wanted_.begin(), wanted_.begin() + static_cast<std::ptrdiff_t>(n_));
    std::vector<bool> tapes(wanted_.begin() + static_cast<std::ptrdiff_t>(n_ + 1), wanted_.end());
    if (counts_) finals.push_back(true);
    if (counts_ && !tapes.empty()) tapes.push_back(false);
    const std::vector<Value> all =
        add_while(c_.graph(), op_, carries,
                  {Body{"cond", make_body("cond", types, any_active, c_.graph())},
                   Body{"body", make_body("body", types, trip, c_.graph())}},
                  wanted_results(finals, false, tapes));
    BatchedValues out;
    for (std::size_t k = 0; k < n_; ++k) out.emplace_back(all[k], true);
    out.emplace_back(wanted_[n_] ? all[n_] : Value(), true);
    for (std::size_t r = n_ + 1; r < wanted_.size(); ++r) {
      const Value tape = wanted_[r] ? all[finals.size() + 1 + (r - n_ - 1)] : Value();
      out.emplace_back(tape.valid() ? own_rows(tape, all[n_]) : tape, true);
    }
    return out;
  }

 private:
  [[nodiscard]] Lanes lanes(Graph& graph, std::span<const Value> in) const {
    return Lanes(all_set(inline_subgraph(*condition_, in.subspan(0, n_), graph)[0]));
  }

  [[nodiscard]] std::vector<Value> step(Graph& graph, std::span<const Value> in) const {
    const Lanes going = lanes(graph, in);
    std::vector<Value> from;
    for (std::size_t k = 0; k < n_; ++k) from.push_back(going.safe(in[k]));
    std::vector<Value> out = inline_subgraph(*body_, from, graph);
    for (std::size_t k = 0; k < n_; ++k) out[k] = going.choose(out[k], in[k]);
    if (counts_) out.push_back(add(in[n_], cast_to(going.active(), DType::I32)));
    return out;
  }

  // Zero where an example did not make the trip, and the batch in front.
  [[nodiscard]] Value own_rows(Value tape, Value trips) const {
    const Dim rows = tape.dims()[0];
    const Value row = iota(tape.graph(), {.shape = {rows, 1}, .dtype = DType::I32});
    const std::int64_t stride = tape_stride(op_.max_iterations.value_or(0), op_.num_checkpoints);
    const Value made =
        lt(mul(row, static_cast<double>(stride)), reshape_to(trips, {1, c_.batch()}));
    Dims dims(tape.rank(), Dim(1));
    dims[0] = rows;
    dims[1] = c_.batch();
    return swap_first_two(where(reshape_to(made, dims), tape, zero_like(tape)));
  }

  const op::While& op_;
  const VmapContext& c_;
  const std::vector<bool>& wanted_;
  std::size_t n_;
  bool counts_ = false;  // trips are counted for each example
  std::shared_ptr<const Graph> body_;
  std::shared_ptr<const Graph> condition_;
};

}  // namespace

// [while-cond-honoured]
BatchedValues batch(const op::While& op, const VmapContext& c) {
  const BodyTransforms& bodies = c.bodies();
  const Graph& body = *c.node().body("body");
  const std::vector<bool> batched = loop_closure(c.batched(), c.size(), [&](const auto& inputs) {
    return bodies.batched_outputs(body, inputs);
  });
  const bool own = bodies.batched_outputs(*c.node().body("cond"), batched)[0];
  return own ? OwnTrips(op, c).run() : same_trips(op, c, batched);
}

}  // namespace ricci::rule
