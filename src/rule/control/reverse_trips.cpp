#include "rule/control/reverse_trips.h"

#include "op/loop_layout.h"
#include "rule/control/loop_rewriting.h"
#include "rule/tables/expand_rules.h"

namespace ricci::rule {
namespace {

using Inputs = std::span<const Value>;

std::vector<Value> part(Inputs values, std::size_t first, std::size_t count) {
  const auto begin = values.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

class Sweep {
 public:
  Sweep(Graph& graph, const ReverseTrips& trips) : graph_(graph), trips_(trips) {
    for (const Value& v : trips_.carries) {
      if (is_differentiable(v.dtype())) ++dcarries_;
    }
    for (std::size_t i = 0; i < carries(); ++i) {
      if (!trips_.tapes[i].valid()) wholes_.push_back(trips_.carries[i]);
    }
  }

  std::vector<Value> run() {
    if (dcarries_ == 0) return {};
    std::vector<Value> operands;
    for (std::size_t i = 0; i < carries(); ++i) {
      const Value init = trips_.carries[i];
      if (!is_differentiable(init.dtype())) continue;
      const Value upstream = trips_.upstreams[i];
      operands.push_back(upstream.valid() ? upstream : filled(graph_, init.type(), 0));
    }
    operands.push_back(trips_.trip_count);
    operands.insert(operands.end(), wholes_.begin(), wholes_.end());
    operands.push_back(trip_numbers());
    for (const Value& v : full_tapes()) operands.push_back(v);
    for (const Value& v : trips_.tape_upstreams) {
      if (v.valid()) operands.push_back(thinned() ? segments().spread_rows(v, Edge::First) : v);
    }
    return loop(operands, dcarries_, 1 + wholes_.size(), true,
                [this](Graph& graph, Inputs in) { return step_back(graph, in); });
  }

 private:
  [[nodiscard]] std::size_t carries() const { return trips_.carries.size(); }
  [[nodiscard]] bool taped(std::size_t i) const { return trips_.tapes[i].valid(); }
  [[nodiscard]] bool thinned() const { return trips_.forward_body != nullptr; }
  [[nodiscard]] Segments segments() const {
    return trip_segments(trips_.max_iterations, trips_.checkpoints);
  }
  [[nodiscard]] Value trip_numbers() const {
    return iota(graph_, {.shape = {trips_.max_iterations}, .dtype = DType::I32});
  }

  // A scan over the trips; its first bcast is the trip count, its first xs the trip's number.
  std::vector<Value> loop(Inputs operands, std::size_t count, std::size_t bcasts, bool backwards,
                          const BodyFunction& body) const {
    const op::Scan op{.length = trips_.max_iterations,
                      .num_carry = static_cast<std::int64_t>(count),
                      .num_bcast = static_cast<std::int64_t>(bcasts),
                      .reverse = backwards};
    return add_scan(graph_, op, operands, body);
  }

  // The carries entering every trip, of those that have a tape.
  [[nodiscard]] std::vector<Value> full_tapes() const {
    std::vector<Value> tapes;
    for (const Value& tape : trips_.tapes) {
      if (tape.valid()) tapes.push_back(tape);
    }
    if (!thinned()) return tapes;
    const std::size_t n = carries();
    std::vector<Value> operands = trips_.carries;
    operands.push_back(trips_.trip_count);
    operands.push_back(trip_numbers());
    operands.push_back(segments().edges(graph_, Edge::First));
    for (const Value& tape : tapes) {
      operands.push_back(segments().spread_rows(tape, Edge::First));
    }
    const auto all = loop(operands, n, 1, false, [&](Graph& graph, Inputs in) {
      const Value made = lt(in[n + 1], in[n]);
      std::vector<Value> entering;
      std::vector<Value> rows;
      for (std::size_t i = 0; i < n; ++i) {
        if (taped(i)) rows.push_back(where(in[n + 2], in[n + 3 + rows.size()], in[i]));
        entering.push_back(taped(i) ? rows.back() : in[i]);
      }
      const auto stay = [](Graph&, Inputs c) { return std::vector<Value>(c.begin(), c.end()); };
      const auto go = [&](Graph& g, Inputs c) {
        return inline_subgraph(*trips_.forward_body, c, g);
      };
      (void)graph;
      std::vector<Value> out = cond(made, entering, go, stay);
      out.insert(out.end(), rows.begin(), rows.end());
      return out;
    });
    return part(all, n, tapes.size());
  }

  // dc ← body_vjp(c_t…, dc…) + the cotangent of the tape's row, for trips that were made
  [[nodiscard]] std::vector<Value> step_back(Graph&, Inputs in) const {
    const std::size_t first_whole = dcarries_ + 1;
    const std::size_t number = first_whole + wholes_.size();
    const Value made = lt(in[number], in[dcarries_]);
    std::vector<Value> captures = part(in, 0, dcarries_);
    std::size_t whole = first_whole;
    std::size_t row = number + 1;
    for (std::size_t i = 0; i < carries(); ++i) captures.push_back(in[taped(i) ? row++ : whole++]);
    const std::vector<Value> upstreams = part(in, row, in.size() - row);
    captures.insert(captures.end(), upstreams.begin(), upstreams.end());
    const auto back = [&](Graph& graph, Inputs c) { return made_trip(graph, c); };
    const auto stay = [&](Graph&, Inputs c) { return part(c, 0, dcarries_); };
    return cond(made, captures, back, stay);
  }

  [[nodiscard]] std::vector<Value> made_trip(Graph& graph, Inputs in) const {
    std::vector<Value> dc(carries());
    for (std::size_t i = 0, next = 0; i < carries(); ++i) {
      if (is_differentiable(trips_.carries[i].dtype())) dc[i] = in[next++];
    }
    std::vector<Value> out = inline_by_role(
        *trips_.body_vjp, part(in, dcarries_, carries()), graph,
        [&](const op::InputRole& role) { return dc.at(static_cast<std::size_t>(role.index)); });
    std::size_t next_row = dcarries_ + carries();
    for (std::size_t i = 0, r = 0; i < carries(); ++i) {
      const bool counts = is_differentiable(trips_.carries[i].dtype());
      const bool has_row = i < trips_.tape_upstreams.size() && trips_.tape_upstreams[i].valid();
      if (has_row) out[r] = add(out[r], in[next_row++]);
      if (counts) ++r;
    }
    return out;
  }

  Graph& graph_;
  const ReverseTrips& trips_;
  std::size_t dcarries_ = 0;
  std::vector<Value> wholes_;  // carries without a tape
};

// The trip count, looked up among those the tape was made for: a scan makes no more trips than it
// has rows, and a count beyond them must be an error, not a gradient of something else.
Value checked_count(const ExpandContext& c, Value trip_count, std::int64_t max_iterations) {
  Provenance provenance = c.node.provenance ? *c.node.provenance : Provenance();
  provenance.label = "the trip count of while_backward";
  const ProvenanceScope scope(c.graph, std::move(provenance));
  const Value possible =
      iota(c.graph, {.shape = {max_iterations + 1}, .dtype = trip_count.dtype()});
  return gather(possible, trip_count, {.axis = 0});
}

}  // namespace

std::vector<Value> sweep_back(Graph& graph, const ReverseTrips& trips) {
  return Sweep(graph, trips).run();
}

std::vector<Value> expand(const op::WhileBackward& op, const ExpandContext& c) {
  const LoopLayout layout = *layout_of(op, types_of(c.operands));
  ReverseTrips trips{.carries = part(c.operands, 0, layout.carries),
                     .tapes = part(c.operands, layout.carries, layout.carries),
                     .trip_count = checked_count(c, c[layout.trip_count()], op.max_iterations),
                     .upstreams = {},
                     .tape_upstreams = {},
                     .max_iterations = op.max_iterations,
                     .checkpoints = op.num_checkpoints,
                     .body_vjp = c.node.body("body_vjp"),
                     .forward_body = nullptr};
  if (op.num_checkpoints != 0 && op.num_checkpoints != op.max_iterations) {
    trips.forward_body = c.node.body("forward_body");
  }
  for (std::size_t i = 0; i < layout.carries; ++i) {
    const auto at = layout.upstream(i);
    trips.upstreams.push_back(at ? c[*at] : Value());
  }
  std::vector<Value> out = sweep_back(c.graph, trips);
  for (std::size_t r = 0; r < out.size(); ++r) {
    if (!c.wanted(r)) out[r] = Value();
  }
  return out;
}

}  // namespace ricci::rule
