// Runs every case of every op in every mode and counts what ran.
#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <map>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/compiler/rule/expand.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"
#include "ricci/op/table.h"
#include "ricci/support/hash.h"

#include "ops/cases.h"
#include "ops/chosen_cases.h"
#include "support/compare.h"
#include "test_paths.h"

namespace ricci::testing {

namespace {

Feeds to_feeds(const BuiltCase& b) { return {b.feeds.begin(), b.feeds.end()}; }

// The same elements behind reversed axes' strides, with something else before every element, so
// that nothing is contiguous at any rank.
Tensor strided_copy(const Tensor& t) {
  std::vector<std::int64_t> perm;
  for (std::size_t i = t.rank(); i-- > 0;) perm.push_back(static_cast<std::int64_t>(i));
  const Tensor packed = t.transposed(perm).contiguous();
  const auto size = static_cast<std::size_t>(size_of(t.dtype()));
  const auto count = static_cast<std::size_t>(t.numel());
  const auto spread =
      std::make_shared<std::vector<std::byte>>(2 * size * (count + 1), std::byte{0xFF});
  for (std::size_t i = 0; i < count; ++i) {
    std::ranges::copy(packed.bytes().subspan(i * size, size),
                      spread->begin() + static_cast<std::ptrdiff_t>((2 * i + 1) * size));
  }
  std::vector<std::int64_t> strides = row_major_strides(packed.dims());
  for (std::int64_t& s : strides) s *= 2;
  return Tensor::borrow(packed.type(), spread->data() + size, std::move(strides), spread)
      .transposed(perm);
}

struct Counts {
  std::set<OpKind> ops;
  std::set<std::pair<OpKind, DType>> op_dtypes;
  std::size_t cases = 0;
  std::size_t refusals = 0;
  std::size_t checks = 0;
};
Counts& counts() {
  static Counts c;
  return c;
}

class CaseRun {
 public:
  CaseRun(const Case& c, DType dtype) : case_(c), dtype_(dtype), built_(build_case(c, dtype)) {}

  void all_modes() {
    check_text();
    if (!built_.graph.symbols().empty()) return;
    if (case_.fails) {
      check_fails();
      return;
    }
    outputs_ = interpret(built_.graph, to_feeds(built_));
    check_values();
    check_layout();
    check_against_f64();
    check_expansion();
  }

 private:
  void check_text() {
    verify(built_.graph);
    const std::string text = print(built_.graph);
    const Graph again = parse_graph(text);
    EXPECT_TRUE(again == built_.graph) << text;
    EXPECT_EQ(print(again), text);
    EXPECT_EQ(again.hash(), built_.graph.hash());
    counts().checks += 3;
  }

  void check_fails() {
    try {
      (void)interpret(built_.graph, to_feeds(built_));
      ADD_FAILURE() << "ran, but should report " << name(*case_.fails);
    } catch (const UserError& e) {
      EXPECT_EQ(e.code(), *case_.fails) << e.what();
    }
    ++counts().checks;
  }

  void check_values() {
    for (std::size_t r = 0; r < case_.out.size(); ++r) {
      ASSERT_LT(r, outputs_.size());
      const Tensor expected = Tensor::from_numbers<double>(outputs_[r].type(), case_.out[r]);
      EXPECT_TRUE(close(outputs_[r], expected)) << "result " << r;
      ++counts().checks;
    }
  }

  void check_layout() {
    Feeds strided;
    for (const auto& [name, t] : built_.feeds) strided.emplace(name, strided_copy(t));
    const auto again = interpret(built_.graph, strided);
    for (std::size_t r = 0; r < outputs_.size(); ++r) EXPECT_TRUE(same(again[r], outputs_[r]));
    ++counts().checks;
  }

  // Kernels compute in f64 and round once, so a narrower float gives exactly what f64 gives on the
  // same inputs, rounded.
  void check_against_f64() {
    if (!is_float(dtype_) || dtype_ == DType::F64 || !case_.dtypes.has(DType::F64)) return;
    if (case_.op->has(Trait::Random)) return;
    BuiltCase wide = build_case(case_, DType::F64);
    for (std::size_t k = 0; k < wide.feeds.size(); ++k) {
      wide.feeds[k].second = Tensor::from_numbers<double>(wide.feeds[k].second.type(),
                                                          built_.feeds[k].second.numbers<double>());
    }
    const auto expected = interpret(wide.graph, to_feeds(wide));
    for (std::size_t r = 0; r < outputs_.size(); ++r) {
      const Type& type = outputs_[r].type();
      if (!is_float(type.dtype)) continue;
      const auto numbers = expected[r].numbers<double>();
      const Tensor rounded = Tensor::from_numbers<double>(type, numbers);
      EXPECT_TRUE(rounds_inside() ? close(outputs_[r], rounded) : same(outputs_[r], rounded));
      ++counts().checks;
    }
  }

