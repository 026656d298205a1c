#include "property/woven_programs.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "ricci/build/build.h"
#include "ricci/build/reduce.h"

#include "property/edge_numbers.h"
#include "support/compare.h"

namespace ricci::testing {
namespace {

constexpr std::int64_t MostWovenElements = 700;
constexpr std::size_t MostWovenDepth = 2;  // of bodies in bodies
constexpr int WovenAttempts = 8;           // to find what fits before something is made

class Weaver {
 public:
  Weaver(Rng& rng, const GeneratorOptions& options, Graph& graph, Feeds* feeds,
         std::size_t depth = 0)
      : rng_(rng), options_(options), graph_(graph), feeds_(feeds), depth_(depth) {}

  void add_value(Value v) { values_.push_back(v); }

  void grow(std::size_t steps) {
    using Step = void (Weaver::*)();
    // As often as they are listed.
    static constexpr std::array<Step, 24> Steps = {
        &Weaver::view,       &Weaver::view,     &Weaver::view,       &Weaver::view,
        &Weaver::view,       &Weaver::view,     &Weaver::join,       &Weaver::join,
        &Weaver::function,   &Weaver::function, &Weaver::arithmetic, &Weaver::arithmetic,
        &Weaver::arithmetic, &Weaver::choice,   &Weaver::conversion, &Weaver::reduction,
        &Weaver::reduction,  &Weaver::running,  &Weaver::order,      &Weaver::product,
        &Weaver::picking,    &Weaver::placing,  &Weaver::chain,      &Weaver::control};
    for (std::size_t i = 0; i < steps; ++i) (this->*Steps[rng_.below(Steps.size())])();
  }

  // What nobody reads, some of what is read, and now and then a value twice.
  std::vector<Value> outputs() {
    if (values_.empty()) (void)any();
    const std::vector<std::size_t> uses = graph_.use_counts();
    std::vector<Value> out;
    for (const Value v : values_) {
      if (rng_.chance(uses[v.id().node] == 0 ? 80 : 15)) out.push_back(v);
    }
    if (out.empty() || rng_.chance(10)) out.push_back(values_[rng_.below(values_.size())]);
    return out;
  }

  // A value of a type: one there is, or one made of it.
  Value fitting(const Type& type) {
    for (int attempt = 0; attempt < WovenAttempts && !values_.empty(); ++attempt) {
      const Value v = values_[values_.size() - 1 - rng_.below(values_.size())];
      if (v.type() == type) return v;
    }
    for (int attempt = 0; attempt < WovenAttempts && !values_.empty(); ++attempt) {
      Value v = values_[rng_.below(values_.size())];
      if (v.type().numel() != type.numel()) continue;
      if (is_complex(v.dtype()) && !is_complex(type.dtype)) continue;
      return reshape_to(cast_to(v, type.dtype), type.dims);
    }
    return leaf(type);
  }

 private:
  void keep(Value v) {
    if (elements(v) <= MostWovenElements) values_.push_back(v);
  }
  void keep(std::span<const Value> all) {
    for (const Value& v : all) {
      if (v.valid()) keep(v);
    }
  }

  static std::int64_t elements(Value v) { return v.type().numel().value(); }
  static std::int64_t size(Value v, std::size_t axis) { return v.type().dims[axis].value(); }
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(rng_.below(static_cast<std::size_t>(n)));
  }

  // One that is asked for if it may be; a predicate is bool in any program.
  DType dtype_of(const DTypeSet& set) {
    std::vector<DType> fit;
    for (const bool any : {false, true}) {
      for (const DType d : AllDTypes) {
        if (set.has(d) && (any || options_.dtypes.has(d))) fit.push_back(d);
      }
      if (!fit.empty()) break;
    }
    return fit[rng_.below(fit.size())];
  }

  Dims dims() {
    static constexpr std::array<std::int64_t, 14> Sizes = {1, 2,  3,  4,  5, 7, 8,
                                                           9, 16, 17, 33, 1, 2, 3};
    Dims out;
    std::int64_t count = 1;
    for (std::size_t i = rng_.below(5); i > 0; --i) {
      std::int64_t n = rng_.chance(3) ? 0 : Sizes[rng_.below(Sizes.size())];
      if (count * n > MostWovenElements / 2) n = 1;
      count *= std::max<std::int64_t>(n, 1);
      out.emplace_back(n);
    }
    return out;
  }

