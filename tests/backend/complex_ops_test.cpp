// Which ops take complex numbers, and that each of them works in c64 and c128 in every mode: the
// reference, its gradient, tangent and batch, and all of these compiled. Ops are tried on the cases
// they have for real numbers, so a new op is part of it without a line here.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "ricci/op/table.h"
#include "ricci/transform/check.h"

#include "backend/agreement.h"
#include "ops/cases.h"
#include "ops/chosen_cases.h"
#include "ops/transformed_case.h"
#include "support/tool.h"
#include "test_paths.h"

namespace ricci::testing::complex_ops_test {
namespace {

constexpr std::array Modes = {"eval", "vjp", "jvp", "vmap", "cpu", "lir"};
enum Mode : std::size_t { Eval, Vjp, Jvp, Vmap, Cpu, Lir };

struct Row {
  std::size_t cases = 0;                      ///< that took complex numbers
  std::map<std::size_t, std::string> faults;  ///< of a mode, the first
  std::string refusal;                        ///< what a case was refused with
};
using Table = std::map<std::string, Row>;

// What the op is called in text; reductions by what they compute.
std::string row_name(const Op& op) {
  std::string name(op.mnemonic());
  if (const auto* r = op.as<op::Reduce>()) name += fmt::format(" {}", name_of(r->op));
  if (const auto* s = op.as<op::Scatter>()) name += fmt::format(" {}", name_of(s->kind));
  if (const auto* p = op.as<op::Pool>()) name += fmt::format(" {}", name_of(p->kind));
  if (const auto* r = op.as<op::Resize>()) name += fmt::format(" {}", name_of(r->mode));
  if (const auto* b = op.as<op::ActivationBackward>()) name += fmt::format(" {}", name_of(b->kind));
  return name;
}

class Survey {
 public:
  Survey(Row& row, const Case& c, DType dtype)
      : row_(row), case_(c), program_(program_of(c, dtype)) {}

  void all_modes() {
    ++row_.cases;
    run(Eval, [&] { return fault_of(reference_outcome(program_.graph, program_.feeds)); });
    on_devices(program_);
    const bool differentiable = !program_.differentiable().empty() && !is_unbounded(case_) &&
                                !case_.op->is<op::StopGradient>();
    if (differentiable) {
      run(Vjp, [&] { return probe(); });
      run(Jvp, [&] {
        const CaseProgram tangent = tangent_of(program_, 7);
        return fault_of(reference_outcome(tangent.graph, tangent.feeds));
      });
      run(Cpu, [&] { return on_devices(gradient_of(program_, 7)); });
    }
    if (case_.op->has(Trait::Random) || program_.inputs().empty()) return;
    run(Vmap, [&] {
      const CaseProgram batch = batch_of(case_, program_, program_.inputs(), 3).first;
      return fault_of(reference_outcome(batch.graph, batch.feeds));
    });
  }

 private:
  template <class F>
  void run(Mode mode, F&& f) {
    std::string fault;
    try {
      fault = f();
    } catch (const std::exception& e) {
      fault = e.what();
    }
    if (!fault.empty()) row_.faults.emplace(mode, fmt::format("case {}: {}", case_.name, fault));
  }

  static std::string fault_of(const Outcome& o) {
    const auto* code = std::get_if<ErrorCode>(&o);
    return code == nullptr ? "" : fmt::format("a fault: {}", name(*code));
  }

  // Forward against reverse mode, with the real inner product.
  [[nodiscard]] std::string probe() const {
    const DerivativeProbe d =
        probe_derivatives(program_.graph, program_.differentiable(), program_.feeds, 11);
    const bool wide = std::ranges::all_of(program_.graph.nodes(), [](const Node& n) {
      return n.types[0].dtype == DType::C128 || n.types[0].dtype == DType::F64;
    });
    if (!d.finite() || d.adjoint_gap() <= (wide ? 1e-11 : 1e-2)) return "";
    return fmt::format("⟨u, Jt⟩ = {} but ⟨Jᴴu, t⟩ = {}", d.forward, d.reverse);
  }

