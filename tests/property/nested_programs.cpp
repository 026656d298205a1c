#include "property/nested_programs.h"

#include <array>

#include <fmt/format.h>

#include "ricci/build/build.h"
#include "ricci/build/control.h"
#include "ricci/build/custom.h"

#include "support/compare.h"

namespace ricci::testing {
namespace {

constexpr int MostDepth = 3;

class NestedGrower {
 public:
  NestedGrower(Rng& rng, Graph& graph, int depth) : rng_(rng), graph_(graph), depth_(depth) {}

  void add_value(Value v) { (is_float(v.dtype()) ? values_ : others_).push_back(v); }
  [[nodiscard]] const std::vector<Value>& values() const { return values_; }
  [[nodiscard]] const std::vector<Value>& others() const { return others_; }

  void grow(std::size_t steps) {
    for (std::size_t i = 0; i < steps; ++i) {
      if (depth_ >= MostDepth || rng_.chance(40 + 15 * static_cast<std::size_t>(depth_))) {
        values_.push_back(function());
        continue;
      }
      switch (rng_.below(5)) {
        case 0: branch(); break;
        case 1: loop(); break;
        case 2: open_loop(); break;
        case 3: custom(); break;
        default: block(); break;
      }
    }
  }

 private:
  Type small_type() { return rng_.chance(50) ? f64() : f64({3}); }
  std::vector<Type> small_types(std::size_t least, std::size_t most) {
    std::vector<Type> out(least + rng_.below(most - least + 1));
    for (Type& t : out) t = small_type();
    return out;
  }

  // What is carried or handed in may be a count or a flag as well.
  Type any_type() {
    const std::size_t draw = rng_.below(100);
    return draw < 12 ? i32() : draw < 24 ? boolean() : small_type();
  }
  std::vector<Type> any_types(std::size_t least, std::size_t most) {
    std::vector<Type> out(least + rng_.below(most - least + 1));
    for (Type& t : out) t = any_type();
    return out;
  }

  Value constant(const Type& type) {
    const double high = type.dtype == DType::I32 ? 4 : 1;
    return graph_.constant(random_tensor(rng_.next(), type, is_float(type.dtype) ? -1 : 0, high));
  }

  // A count or a flag: one there is, one that is made of others, or a constant.
  Value other(const Type& type) {
    const std::size_t draw = rng_.below(100);
    if (draw < 30 && type == boolean()) return gt(value(f64()), constant(f64()));
    if (draw < 50 && type == boolean()) return logical_not(other(type));
    if (draw < 30) return other(type) + constant(type);
    std::vector<Value> fitting;
    for (const Value& v : others_) {
      if (v.type() == type) fitting.push_back(v);
    }
    return fitting.empty() ? constant(type) : fitting[rng_.below(fitting.size())];
  }

  // Any value there is, made to fit.
  Value value(const Type& type) {
    if (!is_float(type.dtype)) return other(type);
    if (values_.empty()) return constant(type);
    const Value v = values_[rng_.below(values_.size())];
    if (v.type() == type) return v;
    if (v.type().dims.size() > type.dims.size()) {
      Axes axes;
      for (std::size_t i = type.dims.size(); i < v.rank(); ++i) {
        axes.emplace_back(static_cast<std::int64_t>(axes.size()));
      }
      const Value less = sum(v, axes);
      if (less.type() == type) return less;
    }
    return broadcast_to(
        reshape_to(narrow(reshape_to(v, {*v.type().numel()}), {.axis = 0, .start = 0, .len = 1}),
                   {}),
        type.dims);
  }
  std::vector<Value> values(std::span<const Type> types) {
    std::vector<Value> out;
    for (const Type& t : types) out.push_back(value(t));
    return out;
  }

  Value function() {
    const Type type = small_type();
    const Value a = value(type);
    const Value b = value(type);
    switch (rng_.below(9)) {
      case 0: return a * b;
      case 1: return a + b;
      case 2: return sin(a);
      case 3: return tanh(a) * 0.5;
      case 4: return a / (1.5 + b * b);
      case 5: return a * a;
      case 6: return where(other(boolean()), a, b);
      case 7: return a + cast_to(other(i32()), DType::F64) * 0.25;
      default: return sin(a) - b;
    }
  }

  Value predicate() {
    if (rng_.chance(30)) return graph_.constant(Tensor::splat(boolean(), rng_.chance(50) ? 1 : 0));
    return rng_.chance(50) ? other(boolean()) : gt(value(f64()), constant(f64()));
  }

  // What a body gives: something that was handed in, a constant, or anything.
  std::vector<Value> results(std::span<const Value> in, std::span<const Type> types) {
    std::vector<Value> out;
    for (const Type& type : types) {
      const std::size_t draw = rng_.below(100);
      Value v;
      if (draw < 30 && !in.empty()) v = in[rng_.below(in.size())];
      if (draw >= 30 && draw < 60) v = constant(type);
      out.push_back(v.valid() && v.type() == type ? v : value(type));
    }
    return out;
  }

  BodyFunction body(std::vector<Type> outputs, std::size_t most_steps = 3) {
    return
        [this, outputs = std::move(outputs), most_steps](Graph& graph, std::span<const Value> in) {
          NestedGrower inside(rng_, graph, depth_ + 1);
          for (const Value& v : in) inside.add_value(v);
          inside.grow(rng_.below(most_steps + 1));
          return inside.results(in, outputs);
        };
  }

