#include "property/generator.h"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include "ricci/build/build.h"
#include "ricci/ir/text.h"
#include "ricci/op/table.h"

#include "ops/cases.h"
#include "property/large_programs.h"
#include "property/nested_programs.h"
#include "property/random.h"
#include "property/woven_programs.h"
#include "support/compare.h"

namespace ricci::testing {
namespace {

constexpr std::int64_t MostElements = 200;  // larger cases would make interpreting slow

// The elements of a case's largest operand or result; none for one with symbols, be it only in an
// attribute.
std::optional<std::int64_t> largest_tensor(const Case& c) {
  for (const DType d : AllDTypes) {
    if (!c.dtypes.has(d)) continue;
    std::int64_t most = 0;
    const BuiltCase built = build_case(c, d);
    if (!built.graph.symbols().empty()) return std::nullopt;
    for (const Node& n : built.graph.nodes()) {
      for (const Type& t : n.types) most = std::max(most, t.numel().value());
    }
    return most;
  }
  return std::nullopt;
}

struct Template {
  Case from;
  bool symbolic = false;
};
using Templates = std::vector<Template>;

// The cases of an op that may become nodes: those that run and are small, or the smallest.
Templates templates_of(OpKind kind) {
  Templates out;
  std::optional<Case> smallest;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (Case& c : cases_for(kind)) {
    if (!c.rejects.empty() || c.fails) continue;
    const auto size = largest_tensor(c);
    if (size && *size < least) {
      least = *size;
      smallest = c;
    }
    if (!size || *size <= MostElements) out.push_back({std::move(c), !size});
  }
  if (smallest && least > MostElements) out.push_back({*smallest, false});
  return out;
}

// One list per op, so that ops with many cases are not drawn more often than others. Inputs and
// params are made where they are needed.
const std::vector<Templates>& templates() {
  static const std::vector<Templates> table = [] {
    std::vector<Templates> out;
    for (const OpDescriptor& d : all_ops()) {
      if (d.kind == OpKind::Input || d.kind == OpKind::Param) continue;
      if (Templates found = templates_of(d.kind); !found.empty()) out.push_back(std::move(found));
    }
    return out;
  }();
  return table;
}

// Operands that need particular values (indices, positive numbers) cannot be just any value.
bool takes_any_value(const In& in) { return in.values.empty() && in.low == -2 && in.high == 2; }

class Grower {
 public:
  Grower(Rng& rng, const GeneratorOptions& options, Graph& graph, Feeds* feeds)
      : rng_(rng), options_(options), graph_(graph), feeds_(feeds) {}

  void add_value(Value v) { values_.push_back(v); }

  void grow(std::size_t nodes, int depth) {
    for (std::size_t i = 0; i < nodes; ++i) {
      if (options_.control_flow && depth < 2 && rng_.chance(5)) {
        rng_.chance(50) ? add_if(depth) : add_scan(depth);
      } else {
        add_from_case();
      }
    }
  }

  // A value of a type: one there is, one glued together from another, or a new leaf.
  Value operand(const In& in, const Type& type) {
    if (takes_any_value(in) && !values_.empty()) {
      if (rng_.chance(60)) {
        if (const auto found = existing(type)) return *found;
      }
      if (type.is_static() && rng_.chance(60)) {
        if (const auto made = glue(type)) return *made;
      }
    }
    return leaf(in, type);
  }
  Value operand(const Type& type) {
    return operand(In{.dims = type.dims, .dtype = type.dtype}, type);
  }

  // Most of the values nobody reads, and now and then one that is read, or returned already.
  std::vector<Value> some_outputs() {
    // No op drawn for a short program need fit its dtypes; an input goes with all of them.
    if (values_.empty()) values_.push_back(operand(small_type()));
    const std::vector<std::size_t> uses = graph_.use_counts();
    std::vector<Value> out;
    for (const Value v : values_) {
      if (uses[v.id().node] == 0 ? rng_.chance(70) : rng_.chance(5)) out.push_back(v);
    }
    if (out.empty() || rng_.chance(5)) out.push_back(values_[rng_.below(values_.size())]);
    return out;
  }

 private:
  [[nodiscard]] bool in_body() const { return feeds_ == nullptr; }

  void remember(NodeId id) {
    static constexpr std::array Names = {"a", "b", "out", "x"};
    const Node& node = graph_.node(id);
    for (std::uint32_t r = 0; r < node.types.size(); ++r) {
      if (!node.wanted[r]) continue;
      if (rng_.chance(10)) graph_.set_value_name({id, r}, Names[rng_.below(Names.size())]);
      values_.push_back(graph_.value({id, r}));
    }
  }

