#include "schedule/items.h"

#include <algorithm>

#include "ricci/compiler/rule/nd.h"
#include "ricci/op/ops.h"
#include "ricci/support/error.h"

#include "loop/of_nothing.h"
#include "schedule/bounds.h"
#include "schedule/lower_for.h"
#include "schedule/not_positive.h"

namespace ricci::schedule {
namespace {

using loop::Layout;

loop::Layout through(const Layout& layout, const AxisMap& map) {
  Layout out{layout.offset, {}};
  for (const std::int64_t axis : map) {
    out.strides.push_back(axis < 0 ? 0 : layout.strides[static_cast<std::size_t>(axis)]);
  }
  return out;
}

// What a reduction of nothing gives, as one element.
Tensor identity_of(ReduceKind kind, DType dtype) {
  const Type scalar{dtype, {}};
  const loop::Number number = loop::reduction_of_nothing(kind, dtype);
  if (const auto* whole = std::get_if<std::int64_t>(&number)) {
    return Tensor::splat(scalar, *whole).contiguous();
  }
  const auto* complex = std::get_if<std::complex<double>>(&number);  // it is real all the same
  return Tensor::splat(scalar, complex != nullptr ? complex->real() : std::get<double>(number))
      .contiguous();
}

class Maker {
 public:
  Maker(const Graph& graph, const KernelShape& shape)
      : graph_(graph),
        shape_(shape),
        lowered_(graph.size()),
        read_whole_(graph.size(), false),
        seen_(graph.size()) {}

  Items run() {
    for (NodeId id = 0; id < graph_.size(); ++id)
      lowered_[id] = lower_for(shape_, graph_, graph_.nodes()[id]);
    find_read_whole();
    for (NodeId id = 0; id < graph_.size(); ++id) visit(id);
    for (std::size_t k = 0; k < graph_.outputs().size(); ++k) add_output(k);
    items_.writers.resize(items_.storages.size());
    for (std::size_t i = 0; i < items_.items.size(); ++i) {
      for (const StorageId s : items_.items[i].writes) {
        if (s >= 0) items_.writers[static_cast<std::size_t>(s)].push_back(i);
      }
    }
    return std::move(items_);
  }

 private:
  // What outputs, calls and reads at given places need as an array, not element by element.
  void find_read_whole() {
    for (const ValueId v : graph_.outputs()) read_whole_[v.node] = true;
    for (auto id = static_cast<NodeId>(graph_.size()); id-- > 0;) {
      const Node& node = graph_.nodes()[id];
      const Lowering& l = lowered_[id];
      for (std::size_t k = 0; k < node.operands.size(); ++k) {
        const bool whole = l.form == Lowering::Form::Call || (l.indirect && k == 0) ||
                           (l.form == Lowering::Form::View && read_whole_[id]);
        if (whole) read_whole_[node.operands[k].node] = true;
      }
    }
  }

  void visit(NodeId id) {
    const Node& node = graph_.nodes()[id];
    seen_[id].resize(node.types.size());
    if (node.is_leaf()) {
      const StorageId s = add_storage(Storage::Role::Leaf, node.types[0], id);
      items_.leaves.emplace_back(id, s);
      seen_[id][0] = whole(s, node.types[0]);
      return;
    }
    if (const auto* c = node.op.as<op::Constant>()) {
      seen_[id][0] = constant(c->value, id);
      return;
    }
    const Lowering& lowered = lowered_[id];
    switch (lowered.form) {
      case Lowering::Form::View: add_view(id, node, lowered); break;
      case Lowering::Form::Pointwise: add_pointwise(id, node, lowered); break;
      case Lowering::Form::Reduction: add_reduction(id, node, lowered); break;
      case Lowering::Form::Running: add_running(id, node, lowered); break;
      case Lowering::Form::Pieces: add_pieces(id, node, lowered); break;
      case Lowering::Form::Call: add_call(id, node); break;
    }
  }

  StorageId add_storage(Storage::Role role, const Type& type, NodeId node) {
    items_.storages.push_back({role, type.dtype, *type.numel(), node, {}, -1, {}});
    return static_cast<StorageId>(items_.storages.size() - 1);
  }