  // Any value; of some dtypes, and of some rank, when asked for.
  Value any(const DTypeSet& set = dtypes::all, std::size_t least_rank = 0) {
    for (int attempt = 0; attempt < WovenAttempts && !values_.empty(); ++attempt) {
      // What came last is read most, so that steps follow each other.
      const std::size_t back = rng_.chance(50)
                                   ? rng_.below(std::min<std::size_t>(3, values_.size()))
                                   : rng_.below(values_.size());
      const Value v = values_[values_.size() - 1 - back];
      if (v.rank() < least_rank) continue;
      if (set.has(v.dtype())) return v;
      if (attempt + 1 == WovenAttempts) return cast_to(v, dtype_of(set));
    }
    Dims shape = dims();
    while (shape.size() < least_rank) shape.emplace_back(1 + below(4));
    return leaf({dtype_of(set), std::move(shape)});
  }

  Value leaf(const Type& type) {
    const Tensor value =
        options_.tame ? random_tensor(rng_.next(), type, -3, 3) : edge_tensor(rng_, type);
    Value v;
    if (feeds_ == nullptr || rng_.chance(20)) {
      v = graph_.constant(value);
    } else {
      const std::string name = graph_.unique_name(fmt::format("in{}", graph_.size()));
      feeds_->emplace(name, value);
      v = rng_.chance(80) ? graph_.input(name, type) : graph_.param(name, type);
    }
    values_.push_back(v);
    return v;
  }

  // --- views ---

  void view() { keep(viewed(any())); }

  Value viewed(Value x) {
    const std::size_t rank = x.rank();
    const auto axis = rank == 0 ? 0 : below(static_cast<std::int64_t>(rank));
    const std::int64_t n = rank == 0 ? 1 : size(x, static_cast<std::size_t>(axis));
    switch (rng_.below(8)) {
      case 0: {
        Axes perm(rank);
        for (std::size_t i = 0; i < rank; ++i) perm[i] = static_cast<std::int64_t>(i);
        for (std::size_t i = rank; i > 1; --i) std::swap(perm[i - 1], perm[rng_.below(i)]);
        return transpose(x, {.perm = perm});
      }
      case 1: {
        Axes axes;
        for (std::size_t i = 0; i < rank; ++i) {
          if (rng_.chance(60)) axes.emplace_back(static_cast<std::int64_t>(i));
        }
        return reverse(x, {.axes = axes});
      }
      case 2: {
        if (rank == 0) return x;
        const std::int64_t start = below(n + 1);
        return narrow(x, {.axis = axis, .start = start, .len = below(n - start + 1)});
      }
      case 3:
        if (rank == 0) return x;
        return take_every(x, {.axis = axis, .stride = 1 + below(4)});
      case 4: return expanded(x);
      case 5: return reshaped(x);
      case 6: return padded(x);
      default: {
        if (rank == 0) return x;
        const std::int64_t end = n == 0 ? 0 : 1 + below(n);
        return narrow(x, {.axis = axis, .start = 0, .len = end});
      }
    }
  }

  Value expanded(Value x) {
    Dims to = x.type().dims;
    std::int64_t count = std::max<std::int64_t>(elements(x), 1);
    for (Dim& d : to) {
      const std::int64_t n = 1 + below(5);
      if (!d.is(1) || count * n > MostWovenElements) continue;
      d = n;
      count *= n;
    }
    if (to.size() < 5 && count * 3 <= MostWovenElements && rng_.chance(60))
      to.insert(to.begin(), below(4));
    return broadcast_to(x, to);
  }

  // In other sizes: factors of the count, in any order.
  Value reshaped(Value x) {
    std::int64_t left = elements(x);
    if (left == 0) return reshape_to(x, rng_.chance(50) ? Dims{0} : Dims{3, 0, 2});
    Dims to;
    for (std::int64_t f = 2; left > 1 && to.size() < 4; ++f) {
      while (left % f == 0 && to.size() < 4) {
        if (to.empty() || rng_.chance(50)) {
          to.emplace_back(f);
        } else {
          Dim& d = to[rng_.below(to.size())];
          d = d.value() * f;
        }
        left /= f;
      }
    }
    if (left > 1) to.emplace_back(left);
    if (rng_.chance(30))
      to.insert(to.begin() + static_cast<std::ptrdiff_t>(rng_.below(to.size() + 1)), 1);
    return reshape_to(x, to);
  }

  Value padded(Value x) {
    op::Pad attrs;
    for (std::size_t i = 0; i < x.rank(); ++i) {
      const std::int64_t n = size(x, i);
      const std::int64_t low = below(4) - (n > 0 ? 1 : 0);
      std::int64_t high = below(4) - 1;
      if (n + low + high < 0) high = -(n + low);
      attrs.low.emplace_back(low);
      attrs.high.emplace_back(high);
    }
    return pad(x, any_scalar(x.dtype()), attrs);
  }