  bool allowed(const Template& t) const {
    const Case& c = t.from;
    if (!c.bodies && c.op->op_class() == OpClass::Control) return false;
    if (c.bodies && !options_.control_flow) return false;
    if (!options_.random && c.op->has(Trait::Random)) return false;
    if (options_.differentiable_only) {
      if (c.op->has(Trait::NoGradient) || c.op->op_class() == OpClass::Block) return false;
    }
    return !t.symbolic || (options_.symbolic && !in_body());
  }

  std::optional<DType> draw_dtype(const Case& c) {
    std::vector<DType> fit;
    for (const DType d : AllDTypes) {
      if (!c.dtypes.has(d) || !options_.dtypes.has(d)) continue;
      if (options_.differentiable_only && !is_float(d)) continue;
      fit.push_back(d);
    }
    if (fit.empty()) return std::nullopt;
    return fit[rng_.below(fit.size())];
  }

  void add_from_case() {
    for (int attempt = 0; attempt < 20; ++attempt) {
      const Templates& list = templates()[rng_.below(templates().size())];
      const Template& drawn = list[rng_.below(list.size())];
      const auto dtype = draw_dtype(drawn.from);
      if (!dtype || !allowed(drawn)) continue;
      add_case(drawn.from, *dtype);
      return;
    }
  }

  void add_case(const Case& c, DType dtype) {
    std::vector<Type> types;
    for (const In& in : c.in) types.push_back({in.dtype.value_or(dtype), in.dims});
    NodeSpec spec{.op = *c.op,
                  .operands = {},
                  .bodies = c.bodies != nullptr ? c.bodies(dtype) : std::vector<Body>{},
                  .wanted = c.wanted};
    for (std::size_t k = 0; k < c.in.size(); ++k) {
      const bool again = k > 0 && types[k] == types[k - 1] && takes_any_value(c.in[k]) &&
                         takes_any_value(c.in[k - 1]) && rng_.chance(10);
      spec.operands.push_back(again ? spec.operands.back() : operand(c.in[k], types[k]).id());
    }
    remember(graph_.add(std::move(spec)));
  }

  std::optional<Value> existing(const Type& type) {
    const std::size_t start = rng_.below(values_.size());
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const Value v = values_[(start + i) % values_.size()];
      if (v.type() == type) return v;
    }
    return std::nullopt;
  }

  // Any value with an element can be cast, cut and repeated into any type.
  std::optional<Value> glue(const Type& type) {
    Value v = values_[rng_.below(values_.size())];
    const auto have = v.type().numel();
    const std::int64_t need = type.numel().value();
    if (!have || *have == 0) return std::nullopt;
    if (v.dtype() != type.dtype) v = cast(v, {.to = type.dtype});
    if (*have >= need) {
      v = reshape_to(v, {*have});
      if (*have > need) {
        const auto spare = static_cast<std::size_t>(*have - need);
        v = narrow(
            v, {.axis = 0, .start = static_cast<std::int64_t>(rng_.below(spare + 1)), .len = need});
      }
      v = reshape_to(v, type.dims);
    } else {
      v = narrow(reshape_to(v, {*have}), {.axis = 0, .start = 0, .len = 1});
      v = broadcast_to(reshape_to(v, {}), type.dims);
    }
    remember(v.id().node);
    return v;
  }

  Value leaf(const In& in, const Type& type) {
    if (!type.is_static()) return named_leaf(in, type);
    if (in_body() || rng_.chance(40)) {
      const Value v = graph_.constant(takes_any_value(in) && !options_.tame && rng_.chance(40)
                                          ? special_splat(type)
                                          : elements(in, type));
      values_.push_back(v);
      return v;
    }
    return named_leaf(in, type);
  }

  Value named_leaf(const In& in, const Type& type) {
    check_internal(!in_body(), "bodies make no inputs of their own");
    const std::string name = graph_.unique_name(fmt::format("in{}", graph_.size()));
    const Value v = rng_.chance(80) ? graph_.input(name, type) : graph_.param(name, type);
    if (type.is_static()) feeds_->emplace(name, elements(in, type));
    if (takes_any_value(in)) values_.push_back(v);
    return v;
  }

  // Numbers the identities of algebra speak of.
  Tensor special_splat(const Type& type) {
    static constexpr std::array Numbers = {0.0, -0.0, 1.0, -1.0, 2.0, 0.5};
    return Tensor::splat(type, Numbers[rng_.below(Numbers.size())]);
  }

