#include "property/large_programs.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "ricci/build/build.h"

#include "ops/cases.h"
#include "support/compare.h"

namespace ricci::testing {
namespace {

constexpr std::int64_t LeastElements = 9000;      // of a value that steps start from
constexpr std::int64_t MostProducts = 4'500'000;  // multiplications in one matrix product

const std::vector<Dims>& large_shapes() {
  static const std::vector<Dims> shapes = {{130, 257}, {257, 130},   {1000, 33}, {33, 1000},
                                           {20011},    {3, 130, 97}, {9, 1000},  {17, 64, 33},
                                           {59, 1000}, {2, 257, 65}, {64, 512},  {1, 40000}};
  return shapes;
}

std::int64_t size(const Type& type, std::size_t axis) { return type.dims[axis].value(); }
std::int64_t elements(const Type& type) { return type.numel().value(); }

// Made once: a table is long.
const Cases& table_of(OpKind kind) {
  static std::map<OpKind, Cases> tables;
  const auto found = tables.find(kind);
  return found != tables.end() ? found->second
                               : tables.emplace(kind, cases_for(kind)).first->second;
}

// A case as the template of a node of other sizes.
struct Drawn {
  Case from;
  DType dtype;
};

class LargeGrower {
 public:
  LargeGrower(Rng& rng, const GeneratorOptions& options, Program& program)
      : rng_(rng), options_(options), graph_(program.graph), feeds_(program.feeds) {}

  void grow(std::size_t steps) {
    using Step = void (LargeGrower::*)();
    // As often as they are listed.
    static constexpr std::array<Step, 15> Steps = {
        &LargeGrower::element_wise, &LargeGrower::element_wise,  &LargeGrower::element_wise,
        &LargeGrower::element_wise, &LargeGrower::reduction,     &LargeGrower::reduction,
        &LargeGrower::reduction,    &LargeGrower::along_an_axis, &LargeGrower::product,
        &LargeGrower::product,      &LargeGrower::movement,      &LargeGrower::movement,
        &LargeGrower::picking,      &LargeGrower::network,       &LargeGrower::loop};
    for (std::size_t i = 0; i < steps; ++i) (this->*Steps[rng_.below(Steps.size())])();
  }

  // What nobody reads, and now and then what is read.
  std::vector<Value> outputs() {
    if (values_.empty()) keep(leaf({draw_dtype(options_.dtypes).value(), large_shapes()[0]}));
    const std::vector<std::size_t> uses = graph_.use_counts();
    std::vector<Value> out;
    for (const Value v : values_) {
      if (uses[v.id().node] == 0 || rng_.chance(10)) out.push_back(v);
    }
    return out;
  }

 private:
  void keep(Value v) { values_.push_back(v); }
  void keep(std::span<const Value> results) {
    std::ranges::copy(results, std::back_inserter(values_));
  }

  std::optional<DType> draw_dtype(const DTypeSet& set) {
    std::vector<DType> fit;
    for (const DType d : AllDTypes) {
      const bool wanted = !options_.differentiable_only || is_float(d);
      if (wanted && set.has(d) && options_.dtypes.has(d)) fit.push_back(d);
    }
    if (fit.empty()) return std::nullopt;
    return fit[rng_.below(fit.size())];
  }

  // A case of an op, for its attributes, and one of its dtypes.
  std::optional<Drawn> draw(OpKind kind) {
    const Cases& cases = table_of(kind);
    for (int attempt = 0; attempt < 20; ++attempt) {
      const Case& c = cases[rng_.below(cases.size())];
      const bool has_values =
          std::ranges::any_of(c.in, [](const In& in) { return !in.values.empty(); });
      if (has_values || !c.rejects.empty() || c.fails) continue;
      if (const auto dtype = draw_dtype(c.dtypes)) return Drawn{c, *dtype};
    }
    return std::nullopt;
  }

  // A value of a type: one there is, one cut from another, or a new leaf.
  Value operand(const Type& type, double low = -2, double high = 2) {
    const std::size_t start = rng_.below(values_.size() + 1);
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const Value v = values_[(start + i) % values_.size()];
      if (v.type() == type && rng_.chance(70)) return v;
      if (elements(v.type()) >= elements(type) && v.dtype() == type.dtype && rng_.chance(30)) {
        const Value flat = reshape_to(v, {elements(v.type())});
        return reshape_to(narrow(flat, {.axis = 0, .start = 0, .len = elements(type)}), type.dims);
      }
    }
    return leaf(type, low, high);
  }

