#include "array/node.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include <fmt/format.h>

#include "ricci/op/ops.h"
#include "ricci/op/table.h"
#include "ricci/support/error.h"
#include "ricci/support/hash.h"

#include "array/apply_op.h"
#include "array/program.h"
#include "support/fork.h"

namespace ricci::detail {
namespace {

// A loop that never looks is computed when this many ops wait one on the other, or at all, or when
// they hold this much memory. A few ops may hold any amount: they are what one expression is.
constexpr std::uint32_t MostDepth = 256;
constexpr std::size_t MostOps = 2048;
constexpr std::int64_t MostBytes = std::int64_t{1} << 30;
constexpr std::size_t FewOps = 16;
constexpr std::size_t MostConstant = 64;

// The operands of nodes that die are let go one after the other: chains of them are long.
thread_local std::vector<Array>* dying = nullptr;

[[noreturn]] void explain(const Op& op, std::span<const Array> operands,
                          const std::vector<Body>& bodies, std::source_location where) {
  Graph scratch("expression");
  std::vector<Value> values;
  for (const Array& x : operands) {
    values.push_back(scratch.input(fmt::format("x{}", values.size()), x.node()->types[x.result()],
                                   x.node()->where));
  }
  (void)scratch.add_node(op, values, bodies, where);
  throw InternalError(fmt::format("'{}' was refused, and is not when built", op.mnemonic()));
}

std::vector<Type> types_of(std::span<const Array> operands) {
  std::vector<Type> types;
  types.reserve(operands.size());
  for (const Array& x : operands) types.push_back(x.node()->types[x.result()]);
  return types;
}

void infer(ArrayNode& node, Op op, std::span<const Array> operands, std::vector<bool> wanted) {
  const std::vector<Type> types = types_of(operands);
  std::vector<BodySignature> signatures;
  for (Body& b : node.bodies) signatures.push_back(b.graph->signature(b.role));
  check_signature(op, types.size(), signatures);
  node.op = normalize(op, types);
  Inferred inferred = infer_types(*node.op, types, signatures, &default_registry());
  node.types = std::move(inferred.types);
  node.optional_from = inferred.optional_from.value_or(std::numeric_limits<std::size_t>::max());
  node.wanted = std::move(wanted);
  if (node.wanted.empty()) {
    for (std::size_t r = 0; r < node.types.size(); ++r) {
      node.wanted.push_back(r < node.optional_from);
    }
  }
}

// Takes the operands over, and what follows from them.
void attach(ArrayNode& node, std::vector<Array> operands, std::source_location where) {
  node.where = where;
  node.constant = true;
  for (const Array& x : operands) {
    const ArrayNode& n = *x.node();
    node.constant = node.constant && n.constant;
    if (n.trace && (!node.trace || node.trace->serial < n.trace->serial)) node.trace = n.trace;
    if (n.constant && n.kind == ArrayNode::Kind::Op) {
      node.ops += n.ops;
    } else if (n.is_ready()) {
      node.bytes += bytes_held(x);
    } else {
      node.depth = std::max(node.depth, n.depth + 1);
      node.ops += n.ops;
      node.bytes += n.bytes;
    }
  }
  // Under a trace nothing is computed, and counts would go on.
  node.ops = std::min(node.ops, 2 * MostOps);
  node.bytes = std::min(node.bytes, 2 * MostBytes);
  // Constant expressions keep their operands, and graphs write them out: not without end.
  if (node.ops > MostConstant) node.constant = false;
  const std::shared_ptr<Trace>& claims = claiming_trace();
  if (claims && !node.constant && (!node.trace || node.trace->serial < claims->serial)) {
    node.trace = claims;
  }
  node.operands = std::move(operands);
}

bool is_much(const ArrayNode& node) {
  return node.ops > MostOps || (node.ops > FewOps && node.bytes > MostBytes);
}

ArrayNodePtr bounded(ArrayNodePtr node, std::source_location where) {
  if (node->trace || node->constant) return node;
  if (is_much(*node)) {
    // What several ops read has been counted several times.
    const Waiting waiting = count_waiting(Array(node, 0));
    node->ops = waiting.ops;
    node->bytes = waiting.bytes;
  }
  if (node->depth > MostDepth || is_much(*node)) materialize(std::array{Array(node, 0)}, where);
  return node;
}

// The dtype a number takes among the operands of an op.
DType dtype_among(const Array& number, std::span<const Array> operands) {
  const DType own = number.dtype();
  if (!is_float(own)) return own;
  for (const Array& x : operands) {
    const ArrayNode& n = *x.node();
    if (!n.weak && is_float(n.types[x.result()].dtype)) return n.types[x.result()].dtype;
  }
  return own;
}

Tensor aligned_contiguous(const Tensor& t) {
  Tensor plain = t.contiguous();
  const auto at = std::bit_cast<std::uintptr_t>(plain.data());
  const bool aligned =
      with_element_type(t.dtype(), [&]<class T>() { return at % alignof(T) == 0; });
  return aligned ? plain : Tensor::from_bytes(plain.type(), plain.bytes());
}

ArrayNodePtr weak_node(const Tensor& exact, const Tensor& plain) {
  auto node = std::make_shared<ArrayNode>(ArrayNode::Kind::Number);
  node->weak = node->constant = true;
  node->types = exact.type();
  node->values = {exact, plain};
  node->ready.store(true, std::memory_order_release);
  return node;
}

ArrayNodePtr strong_number(const Tensor& value) {
  auto node = std::make_shared<ArrayNode>(ArrayNode::Kind::Number);
  node->constant = true;
  node->types = value.type();
  node->values = {value};
  node->ready.store(true, std::memory_order_release);
  return node;
}

// The same op in f64 where all floats among its operands are made of numbers alone; or no value.
Array made_of_numbers(const Op& op, std::span<const Array> operands, std::source_location where) {
  if (!op.is<op::Unary>() && !op.is<op::Binary>() && !op.is<op::Where>()) return {};
  const auto is_number = [](const Array& x) { return x.node()->exact.valid(); };
  if (std::ranges::none_of(operands, is_number)) return {};
  std::vector<Array> wide;
  for (const Array& x : operands) {
    const DType dtype = x.node()->types[x.result()].dtype;
    if (!is_number(x) && (is_float(dtype) || is_complex(dtype))) return {};
    wide.push_back(is_number(x) ? strengthened(x.node()->exact, DType::F64, where) : x);
  }
  return apply(op, std::move(wide), where);
}

// Powers are fast where the exponent is known.
bool is_exponent(const Graph& graph, NodeId id) {
  return std::ranges::any_of(graph.nodes(), [&](const Node& n) {
    const auto* b = n.op.as<op::Binary>();
    return b != nullptr && b->kind == BinaryKind::Pow && n.operands[1].node == id;
  });
}

}  // namespace

Callee::Callee(Graph g) : graph(std::move(g)), hash(graph.hash()) {}

ArrayNode::~ArrayNode() {
  if (operands.empty()) return;
  if (dying != nullptr) {
    for (Array& x : operands) dying->push_back(std::move(x));
    return;
  }
  std::vector<Array> waiting = std::move(operands);
  dying = &waiting;
  while (!waiting.empty()) {
    const Array next = std::move(waiting.back());
    waiting.pop_back();
  }
  dying = nullptr;
}

std::shared_ptr<Trace>& claiming_trace() {
  thread_local std::shared_ptr<Trace> trace;
  return trace;
}

ForkMutex& pending_mutex() {
  static ForkMutex mutex;
  return mutex;
}

ArrayNodePtr number_node(bool value) {
  return strong_number(Tensor::splat(boolean(), std::int64_t{value}));
}

ArrayNodePtr number_node(std::int64_t value) {
  const bool fits = std::in_range<std::int32_t>(value);
  return weak_node(Tensor::splat(i64(), value), Tensor::splat(fits ? i32() : i64(), value));
}

ArrayNodePtr number_node(double value) {
  return weak_node(Tensor::splat(f64(), value), Tensor::splat(f32(), value));
}

ArrayNodePtr number_node(std::complex<double> value) {
  return weak_node(Tensor::splat(c128(), value), Tensor::splat(c64(), value));
}

ArrayNodePtr number_node(const Dim& size) {
  if (size.is_static()) return number_node(size.value());
  ArrayNodePtr node = op_node(Op(op::DimSize{.dim = size, .dtype = DType::I64}), {}, {});
  node->weak = true;
  return node;
}

ArrayNodePtr tensor_node(const Tensor& value) {
  return value_array(aligned_contiguous(value)).node();
}

std::int64_t bytes_held(const Array& x) {
  const ArrayNode& n = *x.node();
  if (n.kind == ArrayNode::Kind::Number || !n.is_ready()) return 0;
  const Type& type = n.types[x.result()];
  std::int64_t bytes = size_of(type.dtype);
  for (const Dim& d : type.dims) bytes *= d.value();
  return bytes;
}

const Tensor& value_of(ArrayNode& node, std::size_t result) {
  if (node.room && !node.boxed.load(std::memory_order_acquire)) {
    const std::lock_guard lock(pending_mutex());
    if (!node.boxed.load(std::memory_order_relaxed)) {
      const Type& type = node.types[0];
      node.values.push_back(
          Tensor::borrow(type, node.room.get(), row_major_strides(type.static_dims()), node.room));
      node.boxed.store(true, std::memory_order_release);
    }
  }
  return node.values[result];
}

Array number_array(const Tensor& value) { return {strong_number(value), 0}; }

Array value_array(Tensor value) {
  auto node = std::make_shared<ArrayNode>(ArrayNode::Kind::Value);
  node->types = value.type();
  node->values.push_back(std::move(value));
  node->ready.store(true, std::memory_order_release);
  return {std::move(node), 0};
}

std::vector<Array> arrays_of(std::vector<Room> results) {
  std::vector<Array> out;
  out.reserve(results.size());
  for (Room& r : results) {
    auto node = std::make_shared<ArrayNode>(ArrayNode::Kind::Value);
    node->types = std::move(r.type);
    node->room = std::move(r.memory);
    node->ready.store(true, std::memory_order_release);
    out.emplace_back(std::move(node), 0);
  }
  return out;
}

void refuse(ErrorCode code, std::string detail, std::string message, std::string help,
            std::source_location where) {
  throw UserError(Diagnostic{.code = code,
                             .detail = std::move(detail),
                             .message = std::move(message),
                             .where = SourcePosition::from(where),
                             .notes = {},
                             .help = std::move(help)});
}

void require_valid(const Array& x, std::string_view op, std::source_location where) {
  if (x.valid()) return;
  throw UserError(
      Diagnostic{.code = ErrorCode::Name,
                 .detail = "no_value",
                 .message = fmt::format("an operand of '{}' is an Array without a value", op),
                 .where = SourcePosition::from(where),
                 .notes = {},
                 .help = "give it one: zeros(shape), array({1.0, 2.0}), a Tensor"});
}

ArrayNodePtr op_node(Op op, std::vector<Array> operands, std::source_location where,
                     std::vector<Body> bodies, std::vector<bool> wanted) {
  for (const Array& x : operands) require_valid(x, op.mnemonic(), where);
  if (!op.is<op::Cast>()) {
    for (Array& x : operands) {
      if (!x.node()->weak) continue;
      // What bodies capture is inside them what it is outside.
      const DType exact = x.node()->types[x.result()].dtype;
      x = strong_operand(x, bodies.empty() ? dtype_among(x, operands) : exact, where);
    }
  }
  auto node = std::make_shared<ArrayNode>(ArrayNode::Kind::Op);
  node->bodies = std::move(bodies);
  try {
    infer(*node, op, operands, std::move(wanted));
  } catch (const Rejection&) {
    explain(op, operands, node->bodies, where);
  }
  if (node->types.size() == 1 && node->types[0].dtype == DType::F32) {
    node->exact = made_of_numbers(*node->op, operands, where);
  }
  attach(*node, std::move(operands), where);
  return bounded(std::move(node), where);
}

std::vector<Array> results_of(const ArrayNodePtr& node) {
  std::vector<Array> out;
  for (std::uint32_t r = 0; r < node->types.size(); ++r) out.emplace_back(node, r);
  return out;
}

Array apply_op(Op op, std::vector<Array> operands, Here where) {
  return apply(std::move(op), std::move(operands), where);
}

std::vector<Array> apply_op_all(Op op, std::vector<Array> operands, Here where) {
  return results_of(op_node(std::move(op), std::move(operands), where));
}

std::vector<Array> call_node(std::shared_ptr<const Callee> callee, std::vector<Array> operands,
                             std::source_location where) {
  auto node = std::make_shared<ArrayNode>(ArrayNode::Kind::Call);
  std::vector<Type> types;
  for (const ValueId v : callee->graph.outputs()) types.push_back(callee->graph.type(v));
  if (types.empty()) return {};
  node->types = std::move(types);
  node->wanted.assign(node->types.size(), true);
  node->callee = std::move(callee);
  attach(*node, std::move(operands), where);
  return results_of(bounded(std::move(node), where));
}

std::vector<Array> lift_pieces(std::span<const Array> operands, Pieces build, void* context,
                               std::source_location where) {
  Graph scratch("expression");
  std::vector<Value> inputs;
  std::vector<Array> outer;
  for (const Array& x : operands) {
    require_valid(x, "this function", where);
    outer.push_back(strengthened(x, dtype_among(x, operands), where));
    const Array& o = outer.back();
    inputs.push_back(scratch.input(fmt::format("x{}", inputs.size()), o.node()->types[o.result()],
                                   o.node()->where));
  }
  const std::vector<Value> results = build(context, scratch, inputs);
  std::vector<ArrayNodePtr> nodes(scratch.size());
  std::vector<std::uint32_t> first(scratch.size(), 0);
  std::size_t next = 0;
  for (NodeId id = 0; id < scratch.size(); ++id) {
    const Node& n = scratch.node(id);
    if (n.op.is<op::Input>()) {
      nodes[id] = outer[next].node();
      first[id] = outer[next++].result();
      continue;
    }
    if (const auto* c = n.op.as<op::Constant>(); c != nullptr && n.types[0].rank() == 0) {
      nodes[id] = strong_number(c->value);  // programs are given it, and serve other numbers too
      nodes[id]->fixed = is_exponent(scratch, id);
      continue;
    }
    auto node = std::make_shared<ArrayNode>(ArrayNode::Kind::Op);
    node->op = n.op;
    node->types = n.types;
    node->bodies = n.bodies;
    node->wanted = n.wanted;
    node->optional_from = n.optional_from;
    std::vector<Array> from;
    for (const ValueId v : n.operands) from.emplace_back(nodes[v.node], first[v.node] + v.result);
    attach(*node, std::move(from), where);
    nodes[id] = bounded(std::move(node), where);
  }
  std::vector<Array> out;
  for (const Value& v : results) {
    out.emplace_back(nodes[v.id().node], first[v.id().node] + v.id().result);
  }
  return out;
}

}  // namespace ricci::detail

// Where a debugger finds the parts of a node, in a program without debug information about it:
// share/ricci_gdb.py reads this by its name, and nothing refers to it.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
extern "C" __attribute__((used, visibility("default")))
const std::size_t ricci_debug_array_layout[] = {
    offsetof(ricci::detail::ArrayNode, types), offsetof(ricci::detail::ArrayNode, op),
    offsetof(ricci::detail::ArrayNode, ready), offsetof(ricci::detail::ArrayNode, values),
    offsetof(ricci::detail::ArrayNode, trace), offsetof(ricci::detail::ArrayNode, room)};
#pragma GCC diagnostic pop