  Tensor elements(const In& in, const Type& type) {
    if (!in.values.empty()) return Tensor::from_numbers<double>(type, in.values);
    const std::uint64_t seed = rng_.next();
    if (options_.tame || !takes_any_value(in) || !is_float(type.dtype) || !rng_.chance(30)) {
      return random_values(in, type, seed);
    }
    static constexpr double Inf = std::numeric_limits<double>::infinity();
    static constexpr std::array Hard = {0.0, -0.0, Inf, -Inf,
                                        std::numeric_limits<double>::quiet_NaN()};
    std::vector<double> numbers = random_tensor(seed, type).numbers<double>();
    for (double& v : numbers) {
      if (rng_.chance(20)) v = Hard[rng_.below(Hard.size())];
    }
    return Tensor::from_numbers<double>(type, numbers);
  }

  Type small_type() {
    static const std::array<Dims, 5> Shapes = {Dims{}, Dims{3}, Dims{1}, Dims{2, 3}, Dims{0}};
    std::vector<DType> fit;
    for (const DType d : AllDTypes) {
      if (options_.dtypes.has(d) && (!options_.differentiable_only || is_float(d)))
        fit.push_back(d);
    }
    return {fit[rng_.below(fit.size())], Shapes[rng_.below(Shapes.size())]};
  }

  Body make_body_of(std::string role, std::span<const Type> inputs, std::span<const Type> outputs,
                    int depth) {
    Graph body(role, graph_.registry());
    Grower grower(rng_, options_, body, nullptr);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      grower.add_value(body.input(fmt::format("in{}", i), inputs[i]));
    }
    grower.grow(1 + rng_.below(4), depth + 1);
    std::vector<Value> out;
    for (const Type& t : outputs) out.push_back(grower.operand(t));
    body.set_outputs(out);
    return {std::move(role), std::make_shared<const Graph>(std::move(body))};
  }

  std::vector<Type> small_types(std::size_t least, std::size_t most) {
    std::vector<Type> out;
    const std::size_t count = least + rng_.below(most - least + 1);
    for (std::size_t i = 0; i < count; ++i) out.push_back(small_type());
    return out;
  }

  void add_if(int depth) {
    const std::vector<Type> captures = small_types(0, 3);
    const std::vector<Type> outputs = small_types(1, 2);
    NodeSpec spec{.op = Op(op::If{}), .operands = {operand(boolean()).id()}};
    for (const Type& t : captures) spec.operands.push_back(operand(t).id());
    spec.bodies.push_back(make_body_of("then", captures, outputs, depth));
    spec.bodies.push_back(make_body_of("else", captures, outputs, depth));
    remember(graph_.add(std::move(spec)));
  }

  void add_scan(int depth) {
    const std::vector<Type> carries = small_types(1, 2);
    const std::vector<Type> bcasts = small_types(0, 1);
    const std::vector<Type> rows = small_types(0, 2);
    const auto length = static_cast<std::int64_t>(rng_.below(4));
    NodeSpec spec{.op = Op(op::Scan{.length = length,
                                    .num_carry = static_cast<std::int64_t>(carries.size()),
                                    .num_bcast = static_cast<std::int64_t>(bcasts.size()),
                                    .num_xs = static_cast<std::int64_t>(rows.size()),
                                    .save_trajectory = rng_.chance(30),
                                    .reverse = rng_.chance(30)}),
                  .operands = {}};
    std::vector<Type> inputs = carries;
    inputs.insert(inputs.end(), bcasts.begin(), bcasts.end());
    inputs.insert(inputs.end(), rows.begin(), rows.end());
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      Type t = inputs[k];
      if (k >= carries.size() + bcasts.size()) t.dims.insert(t.dims.begin(), length);
      spec.operands.push_back(operand(t).id());
    }
    std::vector<Type> outputs = carries;
    if (rng_.chance(50)) outputs.push_back(small_type());
    spec.bodies.push_back(make_body_of("body", inputs, outputs, depth));
    remember(graph_.add(std::move(spec)));
  }

  Rng& rng_;
  const GeneratorOptions& options_;
  Graph& graph_;
  Feeds* feeds_;  // null inside bodies, which have no leaves of their own
  std::vector<Value> values_;
};

}  // namespace

Program generate(std::uint64_t seed, const GeneratorOptions& options) {
  constexpr std::uint64_t OneLargeIn = 8;
  Rng rng(seed);
  if (options.large && seed % OneLargeIn == OneLargeIn - 1) return generate_large(rng, options);
  if (options.woven) return generate_woven(rng, options);
  if (options.nested) return generate_nested(rng, options);
  Program program;
  Grower grower(rng, options, program.graph, &program.feeds);
  grower.grow(1 + rng.below(options.nodes), 0);
  program.graph.set_outputs(grower.some_outputs());
  return program;
}

std::string describe(const Program& program) {
  std::string out = print(program.graph);
  for (const auto& [name, value] : program.feeds) {
    out += fmt::format("{} = {}\n", name, value.to_string());
  }
  return out;
}

}  // namespace ricci::testing
