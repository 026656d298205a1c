#include "rule/control/loop_rewriting.h"

#include "op/loop_layout.h"
#include "rule/derivative_parts.h"

namespace ricci::rule {
namespace {

// A constant that broadcasts over the steps.
Value number(Value like, std::int64_t n) { return scalar_like(like, static_cast<double>(n)); }

// t·count, from which quotient and remainder by the length tell a step's segment.
Value scaled_steps(const Segments& s, Graph& graph, std::int64_t shift) {
  const Value step = iota(graph, {.shape = {s.length}, .dtype = DType::I64});
  return mul(add(step, number(step, shift)), number(step, s.count));
}

}  // namespace

Type stacked_type(const Dim& rows, Type type) {
  type.dims.insert(type.dims.begin(), rows);
  return type;
}

Type row_type(Type type) {
  type.dims.erase(type.dims.begin());
  return type;
}

std::vector<Type> types_of(std::span<const Value> values) {
  std::vector<Type> out;
  for (const Value& v : values) out.push_back(v.type());
  return out;
}

std::vector<Value> add_scan(Graph& graph, op::Scan op, std::span<const Value> operands,
                            const BodyFunction& body) {
  const std::size_t first_x = ScanLayout(op).first_x();
  op.num_xs = static_cast<std::int64_t>(operands.size() - first_x);
  std::vector<Type> inputs = types_of(operands);
  for (std::size_t k = first_x; k < inputs.size(); ++k) inputs[k] = row_type(inputs[k]);
  return add_scan(graph, op, operands, make_body("body", inputs, body, graph));
}

std::vector<Value> add_scan(Graph& graph, const op::Scan& op, std::span<const Value> operands,
                            std::shared_ptr<const Graph> body) {
  return graph.add_node(Op(op), operands, {Body{"body", std::move(body)}});
}

Value last_carry(const op::Scan& op, Value init, Value trajectory) {
  if (op.length.is(0)) return init;
  const Dim rows = trajectory.dims()[0];
  if (op.length.is_static()) {
    const Dim start = op.reverse ? Dim(0) : rows - Dim(1);
    return reshape_to(narrow(trajectory, {.axis = 0, .start = start, .len = 1}), init.dims());
  }
  // A loop that may turn out to be empty ends where it began.
  Dims one{1};
  one.insert(one.end(), init.dims().begin(), init.dims().end());
  const Value start = reshape_to(init, one);
  const Value all = op.reverse ? concat({trajectory, start}, {.axis = 0})
                               : concat({start, trajectory}, {.axis = 0});
  const Dim at = op.reverse ? Dim(0) : rows;
  return reshape_to(narrow(all, {.axis = 0, .start = at, .len = 1}), init.dims());
}

Value swap_first_two(Value v) {
  Axes perm{1, 0};
  for (std::size_t i = 2; i < v.rank(); ++i) perm.emplace_back(static_cast<std::int64_t>(i));
  return transpose(v, {.perm = perm});
}

std::shared_ptr<const Graph> without_roles(const Graph& body, Graph& outer) {
  std::vector<Type> inputs;
  for (const NodeId id : body.inputs()) inputs.push_back(body.node(id).types[0]);
  return make_body(
      body.name(), inputs,
      [&](Graph& graph, std::span<const Value> in) { return inline_subgraph(body, in, graph); },
      outer);
}

Segments scan_segments(const Dim& length, std::int64_t kept) {
  Segments out{length, kept};
  const auto steps = length.try_value();
  if (steps && *steps % kept == 0) out.stride = *steps / kept;
  return out;
}

Segments trip_segments(std::int64_t max_iterations, std::int64_t kept) {
  return {max_iterations, kept, tape_stride(max_iterations, kept)};
}

Value Segments::edges(Graph& graph, Edge edge) const {
  const std::int64_t shift = edge == Edge::First ? 0 : 1;
  if (stride != 0) {
    const Value step = iota(graph, {.shape = {length}, .dtype = DType::I64});
    return eq(rem(add(step, number(step, shift)), number(step, stride)), number(step, 0));
  }
  // Where t·count passes a multiple of the length, ⌊t·count/length⌋ has just grown.
  const Value at = scaled_steps(*this, graph, shift);
  return lt(rem(at, size_as_number(length, at)), number(at, count));
}

Value Segments::spread_rows(Value rows, Edge edge) const {
  Graph& graph = rows.graph();
  const Dims row(rows.dims().begin() + 1, rows.dims().end());
  if (stride == 0) {
    const Value at = scaled_steps(*this, graph, 0);
    const Value all = gather(rows, div(at, size_as_number(length, at)), {.axis = 0});
    Dims flags(all.rank(), Dim(1));
    flags[0] = length;
    return where(reshape_to(edges(graph, edge), flags), all, zero_like(all));
  }
  Dims apart{count, 1};
  apart.insert(apart.end(), row.begin(), row.end());
  Dims before(apart.size(), Dim(0));
  Dims behind = before;
  (edge == Edge::First ? behind : before)[1] = stride - 1;
  const Value padded =
      pad(reshape_to(rows, apart), zero_like(rows), {.low = before, .high = behind});
  Dims flat{count * stride};
  flat.insert(flat.end(), row.begin(), row.end());
  const Value all = reshape_to(padded, flat);
  if (length.is(count * stride)) return all;
  return narrow(all, {.axis = 0, .start = 0, .len = length});
}

}  // namespace ricci::rule