  Value any_scalar(DType dtype) {
    if (rng_.chance(50))
      return graph_.constant(Tensor::splat({dtype, {}}, rng_.chance(50) ? 0 : 1));
    return fitting({dtype, {}});
  }

  // A value that follows another along an axis.
  void join() {
    const Value x = any(dtypes::all, 1);
    const std::size_t axis = rng_.below(x.rank());
    std::vector<Value> all = {x};
    for (std::size_t i = rng_.below(3); i > 0; --i) {
      Value other = rng_.chance(40)
                        ? reverse(x, {.axes = {static_cast<std::int64_t>(rng_.below(x.rank()))}})
                        : x;
      if (rng_.chance(40)) {
        Type type = x.type();
        type.dims[axis] = below(4);
        other = fitting(type);
      }
      all.insert(rng_.chance(50) ? all.end() : all.begin(), other);
    }
    keep(concat(all, {.axis = static_cast<std::int64_t>(axis)}));
  }

  // --- element by element ---

  template <class Kind, std::size_t Count>
  std::optional<Kind> kind_for(DType dtype) {
    for (int attempt = 0; attempt < WovenAttempts; ++attempt) {
      const auto kind = static_cast<Kind>(rng_.below(Count));
      if (row(kind).dtypes.has(dtype)) return kind;
    }
    return std::nullopt;
  }

  void function() { keep(function_of(any())); }
  Value function_of(Value x) {
    const auto kind = kind_for<UnaryKind, enumerator_names(UnaryKind{}).size()>(x.dtype());
    return kind ? activation(*kind, x) : x;
  }

  // Something of a dtype that broadcasts with x.
  Value partner(Value x) {
    if (rng_.chance(20)) return x;
    Dims shape = x.type().dims;
    if (rng_.chance(25) && !shape.empty()) shape.erase(shape.begin());
    for (Dim& d : shape) {
      if (rng_.chance(20)) d = 1;
    }
    return fitting({x.dtype(), shape});
  }

  void arithmetic() { keep(arithmetic_of(any())); }
  Value arithmetic_of(Value x) {
    const auto kind = kind_for<BinaryKind, enumerator_names(BinaryKind{}).size()>(x.dtype());
    if (!kind) return x;
    const bool may_fault =
        *kind == BinaryKind::Div || *kind == BinaryKind::Rem || *kind == BinaryKind::Pow;
    if (may_fault && is_int(x.dtype()) && rng_.chance(90)) {
      // Never zero, and no exponent below zero.
      const Value y = partner(x);
      return binary(*kind, x,
                    *kind == BinaryKind::Pow ? max(y, 0.0) : bitwise_or(y, scalar_like(y, 1)));
    }
    const Value y = partner(x);
    return rng_.chance(50) ? binary(*kind, x, y) : binary(*kind, y, x);
  }

  void choice() {
    const Value x = any();
    const Value y = partner(x);
    const auto kind = static_cast<CompareKind>(rng_.below(6));
    const bool ordered = row(kind).dtypes.has(x.dtype());
    const Value which = compare(ordered ? kind : CompareKind::Eq, x, y);
    switch (rng_.below(3)) {
      case 0: return keep(which);
      case 1: return keep(where(which, x, y));
      default: return keep(where(x, partner(y), y));
    }
  }

  void conversion() { keep(cast(any(), {.to = dtype_of(dtypes::all)})); }

  // Steps that follow each other and are read once or more on the way.
  void chain() {
    Value x = any();
    for (std::size_t i = 4 + rng_.below(24); i > 0; --i) {
      const std::size_t draw = rng_.below(10);
      if (draw < 5) x = arithmetic_of(x);
      if (draw >= 5 && draw < 8) x = function_of(x);
      if (draw == 8) x = viewed(x);
      if (draw == 9) x = cast(x, {.to = dtype_of(dtypes::all)});
      if (elements(x) > MostWovenElements) return;
      if (rng_.chance(8)) keep(x);
    }
    keep(x);
  }

  // --- along axes ---

