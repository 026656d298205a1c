#include "schedule/write_out.h"

#include <algorithm>

#include "ricci/op/ops.h"
#include "ricci/support/error.h"

#include "op/loop_layout.h"
#include "schedule/items.h"

namespace ricci::schedule {
namespace {

using loop::WrittenBody;
using loop::WrittenItem;

std::int32_t number(std::size_t n) { return static_cast<std::int32_t>(n); }

std::int32_t wanted(const Node& node, std::size_t r) { return node.wanted[r] ? number(r) : -1; }

loop::LoopPlan plan_of(const op::Scan& op, const Node& node) {
  const std::int64_t length = op.length.value();
  const ScanLayout layout(op);
  const auto walk = [&](std::int64_t rows) {
    return op.reverse ? loop::RowWalk{rows - 1, -1} : loop::RowWalk{0, 1};
  };
  loop::LoopPlan plan{.most_trips = length};
  for (std::size_t k = 0; k < layout.carries; ++k) {
    loop::Carry& carry = plan.carries.emplace_back();
    carry.operand = number(k);
    if (!layout.trajectory) carry.last = wanted(node, k);
    if (!layout.trajectory || !node.wanted[k]) continue;
    // Row k of K is that of trip ⌈(k+1)·length/K⌉ - 1.
    const std::int64_t kept = op.num_checkpoints > 0 ? op.num_checkpoints : length;
    const loop::Pace pace = kept == length ? loop::Pace{} : loop::Pace{0, kept, length};
    carry.kept = {number(k), walk(kept), pace, false};
  }
  for (std::size_t k = layout.first_bcast(); k < layout.first_x(); ++k) {
    plan.wholes.push_back(number(k));
  }
  for (std::size_t k = layout.first_x(); k < layout.operands(); ++k) {
    plan.xs.push_back({number(k), walk(length)});
  }
  for (std::size_t r = layout.carries; r < node.types.size(); ++r) {
    plan.ys.push_back({wanted(node, r), walk(length)});
  }
  return plan;
}

// Results: the last carries, how many trips there were, the carries entering some of them.
loop::LoopPlan plan_of(const op::While& op, const Node& node) {
  const std::size_t carries = node.operands.size();
  const std::size_t first_tape = carries + 1;
  const std::int64_t stride = tape_stride(op.max_iterations.value_or(0), op.num_checkpoints);
  loop::LoopPlan plan{.most_trips = op.max_iterations, .conditional = true};
  for (std::size_t k = 0; k < carries; ++k) {
    loop::Carry& carry = plan.carries.emplace_back();
    carry.operand = number(k);
    carry.last = wanted(node, k);
    const std::size_t tape = first_tape + k;
    if (tape >= node.types.size() || !node.wanted[tape]) continue;
    carry.kept = {number(tape), {}, {stride - 1, 1, stride}, true};
    plan.zeroed.push_back(number(tape));
  }
  if (carries < node.types.size()) plan.trip_count = wanted(node, carries);
  return plan;
}

// The items of a body, if all of them can be written out.
class BodyWriter {
 public:
  BodyWriter(const Graph& graph, const KernelShape& shape)
      : graph_(graph), items_(make_items(graph, shape)) {}

  std::optional<WrittenBody> run() {
    for (const Storage& s : items_.storages) {
      if (is_complex(s.dtype) || s.role == Storage::Role::Seed) return std::nullopt;
      body_.storages.push_back({s.dtype, s.elements, {}});
      if (s.role == Storage::Role::Constant) body_.storages.back().constant = s.constant;
    }
    for (const Item& item : items_.items) {
      if (!add(item)) return std::nullopt;
    }
    for (const auto& [node, storage] : items_.leaves) body_.inputs.push_back(storage);
    body_.outputs = items_.outputs;
    return std::move(body_);
  }

 private:
  // All that a value is said to be is named here: what else there may be one day must not be lost.
  [[nodiscard]] static loop::Read read(const Seen& seen) {
    if (const auto* stored = std::get_if<Stored>(&seen)) {
      const auto& [storage, layout, bounds, fill] = *stored;
      check_internal(bounds.empty(), "what has bounds is not written out");
      return loop::StoredRead{storage, layout};
    }
    if (const auto* sequence = std::get_if<Sequence>(&seen)) {
      const auto& [layout, dtype] = *sequence;
      return loop::SequenceRead{dtype, layout};
    }
    const Tensor& value = std::get<Splat>(seen).value;
    if (is_float(value.dtype())) return loop::SplatRead{value.dtype(), value.item()};
    return loop::SplatRead{value.dtype(), value.numbers<std::int64_t>()[0]};
  }