  Value large(DType dtype, std::size_t least_rank = 1) {
    const std::size_t start = rng_.below(values_.size() + 1);
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const Value v = values_[(start + i) % values_.size()];
      if (elements(v.type()) < LeastElements || v.type().rank() < least_rank) continue;
      if (v.dtype() == dtype) return v;
      if (rng_.chance(30)) return cast(v, {.to = dtype});
    }
    const Dims* dims = nullptr;
    do dims = &large_shapes()[rng_.below(large_shapes().size())];
    while (dims->size() < least_rank);
    return leaf({dtype, *dims});
  }

  Value leaf(const Type& type, double low = -2, double high = 2) {
    Tensor value = random_tensor(rng_.next(), type, low, high);
    if (is_float(type.dtype) && !options_.tame && rng_.chance(15)) value = with_specials(value);
    if (rng_.chance(15)) return graph_.constant(value);
    const std::string name = graph_.unique_name(fmt::format("in{}", graph_.size()));
    feeds_.emplace(name, std::move(value));
    return rng_.chance(80) ? graph_.input(name, type) : graph_.param(name, type);
  }

  // A few only: one in every row would leave nothing to compare in sums.
  Tensor with_specials(const Tensor& t) {
    static constexpr double Inf = std::numeric_limits<double>::infinity();
    static constexpr std::array Hard = {0.0, -0.0, Inf, -Inf,
                                        std::numeric_limits<double>::quiet_NaN()};
    std::vector<double> numbers = t.numbers<double>();
    for (int i = 0; i < 3; ++i) numbers[rng_.below(numbers.size())] = Hard[rng_.below(Hard.size())];
    return Tensor::from_numbers<double>(t.type(), numbers);
  }

  // The sizes, or those of something that broadcasts to them.
  Dims broadcast_from(Dims dims) {
    if (rng_.chance(60)) return dims;
    if (rng_.chance(30)) dims.erase(dims.begin());
    if (!dims.empty() && rng_.chance(60)) dims[rng_.below(dims.size())] = 1;
    return dims;
  }

  void element_wise() {
    static constexpr std::array Ops = {OpKind::Unary,  OpKind::Unary,   OpKind::Binary,
                                       OpKind::Binary, OpKind::Compare, OpKind::Where,
                                       OpKind::Cast};
    const auto drawn = draw(Ops[rng_.below(Ops.size())]);
    if (!drawn) return;
    std::vector<Value> operands;
    for (const In& in : drawn->from.in) {
      const DType dtype = in.dtype.value_or(drawn->dtype);
      const bool any = is_float(dtype) || (in.low == -2 && in.high == 2);
      if (operands.empty()) {
        operands.push_back(any ? large(dtype) : leaf({dtype, large_shapes()[0]}, in.low, in.high));
        continue;
      }
      const Type type = {dtype, broadcast_from(operands[0].type().dims)};
      operands.push_back(any ? operand(type, in.low, in.high) : leaf(type, in.low, in.high));
    }
    keep(graph_.add_node(*drawn->from.op, operands));
  }

  // Half of them down the columns of something with work in every element: these have chunks.
  void reduction() {
    const auto drawn = draw(OpKind::Reduce);
    if (!drawn) return;
    op::Reduce attrs = *drawn->from.op->as<op::Reduce>();
    attrs.axes.clear();
    if (is_float(drawn->dtype) && rng_.chance(50)) {
      static constexpr std::array Kinds = {UnaryKind::Tanh, UnaryKind::Sigmoid, UnaryKind::Erf,
                                           UnaryKind::Cos};
      attrs.axes.push_back(0);
      const UnaryKind kind = Kinds[rng_.below(Kinds.size())];
      return keep(reduce(activation(kind, large(drawn->dtype, 2)), attrs));
    }
    const Value x = large(drawn->dtype);
    for (std::size_t axis = 0; axis < x.type().rank(); ++axis) {
      if (rng_.chance(50)) attrs.axes.push_back(static_cast<std::int64_t>(axis));
    }
    keep(reduce(x, attrs));
  }

  template <class Attrs>
  void along_an_axis_of(const Drawn& drawn) {
    const Value x = large(drawn.dtype);
    Attrs attrs = *drawn.from.op->as<Attrs>();
    attrs.axis = static_cast<std::int64_t>(rng_.below(x.type().rank()));
    const std::array operands = {x};
    keep(graph_.add_node(Op(attrs), operands));
  }

  void along_an_axis() {
    static constexpr std::array Ops = {OpKind::Softmax, OpKind::Cumulative, OpKind::Sort,
                                       OpKind::ArgReduce};
    const auto drawn = draw(Ops[rng_.below(Ops.size())]);
    if (!drawn) return;
    switch (drawn->from.op->kind()) {
      case OpKind::Softmax: return along_an_axis_of<op::Softmax>(*drawn);
      case OpKind::Cumulative: return along_an_axis_of<op::Cumulative>(*drawn);
      case OpKind::Sort: return along_an_axis_of<op::Sort>(*drawn);
      default: return along_an_axis_of<op::ArgReduce>(*drawn);
    }
  }

