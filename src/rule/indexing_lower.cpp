// Reads at places that operands give. Writes at such places are calls: their order matters.
#include "rule/tables/lower_rules.h"

namespace ricci::rule {
namespace {

Lowering indirect_read(const LowerContext& c, AxisMap table, AxisMap indices, Indirect how,
                       loop::Call call) {
  Lowering l = as_call(std::move(call));
  // Floats that hold indices are checked one by one, in a kernel of its own.
  if (!is_int(c.dtypes[1])) return l;
  // A kernel reads element 0 where an index is out of range; a table may have none.
  if (how.limit == 0) return l;
  l.form = Lowering::Form::Pointwise;
  l.instr = {.code = loop::Code::Load, .dtype = c.node.types[0].dtype};
  l.reads = {std::move(table), std::move(indices)};
  l.indirect = how;
  return l;
}

}  // namespace

Lowering lower(const op::Gather& op, const LowerContext& c) {
  loop::Gather call{loop::split_at(c.operands[0], op.axis.index()), op.axis.value,
                    loop::element_count(c.operands[1])};
  // Indices are checked even where what they pick is empty; a kernel would not read them.
  if (loop::element_count(c.result) == 0 && call.picked > 0) return as_call(call);
  const std::int64_t axis = op.axis.value;
  const auto picked = static_cast<std::int64_t>(c.operands[1].size());
  AxisMap table(c.result.size(), -1);
  AxisMap indices(c.result.size(), -1);
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(c.result.size()); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (i < axis) {
      table[at] = i;
    } else if (i < axis + picked) {
      indices[at] = i - axis;
    } else {
      table[at] = i - picked + 1;
    }
  }
  return indirect_read(c, std::move(table), std::move(indices),
                       {.axis = axis, .limit = c.operands[0][static_cast<std::size_t>(axis)]},
                       call);
}

Lowering lower(const op::TakeAlongAxis& op, const LowerContext& c) {
  AxisMap table;
  AxisMap indices;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(c.result.size()); ++i) {
    table.push_back(i == op.axis.value ? -1 : i);
    indices.push_back(i);
  }
  const auto axis = static_cast<std::size_t>(op.axis.value);
  return indirect_read(
      c, std::move(table), std::move(indices),
      {.axis = op.axis.value, .limit = c.operands[0][axis]},
      loop::Gather{loop::split_at(c.operands[0], axis), op.axis.value, c.operands[1][axis], true});
}

Lowering lower(const op::DynamicNarrow& op, const LowerContext& c) {
  AxisMap table;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(c.result.size()); ++i) table.push_back(i);
  const auto axis = static_cast<std::size_t>(op.axis.value);
  const std::int64_t starts = c.operands[0][axis] - c.result[axis] + 1;
  return indirect_read(c, std::move(table), AxisMap(c.result.size(), -1),
                       {.axis = op.axis.value, .limit = starts, .clamp = true},
                       loop::DynamicSlice{op.axis.value, c.operands[0][axis], c.result[axis]});
}

Lowering lower(const op::DynamicUpdate& op, const LowerContext& c) {
  const std::size_t axis = op.axis.index();
  return as_call(loop::DynamicSlice{op.axis.value, c.operands[0][axis], c.operands[1][axis], true});
}

Lowering lower(const op::GatherBackward& op, const LowerContext& c) {
  return as_call(
      loop::Scatter{loop::split_at(c.result, op.axis.index()), loop::element_count(c.operands[1])});
}

Lowering lower(const op::ScatterAdd&, const LowerContext& c) {
  return as_call(loop::Scatter{loop::split_at(c.result, 0), loop::element_count(c.operands[1])});
}

Lowering lower(const op::Scatter& op, const LowerContext& c) {
  return as_call(
      loop::ScatterInto{op.kind, loop::split_at(c.result, 0), loop::element_count(c.operands[2])});
}

Lowering lower(const op::ScatterAddAlongAxis& op, const LowerContext& c) {
  const std::size_t axis = op.axis.index();
  return as_call(loop::Scatter{loop::split_at(c.result, axis), c.operands[1][axis], true});
}

}  // namespace ricci::rule
