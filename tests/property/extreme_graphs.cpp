#include "property/extreme_graphs.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "ricci/compiler/rewrite/cleanup.h"
#include "ricci/compiler/schedule/program.h"
#include "ricci/ir/rebuild.h"
#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"
#include "ricci/op/ops.h"
#include "ricci/op/table.h"
#include "ricci/support/checked.h"
#include "ricci/support/hash.h"

#include "backend/agreement.h"
#include "ops/cases.h"
#include "support/lir_run.h"

namespace ricci::testing {
namespace {

constexpr std::int64_t MostWork = 10000;
constexpr std::int64_t Spread = 10;  // so much more work may be in composites that are written out
constexpr std::int64_t Far = std::int64_t{1} << 40;

// Choices made by the bytes; zeros when there are none left.
class Choices {
 public:
  explicit Choices(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  std::size_t below(std::size_t n) {
    std::size_t value = next();
    if (n > 256) value = value << 8 | next();
    return value % n;
  }
  bool one_in(std::size_t n) { return below(n) == n - 1; }
  template <class T, std::size_t N>
  T of(const std::array<T, N>& list) {
    return list[below(N)];
  }

 private:
  std::size_t next() {
    if (bytes_.empty()) return 0;
    const std::size_t value = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return value;
  }
  std::span<const std::uint8_t> bytes_;
};

std::int64_t extreme_integer(Choices& choose) {
  using Limits = std::numeric_limits<std::int64_t>;
  constexpr std::int64_t Word = std::int64_t{1} << 32;
  return choose.of(std::to_array<std::int64_t>(
      {0, -1, 1, 2, 3, 5, Limits::max(), Limits::min(), Limits::max() - 1, Word / 2, Word / 2 - 1,
       -Word / 2, Word - 1, Word + 1, Far, LargestSize, LargestSize + 1, 65536}));
}

double extreme_real(Choices& choose) {
  constexpr double Inf = std::numeric_limits<double>::infinity();
  return choose.of(std::to_array<double>(
      {0.0,  -0.0,  1.0,   -1.0,   0.5,    std::numeric_limits<double>::quiet_NaN(),
       Inf,  -Inf,  1e300, -1e300, 1e-300, 5e-324,
       1e38, 1e-38, 1e-40, 1e-45,  1e30,   1e-30,
       1e18, 1e-18, 1e4,   1e-4}));
}

// The spellings of an enum, from the description of its field: `one of a b c`.
std::vector<std::string> spellings(std::string_view kind) {
  std::vector<std::string> out;
  if (!kind.starts_with("one of ")) return out;
  kind =
      kind.substr(7, kind.find(',') == std::string_view::npos ? kind.size() : kind.find(',') - 7);
  while (!kind.empty()) {
    const std::size_t space = std::min(kind.find(' '), kind.size());
    out.emplace_back(kind.substr(0, space));
    kind.remove_prefix(std::min(space + 1, kind.size()));
  }
  return out;
}

AttrValue mutated(Choices& choose, const AttrValue& value, std::string_view kind) {
  if (value.absent()) {
    if (kind.starts_with("integer")) return {extreme_integer(choose)};
    if (kind.starts_with("number")) return {Real(extreme_real(choose))};
  }
  if (value.absent() || value.get<Enumerator>() != nullptr) {
    const auto* e = value.get<Enumerator>();
    if (e != nullptr && !e->args.empty()) {
      Enumerator now = *e;
      AttrValue& arg = now.args[choose.below(now.args.size())];
      arg = mutated(choose, arg, {});
      return {std::move(now)};
    }
    if (kind.starts_with("none, causal") && choose.one_in(2)) {
      return {Enumerator{"sliding_window", {{extreme_integer(choose)}}}};
    }
    const std::vector<std::string> names = spellings(kind);
    if (names.empty()) return value;
    return {Enumerator{names[choose.below(names.size())], {}}};
  }
  if (const auto* flag = value.get<bool>()) return {!*flag};
  if (value.get<std::int64_t>() != nullptr || value.get<Dim>() != nullptr) {
    return {extreme_integer(choose)};
  }
  if (value.get<Real>() != nullptr) return {Real(extreme_real(choose))};
  if (const auto* list = value.get<std::vector<AttrValue>>()) {
    std::vector<AttrValue> now = *list;
    if (now.empty() || choose.one_in(8)) {
      now.push_back(now.empty() ? AttrValue{extreme_integer(choose)} : now.back());
    } else if (choose.one_in(8)) {
      now.pop_back();
    } else if (choose.one_in(3)) {
      now.assign(now.size(), mutated(choose, now.front(), {}));
    } else {
      AttrValue& one = now[choose.below(now.size())];
      one = mutated(choose, one, {});
    }
    return {std::move(now)};
  }
  return value;
}

Op mutated(Choices& choose, const Op& op) {
  const OpDescriptor& d = descriptor(op.kind());
  std::vector<NamedAttr> attrs = op.attrs();
  if (attrs.empty()) return op;
  NamedAttr& one = attrs[choose.below(attrs.size())];
  one.value = mutated(choose, one.value, d.field(one.name)->kind);
  return d.make(attrs);
}

void mutate_sizes(Choices& choose, Case& c) {
  if (c.in.empty()) return;
  In& in = c.in[choose.below(c.in.size())];
  if (in.dims.empty()) return;
  Dim& d = in.dims[choose.below(in.dims.size())];
  if (!d.is_static()) return;
  constexpr std::array<std::int64_t, 8> Sizes = {0, 1, 2, 3, 5, 7, 17, 33};
  const std::int64_t to = choose.of(Sizes);
  if (choose.one_in(4)) {
    d = to;
    in.values.clear();
  } else {
    replace_size(c, d.value(), to);
  }
}

// Next to a zero a size may be large: nothing has elements.
void stretch_empty(Choices& choose, Case& c) {
  for (In& in : c.in) {
    const bool empty = std::ranges::any_of(in.dims, [](const Dim& d) { return d.is(0); });
    if (!empty || in.dims.size() < 2) continue;
    const Dim& d = in.dims[choose.below(in.dims.size())];
    if (d.is_static() && !d.is(0)) return replace_size(c, d.value(), Far);
  }
}

// Tables of cases are dear to make, and asked for again and again.
const Cases& known_cases(OpKind kind) {
  static std::map<OpKind, Cases> known;
  const auto found = known.find(kind);
  return found != known.end() ? found->second : known.emplace(kind, cases_for(kind)).first->second;
}

Program from_case(Choices& choose, std::int64_t most_work) {
  const Cases& cases = known_cases(static_cast<OpKind>(choose.below(OpCount)));
  if (cases.empty()) return {};
  Case c = cases[choose.below(cases.size())];
  std::vector<DType> dtypes;
  for (const DType d : AllDTypes) {
    if (c.dtypes.has(d)) dtypes.push_back(d);
  }
  if (dtypes.empty()) return {};
  const DType dtype = dtypes[choose.below(dtypes.size())];
  for (std::size_t i = choose.below(3); i > 0; --i) mutate_sizes(choose, c);
  if (choose.one_in(4)) stretch_empty(choose, c);
  for (std::size_t i = choose.below(4); i > 0; --i) c.op = mutated(choose, *c.op);
  for (const In& in : c.in) {
    const Type type{in.dtype.value_or(dtype), in.dims};
    if (type.is_static() && type.numel() > most_work) return {};
  }
  BuiltCase built = build_case(c, dtype);
  return {std::move(built.graph), {built.feeds.begin(), built.feeds.end()}};
}

// The graph with another op at a node, and everything behind it inferred anew.
Graph with_op(const Graph& graph, NodeId target, const Op& op) {
  Rebuilder rebuild(graph);
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    NodeSpec spec{.op = id == target ? op : node.op,
                  .operands = {},
                  .bodies = node.bodies,
                  .wanted = node.wanted};
    for (const ValueId v : node.operands) {
      if (!rebuild.has(v)) throw UserError(ErrorCode::Name, "a result is gone");
      spec.operands.push_back(rebuild(v));
    }
    const NodeId now = rebuild.to().add(std::move(spec));
    const std::size_t results = rebuild.to().node(now).types.size();
    for (std::uint32_t r = 0; r < std::min(results, node.types.size()); ++r) {
      rebuild.map({id, r}, ValueId{now, r});
    }
  }
  for (const ValueId v : graph.outputs()) {
    if (!rebuild.has(v)) throw UserError(ErrorCode::Name, "an output is gone");
  }
  return rebuild.finish();
}

Program from_program(Choices& choose) {
  const std::uint64_t seed = choose.below(1U << 16);
  Program p = generate(seed, {.nodes = 2 + choose.below(6), .random = true});
  for (std::size_t i = 1 + choose.below(3); i > 0; --i) {
    const auto target = static_cast<NodeId>(choose.below(p.graph.size()));
    const Op& op = p.graph.node(target).op;
    if (op.op_class() == OpClass::Leaf) continue;
    p.graph = with_op(p.graph, target, mutated(choose, op));
  }
  return p;
}

// How often a node's bodies run at most.
std::int64_t trips(const Node& node) {
  if (const auto* scan = node.op.as<op::Scan>()) return scan->length.value();
  if (const auto* scan = node.op.as<op::ScanBackward>()) return 2 * scan->length.value();
  if (const auto* loop = node.op.as<op::While>()) return loop->max_iterations.value_or(Far);
  if (const auto* loop = node.op.as<op::WhileBackward>()) return 2 * loop->max_iterations;
  return 1;
}

// Is there anything to make machine code of?
bool has_kernels(const ricci::Program& program) {
  return !program.kernels.empty() || std::ranges::any_of(program.steps, [](const Step& step) {
    const auto* control = std::get_if<ControlStep>(&step.what);
    if (control == nullptr) return std::holds_alternative<LoopStep>(step.what);
    return std::ranges::any_of(control->bodies,
                               [](const auto& body) { return has_kernels(*body.second); });
  });
}

// What a graph goes through: how a device is to run it, and what of that chance leaves out.
struct Way {
  ExtremeRun how = ExtremeRun::Compiled;
  bool fuse = true;
  bool compiled = true;
  bool calls_compiled = true;
  bool apart = true;
  bool printed = true;
  std::int64_t most_work = MostWork;
};

Way way_of(std::span<const std::uint8_t> bytes, ExtremeRun how) {
  Way way{.how = how};
  if (how == ExtremeRun::Compiled) return way;
  std::uint64_t chance = Hasher().add(std::as_bytes(bytes)).value();
  const auto one_in = [&](std::uint64_t n) {
    const bool chosen = chance % n == 0;
    chance /= n;
    return chosen;
  };
  const ExtremeShares shares;
  way.compiled = one_in(shares.compiled);
  way.calls_compiled = way.compiled || one_in(shares.calls_compiled);
  way.apart = one_in(shares.apart);
  way.printed = one_in(shares.printed);
  if (!one_in(shares.larger)) way.most_work /= 10;
  return way;
}

using Kind = ExtremeResult::Kind;

std::string said(const Way& way, const std::string& what) {
  return what.empty() ? what : fmt::format("{}: {}", way.fuse ? "fused" : "op by op", what);
}

// Nothing: composites are too much work when they are written out.
std::optional<Outcome> interpreted(const Graph& graph, const Feeds& feeds, const Way& way,
                                   bool& compile_too) {
  const bool on_cpu = all_made_for().size() > 2;
  const MadeFor target = !on_cpu ? MadeFor::Lir : way.fuse ? MadeFor::Cpu : MadeFor::CpuOpByOp;
  try {
    Graph prepared = prepared_for(graph, target);
    if (counted_work(prepared, Spread * way.most_work) >= Spread * way.most_work) return {};
    ricci::Program program = program_of_prepared_for(std::move(prepared), target);
    compile_too = way.compiled || (way.calls_compiled && !has_kernels(program));
    return run_on_lir(graph, std::move(program), feeds, way.apart);
  } catch (const UserError& e) {
    return e.code();
  }
}

ExtremeResult run_interpreted(const Program& p, const Graph& graph, const Way& way) {
  bool compile_too = way.compiled;
  const std::optional<Outcome> actual = interpreted(graph, p.feeds, way, compile_too);
  if (!actual) return {Kind::TooLarge, {}};
  const Outcome expected = reference_outcome(graph, p.feeds);
  std::string wrong = device_disagreement(graph, p.feeds, *actual, expected);
  if (wrong.empty() && compile_too) {
    wrong =
        device_disagreement(graph, p.feeds, compiled_outcome(graph, p.feeds, way.fuse), expected);
  }
  return {Kind::Ran, said(way, wrong)};
}

ExtremeResult run_compiled(const Program& p, const Graph& graph, const Way& way) {
  try {
    const std::int64_t most = Spread * way.most_work;
    if (counted_work(prepare_for_device(p.graph), most) >= most) return {Kind::TooLarge, {}};
  } catch (const UserError&) {  // what compiling it reports
  }
  const Outcome expected = reference_outcome(graph, p.feeds);
  return {Kind::Ran,
          said(way, device_disagreement(graph, p.feeds, compiled_outcome(graph, p.feeds, way.fuse),
                                        expected))};
}

// The empty text, or how a small graph of known sizes is not computed as it should be.
ExtremeResult checked(const Program& p, const Way& way) {
  verify(p.graph);
  if (way.printed && !(parse_graph(print(p.graph)) == p.graph)) {
    return {Kind::Symbolic, "reads back as another graph"};
  }
  if (!p.graph.symbols().empty()) return {Kind::Symbolic, {}};
  if (counted_work(p.graph, way.most_work) >= way.most_work) return {Kind::TooLarge, {}};
  const Graph graph = dead_code_elimination(p.graph).graph;
  return way.how == ExtremeRun::Interpreted ? run_interpreted(p, graph, way)
                                            : run_compiled(p, graph, way);
}

}  // namespace

std::int64_t counted_work(const Graph& graph, std::int64_t most) {
  std::int64_t total = 0;
  for (const Node& node : graph.nodes()) {
    for (const Type& t : node.types) {
      total += std::max<std::int64_t>(1, std::min(t.numel().value_or(1), most));
    }
    for (const Body& body : node.bodies) {
      const std::int64_t once = counted_work(*body.graph, most);
      total += try_mul(once, std::max<std::int64_t>(trips(node), 1)).value_or(most);
    }
    if (total >= most) return most;
  }
  return total;
}

ExtremeResult try_extreme_graph(std::span<const std::uint8_t> bytes, ExtremeRun how) {
  Choices choose(bytes);
  Way way = way_of(bytes, how);
  way.fuse = choose.one_in(2);
  Program p;
  try {
    p = choose.one_in(4) ? from_program(choose) : from_case(choose, way.most_work);
  } catch (const UserError&) {
    return {};
  } catch (const Rejection&) {
    return {};
  } catch (const std::exception& e) {
    return {ExtremeResult::Kind::Refused, e.what()};
  }
  std::string wrong;
  try {
    ExtremeResult result = checked(p, way);
    if (result.wrong.empty()) return result;
    wrong = std::move(result.wrong);
  } catch (const std::exception& e) {
    wrong = e.what();
  }
  return {ExtremeResult::Kind::Ran, wrong + "\n" + describe(p)};
}

}  // namespace ricci::testing