  void keep(std::span<const Value> results) {
    for (const Value& v : results) {
      if (v.valid() && v.type().numel() > 0) add_value(v);
    }
  }

  void branch() {
    const std::vector<Value> captures = values(any_types(0, 3));
    const std::vector<Type> outputs = any_types(1, 2);
    const Value taken = predicate();
    keep(cond(taken, captures, body(outputs), body(outputs)));
  }

  void block() {
    const std::vector<Value> inputs = values(any_types(1, 3));
    keep(checkpoint(inputs, body(any_types(1, 2))));
  }

  // A function whose derivative is that of its body, or one with rules of its own.
  void custom() {
    if (rng_.chance(50)) {
      const std::vector<Value> inputs = values(any_types(1, 3));
      const Type result = small_type();
      keep(std::vector{custom_fn(inputs, body({result}))});
      return;
    }
    const Type type = small_type();
    const auto product = [](Graph&, std::span<const Value> in) {
      return std::vector{in[0] * sin(in[1])};
    };
    CustomFnRules rules;
    if (rng_.chance(70)) {
      rules.vjp = [](Graph&, const VjpInputs& in) {
        const Value& d = in.d_outputs[0];
        return std::vector{d * sin(in.primals[1]), d * in.primals[0] * cos(in.primals[1])};
      };
    }
    if (rng_.chance(70)) {
      rules.jvp = [](Graph&, const JvpInputs& in) {
        return std::vector{in.tangents[0] * sin(in.primals[1]) +
                           in.primals[0] * cos(in.primals[1]) * in.tangents[1]};
      };
    }
    keep(std::vector{custom_fn(std::vector{value(type), value(type)}, product, rules)});
  }

  void loop() {
    const std::vector<Type> carries = any_types(0, 2);
    const auto length = static_cast<std::int64_t>(rng_.below(4));
    ScanOptions options{
        .length = length, .trajectory = rng_.chance(30), .reverse = rng_.chance(30)};
    if (length > 1 && !carries.empty() && rng_.chance(30)) {
      options.checkpoints = 1 + static_cast<std::int64_t>(rng_.below(2));
    }
    options.bcasts = values(any_types(0, 1));
    for (Type row : small_types(carries.empty() ? 1 : 0, 2)) {
      row.dims.insert(row.dims.begin(), length);
      options.xs.push_back(value(row));
    }
    std::vector<Type> outputs = carries;
    for (const Type& row : small_types(carries.empty() ? 1 : 0, 1)) outputs.push_back(row);
    keep(scan(values(carries), options, body(outputs)));
  }

  // Counts up to a limit below its bound, and may be stopped by a flag; it may make no trip.
  void open_loop() {
    const std::vector<Type> carried = any_types(1, 2);
    constexpr std::int64_t MostTrips = 3;
    const Type counter{DType::I64, {}};
    std::vector<Value> carries{graph_.constant(Tensor::splat(counter, 0))};
    for (const Value& v : values(carried)) carries.push_back(v);
    const double limit = static_cast<double>(rng_.below(MostTrips + 1));
    const bool stops = rng_.chance(50);
    const BodyFunction more = body(carried);
    const auto condition = [&](Graph& graph, std::span<const Value> in) {
      const Value below = lt(in[0], graph.constant(Tensor::splat(counter, limit)));
      const bool asks = stops && in[1].type() == boolean();
      return std::vector{asks ? logical_and(below, in[1]) : below};
    };
    const auto step = [&](Graph& graph, std::span<const Value> in) {
      std::vector<Value> out{in[0] + graph.constant(Tensor::splat(counter, 1))};
      for (const Value& v : more(graph, in.subspan(1))) out.push_back(v);
      return out;
    };
    WhileOptions options{.max_iterations = MostTrips, .tapes = rng_.chance(20)};
    if (rng_.chance(20)) options.checkpoints = 2;
    const WhileResult all = while_loop(carries, condition, step, options);
    keep(all.carries);
    keep(all.tapes);
  }

  Rng& rng_;
  Graph& graph_;
  int depth_;
  std::vector<Value> values_;  // of f64
  std::vector<Value> others_;  // counts and flags
};

}  // namespace

Program generate_nested(Rng& rng, const GeneratorOptions& options) {
  Program program;
  Graph& graph = program.graph;
  NestedGrower grower(rng, graph, 0);
  const std::array<Type, 4> inputs = {f64(), f64({3}), f64({3}), f64({2, 3})};
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string name = fmt::format("in{}", i);
    grower.add_value(graph.input(name, inputs[i]));
    program.feeds.emplace(name, random_tensor(rng.next(), inputs[i], -1, 1));
  }
  grower.grow(1 + rng.below(options.nodes));
  std::vector<Value> outputs;
  for (std::size_t i = inputs.size(); i < grower.values().size(); ++i) {
    if (rng.chance(60)) outputs.push_back(grower.values()[i]);
  }
  for (const Value& v : grower.others()) {
    if (rng.chance(20)) outputs.push_back(v);
  }
  if (outputs.empty()) outputs.push_back(grower.values().back());
  graph.set_outputs(outputs);
  return program;
}

}  // namespace ricci::testing
