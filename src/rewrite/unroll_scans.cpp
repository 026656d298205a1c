#include <algorithm>

#include <fmt/format.h>

#include "ricci/build/build.h"
#include "ricci/compiler/rewrite/control_flow.h"

#include "op/loop_layout.h"
#include "rewrite/replace_nodes.h"
#include "rule/control/loop_parts.h"

namespace ricci {
namespace {

struct RowRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

// [1, *dims]
Value as_row(Value v) {
  Dims dims = v.dims();
  dims.insert(dims.begin(), 1);
  return reshape_to(v, dims);
}

Value joined(const std::vector<Value>& parts, const Type& type, Graph& graph) {
  if (parts.empty()) return filled(graph, type, 0);
  return parts.size() == 1 ? parts[0] : concat(parts, {.axis = 0});
}

// Steps of a body, one after the other: where the carries are, and what each step gave, by row.
class WrittenSteps {
 public:
  WrittenSteps(const Graph& body, StepOperands<Value> operands, bool reverse, Graph& graph)
      : body_(body), at_(std::move(operands)), reverse_(reverse), graph_(graph) {}

  void write(RowRange rows) {
    outputs_.resize(static_cast<std::size_t>(rows.count));
    for (std::int64_t step = 0; step < rows.count; ++step) {
      const std::int64_t t = reverse_ ? rows.count - 1 - step : step;
      std::vector<Value> inputs = at_.carries;
      inputs.insert(inputs.end(), at_.bcasts.begin(), at_.bcasts.end());
      for (const Value& x : at_.xs) inputs.push_back(row(x, rows.first + t));
      std::vector<Value> given = inline_subgraph(body_, inputs, graph_);
      std::copy_n(given.begin(), at_.carries.size(), at_.carries.begin());
      outputs_[static_cast<std::size_t>(t)] = std::move(given);
    }
  }
  [[nodiscard]] const std::vector<Value>& carries() const { return at_.carries; }
  /// Output r of the body, one row per step written, in the order of rows.
  [[nodiscard]] std::vector<Value> rows(std::size_t r) const {
    std::vector<Value> out;
    for (const auto& step : outputs_) out.push_back(as_row(step[r]));
    return out;
  }

 private:
  static Value row(Value x, std::int64_t t) {
    const Dims dims(x.dims().begin() + 1, x.dims().end());
    return reshape_to(narrow(x, {.axis = 0, .start = t, .len = 1}), dims);
  }