  // a·b, either of them transposed, b for every matrix of a batch or for all of them.
  void product() {
    const auto drawn = draw(OpKind::Matmul);
    if (!drawn) return;
    Value a = large(drawn->dtype, 2);
    if (rng_.chance(40)) a = transpose_last(a);
    const std::size_t rank = a.type().rank();
    const std::int64_t k = size(a.type(), rank - 1);
    const std::int64_t most = MostProducts / elements(a.type());
    static constexpr std::array<std::int64_t, 6> Columns = {1, 5, 17, 33, 64, 130};
    const std::int64_t n = std::min(Columns[rng_.below(Columns.size())], most);
    const bool transposed = rng_.chance(40);
    Dims dims = transposed ? Dims{n, k} : Dims{k, n};
    if (rank == 3 && rng_.chance(60)) dims.insert(dims.begin(), a.type().dims[0]);
    const Value b = operand({drawn->dtype, dims});
    keep(matmul(a, transposed ? transpose_last(b) : b));
  }

  void movement() {
    const auto dtype = draw_dtype(dtypes::all);
    const Value x = large(*dtype);
    const std::size_t axis = rng_.below(x.type().rank());
    const auto place = static_cast<std::int64_t>(axis);
    const std::int64_t length = size(x.type(), axis);
    switch (rng_.below(5)) {
      case 0: return keep(reverse(x, {.axes = {place}}));
      case 1: return keep(narrow(x, {.axis = place, .start = length / 7, .len = length / 2}));
      case 2: return keep(reshape_to(x, {elements(x.type())}));
      case 3:
        if (2 * elements(x.type()) > 60000) return;
        return keep(concat({x, operand(x.type())}, {.axis = place}));
      default: {
        Axes perm(x.type().rank());
        for (std::size_t i = 0; i < perm.size(); ++i) {
          perm[i] = static_cast<std::int64_t>((i + 1) % perm.size());
        }
        return keep(transpose(x, {.perm = perm}));
      }
    }
  }

  void picking() {
    const auto drawn = draw(OpKind::ScatterAdd);
    if (!drawn) return;
    const Value x = large(drawn->dtype);
    const std::int64_t rows = size(x.type(), 0);
    const auto limit = static_cast<double>(rows);
    const Value indices = leaf({DType::I32, {rows}}, 0, limit);
    keep(rng_.chance(50) ? gather(x, indices, {.axis = 0})
                         : scatter_add(x, indices, {.out_dim = rows}));
  }

  // Convolution and attention: sizes of their own, elements of what is there.
  void network() {
    const auto dtype = draw_dtype(dtypes::floats);
    if (!dtype) return;
    if (rng_.chance(50)) {
      const Value x = operand({*dtype, {2, 6, 37, 41}});
      const Value w = operand({*dtype, {8, 3, 3, 3}});
      keep(conv(x, w, {.stride = {1, rng_.chance(50) ? 2 : 1}, .padding = {1, 1}, .groups = 2}));
      return;
    }
    const Type type = {*dtype, {2, 97, 48}};
    const op::Attention attrs{.num_heads = 3,
                              .head_dim = 16,
                              .mask_kind = rng_.chance(50) ? MaskKind::causal() : MaskKind{}};
    const Value q = operand(type);
    const Value k = operand(type);
    keep(attention(q, k, operand(type), attrs));
  }

  // Rows one after the other: h ← h/2 + x, and h·x of every row.
  void loop() {
    const auto dtype = draw_dtype(dtypes::floats);
    if (!dtype || !options_.control_flow) return;
    const Value x = large(*dtype, 2);
    Type row = x.type();
    row.dims.erase(row.dims.begin());
    const std::array carries = {operand(row)};
    const auto body = [](Graph&, std::span<const Value> in) {
      const Value h = in[0] * 0.5 + in[1];
      return std::vector{h, h * in[1]};
    };
    keep(scan(carries, {.xs = {x}, .trajectory = rng_.chance(30), .reverse = rng_.chance(30)},
              body));
  }

  Rng& rng_;
  const GeneratorOptions& options_;
  Graph& graph_;
  Feeds& feeds_;
  std::vector<Value> values_;
};

}  // namespace

Program generate_large(Rng& rng, const GeneratorOptions& options) {
  Program program;
  LargeGrower grower(rng, options, program);
  grower.grow(2 + rng.below(4));
  program.graph.set_outputs(grower.outputs());
  return program;
}

}  // namespace ricci::testing