  void reduction() {
    static constexpr std::array Kinds = {ReduceKind::Sum, ReduceKind::Mean,     ReduceKind::Max,
                                         ReduceKind::Min, ReduceKind::Prod,     ReduceKind::Any,
                                         ReduceKind::All, ReduceKind::LogSumExp};
    const ReduceKind kind = Kinds[rng_.below(Kinds.size())];
    DTypeSet set = dtypes::floats | dtypes::ints;
    if (kind == ReduceKind::Sum || kind == ReduceKind::Prod) set = set | dtypes::complexes;
    if (kind == ReduceKind::Mean || kind == ReduceKind::LogSumExp) set = dtypes::floats;
    if (kind == ReduceKind::Any || kind == ReduceKind::All) set = dtypes::booleans;
    const Value x = any(set);
    op::Reduce attrs{.op = kind, .keep_dim = rng_.chance(40)};
    for (std::size_t i = 0; i < x.rank(); ++i) {
      if (rng_.chance(50)) attrs.axes.emplace_back(static_cast<std::int64_t>(i));
    }
    keep(reduce(x, attrs));
  }

  void running() {
    static constexpr std::array Kinds = {CumulativeKind::Cumsum, CumulativeKind::Cumprod,
                                         CumulativeKind::Cummax, CumulativeKind::Cummin};
    const Value x = any(dtypes::floats | dtypes::ints, 1);
    const auto axis = static_cast<std::int64_t>(rng_.below(x.rank()));
    if (is_float(x.dtype()) && rng_.chance(25)) return keep(softmax(x, {.axis = axis}));
    keep(cumulative(Kinds[rng_.below(Kinds.size())], x,
                    {.axis = axis, .exclusive = rng_.chance(40)}));
  }

  void order() {
    static constexpr std::array Indices = {DType::I32, DType::I64, DType::U32, DType::F32};
    const Value x = any(dtypes::floats | dtypes::ints | dtypes::booleans, 1);
    const std::size_t axis = rng_.below(x.rank());
    const auto place = static_cast<std::int64_t>(axis);
    const DType index = Indices[rng_.below(Indices.size())];
    const std::int64_t n = size(x, x.rank() - 1);
    const std::size_t draw = rng_.below(4);
    if (draw == 0 && n > 0) return keep(top_k(x, {.k = 1 + below(n), .index_dtype = index}));
    if (draw == 1 && size(x, axis) > 0) {
      const ArgKind kind = rng_.chance(50) ? ArgKind::ArgMax : ArgKind::ArgMin;
      return keep(arg_reduce(
          x, {.kind = kind, .axis = place, .keep_dim = rng_.chance(50), .index_dtype = index}));
    }
    keep(sort(x, {.axis = place, .descending = rng_.chance(50), .index_dtype = index}));
  }
  Value arg_reduce(Value x, const op::ArgReduce& attrs) {
    return graph_.add_node(Op(attrs), std::array{x})[0];
  }

  void product() {
    const Value a = any(dtypes::floats | dtypes::ints | dtypes::complexes, 2);
    const std::size_t rank = a.rank();
    const std::int64_t columns = 1 + below(9);
    Type type = a.type();
    const std::size_t first = rng_.below(rank - 1);
    if (rng_.chance(40) && elements(a) * columns <= 4 * MostWovenElements) {
      // Summed over any axis of it.
      type.dims = {type.dims[first], columns};
      if (rng_.chance(50)) std::swap(type.dims[0], type.dims[1]);
      const bool turned = type.dims[1] == a.type().dims[first] && rng_.chance(80);
      const Value b =
          turned ? fitting(type) : fitting({type.dtype, {a.type().dims[first], columns}});
      return keep(dot_general(a, b,
                              {.lhs_contracting = {static_cast<std::int64_t>(first)},
                               .rhs_contracting = {turned ? 1 : 0}}));
    }
    type.dims = {a.type().dims[rank - 1], columns};
    if (rank == 3 && rng_.chance(50)) type.dims.insert(type.dims.begin(), a.type().dims[0]);
    if (rng_.chance(50)) {
      std::swap(type.dims[type.dims.size() - 1], type.dims[type.dims.size() - 2]);
      return keep(matmul(a, transpose_last(fitting(type))));
    }
    keep(matmul(a, fitting(type)));
  }

  // --- by index ---

  // Whole numbers below a bound; none fits where the bound is 0.
  Value places(Dims shape, std::int64_t bound) {
    static constexpr std::array Kinds = {DType::I64, DType::I32, DType::U8, DType::F32, DType::I16};
    const Type type{Kinds[rng_.below(Kinds.size())], std::move(shape)};
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(type.numel().value()));
    for (auto& n : numbers) n = bound == 0 ? 0 : below(bound);
    if (rng_.chance(3) && !numbers.empty()) numbers[rng_.below(numbers.size())] = bound;
    const Tensor value = Tensor::from_numbers<std::int64_t>(type, numbers);
    if (feeds_ == nullptr) return graph_.constant(value);
    const std::string name = graph_.unique_name(fmt::format("at{}", graph_.size()));
    feeds_->emplace(name, value);
    return graph_.input(name, type);
  }

