#include "backend/agreement.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/compiler/device/backend.h"
#include "ricci/compiler/schedule/program.h"
#include "ricci/compiler/schedule/target.h"
#include "ricci/ir/text.h"
#include "ricci/op/ops.h"

#include "property/random.h"
#include "support/compare.h"
#include "support/cramped_target.h"
#include "support/every_device.h"
#include "support/exact_nodes.h"
#include "support/guarded_run.h"
#include "support/lir_run.h"
#include "support/open_numbers.h"
#include "support/rounded_otherwise.h"
#include "support/run_in_place.h"

namespace ricci::testing {
namespace {

using Complex = std::complex<double>;

// The name of an input or param; null for other nodes.
const std::string* port_name(const Node& node) {
  if (const auto* input = node.op.as<op::Input>()) return &input->name;
  const auto* param = node.op.as<op::Param>();
  return param == nullptr ? nullptr : &param->name;
}

// Outputs in the buffers of inputs wherever one has the type.
std::vector<Donation> all_donations(const Graph& graph) {
  std::vector<Donation> donations;
  std::vector<bool> donated(graph.size(), false);
  for (std::size_t o = 0; o < graph.outputs().size(); ++o) {
    const Type& type = graph.type(graph.outputs()[o]);
    for (NodeId id = 0; id < graph.size(); ++id) {
      const std::string* name = port_name(graph.node(id));
      if (name == nullptr || donated[id] || graph.type({id, 0}) != type) continue;
      donations.push_back({o, *name});
      donated[id] = true;
      break;
    }
  }
  return donations;
}

// The outputs of several runs.
using Runs = std::vector<std::vector<Tensor>>;

// A run that reports a fault says nothing about values.
void add_run(Runs& to, const Graph& graph, const Feeds& feeds) {
  Outcome outcome = reference_outcome(graph, feeds);
  if (auto* values = std::get_if<std::vector<Tensor>>(&outcome)) to.push_back(std::move(*values));
}

// What else the reference gives, as it rounds and where it has the choice: each run is made when
// those before it do not explain a difference.
class Others {
 public:
  Runs rounded;  // the expected outputs first, then those of runs in which inexact ops are nudged
  Runs open;     // that go the ways a program leaves open where numbers are not finite

  Others(Graph graph, const Feeds& feeds, const std::vector<Tensor>& expected)
      : rounded{expected}, graph_(std::move(graph)), feeds_(feeds) {}

  /// Another run, in the end all ways that are open at once; false: there are no more.
  bool add() {
    constexpr std::uint64_t Count = 8;
    const std::size_t before = rounded.size();
    while (seed_ < Count) {
      Rng rng(seed_++);
      add_run(rounded, rounded_otherwise(graph_, rng), feeds_);
      if (rounded.size() > before) return true;
    }
    if (all_made_) return false;
    for (const Way way : AllWays) add_run(open, going(graph_, way), feeds_);
    all_made_ = true;
    return true;
  }