  std::string on_devices(const CaseProgram& p) {
    if (p.graph.outputs().empty()) return "";
    const Outcome expected = reference_outcome(p.graph, p.feeds);
    run(Cpu, [&] {
      return disagreement(p.graph, p.feeds, compiled_outcome(p.graph, p.feeds, true), expected);
    });
    run(Lir, [&] {
      return disagreement(p.graph, p.feeds, lir_outcome(p.graph, p.feeds, MadeFor::Lir), expected);
    });
    return "";
  }

  Row& row_;
  const Case& case_;
  CaseProgram program_;
};

// Is the case about numbers that could be complex just as well?
bool is_candidate(const Case& c) {
  return c.rejects.empty() && !c.fails && (c.dtypes.has(DType::F64) || c.dtypes.has(DType::C128)) &&
         std::ranges::any_of(c.in, [](const In& in) { return !in.dtype; }) &&
         std::ranges::all_of(c.in, [](const In& in) { return in.values.empty() || in.dtype; });
}

bool has_elements(const Case& c) {
  return std::ranges::none_of(c.in, [](const In& in) {
    return std::ranges::any_of(in.dims, [](const Dim& d) { return d.is(0); });
  });
}

Table survey() {
  constexpr std::size_t CasesEach = 3;
  Table table;
  for (const OpDescriptor& d : all_ops()) {
    if (d.op_class == OpClass::Leaf || d.op_class == OpClass::Block) continue;
    for (const DType dtype : {DType::C64, DType::C128}) {
      std::map<std::string, std::size_t> tried;
      for (const Case& c : cases_for(d.kind)) {
        if (!is_candidate(c) || !has_elements(c)) continue;
        Row& row = table[row_name(*c.op)];
        if (tried[row_name(*c.op)] == CasesEach) continue;
        try {
          if (!build_case(c, dtype).graph.symbols().empty()) continue;
        } catch (const UserError& e) {
          if (row.refusal.empty()) row.refusal = e.diagnostic().message;
          continue;
        }
        ++tried[row_name(*c.op)];
        Survey(row, c, dtype).all_modes();
      }
    }
  }
  return table;
}

// As Markdown, which the documentation has and this keeps up to date.
std::string to_text(const Table& table) {
  std::vector<std::string> taken;
  std::string refused;
  for (const auto& [name, row] : table) {
    if (row.cases > 0) {
      taken.push_back("`" + name + "`");
    } else if (!row.refusal.empty()) {  // else no case draws numbers of known sizes
      refused += fmt::format("| `{}` | {} |\n", name, row.refusal);
    }
  }
  return fmt::format(
      "# Ops and complex numbers\n\n"
      "Made by the tests from the cases of every op (`RICCI_UPDATE_GOLDEN=1` writes it again).\n\n"
      "These take c64 and c128: interpreted, compiled on every device, differentiated in both "
      "modes\nand batched.\n\n{}\n\nThese refuse them:\n\n| op | because |\n| --- | --- |\n{}",
      fmt::join(taken, ", "), refused);
}

TEST(BackendComplexOps, WorkInEveryModeWhereTheyTakeComplexNumbers) {
  const Table table = survey();
  std::ofstream matrix(RICCI_BUILD_DIR "/complex-matrix.txt");
  for (const auto& [name, row] : table) {
    matrix << fmt::format("{:<36}", name);
    if (row.cases == 0) {
      matrix << "refused\n";
      continue;
    }
    for (std::size_t m = 0; m < Modes.size(); ++m) {
      const auto fault = row.faults.find(m);
      matrix << fmt::format("{:>6}", fault == row.faults.end() ? "ok" : "FAIL");
      if (fault != row.faults.end())
        ADD_FAILURE() << name << " " << Modes[m] << " " << fault->second;
    }
    matrix << "\n";
  }
  const std::string text = to_text(table);
  const std::string document = RICCI_SOURCE_DIR "/docs/generated/complex.md";
  if (std::getenv("RICCI_UPDATE_GOLDEN") != nullptr) std::ofstream(document) << text;
  EXPECT_EQ(text, read_text(document)) << "RICCI_UPDATE_GOLDEN=1 writes it";
}

}  // namespace
}  // namespace ricci::testing::complex_ops_test