  static Seen whole(StorageId s, const Type& type) {
    return Stored{s, loop::contiguous(type.static_dims())};
  }

  Seen constant(const Tensor& value, NodeId node) {
    if (value.is_splat() && value.numel() > 0) {
      Tensor one = value;
      for (std::size_t a = 0; a < value.rank(); ++a) one = one.narrowed(a, 0, 1);
      return Splat{one.reshaped({}).contiguous()};
    }
    const StorageId s = add_storage(Storage::Role::Constant, value.type(), node);
    items_.storages.back().constant = value.contiguous();
    return whole(s, value.type());
  }

  LowerContext context(const Node& node) const {
    LowerContext c{node, {}, {}, node.types[0].static_dims()};
    for (const ValueId v : node.operands) {
      c.operands.push_back(graph_.type(v).static_dims());
      c.dtypes.push_back(graph_.type(v).dtype);
    }
    return c;
  }

  const Seen& operand(const Node& node, std::size_t k) const {
    return seen_[node.operands[k].node][node.operands[k].result];
  }

  // The view's layout is that of the elements, and of the places that bounds are about.
  static std::optional<Stored> viewed(const Node& node, const LowerContext& c,
                                      const Lowering& lowered, const Stored& from) {
    auto layout = lowered.view(node, c, from.layout);
    if (!layout) return std::nullopt;
    Stored out{from.storage, std::move(*layout), {}, from.fill};
    for (const loop::Bound& b : from.bounds) {
      auto place = lowered.view(node, c, b.place);
      if (!place) return std::nullopt;
      out.bounds.push_back({std::move(*place), b.limit});
    }
    return out;
  }

  // As it is, or its fill where its bounds never hold.
  static Seen simplified(Stored view, const StaticDims& dims) {
    auto needed = needed_bounds(std::move(view.bounds), dims);
    if (!needed) return Splat{view.fill};
    view.bounds = std::move(*needed);
    return view;
  }

  // A view that is another value outside its bounds.
  void add_bounded(NodeId id, const Node& node, const Lowering& lowered) {
    const LowerContext c = context(node);
    const Tensor& fill = std::get<Splat>(operand(node, 1)).value;
    if (loop::element_count(c.operands[0]) == 0) {
      seen_[id][0] = Splat{fill};
      return;
    }
    Seen from = in_memory(id, operand(node, 0), graph_.type(node.operands[0]));
    const auto& there = std::get<Stored>(from);
    if (!there.bounds.empty() && !same_bits(there.fill, fill)) {
      from = copied(id, from, c.operands[0], graph_.type(node.operands[0]));
    }
    Stored view = viewed(node, c, lowered, std::get<Stored>(from)).value();
    view.bounds.insert(view.bounds.end(), lowered.bounds.begin(), lowered.bounds.end());
    view.fill = fill;
    seen_[id][0] = simplified(std::move(view), c.result);
  }

  static bool same_bits(const Tensor& a, const Tensor& b) {
    return std::ranges::equal(a.bytes(), b.bytes());
  }

  void add_view(NodeId id, const Node& node, const Lowering& lowered) {
    if (!lowered.bounds.empty()) return add_bounded(id, node, lowered);
    const Seen& from = operand(node, 0);
    const LowerContext c = context(node);
    if (std::holds_alternative<Splat>(from)) {
      seen_[id][0] = from;
      return;
    }
    if (const auto* s = std::get_if<Stored>(&from)) {
      if (auto view = viewed(node, c, lowered, *s)) {
        seen_[id][0] = simplified(std::move(*view), c.result);
        return;
      }
    } else if (const auto layout = lowered.view(node, c, std::get<Sequence>(from).layout)) {
      seen_[id][0] = Sequence{*layout, std::get<Sequence>(from).dtype};
      return;
    }
    // No strides say so: the elements are copied in the operand's order.
    seen_[id][0] = copied(id, from, c.operands[0], node.types[0]);
  }

  Seen copied(NodeId id, const Seen& from, const StaticDims& dims, const Type& type) {
    const StorageId s = add_storage(Storage::Role::Temporary, type, id);
    push(copy_item(id, from, dims, type.dtype, s));
    return whole(s, type);
  }