 private:
  Graph graph_;
  const Feeds& feeds_;
  std::uint64_t seed_ = 0;
  bool all_made_ = false;
};

bool same_number(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// One part of one element, as it is and as runs of the reference have it.
struct Seen {
  double actual = 0;
  std::vector<double> rounded;  // the expected one first
  std::vector<double> open;
  DType dtype = DType::F64;
  double size = 0;  // of the element, where it is finite

  [[nodiscard]] double expected() const { return rounded[0]; }

  // Is it what rounding makes of the expected one?
  [[nodiscard]] bool is_rounded() const {
    constexpr double Margin = 8;  // eight runs find a part of the spread
    if (std::ranges::any_of(rounded, [&](double v) { return same_number(actual, v); })) return true;
    const auto middle = std::ranges::find_if(rounded, [](double v) { return std::isfinite(v); });
    if (!std::isfinite(actual) || middle == rounded.end()) return false;
    double spread = 0;
    for (const double v : rounded) {
      if (std::isfinite(v)) spread = std::max(spread, std::fabs(v - *middle));
    }
    return is_within(*middle, Margin * spread, size);
  }

  // Is it what comes of an infinity on a way that is open: NaN where there may be one, what a cast
  // to whole numbers makes of that, or a number where the reference has NaN?
  [[nodiscard]] bool is_open() const {
    return std::ranges::any_of(open, [&](double v) {
      if (!std::isfinite(v) || !is_differentiable(dtype)) return same_number(actual, v);
      return std::isnan(expected()) && is_within(v, 0, std::fabs(v));
    });
  }

 private:
  [[nodiscard]] bool is_within(double middle, double spread, double magnitude) const {
    const Tolerance t = tolerance(dtype);
    return std::fabs(actual - middle) <= spread + t.absolute + t.relative * magnitude;
  }
};

// Per output: does it depend on a product of many complex numbers, which devices multiply in an
// order of their own? Where that overflows, which part is infinite, with which sign, and which is
// NaN, is the order's to say.
bool multiplies_complex_numbers(const Graph& graph, const Node& node) {
  const auto* reduce = node.op.as<op::Reduce>();
  const auto* running = node.op.as<op::Cumulative>();
  const bool product = (reduce != nullptr && reduce->op == ReduceKind::Prod) ||
                       (running != nullptr && running->kind == CumulativeKind::Cumprod);
  return (product && is_complex(graph.type(node.operands[0]).dtype)) ||
         std::ranges::any_of(node.bodies, [](const Body& body) {
           return std::ranges::any_of(body.graph->nodes(), [&](const Node& inner) {
             return multiplies_complex_numbers(*body.graph, inner);
           });
         });
}

// Per output: is it computed by or from a node that `is`?
template <class F>
std::vector<bool> depends_on(const Graph& graph, F&& is) {
  std::vector<bool> marks;
  for (const Node& node : graph.nodes()) {
    marks.push_back(is(node) || std::ranges::any_of(
                                    node.operands, [&](const ValueId v) { return marks[v.node]; }));
  }
  std::vector<bool> out;
  for (const ValueId v : graph.outputs()) out.push_back(marks[v.node]);
  return out;
}

bool is_finite(Complex z) { return std::isfinite(z.real()) && std::isfinite(z.imag()); }

// What is wrong with an output, or how many of its elements only an open way explains.
struct Verdict {
  std::string wrong;
  std::size_t excused = 0;
};

// The numbers of an output in several runs.
std::vector<std::vector<Complex>> numbers_of(const Runs& runs, std::size_t output) {
  std::vector<std::vector<Complex>> out;
  for (const auto& run : runs) out.push_back(run[output].numbers<Complex>());
  return out;
}

// An output as one group of runs has it.
struct OutputRuns {
  std::vector<std::vector<Complex>> rounded;
  std::vector<std::vector<Complex>> open;

  OutputRuns(const Others& others, std::size_t output)
      : rounded(numbers_of(others.rounded, output)), open(numbers_of(others.open, output)) {}

  [[nodiscard]] std::array<Seen, 2> parts(std::size_t k, Complex actual, DType dtype) const {
    double size = 0;
    for (const auto& run : rounded) {
      if (std::isfinite(std::abs(run[k]))) size = std::max(size, std::abs(run[k]));
    }
    std::array<Seen, 2> out{Seen{actual.real(), {}, {}, dtype, size},
                            Seen{actual.imag(), {}, {}, dtype, size}};
    const auto add = [&](const auto& runs, auto Seen::* to) {
      for (const auto& run : runs) {
        (out[0].*to).push_back(run[k].real());
        (out[1].*to).push_back(run[k].imag());
      }
    };
    add(rounded, &Seen::rounded);
    add(open, &Seen::open);
    return out;
  }
};

// Every element is to be explained by one group of runs.
Verdict verdict(const Tensor& actual, std::size_t output, std::span<const Others> groups,
                bool overflow) {
  std::vector<OutputRuns> runs;
  for (const Others& group : groups) runs.emplace_back(group, output);
  const auto a = actual.numbers<Complex>();
  Verdict made;
  for (std::size_t k = 0; k < a.size(); ++k) {
    bool rounded = false;
    bool open = overflow && !is_finite(a[k]) && !is_finite(runs[0].rounded[0][k]);
    for (const OutputRuns& group : runs) {
      const auto parts = group.parts(k, a[k], actual.dtype());
      rounded = rounded || std::ranges::all_of(parts, &Seen::is_rounded);
      open = open || std::ranges::all_of(
                         parts, [](const Seen& s) { return s.is_rounded() || s.is_open(); });
      if (rounded) break;
    }
    if (rounded) continue;
    if (open) {
      ++made.excused;
      continue;
    }
    const auto [re, im] = runs.back().parts(k, a[k], actual.dtype());
    const auto [least, most] = std::ranges::minmax(re.rounded);
    made.wrong = fmt::format(
        "element {} is {:.17g}{:+.17g}i, expected {:.17g}{:+.17g}i, from {:.17g} to {:.17g} when "
        "it is rounded otherwise",
        k, re.actual, im.actual, re.expected(), im.expected(), least, most);
    return made;
  }
  return made;
}

// The same with as many runs as it takes.
Verdict verdict_of_all(const Tensor& actual, std::size_t output, std::vector<Others>& groups,
                       bool overflow) {
  Verdict made = verdict(actual, output, groups, overflow);
  while (!made.wrong.empty() && groups.back().add()) {
    made = verdict(actual, output, groups, overflow);
  }
  return made;
}

template <class F>
Outcome outcome_of(F&& run) {
  try {
    return run();
  } catch (const UserError& e) {
    return e.code();
  }
}

}  // namespace

Outcome reference_outcome(const Graph& graph, const Feeds& feeds) {
  return outcome_of([&] { return interpret(graph, feeds); });
}

Outcome compiled_outcome(const Graph& graph, const Feeds& feeds, bool fuse) {
  return outcome_of([&] { return run_between_guards(graph, feeds, {.fuse = fuse}); });
}

Outcome donated_outcome(const Graph& graph, const Feeds& feeds, std::size_t& donations) {
  const CompileOptions options{.donations = all_donations(graph)};
  donations += options.donations.size();
  return outcome_of([&] { return run_between_guards(graph, feeds, options); });
}

std::span<const MadeFor> all_made_for() {
  static constexpr std::array All = {MadeFor::Lir, MadeFor::Cramped, MadeFor::Cpu,
                                     MadeFor::CpuOpByOp};
  return std::span(All).first(has_device("cpu") ? All.size() : 2);
}

std::string_view name(MadeFor target) {
  switch (target) {
    case MadeFor::Lir: return "made for lir";
    case MadeFor::Cramped: return "made for a device with little room";
    case MadeFor::Cpu: return "made for the CPU";
    case MadeFor::CpuOpByOp: return "made for the CPU op by op";
  }
  return "?";
}

namespace {

const schedule::Target& target_of(MadeFor target) {
  static const CrampedTarget cramped;
  if (target == MadeFor::Cramped) return cramped;
  return target == MadeFor::Lir ? schedule::plain_target()
                                : Device::default_cpu().backend().target();
}

ProgramOptions options_for(MadeFor target) {
  return {.fuse = target != MadeFor::CpuOpByOp, .target = &target_of(target)};
}

}  // namespace

ricci::Program program_for(const Graph& graph, MadeFor target) {
  return make_program(graph, options_for(target));
}

Graph prepared_for(const Graph& graph, MadeFor target) {
  return prepare_for_device(graph, options_for(target));
}

ricci::Program program_of_prepared_for(Graph prepared, MadeFor target) {
  return program_of_prepared(std::move(prepared), options_for(target));
}

Outcome lir_outcome(const Graph& graph, const Feeds& feeds, MadeFor target) {
  return outcome_of([&] { return run_on_lir(graph, program_for(graph, target), feeds); });
}

Outcome donated_lir_outcome(const Graph& graph, const Feeds& feeds, std::size_t& donations) {
  const CompileOptions options{.donations = all_donations(graph)};
  donations += options.donations.size();
  return outcome_of([&] { return run_in_place(graph, feeds, Device::named("lir"), options); });
}

std::vector<bool> exact_outputs(const Graph& graph) {
  std::vector<bool> out =
      depends_on(graph, [&](const Node& node) { return !node_is_exact(graph, node); });
  out.flip();
  return out;
}

std::string to_string(const AgreementCounts& counts) {
  return fmt::format(
      "{} outputs exact, {} close, {} within the reference's own rounding, {} faults; "
      "{} of {} elements open",
      counts.exactly, counts.closely, counts.by_spread, counts.faults, counts.excused,
      counts.elements);
}

void expect_few_excused(const AgreementCounts& counts) {
  constexpr std::size_t Few = 20;  // of the elements of a few programs
  EXPECT_LE(counts.excused, Few + counts.elements / 1000) << to_string(counts);
}

std::string disagreement(const Graph& graph, const Feeds& feeds, const Outcome& actual,
                         const Outcome& expected, AgreementCounts* counts) {
  AgreementCounts unread;
  AgreementCounts& count = counts != nullptr ? *counts : unread;
  const auto* a = std::get_if<std::vector<Tensor>>(&actual);
  const auto* e = std::get_if<std::vector<Tensor>>(&expected);
  const auto said = [](const Outcome& o) {
    const auto* code = std::get_if<ErrorCode>(&o);
    return code == nullptr ? std::string("no fault") : std::string(name(*code));
  };
  if (a == nullptr || e == nullptr) {
    ++count.faults;
    return said(actual) == said(expected)
               ? std::string()
               : fmt::format("{} is reported, expected {}", said(actual), said(expected));
  }
  if (a->size() != e->size()) return "another number of outputs";
  const std::vector<bool> exact = exact_outputs(graph);
  const std::vector<bool> overflow =
      depends_on(graph, [&](const Node& node) { return multiplies_complex_numbers(graph, node); });
  std::vector<Others> others;  // of the graph, and of the graph made ready
  for (std::size_t i = 0; i < e->size(); ++i) {
    count.elements += static_cast<std::size_t>((*e)[i].numel());
    if (exact[i]) {
      ++count.exactly;
      if (const auto r = same((*a)[i], (*e)[i]); !r) {
        return fmt::format("output {}: {}", i, r.message());
      }
      continue;
    }
    if (close((*a)[i], (*e)[i])) {
      ++count.closely;
      continue;
    }
    if ((*a)[i].type() != (*e)[i].type()) return fmt::format("output {} has another type", i);
    ++count.by_spread;
    if (others.empty()) others.emplace_back(graph, feeds, *e);
    Verdict made = verdict_of_all((*a)[i], i, others, overflow[i]);
    // A composite op rounds inside as well.
    if (!made.wrong.empty() && others.size() == 1) {
      others.emplace_back(prepare_for_device(graph), feeds, *e);
      made = verdict_of_all((*a)[i], i, others, overflow[i]);
    }
    if (!made.wrong.empty()) return fmt::format("output {}: {}", i, made.wrong);
    count.excused += made.excused;
  }
  return {};
}

std::string device_disagreement(const Graph& graph, const Feeds& feeds, const Outcome& actual,
                                const Outcome& expected, AgreementCounts* counts) {
  std::string wrong = disagreement(graph, feeds, actual, expected, counts);
  if (wrong.empty() || !std::holds_alternative<ErrorCode>(expected)) return wrong;
  const Graph read = prepare_for_device(graph);
  return disagreement(graph, feeds, actual, reference_outcome(read, feeds), counts);
}

void expect_agreement_everywhere(const Graph& graph, const Feeds& feeds) {
  const Outcome expected = reference_outcome(graph, feeds);
  for (const bool fuse : {true, false}) {
    EXPECT_EQ(disagreement(graph, feeds, compiled_outcome(graph, feeds, fuse), expected), "")
        << (fuse ? "fused" : "op by op");
  }
  for (const MadeFor target : all_made_for()) {
    EXPECT_EQ(disagreement(graph, feeds, lir_outcome(graph, feeds, target), expected), "")
        << name(target);
  }
}

}  // namespace ricci::testing
