// What holds for every program: checked on random ones, shrunk to a small one where it fails.
#include <algorithm>
#include <cstdlib>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/compiler/rewrite/pass.h"
#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"
#include "ricci/op/leaf.h"
#include "ricci/op/table.h"

#include "property/for_programs.h"
#include "property/generator.h"
#include "property/random.h"
#include "support/compare.h"

namespace ricci::testing {
namespace {

std::string signature_of(const Graph& g) {
  std::string out;
  for (const Node& n : g.nodes()) {
    if (const auto* in = n.op.as<op::Input>()) out += "input " + in->name + in->type.to_string();
    if (const auto* p = n.op.as<op::Param>()) out += "param " + p->name + p->type.to_string();
  }
  for (const ValueId v : g.outputs()) out += " -> " + g.type(v).to_string();
  return out;
}

std::string check_text(const Program& p) {
  verify(p.graph);
  const std::string text = print(p.graph);
  const Graph again = parse_graph(text);
  if (!(again == p.graph)) return "parsing what was printed gives another graph";
  if (print(again) != text) return "printing again gives another text:\n" + print(again);
  if (again.hash() != p.graph.hash()) return "equal graphs have different hashes";
  return {};
}

std::string check_pass(const Pass& pass, const Program& p) {
  const PipelineResult r = PassManager({pass}).run(p.graph);
  if (signature_of(r.graph) != signature_of(p.graph)) return pass.name + " changed the signature";
  for (NodeId id = 0; id < p.graph.size(); ++id) {
    for (std::uint32_t k = 0; k < p.graph.node(id).types.size(); ++k) {
      const auto now = r.map({id, k});
      if (now && r.graph.type(*now) != p.graph.type({id, k})) {
        return fmt::format("{} maps node {} to a value of another type", pass.name, id);
      }
    }
  }
  if (!r.changed && !(r.graph == p.graph)) return pass.name + " changed something unsaid";
  if (const PassResult twice = pass.run(r.graph); twice.changed) {
    return pass.name + " is not idempotent:\n" + print(r.graph) + print(twice.graph);
  }
  const auto before = outputs_of(p.graph, p.feeds);
  if (!before) return {};
  const std::string wrong = difference(interpret(r.graph, p.feeds), *before);
  return wrong.empty() ? wrong : pass.name + " changed a value, " + wrong + "\n" + print(r.graph);
}

std::vector<Pass> passes_of(PassKind kind) {
  std::vector<Pass> out;
  std::ranges::copy_if(all_passes(), std::back_inserter(out),
                       [&](const Pass& pass) { return pass.kind == kind; });
  return out;
}

TEST(PropertyText, PrintingThenParsingIsTheIdentity) {
  for_programs(program_count(10000), {.random = true, .symbolic = true}, check_text);
}

TEST(PropertyPasses, KeepValuesAndSignatures) {
  for_programs(program_count(600), {.nodes = 16, .random = true}, [](const Program& p) {
    for (const Pass& pass : passes_of(PassKind::CleanUp)) {
      if (std::string wrong = check_pass(pass, p); !wrong.empty()) return wrong;
    }
    return std::string();
  });
}

TEST(PropertyPasses, KeepValuesInEveryDtype) {
  for (const DType dtype : AllDTypes) {
    SCOPED_TRACE(name(dtype));
    for_programs(program_count(60), {.nodes = 16, .dtypes = {dtype}}, [](const Program& p) {
      for (const Pass& pass : passes_of(PassKind::CleanUp)) {
        if (std::string wrong = check_pass(pass, p); !wrong.empty()) return wrong;
      }
      return std::string();
    });
  }
}

TEST(PropertyPasses, GiveTheSameValuesInAnyOrder) {
  for_programs(program_count(300), {.nodes = 16}, [](const Program& p) -> std::string {
    const auto before = outputs_of(p.graph, p.feeds);
    if (!before) return {};
    std::vector<Pass> passes = passes_of(PassKind::CleanUp);
    Rng rng(p.graph.hash());
    for (std::size_t i = passes.size(); i > 1; --i) std::swap(passes[i - 1], passes[rng.below(i)]);
    const PipelineResult r = PassManager(passes).run(p.graph);
    return difference(interpret(r.graph, p.feeds), *before);
  });
}

TEST(PropertyPasses, SymbolicProgramsStayWellFormed) {
  for_programs(program_count(600), {.symbolic = true}, [](const Program& p) -> std::string {
    for (const Pass& pass : passes_of(PassKind::CleanUp)) {
      const PipelineResult r = PassManager({pass}).run(p.graph);
      if (signature_of(r.graph) != signature_of(p.graph)) return pass.name;
      if (pass.run(r.graph).changed) return pass.name + " is not idempotent";
    }
    return {};
  });
}

// Lowerings may ask for a bound or a size; what they do give is a sound graph of the same signature
// in which they find nothing more to do.
TEST(PropertyPasses, LoweringsStayWellFormed) {
  for (const bool symbolic : {false, true}) {
    for_programs(program_count(600), {.symbolic = symbolic}, [](const Program& p) -> std::string {
      for (const Pass& pass : passes_of(PassKind::Lowering)) {
        try {
          const PipelineResult r = PassManager({pass}).run(p.graph);
          if (signature_of(r.graph) != signature_of(p.graph)) return pass.name;
          if (pass.run(r.graph).changed) return pass.name + " is not idempotent";
        } catch (const UserError& e) {
          const bool asks =
              e.code() == ErrorCode::UnboundedLoop || e.code() == ErrorCode::NeedsStaticDim;
          if (!asks) return pass.name + ": " + e.what();
        }
      }
      return {};
    });
  }
}

TEST(PropertyInterpreter, IsDeterministic) {
  for_programs(program_count(200), {.random = true}, [](const Program& p) -> std::string {
    const auto once = outputs_of(p.graph, p.feeds);
    if (!once) return {};
    return difference(interpret(p.graph, p.feeds), *once);
  });
}

TEST(PropertyGenerator, DrawsEveryOpAndMostProgramsRun) {
  std::set<std::string_view> drawn;
  std::size_t ran = 0;
  constexpr std::uint64_t Count = 800;
  for (std::uint64_t seed = 0; seed < Count; ++seed) {
    const Program p = generate(seed, {.nodes = 30, .random = true});
    for (const Node& n : p.graph.nodes()) drawn.insert(n.op.info().name);
    if (seed < 100) ran += outputs_of(p.graph, p.feeds) ? 1 : 0;
  }
  for (const OpDescriptor& d : all_ops()) {
    if (d.op_class == OpClass::Block) continue;  // legal in another stage only
    EXPECT_TRUE(drawn.contains(d.info->name)) << d.info->name;
  }
  EXPECT_GE(ran, 95U);
}

TEST(PropertyGenerator, KeepsToItsOptions) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Program p = generate(
        seed, {.dtypes = {DType::F64}, .control_flow = false, .differentiable_only = true});
    EXPECT_TRUE(
        p.graph ==
        generate(seed, {.dtypes = {DType::F64}, .control_flow = false, .differentiable_only = true})
            .graph);
    for (const Node& n : p.graph.nodes()) {
      EXPECT_FALSE(n.op.has(Trait::NoGradient)) << n.op.mnemonic();
      EXPECT_TRUE(n.bodies.empty());
    }
  }
}

// A program that fails because it holds a softmax shrinks to that softmax and its input.
TEST(PropertyShrinker, FindsTheSmallestProgram) {
  const auto has_softmax = [](const Program& p) {
    return std::ranges::any_of(p.graph.nodes(),
                               [](const Node& n) { return n.op.mnemonic() == "softmax"; });
  };
  std::size_t found = 0;
  for (std::uint64_t seed = 0; seed < 2000 && found < 5; ++seed) {
    const Program p = generate(seed, {.nodes = 30});
    const PassResult live = find_pass("dead_code_elimination")->run(p.graph);
    if (!has_softmax({live.graph, p.feeds})) continue;
    ++found;
    const Program small = shrink(p, has_softmax);
    EXPECT_EQ(small.graph.size(), 2U) << describe(small);
    EXPECT_TRUE(has_softmax(small));
    verify(small.graph);
    (void)interpret(small.graph, small.feeds);
  }
  EXPECT_EQ(found, 5U);
}

}  // namespace
}  // namespace ricci::testing