  static Item copy_item(NodeId id, const Seen& from, StaticDims dims, DType dtype, StorageId to) {
    Item item{.kind = Item::Kind::Pointwise, .node = id, .dims = std::move(dims)};
    item.instr = {.code = loop::Code::Copy, .dtype = dtype};
    item.reads = {from};
    item.writes = {to};
    return item;
  }

  void add_pointwise(NodeId id, const Node& node, const Lowering& lowered) {
    const StaticDims dims = node.types[0].static_dims();
    if (lowered.instr.code == loop::Code::Index) {
      seen_[id][0] = Sequence{{0, lowered.instr.access.strides}, node.types[0].dtype};
      return;
    }
    if (lowered.instr.code == loop::Code::Constant) {
      const Type scalar{node.types[0].dtype, {}};
      const auto* d = std::get_if<double>(&lowered.instr.number);
      seen_[id][0] = Splat{
          d != nullptr
              ? Tensor::splat(scalar, *d).contiguous()
              : Tensor::splat(scalar, std::get<std::int64_t>(lowered.instr.number)).contiguous()};
      return;
    }
    if (lowered.instr.code == loop::Code::Random) return add_random(id, node, lowered);
    Item item{.kind = Item::Kind::Pointwise, .node = id, .dims = dims};
    item.instr = lowered.instr;
    if (lowered.instr.code == loop::Code::Unary && lowered.instr.unary() == UnaryKind::Exp) {
      item.instr.not_positive = never_positive(graph_, node.operands[0]);
    }
    item.indirect = lowered.indirect;
    for (std::size_t k = 0; k < node.operands.size(); ++k) {
      Seen from = operand(node, k);
      if (k == 0 && lowered.indirect) from = stored(id, from, graph_.type(node.operands[0]));
      if (auto* s = std::get_if<Stored>(&from)) {
        if (k == 0 && lowered.indirect) {
          item.indirect_stride =
              s->layout.strides[static_cast<std::size_t>(lowered.indirect->axis)];
        }
        s->layout = through(s->layout, lowered.reads[k]);
        for (loop::Bound& b : s->bounds) b.place = through(b.place, lowered.reads[k]);
      } else if (auto* q = std::get_if<Sequence>(&from)) {
        q->layout = through(q->layout, lowered.reads[k]);
      }
      item.reads.push_back(std::move(from));
    }
    finish(id, node, std::move(item));
  }

  // Reads the run's seed, and the key operand if there is one.
  void add_random(NodeId id, const Node& node, const Lowering& lowered) {
    Item item{.kind = Item::Kind::Pointwise, .node = id, .dims = node.types[0].static_dims()};
    item.instr = lowered.instr;
    const AxisMap everywhere(item.dims.size(), -1);
    if (seed_ < 0) seed_ = add_storage(Storage::Role::Seed, {DType::I64, {}}, id);
    item.reads.push_back(Stored{seed_, through({0, {}}, everywhere)});
    if (lowered.key) {
      Seen key = operand(node, *lowered.key);
      if (auto* s = std::get_if<Stored>(&key)) s->layout = through(s->layout, everywhere);
      if (auto* q = std::get_if<Sequence>(&key)) q->layout = through(q->layout, everywhere);
      item.reads.push_back(std::move(key));
    }
    finish(id, node, std::move(item));
  }

  void add_reduction(NodeId id, const Node& node, const Lowering& lowered) {
    const StaticDims dims = graph_.type(node.operands[0]).static_dims();
    if (loop::element_count(dims) == 0) {
      seen_[id][0] = Splat{identity_of(lowered.reduce, node.types[0].dtype)};
      return;
    }
    Item item{.kind = Item::Kind::Reduction, .node = id, .dims = dims};
    item.instr = {.code = loop::Code::Reduced, .dtype = node.types[0].dtype};
    item.reduce = lowered.reduce;
    item.reduced = lowered.reduced;
    item.reads = {operand(node, 0)};
    std::int64_t combined = 1;
    for (std::size_t i = 0; i < dims.size(); ++i) combined *= lowered.reduced[i] ? dims[i] : 1;
    if (combined == 1) {  // nothing to combine; but a sum starts from zero, which makes -0 to 0
      item.kind = Item::Kind::Pointwise;
      item.instr.code = loop::Code::Copy;
      if (lowered.reduce == ReduceKind::Sum && is_differentiable(item.instr.dtype)) {
        item.instr.code = loop::Code::Binary;
        item.instr.kind = static_cast<std::uint8_t>(BinaryKind::Add);
        item.reads.push_back(Splat{identity_of(lowered.reduce, item.instr.dtype)});
      }
    }
    finish(id, node, std::move(item));
  }