  // Every node of a body and every step of a chain rounds, and so do the quotients that are rounded
  // to codes; there a tolerance applies.
  [[nodiscard]] bool rounds_inside() const {
    const OpDescriptor& d = descriptor(case_.op->kind());
    return !d.bodies.empty() || d.field("chain") != nullptr || d.field("steps") != nullptr ||
           case_.op->has(Trait::StraightThrough) || case_.op->is<op::FakeQuantizeLsqBackward>();
  }

  void check_expansion() {
    if (!has_expansion(case_.op->kind())) return;
    const Graph& from = built_.graph;
    Graph expanded("expanded");
    std::vector<Value> operands;
    for (const NodeId in : from.inputs()) {
      operands.push_back(
          expanded.input(from.node(in).op.as<op::Input>()->name, from.node(in).types[0]));
    }
    const Node& node = from.nodes().back();
    std::vector<Value> wanted;
    for (const Value& v : expand_node(node, operands, expanded)) {
      if (v.valid()) wanted.push_back(v);
    }
    ASSERT_EQ(wanted.size(), outputs_.size());
    expanded.set_outputs(wanted);
    verify(expanded);
    const auto results = interpret(expanded, to_feeds(built_));
    for (std::size_t r = 0; r < results.size(); ++r) {
      EXPECT_TRUE(close(results[r], outputs_[r])) << "expansion, result " << r << "\n"
                                                  << print(expanded);
      ++counts().checks;
    }
  }

  const Case& case_;
  DType dtype_;
  BuiltCase built_;
  std::vector<Tensor> outputs_;
};

void expect_rejected(const OpDescriptor& d, const Case& c, DType dtype) {
  try {
    (void)build_case(c, dtype);
    ADD_FAILURE() << "was accepted, but breaks " << c.rejects;
  } catch (const UserError& e) {
    EXPECT_EQ(e.diagnostic().detail, fmt::format("{}_{}", d.info->name, c.rejects)) << e.what();
    EXPECT_FALSE(e.diagnostic().message.empty());
    if (const Constraint* declared = d.constraint(c.rejects)) {
      EXPECT_EQ(e.code(), declared->code) << e.what();
    }
  }
  ++counts().refusals;
}

class OpCases : public ::testing::TestWithParam<std::size_t> {};

// Every op infers its types and works in f64. [TR-01] [G-03]
TEST_P(OpCases, Hold) {
  const OpDescriptor& d = all_ops()[GetParam()];
  if (!is_chosen(d)) return;
  for (const Case& c : cases_for(d.kind)) {
    for (const DType dtype : AllDTypes) {
      if (!c.dtypes.has(dtype)) continue;
      SCOPED_TRACE(fmt::format("{} case '{}' in {}", d.info->name, c.name, name(dtype)));
      if (!c.rejects.empty()) {
        expect_rejected(d, c, dtype);
        continue;
      }
      try {
        CaseRun(c, dtype).all_modes();
      } catch (const std::exception& e) {
        ADD_FAILURE() << e.what();
      }
      counts().ops.insert(d.kind);
      counts().op_dtypes.insert({d.kind, dtype});
      ++counts().cases;
    }
  }
}

// Every broken constraint is an error with a code. [G-01]
TEST_P(OpCases, CoverEveryConstraint) {
  const OpDescriptor& d = all_ops()[GetParam()];
  std::set<std::string> provoked;
  std::size_t accepted = 0;
  for (const Case& c : cases_for(d.kind)) {
    if (c.dtypes == DTypeSet{}) continue;  // never run
    provoked.insert(c.rejects);
    accepted += c.rejects.empty() ? 1 : 0;
  }
  EXPECT_GT(accepted, 0U) << "'" << d.info->name << "' has no case that runs";
  for (const Constraint& constraint : d.constraints) {
    EXPECT_TRUE(provoked.contains(constraint.label))
        << "no case of '" << d.info->name << "' breaks " << constraint.label << ": "
        << constraint.text;
  }
}

TEST_P(OpCases, AreDocumented) {
  const OpDescriptor& d = all_ops()[GetParam()];
  EXPECT_FALSE(d.info->help.empty());
  EXPECT_FALSE(d.info->formula.empty());
  for (const FieldInfo& f : d.fields) EXPECT_FALSE(f.help.empty()) << f.name;
}

INSTANTIATE_TEST_SUITE_P(All, OpCases, ::testing::Range<std::size_t>(0, OpCount),
                         [](const auto& op) {
                           return std::string(all_ops()[op.param].info->name);
                         });

// Writes the closing summary that `make test` prints.
class CaseSummary : public ::testing::Environment {
 public:
  void TearDown() override {
    const Counts& c = counts();
    if (c.cases == 0) return;
    std::ofstream out(RICCI_BUILD_DIR "/test-summary.txt");
    out << fmt::format(
        "op cases: {} ops, {} op x dtype pairs, {} cases run, {} refusals provoked, {} checks\n",
        c.ops.size(), c.op_dtypes.size(), c.cases, c.refusals, c.checks);
  }
};
const ::testing::Environment* const case_summary =
    ::testing::AddGlobalTestEnvironment(new CaseSummary);  // NOLINT: gtest owns it

}  // namespace
}  // namespace ricci::testing