  void picking() {
    const Value x = any(dtypes::all, 1);
    const std::size_t axis = rng_.below(x.rank());
    const auto place = static_cast<std::int64_t>(axis);
    const std::int64_t n = size(x, axis);
    if (rng_.chance(40)) {
      return keep(dynamic_narrow(x, places({}, n + 2), {.axis = place, .len = below(n + 1)}));
    }
    if (n == 0) return;
    if (rng_.chance(50)) {
      return keep(gather(x, places(rng_.chance(50) ? Dims{1 + below(5)} : Dims{2, below(3)}, n),
                         {.axis = place}));
    }
    Dims shape = x.type().dims;
    shape[axis] = 1 + below(4);
    keep(take_along_axis(x, places(shape, n), {.axis = place}));
  }

  void placing() {
    const Value x = any(dtypes::floats | dtypes::ints | dtypes::complexes, 1);
    const std::size_t axis = rng_.below(x.rank());
    const auto place = static_cast<std::int64_t>(axis);
    const std::int64_t rows = size(x, 0);
    switch (rng_.below(5)) {
      case 0: return keep(scatter_add(x, places({rows}, 1 + rows), {.out_dim = 1 + rows}));
      case 1: {
        Type type = x.type();
        type.dims[0] = 1 + below(4);
        if (rows == 0) return;
        static constexpr std::array Kinds = {ScatterKind::Add, ScatterKind::Mul, ScatterKind::Max,
                                             ScatterKind::Min, ScatterKind::Set};
        const ScatterKind kind =
            is_complex(x.dtype()) ? ScatterKind::Set : Kinds[rng_.below(Kinds.size())];
        return keep(scatter(x, fitting(type), places({type.dims[0]}, rows), {.kind = kind}));
      }
      case 2: {
        const std::int64_t n = 1 + below(5);
        return keep(
            scatter_add_along_axis(x, places(x.type().dims, n), {.axis = place, .axis_size = n}));
      }
      case 3: {
        const Value at = places({2}, 3);
        Type type = x.type();
        type.dims.insert(type.dims.begin() + place, 2);
        return keep(gather_backward(fitting(type), at, {.axis = place, .axis_size = 3}));
      }
      default: {
        Type type = x.type();
        type.dims[axis] = below(size(x, axis) + 1);
        return keep(
            dynamic_update(x, fitting(type), places({}, size(x, axis) + 1), {.axis = place}));
      }
    }
  }

  // --- bodies ---

  BodyFunction body(std::vector<Type> results) {
    return [this, results = std::move(results)](Graph& graph, std::span<const Value> in) {
      Weaver inside(rng_, options_, graph, nullptr, depth_ + 1);
      for (const Value& v : in) inside.add_value(v);
      inside.grow(1 + rng_.below(5));
      std::vector<Value> out;
      for (const Type& t : results) out.push_back(inside.fitting(t));
      return out;
    };
  }

  void control() {
    if (!options_.control_flow || depth_ >= MostWovenDepth) return;
    const Value a = any();
    const Value b = any();
    if (rng_.chance(40)) {
      const Value which = cast(fitting({a.dtype(), {}}), {.to = DType::Bool});
      const std::array captures = {a, b};
      return keep(cond(which, captures, body({a.type(), b.type()}), body({a.type(), b.type()})));
    }
    const Value rows = any(dtypes::all, 1);
    Type row_type = rows.type();
    row_type.dims.erase(row_type.dims.begin());
    const ScanOptions options{
        .bcasts = {b}, .xs = {rows}, .trajectory = rng_.chance(30), .reverse = rng_.chance(40)};
    keep(scan(std::array{a}, options, body({a.type(), row_type})));
  }

  Rng& rng_;
  const GeneratorOptions& options_;
  Graph& graph_;
  Feeds* feeds_;  // null inside bodies, which have no leaves of their own
  std::size_t depth_;
  std::vector<Value> values_;
};

}  // namespace

Program generate_woven(Rng& rng, const GeneratorOptions& options) {
  Program program;
  Weaver weaver(rng, options, program.graph, &program.feeds);
  weaver.grow(2 + rng.below(options.nodes));
  program.graph.set_outputs(weaver.outputs());
  return program;
}

}  // namespace ricci::testing