  void add_running(NodeId id, const Node& node, const Lowering& lowered) {
    Item item{.kind = Item::Kind::Running, .node = id, .dims = node.types[0].static_dims()};
    item.instr = {.code = loop::Code::Running, .dtype = node.types[0].dtype};
    item.reduce = lowered.reduce;
    item.axis = lowered.axis;
    item.exclusive = lowered.exclusive;
    item.from_end = lowered.from_end;
    item.reads = {operand(node, 0)};
    finish(id, node, std::move(item));
  }

  // Items that walk no element are left out.
  void push(Item item) {
    if (loop::element_count(item.dims) != 0) items_.items.push_back(std::move(item));
  }

  void finish(NodeId id, const Node& node, Item item) {
    const StorageId s = add_storage(Storage::Role::Temporary, node.types[0], id);
    item.writes = {s};
    push(std::move(item));
    seen_[id][0] = whole(s, node.types[0]);
  }

  // The only operand with elements of its own, when all others are one and the same number.
  [[nodiscard]] std::optional<std::size_t> only_array(const Node& node) const {
    std::optional<std::size_t> array;
    const Tensor* fill = nullptr;
    for (std::size_t k = 0; k < node.operands.size(); ++k) {
      const auto* splat = std::get_if<Splat>(&operand(node, k));
      if (splat == nullptr) {
        if (array) return std::nullopt;
        array = k;
      } else if (fill == nullptr) {
        fill = &splat->value;
      } else if (!same_bits(*fill, splat->value)) {
        return std::nullopt;
      }
    }
    return fill == nullptr ? std::nullopt : array;
  }

  // Pieces around one array are a view of it within bounds.
  bool add_surrounded(NodeId id, const Node& node, const Lowering& lowered) {
    if (read_whole_[id] || *node.types[0].numel() == 0) return false;
    const auto k = only_array(node);
    if (!k || !std::holds_alternative<Stored>(operand(node, *k))) return false;
    Stored view = std::get<Stored>(operand(node, *k));
    const auto& fill = std::get<Splat>(operand(node, *k == 0 ? 1 : 0)).value;
    if (!view.bounds.empty() && !same_bits(view.fill, fill)) return false;
    const StaticDims dims = graph_.type(node.operands[*k]).static_dims();
    const StaticDims whole = node.types[0].static_dims();
    const loop::Layout inside = loop::contiguous(whole);
    for (std::size_t a = 0; a < dims.size(); ++a) {
      if (dims[a] == whole[a]) continue;
      const std::int64_t start = lowered.pieces[*k].offset / inside.strides[a];
      view.layout.offset -= start * view.layout.strides[a];
      for (loop::Bound& b : view.bounds) b.place.offset -= start * b.place.strides[a];
      loop::Layout place{-start, std::vector<std::int64_t>(dims.size(), 0)};
      place.strides[a] = 1;
      view.bounds.push_back({std::move(place), dims[a]});
    }
    view.fill = fill;
    seen_[id][0] = simplified(std::move(view), whole);
    return true;
  }

  void add_pieces(NodeId id, const Node& node, const Lowering& lowered) {
    if (add_surrounded(id, node, lowered)) return;
    const StorageId s = add_storage(Storage::Role::Temporary, node.types[0], id);
    for (std::size_t k = 0; k < node.operands.size(); ++k) {
      const StaticDims dims = graph_.type(node.operands[k]).static_dims();
      Item item = copy_item(id, operand(node, k), dims, node.types[0].dtype, s);
      item.piece = lowered.pieces[k];
      push(std::move(item));
    }
    seen_[id][0] = whole(s, node.types[0]);
  }

