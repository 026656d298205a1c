#include "ricci/array/control.h"

#include <utility>

#include <fmt/format.h>

#include "ricci/array/ops.h"
#include "ricci/op/ops.h"
#include "ricci/support/error.h"

#include "array/graph.h"
#include "array/node.h"

namespace ricci::detail {
namespace {

void add_inputs(std::vector<GraphInput>& inputs, std::span<const Array> arrays,
                std::string_view name) {
  for (const Array& x : arrays) {
    inputs.push_back({x, fmt::format("{}.{}", name, inputs.size())});
  }
}

Body body_of(const char* role, std::span<const GraphInput> inputs, std::span<const Array> outputs) {
  return {role, std::make_shared<const Graph>(graph_between(role, inputs, outputs))};
}

std::vector<Array> chained(std::span<const Array> a, std::span<const Array> b) {
  std::vector<Array> out(a.begin(), a.end());
  out.insert(out.end(), b.begin(), b.end());
  return out;
}

// Values that go round a loop keep their type; numbers take it.
std::vector<Array> of_types(std::span<const Array> next, std::span<const Array> carries,
                            const char* what, std::source_location where) {
  std::vector<Array> out;
  for (std::size_t i = 0; i < next.size(); ++i) {
    out.push_back(strengthened(next[i], carries[i].dtype(), where));
    if (out.back().type() == carries[i].type()) continue;
    refuse(ErrorCode::Shape, "loop",
           fmt::format("a carry of '{}' starts as {}, and the body gives {}", what,
                       carries[i].type().to_string(), out.back().type().to_string()),
           "what goes round a loop keeps its type: cast it, or start with the shape it has later",
           where);
  }
  return out;
}

}  // namespace

std::vector<Array> rows_of(std::span<const Array> arrays, std::int64_t from, std::int64_t to,
                           std::int64_t step, Here where) {
  std::vector<Array> out;
  for (const Array& x : arrays) out.push_back(x[Index(slice(from, to, step), where)]);
  return out;
}

std::vector<Array> in_turn(std::span<const Array> even, std::span<const Array> odd, Here where) {
  std::vector<Array> out;
  for (std::size_t i = 0; i < even.size(); ++i) {
    const std::int64_t n = odd[i].dim(0).value();
    const bool longer = even[i].dim(0).value() > n;
    const Array pairs =
        stack({longer ? narrow(even[i], 0, 0, n, where) : even[i], odd[i]}, 1, where);
    Dims shape = odd[i].shape();
    shape[0] = 2 * n;
    const Array rows = reshape(pairs, shape, where);
    out.push_back(longer ? concat({rows, narrow(even[i], 0, n, 1, where)}, 0, where) : rows);
  }
  return out;
}

std::vector<Array> one_by_one(std::span<const Array> first, std::span<const Array> rest,
                              Here where) {
  std::vector<Array> out;
  for (std::size_t i = 0; i < first.size(); ++i) {
    out.push_back(concat({first[i], rest[i]}, 0, where));
  }
  return out;
}

void require_same_structure(std::size_t given, std::size_t wanted, const char* what,
                            std::source_location where) {
  if (given == wanted) return;
  refuse(ErrorCode::Shape, "loop",
         fmt::format("{} gives {} arrays, {} are wanted", what, given, wanted),
         "it gives the carry back with its structure", where);
}

Dim scan_length(std::span<const Array> xs, const std::optional<Dim>& given,
                std::source_location where) {
  std::optional<Dim> length = given;
  for (const Array& x : xs) {
    if (x.rank() == 0) {
      refuse(ErrorCode::Shape, "loop", "an array that a scan runs along has rank 0",
             "give it a first axis, or capture it in the body", where);
    }
    if (length && *length != x.shape()[0]) {
      refuse(ErrorCode::Shape, "loop",
             fmt::format("a scan runs along {} and along {} rows", length->to_string(),
                         x.shape()[0].to_string()),
             "all of them have the same first size", where);
    }
    length = x.shape()[0];
  }
  if (!length) {
    refuse(ErrorCode::Shape, "loop", "a scan has no length",
           "give it arrays to run along, or a number", where);
  }
  return *length;
}

Array row_of(Tracing& tracing, const Array& xs, std::source_location where) {
  Type type = strengthened(xs, where).type();
  type.dims.erase(type.dims.begin());
  return tracing.placeholder(type);
}

std::vector<Array> settled(std::span<const Array> carries, std::span<const Array> next,
                           std::source_location where) {
  std::vector<Array> out;
  bool any = false;
  for (std::size_t i = 0; i < carries.size(); ++i) {
    const bool weak = carries[i].node()->weak;
    any = any || weak;
    const DType dtype = next[i].node()->weak ? carries[i].dtype() : next[i].dtype();
    out.push_back(weak ? strengthened(carries[i], dtype, where) : carries[i]);
  }
  return any ? out : std::vector<Array>();
}

std::vector<Array> scan_node(Tracing& tracing, const ScanParts& parts, const LoopOptions& options,
                             std::source_location where) {
  const std::vector<Array> next = of_types(parts.next, parts.carries, "scan", where);
  tracing.end();
  const std::vector<Array> results = chained(next, parts.ys);
  std::vector<Array> captures;
  find_captures(tracing.trace(), results, captures);
  std::vector<GraphInput> inputs;
  add_inputs(inputs, parts.carry_marks, "carry");
  add_inputs(inputs, captures, "captured");
  add_inputs(inputs, parts.x_marks, "row");
  op::Scan op{.length = parts.length,
              .num_carry = static_cast<std::int64_t>(parts.carries.size()),
              .num_bcast = static_cast<std::int64_t>(captures.size()),
              .num_xs = static_cast<std::int64_t>(parts.xs.size()),
              .save_trajectory = false,
              .num_checkpoints = options.checkpoints,
              .reverse = options.reverse,
              .save = options.save.policy,
              .save_names = options.save.names,
              .save_bytes = options.save.bytes};
  return results_of(op_node(Op(std::move(op)),
                            chained(chained(parts.carries, captures), strong(parts.xs, where)),
                            where, {body_of("body", inputs, results)}));
}

std::vector<Array> while_node(Tracing& condition, Tracing& body, std::span<const Array> carries,
                              const Array& goes_on, std::span<const Array> next,
                              std::optional<std::int64_t> max_iterations,
                              std::source_location where) {
  require_same_structure(next.size(), carries.size(), "the body of while_loop", where);
  const std::vector<Array> after = of_types(next, carries, "while_loop", where);
  body.end();
  const std::vector<Array> asked = {strengthened(goes_on, where)};
  std::vector<Array> captures;
  find_captures(condition.trace(), asked, captures);
  find_captures(body.trace(), after, captures);
  // A loop hands on what it captures: it has no other way in.
  std::vector<GraphInput> ask_inputs;
  add_inputs(ask_inputs, condition.inputs(), "carry");
  add_inputs(ask_inputs, captures, "captured");
  std::vector<GraphInput> body_inputs;
  add_inputs(body_inputs, body.inputs(), "carry");
  add_inputs(body_inputs, captures, "captured");
  std::vector<Array> out =
      results_of(op_node(Op(op::While{.max_iterations = max_iterations, .num_checkpoints = 0}),
                         chained(carries, captures), where,
                         {body_of("cond", ask_inputs, asked),
                          body_of("body", body_inputs, chained(after, captures))}));
  out.resize(carries.size());
  return out;
}

std::vector<Array> if_node(const char* what, const Array& predicate, Tracing& first,
                           Tracing& second, std::span<const Array> then_results,
                           std::span<const Array> else_results, std::source_location where) {
  require_valid(predicate, what, where);
  const std::string second_branch = fmt::format("the second branch of {}", what);
  require_same_structure(else_results.size(), then_results.size(), second_branch.c_str(), where);
  std::vector<Array> a(then_results.begin(), then_results.end());
  std::vector<Array> b(else_results.begin(), else_results.end());
  for (std::size_t i = 0; i < a.size(); ++i) {
    unify(what, a[i], b[i], where);
    if (a[i].shape() == b[i].shape()) continue;
    const std::string which = a.size() == 1 ? "" : fmt::format("as result {} ", i);
    refuse(ErrorCode::Shape, what,
           fmt::format("the first branch of '{}' gives {}{}, the second {}", what, which,
                       a[i].type().to_string(), b[i].type().to_string()),
           "both give the same shapes: broadcast_to, reshape", where);
  }
  std::vector<Array> captures;
  find_captures(first.trace(), a, captures);
  find_captures(second.trace(), b, captures);
  std::vector<GraphInput> inputs;
  add_inputs(inputs, captures, "captured");
  return results_of(op_node(Op(op::If{}),
                            chained(std::array{strengthened(predicate, where)}, captures), where,
                            {body_of("then", inputs, a), body_of("else", inputs, b)}));
}

void require_branches(std::size_t count, std::source_location where) {
  if (count == 0) refuse(ErrorCode::Attr, "switch_", "'switch_' of no functions", "", where);
}

LoopRange loop_range(std::int64_t first, std::int64_t last, std::source_location where) {
  LoopRange out{.steps = 0, .counter = {}};
  if (last > first && __builtin_sub_overflow(last, first, &out.steps)) {
    refuse(ErrorCode::Attr, "loop", fmt::format("'fori_loop' from {} to {}", first, last),
           "it makes more steps than an i64 counts", where);
  }
  // The counter is one further when the loop is over.
  const bool narrow =
      std::in_range<std::int32_t>(first) && std::in_range<std::int32_t>(first + out.steps);
  out.counter =
      value_array(narrow ? Tensor::of<std::int32_t>({}, {static_cast<std::int32_t>(first)})
                         : Tensor::of<std::int64_t>({}, {first}));
  return out;
}

}  // namespace ricci::detail