  WrittenItem& start(WrittenItem::Kind kind, const Item& item) {
    WrittenItem& out = body_.items.emplace_back();
    out.kind = kind;
    out.storage = item.writes[0];
    out.instr.dtype = items_.storages[static_cast<std::size_t>(out.storage)].dtype;
    return out;
  }

  static bool is_known(loop::Code code) {
    using enum loop::Code;
    return code == Copy || code == Unary || code == Binary || code == Compare || code == Select ||
           code == Cast;
  }

  static bool is_bounded(const Seen& seen) {
    const auto* stored = std::get_if<Stored>(&seen);
    return stored != nullptr && !stored->bounds.empty();
  }

  bool add(const Item& item) {
    if (std::ranges::any_of(item.reads, is_bounded)) return false;
    if (item.kind == Item::Kind::Call) return add_product(item);
    const bool reduction = item.kind == Item::Kind::Reduction;
    const bool pointwise = item.kind == Item::Kind::Pointwise && is_known(item.instr.code);
    if (item.indirect || (!reduction && !pointwise)) return false;
    if (pointwise && loop::is_partial(item.instr)) return false;
    WrittenItem& out =
        start(reduction ? WrittenItem::Kind::Reduction : WrittenItem::Kind::Pointwise, item);
    out.dims = item.dims;
    for (const Seen& seen : item.reads) {
      const auto* splat = std::get_if<Splat>(&seen);
      if (splat != nullptr && is_complex(splat->value.dtype())) return false;
      out.reads.push_back(read(seen));
    }
    if (reduction) {
      out.reduce = item.reduce;
      out.reduced = item.reduced;
      return true;
    }
    out.instr.code = item.instr.code;
    out.instr.kind = item.instr.kind;
    out.instr.not_positive = item.instr.not_positive;
    out.to = item.piece ? *item.piece : loop::contiguous(item.dims);
    return true;
  }

  // A plain product of two matrices. One over no elements is zeros.
  bool add_product(const Item& item) {
    const Node& node = graph_.node(item.node);
    if (!node.op.is<op::Matmul>()) return false;
    const DType d = node.types[0].dtype;
    const StaticDims a = graph_.type(node.operands[0]).static_dims();
    const StaticDims b = graph_.type(node.operands[1]).static_dims();
    if ((d != DType::F32 && d != DType::F64) || a.size() != 2 || b.size() != 2) return false;
    if (item.writes[0] < 0 || a[0] == 0 || b[1] == 0) return true;
    if (a[1] == 0) {
      WrittenItem& out = start(WrittenItem::Kind::Pointwise, item);
      out.instr.code = loop::Code::Copy;
      out.dims = {a[0], b[1]};
      out.reads = {loop::SplatRead{d, 0.0}};
      out.to = loop::contiguous(out.dims);
      return true;
    }
    WrittenItem& out = start(WrittenItem::Kind::Product, item);
    out.dims = {a[0], a[1], b[1]};
    for (const Seen& seen : item.reads) out.reads.push_back(read(seen));
    return true;
  }

  const Graph& graph_;
  Items items_;
  WrittenBody body_;
};

std::optional<WrittenBody> written_body(const Graph& graph, const KernelShape& shape) {
  // Loops inside are calls; the graph need not be taken apart to know it.
  if (std::ranges::any_of(graph.nodes(), [](const Node& n) { return !n.bodies.empty(); })) {
    return std::nullopt;
  }
  return BodyWriter(graph, shape).run();
}

}  // namespace

std::optional<loop::LoopPlan> loop_plan(const Node& node) {
  if (const auto* scan = node.op.as<op::Scan>()) return plan_of(*scan, node);
  if (const auto* loop = node.op.as<op::While>()) return plan_of(*loop, node);
  return std::nullopt;
}

std::optional<loop::WrittenLoop> written_loop(const Node& node, const loop::LoopPlan& plan,
                                              const KernelShape& shape) {
  std::optional<WrittenBody> body = written_body(*node.body("body"), shape);
  if (!body) return std::nullopt;
  loop::WrittenLoop out{plan, std::move(*body), {}};
  if (plan.conditional) {
    out.condition = written_body(*node.body("cond"), shape);
    if (!out.condition) return std::nullopt;
  }
  return out;
}

}  // namespace ricci::schedule