  // Calls read memory, all of it.
  Seen stored(NodeId id, const Seen& from, const Type& type) {
    const auto* s = std::get_if<Stored>(&from);
    if (s != nullptr && !s->bounds.empty()) return copied(id, from, type.static_dims(), type);
    return in_memory(id, from, type);
  }

  // A number becomes an array of one element read again and again.
  Seen in_memory(NodeId id, const Seen& from, const Type& type) {
    if (const auto* splat = std::get_if<Splat>(&from)) {
      const StorageId s = add_storage(Storage::Role::Constant, splat->value.type(), id);
      items_.storages.back().constant = splat->value;
      return Stored{s, {0, std::vector<std::int64_t>(type.rank(), 0)}};
    }
    if (const auto* seq = std::get_if<Sequence>(&from)) {
      constexpr std::int64_t FewEnough = 1 << 16;
      if (*type.numel() > FewEnough) return copied(id, from, type.static_dims(), type);
      const StorageId s = add_storage(Storage::Role::Constant, type, id);
      items_.storages.back().constant = written_out(*seq, type);
      return whole(s, type);
    }
    return from;
  }

  static Tensor written_out(const Sequence& seq, const Type& type) {
    const StaticDims dims = type.static_dims();
    std::vector<std::int64_t> numbers;
    for_each_index(dims, [&](const StaticDims& index) {
      std::int64_t at = seq.layout.offset;
      for (std::size_t a = 0; a < index.size(); ++a) at += index[a] * seq.layout.strides[a];
      numbers.push_back(at);
    });
    return Tensor::from_numbers<std::int64_t>(type, numbers).contiguous();
  }

  void add_call(NodeId id, const Node& node) {
    Item item{.kind = Item::Kind::Call, .node = id};
    for (std::size_t k = 0; k < node.operands.size(); ++k) {
      const Type& type = graph_.type(node.operands[k]);
      Seen from = stored(id, operand(node, k), type);
      // Bodies are programs of their own, whose inputs are whole arrays.
      const bool whole = loop::is_contiguous(std::get<Stored>(from).layout, type.static_dims());
      if (!node.bodies.empty() && !whole) from = copied(id, from, type.static_dims(), type);
      item.reads.push_back(std::move(from));
    }
    for (std::size_t r = 0; r < node.types.size(); ++r) {
      if (!node.wanted[r]) {
        item.writes.push_back(-1);
        continue;
      }
      const StorageId s = add_storage(Storage::Role::Temporary, node.types[r], id);
      item.writes.push_back(s);
      seen_[id][r] = whole(s, node.types[r]);
    }
    items_.items.push_back(std::move(item));
  }

  // An output is an array of its own; what is computed for it alone is computed in it.
  void add_output(std::size_t k) {
    const ValueId v = graph_.outputs()[k];
    const Type& type = graph_.type(v);
    const Seen& from = seen_[v.node][v.result];
    if (const auto* s = std::get_if<Stored>(&from)) {
      Storage& storage = items_.storages[static_cast<std::size_t>(s->storage)];
      if (storage.role == Storage::Role::Temporary && storage.elements == *type.numel() &&
          s->bounds.empty() && loop::is_contiguous(s->layout, type.static_dims())) {
        storage.role = Storage::Role::Output;
        storage.output = static_cast<std::int32_t>(k);
        items_.outputs.push_back(s->storage);
        return;
      }
    }
    const StorageId s = add_storage(Storage::Role::Output, type, v.node);
    items_.storages.back().output = static_cast<std::int32_t>(k);
    push(copy_item(v.node, from, type.static_dims(), type.dtype, s));
    items_.outputs.push_back(s);
  }

  const Graph& graph_;
  const KernelShape& shape_;
  std::vector<Lowering> lowered_;
  std::vector<bool> read_whole_;
  StorageId seed_ = -1;
  Items items_;
  std::vector<std::vector<Seen>> seen_;
};

}  // namespace

Items make_items(const Graph& graph, const KernelShape& shape) { return Maker(graph, shape).run(); }

}  // namespace ricci::schedule