  const Graph& body_;
  StepOperands<Value> at_;
  bool reverse_;
  Graph& graph_;
  std::vector<std::vector<Value>> outputs_;
};

// The rows of a trajectory that a scan with checkpoints keeps.
std::vector<Value> kept_rows(const op::Scan& op, const std::vector<Value>& rows) {
  if (op.num_checkpoints == 0) return rows;
  const auto length = static_cast<std::int64_t>(rows.size());
  std::vector<Value> out;
  for (std::int64_t k = 0; k < op.num_checkpoints; ++k) {
    const std::int64_t nth = op.reverse ? op.num_checkpoints - 1 - k : k;
    const std::int64_t step = rule::checkpoint_step(nth, length, op.num_checkpoints);
    out.push_back(rows[static_cast<std::size_t>(op.reverse ? length - 1 - step : step)]);
  }
  return out;
}

std::vector<Value> unroll_whole(const op::Scan& op, const NodeVisit& v) {
  WrittenSteps steps(*v.node.body("body"), {ScanLayout(op), v.operands}, op.reverse, v.graph());
  steps.write({0, op.length.value()});
  std::vector<Value> results(v.node.types.size());
  for (std::size_t r = 0; r < results.size(); ++r) {
    if (!v.node.wanted[r]) continue;
    const bool carry = r < ScanLayout(op).carries;
    if (!ScanLayout(op).is_stacked(r)) {
      results[r] = steps.carries()[r];
    } else {
      const std::vector<Value> rows = carry ? kept_rows(op, steps.rows(r)) : steps.rows(r);
      results[r] = joined(rows, v.node.types[r], v.graph());
    }
  }
  return results;
}

// A body of `factor` steps: takes blocks of rows, gives the carries and blocks of what is stacked.
BodyGraph block_body(const op::Scan& op, const Graph& body, std::span<const Type> inputs,
                     std::int64_t factor, Graph& outer) {
  return make_body(
      "body", inputs,
      [&](Graph& graph, std::span<const Value> in) {
        WrittenSteps steps(body, {ScanLayout(op), in}, op.reverse, graph);
        steps.write({0, factor});
        std::vector<Value> out = steps.carries();
        for (std::size_t r = 0; r < body.outputs().size(); ++r) {
          if (ScanLayout(op).is_stacked(r)) out.push_back(concat(steps.rows(r), {.axis = 0}));
        }
        return out;
      },
      outer);
}

// [blocks·factor, *row] as [blocks, factor, *row], and back
Value in_blocks(Value x, std::int64_t factor) {
  Dims dims = x.dims();
  dims[0] = dims[0].value() / factor;
  dims.insert(dims.begin() + 1, factor);
  return reshape_to(x, dims);
}
Value out_of_blocks(Value x) {
  Dims dims = x.dims();
  dims[1] = dims[0] * dims[1];
  dims.erase(dims.begin());
  return reshape_to(x, dims);
}

// A loop over blocks of `factor` steps, and the steps that do not fill a block behind it.
std::vector<Value> unroll_part(const op::Scan& op, const NodeVisit& v, std::int64_t factor) {
  const std::int64_t length = op.length.value();
  const std::int64_t rest = length % factor;
  const Graph& body = *v.node.body("body");
  StepOperands<Value> at(ScanLayout(op), v.operands);
  std::vector<Value> operands = at.carries;
  operands.insert(operands.end(), at.bcasts.begin(), at.bcasts.end());
  const RowRange looped{op.reverse ? rest : 0, length - rest};
  std::vector<Type> types;
  for (const Value& x : operands) types.push_back(x.type());
  for (const Value& x : at.xs) {
    const Value rows =
        rest == 0 ? x : narrow(x, {.axis = 0, .start = looped.first, .len = looped.count});
    operands.push_back(in_blocks(rows, factor));
    const Dims& dims = operands.back().dims();
    types.push_back(x.type().with(Dims(dims.begin() + 1, dims.end())));
  }
  op::Scan blocks = op;
  blocks.length = length / factor;
  blocks.save_trajectory = false;
  blocks.num_checkpoints = std::min(op.num_checkpoints, length / factor);
  std::vector<Value> looped_results = v.graph().add_node(
      Op(blocks), operands, {Body{"body", block_body(op, body, types, factor, v.graph())}});
  std::copy_n(looped_results.begin(), at.carries.size(), at.carries.begin());
  std::size_t next = at.carries.size();
  WrittenSteps tail(body, std::move(at), op.reverse, v.graph());
  tail.write({op.reverse ? 0 : length - rest, rest});
  std::vector<Value> results(v.node.types.size());
  for (std::size_t r = 0; r < results.size(); ++r) {
    if (!ScanLayout(op).is_stacked(r)) {
      results[r] = tail.carries()[r];
      continue;
    }
    std::vector<Value> parts = tail.rows(r);
    parts.insert(op.reverse ? parts.end() : parts.begin(), out_of_blocks(looped_results[next++]));
    results[r] = joined(parts, v.node.types[r], v.graph());
  }
  return results;
}

}  // namespace

PassResult unroll_scans(const Graph& graph, const UnrollOptions& options) {
  if (options.factor < 1) {
    throw UserError(ErrorCode::Attr,
                    fmt::format("a scan cannot be unrolled {} steps at a time", options.factor));
  }
  return replace_nodes(graph, "unroll_scans", [&](const NodeVisit& v) -> NewResults {
    const auto* op = v.node.op.as<op::Scan>();
    if (op == nullptr || options.factor == 1) return std::nullopt;
    if (!op->length.is_static()) {
      throw UserError(
          Diagnostic{ErrorCode::NeedsStaticDim,
                     {},
                     fmt::format("a scan of length {} cannot be unrolled", op->length.to_string()),
                     v.node.provenance ? v.node.provenance->where : SourcePosition{},
                     {},
                     "bind the symbol first"});
    }
    const bool whole = op->length.value() / options.factor < 2;
    check_written_out(v, whole ? op->length.value() : options.factor, {v.node.body("body")});
    if (whole) return unroll_whole(*op, v);
    if (op->save_trajectory && op->num_checkpoints > 0) return std::nullopt;
    return unroll_part(*op, v, options.factor);
  });
}

}  // namespace ricci
